//! Names that agents give to files, as a browser is told them.

use crate::server::downloads::serve::disposition;

#[test]
fn a_name_is_only_a_name() {
    for (filename, expected) in [
        ("report.pdf", "attachment; filename=\"report.pdf\""),
        ("a b.txt", "attachment; filename=\"a b.txt\""),
        ("../../etc/passwd", "attachment; filename=\"passwd\""),
        ("C:\\Windows\\x.exe", "attachment; filename=\"x.exe\""),
        (".htaccess", "attachment; filename=\"htaccess\""),
        ("x\"; filename=\"evil.html", "attachment; filename=\"x__ filename=_evil.html\""),
        ("a\r\nSet-Cookie: x", "attachment; filename=\"aSet-Cookie_ x\""),
        ("Übersicht.txt", "attachment; filename=\"_bersicht.txt\"; filename*=UTF-8''%C3%9Cbersicht.txt"),
        ("fdp\u{202e}.exe", "attachment; filename=\"fdp.exe\""),
        ("", "attachment"),
        ("..", "attachment"),
        ("a/", "attachment"),
        ("\0\u{7f}", "attachment"),
    ] {
        assert_eq!(disposition(Some(filename)).to_str().unwrap(), expected, "{filename:?}");
    }
    assert_eq!(disposition(None), "attachment");
    assert!(disposition(Some(&"é".repeat(10_000))).len() < 1_000);
}

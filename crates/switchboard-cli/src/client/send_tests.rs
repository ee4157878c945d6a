//! What a message is made of.

use switchboard::{Json, Part};

use super::{Given, media_type_of, read_parts};

fn read(given: &[Given<'_>], stdin: &str) -> Result<Vec<Part>, String> {
    read_parts(given.iter().copied(), &mut stdin.as_bytes()).map_err(|error| error.message)
}

#[test]
fn parts_keep_their_order_and_a_media_type_is_about_the_part_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b.csv");
    std::fs::write(&path, "x,y").unwrap();
    let path = path.to_str().unwrap();
    let given = [
        Given::Text("a"),
        Given::File(path),
        Given::Data("-"),
        Given::Text("c"),
        Given::MediaType("text/markdown"),
        Given::File("https://files.example/d.png?x=1"),
    ];
    let parts = read(&given, r#" {"n": 1} "#).unwrap();
    assert_eq!(
        parts,
        [
            Part::text("a"),
            Part::raw(b"x,y".to_vec()).with_filename("b.csv").with_media_type("text/csv"),
            Part::json(Json::from_trusted(r#"{"n":1}"#)),
            Part::text("c").with_media_type("text/markdown"),
            Part::url("https://files.example/d.png?x=1").with_filename("d.png").with_media_type("image/png"),
        ]
    );
}

#[test]
fn what_cannot_be_sent_is_refused_before_anything_is_sent() {
    for (given, stdin, told) in [
        (&[][..], "", "nothing to send"),
        (&[Given::MediaType("a/b"), Given::Text("x")][..], "", "--media-type is about the part right before it"),
        (&[Given::Text("x"), Given::MediaType("a/b"), Given::MediaType("c/d")][..], "", "--media-type"),
        (&[Given::Data("-"), Given::Data("-")][..], "{}", "--data - can be given once"),
        (&[Given::Data("-")][..], "{", "not JSON"),
        (&[Given::File("/no/such/file")][..], "", "cannot be read"),
    ] {
        let error = read(given, stdin).unwrap_err();
        assert!(error.contains(told), "{error} does not say {told}");
    }
}

#[test]
fn media_types_are_told_by_endings() {
    assert_eq!(media_type_of("a/b.PDF"), Some("application/pdf"));
    assert_eq!(media_type_of("https://x.example/c.json?d=1"), Some("application/json"));
    assert_eq!(media_type_of("noending"), None);
}

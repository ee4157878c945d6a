//! A command line and its words.

use super::{shell_word, split_words};

#[test]
fn blanks_separate_and_quotes_hold_together() {
    for (line, words) in [
        ("", &[][..]),
        ("  \t\n ", &[]),
        ("cat", &["cat"]),
        ("  tr  a-z\tA-Z ", &["tr", "a-z", "A-Z"]),
        ("grep 'two words' file", &["grep", "two words", "file"]),
        (r#"printf "a \"b\" \\ \n $HOME""#, &["printf", r#"a "b" \ \n $HOME"#]),
        (r"printf 'a\b'", &["printf", r"a\b"]),
        (r"a\ b c\'d \\", &["a b", "c'd", r"\"]),
        ("x''y\"\"z", &["xyz"]),
        ("'' \"\"", &["", ""]),
        ("--name='a b'\"c d\"e", &["--name=a bc de"]),
        ("echo a | b > c; $(d) *", &["echo", "a", "|", "b", ">", "c;", "$(d)", "*"]),
        ("grüße 'schöne Welt'", &["grüße", "schöne Welt"]),
        ("'line\nbreak'", &["line\nbreak"]),
    ] {
        assert_eq!(split_words(line).unwrap(), words, "{line}");
    }
}

#[test]
fn what_is_opened_must_be_closed() {
    for (line, why) in [
        ("a 'b", "has an opening ' without a closing one"),
        ("a \"b", "has an opening \" without a closing one"),
        ("a \"b\\", "has an opening \" without a closing one"),
        ("a \"b\\\"", "has an opening \" without a closing one"),
        ("a \\", "ends in a backslash"),
    ] {
        assert_eq!(split_words(line), Err(why), "{line}");
    }
}

#[test]
fn what_was_meant_for_a_shell_is_noticed_unless_it_is_quoted() {
    for (line, found) in [
        ("fortune | cowsay", Some("|")),
        ("a && b", Some("&&")),
        ("sort < in > out", Some("<")),
        ("make 2>&1", Some("2>&1")),
        ("grep '|' file", None),
        ("grep 'a | b' file", None),
        (r"find . -exec cat {} \;", None),
        ("curl http://a.example/?b&c", None),
        ("a 'b | c", None),
        ("cat", None),
    ] {
        assert_eq!(shell_word(line), found, "{line}");
    }
}

//! A command line and its words.

use super::{shell_doubt, split_words};

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
    let doubt = shell_doubt("fortune | cowsay").unwrap();
    assert_eq!(
        doubt,
        "\"fortune | cowsay\" is run without a shell, so that the program gets `|` as an argument; \
         if a shell is meant, add --exec-shell (shell = true), and if not, quote the `|`"
    );
    for line in ["a && b", "sort < in > out", "make 2>&1", "a ; b"] {
        assert!(shell_doubt(line).is_some(), "{line}");
    }
    for line in [
        "grep '|' file",
        "grep 'a | b' file",
        r"find . -exec cat {} \;",
        "curl http://a.example/?b&c",
        "a 'b | c",
        "cat",
    ] {
        assert_eq!(shell_doubt(line), None);
    }
}

#[test]
fn fuzz_command_lines() {
    let corpus = switchboard_fuzz::texts(&[r#"tr 'a b' "c \"d\"" e\ f"#, "sh -c 'echo $1 | cat' x", "a && b; c > d"]);
    switchboard_fuzz::run("command lines", &corpus, |input| {
        let Ok(text) = std::str::from_utf8(input) else { return };
        let _ = shell_doubt(text);
        if let Ok(words) = split_words(text) {
            let quoted: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
            assert_eq!(split_words(&quoted.join(" ")), Ok(words));
        }
    });
}

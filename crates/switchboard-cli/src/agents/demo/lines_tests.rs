//! Lines to paste.

use super::*;

#[test]
fn lines_are_the_same_in_json_and_out_of_it() {
    for needs_token in [false, true] {
        let address = Address { url: "http://127.0.0.1:8080".to_owned(), needs_token };
        for line in [address.answer_line("/agents/demo", "t-1", "c-1"), address.resume_line("", "t-1")] {
            let line = line.unwrap();
            assert_eq!(serde_json::to_string(&line).unwrap(), format!("\"{line}\""));
            assert_eq!(line.contains("$TOKEN"), needs_token);
        }
    }
}

#[test]
fn an_id_that_a_shell_might_read_is_not_put_into_a_line() {
    let address = Address { url: "http://127.0.0.1:8080".to_owned(), needs_token: false };
    for id in ["a'b", "a b", "$(a)", "a;b", "a~b", "grün"] {
        assert_eq!(address.answer_line("", "t-1", id), None, "{id}");
        assert_eq!(address.answer_line("", id, "c-1"), None, "{id}");
        assert_eq!(address.resume_line("", id), None, "{id}");
    }
}

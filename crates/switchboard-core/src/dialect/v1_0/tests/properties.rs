//! What holds for every message and not only for the examples.

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::dialect::testing::message;

use super::super::encode_message;
use super::{encoded, sent};

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_survives_being_encoded_and_decoded(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        let read = sent(&format!(r#"{{"message":{written}}}"#));
        prop_assert_eq!(read.message, message);
    }

    #[test]
    fn white_space_between_tokens_changes_nothing(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        let mut spaced = String::new();
        let mut in_string = false;
        let mut escaped = false;
        for c in written.chars() {
            match c {
                '"' if !escaped => in_string = !in_string,
                '{' | '}' | '[' | ']' | ',' | ':' if !in_string => {
                    spaced.push_str(" \r\n\t");
                    spaced.push(c);
                    spaced.push('\n');
                    continue;
                }
                _ => {}
            }
            escaped = in_string && c == '\\' && !escaped;
            spaced.push(c);
        }
        let read = sent(&format!(r#"{{"message":{spaced}}}"#)).message;
        let rewritten = encoded(|out| encode_message(&read, out));
        // What comes out fits on one line, whatever came in.
        prop_assert_eq!(rewritten.contains(['\n', '\r']), false);
        let again = sent(&format!(r#"{{"message":{rewritten}}}"#)).message;
        prop_assert_eq!(again.message_id, message.message_id);
        prop_assert_eq!(again.parts.len(), message.parts.len());
    }
}

//! Encoding and decoding is the identity, up to the losses in the head of the dialect.

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::dialect::testing::message;
use crate::dialect::wire::tests::lose_of_part;
use crate::model::Message;

use super::super::{rest, rpc};
use super::{encoded, sent, sent_over_http};

/// The message without what both spellings of 0.3 lose.
fn without_losses(mut message: Message) -> Message {
    message.parts.iter_mut().for_each(lose_of_part);
    message
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_survives_json_rpc_up_to_the_losses(message in message()) {
        let written = encoded(|out| rpc::encode_message(&message, out));
        let read = sent(&format!(r#"{{"message":{written}}}"#));
        prop_assert_eq!(read.message, without_losses(message));
    }

    #[test]
    fn a_message_survives_http_up_to_the_losses(message in message()) {
        let written = encoded(|out| rest::encode_message(&message, out));
        let read = sent_over_http(&format!(r#"{{"message":{written}}}"#));
        let mut expected = without_losses(message);
        expected.reference_task_ids.clear();
        prop_assert_eq!(read.message, expected);
    }

    #[test]
    fn what_is_read_twice_is_read_alike(message in message()) {
        let once = sent(&format!(r#"{{"message":{}}}"#, encoded(|out| rpc::encode_message(&message, out)))).message;
        let twice = sent(&format!(r#"{{"message":{}}}"#, encoded(|out| rpc::encode_message(&once, out)))).message;
        prop_assert_eq!(once, twice);
    }
}

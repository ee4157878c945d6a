//! Encoding and decoding is the identity, up to the losses in the head of the dialect; and no bytes do harm.

use proptest::prelude::{ProptestConfig, prop_assert_eq, proptest};

use crate::dialect::testing::{Dice, message, mutate};
use crate::model::{Message, MessageId, PartContent};

use super::super::encode_message;
use super::{decode, encoded, golden, sent};

/// The message without what this dialect loses.
fn without_losses(mut message: Message) -> Message {
    message.message_id = MessageId::default();
    message.context_id = None;
    message.task_id = None;
    message.extensions.clear();
    message.reference_task_ids.clear();
    for part in &mut message.parts {
        if matches!(part.content, PartContent::Text(_) | PartContent::Data(_)) {
            part.change_details(|details| (details.filename, details.media_type) = (None, None));
        }
    }
    message
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_message_survives_up_to_the_losses(message in message()) {
        let written = encoded(|out| encode_message(&message, out));
        prop_assert_eq!(sent(&format!(r#"{{"message":{written}}}"#)).message, without_losses(message));
    }
}

#[test]
fn no_bytes_make_the_door_panic() {
    let samples = ["request-send", "request-send-async", "request-call", "request-get"].map(golden);
    let mut dice = Dice::new(0xa6e4_7a71_5eed_0001);
    for _ in 0..10_000 {
        let sample = &samples[dice.roll(samples.len())];
        let bytes = mutate(&mut dice, sample);
        let text = String::from_utf8_lossy(&bytes);
        for method in ["message/send", "message/stream", "tasks/get", "tasks/cancel"] {
            let _ = decode(method, &text);
            let at = text.find("\"params\":").map_or(0, |at| at + 9);
            let _ = decode(method, text[at..].trim_end().strip_suffix('}').unwrap_or_default());
        }
    }
}

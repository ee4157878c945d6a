//! Encoding and decoding is the identity, up to the losses in the head of the dialect; and no bytes do harm.

use proptest::prelude::{ProptestConfig, prop_assert_eq, prop_assume, proptest};

use crate::dialect::testing::{Dice, message, mutate};
use crate::model::{Message, Part, PartContent};

use super::super::encode_message;
use super::{answer, encoded, golden, sent};

/// The message without what this dialect loses.
fn without_losses(mut message: Message) -> Message {
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
        let has_null = |part: &Part| matches!(&part.content, PartContent::Data(data) if data.as_str() == "null");
        // Null is no data here, and a message says something in words.
        prop_assume!(!message.parts.iter().any(has_null));
        let mut message = message;
        message.parts.push(Part::text("words"));
        let written = encoded(|out| encode_message(&message, out));
        let read = sent(&format!(r#"{{"message":{written}}}"#)).unwrap();
        prop_assert_eq!(read.message, without_losses(message));
    }
}

#[test]
fn no_bytes_make_the_door_panic() {
    let samples = ["request-send", "request-send-parts", "request-get"].map(golden);
    let mut dice = Dice::new(0x5e1e_c700_15ee_d001);
    for _ in 0..10_000 {
        let sample = &samples[dice.roll(samples.len())];
        let answered = answer(&mutate(&mut dice, sample));
        assert!(answered == "sent" || serde_json::from_str::<serde_json::Value>(&answered).is_ok(), "{answered}");
    }
}

//! What is said to weigh less than a limit does, spelled out.

use super::weight::outweighs;
use super::{Artifact, Json, Message, Part, Role};
use crate::dialect::v1_0;

fn samples() -> Vec<Part> {
    vec![
        Part::text("plain"),
        Part::text("\0\u{1}\u{1f}\u{7f}\n\r\t\"\\ 漢字 🦀").with_filename("\u{2}\".txt"),
        Part::raw(vec![0; 1000]).with_media_type("image/png"),
        Part::raw(vec![0; 1]),
        Part::url("https://example.com/\"x\""),
        Part::json(Json::from_trusted("{\"a\":[1,2,3]}")).with_metadata(Json::from_trusted("{\"b\":null}")),
    ]
}

#[test]
fn nothing_is_longer_in_a_reply_than_it_weighs() {
    for part in samples() {
        let message = Message::new(Role::Agent, "m", vec![part.clone()]);
        let mut encoded = Vec::new();
        v1_0::encode_message(&message, &mut encoded);
        assert!(encoded.len() as u64 <= message.weight(), "{part:?}: {} of {}", encoded.len(), message.weight());
        let artifact = Artifact::new("a", vec![part.clone()]);
        assert!(artifact.weight() >= part.weight());
    }
}

#[test]
fn what_cannot_outweigh_is_not_counted_and_what_does_is_found() {
    let parts = samples();
    let total = parts.iter().map(Part::weight).sum();
    assert!(outweighs(&parts, total - 1));
    assert!(!outweighs(&parts, total));
    assert!(!outweighs(&[], 0));
}

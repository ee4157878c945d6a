//! What is said to weigh less than a limit does, spelled out.

use super::weight::{Measure, WEIGHT_PER_BYTE_MAX, outweighs};
use super::{Artifact, Json, Message, Part, Role};
use crate::dialect::v1_0;

fn samples() -> Vec<Part> {
    let numbers = format!("[{}]", ["0"; 1000].join(","));
    let members = format!("{{{}}}", (0..1000).map(|n| format!("\"k{n}\":{n}")).collect::<Vec<_>>().join(","));
    let nested = format!("{}{}", "[".repeat(60), "]".repeat(60));
    let mut samples = vec![
        Part::text("plain"),
        Part::text("\0\u{1}\u{1f}\u{7f}\n\r\t\"\\ 漢字 🦀 \u{85}\u{2028}\u{2029}").with_filename("\u{2}\".txt"),
        Part::raw(vec![0; 1000]).with_media_type("image/png"),
        Part::raw(vec![0; 1]),
        Part::url("https://example.com/\"x\""),
        Part::json(Json::from_trusted("{\"a\":[1,2,3]}")).with_metadata(Json::from_trusted("{\"b\":null}")),
    ];
    for json in [numbers, members, nested, "[{},{},[],\"\",true,null]".to_owned()] {
        samples.push(Part::json(Json::from_trusted(json)));
    }
    samples
}

#[test]
fn nothing_is_longer_in_a_reply_than_it_weighs() {
    for part in samples() {
        let message = Message::new(Role::Agent, "m", vec![part.clone()]);
        let mut encoded = Vec::new();
        v1_0::encode_message(&message, &mut encoded);
        assert!(encoded.len() as u64 <= message.weight(), "{part:?}: {} of {}", encoded.len(), message.weight());
        #[cfg(feature = "protobuf")]
        {
            let mut encoded = Vec::new();
            v1_0::proto::write_update(&super::Update::Message(message.clone().into()), &mut encoded);
            assert!(encoded.len() as u64 <= message.weight(), "{part:?}: {} of {}", encoded.len(), message.weight());
        }
        let artifact = Artifact::new("a", vec![part.clone()]);
        assert!(artifact.weight() >= part.weight());
        let about = Measure::ABOUT;
        assert!(part.weight() <= WEIGHT_PER_BYTE_MAX * about.part(&part), "{part:?}");
        assert!(message.weight() <= WEIGHT_PER_BYTE_MAX * about.message(&message), "{part:?}");
        assert!(artifact.weight() <= WEIGHT_PER_BYTE_MAX * about.artifact(&artifact), "{part:?}");
    }
}

#[test]
fn what_cannot_outweigh_is_not_counted_and_what_does_is_found() {
    let parts = [Part::text("plain \0"), Part::raw(vec![0; 1000]), Part::url("https://example.com/\"x\"")];
    let total = parts.iter().map(Part::weight).sum();
    assert!(outweighs(&parts, total - 1));
    assert!(!outweighs(&parts, total));
    assert!(!outweighs(&[], 0));
    let numbers = Part::json(Json::from_trusted(format!("[{}]", ["0"; 1000].join(","))));
    assert!(!outweighs(&[numbers], 2_100), "an agent's write is counted in JSON");
}

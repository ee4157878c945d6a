//! Bytes and the chunks they become.

use switchboard_core::model::Part;

use super::{Chunks, bytes};

/// The chunks of an output that is taken after each piece, and the last one.
fn chunks_of(pieces: &[&[u8]]) -> (Vec<Part>, Option<Part>) {
    let mut chunks = Chunks::default();
    let mut taken = Vec::new();
    for piece in pieces {
        chunks.held.extend_from_slice(piece);
        taken.extend(chunks.take());
    }
    (taken, chunks.take_all())
}

#[test]
fn text_is_never_cut_inside_a_character() {
    // The euro sign is E2 82 AC.
    let (taken, last) = chunks_of(&[b"5 \xe2", b"\x82", b"\xac!"]);
    assert_eq!(taken, [Part::text("5 "), Part::text("€!")]);
    assert_eq!(last, None);
}

#[test]
fn what_is_not_text_is_sent_as_bytes_and_so_is_the_rest() {
    let (taken, last) = chunks_of(&[b"text", b"\xff\xd8picture", b"looks like text"]);
    assert_eq!(taken, [Part::text("text"), bytes(b"\xff\xd8picture".to_vec()), bytes(b"looks like text".to_vec())]);
    assert_eq!(last, None);
}

#[test]
fn a_character_that_never_ends_is_bytes() {
    let (taken, last) = chunks_of(&[b"ok \xe2\x82"]);
    assert_eq!(taken, [Part::text("ok ")]);
    assert_eq!(last, Some(bytes(b"\xe2\x82".to_vec())));
}

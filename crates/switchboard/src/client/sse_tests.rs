//! The event stream, cut at every byte.

use super::{SseEvent, SseParser, TooLarge};

/// Everything that is read of a text which comes in pieces of this length.
fn read(text: &str, piece: usize) -> Vec<SseEvent> {
    let mut parser = SseParser::new(1_000);
    let mut events = Vec::new();
    for mut bytes in text.as_bytes().chunks(piece) {
        while !bytes.is_empty() {
            let (taken, event) = parser.take(bytes).unwrap();
            events.extend(event);
            bytes = &bytes[taken..];
        }
    }
    events
}

fn event(id: Option<&str>, kind: &str, data: &str) -> SseEvent {
    SseEvent { id: id.map(str::to_owned), kind: kind.to_owned(), data: data.to_owned() }
}

#[test]
fn every_line_end_and_every_cut_gives_the_same_events() {
    let lines =
        "\u{feff}: hello\nid: 1\nevent: note\ndata: {\"a\":\ndata:  1}\n\n:\n\ndata\n\nretry: 5\nid: 2\ndata:ü\n\n";
    let expected = [event(Some("1"), "note", "{\"a\":\n 1}"), event(Some("1"), "", ""), event(Some("2"), "", "ü")];
    for end in ["\n", "\r", "\r\n"] {
        let text = lines.replace('\n', end);
        for piece in 1..=text.len() {
            assert_eq!(read(&text, piece), expected, "{end:?} in pieces of {piece}");
        }
    }
}

#[test]
fn what_has_no_data_is_no_event_and_the_rest_is_not_lost() {
    assert_eq!(read("id: 7\n\nevent: x\n\ndata: a\n\n", 3), [event(Some("7"), "", "a")]);
    // An event that is not ended is not one: the connection broke in the middle of it.
    assert_eq!(read("data: a\n\ndata: b\n", 5), [event(None, "", "a")]);
}

#[test]
fn an_endless_line_and_an_endless_event_are_refused() {
    let mut parser = SseParser::new(1_000);
    assert_eq!(parser.take(&[b'a'; 999]), Ok((999, None)));
    assert_eq!(parser.take(b"aa"), Err(TooLarge));
    let mut parser = SseParser::new(1_000);
    let refused = (0..1_000).find_map(|_| parser.take(b"data: 0123456789\n").err());
    assert_eq!(refused, Some(TooLarge));
    // Comments are not kept, so there may be any number of them.
    let mut parser = SseParser::new(1_000);
    for _ in 0..1_000 {
        assert_eq!(parser.take(b": keep-alive\n\n"), Ok((14, None)));
    }
}

/// Whatever comes, and however it is cut, the same events are read, and no more is held than is allowed.
#[test]
fn fuzz_event_streams() {
    let corpus = switchboard_fuzz::texts(&[
        "\u{feff}: hello\nid: 1\nevent: note\ndata: {\"a\":\ndata:  1}\n\n:\n\ndata\n\nretry: 5\nid: 2\ndata:ü\n\n",
        "data: a\r\n\r\ndata: b\r\rid\u{0}: 7\rdata: c\n\n",
    ]);
    switchboard_fuzz::run("event streams", &corpus, |input| {
        let read = |piece: usize| {
            let (mut parser, mut events) = (SseParser::new(1_000), Vec::new());
            for mut bytes in input.chunks(piece) {
                while !bytes.is_empty() {
                    match parser.take(bytes) {
                        Ok((taken, event)) => {
                            assert!(taken > 0 && taken <= bytes.len());
                            events.extend(event);
                            bytes = &bytes[taken..];
                        }
                        Err(TooLarge) => return (events, true),
                    }
                }
                // A byte that is not UTF-8 becomes a character of three.
                assert!(parser.line.len() + parser.data.as_ref().map_or(0, String::len) <= 3 * 1_000 + piece);
            }
            (events, false)
        };
        let whole = read(input.len().max(1));
        for piece in [1, 7] {
            assert_eq!(read(piece), whole, "in pieces of {piece}");
        }
    });
}

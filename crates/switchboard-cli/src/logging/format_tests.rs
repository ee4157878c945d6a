//! The lines themselves.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_core::model::Timestamp;
use tracing_subscriber::layer::SubscriberExt as _;

use super::{LineForm, LogLines};

/// What is logged in this form, each line with whether it is urgent.
fn lines(form: LineForm, log: impl FnOnce()) -> Vec<(String, bool)> {
    let written = Arc::new(Mutex::new(Vec::new()));
    let taken = written.clone();
    let take = move |line: &[u8], is_urgent| {
        taken.lock().unwrap().push((String::from_utf8(line.to_vec()).unwrap(), is_urgent));
    };
    let subscriber = tracing_subscriber::registry().with(LogLines::new(form, take));
    tracing::subscriber::with_default(subscriber, log);
    written.lock().unwrap().clone()
}

fn text(colours: bool, log: impl FnOnce()) -> String {
    lines(LineForm::Text { colours }, log).into_iter().map(|(line, _)| line).collect()
}

/// The lines as they are read again, without their times.
fn objects(log: impl FnOnce()) -> Vec<Value> {
    let without_time = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let time = line.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(Timestamp::parse_rfc3339(time.as_str().unwrap()).is_some(), "{time}");
        line
    };
    lines(LineForm::Json, log).iter().map(|(line, _)| without_time(line)).collect()
}

/// A line of every kind of value.
fn every_kind() {
    let (none, some) = (None::<u64>, Some(7_u64));
    tracing::warn!(
        whole = 12_u64, below = -3_i64, yes = true, part = 0.5, text = "with \"quotes\"", shown = %"as it is",
        debug = ?["a"], none, some, r#type = "word", "the message"
    );
}

#[test]
fn a_line_of_text_has_time_level_message_and_fields() {
    let line = text(false, every_kind);
    let (time, rest) = line.split_once(' ').unwrap();
    assert!(Timestamp::parse_rfc3339(time).is_some(), "{time}");
    assert_eq!(
        rest,
        " WARN the message whole=12 below=-3 yes=true part=0.5 text=\"with \\\"quotes\\\"\" shown=as it is debug=[\"a\"] \
         some=7 type=\"word\""
    );
}

#[test]
fn a_line_of_json_keeps_the_kinds_of_its_values() {
    let expected = json!({
        "level": "WARN", "message": "the message", "whole": 12, "below": -3, "yes": true, "part": 0.5,
        "text": "with \"quotes\"", "shown": "as it is", "debug": "[\"a\"]", "some": 7, "type": "word"
    });
    assert_eq!(objects(every_kind), [expected]);
}

#[test]
fn a_value_cannot_begin_a_line_or_tell_a_terminal_what_to_do() {
    let evil = "a\n2026-01-01T00:00:00.000Z ERROR not ours \u{1b}[31mred \u{9b}31m \r\u{7f} über";
    let log = || tracing::info!(quoted = evil, bare = %evil, "{evil}");
    let line = text(false, log);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(!line.chars().any(char::is_control), "{line:?}");
    assert!(line.contains("über"), "{line}");
    assert_eq!(objects(log)[0]["bare"], evil);
}

#[test]
fn the_words_of_a_line_may_be_a_field() {
    let log = || tracing::info!(message = "task ended", task = "t-1");
    assert!(text(false, log).ends_with("  INFO task ended task=\"t-1\""));
    assert_eq!(objects(log), [json!({"level": "INFO", "task": "t-1", "message": "task ended"})]);
    let evil = || tracing::info!(message = "said \"no\"\nand left");
    assert!(text(false, evil).ends_with("  INFO said \"no\"\\nand left"));
}

#[test]
fn a_line_says_during_which_request_it_was_written() {
    let log = || {
        let request = tracing::info_span!("request", id = "my-own-9");
        let _entered = request.enter();
        let _inner = tracing::info_span!("inner").entered();
        tracing::info!("hello");
    };
    let line = text(false, log);
    assert!(line.ends_with("  INFO request{id=\"my-own-9\"}: inner: hello"), "{line}");
    let spans = json!([{"name": "request", "id": "my-own-9"}, {"name": "inner"}]);
    assert_eq!(objects(log), [json!({"level": "INFO", "message": "hello", "spans": spans})]);
}

#[test]
fn a_span_may_learn_more_of_itself() {
    let log = || {
        let request = tracing::info_span!("request", id = 9, status = tracing::field::Empty, who = "a");
        request.record("status", 200);
        request.in_scope(|| tracing::info!("done"));
    };
    let line = text(false, log);
    assert!(line.ends_with(" INFO request{id=9 who=\"a\" status=200}: done"), "{line}");
    let span = json!({"name": "request", "id": 9, "who": "a", "status": 200});
    assert_eq!(objects(log), [json!({"level": "INFO", "message": "done", "spans": [span]})]);
}

#[test]
fn warnings_and_errors_are_urgent() {
    let log = || {
        tracing::error!("a");
        tracing::warn!("b");
        tracing::info!("c");
        tracing::debug!("d");
    };
    for form in [LineForm::Text { colours: true }, LineForm::Json] {
        let urgent: Vec<bool> = lines(form, log).into_iter().map(|(_, is_urgent)| is_urgent).collect();
        assert_eq!(urgent, [true, true, false, false]);
    }
}

#[test]
fn a_terminal_gets_colours_and_a_file_none() {
    assert!(text(true, every_kind).contains("\u{1b}["));
    assert!(!text(false, every_kind).contains("\u{1b}"));
}

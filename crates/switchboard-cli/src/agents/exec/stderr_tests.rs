//! What is kept of standard error.

use super::{BYTES_MAX, LINES_MAX, Tail};

fn tail_of(pieces: &[&str]) -> String {
    let mut tail = Tail::default();
    for piece in pieces {
        tail.push(piece.as_bytes());
    }
    tail.text()
}

#[test]
fn little_is_kept_whole() {
    assert_eq!(tail_of(&[]), "");
    assert_eq!(tail_of(&["\n"]), "");
    assert_eq!(tail_of(&["one\ntw", "o\n"]), "one\ntwo");
}

#[test]
fn of_many_lines_the_last_are_kept() {
    let all: Vec<String> = (1..=50).map(|number| format!("line {number}\n")).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let kept = tail_of(&all);
    assert_eq!(kept.lines().count(), LINES_MAX);
    assert!(kept.starts_with("line 31\n") && kept.ends_with("line 50"), "{kept}");
}

#[test]
fn of_long_lines_whole_ones_are_kept() {
    let long = format!("{}\n", "x".repeat(3_000));
    let kept = tail_of(&["first\n", &long, &long, "last\n"]);
    assert_eq!(kept, format!("{long}last"));
}

#[test]
fn of_one_endless_line_the_end_is_kept() {
    let mut tail = Tail::default();
    for _ in 0..1_000 {
        tail.push("0123456789".repeat(50).as_bytes());
    }
    assert_eq!(tail.bytes.len(), BYTES_MAX);
    assert_eq!(tail.text().len(), BYTES_MAX);
}

#[test]
fn what_is_not_text_is_shown_as_well_as_possible() {
    let mut tail = Tail::default();
    tail.push(b"bad \xff byte");
    assert_eq!(tail.text(), "bad \u{fffd} byte");
}

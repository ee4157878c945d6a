//! Secrets that are replaced, and what stays good.

use switchboard_core::model::Timestamp;

use super::{OrgSecrets, PREVIOUS_SECRETS_MAX};
use crate::reloaded::ListOfLines;

const FIRST: &str = "a-first-secret-of-acme";

fn parse(text: &str) -> OrgSecrets {
    OrgSecrets::parse(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn known(secrets: &OrgSecrets, now: Timestamp) -> Vec<String> {
    let known = secrets.known("acme.example", now).unwrap();
    std::iter::once(known.newest).chain(known.previous).map(|text| text.to_string()).collect()
}

#[test]
fn the_one_before_stays_good_for_an_hour_and_other_lines_stay_as_they_are() {
    let now = Timestamp::from_ms(1_700_000_000_000);
    let text = format!("# ours\nACME.example {FIRST}\nglobex.example another-secret-here  \n");
    let replaced = parse(&text).replaced(&text, "acme.example", "a-second-secret-of-acme", now);
    assert_eq!(
        replaced,
        format!(
            "# ours\nacme.example a-second-secret-of-acme {FIRST} 2023-11-14T23:13:20.000Z\nglobex.example another-secret-here  \n"
        )
    );
    let after = parse(&replaced);
    assert_eq!(known(&after, now), ["a-second-secret-of-acme", FIRST]);
    assert_eq!(known(&after, now.plus_ms(3_600_000)), ["a-second-secret-of-acme"]);
    assert_eq!(after.domains(), ["acme.example", "globex.example"]);
}

#[test]
fn a_secret_that_comes_back_is_no_previous_one_and_only_so_many_are_kept() {
    let now = Timestamp::from_ms(0);
    let mut text = format!("acme.example {FIRST}\n");
    for number in 0..9 {
        text = parse(&text).replaced(&text, "acme.example", &format!("a-secret-with-number-{number}"), now);
    }
    assert_eq!(known(&parse(&text), now).len(), 1 + PREVIOUS_SECRETS_MAX);
    assert_eq!(known(&parse(&text), now)[..2], ["a-secret-with-number-8", "a-secret-with-number-7"]);
    text = parse(&text).replaced(&text, "acme.example", "a-secret-with-number-7", now);
    let good = known(&parse(&text), now);
    assert_eq!(good[..2], ["a-secret-with-number-7", "a-secret-with-number-8"]);
    assert_eq!(good.iter().filter(|secret| *secret == "a-secret-with-number-7").count(), 1);
    let new = parse(&text).replaced(&text, "new.example", "a-secret-of-a-new-one", now);
    assert!(new.ends_with("\nnew.example a-secret-of-a-new-one\n"), "{new}");
}

#[test]
fn a_wrong_line_is_named() {
    for (text, expected) in [
        ("acme.example", "line 1: expected DOMAIN SECRET"),
        ("acme.example one two", "line 1: expected DOMAIN SECRET"),
        (
            "\nacme.example one two three",
            "line 2: expected DOMAIN SECRET, or behind them an earlier secret and the time at which it ends",
        ),
    ] {
        assert_eq!(OrgSecrets::parse(text).err().map(|error| error.to_string()).as_deref(), Some(expected), "{text}");
    }
}

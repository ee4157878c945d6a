//! What the verdict says of runs that saw faults, or too little.

use std::time::Duration;

use super::super::faults::{Faults, Kind};
use super::super::killer::Deeds;
use super::super::performance::{Performance, Plot};
use super::{Counts, Verdict};

/// Just enough for five minutes.
fn enough() -> Performance {
    Performance {
        asked: Duration::from_secs(300),
        length: Duration::from_millis(300_400),
        counts: Counts {
            kills: 60,
            acknowledged: 50_000,
            resumed: 100,
            webhooks_repeated: 100,
            kills_felt: 20,
            ..Counts::default()
        },
        deeds: Deeds { freezes: 7, long_freezes: 2, stops: 3, misdeeds: Vec::new() },
        requests: 70_000,
        ..Performance::default()
    }
}

fn verdict<'a>(seen: &'a Performance, faults: &'a Faults) -> Verdict<'a> {
    Verdict { seed: 42, seen, faults }
}

#[test]
fn the_line_has_these_keys_in_this_order() {
    let (seen, mut faults) = (enough(), Faults::default());
    faults.add(Kind::OutOfOrder, 2, || "two of them".to_owned());
    let line = verdict(&seen, &faults).json();
    let expected = "{\"seed\":42,\"seconds\":300,\"kills\":60,\"freezes\":7,\"requests\":70000,\
                    \"acknowledged_events\":50000,\"lost\":0,\"duplicated\":0,\"out_of_order\":2,\"two_terminals\":0,\
                    \"stuck\":0,\"webhooks_lost\":0,\"wrong_content\":0,\"orphans\":0,\"verdict\":\"fail\"}";
    assert_eq!(line, expected);
}

#[test]
fn a_run_with_relays_says_what_was_done_behind_the_gateway() {
    let (mut seen, faults) = (enough(), Faults::default());
    seen.plot = Plot::Relay;
    assert_eq!(verdict(&seen, &faults).word(), "not enough");
    (seen.counts.upstream_kills, seen.counts.cuts) = (60, 60);
    (seen.behind.deeds.freezes, seen.behind.left_over) = (5, 1);
    let verdict = verdict(&seen, &faults);
    assert_eq!(verdict.word(), "pass");
    let behind = "\"freezes\":7,\"upstream_kills\":60,\"upstream_freezes\":5,\"cuts\":60,\"left_over\":1,\"requests\":";
    assert!(verdict.json().contains(behind), "{}", verdict.json());
    assert!(verdict.text().contains("The upstream was killed 60 times"), "{}", verdict.text());
}

#[test]
fn enough_without_faults_is_a_pass() {
    let (seen, faults) = (enough(), Faults::default());
    assert_eq!(verdict(&seen, &faults).word(), "pass");
}

#[test]
fn a_single_fault_of_any_kind_is_none() {
    for kind in Kind::ALL {
        let (seen, mut faults) = (enough(), Faults::default());
        faults.add(kind, 1, String::new);
        assert!(!verdict(&seen, &faults).is_good(), "{kind:?}");
    }
}

#[test]
fn too_little_of_anything_proves_nothing() {
    let spoils: [fn(&mut Counts); 5] = [
        |seen| seen.kills -= 1,
        |seen| seen.acknowledged -= 1,
        |seen| seen.resumed -= 1,
        |seen| seen.webhooks_repeated -= 1,
        |seen| seen.kills_felt -= 1,
    ];
    for (number, spoil) in spoils.into_iter().enumerate() {
        let (mut seen, faults) = (enough(), Faults::default());
        spoil(&mut seen.counts);
        let verdict = verdict(&seen, &faults);
        assert_eq!(verdict.word(), "not enough", "{number}");
        assert_eq!(verdict.shortfalls().len(), 1, "{:?}", verdict.shortfalls());
    }
}

#[test]
fn shorter_runs_need_less_in_proportion() {
    let (mut seen, faults) = (enough(), Faults::default());
    seen.counts =
        Counts { kills: 2, acknowledged: 2_000, resumed: 4, webhooks_repeated: 4, kills_felt: 1, ..Counts::default() };
    seen.asked = Duration::from_secs(12);
    assert_eq!(verdict(&seen, &faults).word(), "pass");
    seen.asked = Duration::from_secs(24);
    let shortfalls = verdict(&seen, &faults).shortfalls();
    assert_eq!(shortfalls.len(), 4, "{shortfalls:?}");
}

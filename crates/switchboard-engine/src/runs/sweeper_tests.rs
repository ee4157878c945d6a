//! When the sweeper does what.

use std::time::Duration;

use tokio::time::{Instant, advance};

use super::{SWEEPS_AWAY, Sweeps, most_of, some_of};

const PAUSE: Duration = Duration::from_secs(4);

#[test]
fn pauses_are_drawn_and_none_is_longer_than_a_sweep() {
    let drawn = [0, u64::MAX / 2, u64::MAX].map(|any| most_of(PAUSE, any).as_millis());
    assert_eq!(drawn, [4_000, 3_500, 3_000]);
    assert_eq!([0, u64::MAX].map(|any| some_of(PAUSE, any)), [Duration::ZERO, PAUSE]);
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_in_every_sweep_but_not_while_sweeps_follow_each_other() {
    let mut sweeps = Sweeps { pause: PAUSE, renewed: None, listed: None };
    assert!(sweeps.must_renew());
    sweeps.renewed = Some(Instant::now());
    advance(Duration::from_millis(100)).await;
    assert!(!sweeps.must_renew());
    advance(most_of(PAUSE, u64::MAX)).await;
    assert!(sweeps.must_renew());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_did_not_reach_the_store_for_long_claims_nothing_at_first() {
    let mut sweeps = Sweeps { pause: PAUSE, renewed: None, listed: None };
    assert!(!sweeps.were_cut_off(), "what a dead process left is claimed at once at start");
    sweeps.listed = Some(Instant::now());
    advance(PAUSE * 2).await;
    assert!(!sweeps.were_cut_off());
    advance(PAUSE * (SWEEPS_AWAY - 2)).await;
    assert!(sweeps.were_cut_off());
}

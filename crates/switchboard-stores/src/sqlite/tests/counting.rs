//! How the tasks of a file are counted when it is opened.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::model::TaskState;
use switchboard_engine::contract::given::RecordWriter;
use tokio::time::Instant;

use super::super::census::Census;
use super::super::totals::{CountChange, Totals, place_of};
use super::make;
use crate::record::state_number;

/// Waits for a running count.
fn counted(totals: &Totals) -> [u64; 8] {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match totals.all() {
            Some(counts) => return counts,
            None if Instant::now() > deadline => panic!("never counted"),
            None => std::thread::yield_now(),
        }
    }
}

#[tokio::test]
async fn a_large_file_is_counted_beside_the_writer_and_nothing_is_counted_twice() {
    let subject = make();
    RecordWriter::opened(&subject, "t1").await;
    RecordWriter::completed(&subject, "t2").await;
    let totals = Arc::new(Totals::default());
    let census = Census::begin(&subject.path(), &subject.connect(), &totals, &Arc::default(), 0);
    // This task was written after the count began, so the count must not include it.
    RecordWriter::completed(&subject, "t3").await;
    let completed = Some(state_number(TaskState::Completed));
    totals.update(&[CountChange { scope_no: 1, from: None, to: completed, records: 1 }]);
    let counts = counted(&totals);
    assert_eq!(counts.iter().sum::<u64>(), 3, "{counts:?}");
    assert_eq!(counts[place_of(TaskState::Completed)], 2);
    drop(census);
}

#[tokio::test]
async fn a_count_that_is_no_longer_wanted_ends() {
    let subject = make();
    for number in 0..50 {
        RecordWriter::opened(&subject, &format!("t{number}")).await;
    }
    let totals = Arc::new(Totals::default());
    drop(Census::begin(&subject.path(), &subject.connect(), &totals, &Arc::default(), 0));
    assert!(totals.all().is_none_or(|counts| counts.iter().sum::<u64>() == 50));
}

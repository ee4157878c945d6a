//! The sums of stored bytes that two processes keep.

use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::RecordWriter;
use switchboard_engine::ports::Upkeep;

use super::super::prune;
use super::OnSchema;

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn a_count_brings_in_what_the_other_process_stored() {
    let subject = OnSchema::shared();
    let (first, second) = (subject.first.as_ref().unwrap(), subject.second.as_ref().unwrap());
    RecordWriter::completed(&subject, "t1").await;
    let stored = subject.store().stats().stored_bytes.unwrap();
    assert!(stored > 0);
    assert_eq!(second.stats().stored_bytes, Some(0), "it has not counted since");
    prune::count(&second.shared).await.unwrap();
    assert_eq!(second.stats().stored_bytes, Some(stored));
    RecordWriter::completed(&subject, "t2").await;
    // What it has stored itself is not counted twice.
    prune::count(&first.shared).await.unwrap();
    prune::count(&second.shared).await.unwrap();
    assert_eq!(first.stats().stored_bytes, second.stats().stored_bytes);
    assert_eq!(first.stats().stored_bytes, Some(2 * stored));
}

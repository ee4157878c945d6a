//! How many processes share the schema, of which each has a part of the limits.

use switchboard_engine::contract::Subject as _;
use switchboard_engine::ports::Upkeep as _;

use super::super::thread::count_replicas;
use super::OnSchema;

#[tokio::test]
#[ignore = "starts PostgreSQL"]
async fn each_process_has_a_part_for_as_long_as_the_others_are_there() {
    let mut subject = OnSchema::shared();
    let other = OnSchema::new();
    let first = subject.first.as_ref().unwrap();
    let (share, shared) = (first.share(), first.shared.clone());
    assert_eq!(subject.second.as_ref().unwrap().share().of(10), 5, "it counts when it is opened");
    assert_eq!(share.of(10), 10, "the first has not looked since");
    count_replicas(&shared).await.unwrap();
    assert_eq!((share.of(10), share.processes()), (5, 2), "another schema is not counted");
    let third = subject.open("third");
    count_replicas(&shared).await.unwrap();
    assert_eq!(share.processes(), 3);
    drop(third);
    subject.second = None;
    // PostgreSQL notices soon that the connections are gone.
    for _ in 0..1_000 {
        count_replicas(&shared).await.unwrap();
        if share.processes() == 1 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(share.of(10), 10);
    drop(other);
    assert!(subject.store().probe().await.is_ok());
}

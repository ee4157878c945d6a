//! Limits of one caller are for all servers together: each admits its part, and more when another has gone.

use serde_json::json;

use super::super::http::{Events, stream_if_admitted};
use super::super::process::{Server, eventually};
use super::{Cluster, begin};

const STREAMS_MAX: usize = 6;

/// Opens streams of a task at a server until one is refused.
fn fill(server: &Server, id: &str, open: &mut Vec<Events>) {
    while let Some(mut stream) = stream_if_admitted(server.addr, "SubscribeToTask", &json!({"id": id})) {
        // It is open when its first event is there.
        stream.next().expect("it begins with the task");
        open.push(stream);
        assert!(open.len() <= STREAMS_MAX, "more than the limit");
    }
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_caller_has_a_part_of_its_streams_at_each_server() {
    let cluster = Cluster::new();
    cluster.configure(&format!(
        "lease_s = 1\nstreams_per_caller_max = {STREAMS_MAX}\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\""
    ));
    let [first, second, third] = cluster.start(["first", "second", "third"]);
    let id = begin(&first, "m-1", "slow 600");
    for server in [&first, &second, &third] {
        // It may have been there before the others, and learns of them.
        eventually("the server has a third", || {
            let mut open = Vec::new();
            fill(server, &id, &mut open);
            (open.len() == STREAMS_MAX / 3).then_some(())
        });
    }
    let (mut at_first, mut at_second) = (Vec::new(), Vec::new());
    third.terminate();
    eventually("each of the others has a half", || {
        fill(&first, &id, &mut at_first);
        fill(&second, &id, &mut at_second);
        (at_first.len() + at_second.len() == STREAMS_MAX).then_some(())
    });
    assert_eq!((at_first.len(), at_second.len()), (STREAMS_MAX / 2, STREAMS_MAX / 2));
}

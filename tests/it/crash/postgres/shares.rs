//! Limits of one caller are for all servers together: each admits its part, and more when another has gone.

use serde_json::json;

use super::super::http::{Events, metric, stream_if_admitted};
use super::super::process::{Server, eventually};
use super::{Cluster, begin};

const STREAMS_MAX: usize = 6;

/// Waits until a server knows how many share the database.
fn wait_until_counted(server: &Server, servers: u64) {
    eventually("the servers are counted", || {
        (metric(server.addr, "switchboard_store_processes") == Some(servers)).then_some(())
    });
}

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
    cluster
        .configure(&format!("streams_per_caller_max = {STREAMS_MAX}\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\""));
    let [first] = cluster.start(["first"]);
    let [second, third] = cluster.start(["second", "third"]);
    let id = begin(&first, "m-1", "slow 600");
    for server in [&first, &second, &third] {
        wait_until_counted(server, 3);
        let mut open = Vec::new();
        fill(server, &id, &mut open);
        assert_eq!(open.len(), STREAMS_MAX / 3);
    }
    third.terminate();
    let (mut at_first, mut at_second) = (Vec::new(), Vec::new());
    for (server, open) in [(&first, &mut at_first), (&second, &mut at_second)] {
        wait_until_counted(server, 2);
        // The streams from before may not have ended yet.
        eventually("each of the others has a half", || {
            fill(server, &id, open);
            (open.len() >= STREAMS_MAX / 2).then_some(())
        });
    }
    assert_eq!((at_first.len(), at_second.len()), (STREAMS_MAX / 2, STREAMS_MAX / 2));
}

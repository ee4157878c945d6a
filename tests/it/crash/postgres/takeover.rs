//! Runs of a server that is gone: another takes them over, and followers lose nothing.

use serde_json::json;

use super::super::http::{call, stream};
use super::super::process::{Server, eventually};
use super::{Cluster, begin, check_followed, follow, get};

/// Lets a server run some tasks, ends it, and sees them through at the others.
fn see_through(cluster: &Cluster<'_>, end: impl FnOnce(Server)) {
    let [first, second, third] = cluster.start(["first", "second", "third"]);
    let ids: Vec<String> = (0..4).map(|number| begin(&first, &format!("m-{number}"), "stream 40")).collect();
    let followers: Vec<_> = ids
        .iter()
        .enumerate()
        .map(|(number, id)| follow(if number % 2 == 0 { &second } else { &third }, id, 0))
        .collect();
    let mut followed: Vec<(Vec<_>, _)> =
        followers.into_iter().map(|mut events| (events.by_ref().take(6).collect(), events)).collect();
    end(first);
    for (id, (seen, rest)) in ids.iter().zip(&mut followed) {
        seen.extend(rest.by_ref());
        let task = get(&third, id);
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        check_followed(seen, &task);
    }
}

#[test]
#[ignore = "starts PostgreSQL"]
fn runs_of_a_killed_server_are_taken_over_when_their_leases_run_out() {
    see_through(&Cluster::new(), Server::kill);
}

/// The leases are longer than this test may take.
#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_that_stops_in_order_gives_its_runs_back_at_once() {
    let cluster = Cluster::new();
    cluster.configure("lease_s = 3600");
    see_through(&cluster, Server::terminate);
}

/// The lease is longer than this test may take, so only its name tells that the server before is gone.
#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_of_the_same_name_takes_over_what_its_predecessor_left() {
    let cluster = Cluster::new();
    cluster.configure("lease_s = 3600");
    let [first] = cluster.start(["the-one"]);
    let id = begin(&first, "m-1", "stream 40");
    let mut seen: Vec<_> = follow(&first, &id, 0).take(5).collect();
    first.kill();
    let [again] = cluster.start(["the-one"]);
    seen.extend(follow(&again, &id, 5));
    check_followed(&seen, &get(&again, &id));
}

/// A command is started again by the server that takes its run over, and its first process is not seen to the end.
#[test]
#[ignore = "starts PostgreSQL"]
fn a_command_of_a_killed_server_is_begun_again_elsewhere() {
    let cluster = Cluster::new();
    let agent = "\n[[agent]]\nname = \"Slow\"\nshell = true\n\
        command = 'echo \"$A2A_ATTEMPT\" >> attempts; if [ \"$A2A_ATTEMPT\" = 1 ]; then sleep 600; fi; echo done'\n";
    cluster.configure(&format!("lease_s = 1\n{agent}"));
    let [first, second] = cluster.start(["first", "second"]);
    let id = begin(&first, "m-1", "go");
    let attempts = || std::fs::read_to_string(cluster.folder.path().join("attempts")).unwrap_or_default();
    eventually("the command runs", || (attempts() == "1\n").then_some(()));
    first.kill();
    let ended = stream(second.addr, "SubscribeToTask", json!({"id": id}), Some(0)).last().unwrap();
    assert_eq!(ended.result["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{}", ended.result);
    assert_eq!(attempts(), "1\n2\n");
    let listed = call(second.addr, "ListTasks", json!({})).unwrap();
    assert_eq!(listed["totalSize"], 1, "{listed}");
}

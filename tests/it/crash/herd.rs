//! Many at once: one message over many connections, and many streams that break together.

use std::collections::BTreeSet;

use serde_json::json;

use super::http::{ask, call, message, stream};
use super::process::{Server, free_addr, verify};

#[test]
fn the_same_message_over_32_connections_is_one_task_before_and_after_a_kill() {
    const CONNECTIONS: usize = 32;
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let send_all = || -> BTreeSet<String> {
        std::thread::scope(|threads| {
            let sends: Vec<_> = (0..CONNECTIONS)
                .map(|_| {
                    threads.spawn(move || {
                        let key = [("Idempotency-Key", "order-66")];
                        let sent = ask(addr, "SendMessage", &message("m-1", "only once"), &key);
                        sent.expect("the server is up").expect("it is taken")["task"]["id"].as_str().unwrap().to_owned()
                    })
                })
                .collect();
            sends.into_iter().map(|send| send.join().unwrap()).collect()
        })
    };
    let server = Server::start(&data, addr);
    let first = send_all();
    assert_eq!(first.len(), 1);
    server.kill();
    let server = Server::start(&data, addr);
    assert_eq!(send_all(), first);
    assert_eq!(call(addr, "ListTasks", json!({})).unwrap()["totalSize"], 1);
    server.interrupt();
    verify(&data);
}

#[test]
fn streams_that_all_break_and_come_back_at_once_miss_nothing() {
    const FOLLOWERS: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let server = Server::start(&data, addr);
    let mut sent = message("m-1", "stream 20");
    sent["configuration"] = json!({"returnImmediately": true});
    let id = call(addr, "SendMessage", sent).unwrap()["task"]["id"].as_str().unwrap().to_owned();
    let follow = |after: Option<u64>| stream(addr, "SubscribeToTask", json!({"id": id}), after);
    let follow = &follow;
    let broken: Vec<Vec<u64>> = std::thread::scope(|threads| {
        let followers: Vec<_> = (0..FOLLOWERS)
            .map(|_| threads.spawn(move || follow(Some(0)).map(|event| event.id).collect::<Vec<u64>>()))
            .collect();
        // One client has seen an update, so all runs have begun or are about to.
        follow(Some(0)).nth(5).expect("the stream is under way");
        server.kill();
        followers.into_iter().map(|follower| follower.join().unwrap()).collect()
    });
    let server = Server::start(&data, addr);
    let whole: Vec<Vec<u64>> = std::thread::scope(|threads| {
        let followers: Vec<_> = broken
            .into_iter()
            .map(|mut seen| {
                threads.spawn(move || {
                    let last = seen.last().copied().unwrap_or(0);
                    seen.extend(follow(Some(last)).map(|event| event.id));
                    seen
                })
            })
            .collect();
        followers.into_iter().map(|follower| follower.join().unwrap()).collect()
    });
    let dense: Vec<u64> = (1..=whole[0].len() as u64).collect();
    assert!(whole.iter().all(|seen| *seen == dense), "{whole:?}");
    assert!(dense.len() > 20, "{dense:?}");
    server.interrupt();
    verify(&data);
}

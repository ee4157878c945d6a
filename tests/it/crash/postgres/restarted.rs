//! PostgreSQL is stopped as if its machine had failed, while clients send. What was acknowledged is there afterwards, and no message
//! has made two tasks.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use switchboard_test_servers::{Postgres, Stop};

use super::super::http::{ask, message, readiness};
use super::super::process::eventually;
use super::{Cluster, begin, check_followed, follow, get};

const CLIENTS: usize = 6;
const RESTARTS: u32 = 3;
const RESTARTS_LONG: u32 = 30;
/// With fewer messages than this between two restarts, a loss could go unseen.
const MESSAGES_MIN: usize = 50;

#[test]
#[ignore = "starts PostgreSQL"]
fn nothing_acknowledged_is_lost_or_done_twice_when_postgres_fails() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let restarts = if long { RESTARTS_LONG } else { RESTARTS };
    let postgres = Postgres::start();
    let cluster = Cluster::on(&postgres);
    let servers = cluster.start(["first", "second", "third"]);
    let addrs = [servers[0].addr, servers[1].addr, servers[2].addr];
    let followed = begin(&servers[0], "followed", "stream 100");
    let (done, numbers, ledger) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (done, numbers, ledger) = (&done, &numbers, &ledger);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let (message_id, text) = (format!("m-{number}"), format!("text {number}"));
                    // A client repeats its message, at any server, until it is answered.
                    for attempt in client.. {
                        let send = message(&message_id, &text);
                        if let Some(Ok(sent)) = ask(addrs[attempt % 3], "SendMessage", &send, &[]) {
                            let id = sent["task"]["id"].as_str().unwrap().to_owned();
                            assert_eq!(ledger.lock().unwrap().insert(id, text), None, "one task for each message");
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            });
        }
        let acknowledged = || ledger.lock().unwrap().len();
        for _ in 0..restarts {
            let before = acknowledged();
            eventually("messages are acknowledged", || (acknowledged() >= before + MESSAGES_MIN).then_some(()));
            postgres.stop(Stop::Immediate);
            postgres.resume();
        }
        let before = acknowledged();
        eventually("messages are acknowledged", || (acknowledged() >= before + MESSAGES_MIN).then_some(()));
        done.store(true, Ordering::Relaxed);
    });
    let ledger = ledger.into_inner().unwrap();
    assert_eq!(ledger.len() as u64, numbers.load(Ordering::Relaxed), "each message was acknowledged");
    for (place, (id, text)) in ledger.iter().enumerate() {
        let task = get(&servers[place % 3], id);
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], *text, "{task}");
    }
    let seen: Vec<_> = follow(&servers[1], &followed, 0).collect();
    check_followed(&seen, &get(&servers[2], &followed));
    let listed = super::call(addrs[0], "ListTasks", json!({})).unwrap();
    assert_eq!(listed["totalSize"], ledger.len() + 1, "no message has made two tasks");
    println!("{} acknowledged tasks survived {restarts} failures of PostgreSQL", ledger.len());
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_says_that_its_database_is_gone_and_that_it_is_back() {
    let postgres = Postgres::start();
    let cluster = Cluster::on(&postgres);
    let [server] = cluster.start(["first"]);
    postgres.stop(Stop::Fast);
    let said = eventually("it is not ready", || readiness(server.addr).filter(|(status, _)| *status == 503));
    assert!(said.1.contains("PostgreSQL"), "{said:?}");
    postgres.resume();
    eventually("it is ready again", || readiness(server.addr).filter(|(status, _)| *status == 200));
}

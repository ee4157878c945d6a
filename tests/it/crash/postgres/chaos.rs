//! The proof that users can run for several servers, run here: PostgreSQL is restarted as if its machine had failed, nodes of NATS are
//! killed, and the servers are killed, frozen and cut off.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use switchboard_test_servers::{NatsCluster, Postgres};

use super::Cluster;
use crate::support::limit::Limit;

const FAULTS: [&str; 8] =
    ["lost", "duplicated", "out_of_order", "two_terminals", "stuck", "webhooks_lost", "wrong_content", "orphans"];

#[test]
#[ignore = "starts PostgreSQL and NATS"]
fn chaos_finds_no_fault_in_three_servers_that_share_a_database() {
    let _limit = Limit::new();
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let length: [&str; 2] = if long { ["--minutes", "5"] } else { ["--seconds", "20"] };
    let (postgres, nats) = (Postgres::start(), NatsCluster::start());
    let cluster = Cluster::on(&postgres);
    let (restart, hints, store) = (postgres.restart_command(), nats.url(), postgres.url());
    let mut command = cluster.command(&["chaos", "--json", "--seed", "7", "--replicas", "3"]);
    command.args(length).args(["--store", &store, "--hints", &hints, "--disturb", &restart]);
    let ended = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            // One node after the other is killed and comes back.
            for node in (0..3).cycle() {
                std::thread::sleep(Duration::from_secs(2));
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                nats.nodes[node].kill();
                nats.nodes[node].resume();
            }
        });
        let output = command.stdin(Stdio::null()).output().unwrap();
        ended.store(true, Ordering::Relaxed);
        output
    });
    let (told, said) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    println!("{told}\n{said}");
    let verdict: Value = serde_json::from_str(said.trim()).expect("one line of JSON");
    for fault in FAULTS {
        assert_eq!(verdict[fault], 0, "{fault}");
    }
    assert_eq!(verdict["verdict"], "pass");
    assert!(output.status.success(), "{}", output.status);
    assert!(told.contains("takeovers of runs of killed servers took"), "they were measured");
    let schemas = postgres.sql("select count(*) from information_schema.schemata where schema_name like 'chaos%'");
    assert_eq!(schemas.trim(), "0", "it clears up");
}

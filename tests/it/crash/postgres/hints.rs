//! Hints make followers at other servers quick, over PostgreSQL or over NATS; without any, they lose nothing.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use switchboard_test_servers::{Nats, NatsCluster};

use super::{Cluster, begin, check_followed, follow, get};

/// Follows a task of one server at another while something is done again and again.
fn follow_while(cluster: &Cluster<'_>, mut disturb: impl FnMut() + Send) {
    let [first, second] = cluster.start(["first", "second"]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                disturb();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let id = begin(&first, "m-1", "stream 60");
        let seen: Vec<_> = follow(&second, &id, 0).collect();
        ended.store(true, Ordering::Relaxed);
        check_followed(&seen, &get(&second, &id));
    });
}

fn listeners(cluster: &Cluster<'_>) -> String {
    let schema = &cluster.schema;
    format!("from pg_stat_activity where pid <> pg_backend_pid() and query like '%LISTEN \"{schema}_h%'")
}

#[test]
#[ignore = "starts PostgreSQL"]
fn followers_lose_nothing_while_all_hints_are_lost() {
    let cluster = Cluster::new();
    // Closes the connections that listen, again and again. A server makes its connection again after half a second.
    let close = format!("select count(pg_terminate_backend(pid)) {}", listeners(&cluster));
    follow_while(&cluster, || drop(cluster.postgres.sql(&close)));
}

#[test]
#[ignore = "starts PostgreSQL and NATS"]
fn followers_lose_nothing_while_nats_comes_and_goes() {
    let nats = Nats::start();
    let cluster = Cluster { hints: Some(nats.url()), ..Cluster::new() };
    let mut is_there = true;
    follow_while(&cluster, || {
        if is_there {
            nats.kill();
        } else {
            nats.resume();
        }
        is_there = !is_there;
    });
}

#[test]
#[ignore = "starts PostgreSQL and NATS"]
fn followers_lose_nothing_while_nodes_of_nats_are_killed() {
    let nats = NatsCluster::start();
    let cluster = Cluster { hints: Some(nats.url()), ..Cluster::new() };
    let mut down = 0;
    nats.nodes[down].kill();
    follow_while(&cluster, || {
        nats.nodes[down].resume();
        down = (down + 1) % 3;
        nats.nodes[down].kill();
    });
}

#[test]
#[ignore = "starts PostgreSQL and NATS"]
fn hints_over_nats_are_published_and_nothing_listens_in_postgres() {
    let nats = Nats::start();
    let cluster = Cluster { hints: Some(nats.url()), ..Cluster::new() };
    let [first, second] = cluster.start(["first", "second"]);
    assert_eq!(cluster.postgres.sql(&format!("select count(*) {}", listeners(&cluster))).trim(), "0");
    let mut stream = TcpStream::connect(nats.host()).unwrap();
    let subscribe = format!("CONNECT {{\"verbose\":false}}\r\nSUB switchboard.{}.* 1\r\nPING\r\n", cluster.schema);
    stream.write_all(subscribe.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "PONG"), "it is subscribed");
    let id = begin(&first, "m-1", "stream 5");
    let seen: Vec<_> = follow(&second, &id, 0).collect();
    check_followed(&seen, &get(&second, &id));
    assert!(lines.any(|line| line.ends_with(&id)), "the server has hinted at the task");
}

//! Many followers of one task, spread over three servers, all drop and resume at once: each sees every event once, and what that costs the
//! database and the memory of the servers is bounded.
//!
//! With `SWITCHBOARD_TEST_LONG` they are 10,000; by itself a test has fewer, because it shares its machine with others. What is measured is not how many
//! events a machine can send in a second: with 10,000 followers there is one event in a second, so that they keep up on any machine.

use std::net::SocketAddr;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Cluster, begin, get};
use crate::support::limit::Limit;

const FOLLOWERS: usize = 2_000;
const FOLLOWERS_LONG: usize = 10_000;
/// What the agent is told: twenty events in a second, or one. The task is still at work when all followers resume.
const WORK: (&str, u64) = ("stream 240", 240);
const WORK_LONG: (&str, u64) = ("slow 150 count", 150);
/// After so many events all drop.
const BEFORE: u64 = 10;
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);
/// Statements that one follower may cost: to authorize, to find its task, to read what it has missed, twice.
const STATEMENTS_PER_FOLLOWER: u64 = 16;
/// Statements that an event may cost: its commit, its hint, and a read at each server, besides what servers do by themselves.
const STATEMENTS_PER_EVENT: u64 = 40;
/// Memory of one server, on top of what it has without followers, for each follower.
const BYTES_PER_FOLLOWER: u64 = 128 << 10;
const BYTES_BESIDES: u64 = 256 << 20;

#[test]
#[ignore = "starts PostgreSQL"]
fn all_followers_of_three_servers_drop_and_resume_at_once() {
    let _limit = Limit::new();
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let (followers, (work, events)) = if long { (FOLLOWERS_LONG, WORK_LONG) } else { (FOLLOWERS, WORK) };
    // A socket for each, and what the test itself needs.
    raise_file_limit(followers as u64 + 1_000);
    let postgres = switchboard_test_servers::Postgres::start();
    let cluster = Cluster::on(&postgres);
    // No run changes hands here, so that only followers cost anything. All of them are one caller, whose streams the servers share, and those that
    // drop are counted until their server notices.
    let limits = format!("lease_s = 30\nstreams_per_caller_max = {}", 6 * followers);
    cluster.configure(&format!(
        "{limits}\nstreams_max = {}\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\"",
        2 * followers
    ));
    let servers = cluster.start(["first", "second", "third"]);
    let id = begin(&servers[0], "m-1", work);
    let statements = || -> u64 {
        let sql = "select pg_stat_clear_snapshot(), xact_commit + xact_rollback from pg_stat_database where datname = 'postgres'";
        postgres.sql(sql).trim().trim_start_matches('|').parse().unwrap()
    };
    let memory = || servers.each_ref().map(|server| server.memory_kib() << 10);
    let (statements_before, memory_before) = (statements(), memory());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let addrs = servers.each_ref().map(|server| server.addr);
    runtime.block_on(async {
        let seen = all(followers, |number| follow(addrs[number % 3], id.clone(), 0, Some(BEFORE))).await;
        let at_most = memory();
        println!("resident with {followers} followers: {at_most:?} bytes, before: {memory_before:?}");
        let resumed = all(followers, |number| {
            // At another server than before.
            follow(addrs[(number + 1) % 3], id.clone(), seen[number], None)
        });
        let ended = resumed.await;
        assert!(ended.iter().all(|last| *last == ended[0]), "all have seen the last event");
    });
    let task = get(&servers[1], &id);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let spent = statements() - statements_before;
    println!("{spent} transactions for {followers} followers and {events} events");
    let allowed = followers as u64 * STATEMENTS_PER_FOLLOWER + events * STATEMENTS_PER_EVENT;
    assert!(spent <= allowed, "{spent} transactions, {allowed} at most");
    let each = BYTES_BESIDES + (followers as u64).div_ceil(3) * BYTES_PER_FOLLOWER;
    for (after, before) in memory().into_iter().zip(memory_before) {
        assert!(after <= before + each, "{after} bytes of memory, {before} before");
    }
}

/// Lets this process, and the servers that it starts, have so many files and sockets.
fn raise_file_limit(needed: u64) {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    assert!(
        maximum.is_none_or(|most| most >= needed),
        "this test needs {needed} open files (`ulimit -Hn`), and may have {maximum:?}"
    );
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .expect("the limit is raised to the most that is allowed");
}

/// Lets all followers run at once, and gives the last event that each has seen.
async fn all<F: Future<Output = u64> + Send + 'static>(count: usize, follower: impl Fn(usize) -> F) -> Vec<u64> {
    let running: Vec<_> = (0..count).map(|number| tokio::spawn(timeout(PATIENCE, follower(number)))).collect();
    let mut seen = Vec::with_capacity(count);
    for follower in running {
        let number = seen.len();
        let served = follower.await.unwrap();
        seen.push(served.unwrap_or_else(|_| panic!("follower {number} of {count} is not served within {PATIENCE:?}")));
    }
    seen
}

/// Follows a task from an event on, to its end or for so many events; each must be the next one. Gives the number of the last.
async fn follow(addr: SocketAddr, id: String, after: u64, count: Option<u64>) -> u64 {
    let mut last = after;
    let mut left = count.unwrap_or(u64::MAX);
    // A server that is busy may refuse a stream for now.
    loop {
        let mut lines = open(addr, &id, last).await;
        while let Ok(Some(line)) = lines.next_line().await {
            let Some(number) = line.strip_prefix("id: ").and_then(|number| number.trim().parse::<u64>().ok()) else {
                let has_ended =
                    ["COMPLETED", "FAILED"].iter().any(|state| line.contains(&format!("TASK_STATE_{state}")));
                if has_ended && line.starts_with("data: ") && line.contains("statusUpdate") {
                    return last;
                }
                continue;
            };
            assert_eq!(number, last + 1, "the next event");
            last = number;
            left -= 1;
            if left == 0 {
                return last;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn open(addr: SocketAddr, id: &str, after: u64) -> Lines<BufReader<TcpStream>> {
    loop {
        if let Ok(mut stream) = TcpStream::connect(addr).await {
            let request = format!(
                "GET /agents/demo/tasks/{id}:subscribe HTTP/1.1\r\nHost: {addr}\r\nA2A-Version: 1.0\r\nLast-Event-ID: {after}\r\n\r\n"
            );
            if stream.write_all(request.as_bytes()).await.is_ok() {
                return BufReader::with_capacity(4_096, stream).lines();
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

//! Servers of the build before and of this one share a database while its schema is upgraded, under load: first the schema, then one server after
//! the other, then back, and forward again. A client that retries refused connections and 503 sees no failed request.
//!
//! It needs the binary of the build before, so `xtask upgrade --before BINARY` runs it, and `scripts/test` does not.

use std::path::PathBuf;
use std::process::Output;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use switchboard_test_servers::Postgres;

use super::http::message;
use super::postgres::rolling::send;
use super::postgres::{Cluster, begin, check_followed, follow, get};
use super::process::{Server, binary, eventually, free_addr};
use crate::support::limit::Limit;

const CLIENTS: usize = 6;
/// So many answers are waited for after each step.
const ANSWERS_BETWEEN: u64 = 40;
const GRACE_S: &str = "3";

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[test]
#[ignore = "needs the binary of the build before: xtask upgrade --before BINARY"]
fn servers_of_the_build_before_go_on_while_the_schema_is_upgraded() {
    let _limit = Limit::new();
    let before = PathBuf::from(std::env::var_os("SWITCHBOARD_BEFORE").expect("SWITCHBOARD_BEFORE names a binary"));
    let builds = [before, binary()];
    let database = Postgres::start();
    let cluster = Cluster::on(&database);
    cluster.configure("lease_s = 10\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\"\nidempotency = \"message-id\"");
    let addrs = [free_addr(), free_addr(), free_addr()];
    let start = |place: usize, build: usize| {
        let (addr, name) = (addrs[place].to_string(), ["first", "second", "third"][place]);
        let arguments = ["serve", "--listen", &addr, "--replica", name, "--grace", GRACE_S];
        let server = Server::start_unready(cluster.command_of(&builds[build], &arguments), addrs[place]);
        server.wait_until_ready();
        server
    };
    let db =
        |build: usize, command: &str| said(&cluster.command_of(&builds[build], &["db", command]).output().unwrap());
    let mut servers = [0, 1, 2].map(|place| Some(start(place, 0)));
    println!("build before: {}", db(0, "status").trim());
    println!("this build:   {}", db(1, "status").trim());
    assert!(db(1, "status").contains("brings it up to date"), "this build has another schema than the one before");
    let long = begin(servers[0].as_ref().unwrap(), "long", "stream 600");
    let (done, numbers, failed) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    let answered = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (addrs, done, numbers, failed, answered) = (&addrs, &done, &numbers, &failed, &answered);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let text =
                        if number % 3 == 0 { format!("stream {}", 5 + number % 20) } else { format!("text {number}") };
                    match send(addrs, client, &message(&format!("m-{number}"), &text)) {
                        Ok(id) => answered.lock().unwrap().push(id),
                        Err(why) => failed.lock().unwrap().push(why),
                    }
                }
            });
        }
        let count = || answered.lock().unwrap().len() as u64;
        let go_on = |what: &str| {
            let before = count();
            eventually("requests are answered", || {
                (count() >= before + ANSWERS_BETWEEN || !failed.lock().unwrap().is_empty()).then_some(())
            });
            println!("{what}: {} answered so far, {} failed", count(), failed.lock().unwrap().len());
        };
        go_on("three servers of the build before");
        println!("db migrate of this build: {}", db(1, "migrate").trim());
        go_on("the same servers on the new schema");
        println!("build before: {}", db(0, "status").trim());
        for (build, what) in [(1, "this build"), (0, "the build before"), (1, "this build")] {
            for (place, server) in servers.iter_mut().enumerate() {
                server.take().expect("it runs").terminate();
                *server = Some(start(place, build));
                go_on(&format!("server {} is of {what}", place + 1));
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(failed.into_inner().unwrap(), Vec::<String>::new());
    let ids = answered.into_inner().unwrap();
    let server = servers[1].as_ref().unwrap();
    for id in &ids {
        assert_eq!(get(server, id)["status"]["state"], "TASK_STATE_COMPLETED", "{id}");
    }
    let seen: Vec<_> = follow(server, &long, 0).collect();
    check_followed(&seen, &get(server, &long));
    let counted = format!("select coalesce(max(attempt), 0) from {}.task", cluster.schema);
    assert_eq!(cluster.postgres.sql(&counted).trim(), "1", "an orderly stop is not an attempt");
    for build in [0, 1] {
        let text = db(build, "verify");
        assert!(text.contains("no faults"), "{text}");
        println!("{}", text.trim());
    }
}

//! Three servers are deployed again, one after the other, ten times, while clients send and follow. A client that retries refused
//! connections and 503 sees no failed request, and no attempt is counted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::http::message;
use super::super::process::{Server, eventually, free_addr};
use super::{Cluster, begin, check_followed, follow, get};
use crate::support::limit::Limit;

const DEPLOYS: usize = 10;
/// Requests that are under way when a server is told to stop are answered; what takes longer goes on at another one.
const GRACE_S: &str = "3";
const CLIENTS: usize = 6;
/// So many answers are waited for between two deploys.
const ANSWERS_BETWEEN: u64 = 10;
const PAUSE: Duration = Duration::from_millis(20);
/// A request that takes so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
#[ignore = "starts PostgreSQL"]
fn three_servers_are_deployed_ten_times_without_a_failed_request() {
    let _limit = Limit::new();
    let cluster = Cluster::new();
    cluster.configure("lease_s = 10\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\"\nidempotency = \"message-id\"");
    let addrs = [free_addr(), free_addr(), free_addr()];
    let start = |place: usize| {
        let (addr, name) = (addrs[place].to_string(), ["first", "second", "third"][place]);
        let arguments = ["serve", "--listen", &addr, "--replica", name, "--grace", GRACE_S];
        let server = Server::start_unready(cluster.command(&arguments), addrs[place]);
        server.wait_until_ready();
        server
    };
    let mut servers = [0, 1, 2].map(|place| Some(start(place)));
    let long = begin(servers[0].as_ref().unwrap(), "long", "stream 400");
    let (done, numbers, failed) = (AtomicBool::new(false), AtomicU64::new(0), Mutex::new(Vec::new()));
    let answered = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (addrs, done, numbers, failed, answered) = (&addrs, &done, &numbers, &failed, &answered);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    // Some take long enough to be at work when their server goes.
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
        for deploy in 0..DEPLOYS * servers.len() {
            if !failed.lock().unwrap().is_empty() {
                break;
            }
            let before = count();
            eventually("requests are answered", || (count() >= before + ANSWERS_BETWEEN).then_some(()));
            let place = deploy % servers.len();
            servers[place].take().expect("it runs").terminate();
            servers[place] = Some(start(place));
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
    println!("{} sends were answered over {} deploys", ids.len(), DEPLOYS * addrs.len());
}

/// Sends a message, at one server after the other, until it is answered; gives the id of its task, or what went wrong.
pub(in super::super) fn send(addrs: &[SocketAddr], client: usize, params: &Value) -> Result<String, String> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string();
    for attempt in client.. {
        let addr = addrs[attempt % addrs.len()];
        // A refused connection is retried elsewhere.
        let Ok(mut socket) = TcpStream::connect(addr) else {
            std::thread::sleep(PAUSE);
            continue;
        };
        let head = format!(
            "POST / HTTP/1.1\r\nHost: {addr}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let mut answer = String::new();
        let asked = socket
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| socket.write_all(format!("{head}{body}").as_bytes()))
            .and_then(|()| socket.read_to_string(&mut answer));
        if let Err(error) = asked {
            return Err(format!("the connection broke ({error}) after {answer:?}"));
        }
        if answer.starts_with("HTTP/1.1 503") {
            let after = answer
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("retry-after: ")?.trim().parse().ok());
            let after: u64 = after.ok_or_else(|| format!("503 without Retry-After: {answer}"))?;
            // Another server may be asked at once; this one has said when.
            std::thread::sleep(if after == 0 { PAUSE } else { PAUSE * 2 });
            continue;
        }
        let reply = answer.split_once("\r\n\r\n").and_then(|(_, body)| body.find('{').map(|at| &body[at..]));
        let reply: Option<Value> = reply.and_then(|reply| serde_json::from_str(&reply[..=reply.rfind('}')?]).ok());
        let task = reply.as_ref().map(|reply| &reply["result"]["task"]);
        match task.and_then(|task| task["id"].as_str()) {
            Some(id) if answer.starts_with("HTTP/1.1 200") => return Ok(id.to_owned()),
            _ => return Err(format!("answered with {answer:?}")),
        }
    }
    Err("it was never answered".to_owned())
}

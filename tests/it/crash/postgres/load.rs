//! Three servers under load: clients that send one message after the other, and retry refused connections and 503 at another server. Tests
//! do to the servers meanwhile what must not be noticed.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::http::message;
use super::super::process::{Server, eventually, free_addr};
use super::{Cluster, check_followed, follow, get};

/// Requests that are under way when a server is told to stop are answered; what takes longer goes on at another one.
const GRACE_S: &str = "3";
const CLIENTS: usize = 6;
const PAUSE: Duration = Duration::from_millis(20);
/// A request that takes so long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Three servers that share a database, each with an address that it keeps when it is replaced.
pub(in super::super) struct Three<'c> {
    cluster: &'c Cluster<'c>,
    addrs: [SocketAddr; 3],
    servers: [Option<Server>; 3],
}

impl<'c> Three<'c> {
    pub(in super::super) fn start(cluster: &'c Cluster<'c>, program: &Path) -> Self {
        cluster.configure("lease_s = 10\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\"\nidempotency = \"message-id\"");
        let mut three = Self { cluster, addrs: [free_addr(), free_addr(), free_addr()], servers: [None, None, None] };
        (0..3).for_each(|place| three.start_one(place, program));
        three
    }

    fn start_one(&mut self, place: usize, program: &Path) {
        let addr = self.addrs[place];
        let (listen, name) = (addr.to_string(), ["first", "second", "third"][place]);
        let arguments = ["serve", "--listen", &listen, "--replica", name, "--grace", GRACE_S];
        let server = Server::start_unready(self.cluster.command_of(program, &arguments), addr);
        server.wait_until_ready();
        self.servers[place] = Some(server);
    }

    /// Stops one of them, and starts this program in its place.
    pub(in super::super) fn replace(&mut self, place: usize, program: &Path) {
        self.servers[place].take().expect("it runs").terminate();
        self.start_one(place, program);
    }

    pub(in super::super) fn server(&self, place: usize) -> &Server {
        self.servers[place].as_ref().expect("it runs")
    }

    /// Puts them under load while `during` runs. No request may fail. Returns the tasks that were answered.
    pub(in super::super) fn under_load(&mut self, during: impl FnOnce(&mut Self, &Load)) -> Vec<String> {
        let (load, addrs) = (Load::default(), self.addrs);
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let load = &load;
                scope.spawn(move || load.make(&addrs, client));
            }
            during(self, &load);
            load.done.store(true, Ordering::Relaxed);
        });
        assert_eq!(load.failed.into_inner().unwrap(), Vec::<String>::new());
        load.answered.into_inner().unwrap()
    }

    /// Whether all of these tasks were completed, a long one can be followed from its beginning, and no attempt was counted.
    pub(in super::super) fn check(&self, ids: &[String], long: &str) {
        let server = self.server(1);
        for id in ids {
            assert_eq!(get(server, id)["status"]["state"], "TASK_STATE_COMPLETED", "{id}");
        }
        let seen: Vec<_> = follow(server, long, 0).collect();
        check_followed(&seen, &get(server, long));
        let counted = format!("select coalesce(max(attempt), 0) from {}.task", self.cluster.schema);
        assert_eq!(self.cluster.postgres.sql(&counted).trim(), "1", "an orderly stop is not an attempt");
    }
}

/// What the clients saw.
#[derive(Default)]
pub(in super::super) struct Load {
    done: AtomicBool,
    numbers: AtomicU64,
    answered: Mutex<Vec<String>>,
    failed: Mutex<Vec<String>>,
}

impl Load {
    fn make(&self, addrs: &[SocketAddr], client: usize) {
        while !self.done.load(Ordering::Relaxed) {
            let number = self.numbers.fetch_add(1, Ordering::Relaxed);
            // Some take long enough to be at work when their server goes.
            let text =
                if number.is_multiple_of(3) { format!("stream {}", 5 + number % 20) } else { format!("text {number}") };
            match send(addrs, client, &message(&format!("m-{number}"), &text)) {
                Ok(id) => self.answered.lock().unwrap().push(id),
                Err(why) => self.failed.lock().unwrap().push(why),
            }
        }
    }

    pub(in super::super) fn answered(&self) -> usize {
        self.answered.lock().unwrap().len()
    }

    pub(in super::super) fn failed(&self) -> usize {
        self.failed.lock().unwrap().len()
    }

    /// Waits for so many more answers, or for a request that fails.
    pub(in super::super) fn go_on(&self, answers: usize) {
        let before = self.answered();
        eventually("requests are answered", || {
            (self.answered() >= before + answers || self.failed() > 0).then_some(())
        });
    }
}

/// Sends a message, at one server after the other, until it is answered; gives the id of its task, or what went wrong.
fn send(addrs: &[SocketAddr], client: usize, params: &Value) -> Result<String, String> {
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
        let (mut answer, begun) = (String::new(), Instant::now());
        let asked = socket
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| socket.write_all(format!("{head}{body}").as_bytes()))
            .and_then(|()| socket.read_to_string(&mut answer));
        if let Err(error) = asked {
            return Err(format!("the connection broke ({error}) after {:?} and {answer:?}", begun.elapsed()));
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

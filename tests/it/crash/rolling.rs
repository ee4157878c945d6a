//! Ten deploys in a row, each by SIGTERM and under open streams: of the binary, of a program that calls
//! `switchboard::serve`, and of an axum app that mounts the server. No stream loses or repeats an event, and no attempt is
//! counted: three would fail the task.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use switchboard::{AgentBuilder, AgentError, Server as Embedded, Turn};

use super::http::{call, message, stream};
use super::process::{Server, command, eventually, free_addr, verify};

const DEPLOYS: u64 = 10;
const STREAMS: usize = 3;
/// Tells a copy of this test binary which server it is to be.
const CHILD: &str = "SWITCHBOARD_TEST_CHILD";

#[test]
fn the_binary_is_deployed_ten_times_under_streams() {
    deploy_often(|data, addr| {
        let mut command = command(data, addr);
        command.args(["--grace", "0"]);
        command
    });
}

#[test]
fn a_program_that_serves_is_deployed_ten_times_under_streams() {
    deploy_often(|data, addr| child("serve", data, addr));
}

#[test]
fn an_axum_app_is_deployed_ten_times_under_streams() {
    deploy_often(|data, addr| child("axum", data, addr));
}

/// A stop signal must end a program soon even if no client reads its streams and nothing else is happening.
#[test]
fn a_hangup_ends_no_server() {
    for shape in ["binary", "serve", "axum"] {
        let folder = tempfile::tempdir().unwrap();
        let (data, addr) = (folder.path().join("data"), free_addr());
        std::fs::create_dir_all(&data).unwrap();
        let command = if shape == "binary" { command(&data, addr) } else { child(shape, &data, addr) };
        let server = Server::start_by(command, addr);
        server.signal(Signal::HUP);
        // The signal was delivered before the answer to a request that was sent after it.
        assert!(call(addr, "ListTasks", json!({})).is_some(), "{shape} is gone");
        server.terminate();
    }
}

fn deploy_often(command: impl Fn(&Path, SocketAddr) -> Command) {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    std::fs::create_dir_all(&data).unwrap();
    let mut server = Server::start_by(command(&data, addr), addr);
    let followers: Vec<Follower> = (0..STREAMS).map(|number| Follower::start(addr, number)).collect();
    for _ in 0..DEPLOYS {
        let seen: Vec<u64> = followers.iter().map(|follower| follower.seen.load(Ordering::Relaxed)).collect();
        for (follower, seen) in followers.iter().zip(seen) {
            eventually("a stream goes on", || (follower.seen.load(Ordering::Relaxed) >= seen + 2).then_some(()));
        }
        server.terminate();
        server = Server::start_by(command(&data, addr), addr);
    }
    for follower in followers {
        follower.finish(addr);
    }
    server.terminate();
    verify(&data);
}

/// A client that follows one task over every restart.
struct Follower {
    seen: Arc<AtomicU64>,
    task: String,
    following: JoinHandle<Vec<(u64, Value)>>,
}

impl Follower {
    fn start(addr: SocketAddr, number: usize) -> Self {
        let seen = Arc::new(AtomicU64::new(0));
        let mut first = stream(addr, "SendStreamingMessage", message(&format!("m-{number}"), "stream 1000"), None);
        let opened = first.next().expect("the first event is the task");
        let task = opened.result["task"]["id"].as_str().expect("a task has an id").to_owned();
        let (counter, id) = (seen.clone(), task.clone());
        let following = std::thread::spawn(move || {
            let deadline = Instant::now() + Duration::from_secs(120);
            let mut events = vec![(opened.id, opened.result)];
            let mut current = first;
            while Instant::now() < deadline {
                for event in current.by_ref() {
                    counter.store(event.id, Ordering::Relaxed);
                    events.push((event.id, event.result));
                }
                let state = &events[events.len() - 1].1["statusUpdate"]["status"]["state"];
                if state == "TASK_STATE_CANCELED" || state == "TASK_STATE_FAILED" {
                    return events;
                }
                current = stream(addr, "SubscribeToTask", json!({"id": id}), Some(events[events.len() - 1].0));
            }
            panic!("the task {id} did not end")
        });
        Self { seen, task, following }
    }

    fn finish(self, addr: SocketAddr) {
        let canceled = call(addr, "CancelTask", json!({"id": self.task})).expect("the server is up");
        assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED", "{canceled}");
        let events = self.following.join().expect("the stream was followed to its end");
        let numbers: Vec<u64> = events.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "none is missing and none comes twice");
        assert_eq!(events[events.len() - 1].1["statusUpdate"]["status"]["state"], "TASK_STATE_CANCELED");
    }
}

/// A copy of this test binary as a server of its own.
fn child(shape: &str, data: &Path, addr: SocketAddr) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test knows where it is"));
    command.args(["--exact", "crash::rolling::server_in_a_process_of_its_own", "--nocapture"]);
    command.env(CHILD, format!("{shape} {addr} {}", data.join("switchboard.db").display()));
    command.stdin(Stdio::null());
    command
}

/// What [`child`] runs. By itself it does nothing.
#[test]
fn server_in_a_process_of_its_own() {
    let Ok(role) = std::env::var(CHILD) else { return };
    let words: Vec<&str> = role.splitn(3, ' ').collect();
    let [shape, addr, database] = words[..] else { panic!("{CHILD} is {role:?}") };
    let addr: SocketAddr = addr.parse().unwrap();
    let agent = AgentBuilder::from_fn("Counter", count);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        match shape {
            "serve" => {
                let server = switchboard::serve(agent).durable(database).listen(addr).grace(Duration::ZERO);
                server.run().await.unwrap();
            }
            "axum" => {
                let url = format!("http://{addr}");
                let agents = Embedded::builder().agent(agent).sqlite(database).public_url(url).build().unwrap();
                let handle = agents.handle();
                let page = axum::routing::get(|| async { "my app" });
                let app = axum::Router::new().route("/app", page).merge(agents.into_router().unwrap());
                let listener = tokio::net::TcpListener::bind(addr).await.unwrap();
                let stop = handle.drain_when(switchboard::stop_signal());
                axum::serve(listener, app).with_graceful_shutdown(stop).await.unwrap();
                handle.shutdown(Duration::ZERO).await;
            }
            other => panic!("{CHILD} names {other}"),
        }
    });
}

async fn count(turn: Turn) -> Result<(), AgentError> {
    for number in 0..u32::MAX {
        turn.working(format!("{number}, attempt {}", turn.attempt())).await?;
        tokio::select! {
            () = turn.cancelled() => break,
            () = tokio::time::sleep(Duration::from_millis(20)) => {}
        }
    }
    Ok(())
}

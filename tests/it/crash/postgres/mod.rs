//! Several servers as processes that share a database in PostgreSQL. Each test has a schema of its own.
//!
//! They start PostgreSQL, so they are ignored unless they are asked for, as `scripts/test` does.

mod anywhere;
mod chaos;
mod commands;
mod followers;
mod hints;
pub(super) mod load;
mod moving;
mod restarted;
mod rolling;
mod shares;
mod takeover;
mod traced;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use switchboard_test_servers::Postgres;
use tempfile::TempDir;

use super::http::{Event, call, message, stream};
use super::process::{Server, binary, free_addr, without_settings};

/// A key for the secrets of webhooks: 32 zeros.
const KEY: &str = "swkey_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// Servers that share a database.
pub(super) struct Cluster<'a> {
    pub(super) postgres: &'a Postgres,
    /// The address of the database.
    url: String,
    pub(super) schema: String,
    /// The address of NATS, if it carries the hints.
    hints: Option<String>,
    /// Where the servers run; what is written into it are their settings.
    folder: TempDir,
}

impl Cluster<'static> {
    /// On the server that all tests share, which ends with this process.
    fn new() -> Self {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        Self::on(SERVER.get_or_init(Postgres::start))
    }
}

impl<'a> Cluster<'a> {
    pub(super) fn on(postgres: &'a Postgres) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::tempdir().unwrap();
        let cluster = Self { postgres, url: postgres.url(), schema, hints: None, folder };
        cluster.configure("lease_s = 1\n\n[[agent]]\nname = \"Demo\"\nkind = \"demo\"\nidempotency = \"message-id\"");
        cluster
    }

    /// Settings of all servers that are started from now on.
    pub(super) fn configure(&self, settings: &str) {
        std::fs::write(self.folder.path().join("switchboard.toml"), format!("[server]\n{settings}\n")).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(&binary(), arguments)
    }

    /// The same for another binary.
    pub(super) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        without_settings(&mut command);
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("SWITCHBOARD_STORE", &self.url).env("SWITCHBOARD_STORE_SCHEMA", &self.schema);
        command.env("SWITCHBOARD_SECRETS_KEY", KEY).envs(self.hints.iter().map(|hints| ("SWITCHBOARD_HINTS", hints)));
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts servers of these names together, and waits until all are ready.
    fn start<const N: usize>(&self, names: [&str; N]) -> [Server; N] {
        let servers = names.map(|name| {
            let addr = free_addr();
            let arguments = ["serve", "--listen", &addr.to_string(), "--replica", name, "--grace", "0"];
            Server::start_unready(self.command(&arguments), addr)
        });
        servers.iter().for_each(Server::wait_until_ready);
        servers
    }
}

/// Sends and does not wait for the task to end; returns its id.
pub(super) fn begin(server: &Server, message_id: &str, text: &str) -> String {
    let mut send = message(message_id, text);
    send["configuration"] = json!({"returnImmediately": true});
    let sent = call(server.addr, "SendMessage", send).expect("the server is up");
    sent["task"]["id"].as_str().expect("a task has an id").to_owned()
}

pub(super) fn get(server: &Server, id: &str) -> Value {
    call(server.addr, "GetTask", json!({"id": id})).expect("the server is up")
}

pub(super) fn follow(server: &Server, id: &str, after: u64) -> impl Iterator<Item = Event> + use<> {
    stream(server.addr, "SubscribeToTask", json!({"id": id}), Some(after))
}

/// Holds what a follower saw of a task, from its first event to its last, against what is stored of it.
pub(super) fn check_followed(seen: &[Event], task: &Value) {
    let numbers: Vec<u64> = seen.iter().map(|event| event.id).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "none is missing and none comes twice");
    assert_eq!(seen[seen.len() - 1].result["statusUpdate"]["status"]["state"], task["status"]["state"], "{task}");
    let pieces =
        seen.iter().filter_map(|event| event.result["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str());
    let text: String = pieces.collect();
    let stored = task["artifacts"][0]["parts"].as_array().into_iter().flatten();
    let stored: String = stored.filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(text, stored, "the pieces of the stream are the artifact");
}

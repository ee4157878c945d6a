//! `clients`: runs the SDKs and frameworks that other people wrote against the binary that people run.
//!
//! The programs lie in `tests/clients`, one folder each, with the exact versions of everything they import. Here is the
//! list of them and of what each must have done. `packages` fetches what they import into the target folder, `steps`
//! compares what they say with what they must do. The output is like that of cargo's test runner, so that `scripts/test`
//! can count it.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::folders::target;
use crate::packages::{Language, Packages, Program};
use crate::server::{ALL_INTERFACES, Server};
use crate::steps::StepsCommand;
use crate::{steps, within};

/// A client has a shorter limit for each of its steps; this one is for what hangs outside of them.
pub(crate) const RUN: Duration = Duration::from_secs(180);

const USAGE: &str = "\
usage: cargo build && cargo run -p xtask -- clients [NAME…]

Runs the clients of tests/clients, or those named, against the switchboard built beside it. What they import is fetched into
target/clients once and kept there.";

/// A program in `tests/clients`, and what it must have done.
pub(crate) struct Client {
    pub(crate) name: &'static str,
    language: Language,
    /// What it connects over, or the name of this machine that it connects to; each of its steps is taken over each.
    transports: &'static [&'static str],
    pub(crate) steps: &'static [&'static str],
}

impl Client {
    /// The client of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Client, String> {
        CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| format!("no client {name}"))
    }

    pub(crate) fn program(&self) -> Program {
        Program { kind: "clients", name: self.name, language: self.language }
    }
}

const EVERYTHING: &[&str] =
    &["card", "send", "question", "file", "data", "stream", "get", "cancel", "resubscribe", "push"];

/// What the frameworks' clients do, none of which reads, cancels or resubscribes on purpose.
const FRAMEWORK: &[&str] = &["card", "send", "stream", "question", "failure"];

/// The names that a card is asked for under; google-adk refuses a card that names another.
const LOOPBACK_NAMES: &[&str] = &["127.0.0.1", "localhost"];

/// The transport that a client finds on a card only if the server's settings put it there.
const GRPC: &str = "grpc";

/// The transport of clients that sign their tokens with a secret, which the server of theirs has, too.
const SIGNED: &str = "signed";
const SECRET: (&str, &str) = ("A2A_SECRET", "a secret that both sides of a test have");

const CLIENTS: &[Client] = &[
    Client {
        name: "python-0.2",
        language: Language::Python,
        transports: &["jsonrpc"],
        // Its client has no method for resubscribing.
        steps: &["card", "send", "question", "file", "data", "stream", "get", "cancel", "push"],
    },
    Client {
        name: "python-0.2-grpc",
        language: Language::Python,
        transports: &["grpc"],
        // Its calls about push configs name no task.
        steps: &["send", "question", "file", "data", "stream", "get", "cancel"],
    },
    Client {
        name: "python-0.3",
        language: Language::Python,
        transports: &["jsonrpc", "http_json", "grpc"],
        steps: EVERYTHING,
    },
    Client {
        name: "python-1",
        language: Language::Python,
        transports: &["jsonrpc", "http_json", "grpc"],
        steps: EVERYTHING,
    },
    Client { name: "js-0.2", language: Language::JavaScript, transports: &["jsonrpc"], steps: EVERYTHING },
    Client {
        name: "js-0.3",
        language: Language::JavaScript,
        transports: &["jsonrpc", "http_json", "grpc"],
        steps: EVERYTHING,
    },
    Client {
        name: "js-1",
        language: Language::JavaScript,
        transports: &["jsonrpc", "http_json", "grpc"],
        steps: EVERYTHING,
    },
    Client {
        name: "selectools",
        language: Language::Python,
        // The agent itself, and the mount where its dialect is spoken.
        transports: &["jsonrpc", "mount"],
        steps: &["card", "send", "failure", "data", "get"],
    },
    Client {
        name: "agent-native",
        language: Language::JavaScript,
        transports: &[SIGNED],
        steps: &[
            "card",
            "send",
            "async",
            "stream",
            "question",
            "failure",
            "get",
            "missing_token",
            "wrong_secret",
            "expired_token",
            "audience",
            "second_token",
            "ownership",
        ],
    },
    Client { name: "google-adk", language: Language::Python, transports: LOOPBACK_NAMES, steps: FRAMEWORK },
    Client { name: "crewai", language: Language::Python, transports: LOOPBACK_NAMES, steps: FRAMEWORK },
    Client { name: "strands", language: Language::Python, transports: LOOPBACK_NAMES, steps: FRAMEWORK },
];

/// Runs the clients named, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    StepsCommand { name: "clients", usage: USAGE, rows: CLIENTS, name_of: |client| client.name, run_all }.run(names)
}

fn run_all(clients: &[&'static Client]) -> Result<bool, String> {
    let folder = target().join("clients");
    let packages = Packages::fetch(&folder, &clients.iter().map(|client| client.program()).collect::<Vec<_>>())?;

    let servers = [ServerKind::Usual, ServerKind::WithGrpc, ServerKind::WithSecret];
    let servers = servers.into_iter().map(|kind| Ok((kind, start(&folder, kind)?)));
    let servers = servers.collect::<Result<Vec<_>, String>>()?;
    let mut all_well = true;
    for client in clients {
        all_well &= run_one(client, &packages, &servers)?;
    }
    for (kind, server) in servers {
        drop(server);
        let _ = std::fs::remove_dir_all(folder.join(kind.name()));
    }
    Ok(all_well)
}

/// The servers that clients are run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    Usual,
    WithGrpc,
    WithSecret,
}

impl ServerKind {
    /// The one that a client is run against over this transport.
    fn of(transport: &str) -> Self {
        match transport {
            GRPC => Self::WithGrpc,
            SIGNED => Self::WithSecret,
            _ => Self::Usual,
        }
    }

    /// Of its folder and its log.
    fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::WithGrpc => "with-grpc",
            Self::WithSecret => "with-secret",
        }
    }
}

/// Runs the client and tells of each step. Fails only on what is no fault of the client's.
fn run_one(client: &Client, packages: &Packages, servers: &[(ServerKind, Server)]) -> Result<bool, String> {
    println!("     Client {}", client.name);
    let (mut trouble, mut said, mut took) = (None, String::new(), Duration::ZERO);
    for (kind, server) in servers {
        let transports = client.transports.iter().filter(|transport| ServerKind::of(transport) == *kind);
        let transports: Vec<_> = transports.collect();
        if transports.is_empty() || trouble.is_some() {
            continue;
        }
        let mut command = packages.command(&client.program())?;
        command.arg(server.url()).args(transports);
        if *kind == ServerKind::WithSecret {
            command.env(SECRET.0, SECRET.1);
        }
        match within::run(command, &packages.log(&client.program()), RUN) {
            Ok(ended) => {
                trouble = (!ended.is_success).then(|| "it failed".to_owned());
                said.push_str(&ended.said);
                took += ended.took;
            }
            Err(message) => trouble = Some(message),
        }
    }
    let steps_of = |transport: &&str| client.steps.iter().map(move |step| format!("{transport} {step}")).collect();
    let expected = client.transports.iter().flat_map(|transport| -> Vec<String> { steps_of(transport) }).collect();
    Ok(steps::tell(client.name, &expected, &said, trouble, took))
}

/// A server with the demo agent.
fn start(folder: &Path, kind: ServerKind) -> Result<Server, String> {
    Server::switchboard(folder, kind.name(), |command| match kind {
        ServerKind::Usual => {}
        ServerKind::WithGrpc => drop(command.args(ALL_INTERFACES)),
        ServerKind::WithSecret => drop(command.env(SECRET.0, SECRET.1)),
    })
}

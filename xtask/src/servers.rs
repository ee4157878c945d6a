//! `servers`: drives servers of other SDKs with the client of `switchboard`.
//!
//! The servers lie in `tests/servers`, one folder each, with the exact versions of everything they import. Here is the list of
//! them, of the ways in which each can be called, and of the steps that must pass over each. The steps are taken by the example
//! `peer` of the tests, which cargo has built beside this program. The output is that of `clients`.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use switchboard_test_servers::free_addr;

use crate::folders::{built, target};
use crate::packages::{Language, Packages, Program};
use crate::server::Server;
use crate::steps::StepsCommand;
use crate::{steps, within};

const USAGE: &str = "\
usage: cargo build --workspace --all-targets && cargo run -p xtask -- servers [NAME…]

Starts the servers of tests/servers, or those named, and calls each with the client. What they import is fetched into
target/servers once and kept there.";

/// Each step has a shorter limit; this one is for what hangs outside of them.
const RUN: Duration = Duration::from_secs(300);

/// A server in `tests/servers`.
pub(crate) struct Peer {
    name: &'static str,
    language: Language,
    /// How it is called, as `peer` names it, and the steps that must pass.
    transports: &'static [(&'static str, &'static [&'static str])],
}

impl Peer {
    /// The server of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Peer, String> {
        PEERS.iter().find(|peer| peer.name == name).ok_or_else(|| format!("no server {name}"))
    }

    pub(crate) fn program(&self) -> Program {
        Program { kind: "servers", name: self.name, language: self.language }
    }
}

const STEPS_1_0: &[&str] =
    &["card", "send", "question", "wait", "stream", "file", "get", "list", "cancel", "subscribe", "push", "push-list"];

/// Lists of tasks are new in 1.0.
const STEPS_0_3: &[&str] =
    &["card", "send", "question", "wait", "stream", "file", "get", "cancel", "subscribe", "push", "push-list"];

/// The Python SDK lists and deletes no push configs over 0.3's proto.
const STEPS_0_3_NO_PUSH_LIST: &[&str] =
    &["card", "send", "question", "wait", "stream", "file", "get", "cancel", "subscribe", "push"];

const PEERS: &[Peer] = &[
    Peer {
        name: "python-1",
        language: Language::Python,
        transports: &[
            ("JSONRPC/1.0", STEPS_1_0),
            ("HTTP+JSON/1.0", STEPS_1_0),
            ("GRPC/1.0", STEPS_1_0),
            ("JSONRPC/0.3", STEPS_0_3),
            ("HTTP+JSON/0.3", STEPS_0_3_NO_PUSH_LIST),
            ("GRPC/0.3", STEPS_0_3),
        ],
    },
    Peer {
        name: "python-0.3",
        language: Language::Python,
        transports: &[
            ("JSONRPC/0.3", STEPS_0_3),
            ("HTTP+JSON/0.3", STEPS_0_3_NO_PUSH_LIST),
            ("GRPC/0.3", STEPS_0_3_NO_PUSH_LIST),
        ],
    },
    Peer {
        name: "js-1",
        language: Language::JavaScript,
        transports: &[
            ("JSONRPC/1.0", STEPS_1_0),
            ("HTTP+JSON/1.0", STEPS_1_0),
            ("GRPC/1.0", STEPS_1_0),
            ("JSONRPC/0.3", STEPS_0_3),
            ("HTTP+JSON/0.3", STEPS_0_3),
            ("GRPC/0.3", STEPS_0_3),
        ],
    },
    Peer {
        name: "js-0.3",
        language: Language::JavaScript,
        transports: &[("JSONRPC/0.3", STEPS_0_3), ("HTTP+JSON/0.3", STEPS_0_3), ("GRPC/0.3", STEPS_0_3)],
    },
    Peer {
        name: "selectools",
        language: Language::Python,
        // Its agent works inside the request, so there is no task to follow or to cancel.
        transports: &[("selectools", &["card", "send", "get", "cancel-ended"])],
    },
    Peer {
        name: "agent-native",
        language: Language::JavaScript,
        // It has no push, no lists and no subscriptions; an answer to its question is a task of its own, and it cancels tasks that
        // have ended.
        transports: &[("agent-native", &["card", "send", "question-only", "wait", "stream", "get", "cancel-running"])],
    },
];

/// Runs the servers named, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    StepsCommand { name: "servers", usage: USAGE, rows: PEERS, name_of: |peer| peer.name, run_all }.run(names)
}

/// The servers do not disturb each other, so all run at once.
fn run_all(peers: &[&'static Peer]) -> Result<bool, String> {
    let packages =
        Packages::fetch(&target().join("servers"), &peers.iter().map(|peer| peer.program()).collect::<Vec<_>>())?;
    let packages = &packages;
    std::thread::scope(|scope| {
        let runs: Vec<_> = peers.iter().map(|peer| scope.spawn(move || run_one(peer, packages))).collect();
        let mut all_well = true;
        for (peer, run) in peers.iter().zip(runs) {
            let Driven { said, trouble, took } = run.join().expect("driving a server does not panic");
            println!("     Server {}", peer.name);
            let steps =
                peer.transports.iter().flat_map(|(name, steps)| steps.iter().map(move |step| format!("{name} {step}")));
            all_well &= steps::tell(peer.name, &steps.collect(), &said, trouble, took);
        }
        Ok(all_well)
    })
}

/// What came of driving one server.
struct Driven {
    said: String,
    trouble: Option<String>,
    took: Duration,
}

/// Starts the server and takes the steps. A server that does not start has failed like one that answers wrongly.
fn run_one(peer: &Peer, packages: &Packages) -> Driven {
    let driven = start(peer, packages).and_then(|server| drive(peer, &server.url(), &packages.home(&peer.program())));
    let (said, trouble, took) = match driven {
        Ok(ended) => (ended.said, (!ended.is_success).then(|| "a step failed".to_owned()), ended.took),
        Err(message) => (String::new(), Some(message), Duration::ZERO),
    };
    Driven { said, trouble, took }
}

/// Starts the server, and waits until it serves its card.
pub(crate) fn start(peer: &Peer, packages: &Packages) -> Result<Server, String> {
    let mut command = packages.command(&peer.program())?;
    let log = packages.log(&peer.program());
    let told = std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
    let told_too = told.try_clone().map_err(|error| error.to_string())?;
    let grpc = free_addr();
    let server = Server::start_saying(Stdio::from(told), |address| {
        command.args([address.port().to_string(), grpc.port().to_string()]).stderr(Stdio::from(told_too));
        command
    });
    server.map_err(|message| format!("{message}; see {}", log.display()))
}

fn drive(peer: &Peer, url: &str, home: &Path) -> Result<within::Ended, String> {
    let program = built().join("examples").join("peer");
    if !program.exists() {
        return Err(format!("{} is not built; build the workspace first, as scripts/test does", program.display()));
    }
    let mut command = Command::new(program);
    command.arg(url).args(peer.transports.iter().map(|(name, steps)| format!("{name}={}", steps.join(","))));
    within::run(command, &home.join("peer.log"), RUN)
}

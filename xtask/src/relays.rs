//! `relays`: puts the binary as a gateway in front of servers of other SDKs, and lets clients of other SDKs and versions talk through it.
//!
//! The servers are those of `servers`, the clients those of `clients`, with the same packages. Here is the list of who talks to whom. The
//! output is that of `clients`, and a table at the end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::clients::{Client, RUN};
use crate::folders::target;
use crate::packages::Packages;
use crate::server::{ALL_INTERFACES, Server};
use crate::servers::{self, Peer};
use crate::steps::StepsCommand;
use crate::{steps, within};

const USAGE: &str = "\
usage: cargo build --workspace --all-targets && cargo run -p xtask -- relays [UPSTREAM…]

Starts the servers of tests/servers that are listed here, or those named, puts a switchboard in front of each, and runs clients of
tests/clients against that. What they import is shared with the commands `servers` and `clients`.";

/// What the gateway counts for each message that it sends on.
const SENDS: &str = "switchboard_relay_sends_total{";

/// A server of another SDK behind a gateway.
struct Upstream {
    /// As `servers` has it.
    server: &'static str,
    callers: &'static [Caller],
}

/// A client of another SDK that talks to it through the gateway.
struct Caller {
    /// As `clients` has it.
    client: &'static str,
    transport: &'static str,
    /// None are all that the client takes.
    steps: Option<&'static [&'static str]>,
}

const fn all(client: &'static str, transport: &'static str) -> Caller {
    Caller { client, transport, steps: None }
}

/// What there is to do at an upstream that works inside the request and knows neither questions nor files. The gateway streams its answer,
/// keeps it and posts it to webhooks all the same.
const fn answers(client: &'static str, transport: &'static str) -> Caller {
    Caller { client, transport, steps: Some(&["card", "send", "stream", "get", "push"]) }
}

const UPSTREAMS: &[Upstream] = &[
    Upstream {
        server: "python-1",
        callers: &[
            all("python-0.2", "jsonrpc"),
            all("python-0.3", "grpc"),
            all("js-0.3", "http_json"),
            all("selectools", "jsonrpc"),
            all("selectools", "mount"),
        ],
    },
    Upstream {
        server: "python-0.3",
        callers: &[all("js-1", "grpc"), all("python-1", "http_json"), all("js-0.2", "jsonrpc")],
    },
    Upstream {
        server: "js-1",
        callers: &[all("python-0.3", "jsonrpc"), all("python-0.2-grpc", "grpc"), all("python-1", "grpc")],
    },
    Upstream {
        server: "selectools",
        callers: &[answers("js-1", "jsonrpc"), answers("js-1", "grpc"), answers("python-0.2", "jsonrpc")],
    },
];

/// The columns of the table.
const COLUMNS: &[&str] =
    &["card", "send", "stream", "question", "cancel", "file", "data", "get", "resubscribe", "push", "failure"];

/// Runs the clients against the upstreams named, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    StepsCommand { name: "relays", usage: USAGE, rows: UPSTREAMS, name_of: |upstream| upstream.server, run_all }
        .run(names)
}

/// A caller that is ready to run: its program wants the URL of the gateway.
struct Prepared {
    name: String,
    command: Command,
    transport: &'static str,
    steps: &'static [&'static str],
    log: PathBuf,
}

/// What came of one caller.
struct Talked {
    name: String,
    transport: &'static str,
    steps: &'static [&'static str],
    said: String,
    trouble: Option<String>,
    took: Duration,
}

/// The upstreams do not disturb each other, so all run at once.
fn run_all(upstreams: &[&'static Upstream]) -> Result<bool, String> {
    let folder = target().join("relays");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let peers = upstreams.iter().map(|upstream| Peer::named(upstream.server)).collect::<Result<Vec<_>, _>>()?;
    let programs: Vec<_> = peers.iter().map(|peer| peer.program()).collect();
    let servers = Packages::fetch(&target().join("servers"), &programs)?;
    let callers = prepare(upstreams, &folder)?;
    let (servers, folder) = (&servers, folder.as_path());
    let talked = std::thread::scope(|scope| {
        let runs: Vec<_> = peers
            .iter()
            .zip(callers)
            .map(|(peer, callers)| scope.spawn(move || talk_to(peer, servers, callers, folder)))
            .collect();
        runs.into_iter().map(|run| run.join().expect("running clients does not panic")).collect::<Vec<_>>()
    });
    let mut all_well = true;
    for (upstream, talked) in upstreams.iter().zip(&talked) {
        for one in talked {
            println!("     Relay {}->{}", one.name, upstream.server);
            let expected: BTreeSet<String> = one.steps.iter().map(|step| format!("{} {step}", one.transport)).collect();
            let name = format!("{} through a relay to {}", one.name, upstream.server);
            all_well &= steps::tell(&name, &expected, &one.said, one.trouble.clone(), one.took);
        }
    }
    print!("{}", table(upstreams, &talked));
    Ok(all_well)
}

/// The programs of all callers, by upstream. They are made before any runs, because that copies files which several use.
fn prepare(upstreams: &[&Upstream], folder: &Path) -> Result<Vec<Vec<Prepared>>, String> {
    let clients = upstreams.iter().flat_map(|upstream| upstream.callers).map(|caller| Client::named(caller.client));
    let mut programs = clients.map(|client| Ok(client?.program())).collect::<Result<Vec<_>, String>>()?;
    programs.sort_by_key(|program| program.name);
    programs.dedup();
    let packages = Packages::fetch(&target().join("clients"), &programs)?;
    let prepare_one = |server: &str, caller: &Caller| {
        let client = Client::named(caller.client)?;
        let steps = caller.steps.unwrap_or(client.steps);
        let mut command = packages.command(&client.program())?;
        command.env("STEPS", steps.join(","));
        let log = folder.join(format!("{}-{}-{server}.log", caller.client, caller.transport));
        Ok(Prepared { name: caller.client.to_owned(), command, transport: caller.transport, steps, log })
    };
    let of_one =
        |upstream: &&Upstream| upstream.callers.iter().map(|caller| prepare_one(upstream.server, caller)).collect();
    upstreams.iter().map(of_one).collect()
}

/// Starts the server and its gateway, and runs the callers one after the other. If one of them does not start, every caller has failed.
fn talk_to(peer: &Peer, packages: &Packages, callers: Vec<Prepared>, folder: &Path) -> Vec<Talked> {
    let started = servers::start(peer, packages).and_then(|server| {
        let name = format!("in-front-of-{}", peer.program().name);
        let gateway = Server::switchboard(folder, &name, |command| {
            command.args(["--relay", &server.url()]).args(ALL_INTERFACES);
        })?;
        Ok((server, gateway))
    });
    match started {
        Ok((_server, gateway)) => callers.into_iter().map(|caller| talk(caller, &gateway)).collect(),
        Err(message) => {
            let failed = |Prepared { name, transport, steps, .. }: Prepared| {
                let trouble = Some(message.clone());
                Talked { name, transport, steps, said: String::new(), trouble, took: Duration::ZERO }
            };
            callers.into_iter().map(failed).collect()
        }
    }
}

fn talk(caller: Prepared, gateway: &Server) -> Talked {
    let Prepared { name, mut command, transport, steps, log } = caller;
    let sent_before = sends(gateway);
    command.arg(gateway.url()).arg(transport);
    let (said, trouble, took) = match within::run(command, &log, RUN) {
        Ok(ended) => (ended.said, (!ended.is_success).then(|| "it failed".to_owned()), ended.took),
        Err(message) => (String::new(), Some(message), Duration::ZERO),
    };
    // Otherwise something else than the upstream would have answered.
    let trouble = trouble
        .or_else(|| (sends(gateway) <= sent_before).then(|| "the gateway sent nothing to the upstream".to_owned()));
    Talked { name, transport, steps, said, trouble, took }
}

/// How many messages the gateway has sent to its upstream.
fn sends(gateway: &Server) -> u64 {
    let metrics = gateway.get("/metrics").unwrap_or_default();
    let line = metrics.lines().find(|line| line.starts_with(SENDS));
    line.and_then(|line| line.rsplit(' ').next()?.trim().parse().ok()).unwrap_or(0)
}

/// Who did what: a row for each caller, a column for each step.
fn table(upstreams: &[&Upstream], talked: &[Vec<Talked>]) -> String {
    let mut lines = vec![format!("{:<12}{:<26}{}", "upstream", "client", COLUMNS.join("  "))];
    for (upstream, talked) in upstreams.iter().zip(talked) {
        for one in talked {
            let cell = |column: &&str| {
                let is_done = one.said.lines().any(|line| line == format!("ok {} {column}", one.transport));
                let word = match (one.steps.contains(column), is_done) {
                    (false, _) => "-",
                    (true, true) => "ok",
                    (true, false) => "NO",
                };
                format!("{word:<width$}", width = column.len() + 2)
            };
            let client = format!("{} {}", one.name, one.transport);
            let cells: String = COLUMNS.iter().map(cell).collect();
            lines.push(format!("{:<12}{client:<26}{}", upstream.server, cells.trim_end()));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{COLUMNS, Client, Peer, Talked, UPSTREAMS, table};

    #[test]
    fn the_list_names_what_there_is() {
        for upstream in UPSTREAMS {
            assert!(Peer::named(upstream.server).is_ok(), "{}", upstream.server);
            for caller in upstream.callers {
                let client = Client::named(caller.client).expect("the client is there");
                let steps = caller.steps.unwrap_or(client.steps);
                assert!(steps.iter().all(|step| client.steps.contains(step)), "{}", caller.client);
                assert!(steps.iter().all(|step| COLUMNS.contains(step)), "{}", caller.client);
            }
        }
    }

    #[test]
    fn a_cell_that_was_not_reached_is_told() {
        let talked = Talked {
            name: "js-1".to_owned(),
            transport: "grpc",
            steps: &["card", "send"],
            said: "ok grpc card\n".to_owned(),
            trouble: None,
            took: Duration::ZERO,
        };
        let table = table(&[&UPSTREAMS[3]], &[vec![talked]]);
        let row: Vec<&str> = table.lines().nth(1).expect("there is a row").split_whitespace().collect();
        assert_eq!(row[..6], ["selectools", "js-1", "grpc", "ok", "NO", "-"]);
    }
}

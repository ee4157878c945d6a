//! `xtask path`: the files of `crates/` whose code one send executes, which is what a stranger has to read to follow it. A blocking message of
//! 1.0 goes over JSON-RPC to an agent that declares nothing about itself, on SQLite, and callgrind tells which functions run meanwhile. What
//! also runs while nobody calls is not counted, nor are the plain data types of `model/` and the program around the library.
//!
//! It needs valgrind, and a binary without optimisation: a function that was inlined runs in the file of its caller.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::folders::target;
use crate::server::Server;

/// How long the server is watched without a client: longer than the pauses of nearly all its loops.
const IDLE: Duration = Duration::from_secs(12);
/// A server under valgrind is slow.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(60);

/// A file and the name of a function that ran in it.
type Ran = BTreeSet<(String, String)>;

pub(crate) fn run(options: &[&str]) -> Result<bool> {
    let binary = match options {
        [] => built_unoptimised()?,
        ["--binary", binary] => {
            Path::new(binary).canonicalize().with_context(|| format!("{binary} cannot be found"))?
        }
        _ => bail!("expected nothing, or --binary FILE, which is `switchboard` without optimisation"),
    };
    let folder = target().join("path");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let (idle, sent) = profile(&binary, &folder)?;
    let files = files_of(&sent, &idle);
    for (file, functions) in &files {
        println!("{functions:>4} functions in {file}");
    }
    println!("{} files", files.len());
    Ok(true)
}

fn built_unoptimised() -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    let built = cargo.args(["build", "-p", "switchboard-cli", "--bin", "switchboard", "--locked"]).status();
    ensure!(built.context("cargo cannot be run")?.success(), "the binary cannot be built");
    Ok(target().join("debug").join("switchboard"))
}

/// What the server runs without a client, and what it runs during a send.
fn profile(binary: &Path, folder: &Path) -> Result<(Ran, Ran)> {
    let out = folder.join("callgrind");
    let server = Server::start(|address| {
        let mut command = Command::new("valgrind");
        command.args(["-q", "--tool=callgrind", "--instr-atstart=no"]);
        command.arg(format!("--callgrind-out-file={}", out.display())).arg(binary);
        command.args(["serve", "--listen", &address.to_string(), "--effects", "some", "--data"]);
        command.arg(folder.join("data")).current_dir(folder).stderr(Stdio::null());
        command
    });
    let server = server.map_err(anyhow::Error::msg).context("is valgrind installed?")?;
    // The first ones fill caches.
    for number in 0..2 {
        send(server.address(), number)?;
    }
    let control = |arguments: &[&str]| -> Result<()> {
        let mut control = Command::new("callgrind_control");
        let done = control.args(arguments).arg(server.pid().to_string()).stdout(Stdio::null()).stderr(Stdio::null());
        ensure!(done.status().context("callgrind_control cannot be run")?.success(), "callgrind does not answer");
        Ok(())
    };
    control(&["-i", "on"])?;
    control(&["-z"])?;
    std::thread::sleep(IDLE);
    control(&["-d", "idle"])?;
    control(&["-z"])?;
    send(server.address(), 2)?;
    control(&["-d", "sent"])?;
    drop(server);
    let [mut idle, mut sent] = [Ran::new(), Ran::new()];
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if !path.is_file() || !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("callgrind.")) {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        match text.lines().find(|line| line.starts_with("desc: Trigger")) {
            Some(line) if line.contains("idle") => idle.extend(ran(&text)),
            Some(line) if line.contains("sent") => sent.extend(ran(&text)),
            _ => {}
        }
    }
    ensure!(!sent.is_empty(), "callgrind has written nothing about the send into {}", folder.display());
    Ok((idle, sent))
}

fn send(address: SocketAddr, number: u32) -> Result<()> {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{number},"method":"SendMessage","params":{{"message":{{"messageId":"m{number}","role":"ROLE_USER","parts":[{{"text":"hello"}}]}}}}}}"#
    );
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    write!(
        socket,
        "POST / HTTP/1.1\r\nHost: {address}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    ensure!(answer.contains("TASK_STATE_COMPLETED"), "the send was answered with {answer:?}");
    Ok(())
}

/// The functions with a cost in a profile of callgrind. Files and functions are named where they first occur, as `(NUMBER) NAME`, and by their
/// number after that. The line after `calls=` is the cost of a callee.
fn ran(profile: &str) -> Ran {
    let (mut files, mut functions) = (HashMap::new(), HashMap::new());
    let (mut file, mut function) = (String::new(), String::new());
    let (mut found, mut is_of_callee) = (Ran::new(), false);
    for line in profile.lines() {
        let named = line.split_once("=(").and_then(|(key, rest)| Some((key, rest.split_once(')')?)));
        if let Some((key, (number, name))) = named {
            let names = if key.ends_with("fn") { &mut functions } else { &mut files };
            let name = match name.trim() {
                "" => names.get(number).cloned().unwrap_or_default(),
                name => {
                    names.insert(number.to_owned(), name.to_owned());
                    name.to_owned()
                }
            };
            match key {
                "fl" | "fi" | "fe" => file = name,
                "fn" => function = name,
                _ => {}
            }
        } else if line.starts_with("calls=") {
            is_of_callee = true;
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            && !std::mem::take(&mut is_of_callee)
        {
            found.insert((file.clone(), function.clone()));
        }
    }
    found
}

/// How many functions ran in each file of the library's crates that did not run without a call.
fn files_of(sent: &Ran, idle: &Ran) -> BTreeMap<String, usize> {
    let mut files = BTreeMap::new();
    for (file, _) in sent.difference(idle) {
        let Some(place) = file.find("crates/switchboard").filter(|_| !file.contains("/registry/")) else { continue };
        let file = &file[place..];
        let of_program = ["crates/switchboard-cli/", "crates/switchboard-allocator/"];
        // What has no lines of its own is put down to the root of its crate.
        let is_left_out = file.contains("/model/") || file.ends_with("/lib.rs");
        if !is_left_out && !of_program.iter().any(|program| file.starts_with(program)) {
            *files.entry(file.to_owned()).or_default() += 1;
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{Ran, files_of, ran};

    const PROFILE: &str = "desc: Trigger: sent\n\
        fl=(1) /src/crates/switchboard/src/agent.rs\nfn=(1) run\n12 30\ncfi=(2) /src/crates/switchboard-core/src/call.rs\ncfn=(2) call\n\
        calls=1 40\n12 900\nfi=(3) /src/crates/switchboard-core/src/model/ids.rs\n+3 2\nfe=(1)\n* 5\n\
        fl=(4) /cargo/registry/src/crates/switchboard-x/src/a.rs\nfn=(3) other\n1 1\nfl=(2)\nfn=(2)\n40 900\n";

    #[test]
    fn a_profile_names_what_ran_and_not_what_was_called() {
        let called = "/src/crates/switchboard-core/src/call.rs".to_owned();
        let all = ran(PROFILE);
        assert_eq!(all.len(), 4);
        assert!(all.contains(&(called.clone(), "call".to_owned())));
        let only_called = PROFILE.split("fl=(4)").next().unwrap_or_default();
        assert!(!ran(only_called).iter().any(|(file, _)| *file == called));
    }

    #[test]
    fn what_runs_anyway_and_what_is_data_is_not_counted() {
        let all = ran(PROFILE);
        let files: Vec<_> = files_of(&all, &Ran::new()).into_keys().collect();
        assert_eq!(files, ["crates/switchboard-core/src/call.rs", "crates/switchboard/src/agent.rs"]);
        assert!(files_of(&all, &all).is_empty());
    }
}

//! The binary as a process: what it prints, what it answers to signals, and its exit codes.

#![allow(clippy::unwrap_used, reason = "a test may say plainly what it knows")]
#![allow(clippy::disallowed_methods, reason = "a thread that reads what a server logs ends with the server")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

fn switchboard(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
    // Settings in the environment of the person who runs the tests, or variables such as NODE_ENV, would change what
    // the server does.
    let kept = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"].iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
    command.args(args).current_dir(folder).env_clear().envs(kept);
    command
}

fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = switchboard(folder, args).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// A server on a free port that has said its lines.
struct Served {
    child: Child,
    curl: String,
}

impl Served {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = switchboard(folder, &["serve", "--listen", "127.0.0.1:0"]);
        Self::start_by(command.args(args))
    }

    fn start_by(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let curl = lines.map(Result::unwrap).find(|line| line.trim().starts_with("curl ")).unwrap();
        Self { child, curl }
    }

    /// Sends a text and does not wait for the work; gives the answer.
    fn send(&self, text: &str) -> String {
        let line = self.curl.replace("\"hello\"", &format!("\"{text}\""));
        let line = line.replace("{\"message\"", "{\"configuration\":{\"returnImmediately\":true},\"message\"");
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Where it is reached.
    fn address(&self) -> &str {
        self.curl.split_whitespace().find_map(|word| word.strip_suffix("/message:send")).unwrap()
    }

    /// Sends a text as a stream.
    fn stream(&self, text: &str) -> Streamed {
        let line = self.curl.replace("\"hello\"", &format!("\"{text}\"")).replace("message:send", "message:stream");
        Streamed::by(&line.replacen("-sS", "-sSN", 1))
    }

    /// How many runs are at work, as the metrics say.
    fn runs_alive(&self) -> u64 {
        let line = format!("curl -sS --max-time 20 {}/metrics", self.address());
        let output = Command::new("sh").arg("-c").arg(line).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let alive = text.lines().find_map(|line| line.strip_prefix("switchboard_runs_alive "));
        alive.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn exit_code(&mut self) -> (Option<i32>, String) {
        let status = self.child.wait().unwrap();
        let mut logs = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut logs).unwrap();
        (status.code(), logs)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only a test that failed has left it running.
        let _ = self.child.kill();
    }
}

/// What a line of a shell prints, line by line.
struct Streamed {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Streamed {
    fn by(line: &str) -> Self {
        let line = line.replacen("curl ", "exec curl --max-time 60 ", 1);
        let mut child =
            Command::new("sh").arg("-c").arg(line).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next event, as its id and its data; none at the end.
    fn event(&mut self) -> Option<(u64, String)> {
        let mut id = None;
        for line in self.lines.by_ref().map_while(Result::ok) {
            if let Some(given) = line.strip_prefix("id: ") {
                id = given.parse().ok();
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((id.unwrap(), data.to_owned()));
            }
        }
        None
    }

    fn rest(&mut self) -> Vec<(u64, String)> {
        std::iter::from_fn(|| self.event()).collect()
    }
}

impl Drop for Streamed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The string that stands in JSON behind a key, as a user would copy it from there.
fn copied<'j>(json: &'j str, key: &str) -> &'j str {
    let begin = json.find(&format!("\"{key}\":\"")).unwrap_or_else(|| panic!("no {key} in {json}")) + key.len() + 4;
    json[begin..].split('"').next().unwrap()
}

fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..2_000 {
        if let Some(seen) = look() {
            return seen;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("never happened: {what}")
}

#[test]
fn exit_codes_tell_usage_from_failure() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(folder.path(), &["serve", "--no-such-flag"]).0, Some(2));
    assert_eq!(run(folder.path(), &["serve", "--help"]).0, Some(0));
    let (code, said, _) = run(folder.path(), &["serve", "--check-config"]);
    assert_eq!((code, said.as_str()), (Some(0), "the configuration is good\n"));
    std::fs::write(folder.path().join("switchboard.toml"), "[server]\nlisten = \"x\"").unwrap();
    for args in [&["serve", "--check-config"][..], &["serve", "--print-config"], &["serve"]] {
        let (code, said, complaint) = run(folder.path(), args);
        assert_eq!((code, said.as_str()), (Some(2), ""));
        let expected = "switchboard: switchboard.toml:2: server.listen: expected ADDRESS:PORT, \
                        as in 127.0.0.1:8080 or [::1]:8080, got \"x\"\n";
        assert_eq!(complaint, expected);
    }
    std::fs::remove_file(folder.path().join("switchboard.toml")).unwrap();
    let mut holder = Served::start(folder.path(), &[]);
    let (code, _, complaint) = run(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(1), "{complaint}");
    assert!(complaint.contains("is in use by process"), "{complaint}");
    let (code, _, complaint) = run(folder.path(), &["db", "reset", "--yes"]);
    assert_eq!((code, complaint.contains("is in use")), (Some(1), true), "{complaint}");
    holder.signal(Signal::TERM);
    assert_eq!(holder.exit_code().0, Some(0));
    assert_eq!(run(folder.path(), &["db", "reset"]).0, Some(2));
    assert_eq!(run(folder.path(), &["db", "reset", "--yes"]).0, Some(0));
}

#[test]
fn the_first_signal_waits_for_work_and_the_second_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let line = "echo $A2A_MESSAGE_FILE > file; echo $$ > pid; trap '' TERM; sleep 600";
    let mut server = Served::start(folder.path(), &["--memory", "--grace", "600", "--exec", line, "--exec-shell"]);
    server.send("hello");
    let pid = eventually("the command works", || {
        let text = std::fs::read_to_string(folder.path().join("pid")).ok()?;
        Pid::from_raw(text.trim().parse().ok()?)
    });
    server.signal(Signal::INT);
    let health = server.curl.split_whitespace().find(|word| word.starts_with("http")).unwrap();
    let health = health.replace("message:send", "healthz");
    eventually("it accepts nothing more", || {
        let asked = Command::new("curl").args(["-sS", "--max-time", "5", &health]).output().unwrap();
        (!asked.status.success()).then_some(())
    });
    assert_eq!(test_kill_process(pid), Ok(()), "work in progress goes on");
    server.signal(Signal::TERM);
    let (code, logs) = server.exit_code();
    assert_eq!(code, Some(1), "{logs}");
    assert!(logs.contains("stopping; a second signal stops at once"), "{logs}");
    let file = std::fs::read_to_string(folder.path().join("file")).unwrap();
    assert!(file.ends_with("message.json\n") && !Path::new(file.trim()).exists(), "{file}");
    eventually("the command is gone", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        (test_kill_process(pid).is_err() || stat.contains(") Z ")).then_some(())
    });
}

#[test]
fn logs_can_be_read_by_machines_and_say_no_message() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Served::start(folder.path(), &["--memory", "--log-format", "json"]);
    let answer = server.send("fail with a secret");
    assert!(answer.contains("TASK_STATE_"), "{answer}");
    server.signal(Signal::TERM);
    let (code, logs) = server.exit_code();
    assert_eq!(code, Some(0), "{logs}");
    for line in logs.lines() {
        assert!(line.starts_with('{') && line.ends_with('}'), "{line}");
    }
    assert!(!logs.contains("secret"), "{logs}");
}

#[test]
fn a_request_is_found_in_a_log_at_debug_level_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = switchboard(folder.path(), &["serve", "--listen", "127.0.0.1:0", "--memory"]);
    let mut server = Served::start_by(command.env("RUST_LOG", "debug"));
    let named = server.curl.replacen("curl ", "curl -H 'x-request-id: my-own-9' ", 1);
    let named = named.replace("\"messageId\"", "\"taskId\":\"nobody\",\"messageId\"");
    let output = Command::new("sh").arg("-c").arg(named).output().unwrap();
    let answer = String::from_utf8(output.stdout).unwrap();
    assert!(answer.contains("TASK_NOT_FOUND"), "{answer}");
    server.signal(Signal::TERM);
    let (_, logs) = server.exit_code();
    let line = logs.lines().find(|line| line.contains("request refused")).expect("the refusal is logged");
    assert!(line.contains("my-own-9"), "{line}");
}

#[test]
fn the_data_folder_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let mut server = Served::start(folder.path(), &[]);
    assert!(server.send("hello").contains("TASK_STATE_COMPLETED"));
    let data = folder.path().join("switchboard-data");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code().0, Some(0));
}

#[test]
fn as_many_files_as_allowed_may_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Served::start(folder.path(), &["--memory"]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.child.id())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let words: Vec<&str> = files.split_whitespace().collect();
    assert_eq!(words[3], words[4], "{files}");
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code().0, Some(0));
}

/// Writes a pair of `tests/certificates` to `cert.pem` and `key.pem`.
fn put_certificate(folder: &Path, pair: [&str; 2]) {
    use std::os::unix::fs::PermissionsExt;
    let certificates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/certificates");
    std::fs::copy(certificates.join(format!("{}.cert.pem", pair[0])), folder.join("cert.pem")).unwrap();
    std::fs::copy(certificates.join(format!("{}.key.pem", pair[1])), folder.join("key.pem")).unwrap();
    std::fs::set_permissions(folder.join("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
}

const TLS: [&str; 4] = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];

/// Which certificate a server shows, found out by which client trusts it.
fn shows(folder: &Path, curl: &str, pair: &str) -> bool {
    let line = curl.replace("--cacert cert.pem", &format!("--cacert {pair}.pem"));
    Command::new("sh").arg("-c").arg(line).current_dir(folder).output().unwrap().status.success()
}

#[test]
fn a_hangup_brings_a_new_certificate_into_use_and_a_bad_one_not() {
    let folder = tempfile::tempdir().unwrap();
    for pair in ["first", "second"] {
        put_certificate(folder.path(), [pair, pair]);
        std::fs::copy(folder.path().join("cert.pem"), folder.path().join(format!("{pair}.pem"))).unwrap();
    }
    put_certificate(folder.path(), ["first", "first"]);
    let mut server = Served::start(folder.path(), &[&["--memory"], &TLS[..]].concat());
    let curl = server.curl.clone();
    assert!(curl.contains(" --cacert cert.pem https://127.0.0.1:"), "{curl}");
    assert!(shows(folder.path(), &curl, "first") && !shows(folder.path(), &curl, "second"));
    put_certificate(folder.path(), ["second", "first"]);
    server.signal(Signal::HUP);
    let url = curl.split_whitespace().find(|word| word.starts_with("https://")).unwrap();
    let metrics = format!("curl -sS --cacert first.pem {}", url.replace("message:send", "metrics"));
    eventually("the bad pair was refused", || {
        let Output { stdout, .. } =
            Command::new("sh").arg("-c").arg(&metrics).current_dir(folder.path()).output().unwrap();
        String::from_utf8(stdout).unwrap().contains("\nswitchboard_tls_reload_failures_total 1\n").then_some(())
    });
    assert!(shows(folder.path(), &curl, "first"));
    put_certificate(folder.path(), ["second", "second"]);
    server.signal(Signal::HUP);
    eventually("the new certificate is in use", || shows(folder.path(), &curl, "second").then_some(()));
    assert!(!shows(folder.path(), &curl, "first"));
    server.signal(Signal::TERM);
    let (code, logs) = server.exit_code();
    assert_eq!(code, Some(0), "{logs}");
    assert!(logs.contains("new certificate not taken") && logs.contains("certificate read again"), "{logs}");
}

#[test]
fn the_outbox_of_a_server_with_tls_is_reached() {
    let folder = tempfile::tempdir().unwrap();
    put_certificate(folder.path(), ["second", "second"]);
    std::fs::copy(folder.path().join("cert.pem"), folder.path().join("other.pem")).unwrap();
    put_certificate(folder.path(), ["first", "first"]);
    let mut server = Served::start(folder.path(), &TLS);
    let url = server.address().to_owned();
    let outbox = |args: &[&str], variables: &[(&str, &str)]| {
        let mut command = switchboard(folder.path(), &["outbox", "list"]);
        let Output { status, stdout, stderr } = command.args(args).envs(variables.iter().copied()).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
    };
    let none = (Some(0), "no dead letters\n".to_owned());
    assert_eq!(outbox(&["--url", &url, "--ca-cert", "cert.pem"], &[]), none);
    let own = |cert| [("SWITCHBOARD_LISTEN", url.strip_prefix("https://").unwrap()), ("SWITCHBOARD_TLS_CERT", cert)];
    assert_eq!(outbox(&[], &own("cert.pem")), none);
    let refused = |why: &str| (Some(1), format!("switchboard: no answer from {url}: {why}\n"));
    let stranger = "no authority that is trusted has issued its certificate; --ca-cert FILE names others";
    assert_eq!(outbox(&["--url", &url], &[]), refused(stranger));
    assert_eq!(outbox(&[], &own("other.pem")), refused("it shows another certificate than that of the configuration"));
    let plain = url.replace("https://", "http://");
    let told = "switchboard: refused with status 400: this port speaks TLS; use https://\n";
    assert_eq!(outbox(&["--url", &plain], &[]), (Some(1), told.to_owned()));
    let wrong =
        "switchboard: none.pem: cannot be read as certificates: I/O error: No such file or directory (os error 2)\n";
    assert_eq!(outbox(&["--url", &url, "--ca-cert", "none.pem"], &[]), (Some(2), wrong.to_owned()));
    server.signal(Signal::TERM);
    assert_eq!(server.exit_code().0, Some(0));
}

#[test]
fn a_key_that_everybody_can_read_is_mentioned_by_a_check() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    put_certificate(folder.path(), ["first", "first"]);
    let check = [&["serve", "--check-config"], &TLS[..]].concat();
    let good = "the configuration is good\n".to_owned();
    assert_eq!(run(folder.path(), &check), (Some(0), good.clone(), String::new()));
    std::fs::set_permissions(folder.path().join("key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let doubt =
        "switchboard: --tls-key: everybody on this machine can read key.pem; `chmod 600 key.pem` keeps it private\n";
    assert_eq!(run(folder.path(), &check), (Some(0), good, doubt.to_owned()));
}

#[test]
fn a_stream_goes_on_at_the_next_chunk_after_a_kill_and_its_line_to_resume_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Served::start(folder.path(), &[]);
    let mut stream = server.stream("stream 40");
    let mut seen: Vec<(u64, String)> = (0..12).map(|_| stream.event().unwrap()).collect();
    server.signal(Signal::KILL);
    server.child.wait().unwrap();
    // What was on its way when the server died was committed before it was sent.
    seen.extend(stream.rest());
    let line = copied(&seen[1].1, "description").split_once(": ").unwrap().1;
    let line = line.replace("Last-Event-ID: 1", &format!("Last-Event-ID: {}", seen.len()));
    let again = Served::start(folder.path(), &[]);
    // A test cannot be sure of getting the same port twice.
    let rest = Streamed::by(&line.replace(server.address(), again.address())).rest();
    seen.extend(rest);
    let ids: Vec<u64> = seen.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, (1..=42).collect::<Vec<_>>());
    for (id, data) in &seen[1..41] {
        assert!(data.contains(&format!("\"chunk {} of 40\\n\"", id - 1)), "{id}: {data}");
        assert_eq!(data.contains("\"append\":true"), *id > 2, "{id}: {data}");
        assert_eq!(data.contains("\"lastChunk\":true"), *id == 41, "{id}: {data}");
    }
    assert!(seen[41].1.contains("TASK_STATE_COMPLETED"), "{seen:?}");
}

#[test]
fn a_question_shows_a_line_that_answers_it() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "0123456789abcdef0123456789abcdef alice\n").unwrap();
    for args in [&["--memory"][..], &["--memory", "--tokens", tokens.to_str().unwrap()]] {
        let server = Served::start(folder.path(), args);
        let paste = |line: &str| {
            let mut shell = Command::new("sh");
            let output = shell.arg("-c").arg(line).env("TOKEN", "0123456789abcdef0123456789abcdef").output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let asked = paste(&server.curl.replace("\"hello\"", "\"ask which colour?\""));
        assert!(asked.contains("TASK_STATE_INPUT_REQUIRED"), "{asked}");
        let answered = paste(copied(&asked, "pasteToAnswer"));
        assert!(answered.contains(r#""text":"I asked: which colour?\nYou said: blue""#), "{answered}");
    }
}

#[test]
fn a_command_that_wants_a_shell_is_mentioned_at_start_and_by_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let hint = "add --exec-shell (shell = true)";
    let (code, _, complaints) = run(folder.path(), &["serve", "--memory", "--exec", "echo a | cat", "--check-config"]);
    assert!(code == Some(0) && complaints.contains(hint), "{complaints}");
    let mut server = Served::start(folder.path(), &["--memory", "--exec", "echo a | cat"]);
    server.signal(Signal::TERM);
    assert!(server.exit_code().1.contains(hint));
}

/// What a server logs, line by line while it runs.
struct Logs(mpsc::Receiver<String>);

impl Logs {
    fn of(server: &mut Served) -> Self {
        let (lines, received) = mpsc::channel();
        let stderr = BufReader::new(server.child.stderr.take().unwrap());
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        Self(received)
    }

    /// Waits for a line that holds `text`.
    fn until(&self, text: &str) {
        loop {
            let line = self.0.recv_timeout(Duration::from_secs(20));
            if line.unwrap_or_else(|_| panic!("never logged: {text}")).contains(text) {
                return;
            }
        }
    }
}

#[test]
fn a_hangup_brings_new_tokens_into_use_and_bad_ones_not() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, bob] = ["a-token-of-alice-for-tests", "b-token-of-bob-for-tests"];
    let tokens = folder.path().join("tokens.txt");
    std::fs::write(&tokens, format!("{alice} alice\n")).unwrap();
    let mut server = Served::start(folder.path(), &["--memory", "--tokens", "tokens.txt"]);
    let logs = Logs::of(&mut server);
    let is_let_in = |curl: &str, token: &str| {
        let line = curl.replace("$TOKEN", token).replacen("curl ", "curl --max-time 20 ", 1);
        let Output { stdout, .. } = Command::new("sh").arg("-c").arg(line).output().unwrap();
        String::from_utf8(stdout).unwrap().contains("TASK_STATE_COMPLETED")
    };
    let curl = server.curl.clone();
    assert!(is_let_in(&curl, alice) && !is_let_in(&curl, bob));
    std::fs::write(&tokens, format!("{bob} bob\nshort eve\n")).unwrap();
    server.signal(Signal::HUP);
    logs.until("new tokens not taken; what was read before stays in use");
    assert!(is_let_in(&curl, alice) && !is_let_in(&curl, bob));
    std::fs::write(&tokens, format!("{bob} bob\n")).unwrap();
    server.signal(Signal::HUP);
    logs.until("tokens read again");
    assert!(!is_let_in(&curl, alice) && is_let_in(&curl, bob), "a token that is gone is refused at once");
    server.signal(Signal::TERM);
    assert_eq!(server.child.wait().unwrap().code(), Some(0));
}

/// Leaves a process behind that is in a session of its own and has an empty environment, writes its number into a file that is named by the
/// message, and goes on if the message says so.
#[cfg(target_os = "linux")]
const LEAVES_A_DAEMON: &str =
    "read -r word; env -i $(command -v setsid) $(command -v sleep) 600 > /dev/null 2>&1 & child=$!
    until read -r pid name state parent group session rest < /proc/$child/stat && [ $session = $child ]; do :; done
    echo $child > $word.new; mv $word.new $word
    case $word in long*) sleep 600;; esac";

#[cfg(target_os = "linux")]
#[test]
fn what_a_command_leaves_in_a_session_of_its_own_with_another_environment_ends_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("cd {}\n{LEAVES_A_DAEMON}", folder.path().display());
    let mut server = Served::start(folder.path(), &["--memory", "--exec", &script, "--exec-shell"]);
    let number = |name: &str| {
        let written = || std::fs::read_to_string(folder.path().join(name)).ok();
        eventually("the process was started", written).trim().parse::<i32>().unwrap()
    };
    let is_alive = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    let is_known = |pid: i32| Path::new(&format!("/proc/{pid}")).exists();
    server.send("first");
    let first = number("first");
    eventually("the process that the command left is gone", || (!is_known(first)).then_some(()));
    // A command that runs keeps its own, while another one that began later ends with what it left.
    let long = copied(&server.send("long"), "id").to_owned();
    let of_long = number("long");
    server.send("later");
    let later = number("later");
    eventually("the second command has ended", || server.runs_alive().eq(&1).then_some(()));
    assert!(is_alive(of_long), "it belongs to a command that runs");
    // It may be of either, so it is there until both have ended.
    let line = format!("curl -sS -X POST {}/tasks/{long}:cancel -H 'A2A-Version: 1.0'", server.address());
    let canceled = Command::new("sh").arg("-c").arg(line).output().unwrap();
    assert!(String::from_utf8_lossy(&canceled.stdout).contains("TASK_STATE_CANCELED"), "{canceled:?}");
    eventually("both processes are gone", || (!is_known(of_long) && !is_known(later)).then_some(()));
    // Those of commands that are cut off by a shutdown end with the server.
    server.send("long-2");
    let last = number("long-2");
    server.signal(Signal::TERM);
    server.signal(Signal::TERM);
    server.child.wait().unwrap();
    eventually("the last process is gone", || (!is_alive(last)).then_some(()));
}

#[test]
fn an_open_server_for_others_is_only_started_on_purpose_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let public = ["serve", "--memory", "--listen", "127.0.0.1:0", "--public-url", "https://agents.example/a2a"];
    let (code, _, complaint) = run(folder.path(), &public);
    assert_eq!(code, Some(2), "{complaint}");
    assert!(complaint.contains("--public-url: https://agents.example/a2a invites clients from other machines"));
    let mut server = Served::start(folder.path(), &["--memory", "--allow-unauthenticated", public[4], public[5]]);
    assert!(server.send("hello").contains("TASK_STATE_"));
    server.signal(Signal::TERM);
    let (code, logs) = server.exit_code();
    assert_eq!(code, Some(0), "{logs}");
    assert!(logs.contains("WARN") && logs.contains("may call without a token"), "{logs}");
}

#[test]
fn proxies_of_the_environment_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &["--memory"]);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let mut command = switchboard(folder.path(), &["card", "get", "-a", served.address()]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env(name, &url);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the proxy was asked");
}

#[test]
fn a_key_that_is_made_signs_the_cards_of_a_running_server_after_a_hangup() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::start(folder.path(), &[]);
    let card = || {
        let (code, card, error) = run(folder.path(), &["card", "get", "-a", served.address(), "-o", "json"]);
        assert_eq!(code, Some(0), "{error}");
        card
    };
    assert!(!card().contains("\"signatures\""), "there is no key yet");
    let (code, made, error) = run(folder.path(), &["keys", "make", "--id", "autumn"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(made.contains("autumn  ES256  signs"), "{made}");
    served.signal(Signal::HUP);
    eventually("the card is signed", || card().contains("\"signatures\"").then_some(()));
}

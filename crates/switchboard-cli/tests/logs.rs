//! What an operator reads: the log of the binary, and its access log.

#![allow(clippy::unwrap_used, reason = "a test may say plainly what it knows")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(60);
/// How often the log is looked at.
const LOOK: Duration = Duration::from_millis(5);

struct Served {
    child: Child,
    address: String,
    /// What it has logged so far.
    logged: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl Served {
    fn start(folder: &Path, args: &[&str], level: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--memory"]).args(args).current_dir(folder);
        command.env_remove("PORT").env_remove("BIND_HOST").env("RUST_LOG", level);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let line = lines.into_iter().find(|line| line.contains("http://127.0.0.1:")).unwrap();
        let address = line.split("http://").nth(1).unwrap().split(['/', ' ', '\'']).next().unwrap().to_owned();
        let logged = Arc::new(Mutex::new(String::new()));
        let (stderr, into) = (BufReader::new(child.stderr.take().unwrap()), logged.clone());
        #[expect(clippy::disallowed_methods, reason = "the test joins it when the server has ended")]
        let reading = std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                let mut logged = into.lock().unwrap();
                logged.push_str(&line);
                logged.push('\n');
            }
        });
        Self { child, address, logged, reading: Some(reading) }
    }

    /// One request; gives the whole answer.
    fn ask(&self, head: &str, body: &str) -> String {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!("{head}\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n");
        write!(socket, "{head}content-type: application/json\r\na2a-version: 1.0\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer
    }

    fn say(&self, text: &str) -> String {
        let message = format!(r#"{{"messageId":"m-{text}","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}"#);
        self.ask("POST /message:send HTTP/1.1", &format!(r#"{{"message":{message}}}"#))
    }

    /// Stops the server and gives what it logged.
    fn logs(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        // Its standard error is closed, so this ends.
        self.reading.take().unwrap().join().unwrap();
        let logs = self.logged.lock().unwrap().clone();
        assert!(status.success(), "{logs}");
        logs
    }

    /// Waits until the log so far shows something.
    fn until(&self, what: &str, shows: impl Fn(&str) -> bool) {
        for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
            if shows(&self.logged.lock().unwrap()) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("never logged: {what} in {}", self.logged.lock().unwrap());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only a test that failed has left it running.
        let _ = self.child.kill();
    }
}

fn lines<'a>(logs: &'a str, what: &str) -> Vec<&'a str> {
    logs.lines().filter(|line| line.contains(what)).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

const TRACEBACK: &str =
    "printf 'Traceback in /srv/secret/tool.py\\n2026-01-01 ERROR forged line\\n\\033[2Jhunter2' >&2; exit 3";

#[test]
fn lines_about_tasks_and_refusals_have_the_id_of_their_trace() {
    let folder = folder();
    let server = Served::start(folder.path(), &["--exec", "exit 3", "--exec-shell"], "info");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let with_trace = |line: &str| format!("{line} HTTP/1.1\r\ntraceparent: 00-{trace}-b7ad6b7169203331-00");
    let message = r#"{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
    server.ask(&with_trace("POST /message:send"), message);
    server.ask(&with_trace("GET /tasks/none"), "");
    server.ask("GET /tasks/none-either HTTP/1.1\r\ntraceparent: 00-not-a-trace-01", "");
    let logs = server.logs();
    let [failed] = lines(&logs, "run failed")[..] else { panic!("{logs}") };
    let [ended] = lines(&logs, "task ended")[..] else { panic!("{logs}") };
    let [refused, without] = lines(&logs, "request refused")[..] else { panic!("{logs}") };
    for line in [failed, ended, refused] {
        assert!(line.contains(&format!("trace_id=\"{trace}\"")), "{line}");
    }
    assert!(!without.contains("trace_id"), "{without}");
}

#[test]
fn a_failed_command_is_in_the_log_with_its_cause_and_hidden_from_its_caller() {
    let folder = folder();
    let server = Served::start(folder.path(), &["--exec", TRACEBACK, "--exec-shell"], "info");
    let answer = server.say("hello");
    assert!(answer.contains("The command exited with status 3 (incident "), "{answer}");
    assert!(!answer.contains("hunter2") && !answer.contains("/srv/secret"), "{answer}");
    let incident = answer.split("(incident ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    let metrics = server.ask("GET /metrics HTTP/1.1", "");
    let counted = |name: &str| metrics.lines().any(|line| line.starts_with(name) && line.ends_with("} 1"));
    assert!(counted("switchboard_runs_failed_total{") && counted("switchboard_runs_ended_total{"), "{metrics}");
    let logs = server.logs();
    let [failed] = lines(&logs, "run failed")[..] else { panic!("{logs}") };
    assert!(failed.contains("WARN") && failed.contains(&incident) && failed.contains("attempt=1"), "{failed}");
    assert!(failed.contains("/srv/secret/tool.py\\n2026-01-01 ERROR forged line"), "{failed}");
    assert!(!logs.contains('\u{1b}'), "{logs}");
    let [ended] = lines(&logs, "task ended")[..] else { panic!("{logs}") };
    assert!(
        ended.contains(" INFO task ended task=")
            && ended.contains("state=\"failed\"")
            && ended.contains("reason=\"error\""),
        "{ended}"
    );
    assert!(ended.contains("attempts=1") && ended.contains("duration_ms="), "{ended}");
    assert!(lines(&logs, "ERROR").iter().all(|line| line.contains("run failed")), "{logs}");
}

#[test]
fn a_completed_task_has_one_line_without_what_was_said() {
    let folder = folder();
    let server = Served::start(folder.path(), &[], "info");
    assert!(server.say("a-word-of-mine").contains("TASK_STATE_COMPLETED"));
    let logs = server.logs();
    let [ended] = lines(&logs, "task ended")[..] else { panic!("{logs}") };
    assert!(ended.contains("state=\"completed\"") && ended.contains("agent="), "{ended}");
    assert!(!logs.contains("a-word-of-mine"), "{logs}");
}

#[test]
fn lines_of_completed_tasks_can_be_switched_off() {
    let folder = folder();
    let server = Served::start(folder.path(), &["--log-completed-tasks=false"], "info");
    assert!(server.say("hello").contains("TASK_STATE_COMPLETED"));
    assert!(server.say("fail").contains("TASK_STATE_FAILED"));
    let logs = server.logs();
    let [ended] = lines(&logs, "task ended")[..] else { panic!("{logs}") };
    assert!(ended.contains("state=\"failed\"") && ended.contains("reason=\"failed\""), "{ended}");
}

#[test]
fn a_caller_reads_everything_where_the_operator_says_so() {
    let folder = folder();
    let args = ["--exec", TRACEBACK, "--exec-shell", "--error-details", "full"];
    let server = Served::start(folder.path(), &args, "info");
    let answer = server.say("hello");
    assert!(answer.contains("The command exited with status 3:\\nTraceback in /srv/secret/tool.py"), "{answer}");
    assert!(server.logs().contains("run failed"));
}

#[test]
fn the_access_log_has_a_line_for_each_request() {
    let folder = folder();
    let server = Served::start(folder.path(), &["--access-log", "access.log"], "warn");
    assert!(server.say("hello").contains("TASK_STATE_COMPLETED"));
    server.ask("GET /healthz HTTP/1.1\r\nx-request-id: my-own-9", "");
    let logs = server.logs();
    let [warned] = logs.lines().collect::<Vec<_>>()[..] else { panic!("one warning, however many call: {logs}") };
    assert!(warned.contains("WARN no tokens are configured: everybody on this machine may call"), "{warned}");
    let access = std::fs::read_to_string(folder.path().join("access.log")).unwrap();
    let [sent, probed] = access.lines().collect::<Vec<_>>()[..] else { panic!("{access}") };
    assert!(sent.contains(" 127.0.0.1:") && sent.contains(" - POST /message:send 200 "), "{sent}");
    assert!(probed.contains(" GET /healthz 200 3 ") && probed.ends_with(" Probe - my-own-9"), "{probed}");

    let refused = Command::new(env!("CARGO_BIN_EXE_switchboard"))
        .args(["serve", "--memory", "--listen", "127.0.0.1:0", "--access-log", "no/such/folder.log"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("--access-log") && said.contains("cannot be written"), "{said}");
}

#[test]
fn a_refusal_says_which_operation_was_refused_why_and_to_whom() {
    let folder = folder();
    std::fs::write(folder.path().join("tokens"), "a-long-token-of-alice alice\n").unwrap();
    let server = Served::start(folder.path(), &["--tokens", "tokens"], "info");
    let bearer = "authorization: Bearer a-long-token-of-alice\r\nx-request-id: my-own-7";
    server.ask(&format!("GET /tasks/nothing HTTP/1.1\r\n{bearer}"), "");
    server.ask("GET /tasks/nothing HTTP/1.1", "");
    let logs = server.logs();
    let [known, unknown] = lines(&logs, "request refused")[..] else { panic!("{logs}") };
    for part in
        ["INFO", "operation=\"GetTask\"", "code=-32001", "reason=\"TASK_NOT_FOUND\"", "principal=alice", "my-own-7"]
    {
        assert!(known.contains(part), "{part} in {known}");
    }
    for part in ["operation=\"unknown\"", "code=-31401", "reason=\"UNAUTHENTICATED\"", "peer=127.0.0.1:"] {
        assert!(unknown.contains(part), "{part} in {unknown}");
    }
}

#[test]
fn a_flood_of_refusals_is_summed_up() {
    let folder = folder();
    let server = Served::start(folder.path(), &[], "info");
    for _ in 0..200 {
        server.ask("GET /nothing-here HTTP/1.1", "");
    }
    let told_of = |logs: &str| {
        let sums = lines(logs, "more requests were refused than are logged one by one");
        let number = |line: &&str| line.rsplit("refusals=").next().unwrap().trim().parse::<usize>().unwrap();
        lines(logs, "request refused").len() + sums.iter().map(number).sum::<usize>()
    };
    server.until("all 200", |logs| told_of(logs) == 200);
    let logs = server.logs();
    assert_eq!(told_of(&logs), 200, "{logs}");
    assert!(lines(&logs, "request refused").len() < 200, "{logs}");
}

#[test]
fn every_request_has_a_line_at_debug_level() {
    let folder = folder();
    let server = Served::start(folder.path(), &[], "debug");
    server.ask("GET /healthz?token=secret HTTP/1.1\r\nx-request-id: my-own-8", "");
    assert!(server.say("a-word-of-mine").contains("TASK_STATE_COMPLETED"));
    let logs = server.logs();
    let answered = lines(&logs, "request answered");
    assert_eq!(answered.len(), 2, "{logs}");
    for part in ["my-own-8", "method=\"GET\"", "path=/healthz", "status=200", "duration_us=", "operation=\"Probe\""] {
        assert!(answered[0].contains(part), "{part} in {}", answered[0]);
    }
    assert!(answered[1].contains("operation=\"SendMessage\""), "{}", answered[1]);
    assert!(!logs.contains("secret") && !logs.contains("a-word-of-mine"), "{logs}");
}

//! What the tests of the client commands share: the binary as a process, a real server to call, and an agent that follows a script
//! and writes down what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// The binary, called in an empty folder with an empty home and no settings.
pub(crate) struct Cli {
    pub(crate) home: tempfile::TempDir,
    variables: Vec<(String, String)>,
    input: Option<String>,
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON documents on standard output, one per line.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// The value of a field of the text output.
    pub(crate) fn field(&self, label: &str) -> &str {
        let start = format!("{label}: ");
        let mut lines = self.stdout.lines();
        lines.find_map(|line| line.strip_prefix(&start)).unwrap_or_else(|| panic!("no {label} in {self:?}"))
    }

    pub(crate) fn error_code(&self) -> String {
        match self.stdout.trim().is_empty() {
            false => self.json_lines().last().unwrap()["error"]["code"].as_str().unwrap().to_owned(),
            true => {
                let mut lines = self.stderr.lines();
                lines.find_map(|line| line.strip_prefix("Error: ")).unwrap_or_else(|| panic!("{self:?}")).to_owned()
            }
        }
    }

    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl Cli {
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("work")).unwrap();
        Self { home, variables: Vec::new(), input: None }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn input(mut self, text: &str) -> Self {
        self.input = Some(text.to_owned());
        self
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.home.path().join("work")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
        command.args(args).current_dir(self.folder()).env_clear().env("HOME", self.home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().cloned());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        let mut command = self.command(args);
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if let (Some(text), Some(mut stdin)) = (&self.input, child.stdin.take()) {
            // A command that does not read its input to the end is as good as one that does.
            let _ = stdin.write_all(text.as_bytes());
        }
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs a command without settings.
pub(crate) fn switchboard(args: &[&str]) -> Ran {
    Cli::new().run(args)
}

/// A `demo-server` on a free port.
pub(crate) struct DemoServer {
    child: Child,
    pub(crate) url: String,
}

impl DemoServer {
    pub(crate) fn start() -> Self {
        Self::by(&["demo-server", "--listen", "127.0.0.1:0"])
    }

    /// The same agent under `serve`, with settings.
    pub(crate) fn with_settings(settings: &[&str]) -> Self {
        let mut args = vec!["serve", "--memory", "--listen", "127.0.0.1:0"];
        args.extend(settings);
        Self::by(&args)
    }

    fn by(args: &[&str]) -> Self {
        let mut command = Cli::new().command(args);
        command.current_dir(std::env::temp_dir());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains("/message:send")).unwrap();
        let url = line.split_whitespace().find_map(|word| word.strip_suffix("/message:send")).unwrap();
        Self { child, url: url.to_owned() }
    }

    /// Runs a command against it.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Cli::new().with("A2ACLI_AGENT_CARD", &self.url).run(args)
    }
}

impl Drop for DemoServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server with TLS on a free port.
pub(crate) struct TlsServer {
    child: Child,
    pub(crate) url: String,
}

impl TlsServer {
    pub(crate) fn start(certificate: &str, key: &str) -> Self {
        let cli = Cli::new();
        let args = ["serve", "--memory", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        let more = ["--interface", "JSONRPC", "--interface", "GRPC"];
        let mut command = cli.command(&args);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains("/.well-known/agent-card.json")).unwrap();
        let url = line.split_whitespace().find_map(|word| word.strip_suffix("/.well-known/agent-card.json")).unwrap();
        Self { child, url: url.to_owned() }
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A request that a scripted agent got.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The method of JSON-RPC.
    pub(crate) fn rpc(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn is_card(&self) -> bool {
        self.path.starts_with("/.well-known/")
    }
}

/// Writes the answer to one request.
pub(crate) struct Answer<'a> {
    stream: &'a mut TcpStream,
    id: Value,
}

impl Answer<'_> {
    pub(crate) fn raw(&mut self, status: u16, content_type: &str, body: &str) {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let _ = self.stream.write_all(head.as_bytes()).and_then(|()| self.stream.write_all(body.as_bytes()));
    }

    pub(crate) fn json(&mut self, status: u16, body: &Value) {
        self.raw(status, "application/json", &body.to_string());
    }

    /// A result of JSON-RPC.
    pub(crate) fn result(&mut self, result: Value) {
        let id = self.id.clone();
        self.json(200, &json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    /// An error of JSON-RPC.
    pub(crate) fn error(&mut self, code: i64, message: &str) {
        let id = self.id.clone();
        self.json(200, &json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }));
    }

    /// Begins a stream. It ends with the connection.
    pub(crate) fn stream(&mut self) {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let _ = self.stream.write_all(head.as_bytes());
    }

    pub(crate) fn event(&mut self, result: Value) {
        let event = json!({ "jsonrpc": "2.0", "id": self.id, "result": result });
        let _ = self.stream.write_all(format!("data: {event}\n\n").as_bytes()).and_then(|()| self.stream.flush());
    }

    /// Waits until the other side has gone.
    pub(crate) fn until_closed(&mut self) {
        let _ = self.stream.read(&mut [0; 16]);
    }
}

/// An agent that follows a script.
pub(crate) struct ScriptedAgent {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

type Script = dyn Fn(&Seen, &mut Answer<'_>) + Send + Sync;

impl ScriptedAgent {
    /// Serves this card, and answers everything else by the script. `card` is given the URL of the agent.
    pub(crate) fn start(
        card: impl Fn(&str) -> Value + Send + Sync + 'static,
        script: impl Fn(&Seen, &mut Answer<'_>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (at, log, script) = (url.clone(), seen.clone(), Arc::new(script) as Arc<Script>);
        let card = Arc::new(card(&at));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (card, log, script) = (card.clone(), log.clone(), script.clone());
                std::thread::spawn(move || serve(stream, &card, &log, &script));
            }
        });
        Self { url, seen }
    }

    /// An agent with an ordinary card.
    pub(crate) fn ordinary(script: impl Fn(&Seen, &mut Answer<'_>) + Send + Sync + 'static) -> Self {
        Self::start(|url| card(url, true), script)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// What it was asked beside its card.
    pub(crate) fn calls(&self) -> Vec<Seen> {
        self.seen().into_iter().filter(|seen| !seen.is_card()).collect()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Cli::new().with("A2ACLI_AGENT_CARD", &self.url).run(args)
    }
}

fn serve(mut stream: TcpStream, card: &Value, log: &Mutex<Vec<Seen>>, script: &Arc<Script>) {
    let Some(seen) = read_request(&stream) else { return };
    log.lock().unwrap().push(seen.clone());
    let mut answer = Answer { stream: &mut stream, id: seen.body["id"].clone() };
    match seen.path == "/.well-known/agent-card.json" && !card.is_null() {
        true => answer.json(200, card),
        false => script(&seen, &mut answer),
    }
}

fn read_request(stream: &TcpStream) -> Option<Seen> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let path = words.nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut seen = Seen { path, headers, body: Value::Null };
    let length = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(seen)
}

/// A card with one JSON-RPC interface.
pub(crate) fn card(url: &str, streaming: bool) -> Value {
    json!({
        "name": "Scripted", "description": "Follows a script", "version": "1",
        "supportedInterfaces": [{ "url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "capabilities": { "streaming": streaming },
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{ "id": "s", "name": "S", "description": "d", "tags": ["t"] }],
    })
}

/// The same with some members replaced.
pub(crate) fn card_with(url: &str, members: Value) -> Value {
    let mut card = card(url, false);
    for (name, value) in members.as_object().unwrap() {
        card[name] = value.clone();
    }
    card
}

/// A task in this state.
pub(crate) fn task(state: &str) -> Value {
    json!({ "id": "t-1", "contextId": "c-1", "status": { "state": state, "timestamp": "2026-01-01T00:00:00Z" } })
}

pub(crate) fn status(state: &str) -> Value {
    json!({ "statusUpdate": { "taskId": "t-1", "contextId": "c-1", "status": { "state": state } } })
}

pub(crate) fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

//! Two apps of a workspace as two processes, one of which calls the other and is answered later. One of them is killed in the middle of
//! that, and the secret of their organization is replaced and passed on, both under load: no call fails for it. The processes are this test
//! itself, started once more.

use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};
use switchboard::client::{Client, Credentials, RetryPolicy};
use switchboard::outbound::{self, AddressPolicy, RequestLimits};
use switchboard::{
    AgentBuilder, AgentCallError, AgentClient, AgentError, CallError, CallErrorKind, Limits, Server, ServerBuilder,
    SharedSecret, Task, TaskState, Tokens, Turn,
};
use switchboard_hub::callees::DirectoryCallees;
use switchboard_hub::directory::{Directory, Sources, WorkspaceCaller, WorkspacePeers};

use super::process::{OwnProcess, free_addr, verify};
use crate::support::callers::say;
use crate::support::issuers::{hs256, now_s};
use crate::support::limit::Limit;

const APP: &str = "SWITCHBOARD_TEST_WORKSPACE_APP";
const TEST: &str = "crash::workspaces::no_call_fails_when_an_app_is_killed_and_secrets_are_replaced";

const SECRET: &str = "a-secret-of-acme-alone";
const DOMAIN: &str = "acme.example";
const USER: &str = "alice@acme.example";
const OPS: &str = "o-token-of-ops-for-tests";
const PLACE: &str = "/_agent-native/org/a2a-secret";

/// How soon what cannot be done yet is tried again.
const AGAIN: Duration = Duration::from_millis(50);
/// Clients that send letters all the time.
const CLIENTS: usize = 3;
/// Letters whose answers are outstanding when an app is killed.
const HELD: usize = 3;

#[test]
fn no_call_fails_when_an_app_is_killed_and_secrets_are_replaced() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let Ok(app) = std::env::var(APP) {
        return runtime.block_on(App::read(&app).serve());
    }
    let _limit = Limit::new();
    for is_caller_killed in [true, false] {
        runtime.block_on(kill_one(is_caller_killed));
    }
}

/// One of the two apps, as the process that serves it is told.
struct App {
    /// `desk` calls `mail`.
    id: String,
    folder: PathBuf,
    addr: SocketAddr,
    mail: SocketAddr,
}

impl App {
    fn read(told: &str) -> Self {
        let told: Value = serde_json::from_str(told).unwrap();
        let text = |key: &str| told[key].as_str().unwrap().to_owned();
        Self {
            id: text("id"),
            folder: text("folder").into(),
            addr: text("addr").parse().unwrap(),
            mail: text("mail").parse().unwrap(),
        }
    }

    fn start(&self) -> OwnProcess {
        let told = json!({"id": self.id, "folder": self.folder, "addr": self.addr, "mail": self.mail}).to_string();
        OwnProcess::start(TEST, &[(APP, told.as_ref())])
    }

    async fn serve(self) {
        let secrets = SharedSecret::default().with_orgs_of(self.folder.join("org-secrets.txt")).unwrap();
        let tokens = Tokens::parse(&format!("{OPS} ops +operator\n")).unwrap();
        let builder = Server::builder().tokens(tokens).shared_secret(secrets.clone());
        let builder = builder.sqlite(self.folder.join("data/switchboard.db"));
        let builder = if self.id == "desk" { self.desk(builder, &secrets).await } else { self.mail(builder) };
        let bound = builder.build().unwrap().bind(self.addr).await.unwrap();
        println!("listening on {}", bound.local_addr());
        bound.run_until(pending(), Duration::ZERO).await;
    }

    async fn desk(&self, builder: ServerBuilder, secrets: &SharedSecret) -> ServerBuilder {
        let apps = json!([
            {"id": "desk", "path": "/desk", "url": format!("http://{}", self.addr)},
            {"id": "mail", "path": "/mail", "url": format!("http://{}", self.mail)},
        ]);
        let sources = Sources::new("/nowhere").manifest(apps.to_string()).own_id("desk");
        let caller = WorkspaceCaller::new("").with_org_of(DOMAIN, secrets);
        let directory = Directory::open(sources.clone()).await.with_workspace(caller);
        let callees = DirectoryCallees::new(directory, Client::builder().build().unwrap());
        // Looks often, so that an answer that comes while an app is down is not waited for long.
        let mut limits = Limits::default();
        (limits.continuation_pause_ms, limits.continuation_attempts_max) = (500, 1_000);
        let agent = AgentBuilder::from_fn("Desk", ask_mail);
        let builder = builder.agent(agent).callees(Arc::new(callees)).engine_limits(limits);
        builder.org_peers(WorkspacePeers::new(sources).unwrap())
    }

    /// Answers letters at once, but for those that are held until the file is there.
    fn mail(&self, builder: ServerBuilder) -> ServerBuilder {
        let gate = self.folder.join("open");
        builder.agent(AgentBuilder::from_fn("Mail", move |turn: Turn| {
            let gate = gate.clone();
            async move {
                let text = turn.text();
                while text.starts_with("held") && !gate.exists() {
                    tokio::time::sleep(AGAIN).await;
                }
                Ok(turn.answer(format!("sent {text}")).await?)
            }
        }))
    }
}

/// Passes a letter on, and says what came of it when the answer is there.
async fn ask_mail(turn: Turn) -> Result<(), AgentError> {
    if let Some(back) = turn.called_back().await? {
        return Ok(turn.answer(format!("{} {}: {}", back.agent, back.state.word(), back.text)).await?);
    }
    loop {
        match turn.call("mail", turn.text()).await {
            Ok(_) => return Ok(turn.ask("I have asked mail and come back to you").await?),
            Err(AgentCallError::Unreachable { .. }) => tokio::time::sleep(AGAIN * 4).await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether an error says only that the app is not there at the moment.
fn is_away(error: &CallError) -> bool {
    matches!(
        error.kind(),
        CallErrorKind::Unreachable
            | CallErrorKind::TimedOut
            | CallErrorKind::Broken
            | CallErrorKind::OutcomeUnknown
            | CallErrorKind::StreamEndedEarly
    ) || error.is_retryable()
}

/// The answer; none, after a pause, if the app is not there at the moment.
async fn unless_away<T>(what: &str, answer: Result<T, CallError>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) if is_away(&error) => {
            tokio::time::sleep(AGAIN).await;
            None
        }
        Err(error) => panic!("{what}: {error}"),
    }
}

async fn desk_at(addr: SocketAddr) -> AgentClient {
    // The first secret of the organization is good for an hour after it was replaced.
    let token = hs256(&json!({"sub": USER, "org_domain": DOMAIN, "exp": now_s() + 600}), SECRET);
    let client = Client::builder().credentials(Credentials::bearer(token)).retry(RetryPolicy::never());
    client.build().unwrap().agent(&format!("http://{addr}")).await.unwrap()
}

/// Sends a letter; the task waits for its answer then.
async fn send_letter(desk: &AgentClient, text: &str) -> Arc<Task> {
    let key = format!("key of {text}");
    let desk = desk.clone().with_caller(|caller| caller.idempotency_key = Some(key));
    let mut letter = say(text);
    letter.message.message_id = format!("letter {text}").into();
    loop {
        if let Some(sent) = unless_away("a letter", desk.send_with(letter.clone()).await).await {
            return sent.into_task().unwrap();
        }
    }
}

async fn delivered(desk: &AgentClient, task: &Task, text: &str) {
    let ended = loop {
        match unless_away("a task", desk.task(&task.id).await).await {
            Some(task) if task.state().is_terminal() => break task,
            _ => tokio::time::sleep(AGAIN).await,
        }
    };
    assert_eq!(ended.state(), TaskState::Completed, "{text}: {ended:?}");
    assert_eq!(ended.artifacts[0].text(), format!("mail completed: sent {text}"));
}

/// Asks an app as its operator.
async fn operate(addr: SocketAddr, method: &str, path: &str) -> Value {
    let client = outbound::Client::builder().policy(AddressPolicy::any()).build().unwrap();
    let request = Request::builder().method(method).uri(format!("http://{addr}{path}"));
    let request = request.header("authorization", format!("Bearer {OPS}")).header("content-type", "application/json");
    let answer =
        client.send(request.body(Bytes::from_static(b"{}")).unwrap(), &RequestLimits::default()).await.unwrap();
    serde_json::from_slice(&answer.into_body().bytes().await.unwrap()).unwrap()
}

fn app(root: &Path, id: &str, addr: SocketAddr, mail: SocketAddr) -> App {
    let folder = root.join(id);
    std::fs::create_dir_all(folder.join("data")).unwrap();
    std::fs::write(folder.join("org-secrets.txt"), format!("{DOMAIN} {SECRET}\n")).unwrap();
    App { id: id.to_owned(), folder, addr, mail }
}

async fn kill_one(is_caller_killed: bool) {
    let root = tempfile::tempdir().unwrap();
    let (desk_addr, mail_addr) = (free_addr(), free_addr());
    let desk_app = app(root.path(), "desk", desk_addr, mail_addr);
    let mail_app = app(root.path(), "mail", mail_addr, mail_addr);
    let (mut mail_process, mut desk_process) = (mail_app.start(), desk_app.start());
    let desk = desk_at(desk_addr).await;

    let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (desk, is_over, done) = (desk.clone(), is_over.clone(), done.clone());
            tokio::spawn(async move {
                let mut number = 0;
                while !is_over.load(Ordering::SeqCst) {
                    let text = format!("letter {client}-{number}");
                    let task = send_letter(&desk, &text).await;
                    delivered(&desk, &task, &text).await;
                    number += 1;
                    done.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let more_letters = async |count: usize| {
        let until = done.load(Ordering::SeqCst) + count;
        while done.load(Ordering::SeqCst) < until {
            assert!(!clients.iter().any(tokio::task::JoinHandle::is_finished), "a client has failed");
            tokio::time::sleep(AGAIN).await;
        }
    };
    let replace = async || {
        let replaced = operate(desk_addr, "PUT", PLACE).await;
        assert!(replaced["a2aSecret"].is_string(), "{replaced}");
    };
    let pass_on = async || {
        let told = operate(desk_addr, "POST", &format!("{PLACE}/sync")).await;
        assert_eq!((&told["total"], &told["succeeded"]), (&json!(1), &json!(1)), "{told}");
    };

    more_letters(CLIENTS).await;
    replace().await;
    more_letters(CLIENTS).await;
    pass_on().await;
    let mut held = Vec::new();
    for number in 0..HELD {
        let text = format!("held {number}");
        let task = send_letter(&desk, &text).await;
        assert_eq!(task.state(), TaskState::InputRequired, "{task:?}");
        held.push((text, task));
    }
    // One knows the newest secret alone when the other is killed.
    replace().await;
    if is_caller_killed {
        drop(desk_process);
        desk_process = desk_app.start();
    } else {
        drop(mail_process);
        mail_process = mail_app.start();
    }
    more_letters(CLIENTS).await;
    pass_on().await;
    replace().await;
    more_letters(CLIENTS).await;
    std::fs::write(mail_app.folder.join("open"), "").unwrap();
    for (text, task) in &held {
        delivered(&desk, task, text).await;
    }
    pass_on().await;
    is_over.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    drop((desk_process, mail_process));
    for app in [desk_app, mail_app] {
        verify(&app.folder.join("data"));
    }
}

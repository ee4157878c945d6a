//! The secrets of organizations: read, replaced, passed on to the other apps of a workspace and taken from them, with the answers of
//! agent-native, and without a call that fails meanwhile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use switchboard::client::Client;
use switchboard::{Server, ServerBuilder, SharedSecret, Tokens};
use switchboard_hub::directory::{Directory, Sources, WorkspaceCaller, WorkspacePeers};
use tempfile::TempDir;

use crate::support::edge::{Answer, Edge, echo, get, post, request, with};
use crate::support::grpc::Served;
use crate::support::issuers::{hs256, now_s};

const SECRET: &str = "a-secret-of-acme-alone";
const NEW: &str = "a-newer-secret-of-acme";
const DOMAIN: &str = "acme.example";
const OPS: &str = "o-token-of-ops-for-tests";
const ALICE: &str = "a-token-of-alice-for-tests";
const PLACE: &str = "/_agent-native/org/a2a-secret";
const RECEIVE: &str = "/_agent-native/org/a2a-secret/receive";

/// A file of secrets, and the folder that it is in.
fn secrets_file(secret: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("org-secrets.txt");
    std::fs::write(&file, format!("# of one organization\n{DOMAIN} {secret}\n")).unwrap();
    (folder, file)
}

fn server(file: &Path) -> ServerBuilder {
    let tokens = Tokens::parse(&format!("{OPS} ops +operator\n{ALICE} alice\n")).unwrap();
    let secrets = SharedSecret::default().with_orgs_of(file).unwrap();
    Server::builder().agent(echo()).tokens(tokens).shared_secret(secrets)
}

fn by(token: &str, request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
    with(request, "authorization", &format!("Bearer {token}"))
}

fn put(body: &Value) -> Request<Full<Bytes>> {
    with(request(Method::PUT, PLACE, body.to_string()), "content-type", "application/json")
}

/// A token of a member of the organization.
fn token(domain: &str, secret: &str) -> String {
    hs256(&json!({"sub": "bob@acme.example", "org_domain": domain, "exp": now_s() + 60}), secret)
}

fn pushed(domain: &str, secret: &str) -> Request<Full<Bytes>> {
    post(RECEIVE, json!({"secret": secret, "orgDomain": domain}).to_string())
}

/// The status and the message of an answer.
fn said(answer: &Answer) -> (u16, String) {
    let json = answer.json();
    let text = json["message"].as_str().or(json["error"].as_str()).unwrap_or_default();
    (answer.status.as_u16(), text.to_owned())
}

async fn calls(edge: &Edge, secret: &str) -> u16 {
    edge.ask(by(&token(DOMAIN, secret), get("/tasks"))).await.status.as_u16()
}

#[tokio::test]
async fn an_operator_reads_and_replaces_a_secret_and_both_are_good() {
    let (_folder, file) = secrets_file(SECRET);
    let edge = Edge::new(server(&file));
    let shown = edge.ask(by(OPS, get(PLACE))).await;
    assert_eq!((shown.json(), shown.header("cache-control")), (json!({"a2aSecret": SECRET}), "no-store"));
    assert_eq!([calls(&edge, SECRET).await, calls(&edge, NEW).await], [200, 401]);
    let replaced = edge.ask(by(OPS, put(&json!({"secret": format!("  {NEW} ")})))).await.json();
    assert_eq!(replaced, json!({"a2aSecret": NEW, "previousSecret": SECRET}));
    assert_eq!([calls(&edge, SECRET).await, calls(&edge, NEW).await], [200, 200]);
    // It is in the file, so that the next server knows both.
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with(&format!("# of one organization\n{DOMAIN} {NEW} {SECRET} 2")), "{text}");
    let next = Edge::new(server(&file));
    assert_eq!([calls(&next, SECRET).await, calls(&next, NEW).await], [200, 200]);
    // Without one of the operator's own, a random one is made.
    let made = edge.ask(by(OPS, put(&json!({})))).await.json();
    assert_eq!((made["previousSecret"].as_str(), made["a2aSecret"].as_str().unwrap().len()), (Some(NEW), 43));
    assert_eq!([calls(&edge, SECRET).await, calls(&edge, NEW).await], [200, 200]);
    // An organization that is not there yet gets its first one.
    let first = edge.ask(by(OPS, put(&json!({"orgDomain": "Globex.example", "secret": "a-secret-of-globex"})))).await;
    assert_eq!(first.json(), json!({"a2aSecret": "a-secret-of-globex", "previousSecret": null}));
    assert_eq!(said(&edge.ask(by(OPS, get(PLACE))).await), (400, "No active organization".to_owned()), "there are two");
    let asked = edge.ask(by(OPS, get(&format!("{PLACE}?orgDomain=globex.example")))).await;
    assert_eq!(asked.json(), json!({"a2aSecret": "a-secret-of-globex"}));
}

#[tokio::test]
async fn only_operators_may_and_other_methods_are_refused() {
    let (_folder, file) = secrets_file(SECRET);
    let edge = Edge::new(server(&file));
    let sync = || post(&format!("{PLACE}/sync"), "{}");
    for (asked, what) in [(get(PLACE), "read"), (put(&json!({"secret": NEW})), "manage"), (sync(), "sync")] {
        let refused = said(&edge.ask(by(ALICE, asked.clone())).await);
        assert_eq!(refused, (403, format!("Only owners and admins can {what} the A2A secret")));
        assert_eq!(edge.ask(asked).await.status, 401, "{what}");
    }
    for asked in [post(PLACE, "{}"), get(&format!("{PLACE}/sync")), get(RECEIVE)] {
        assert_eq!(said(&edge.ask(by(OPS, asked)).await), (405, "Method not allowed".to_owned()));
    }
    for bad in ["short", "with a space in the middle", "#begins-a-comment-here"] {
        assert_eq!(edge.ask(by(OPS, put(&json!({"secret": bad})))).await.status, 400, "{bad}");
    }
    assert_eq!(calls(&edge, SECRET).await, 200);
    // A server without organizations has none to show.
    let without =
        Edge::new(Server::builder().agent(echo()).tokens(Tokens::parse(&format!("{OPS} ops +operator")).unwrap()));
    assert_eq!(said(&without.ask(by(OPS, get(PLACE))).await), (400, "No active organization".to_owned()));
    let none = without.ask(by(&token(DOMAIN, SECRET), pushed(DOMAIN, NEW))).await;
    assert_eq!(said(&none), (404, "No local org matches that domain".to_owned()));
}

#[tokio::test]
async fn a_secret_of_another_app_is_taken_with_a_token_under_the_one_before() {
    let (_folder, file) = secrets_file(SECRET);
    let edge = Edge::new(server(&file));
    let text = |text: &str| text.to_owned();
    let expired = hs256(&json!({"sub": "bob", "org_domain": DOMAIN, "exp": now_s() - 1}), SECRET);
    let endless = hs256(&json!({"sub": "bob", "org_domain": DOMAIN}), SECRET);
    let good = token(DOMAIN, SECRET);
    let missing = post(RECEIVE, json!({"secret": " ", "orgDomain": DOMAIN}).to_string());
    for (asked, expected) in [
        (pushed(DOMAIN, NEW), (401, text("Bearer token required"))),
        (by(&good, missing), (400, text("secret and orgDomain are required"))),
        (by(&good, post(RECEIVE, "no json")), (400, text("secret and orgDomain are required"))),
        (by("no.token", pushed(DOMAIN, NEW)), (401, text("Malformed JWT"))),
        (by(&good, pushed("other.example", NEW)), (401, text("JWT org_domain does not match request body"))),
        (
            by(&token("other.example", SECRET), pushed("other.example", NEW)),
            (404, text("No local org matches that domain")),
        ),
        (by(&token(DOMAIN, NEW), pushed(DOMAIN, NEW)), (401, text("Invalid or expired JWT signature"))),
        (by(&expired, pushed(DOMAIN, NEW)), (401, text("Invalid or expired JWT signature"))),
        (by(&endless, pushed(DOMAIN, NEW)), (401, text("Invalid or expired JWT signature"))),
        (by(OPS, pushed(DOMAIN, NEW)), (401, text("Malformed JWT"))),
    ] {
        assert_eq!(said(&edge.ask(asked).await), expected);
        assert_eq!([calls(&edge, SECRET).await, calls(&edge, NEW).await], [200, 401], "{expected:?} changes nothing");
    }
    let taken = edge.ask(by(&good, pushed("ACME.example", NEW))).await;
    assert_eq!((taken.status.as_u16(), taken.json()), (200, json!({"ok": true, "orgId": DOMAIN})));
    assert_eq!([calls(&edge, SECRET).await, calls(&edge, NEW).await], [200, 200]);
    // Told again, nothing changes; and what was replaced does not come back.
    let written = std::fs::read_to_string(&file).unwrap();
    for again in [NEW, SECRET] {
        assert_eq!(edge.ask(by(&good, pushed(DOMAIN, again))).await.status, 200);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written);
    // The address of an app of this server is as good.
    let third = json!({"secret": "a-third-secret-of-acme", "orgDomain": DOMAIN}).to_string();
    assert_eq!(edge.ask(by(&good, post(&format!("/apps/echo{RECEIVE}"), third))).await.status, 200);
    assert_eq!(calls(&edge, "a-third-secret-of-acme").await, 200);
}

/// An app of a workspace on a port of its own, with its own copy of the secrets.
struct App {
    served: Served,
    secrets: SharedSecret,
    _folder: TempDir,
}

impl App {
    async fn start(secret: &str, peers: Option<WorkspacePeers>) -> Self {
        let (folder, file) = secrets_file(secret);
        let secrets = SharedSecret::default().with_orgs_of(&file).unwrap();
        let tokens = Tokens::parse(&format!("{OPS} ops +operator\n")).unwrap();
        let mut builder = Server::builder().agent(echo()).tokens(tokens).shared_secret(secrets.clone());
        if let Some(peers) = peers {
            builder = builder.org_peers(peers);
        }
        Self { served: Served::start(builder).await, secrets, _folder: folder }
    }

    fn url(&self) -> String {
        format!("http://{}", self.served.address)
    }

    async fn operate(&self, method: &str, path: &str) -> Value {
        let client = switchboard::outbound::Client::builder();
        let client = client.policy(switchboard::outbound::AddressPolicy::any()).build().unwrap();
        let request = Request::builder().method(method).uri(format!("{}{path}", self.url()));
        let request =
            request.header("authorization", format!("Bearer {OPS}")).header("content-type", "application/json");
        let request = request.body(Bytes::from_static(b"{}")).unwrap();
        let answer = client.send(request, &switchboard::outbound::RequestLimits::default()).await.unwrap();
        serde_json::from_slice(&answer.into_body().bytes().await.unwrap()).unwrap()
    }
}

fn manifest(apps: &[(&str, &str)]) -> String {
    let apps = apps.iter().map(|(id, url)| json!({"id": id, "path": format!("/{id}"), "url": url}));
    Value::from_iter(apps).to_string()
}

#[tokio::test]
async fn a_secret_is_replaced_and_passed_on_under_load_and_no_call_fails() {
    let (mail, notes) = (App::start(SECRET, None).await, App::start(SECRET, None).await);
    let apps = manifest(&[("desk", "http://127.0.0.1:1"), ("mail", &mail.url()), ("notes", &notes.url())]);
    let sources = Sources::new("/nowhere").manifest(&apps).own_id("desk");
    let desk = App::start(SECRET, Some(WorkspacePeers::new(sources.clone()).unwrap())).await;
    let directory = Directory::open(sources).await;
    // The desk calls the others all the time, as a user of the organization.
    let caller = WorkspaceCaller::new("").with_org_of(DOMAIN, &desk.secrets);
    let (is_over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let calling = ["mail", "notes"].map(|name| {
        let entry = directory.known().find(name).unwrap().clone();
        let (caller, is_over, done) = (caller.clone(), is_over.clone(), done.clone());
        tokio::spawn(async move {
            while !is_over.load(Ordering::SeqCst) {
                let credentials = caller.credentials("alice@acme.example", &entry).unwrap();
                let client = Client::builder().credentials(credentials).build().unwrap();
                let agent = client.agent(&entry.url).await.unwrap();
                let number = done.fetch_add(1, Ordering::SeqCst);
                let text = format!("hello {number}");
                assert_eq!(agent.send_text(&text).await.unwrap().text(), text);
            }
        })
    });
    let more_calls = async |count: usize| {
        let until = done.load(Ordering::SeqCst) + count;
        while done.load(Ordering::SeqCst) < until {
            tokio::task::yield_now().await;
        }
    };
    for _ in 0..3 {
        more_calls(4).await;
        let replaced = desk.operate("PUT", PLACE).await;
        more_calls(4).await;
        let synced = desk.operate("POST", &format!("{PLACE}/sync")).await;
        let result =
            |id: &str, name: &str, url: String| json!({"id": id, "name": name, "url": url, "ok": true, "status": 200});
        let results = json!([result("mail", "Mail", mail.url()), result("notes", "Notes", notes.url())]);
        assert_eq!(synced, json!({"total": 2, "succeeded": 2, "failed": 0, "results": results}));
        for app in [&mail, &notes] {
            assert_eq!(app.secrets.secrets_of(DOMAIN)[0], replaced["a2aSecret"].as_str().unwrap());
        }
    }
    more_calls(4).await;
    is_over.store(true, Ordering::SeqCst);
    for calling in calling {
        calling.await.unwrap();
    }
}

#[tokio::test]
async fn an_app_that_is_gone_or_knows_another_secret_is_told_of_and_outsiders_are_not_asked() {
    let stranger = App::start("another-secret-altogether", None).await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("remote-agents")).unwrap();
    let outside = json!({"name": "Outside", "url": stranger.url()}).to_string();
    std::fs::write(folder.path().join("remote-agents/outside.json"), outside).unwrap();
    let apps = manifest(&[("gone", "http://127.0.0.1:1"), ("plain", "http://10.0.0.1"), ("stranger", &stranger.url())]);
    let sources = Sources::new(folder.path()).manifest(apps);
    let (_folder, file) = secrets_file(SECRET);
    let edge = Edge::new(server(&file).org_peers(WorkspacePeers::new(sources).unwrap()));
    let synced = edge.ask(by(OPS, post(&format!("{PLACE}/sync"), ""))).await.json();
    assert_eq!([&synced["total"], &synced["succeeded"], &synced["failed"]], [3, 0, 3], "{synced:#}");
    let error = |at: usize| synced["results"][at]["error"].as_str().unwrap().to_owned();
    assert!(synced["results"][0].get("status").is_none(), "{synced:#}");
    assert_eq!(error(1), "a secret is not sent to another machine without TLS; use https");
    assert_eq!(
        (synced["results"][2]["status"].as_u64(), error(2)),
        (Some(401), "it has answered 401 Unauthorized".to_owned())
    );
}

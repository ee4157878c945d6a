//! Artifacts too large for a reply: the link that stands for them, and what it leads to.

use http::{Method, StatusCode};
use serde_json::Value;
use switchboard::{AgentBuilder, Limits, Part, Server, ServerBuilder, Tokens, Turn};
use tokio::sync::watch;

use crate::support::edge::{Answer, Edge, get, message, post, request, with};

const PIECE: usize = 100_000;
const PIECES: usize = 15;

/// A byte of the file that the agent writes.
fn byte(at: usize) -> u8 {
    (at * 31 % 251) as u8
}

fn file(bytes: std::ops::Range<usize>) -> Vec<u8> {
    bytes.map(byte).collect()
}

/// Writes a file in pieces, or a page as the message names it; `slowly` waits for the test before the last piece.
fn writer(go_on: watch::Receiver<bool>) -> AgentBuilder {
    AgentBuilder::from_fn("Writer", move |turn: Turn| {
        let mut go_on = go_on.clone();
        async move {
            if turn.text() == "page" {
                let page = Part::text("<script>".repeat(100_000)).with_media_type("text/html");
                turn.artifact_writer().with_id("a/b").finish(vec![page.with_filename("../x.html")]).await?;
                return Ok(());
            }
            let mut writer = turn.artifact_writer().with_name("file");
            for piece in 0..PIECES {
                if piece == PIECES - 1 && turn.text() == "slowly" {
                    let _ = go_on.wait_for(|go| *go).await;
                }
                let part = Part::raw(file(piece * PIECE..(piece + 1) * PIECE));
                writer.parts(vec![part.with_filename("f.bin").with_media_type("application/x-f")]).await?;
            }
            Ok(())
        }
    })
}

fn server() -> ServerBuilder {
    server_that(watch::channel(true).1)
}

fn server_that(go_on: watch::Receiver<bool>) -> ServerBuilder {
    let limits = Limits { reply_bytes_max: 1 << 20, ..Limits::default() };
    Server::builder()
        .agent(writer(go_on))
        .engine_limits(limits)
        .allow_unauthenticated(true)
        .public_url("https://agents.example/base")
}

/// Sends a text and gives the artifact in the answer.
async fn artifact(edge: &Edge, text: &str) -> Value {
    edge.post("/message:send", message(text).to_string()).await.json()["task"]["artifacts"][0].clone()
}

/// The path of a link to this server.
fn path(artifact: &Value) -> String {
    let url = artifact["parts"][0]["url"].as_str().unwrap_or_else(|| panic!("no link in {artifact}"));
    url.strip_prefix("https://agents.example/base").unwrap().to_owned()
}

async fn ask(edge: &Edge, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut asked = with(request(method, path, ""), "a2a-version", "");
    for (name, value) in headers {
        asked = with(asked, name, value);
    }
    edge.ask(asked).await
}

#[tokio::test]
async fn a_link_leads_to_the_file() {
    let edge = Edge::new(server());
    let artifact = artifact(&edge, "").await;
    assert_eq!(artifact["name"], "file");
    let parts = artifact["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!((&parts[0]["filename"], &parts[0]["mediaType"]), (&"f.bin".into(), &"application/x-f".into()));
    // A client that follows the link needs to know nothing of A2A, not even a version.
    let answer = ask(&edge, Method::GET, &path(&artifact), &[]).await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.body == file(0..PIECE * PIECES), "{} bytes", answer.body.len());
    let said = ["content-type", "content-length", "accept-ranges", "content-disposition", "cache-control"];
    let expected = ["application/x-f", "1500000", "bytes", "attachment; filename=\"f.bin\"", "private, no-cache"];
    assert_eq!(said.map(|name| answer.header(name)), expected);
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert_eq!(answer.header("content-security-policy"), "default-src 'none'; sandbox");
    assert_eq!(
        edge.metric("switchboard_requests_total{agent=\"writer\",operation=\"DownloadArtifact\",outcome=\"ok\"}").await,
        1
    );
}

#[tokio::test]
async fn ranges_and_conditions_hold() {
    let edge = Edge::new(server());
    let path = path(&artifact(&edge, "").await);
    let head = ask(&edge, Method::HEAD, &path, &[("range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.body.len(), head.header("content-length")), (StatusCode::OK, 0, "1500000"));
    let etag = head.header("etag").to_owned();
    for (range, first, last) in
        [("bytes=0-0", 0, 0), ("bytes=99990-100010", 99_990, 100_010), ("bytes=-7", 1_499_993, 1_499_999)]
    {
        let some = ask(&edge, Method::GET, &path, &[("range", range), ("if-range", &etag)]).await;
        assert_eq!(some.status, StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(some.header("content-range"), format!("bytes {first}-{last}/1500000"));
        assert!(some.body == file(first..last + 1), "{range}");
    }
    let beyond = ask(&edge, Method::GET, &path, &[("range", "bytes=1500000-")]).await;
    assert_eq!((beyond.status.as_u16(), beyond.header("content-range")), (416, "bytes */1500000"));
    let known = ask(&edge, Method::GET, &path, &[("if-none-match", &etag)]).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    let other = ask(&edge, Method::GET, &path, &[("if-match", "\"other\"")]).await;
    assert_eq!((other.status.as_u16(), other.body.len()), (412, 0));
    let part = ask(&edge, Method::GET, &format!("{path}?part=3"), &[("range", "bytes=10-19")]).await;
    assert!(part.body == file(3 * PIECE + 10..3 * PIECE + 20));
    assert_eq!(part.header("content-range"), "bytes 10-19/100000");
}

#[tokio::test]
async fn a_stored_page_never_runs_here() {
    let edge = Edge::new(server());
    let page = artifact(&edge, "page").await;
    assert!(path(&page).ends_with("/artifacts/a%2Fb"), "{page}");
    let answer = ask(&edge, Method::GET, &path(&page), &[]).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "text/html"));
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"x.html\"");
    assert_eq!(answer.header("x-content-type-options"), "nosniff");
    assert!(answer.header("content-security-policy").contains("sandbox"));
}

#[tokio::test]
async fn an_artifact_that_grows_is_another_file_with_the_same_beginning() {
    let (go, go_on) = watch::channel(false);
    let edge = Edge::new(server_that(go_on));
    let mut body = message("slowly");
    body["configuration"] = serde_json::json!({"returnImmediately": true});
    let sent = edge.post("/message:send", body.to_string()).await.json();
    let task = format!("/tasks/{}", sent["task"]["id"].as_str().unwrap());
    let path = format!("{task}/artifacts/artifact-1-1");
    let early = loop {
        let answer = ask(&edge, Method::GET, &path, &[]).await;
        if answer.body.len() == (PIECES - 1) * PIECE {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    let etag = early.header("etag").to_owned();
    let none = ask(&edge, Method::GET, &path, &[("range", "bytes=1400000-")]).await;
    assert_eq!((none.status.as_u16(), none.header("content-range")), (416, "bytes */1400000"));
    go.send_replace(true);
    while edge.get(&task).await.json()["status"]["state"] != "TASK_STATE_COMPLETED" {
        tokio::task::yield_now().await;
    }
    // What is new can be fetched alone; a client that insists on the same file is told that it is not.
    let rest = ask(&edge, Method::GET, &path, &[("range", "bytes=1400000-")]).await;
    assert!(rest.body == file(1_400_000..1_500_000), "{} bytes", rest.body.len());
    let insisting = [("range", "bytes=1400000-"), ("if-range", etag.as_str())];
    assert_eq!(ask(&edge, Method::GET, &path, &insisting).await.status, StatusCode::OK);
    assert_eq!(ask(&edge, Method::GET, &path, &[("if-match", &etag)]).await.status.as_u16(), 412);
}

#[tokio::test]
async fn what_is_not_there_or_not_yours_is_not_found() {
    let tokens = "token-of-alice-0123456789 alice acme,globex\ntoken-of-bob-0123456789 bob acme";
    let edge = Edge::new(server().tokens(Tokens::parse(tokens).unwrap()));
    let alice = ("authorization", "Bearer token-of-alice-0123456789");
    let bob = ("authorization", "Bearer token-of-bob-0123456789");
    let sent = with(post("/globex/message:send", message("").to_string()), alice.0, alice.1);
    let artifact = edge.ask(sent).await.json()["task"]["artifacts"][0].clone();
    let path = path(&artifact);
    assert!(path.ends_with("?tenant=globex"), "{path}");
    assert_eq!(ask(&edge, Method::GET, &path, &[alice]).await.status, StatusCode::OK);
    let bare = path.strip_suffix("?tenant=globex").unwrap();
    let in_path = bare.replacen("/tasks", "/globex/tasks", 1);
    assert_eq!(ask(&edge, Method::GET, &in_path, &[alice]).await.status, StatusCode::OK);
    for (path, who, expected) in [
        (bare.to_owned(), Some(bob), "404 TASK_NOT_FOUND"),
        (bare.to_owned(), Some(alice), "404 TASK_NOT_FOUND"),
        (path.clone(), Some(bob), "403 PERMISSION_DENIED"),
        (path.clone(), None, "401 UNAUTHENTICATED"),
        (path.replace("artifact-1-1", "another"), Some(alice), "404 TASK_NOT_FOUND"),
        (format!("{path}&part=15"), Some(alice), "404 TASK_NOT_FOUND"),
        (format!("{path}&part=32"), Some(alice), "400 INVALID_PARAMS"),
        (format!("{path}&part=x"), Some(alice), "400 INVALID_PARAMS"),
        ("/tasks/none/artifacts/a".to_owned(), Some(alice), "404 TASK_NOT_FOUND"),
    ] {
        let headers: Vec<_> = who.into_iter().collect();
        let answer = ask(&edge, Method::GET, &path, &headers).await;
        assert_eq!(answer.gist(), expected, "{path} {who:?}: {}", answer.text());
    }
    let posted = ask(&edge, Method::POST, &path, &[alice]).await;
    assert_eq!((posted.status.as_u16(), posted.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn every_reply_fits() {
    let edge = Edge::new(server());
    let id = edge.task("").await;
    let limit = 1 << 20;
    for path in [format!("/tasks/{id}"), "/tasks?includeArtifacts=true".to_owned()] {
        let answer = edge.ask(get(&path)).await;
        assert!(answer.body.len() < limit && answer.text().contains("/artifacts/artifact-1-1"), "{path}");
    }
}

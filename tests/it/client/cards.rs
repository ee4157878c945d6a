//! Finding cards: where they are looked for, how long they are kept, and what is done about their credentials.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard::client::{Client, Credentials};
use switchboard::{CallErrorKind, Server, Tokens};

use super::{limits, quick, served};
use crate::support::edge::echo;
use crate::support::scripted::{Scripted, answer, json};

const CARD: &str = r#"{"name":"A","version":"2","url":"https://a.example/rpc","protocolVersion":"0.3.0","preferredTransport":"JSONRPC"}"#;

#[tokio::test]
async fn our_own_card_is_found_by_every_kind_of_reference() {
    let (_served, url) = served(Server::builder().agent(echo())).await;
    let client = quick().build().unwrap();
    let found = client.discover(&url).await.unwrap();
    found.validate().unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    std::fs::write(file.path(), found.json()).unwrap();
    let inline = String::from_utf8(found.json().to_vec()).unwrap();
    let references = [
        url.clone(),
        format!("{url}/"),
        format!("{url}/.well-known/agent-card.json"),
        format!("{url}/.well-known/agent.json"),
        format!("{url}/agents/echo/"),
        file.path().to_str().unwrap().to_owned(),
        inline,
    ];
    for reference in references {
        assert_eq!(client.discover(&reference).await.unwrap().card().name, "Echo", "{reference}");
        let answer = client.agent(&reference).await.unwrap().send_text("hello").await.unwrap();
        assert_eq!(answer.text(), "hello", "{reference}");
    }
}

#[tokio::test]
async fn the_newer_path_is_tried_first_and_the_older_one_if_it_is_not_there() {
    let server = Scripted::start(|_, asked| match asked.line.as_str() {
        "GET /x/.well-known/agent.json" => json(CARD),
        _ => answer(404, "", "no"),
    })
    .await;
    let client = quick().build().unwrap();
    let found = client.discover(&format!("{}/x//", server.url)).await.unwrap();
    assert_eq!(found.card().version, "2");
    assert_eq!(found.url(), Some(format!("{}/x/.well-known/agent.json", server.url).as_str()));
    assert_eq!(server.lines(), ["GET /x/.well-known/agent-card.json", "GET /x/.well-known/agent.json"]);
    // With and without slashes it is the same card.
    client.discover(&format!("{}/x", server.url)).await.unwrap();
    assert_eq!(server.lines().len(), 2);
    client.forget_cards();
    client.discover(&format!("{}/x", server.url)).await.unwrap();
    assert_eq!(server.lines().len(), 4);
}

#[tokio::test]
async fn there_is_an_error_or_none_where_there_is_no_card() {
    for (status, body, kind) in [
        (404, "no", CallErrorKind::NoCard),
        (503, "later", CallErrorKind::NoCard),
        (200, "<html>", CallErrorKind::InvalidAnswer),
        (200, "[]", CallErrorKind::InvalidAnswer),
        (200, r#"{"name":1}"#, CallErrorKind::InvalidAnswer),
    ] {
        let server = Scripted::start(move |_, _| answer(status, "", body)).await;
        let client = quick().build().unwrap();
        let error = client.discover(&server.url).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(status == 200 || error.to_string().contains(&status.to_string()), "{error}");
        assert!(client.try_discover(&server.url).await.is_none());
    }
    let unreachable = quick().build().unwrap().discover("http://127.0.0.1:9").await.unwrap_err();
    assert_eq!(unreachable.kind(), CallErrorKind::Unreachable, "{unreachable}");
}

#[tokio::test]
async fn a_card_that_must_be_asked_about_is_sent_once() {
    let server = Scripted::start(|_, asked| match asked.header("if-none-match") {
        Some("\"e1\"") => answer(304, "cache-control: no-cache", ""),
        _ => answer(200, "etag: \"e1\"\ncache-control: no-cache", CARD),
    })
    .await;
    let client = quick().build().unwrap();
    for _ in 0..3 {
        assert_eq!(client.discover(&server.url).await.unwrap().card().name, "A");
    }
    let asked = server.asked();
    let known: Vec<_> = asked.iter().map(|asked| asked.header("if-none-match").is_some()).collect();
    assert_eq!(known, [false, true, true]);
}

#[tokio::test]
async fn a_card_that_must_not_be_kept_is_fetched_each_time_and_few_are_kept() {
    let server = Scripted::start(|_, asked| match asked.line.contains("/keep") {
        true => json(CARD),
        false => answer(200, "cache-control: no-store", CARD),
    })
    .await;
    let client = quick().limits(limits(|limits| limits.cards_max = 2)).build().unwrap();
    for _ in 0..2 {
        client.discover(&server.url).await.unwrap();
    }
    assert_eq!(server.lines().len(), 2);
    for name in ["keep1", "keep2", "keep3", "keep3"] {
        client.discover(&format!("{}/{name}", server.url)).await.unwrap();
    }
    assert_eq!(server.lines().len(), 5);
    assert!(format!("{client:?}").contains("cards: 2"), "{client:?}");
}

#[tokio::test]
async fn credentials_are_shown_for_a_card_only_where_they_are_asked_for() {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    let server = Scripted::start(move |_, asked| match asked.header("authorization") {
        Some("bearer s3cret") => json(CARD),
        _ => {
            counter.fetch_add(1, Ordering::SeqCst);
            answer(401, "", "who?")
        }
    })
    .await;
    let client = quick().credentials(Credentials::bearer("s3cret")).build().unwrap();
    assert_eq!(client.discover(&server.url).await.unwrap().card().name, "A");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let stranger = Client::builder().build().unwrap().discover(&server.url).await.unwrap_err();
    assert_eq!(stranger.http_status(), Some(401));
}

#[tokio::test]
async fn cards_that_are_looked_for_at_the_same_time_are_fetched_once() {
    let server = Scripted::start(|_, asked| match asked.line.as_str() {
        "GET /kept/.well-known/agent-card.json" => json(CARD),
        "GET /not-kept/.well-known/agent-card.json" => answer(200, "cache-control: no-store", CARD),
        _ => answer(503, "", "later"),
    })
    .await;
    let client = quick().build().unwrap();
    for (path, found, fetches) in [("kept", true, 1), ("not-kept", true, 2), ("missing", false, 3)] {
        let url = format!("{}/{path}", server.url);
        let all = futures_util::future::join_all((0..20).map(|_| client.try_discover(&url))).await;
        assert!(all.iter().all(|card| card.is_some() == found), "{path}");
        assert_eq!(server.lines().len(), fetches, "{path}");
    }
    // One that is given up does not hold up the others.
    let url = format!("{}/not-kept", server.url);
    let mut first = Box::pin(client.discover(&url));
    let second = client.discover(&url);
    assert!(futures_util::poll!(&mut first).is_pending());
    let waiting = tokio::spawn({
        let client = client.clone();
        let url = url.clone();
        async move { client.discover(&url).await }
    });
    tokio::task::yield_now().await;
    drop(first);
    second.await.unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_extended_card_is_kept_for_the_credentials_of_the_client() {
    const TOKEN: &str = "a-token-of-alice-for-tests";
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let extended = echo().extended_card(|card| card.description.push_str(", and more"));
    let (_served, url) = served(Server::builder().agent(extended).tokens(tokens)).await;
    let alice = quick().credentials(Credentials::bearer(TOKEN)).build().unwrap();
    let description = async |client: &Client| client.agent(&url).await.unwrap().card().description.clone();
    assert_eq!(description(&alice).await, "Says what it was told");
    alice.agent(&url).await.unwrap().extended_card().await.unwrap();
    assert_eq!(description(&alice).await, "Says what it was told, and more");
    alice.forget_cards();
    assert_eq!(description(&alice).await, "Says what it was told");
    // What the credentials of one call were shown is for that agent client alone.
    let stranger = quick().build().unwrap();
    let agent = stranger.agent(&url).await.unwrap().with_credentials(Credentials::bearer(TOKEN));
    agent.extended_card().await.unwrap();
    assert_eq!(agent.card().description, "Says what it was told, and more");
    assert_eq!(description(&stranger).await, "Says what it was told");
}

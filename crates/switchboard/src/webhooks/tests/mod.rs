//! What a post carries, what becomes of the answer, and what a failure says.

mod own_tokens;
mod signing;

use std::time::Duration;

use bytes::Bytes;
use switchboard_engine::ports::{Webhook, WebhookAnswer, WebhookCall, WebhookError};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::WebhookSender;
use crate::outbound::tests::receiver::{Receiver, read_request};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

fn client(allow: &[&str]) -> WebhookSender {
    WebhookSender::new(crate::outbound::tests::client(allow))
}

fn call(url: impl Into<String>) -> WebhookCall {
    WebhookCall {
        url: url.into(),
        delivery_id: "t:c:1".to_owned(),
        headers: vec![("content-type", "a/b".to_owned())],
        body: Bytes::from_static(b"{}"),
        task_id: "t".into(),
        scheme_without_credentials: None,
    }
}

async fn post(client: &WebhookSender, url: impl Into<String>) -> Result<u16, WebhookError> {
    client.post(call(url)).await.map(|answer| answer.status)
}

#[tokio::test]
async fn what_the_policy_or_the_url_forbids_is_refused_for_good() {
    let client = client(&[]);
    for (url, expected) in [
        ("http://127.0.0.1:9/", "127.0.0.1 port 9 may not be called: loopback; the operator can open it"),
        ("ftp://hooks.example/", "URL must begin with http:// or https://"),
        ("http://hooks.example/#part", "URL must not have a fragment: it would never be sent"),
    ] {
        match post(&client, url).await {
            Err(WebhookError::Refused(why)) => assert_eq!(why, expected),
            other => panic!("expected a refusal, got {other:?}"),
        }
    }
}

#[tokio::test]
async fn an_open_range_is_called_with_all_that_was_given() {
    let mut receiver = Receiver::start(NO_CONTENT).await;
    let port = receiver.port;
    let mut call = call(format!("http://127.0.0.1:{port}/hook?x=1"));
    call.headers.push(("authorization", "Bearer abc".to_owned()));
    assert_eq!(client(&["127.0.0.0/8"]).post(call).await.unwrap(), 204.into());
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "POST /hook?x=1 HTTP/1.1\r\ncontent-type: a/b\r\nauthorization: Bearer abc\r\n\
         user-agent: switchboard/{version}\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 2\r\n\r\n{{}}"
    );
    assert_eq!(receiver.request().await, expected);
}

#[tokio::test]
async fn an_answer_says_when_to_come_back() {
    let busy = "HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(busy).await;
    let call = call(format!("http://127.0.0.1:{}/", receiver.port));
    let answer = client(&["127.0.0.0/8"]).post(call).await.unwrap();
    assert_eq!(answer, WebhookAnswer { status: 503, retry_after_ms: Some(7_000) });
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
async fn an_answer_without_end_is_cut_off() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        let mut sent = 0_usize;
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {
            sent += 65_536;
        }
        sent
    });
    let client = client(&["127.0.0.0/8"]);
    assert_eq!(post(&client, url).await.unwrap(), 200);
    // What the sockets' own buffers took in, and no more.
    let sent = tokio::time::timeout(Duration::from_secs(5), server).await.unwrap().unwrap();
    assert!(sent < 32 * 1_024 * 1_024, "{sent} bytes were taken");
}

#[tokio::test]
async fn a_body_that_never_comes_does_not_hide_the_status() {
    let receiver = Receiver::start("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await;
    let client = client(&["127.0.0.0/8"]);
    let posting = post(&client, format!("http://127.0.0.1:{}/", receiver.port));
    assert_eq!(tokio::time::timeout(Duration::from_secs(5), posting).await.unwrap().unwrap(), 200);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
async fn a_kept_connection_that_was_closed_meanwhile_fails_no_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let server = tokio::spawn(async move {
        for round in 0..6 {
            let (mut stream, _) = listener.accept().await.unwrap();
            // It promises to stay open and does not; every second one even takes the next call before it goes.
            read_request(&mut stream).await.unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            if round % 2 == 0 {
                read_request(&mut stream).await.unwrap();
            }
        }
    });
    let client = client(&["127.0.0.0/8"]);
    for _ in 0..6 {
        assert_eq!(post(&client, &url).await.unwrap(), 204);
    }
    server.await.unwrap();
}

#[tokio::test]
async fn a_failure_quotes_neither_the_answer_nor_the_call() {
    let receiver = Receiver::start("SSH-2.0-inside-banner\r\n\r\n").await;
    let client = client(&["127.0.0.0/8"]);
    let url = format!("http://127.0.0.1:{}/hook-s3cret", receiver.port);
    match post(&client, &url).await {
        Err(WebhookError::Failed(why)) => {
            assert_eq!(
                why,
                format!("the answer of 127.0.0.1:{} was not HTTP, or its head was too large", receiver.port)
            );
        }
        other => panic!("expected a failure, got {other:?}"),
    }

    let mut unfit = call(&url);
    unfit.headers.push(("authorization", "Bearer s3cret\r\nx: y".to_owned()));
    match client.post(unfit).await {
        Err(WebhookError::Refused(why)) => assert_eq!(why, "header authorization cannot be sent"),
        other => panic!("expected a refusal, got {other:?}"),
    }

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    match post(&client, format!("http://{closed}/hook-s3cret")).await {
        Err(WebhookError::Failed(why)) => {
            assert!(why.starts_with(&format!("no connection to {closed}: ")) && !why.contains("s3cret"), "{why}");
        }
        other => panic!("expected a failure, got {other:?}"),
    }
}

//! Where a post goes, what it carries, and what becomes of the answer.

use std::time::Duration;

use switchboard_engine::ports::{Webhook, WebhookAnswer, WebhookError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::receiver::{Receiver, read_request};
use super::{assert_failed, assert_refused, call, client, post};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn by_default_nothing_inside_is_called() {
    let receiver = Receiver::start(NO_CONTENT).await;
    let client = client(&[]);
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0"] {
        assert_refused(post(&client, format!("http://{host}:{}/", receiver.port)).await, "may not be called");
    }
    assert_refused(post(&client, "http://169.254.169.254/latest").await, "link-local");
    assert_refused(post(&client, format!("ftp://127.0.0.1:{}/", receiver.port)).await, "must begin with http");
    assert_eq!(receiver.connections(), 0);
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
        "POST /hook?x=1 HTTP/1.1\r\nuser-agent: switchboard/{version}\r\ncontent-type: a/b\r\n\
         authorization: Bearer abc\r\nhost: 127.0.0.1:{port}\r\ncontent-length: 2\r\n\r\n{{}}"
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
async fn an_open_host_and_port_opens_no_other_port() {
    let (open, closed) = (Receiver::start(NO_CONTENT).await, Receiver::start(NO_CONTENT).await);
    let client = client(&[&format!("localhost:{}", open.port)]);
    assert_eq!(post(&client, format!("http://localhost:{}/", open.port)).await.unwrap(), 204);
    assert_refused(post(&client, format!("http://localhost:{}/", closed.port)).await, "loopback");
    // The entry vouches for the name, not for the address behind it.
    assert_refused(post(&client, format!("http://127.0.0.1:{}/", open.port)).await, "loopback");
    assert_eq!((open.connections(), closed.connections()), (1, 0));
}

#[tokio::test]
async fn ipv6_loopback_is_called_once_it_is_open() {
    // A machine without IPv6 has nothing to show here.
    let Ok(receiver) = Receiver::on("[::1]:0", NO_CONTENT).await else { return };
    let url = format!("http://[::1]:{}/", receiver.port);
    assert_refused(post(&client(&["127.0.0.0/8"]), &url).await, "loopback");
    assert_eq!(post(&client(&["::1"]), &url).await.unwrap(), 204);
    assert_eq!(receiver.connections(), 1);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
async fn a_redirect_is_a_status_and_nothing_more() {
    let inside = Receiver::start(NO_CONTENT).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let location = format!("http://127.0.0.1:{}/", inside.port);
    tokio::spawn(async move {
        for status in [301, 302, 303, 307, 308] {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await.unwrap();
            let head = format!("HTTP/1.1 {status} Go\r\nlocation: {location}\r\nconnection: close\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
        }
    });
    // Even where the policy would let it pass.
    let client = client(&["127.0.0.0/8"]);
    for status in [301, 302, 303, 307, 308] {
        assert_eq!(post(&client, format!("http://127.0.0.1:{port}/")).await.unwrap(), status);
    }
    assert_eq!(inside.connections(), 0);
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_connection_along() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}/", listener.local_addr().unwrap().port());
    let client = client(&["127.0.0.0/8"]);
    let patience = Duration::from_millis(100);
    let (posted, accepted) = tokio::join!(tokio::time::timeout(patience, post(&client, url)), listener.accept());
    assert!(posted.is_err(), "nobody answered, yet: {posted:?}");
    let mut rest = Vec::new();
    let (mut stream, _) = accepted.unwrap();
    // Ends only if the other side has closed.
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    assert!(ended.unwrap().is_ok_and(|read| read > 0));
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
async fn calls_in_a_row_share_a_connection() {
    let receiver = Receiver::start("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let url = format!("http://127.0.0.1:{}/", receiver.port);
    let open = client(&["127.0.0.0/8"]);
    for _ in 0..5 {
        assert_eq!(post(&open, &url).await.unwrap(), 200);
    }
    assert_eq!(receiver.connections(), 1);
    // A pool belongs to one client and so to one policy.
    assert_refused(post(&client(&[]), &url).await, "loopback");
}

#[tokio::test]
async fn calls_at_once_have_their_own_connections_and_leave_them_for_the_next() {
    let receiver = Receiver::start("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
    let url = format!("http://127.0.0.1:{}/", receiver.port);
    let client = client(&["127.0.0.0/8"]);
    for _ in 0..5 {
        let posts = futures_join(&client, &url, 20).await;
        assert!(posts.iter().all(|posted| *posted == 200), "{posts:?}");
    }
    assert!(receiver.connections() <= 20, "{} connections for 20 at once", receiver.connections());
}

/// So many posts at the same time.
async fn futures_join(client: &super::GuardedClient, url: &str, count: usize) -> Vec<u16> {
    let mut posts: Vec<_> = (0..count).map(|_| Box::pin(post(client, url))).collect();
    let mut statuses = vec![None; count];
    std::future::poll_fn(|cx| {
        for (posting, status) in posts.iter_mut().zip(&mut statuses) {
            if status.is_none()
                && let std::task::Poll::Ready(posted) = posting.as_mut().poll(cx)
            {
                *status = Some(posted.unwrap());
            }
        }
        if statuses.iter().all(Option::is_some) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    statuses.into_iter().flatten().collect()
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
    assert_failed(post(&client, &url).await, "the answer was not HTTP, or its head was too large");

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

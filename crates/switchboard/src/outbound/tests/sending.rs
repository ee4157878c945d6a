//! Where a request goes, and which connection it takes.

use std::time::Duration;

use http::{Request, Uri};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::receiver::{Receiver, read_request};
use super::{assert_failed, assert_refused, client, post};
use crate::outbound::connector::Stream;
use crate::outbound::pool::{Connection, Key, Pool};
use crate::outbound::{Client, ErrorKind};

const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn by_default_nothing_inside_is_called() {
    let receiver = Receiver::start(NO_CONTENT).await;
    let client = client(&[]);
    for host in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0"] {
        assert_refused(post(&client, format!("http://{host}:{}/", receiver.port)).await, "may not be called");
    }
    assert_refused(post(&client, "http://169.254.169.254/latest").await, "link-local");
    let other_scheme = post(&client, format!("ftp://127.0.0.1:{}/", receiver.port)).await;
    assert_failed(other_scheme, ErrorKind::InvalidRequest, "URL must begin with http:// or https://");
    assert_eq!(receiver.connections(), 0);
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
    assert!(posted.is_err(), "there was no answer, yet: {posted:?}");
    let mut rest = Vec::new();
    let (mut stream, _) = accepted.unwrap();
    // Ends only if the other side has closed.
    let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
    assert!(ended.unwrap().is_ok_and(|read| read > 0));
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
async fn futures_join(client: &Client, url: &str, count: usize) -> Vec<u16> {
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
async fn a_request_that_may_have_arrived_is_not_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(async move {
        // Keeps the connection for a second request, and dies when it has that.
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        stream.write_all(NO_CONTENT.as_bytes()).await.unwrap();
        read_request(&mut stream).await.unwrap();
        drop(stream);
        tokio::time::timeout(Duration::from_millis(100), listener.accept()).await.is_ok()
    });
    let client = client(&["127.0.0.0/8"]);
    assert_eq!(post(&client, format!("http://{host}/")).await.unwrap(), 204);
    let error = post(&client, format!("http://{host}/")).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Broken, true));
    assert_eq!(error.to_string(), format!("the connection to {host} broke before an answer came"));
    assert!(!server.await.unwrap(), "there was a second connection");
}

#[tokio::test]
async fn a_kept_connection_that_was_closed_before_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let client = client(&["127.0.0.0/8"]);
    for _ in 0..3 {
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_request(&mut stream).await.unwrap();
            stream.write_all(NO_CONTENT.as_bytes()).await.unwrap();
        };
        let (posted, ()) = tokio::join!(post(&client, &url), serving);
        assert_eq!(posted.unwrap(), 204);
        // The runtime hears of the close before the next call looks at the connection.
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn nothing_listens_there_and_the_error_says_that_nothing_was_sent() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = post(&client(&["127.0.0.0/8"]), format!("http://{closed}/hook-s3cret")).await.unwrap_err();
    assert_eq!((error.kind(), error.may_have_arrived()), (ErrorKind::Connect, false));
    let text = error.to_string();
    assert!(text.starts_with(&format!("no connection to {closed}: ")) && !text.contains("s3cret"), "{text}");
}

#[tokio::test]
async fn a_connection_that_the_other_side_closes_is_not_waited_for() {
    let receiver = Receiver::start("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await;
    let url: Uri = format!("http://127.0.0.1:{}/", receiver.port).parse().unwrap();
    let stream: Stream = TokioIo::new(Box::new(TcpStream::connect(("127.0.0.1", receiver.port)).await.unwrap()));
    let (sender, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
    let mut connection = Connection::new(sender, connection, "x".parse().unwrap());
    let request = Request::post("/").body(Full::from("{}")).unwrap();
    assert_eq!(connection.send(request).await.unwrap().status(), 204);
    let pool = Pool::default();
    let key = Key::of(&url).unwrap();
    tokio::time::timeout(Duration::from_secs(5), pool.give(key.clone(), connection)).await.expect("it ends by itself");
    assert!(pool.take(&key).await.is_none());
}

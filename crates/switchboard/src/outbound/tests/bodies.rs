//! Bodies that are too large, too slow, or cut off, and streams that are read as they come.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::client;
use crate::outbound::{Body, Client, Error, ErrorKind, RequestLimits};

/// A server for one connection, which answers each request with the next bytes it is told to write.
struct Server {
    url: String,
    host: String,
    write: mpsc::UnboundedSender<&'static str>,
    requests: mpsc::UnboundedReceiver<String>,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let (write, mut written) = mpsc::unbounded_channel::<&str>();
        let (heard, requests) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let (mut reader, mut writer) = stream.into_split();
            tokio::spawn(async move {
                let mut text = String::new();
                while let Ok(byte) = reader.read_u8().await {
                    text.push(char::from(byte));
                    if text.ends_with("\r\n\r\n") {
                        let _ = heard.send(std::mem::take(&mut text));
                    }
                }
            });
            while let Some(bytes) = written.recv().await {
                writer.write_all(bytes.as_bytes()).await.unwrap();
            }
        });
        Self { url: format!("http://{host}/x"), host, write, requests }
    }

    fn say(&self, bytes: &'static str) {
        self.write.send(bytes).unwrap();
    }
}

async fn get(client: &Client, url: &str, limits: &RequestLimits) -> Result<Response<Body>, Error> {
    client.send(Request::get(url).body(Bytes::new()).unwrap(), limits).await
}

fn limits(change: impl FnOnce(&mut RequestLimits)) -> RequestLimits {
    let mut limits = RequestLimits::default();
    change(&mut limits);
    limits
}

#[track_caller]
fn assert_error<T: std::fmt::Debug>(outcome: Result<T, Error>, kind: ErrorKind, text: &str) {
    let error = outcome.expect_err("expected an error");
    assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
    assert!(error.may_have_arrived());
}

#[tokio::test]
async fn a_get_has_no_body_and_its_answer_is_read_whole() {
    let mut server = Server::start().await;
    server.say("HTTP/1.1 200 OK\r\ncontent-type: a/b\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    server.say("2\r\nde\r\n0\r\n\r\n");
    let answer = get(&client(&["127.0.0.0/8"]), &server.url, &RequestLimits::default()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["content-type"].as_bytes()), (200, &b"a/b"[..]));
    assert_eq!(answer.into_body().bytes().await.unwrap(), "abcde");
    let agent = concat!("switchboard/", env!("CARGO_PKG_VERSION"));
    let expected = format!("GET /x HTTP/1.1\r\nuser-agent: {agent}\r\nhost: {}\r\n\r\n", server.host);
    assert_eq!(server.requests.recv().await.unwrap(), expected);
}

/// The server takes one connection, so a second request is answered only over the same one.
#[tokio::test]
async fn the_connection_of_a_stream_that_has_ended_is_used_again() {
    for (with_the_event, later) in [("3\r\nabc\r\n0\r\n\r\n", ""), ("3\r\nabc\r\n", "0\r\n\r\n")] {
        let server = Server::start().await;
        let client = client(&["127.0.0.0/8"]);
        server.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
        server.say(with_the_event);
        let mut stream = get(&client, &server.url, &RequestLimits::stream()).await.unwrap().into_body();
        assert_eq!(stream.chunk().await.unwrap().unwrap(), "abc");
        stream.release();
        server.say(later);
        let is_kept = async {
            while client.idle_count() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), is_kept).await.expect("the connection is kept");
        server.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        let answer = get(&client, &server.url, &RequestLimits::default()).await.unwrap();
        assert_eq!(answer.into_body().bytes().await.unwrap(), "ok");
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_an_error_whether_or_not_it_says_its_length() {
    let small = limits(|limits| limits.body_bytes_max = Some(4));
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n",
        "HTTP/1.1 200 OK\r\n\r\nabcde",
    ] {
        let server = Server::start().await;
        server.say(answer);
        let answer = get(&client(&["127.0.0.0/8"]), &server.url, &small).await.unwrap();
        let text = format!("the answer of {} is larger than 4 bytes", server.host);
        assert_error(answer.into_body().bytes().await, ErrorKind::BodyTooLarge, &text);
    }
    let server = Server::start().await;
    server.say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd");
    let answer = get(&client(&["127.0.0.0/8"]), &server.url, &small).await.unwrap();
    assert_eq!(answer.into_body().bytes().await.unwrap(), "abcd");
}

#[tokio::test]
async fn a_stream_is_read_as_it_comes_and_its_connection_is_used_again() {
    let server = Server::start().await;
    let client = client(&["127.0.0.0/8"]);
    server.say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut body = get(&client, &server.url, &RequestLimits::stream()).await.unwrap().into_body();
    for event in ["3\r\none\r\n", "3\r\ntwo\r\n"] {
        server.say(event);
        assert_eq!(body.chunk().await.unwrap().unwrap(), &event[3..6]);
    }
    // A wait that is given up loses nothing.
    assert!(tokio::time::timeout(Duration::ZERO, body.chunk()).await.is_err());
    server.say("5\r\nthree\r\n0\r\n\r\n");
    assert_eq!(body.chunk().await.unwrap().unwrap(), "three");
    assert_eq!((body.chunk().await, body.chunk().await), (Ok(None), Ok(None)));
    // The server accepts one connection only.
    server.say("HTTP/1.1 204 No Content\r\n\r\n");
    let answer = get(&client, &server.url, &RequestLimits::default()).await.unwrap();
    assert_eq!(answer.status(), 204);
}

#[tokio::test]
async fn a_stream_that_goes_idle_is_given_up_on() {
    let server = Server::start().await;
    server.say("HTTP/1.1 200 OK\r\n\r\nfirst");
    let mut limits = RequestLimits::stream();
    limits.idle = Some(Duration::from_millis(50));
    let mut body = get(&client(&["127.0.0.0/8"]), &server.url, &limits).await.unwrap().into_body();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "first");
    let text = format!("nothing more of the answer of {} came for 50ms", server.host);
    for _ in 0..2 {
        assert_error(body.chunk().await, ErrorKind::TimedOut, &text);
    }
}

#[tokio::test]
async fn an_answer_that_does_not_begin_or_does_not_end_in_time_is_given_up_on() {
    let short = Some(Duration::from_millis(50));
    let client = client(&["127.0.0.0/8"]);
    for (limits, said) in [(limits(|it| it.head = short), ""), (limits(|it| it.total = short), "HTTP/1.1 200 OK\r\n")] {
        let server = Server::start().await;
        server.say(said);
        let text = format!("no answer from {} within 50ms", server.host);
        assert_error(get(&client, &server.url, &limits).await, ErrorKind::TimedOut, &text);
    }
    let server = Server::start().await;
    server.say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc");
    let total = limits(|limits| limits.total = Some(Duration::from_millis(200)));
    let answer = get(&client, &server.url, &total).await.unwrap();
    let text = format!("the answer of {} did not end within 200ms", server.host);
    assert_error(answer.into_body().bytes().await, ErrorKind::TimedOut, &text);
}

#[tokio::test]
async fn a_body_that_is_cut_off_is_an_error_and_not_an_end() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
    ] {
        let mut server = Server::start().await;
        server.say(answer);
        let mut body = get(&client(&["127.0.0.0/8"]), &server.url, &RequestLimits::stream()).await.unwrap().into_body();
        assert_eq!(body.chunk().await.unwrap().unwrap(), "abc");
        server.requests.recv().await.unwrap();
        let host = server.host.clone();
        drop(server);
        let text = format!("the connection to {host} broke in the middle of the answer");
        for _ in 0..2 {
            assert_error(body.chunk().await, ErrorKind::Broken, &text);
        }
    }
}

/// Accepts connections, hears one request on each, and closes it after the answer.
#[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
async fn answers(answers: Vec<String>) -> (String, mpsc::UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heard, requests) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            heard.send(head(&mut stream).await).unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, requests)
}

async fn head(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    while !text.ends_with("\r\n\r\n") {
        text.push(char::from(stream.read_u8().await.unwrap()));
    }
    text
}

fn moved(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

const DONE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ndone";

#[tokio::test]
async fn redirects_are_followed_only_if_asked_for_and_only_so_many() {
    let client = client(&["127.0.0.0/8"]);
    for (redirects_max, status, asked) in [(0, 302, 1), (1, 302, 2), (2, 200, 3), (9, 200, 3)] {
        let (url, mut requests) = answers(vec![moved("/b"), moved("c?d"), DONE.to_owned()]).await;
        let limits = limits(|limits| limits.redirects_max = redirects_max);
        let answer = get(&client, &format!("{url}/a/a"), &limits).await.unwrap();
        assert_eq!(answer.status(), status);
        let mut paths = Vec::new();
        while let Ok(request) = requests.try_recv() {
            paths.push(request.split(' ').nth(1).unwrap().to_owned());
        }
        assert_eq!(paths, ["/a/a", "/b", "/c?d"][..asked]);
    }
    let (url, _requests) = answers(vec![moved("/b")]).await;
    let post = Request::builder().method(Method::POST).uri(&url).body(Bytes::new()).unwrap();
    let answer = client.send(post, &limits(|limits| limits.redirects_max = 9)).await.unwrap();
    assert_eq!(answer.status(), 302, "a body goes only where the caller sends it");
}

#[tokio::test]
async fn a_redirect_to_an_address_that_is_refused_is_refused() {
    let (url, _requests) = answers(vec![moved("http://127.0.0.2/inside")]).await;
    let client = client(&["127.0.0.1"]);
    let error = get(&client, &url, &limits(|limits| limits.redirects_max = 3)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.to_string(), "127.0.0.2 port 80 may not be called: loopback; the operator can open it");

    let (url, _requests) = answers(vec![moved("ftp://files.example/x")]).await;
    let error = get(&client, &url, &limits(|limits| limits.redirects_max = 3)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    let host = url.strip_prefix("http://").unwrap();
    let why = "redirects to a URL that cannot be called: URL must begin with http:// or https://";
    assert_eq!(error.to_string(), format!("{host} {why}"));
}

//! Bodies that are too large, too slow, too deep or not text: each is refused within bounds, and the next request is served.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use expect_test::expect;
use http::Request;
use serde_json::json;
use switchboard::{Server, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::bodies::{Chunks, Untouched};
use crate::support::callers::soon;
use crate::support::edge::{Edge, echo, message, post, rpc_body, unversioned};
use crate::support::grpc::Served;

#[tokio::test(start_paused = true)]
async fn a_gigabyte_that_is_announced_is_refused_unread() {
    let edge = Edge::usual();
    for (path, expected) in
        [("/message:send", 413), ("/", 413), ("/rpc", 413), ("/a2a", 200), ("/agents/echo/a2a/", 200)]
    {
        let request = Request::post(path).header("a2a-version", "1.0").header("content-length", 1_u64 << 30);
        assert_eq!(edge.open(request.body(Untouched).unwrap()).await.status(), expected, "{path}");
    }
}

/// Clients of that path look at the body of a reply alone.
#[tokio::test(start_paused = true)]
async fn at_a2a_a_body_that_is_too_large_is_an_invalid_request() {
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 4096;
    let edge = Edge::new(Server::builder().agent(echo()).limits(limits));
    let large = || vec![b'x'; 4097];
    for request in [post("/a2a", large()), unversioned(post("/a2a/", large())), post("/agents/echo/a2a", large())] {
        let answer = edge.ask(request).await;
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status.as_u16(), &error["code"]), (200, &json!(-32600)), "{}", answer.text());
        assert_eq!(error["message"], "Invalid request: body exceeds 4096 bytes");
    }
    assert_eq!(edge.post("/rpc", large()).await.status, 413);
    assert_eq!(edge.post("/message:send", large()).await.status, 413);
}

#[tokio::test(start_paused = true)]
async fn an_endless_body_is_read_up_to_the_limit() {
    let edge = Edge::usual();
    for path in ["/message:send", "/"] {
        let taken = Arc::new(AtomicUsize::new(0));
        let body = Chunks::endless(Bytes::from(vec![b' '; 64 << 10]), taken.clone());
        let request = Request::post(path).header("a2a-version", "1.0").body(body).unwrap();
        assert_eq!(edge.open(request).await.status(), 413, "{path}");
        let read = taken.load(Ordering::SeqCst) * (64 << 10);
        assert!((10 << 20..=(10 << 20) + (128 << 10)).contains(&read), "{read} bytes were read");
    }
}

#[tokio::test]
async fn a_client_that_is_still_sending_gets_to_read_its_refusal() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let piece = vec![b' '; 64 << 10];
    let pieces = 512;
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    for path in ["/", "/message:send", "/nowhere"] {
        for (line, piece, end) in [
            (format!("content-length: {}", piece.len() * pieces), &piece, &b""[..]),
            ("transfer-encoding: chunked".to_owned(), &chunk, b"0\r\n\r\n"),
        ] {
            let mut stream = TcpStream::connect(served.address).await.unwrap();
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\na2a-version: 1.0\r\n");
            stream.write_all(format!("{head}{line}\r\n\r\n").as_bytes()).await.unwrap();
            // All of it is sent before a word of the answer is read, which was written long ago.
            for _ in 0..pieces {
                stream.write_all(piece).await.unwrap_or_else(|error| panic!("{path}, {line}: {error}"));
            }
            stream.write_all(end).await.unwrap();
            let mut answer = String::new();
            soon(stream.read_to_string(&mut answer)).await.unwrap();
            let status = if path == "/nowhere" { "HTTP/1.1 404 " } else { "HTTP/1.1 413 " };
            assert!(answer.starts_with(status), "{path}, {line}: {answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_limit_itself_is_allowed() {
    let mut limits = ServerLimits::default();
    limits.body_bytes_max = 1_000;
    let edge = Edge::new(Server::builder().agent(echo()).limits(limits));
    let padded = |length: usize| {
        let body = message("hello").to_string();
        format!("{body}{}", " ".repeat(length - body.len()))
    };
    assert_eq!(edge.post("/message:send", padded(1_000)).await.gist(), "200");
    expect![[r#"
        413 application/a2a+json
        {"error":{"code":413,"status":"RESOURCE_EXHAUSTED","message":"The request body is larger than the limit of 1000 bytes","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PAYLOAD_TOO_LARGE","domain":"a2a-protocol.org","metadata":{"bytesMax":"1000"}}]}}
    "#]].assert_eq(&edge.post("/message:send", padded(1_001)).await.picture());
    let call = rpc_body("ListTasks", json!({}));
    let call = format!("{call}{}", " ".repeat(1_001 - call.len()));
    expect![[r#"
        413 application/json
        {"jsonrpc":"2.0","id":null,"error":{"code":-32051,"message":"The request body is larger than the limit of 1000 bytes","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PAYLOAD_TOO_LARGE","domain":"a2a-protocol.org","metadata":{"bytesMax":"1000"}}]}}
    "#]].assert_eq(&edge.post("/", call).await.picture());
}

#[tokio::test(start_paused = true)]
async fn a_body_in_many_pieces_is_one_body() {
    let edge = Edge::usual();
    let whole = message("hello").to_string();
    let pieces: Vec<Bytes> = whole.as_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
    let request = Request::post("/message:send").header("a2a-version", "1.0").body(Chunks::of(pieces)).unwrap();
    assert_eq!(edge.open(request).await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for_for_ever() {
    let edge = Edge::usual();
    let began = tokio::time::Instant::now();
    let request = Request::post("/message:send").header("a2a-version", "1.0").body(Chunks::stuck()).unwrap();
    assert_eq!(edge.open(request).await.status(), 400);
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_utf_8_is_refused() {
    let edge = Edge::usual();
    let mut body = message("caf?").to_string().into_bytes();
    let at = body.iter().position(|byte| *byte == b'?').unwrap();
    body[at] = 0xE9;
    assert_eq!(edge.post("/message:send", body.clone()).await.gist(), "400 PARSE_ERROR");
    assert_eq!(edge.post("/", body).await.gist(), "200 PARSE_ERROR");
    let lone = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"\ud800"}]}}"#;
    assert_eq!(edge.post("/message:send", lone).await.gist(), "400 PARSE_ERROR", "half of a surrogate pair");
}

#[tokio::test(start_paused = true)]
async fn broken_json_is_refused_on_both_bindings() {
    let edge = Edge::usual();
    for body in ["", "{", "{\"message\":", "nonsense", "{\"message\":{}}x", "{'message':1}", "\u{feff}{}"] {
        assert_eq!(edge.post("/message:send", body).await.gist(), "400 PARSE_ERROR", "{body}");
        assert_eq!(edge.post("/", body).await.gist(), "200 PARSE_ERROR", "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn deep_nesting_is_refused_or_ignored_and_never_overflows() {
    let edge = Edge::usual();
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let with_data = |data: &str| {
        format!(
            r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"hello"}},{{"data":{data}}}]}}}}"#
        )
    };
    assert_eq!(edge.post("/message:send", with_data(&deep(64))).await.gist(), "200");
    for levels in [65, 1_000, 1_000_000] {
        assert_eq!(edge.post("/message:send", with_data(&deep(levels))).await.gist(), "400 INVALID_PARAMS", "{levels}");
        let call =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}}"#, with_data(&deep(levels)));
        assert_eq!(edge.post("/", call).await.gist(), "200 INVALID_PARAMS", "{levels}");
    }
    // Members that are not read are skipped, however deep they are.
    let unknown = format!(r#"{{"nothing":{},"jsonrpc":"2.0","id":1,"method":"ListTasks"}}"#, deep(100_000));
    assert_eq!(edge.post("/", unknown).await.gist(), "200");
    assert_eq!(edge.post("/", deep(1_000_000)).await.gist(), "200 INVALID_REQUEST");
}

#[tokio::test(start_paused = true)]
async fn after_all_that_the_next_request_is_served() {
    let edge = Edge::usual();
    for _ in 0..20 {
        edge.ask(post("/", "[".repeat(100_000))).await;
        edge.ask(post("/message:send", "{")).await;
    }
    assert_eq!(edge.post("/message:send", message("hello").to_string()).await.gist(), "200");
}

//! The exit codes of `conformance` and `doctor`, and what they make of servers that send too much.
#![allow(clippy::unwrap_used, reason = "the whole file is tests")]
#![allow(clippy::disallowed_methods, reason = "the threads that answer end with the test process")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

/// A server that gives this answer to every request.
fn answering(media_type: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let body = body.replace("URL", &url);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut request = [0; 8_192];
            let _ = stream.read(&mut request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        }
    });
    url
}

fn run(args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
    command.args(args).env_remove("A2ACLI_AGENT_CARD").env_remove("A2ACLI_BEARER");
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

/// A card without skills, which is a fault.
const BAD_CARD: &str = r#"{"name":"Bad","description":"d","version":"1","capabilities":{},"defaultInputModes":["text/plain"],
"defaultOutputModes":["text/plain"],"supportedInterfaces":[{"url":"URL","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;

#[test]
fn a_fault_is_1_unless_told_otherwise() {
    let url = answering("application/json", BAD_CARD.to_owned());
    let only = ["--only", "card-members"];
    let (code, said) = run(&["conformance", &url, only[0], only[1]]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("FAIL  card-members (MUST of 4.4.1, kit CARD-STRUCT-001)"), "{said}");
    assert_eq!(run(&["conformance", &url, only[0], only[1], "--no-fail"]).0, 0);
    assert_eq!(
        run(&["conformance", "-a", &url, "--only", "card-interfaces"]).0,
        0,
        "what is not asked for does not count"
    );
    let (code, said) = run(&["doctor", &url]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("FAULT  card") && !said.contains('\u{1b}'), "{said}");
    assert_eq!(run(&["doctor", &url, "--no-fail"]).0, 0);
}

#[test]
fn wrong_usage_is_2() {
    for args in [
        &["conformance"][..],
        &["doctor"],
        &["conformance", "http://127.0.0.1:1", "--only", "no-such-check"],
        &["conformance", "http://127.0.0.1:1", "-a", "http://127.0.0.1:2"],
        &["conformance", "http://127.0.0.1:1", "--timeout", "soon"],
        &["doctor", "http://127.0.0.1:1", "--idle", "5s"],
    ] {
        let (code, said) = run(args);
        assert_eq!(code, 2, "{args:?}: {said}");
    }
    // As JSON, failures have the form of the client commands.
    let (code, said) = run(&["conformance", "-o", "json", "--only", "nothing", "http://127.0.0.1:1"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.starts_with("{\"error\":{") && said.contains("A2ACLI_ERR_USAGE"), "{said}");
    assert_eq!(run(&["conformance", "--list"]).0, 0);
}

#[test]
fn no_card_is_3_whatever_is_there_in_its_place() {
    let large = format!("{{\"name\":\"{}\"}}", "x".repeat(5 << 20));
    let deep = "[".repeat(100_000);
    for (body, why) in [
        (large, "larger than 4194304 bytes"),
        (deep, "is not JSON"),
        ("[]".to_owned(), "expected a JSON object"),
        ("\u{1b}[31mhello".to_owned(), "is not JSON"),
    ] {
        let url = answering("application/json", body);
        let (code, said) = run(&["conformance", &url]);
        assert_eq!(code, 3, "{said}");
        assert!(said.contains(why) && !said.contains('\u{1b}'), "{said}");
        let (code, said) = run(&["doctor", &url]);
        assert_eq!(code, 1, "{said}");
        assert!(!said.contains('\u{1b}'), "{said}");
    }
}

/// A server whose card promises streams, and whose streams never end.
fn endless() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let card = BAD_CARD.replace("URL", &url).replace("\"capabilities\":{}", "\"capabilities\":{\"streaming\":true}");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let card = card.clone();
            std::thread::spawn(move || {
                let mut request = [0; 8_192];
                let length = stream.read(&mut request).unwrap_or_default();
                if request[..length].starts_with(b"GET") {
                    let length = card.len();
                    let head =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{card}");
                    let _ = stream.write_all(head.as_bytes());
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: ";
                let mut written = stream.write_all(head.as_bytes());
                while written.is_ok() {
                    written = stream.write_all(&[b'x'; 65_536]);
                }
            });
        }
    });
    url
}

#[test]
fn a_stream_without_an_end_is_left() {
    let url = endless();
    let (code, said) = run(&["conformance", &url, "--only", "stream-opens", "--timeout", "20s"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the stream is too long"), "{said}");
}

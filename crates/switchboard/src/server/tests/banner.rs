//! What is said at start.

use expect_test::{Expect, expect};

use crate::server::banner::{Banner, quoted};

fn demo() -> Banner {
    Banner {
        addr: "127.0.0.1:8080".parse().unwrap(),
        url: "http://127.0.0.1:8080".to_owned(),
        public_url: "http://127.0.0.1:8080".to_owned(),
        agents: vec![("Demo".to_owned(), "http://127.0.0.1:8080/.well-known/agent-card.json".to_owned())],
        data: "./switchboard-data/switchboard.db".to_owned(),
        tokens: 0,
        asks_application: false,
        asks_others: false,
        certificate: None,
        send: "hello".to_owned(),
        stream: Some("stream 40".to_owned()),
    }
}

fn check(banner: &Banner, expected: Expect) {
    expected.assert_eq(&banner.to_string().replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_demo_for_this_machine() {
    check(
        &demo(),
        expect![[r#"
            switchboard VERSION

              agent   Demo  http://127.0.0.1:8080/.well-known/agent-card.json
              data    ./switchboard-data/switchboard.db
              access  everybody on this machine, and nobody else; they share all tasks

            Try it:

              curl -sS http://127.0.0.1:8080/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"hello"}]}}'
              curl -sSN http://127.0.0.1:8080/message:stream -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"stream 40"}]}}'
        "#]],
    );
}

#[test]
fn holders_of_tokens_behind_a_proxy() {
    let banner = Banner {
        addr: "[::]:4321".parse().unwrap(),
        url: "http://[::1]:4321".to_owned(),
        public_url: "https://a.example/base".to_owned(),
        tokens: 2,
        stream: None,
        ..demo()
    };
    check(
        &banner,
        expect![[r#"
            switchboard VERSION

              agent   Demo  http://127.0.0.1:8080/.well-known/agent-card.json
              data    ./switchboard-data/switchboard.db
              access  holders of 2 tokens who can reach [::]:4321 or https://a.example/base

            Put one of the tokens into TOKEN, then paste:

              curl -sS http://[::1]:4321/base/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"hello"}]}}'
        "#]],
    );
}

#[test]
fn the_access_line_names_every_way_to_the_server() {
    let access = |addr: &str, public_url: &str, tokens: usize| {
        let banner = Banner { addr: addr.parse().unwrap(), public_url: public_url.to_owned(), tokens, ..demo() };
        let text = banner.to_string();
        text.lines().find_map(|line| line.trim().strip_prefix("access  ")).unwrap().to_owned()
    };
    let (loopback, agents) = ("127.0.0.1:8080", "https://agents.example/a2a");
    assert_eq!(
        access(loopback, agents, 0),
        "anyone who can reach https://agents.example/a2a, without a token; they share all tasks"
    );
    assert_eq!(access(loopback, agents, 1), "the holder of 1 token who can reach https://agents.example/a2a");
    let here = "everybody on this machine, and nobody else; they share all tasks";
    assert_eq!(access(loopback, "http://localhost:9000", 0), here);
    assert_eq!(access(loopback, "http://127.0.0.1:8080", 1), "the holder of 1 token, from this machine");
    assert_eq!(
        access("0.0.0.0:8080", "http://127.0.0.1:8080", 0),
        "anyone who can reach 0.0.0.0:8080, without a token; they share all tasks"
    );
}

#[test]
fn a_text_that_a_shell_would_take_apart_is_not_shown() {
    let banner = demo().examples("what's \"that\"", "stream 5");
    assert_eq!((banner.send.as_str(), banner.stream.as_deref()), ("hello", Some("stream 5")));
}

#[test]
fn a_file_is_named_so_that_a_shell_reads_it_back() {
    for (word, expected) in [
        ("/etc/tls/cert.pem", "/etc/tls/cert.pem"),
        ("my cert.pem", "'my cert.pem'"),
        ("$HOME/it's.pem", r"'$HOME/it'\''s.pem'"),
        ("", "''"),
    ] {
        assert_eq!(quoted(word), expected);
    }
}

#[test]
fn an_application_that_lets_callers_in_is_named() {
    let here = Banner { asks_application: true, ..demo() };
    assert!(here.to_string().contains("\n  access  whom the application lets in, from this machine\n"), "{here}");
    let open = Banner { addr: "0.0.0.0:8080".parse().unwrap(), ..here };
    assert!(
        open.to_string().contains("\n  access  whom the application lets in who can reach 0.0.0.0:8080\n"),
        "{open}"
    );
}

//! What is said at start.

use std::path::Path;

use clap::Parser;
use expect_test::{Expect, expect};

use super::*;
use crate::cli::{Cli, Command};
use crate::config::{Environment, gather, settle};

fn banner(flags: &[&str], tokens: &str, addr: &str) -> String {
    let Command::Serve(args) = Cli::parse_from(["switchboard", "serve"].iter().chain(flags)).command else {
        panic!("serve was typed")
    };
    let environment = Environment::of(&[("SWITCHBOARD_TOKENS", tokens)]);
    let nowhere = Path::new("/nonexistent");
    let layers = gather(&args.settings, None, &environment, nowhere);
    let config = settle(layers, &environment, nowhere).unwrap();
    Banner::of(&config).text(addr.parse().unwrap(), &format!("http://{}", reachable(addr.parse().unwrap())))
}

fn check(flags: &[&str], tokens: &str, addr: &str, expected: Expect) {
    let text = banner(flags, tokens, addr);
    expected.assert_eq(&text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_demo_for_this_machine() {
    check(
        &[],
        "",
        "127.0.0.1:8080",
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
fn a_command_for_everybody_behind_a_proxy() {
    check(
        &[
            "--exec",
            "cat",
            "--memory",
            "--listen",
            "0.0.0.0:0",
            "--allow-unauthenticated",
            "--public-url",
            "https://a.example/base/",
        ],
        "",
        "0.0.0.0:4321",
        expect![[r#"
            switchboard VERSION

              agent   cat  https://a.example/base/.well-known/agent-card.json
              data    in memory, gone when it stops
              access  anyone who can reach 0.0.0.0:4321 or https://a.example/base, without a token; they share all tasks

            Try it:

              curl -sS http://127.0.0.1:4321/base/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"hello"}]}}'
              curl -sSN http://127.0.0.1:4321/base/message:stream -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"hello"}]}}'
        "#]],
    );
}

#[test]
fn the_access_line_names_every_way_to_the_server() {
    let access = |flags: &[&str], tokens: &str, addr: &str| {
        let text = banner(flags, tokens, addr);
        text.lines().find_map(|line| line.trim().strip_prefix("access  ")).unwrap().to_owned()
    };
    let open = ["--allow-unauthenticated", "--public-url", "https://agents.example/a2a"];
    let alice = "0123456789abcdef alice";
    assert_eq!(
        access(&open, "", "127.0.0.1:8080"),
        "anyone who can reach https://agents.example/a2a, without a token; they share all tasks"
    );
    assert_eq!(
        access(&open, alice, "127.0.0.1:8080"),
        "the holder of 1 token who can reach https://agents.example/a2a"
    );
    assert_eq!(
        access(&["--public-url", "http://localhost:9000"], "", "127.0.0.1:8080"),
        "everybody on this machine, and nobody else; they share all tasks"
    );
    assert_eq!(access(&[], alice, "127.0.0.1:8080"), "the holder of 1 token, from this machine");
}

#[test]
fn holders_of_tokens() {
    check(
        &["--listen", "[::]:0"],
        "0123456789abcdef alice\nfedcba9876543210 bob",
        "[::]:4321",
        expect![[r#"
        switchboard VERSION

          agent   Demo  http://[::1]:4321/.well-known/agent-card.json
          data    ./switchboard-data/switchboard.db
          access  holders of 2 tokens who can reach [::]:4321

        Put one of the tokens into TOKEN, then paste:

          curl -sS http://[::1]:4321/message:send -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"hello"}]}}'
          curl -sSN http://[::1]:4321/message:stream -H 'A2A-Version: 1.0' -H 'Content-Type: application/json' -H "Authorization: Bearer $TOKEN" -d '{"message":{"messageId":"'"$(date +%s%N)$RANDOM"'","role":"ROLE_USER","parts":[{"text":"stream 40"}]}}'
    "#]],
    );
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

//! What is said at start.

use std::path::Path;

use clap::Parser;
use expect_test::{Expect, expect};

use super::*;
use crate::cli::{Cli, Command};
use crate::config::{Environment, gather, settle};

fn check(flags: &[&str], tokens: &str, addr: &str, expected: Expect) {
    let Command::Serve(args) = Cli::parse_from(["switchboard", "serve"].iter().chain(flags)).command else {
        panic!("serve was typed")
    };
    let environment = Environment::of(&[("SWITCHBOARD_TOKENS", tokens)]);
    let nowhere = Path::new("/nonexistent");
    let layers = gather(args.layer(), None, &environment, nowhere).unwrap();
    let config = settle(layers, &environment, nowhere).unwrap();
    let text = Banner::of(&config).text(addr.parse().unwrap());
    expected.assert_eq(&text.replace(env!("CARGO_PKG_VERSION"), "VERSION"));
}

#[test]
fn a_demo_for_this_machine() {
    check(&[], "", "127.0.0.1:8080", expect![[""]]);
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
        expect![[""]],
    );
}

#[test]
fn holders_of_tokens() {
    check(&["--listen", "[::]:0"], "0123456789abcdef alice\nfedcba9876543210 bob", "[::]:4321", expect![[""]]);
}

//! The proof that users can run, run here: the same command, for as long as there is time. What it must see is in proportion
//! to how long it is asked to run; on a busy machine it goes on until it has seen that much.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::process::{binary, verify};
use crate::support::limit::Limit;

/// What the line says before the faults, the faults, and what comes last.
const KEYS: [&str; 6] = ["seed", "seconds", "kills", "freezes", "requests", "acknowledged_events"];
const KEYS_WITH_RELAY: [&str; 10] = [
    "seed",
    "seconds",
    "kills",
    "freezes",
    "upstream_kills",
    "upstream_freezes",
    "cuts",
    "left_over",
    "requests",
    "acknowledged_events",
];
const FAULTS: [&str; 8] =
    ["lost", "duplicated", "out_of_order", "two_terminals", "stuck", "webhooks_lost", "wrong_content", "orphans"];

#[test]
fn chaos_wants_a_folder_that_is_empty() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "").unwrap();
    let output = Command::new(binary()).args(["chaos", "--data"]).arg(folder.path()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("expected an empty folder"), "{told}");
}

#[test]
fn chaos_finds_no_fault_and_says_so_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("kept");
    finds_no_fault(&["--seed", "7"], "20", &data, &KEYS);
    // The files that the user asked to keep are there: a readable ledger, and a database in order.
    let ledger = std::fs::read_to_string(data.join("run/ledger.jsonl")).unwrap();
    assert!(ledger.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    verify(&data.join("run/data"));
}

#[test]
fn chaos_with_a_gateway_finds_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("kept");
    finds_no_fault(&["--relay", "--seed", "7"], "15", &data, &KEYS_WITH_RELAY);
    verify(&data.join("run/data"));
    verify(&data.join("run/upstream/data"));
}

/// Runs it for so many seconds, or for minutes in a long test.
fn finds_no_fault(options: &[&str], seconds: &str, data: &Path, keys: &[&str]) {
    let _limit = Limit::new();
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let length: [&str; 2] = if long { ["--minutes", "5"] } else { ["--seconds", seconds] };
    let mut command = Command::new(binary());
    command.args(["chaos", "--json"]).args(options).args(length).arg("--data").arg(data);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    println!("{told}");
    let said = String::from_utf8(output.stdout).unwrap();
    println!("{said}");
    let [line] = said.lines().collect::<Vec<_>>()[..] else { panic!("one line: {said:?}") };
    let keys: Vec<&str> = keys.iter().chain(&FAULTS).chain(&["verdict"]).copied().collect();
    let mut from = 0;
    for key in &keys {
        let at = line.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} is missing: {line}"));
        assert!(at >= from, "{key} comes too early: {line}");
        from = at;
    }
    let verdict: Value = serde_json::from_str(line).unwrap();
    assert_eq!(verdict.as_object().unwrap().len(), keys.len(), "{line}");
    for fault in FAULTS {
        assert_eq!(verdict[fault], 0, "{line}");
    }
    assert_eq!((verdict["seed"].as_u64(), verdict["verdict"].as_str()), (Some(7), Some("pass")), "{line}");
    assert!(output.status.success(), "{}", output.status);
    assert!(told.contains("was erased from a copy, and reported as lost"), "it has tested itself first");
}

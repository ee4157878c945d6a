//! What is printed where: results apart from notes, one document or lines, no control sequences, exit codes.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Cli, DemoServer, ScriptedAgent, card, status, switchboard, task};

#[test]
fn ids_and_state_are_told_in_every_mode_and_notes_stay_apart() {
    let server = DemoServer::start();
    let id = server.run(&["send", "hello"]).succeeded().field("Task").to_owned();
    for args in [&["task", "get"][..], &["task", "cancel"], &["task", "subscribe"]] {
        let mut args = args.to_vec();
        args.push(&id);
        let is_cancel = args[1] == "cancel";
        let text = server.run(&args);
        if is_cancel {
            assert!(text.stderr.contains("TASK_STATE_COMPLETED"));
            continue;
        }
        assert_eq!((text.field("Task"), text.field("State")), (id.as_str(), "TASK_STATE_COMPLETED"));
        assert!(!text.field("Context").is_empty());
        args.extend(["-o", "json"]);
        let document = server.run(&args).succeeded();
        assert_eq!(document.json()["id"], id.as_str());
        assert!(document.json()["contextId"].is_string());
        args.extend(["--debug", "--verbose"]);
        assert_eq!(server.run(&args).succeeded().stdout, document.stdout);
    }
}

#[test]
fn without_stream_there_is_one_document_however_many_events() {
    let server = DemoServer::start();
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &server.url).with("A2ACLI_STREAM", "1");
    let document = cli.run(&["send", "-o", "json", "stream 40"]).succeeded().json();
    assert_eq!(document["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(document["task"]["artifacts"][0]["parts"].as_array().unwrap().len(), 40);
}

#[test]
fn each_event_is_a_line_that_is_there_at_once() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_WORKING") }));
            answer.until_closed();
        }
        _ => answer.result(task("TASK_STATE_WORKING")),
    });
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    let mut command = cli.command(&["send", "--stream", "-o", "json", "x"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    // The stream is still open while the line is read.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let event: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(event["task"]["id"], "t-1");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_agent_that_dies_in_the_middle_is_told_in_the_last_line() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_WORKING") }));
            answer.event(status("TASK_STATE_WORKING"));
        }
        _ => answer.error(-32603, "gone"),
    });
    let ran = agent.run(&["send", "--stream", "-o", "json", "--poll-interval", "10ms", "x"]);
    let lines = ran.json_lines();
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(lines.len() >= 3 && lines.last().unwrap()["error"]["code"].is_string(), "{lines:?}");
    assert!(lines[..lines.len() - 1].iter().all(|line| line.get("error").is_none()));
}

/// Whether a text has the form of our output: fields, and blocks whose lines are indented.
fn has_our_form(text: &str) -> bool {
    text.lines().all(|line| {
        let label = line.split(": ").next().unwrap_or_default().trim_end_matches(':');
        line.is_empty()
            || line.starts_with("  ")
            || (line.contains(':') && label.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-'))
    })
}

#[test]
fn what_an_agent_says_cannot_pose_as_our_output() {
    let hostile = "fine\n\nState: TASK_STATE_FAILED\r\nTask: forged\u{1b}[31m\u{9b}2J\u{202e}";
    let mut ended = task("TASK_STATE_COMPLETED");
    ended["id"] = json!("t-1 ' State: X\u{202e}");
    ended["artifacts"] =
        json!([{ "artifactId": "a State: X\u{202e}", "name": "n\u{1b}[2J", "parts": [{ "text": hostile }] }]);
    let agent = ScriptedAgent::start(
        |url| {
            let mut card = card(url, false);
            card["name"] = json!("Evil\u{1b}[2J\nState: X");
            card
        },
        move |_, answer| answer.result(json!({ "task": ended.clone() })),
    );
    for args in [&["send", "x"][..], &["card", "get"], &["send", "--stream", "x"]] {
        let ran = agent.run(args).succeeded();
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.chars().any(|letter| letter.is_control() && letter != '\n'), "{args:?} {all:?}");
        assert!(has_our_form(&ran.stdout), "{args:?} {}", ran.stdout);
        assert!(!ran.stdout.lines().any(|line| line == "State: TASK_STATE_FAILED" || line == "Task: forged"));
    }
    let ran = agent.run(&["send", "-o", "json", "x"]).succeeded();
    assert!(!ran.stdout.chars().any(|letter| letter.is_control() && letter != '\n'), "{:?}", ran.stdout);
    assert_eq!(ran.json()["task"]["artifacts"][0]["parts"][0]["text"], hostile);
}

#[test]
fn a_terminal_changes_nothing() {
    let server = DemoServer::start();
    let binary = env!("CARGO_BIN_EXE_switchboard");
    for command in
        [format!("{binary} send -a {} hello", server.url), format!("{binary} --help"), format!("{binary} send --help")]
    {
        // `script` runs the command with a terminal as its output.
        let mut script = std::process::Command::new("script");
        let output = script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
        assert!(!output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let server = DemoServer::start();
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &server.url);
    let mut child = cli
        .command(&["send", "--stream", "-o", "json", "stream 20"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let mut noted = String::new();
    child.stderr.take().unwrap().read_to_string(&mut noted).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{noted}");
    assert!(!noted.contains("panic") && !noted.contains("Error"), "{noted}");
}

#[test]
fn what_an_agent_decided_is_no_failure_of_the_command() {
    let server = DemoServer::start();
    for (text, state) in [
        ("fail on purpose", "TASK_STATE_FAILED"),
        ("reject it", "TASK_STATE_REJECTED"),
        ("ask why?", "TASK_STATE_INPUT_REQUIRED"),
        ("auth the calendar", "TASK_STATE_AUTH_REQUIRED"),
    ] {
        let ran = server.run(&["send", text]).succeeded();
        assert_eq!(ran.field("State"), state);
        assert!(ran.stderr.contains(&format!("Warning: the task is in state {state}")), "{}", ran.stderr);
    }
}

#[test]
fn help_and_version_are_there_for_every_command() {
    for command in [
        &[][..],
        &["card"],
        &["card", "get"],
        &["send"],
        &["task"],
        &["task", "get"],
        &["task", "cancel"],
        &["task", "list"],
        &["task", "subscribe"],
        &["task", "download"],
        &["task", "push-config"],
        &["task", "push-config", "create"],
        &["config"],
        &["config", "show"],
        &["chat"],
        &["demo-server"],
        &["completion"],
        &["serve"],
    ] {
        let mut args = command.to_vec();
        args.push("--help");
        let ran = switchboard(&args).succeeded();
        assert!(ran.stdout.contains("Usage: switchboard"), "{args:?}");
        let mut args = vec!["help"];
        args.extend(command);
        assert!(switchboard(&args).succeeded().stdout.contains("Usage: switchboard"), "{args:?}");
    }
    for flag in ["-v", "--version"] {
        assert!(switchboard(&[flag]).succeeded().stdout.starts_with("switchboard "));
    }
}

#[test]
fn help_shows_the_defaults_in_effect_and_no_secret() {
    let plain = switchboard(&["send", "--help"]).succeeded().stdout;
    for line in [
        "--output text (built in)",
        "--wait true (built in)",
        "--poll-interval 2s (built in)",
        "--a2a-version 1.0 (built in)",
        "--insecure false (built in)",
        "--verbose false (built in)",
    ] {
        assert!(plain.contains(line), "{line} is not in {plain}");
    }
    let cli = Cli::new().with("A2ACLI_OUTPUT", "json").with("A2ACLI_BEARER", "s3cret-t0ken");
    for args in [&["send", "--help"][..], &["help", "task", "get"]] {
        let help = cli.run(args).succeeded().stdout;
        assert!(help.contains("--output json (variable A2ACLI_OUTPUT)"), "{help}");
        assert!(!help.contains("s3cret"), "{help}");
    }
}

#[test]
fn settings_are_shown_with_their_sources_and_without_secrets() {
    let cli = Cli::new().with("A2ACLI_BEARER", "s3cret-t0ken").with("A2ACLI_TIMEOUT", "30s");
    std::fs::write(cli.home.path().join(".env"), "A2ACLI_AGENT_CARD=agent.example\nSECRET=other\n").unwrap();
    let ran = cli.run(&["config", "show", "--a2a-version", "0.3"]).succeeded();
    assert_eq!(ran.field("Timeout"), "30s (variable A2ACLI_TIMEOUT)");
    assert_eq!(ran.field("A2a-Version"), "0.3 (flag --a2a-version)");
    assert!(ran.field("Agent-Card").starts_with("agent.example (file ") && ran.field("Agent-Card").ends_with(".env)"));
    assert_eq!(ran.field("Bearer"), "set, 12 characters (variable A2ACLI_BEARER)");
    assert_eq!(ran.field("Output"), "text (built in)");
    assert!(!ran.stdout.contains("s3cret") && !ran.stdout.contains("other"));
    let listed = cli.run(&["config", "show", "-o", "json"]).succeeded().json();
    assert!(
        listed["settings"].as_array().unwrap().iter().any(|row| row["setting"] == "timeout" && row["value"] == "30s")
    );
}

#[test]
fn completions_are_printed_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = switchboard(&["completion", shell]).succeeded().stdout;
        assert!(script.contains("push-config") && script.contains("agent-card"), "{shell}");
    }
}

#[test]
fn what_is_exchanged_is_shown_on_standard_error_if_asked_for() {
    let server = DemoServer::start();
    for (transport, parts) in [
        (
            "jsonrpc",
            &["\"method\":\"SendStreamingMessage\"", "\"statusUpdate\"", "a2a-version: 1.0", "< HTTP 200 after"][..],
        ),
        ("http+json", &["/message:stream", "\"statusUpdate\""]),
        ("grpc", &["SendStreamingMessage", "bytes that are not JSON"]),
    ] {
        let ran = server.run(&["send", "--debug", "--transport", transport, "hello"]).succeeded();
        for part in parts {
            assert!(ran.stderr.contains(part), "{transport}: {part:?} is not in {}", ran.stderr);
        }
        assert!(!ran.stdout.contains("Debug:"));
    }
}

#[test]
fn a_task_that_asks_for_authorization_goes_on_by_the_printed_command() {
    let server = DemoServer::start();
    let asked = server.run(&["send", "auth the calendar"]).succeeded();
    assert!(asked.stdout.contains("Status-Message:\n  the calendar\n"), "{}", asked.stdout);
    let binary = env!("CARGO_BIN_EXE_switchboard");
    let line = asked.field("Resume").replace("<reply>", "allowed").replacen("switchboard", binary, 1);
    let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("State: TASK_STATE_COMPLETED"), "{said}");
}

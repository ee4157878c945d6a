//! `chat`: with a pipe, one turn per line; on a terminal, a conversation.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Cli, DemoServer, ScriptedAgent, card, task};

#[test]
fn each_line_is_a_turn_and_the_ids_are_carried() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |seen, answer| match seen.body["params"]["message"]["parts"][0]["text"].as_str() {
            Some("ask") => answer.result(json!({ "task": task("TASK_STATE_INPUT_REQUIRED") })),
            _ => answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
        },
    );
    let ran = Cli::new().input("one\nask\nblue\nlast\n").run(&["chat", &agent.url]).succeeded();
    let ids: Vec<(Option<String>, Option<String>)> = agent
        .calls()
        .iter()
        .map(|seen| {
            let own = |name: &str| seen.body["params"]["message"][name].as_str().map(str::to_owned);
            (own("contextId"), own("taskId"))
        })
        .collect();
    let own = |text: &str| Some(text.to_owned());
    // The task is carried only while it asks for something.
    assert_eq!(ids, [(None, None), (own("c-1"), None), (own("c-1"), own("t-1")), (own("c-1"), None)]);
    assert_eq!(ran.stdout.matches("State: ").count(), 4, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("Resume: switchboard chat") && ran.stderr.contains("--context-id c-1"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stdout.contains('\u{1b}'));
}

#[test]
fn the_end_of_the_input_ends_it() {
    let server = DemoServer::start();
    let ran = Cli::new().input("").run(&["chat", &server.url]).succeeded();
    assert!(ran.stdout.is_empty(), "{ran:?}");
    let ran = Cli::new().input("hello\n").run(&["chat", "-o", "json", "-a", &server.url]).succeeded();
    assert_eq!(ran.json()["task"]["artifacts"][0]["parts"][0]["text"], "hello");
}

/// Runs a conversation on a terminal, which `script` provides.
fn on_terminal(server: &DemoServer, typed: &str) -> String {
    let command = format!("{} chat {}", env!("CARGO_BIN_EXE_switchboard"), server.url);
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = script.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, typed.as_bytes()).unwrap();
    // The input is held open: a terminal that is closed would end the program before it has answered.
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn on_a_terminal_text_comes_as_it_is_written_and_commands_are_understood() {
    let server = DemoServer::start();
    let said = on_terminal(&server, "stream 3\nask which colour?\nblue\n/task\n/nonsense\n/help\n/quit\n");
    for part in [
        "Talking to",
        "chunk 3 of 3",
        "which colour?",
        "You said: blue",
        "TASK_STATE_COMPLETED",
        "there is no command /nonsense",
        "/cancel",
        "Resume: switchboard chat",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
}

#[test]
fn without_a_terminal_to_print_to_and_lines_to_read_it_points_to_send() {
    // Standard input is a terminal here, and standard output is a pipe.
    let command = format!("{} chat -a localhost:1 | cat", env!("CARGO_BIN_EXE_switchboard"));
    let output = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("A2ACLI_ERR_USAGE") && said.contains("switchboard send"), "{said}");
}

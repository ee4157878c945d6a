//! `send`: what leaves, how it waits, and what it prints.

use serde_json::{Value, json};

use crate::support::{Cli, DemoServer, ScriptedAgent, card, status, switchboard, task, write};

#[test]
fn a_message_is_sent_and_the_answer_printed() {
    let server = DemoServer::start();
    let ran = server.run(&["send", "hello there"]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    assert!(ran.stdout.contains("Text:\n  hello there\n\n"), "{}", ran.stdout);
    assert!(!ran.field("Task").is_empty() && !ran.field("Context").is_empty());
}

#[test]
fn what_is_sent_has_no_ids_of_ours_but_the_message_id() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |_, answer| answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
    );
    agent.run(&["send", "hi", "--metadata", r#"{"priority":1}"#]).succeeded();
    let calls = agent.calls();
    assert_eq!(calls.len(), 1, "{calls:?}");
    let message = &calls[0].body["params"]["message"];
    assert_eq!((calls[0].rpc(), message["role"].as_str()), ("SendMessage", Some("ROLE_USER")));
    assert!(message.get("taskId").is_none() && message.get("contextId").is_none(), "{message}");
    assert!(!message["messageId"].as_str().unwrap().is_empty());
    assert_eq!(calls[0].body["params"]["metadata"], json!({ "priority": 1 }));
    assert_eq!(calls[0].body["params"]["configuration"]["returnImmediately"], true);
}

#[test]
fn it_waits_unless_told_otherwise() {
    let server = DemoServer::start();
    assert_eq!(server.run(&["send", "slow 1"]).succeeded().field("State"), "TASK_STATE_COMPLETED");
    for flag in ["--async", "--return-immediately", "--no-wait"] {
        let ran = server.run(&["send", flag, "slow 30"]).succeeded();
        assert!(!ran.field("Task").is_empty() && !ran.field("Context").is_empty());
        assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&ran.field("State")), "{ran:?}");
        let ran = server.run(&["send", flag, "-o", "json", "slow 30"]).succeeded().json();
        assert!(ran["task"]["id"].is_string() && ran["task"]["contextId"].is_string(), "{ran}");
    }
    // An explicit wait outranks a configured --async.
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &server.url).with("A2ACLI_ASYNC", "true");
    assert_eq!(cli.run(&["send", "--wait", "slow 1"]).succeeded().field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn a_stream_is_shown_as_it_comes_on_every_binding() {
    let server = DemoServer::start();
    for transport in ["jsonrpc", "http+json", "grpc"] {
        let ran = server.run(&["send", "--stream", "-o", "json", "--transport", transport, "stream 3"]).succeeded();
        let lines = ran.json_lines();
        assert!(lines.len() >= 4, "{transport}: {lines:?}");
        assert!(lines[0].get("task").is_some(), "{lines:?}");
        let last = lines.last().unwrap();
        assert_eq!(last["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED", "{transport}");
        let ran = server.run(&["send", "--stream", "--transport", transport, "stream 3"]).succeeded();
        assert!(ran.stdout.contains("chunk 3 of 3"), "{}", ran.stdout);
        assert!(ran.stdout.contains("State: TASK_STATE_COMPLETED"));
    }
}

#[test]
fn without_streams_it_asks_for_the_task_and_still_prints_lines() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |seen, answer| match seen.rpc() {
            "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_WORKING") })),
            _ => answer.result(task("TASK_STATE_COMPLETED")),
        },
    );
    let ran = agent.run(&["send", "--stream", "-o", "json", "--poll-interval", "10ms", "hi"]).succeeded();
    assert_eq!(ran.json_lines().last().unwrap()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(agent.calls().iter().all(|seen| seen.rpc() != "SendStreamingMessage"));
}

#[test]
fn a_card_that_promises_streams_in_vain_is_coped_with() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => answer.error(-32004, "no streams here"),
        "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_WORKING") })),
        _ => answer.result(task("TASK_STATE_COMPLETED")),
    });
    let ran = agent.run(&["send", "--stream", "--poll-interval", "10ms", "hi"]).succeeded();
    assert!(ran.stdout.contains("State: TASK_STATE_COMPLETED"), "{ran:?}");
}

#[test]
fn a_message_in_place_of_a_task_is_a_clean_end() {
    let reply = json!({ "message": { "messageId": "m", "role": "ROLE_AGENT", "parts": [{ "text": "direct" }] } });
    let agent = ScriptedAgent::ordinary(move |seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(reply.clone());
        }
        _ => answer.result(reply.clone()),
    });
    for args in [&["send", "hi"][..], &["send", "--stream", "hi"], &["send", "--async", "hi"]] {
        let ran = agent.run(args).succeeded();
        assert!(ran.stdout.contains("Message-Id: m\n") && ran.stdout.contains("  direct\n"), "{ran:?}");
    }
    assert_eq!(agent.run(&["send", "-o", "json", "hi"]).succeeded().json()["message"]["messageId"], "m");
}

#[test]
fn a_broken_stream_becomes_asking() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_WORKING") }));
        }
        "SubscribeToTask" => answer.error(-32004, "cannot be followed"),
        _ => answer.result(task("TASK_STATE_COMPLETED")),
    });
    let ran = agent.run(&["send", "-o", "json", "--poll-interval", "10ms", "hi"]).succeeded();
    assert_eq!(ran.json()["task"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert!(agent.calls().iter().any(|seen| seen.rpc() == "GetTask"));
    assert_eq!(agent.calls().iter().filter(|seen| seen.rpc() == "SendStreamingMessage").count(), 1);
}

#[test]
fn parts_are_sent_in_their_order() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |_, answer| answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
    );
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).input(r#"{"n":1}"#);
    let file = write(&cli.folder(), "b.csv", "x,y");
    let args = [
        "send",
        "first",
        "--text",
        "a",
        "--file",
        &file,
        "--data",
        "-",
        "--text",
        "c",
        "--media-type",
        "text/markdown",
    ];
    cli.run(&args).succeeded();
    let parts = agent.calls()[0].body["params"]["message"]["parts"].clone();
    assert_eq!(
        parts,
        json!([
            { "text": "first" },
            { "text": "a" },
            { "raw": "eCx5", "filename": "b.csv", "mediaType": "text/csv" },
            { "data": { "n": 1 } },
            { "text": "c", "mediaType": "text/markdown" },
        ])
    );
}

#[test]
fn what_is_wrong_with_the_command_line_is_told_before_anything_is_sent() {
    let agent = ScriptedAgent::ordinary(|_, answer| answer.error(-32603, "not reached"));
    for args in [
        &["send"][..],
        &["send", "--media-type", "a/b", "--text", "x"],
        &["send", "x", "--async", "--stream"],
        &["send", "x", "--async", "--wait"],
        &["send", "x", "--metadata", "[1]"],
        &["send", "--data", "/no/such/file"],
        &["send", "x", "--continue"],
        &["send", "x", "--timeout", "soon"],
        &["send", "x", "--svc-param", "nocolon"],
        &["send", "x", "--svc-param", "A2A-Version:0.3"],
    ] {
        let ran = agent.run(args);
        assert_eq!((ran.code, ran.error_code().as_str()), (2, "A2ACLI_ERR_USAGE"), "{args:?} {ran:?}");
        let mut args = args.to_vec();
        args.extend(["-o", "json"]);
        let ran = agent.run(&args);
        assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (2, Some("A2ACLI_ERR_USAGE")), "{args:?}");
    }
    assert!(agent.calls().is_empty());
    assert_eq!(switchboard(&["send", "x"]).error_code(), "A2ACLI_ERR_USAGE");
}

#[test]
fn every_kind_of_part_in_an_artifact_is_shown_and_kept() {
    let parts = json!([
        { "text": "one" },
        { "data": { "k": [1, 2] } },
        { "raw": "AAEC", "filename": "a.bin", "mediaType": "application/x-thing" },
        { "url": "https://files.example/b", "filename": "b" },
        { "text": "" },
    ]);
    let mut ended = task("TASK_STATE_COMPLETED");
    ended["artifacts"] = json!([{ "artifactId": "a-1", "name": "Result", "parts": parts }]);
    let agent =
        ScriptedAgent::start(|url| card(url, false), move |_, answer| answer.result(json!({ "task": ended.clone() })));
    let text = agent.run(&["send", "x"]).succeeded().stdout;
    for part in [
        "Artifact: a-1 Result\n",
        "Text:\n  one\n\n",
        "\"k\"",
        "File: a.bin application/x-thing 3 bytes\n",
        "https://files.example/b",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let document = agent.run(&["send", "-o", "json", "x"]).succeeded().json();
    assert_eq!(document["task"]["artifacts"][0]["parts"], parts);
}

#[test]
fn a_conversation_goes_on_by_the_printed_command() {
    let server = DemoServer::start();
    let asked = server.run(&["send", "ask which colour?"]).succeeded();
    assert_eq!(asked.field("State"), "TASK_STATE_INPUT_REQUIRED");
    assert!(asked.stderr.contains("TASK_STATE_INPUT_REQUIRED"), "{}", asked.stderr);
    let cli = Cli::new();
    let binary = env!("CARGO_BIN_EXE_switchboard");
    let line = asked.field("Resume").replace("<reply>", "blue").replacen("switchboard", binary, 1);
    assert!(line.contains("--task-id") && line.contains("--agent-card"), "{line}");
    let shell = std::process::Command::new("sh").args(["-c", &line]).env("HOME", cli.home.path()).output().unwrap();
    let said = String::from_utf8(shell.stdout).unwrap();
    assert!(said.contains("You said: blue") && said.contains(asked.field("Task")), "{said}");
}

#[test]
fn a_context_is_gone_on_with_and_nothing_is_invented() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |_, answer| answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
    );
    agent.run(&["send", "--context-id", "c-9", "x"]).succeeded();
    agent.run(&["send", "--task-id", "t-9", "x"]).succeeded();
    agent.run(&["send", "--task-id", "t-9", "--context-id", "other", "x"]).succeeded();
    let messages: Vec<Value> = agent.calls().iter().map(|seen| seen.body["params"]["message"].clone()).collect();
    let ids = |message: &Value| {
        (message["taskId"].as_str().map(str::to_owned), message["contextId"].as_str().map(str::to_owned))
    };
    let own = |text: &str| Some(text.to_owned());
    assert_eq!(ids(&messages[0]), (None, own("c-9")));
    assert_eq!(ids(&messages[1]), (own("t-9"), None));
    assert_eq!(ids(&messages[2]), (own("t-9"), own("other")));
}

#[test]
fn a_task_that_is_refused_is_not_begun_anew() {
    let server = DemoServer::start();
    let ended = server.run(&["send", "hello"]).succeeded();
    let before = server.run(&["task", "list", "-o", "json"]).succeeded().json()["totalSize"].clone();
    for (id, code) in [
        ("00000000-0000-0000-0000-000000000000", "TaskNotFoundError"),
        (ended.field("Task"), "UnsupportedOperationError"),
    ] {
        let ran = server.run(&["send", "--task-id", id, "more"]);
        assert_eq!((ran.code, ran.error_code().as_str()), (1, code), "{ran:?}");
        assert!(ran.stderr.contains("--debug"), "{}", ran.stderr);
    }
    assert_eq!(server.run(&["task", "list", "-o", "json"]).succeeded().json()["totalSize"], before);
}

#[test]
fn an_old_question_in_the_first_picture_is_not_the_answer() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_INPUT_REQUIRED") }));
            answer.event(status("TASK_STATE_WORKING"));
            answer.event(status("TASK_STATE_COMPLETED"));
        }
        _ => answer.result(task("TASK_STATE_COMPLETED")),
    });
    let ran = agent.run(&["send", "--task-id", "t-1", "blue"]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
}

#[test]
fn it_leaves_a_stream_that_stays_open_at_a_question() {
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "SendStreamingMessage" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_WORKING") }));
            answer.event(status("TASK_STATE_AUTH_REQUIRED"));
            answer.until_closed();
        }
        _ => answer.result(task("TASK_STATE_AUTH_REQUIRED")),
    });
    let ran = agent.run(&["send", "x"]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_AUTH_REQUIRED");
    assert!(ran.field("Resume").contains("send"), "{ran:?}");
}

#[test]
fn nothing_is_remembered() {
    let server = DemoServer::start();
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &server.url);
    let listing = || {
        let mut found = Vec::new();
        let mut folders = vec![cli.home.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_dir() {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found.sort();
        found
    };
    let before = listing();
    cli.run(&["send", "ask what?"]).succeeded();
    cli.run(&["task", "list"]).succeeded();
    cli.run(&["card", "get"]).succeeded();
    assert_eq!(listing(), before);
    assert_eq!(cli.run(&["send", "--continue", "x"]).code, 2);
}

//! `task get`, `cancel`, `list`, `subscribe`, `download` and `push-config`.

use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Cli, DemoServer, ScriptedAgent, card, card_with, status, task};

#[test]
fn a_task_is_read_with_its_history() {
    let server = DemoServer::start();
    let id = server.run(&["send", "hello"]).succeeded().field("Task").to_owned();
    let text = server.run(&["task", "get", &id]).succeeded();
    assert_eq!(text.field("State"), "TASK_STATE_COMPLETED");
    assert!(text.stdout.contains("  hello\n"));
    assert!(server.run(&["task", "get", &id, "--history", "5"]).succeeded().stdout.contains("History: ROLE_USER"));
    let history = |n: &str| {
        let read = server.run(&["task", "get", &id, "--history", n, "-o", "json"]).succeeded().json();
        read["history"].as_array().map_or(0, Vec::len)
    };
    assert_eq!((history("0"), history("1")), (0, 1));
    let read = server.run(&["task", "get", "-o", "json", "--task-id", &id]).succeeded().json();
    assert_eq!(
        (read["id"].as_str(), read["artifacts"][0]["parts"][0]["text"].as_str()),
        (Some(id.as_str()), Some("hello"))
    );
    assert_eq!(server.run(&["task", "get", "a", "--task-id", "b"]).code, 2);
}

#[test]
fn waiting_for_a_task_asks_until_there_is_nothing_to_wait_for() {
    let looks = AtomicUsize::new(0);
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        move |_, answer| {
            let states = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"];
            let at = looks.fetch_add(1, Ordering::SeqCst);
            answer.result(task(states[at.min(3)]));
        },
    );
    assert_eq!(agent.run(&["task", "get", "t-1"]).succeeded().field("State"), "TASK_STATE_SUBMITTED");
    assert_eq!(agent.calls().len(), 1);
    let ran = agent.run(&["task", "get", "--wait", "--poll-interval", "20ms", "t-1"]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    // Three looks, and the last picture with what was asked for.
    assert_eq!(agent.calls().len(), 5);
}

#[test]
fn waiting_stops_at_once_where_the_task_asks_for_something() {
    for state in ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"] {
        let agent = ScriptedAgent::start(|url| card(url, false), move |_, answer| answer.result(task(state)));
        let ran = agent.run(&["task", "get", "--wait", "t-1"]).succeeded();
        assert_eq!(ran.field("State"), state);
        assert_eq!(agent.calls().len(), 1);
        assert!(ran.stderr.contains(state), "{ran:?}");
    }
}

#[test]
fn a_state_that_says_nothing_is_shown_as_it_came_and_waited_on() {
    let agent = ScriptedAgent::start(|url| card(url, false), |_, answer| answer.result(task("TASK_STATE_UNSPECIFIED")));
    assert_eq!(agent.run(&["task", "get", "t-1"]).succeeded().field("State"), "TASK_STATE_UNSPECIFIED");
    let ran = agent.run(&["task", "get", "-o", "json", "t-1"]).succeeded();
    assert_eq!(ran.json()["status"]["state"], "TASK_STATE_UNSPECIFIED");
    let ran = agent.run(&["task", "get", "--wait", "t-1", "--timeout", "200ms", "--poll-interval", "20ms"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (5, "A2ACLI_ERR_TIMEOUT"), "{ran:?}");
    assert!(agent.calls().len() > 3);
}

#[test]
fn a_wait_ends_with_its_time_and_the_task_is_not_lost() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |seen, answer| match seen.rpc() {
            "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_WORKING") })),
            _ => answer.result(task("TASK_STATE_WORKING")),
        },
    );
    for args in [&["task", "get", "--wait", "t-1"][..], &["send", "x"]] {
        let mut args = args.to_vec();
        args.extend(["--timeout", "300ms", "--poll-interval", "50ms"]);
        let ran = agent.run(&args);
        assert_eq!((ran.code, ran.error_code().as_str()), (5, "A2ACLI_ERR_TIMEOUT"), "{ran:?}");
        assert!(ran.stderr.contains("task get") && ran.stderr.contains("t-1"), "{}", ran.stderr);
    }
    // At 50, 75, 112 ms and so on: no busy loop.
    assert!(agent.calls().len() < 16, "{}", agent.calls().len());
}

#[test]
fn a_command_that_is_stopped_has_told_the_task_already() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |seen, answer| match seen.rpc() {
            "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_WORKING") })),
            _ => answer.result(task("TASK_STATE_WORKING")),
        },
    );
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    let mut command = cli.command(&["send", "x", "-o", "json", "--poll-interval", "20ms"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    while agent.calls().len() < 3 {
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let (said, noted) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(130));
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["error"]["code"], "SWITCHBOARD_ERR_INTERRUPTED");
    assert!(noted.contains("Task t-1") && document["error"]["hint"].as_str().unwrap().contains("t-1"), "{noted}");
    assert!(agent.calls().iter().all(|seen| seen.rpc() != "CancelTask"));
}

#[test]
fn cancelling_twice_is_as_good_as_once() {
    let server = DemoServer::start();
    let id = server.run(&["send", "--async", "slow 60"]).succeeded().field("Task").to_owned();
    for _ in 0..2 {
        assert_eq!(server.run(&["task", "cancel", &id]).succeeded().field("State"), "TASK_STATE_CANCELED");
    }
    // An agent that refuses the second one.
    let agent = ScriptedAgent::ordinary(|seen, answer| match seen.rpc() {
        "CancelTask" => answer.error(-32002, "not cancelable"),
        _ => answer.result(task("TASK_STATE_CANCELED")),
    });
    assert_eq!(agent.run(&["task", "cancel", "t-1"]).succeeded().field("State"), "TASK_STATE_CANCELED");
    let ended = server.run(&["send", "hello"]).succeeded().field("Task").to_owned();
    let ran = server.run(&["task", "cancel", &ended]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "TaskNotCancelableError"));
    assert!(ran.stderr.contains("TASK_STATE_COMPLETED"), "{}", ran.stderr);
}

#[test]
fn tasks_are_listed_page_by_page_and_by_what_is_asked_for() {
    let server = DemoServer::start();
    let context = server.run(&["send", "hello"]).succeeded().field("Context").to_owned();
    for at in 0..6 {
        server.run(&["send", "--context-id", &context, &format!("again {at}")]).succeeded();
    }
    server.run(&["send", "fail on purpose"]).succeeded();
    let ids = |page: &Value| -> Vec<String> {
        page["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect()
    };
    let mut all = Vec::new();
    let mut token = String::new();
    loop {
        let mut args = vec!["task", "list", "-o", "json", "--page-size", "3"];
        if !token.is_empty() {
            args.extend(["--page-token", &token]);
        }
        let page = server.run(&args).succeeded().json();
        all.extend(ids(&page));
        token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(all.len(), 8);
    assert_eq!(ids(&server.run(&["task", "list", "-o", "json", "--page-size", "3", "--all"]).succeeded().json()), all);
    let of_context = server.run(&["task", "list", "-o", "json", "--context-id", &context]).succeeded().json();
    assert_eq!(ids(&of_context).len(), 7);
    for name in ["failed", "TASK_STATE_FAILED"] {
        let failed = server.run(&["task", "list", "-o", "json", "--status", name]).succeeded().json();
        assert_eq!(ids(&failed).len(), 1);
    }
    assert_eq!(server.run(&["task", "list", "--status", "done"]).code, 2);
    assert_eq!(server.run(&["task", "list", "-o", "json", "--stream", "--all"]).succeeded().json_lines().len(), 8);
    let text = server.run(&["task", "list", "--page-size", "2"]).succeeded();
    assert_eq!(text.field("Total"), "8");
    assert!(!text.field("Next-Page").is_empty());
}

#[test]
fn a_task_is_followed_to_its_end() {
    let server = DemoServer::start();
    let id = server.run(&["send", "--async", "stream 20"]).succeeded().field("Task").to_owned();
    let lines = server.run(&["task", "subscribe", &id, "-o", "json", "--stream"]).succeeded().json_lines();
    assert!(lines[0].get("task").is_some(), "{lines:?}");
    assert_eq!(lines.last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    // One that has ended is read.
    let ran = server.run(&["task", "subscribe", &id, "-o", "json"]).succeeded().json();
    assert_eq!(
        (ran["id"].as_str(), ran["status"]["state"].as_str()),
        (Some(id.as_str()), Some("TASK_STATE_COMPLETED"))
    );
}

#[test]
fn a_stream_that_is_cut_is_taken_up_again_without_another_look() {
    let times = AtomicUsize::new(0);
    let agent = ScriptedAgent::ordinary(move |seen, answer| match seen.rpc() {
        "SubscribeToTask" => {
            answer.stream();
            answer.event(json!({ "task": task("TASK_STATE_WORKING") }));
            if times.fetch_add(1, Ordering::SeqCst) == 3 {
                answer.event(status("TASK_STATE_COMPLETED"));
            }
        }
        other => panic!("{other} was called"),
    });
    let ran = agent.run(&["task", "subscribe", "t-1", "-o", "json", "--stream"]).succeeded();
    assert_eq!(ran.json_lines().last().unwrap()["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(agent.calls().len(), 4);
}

#[test]
fn what_the_card_does_not_offer_is_not_asked_for() {
    let agent = ScriptedAgent::start(|url| card(url, false), |_, answer| answer.error(-32603, "not reached"));
    for (args, code) in [
        (&["task", "subscribe", "t-1"][..], "UnsupportedOperationError"),
        (&["task", "push-config", "list", "t-1"], "PushNotificationNotSupportedError"),
        (&["card", "get", "--extended"], "UnsupportedOperationError"),
    ] {
        let ran = agent.run(args);
        assert_eq!((ran.code, ran.error_code().as_str()), (1, code), "{ran:?}");
    }
    assert!(agent.calls().is_empty());
}

#[test]
fn artifacts_are_saved_in_the_folder_and_nowhere_else() {
    let mut ended = task("TASK_STATE_COMPLETED");
    let part = |name: &str| json!({ "raw": "aGk=", "filename": name });
    ended["artifacts"] = json!([
        { "artifactId": "a", "parts": [part("../../evil.txt"), part("same.bin"), part("same.bin"), { "data": { "k": 1 } }] },
        { "artifactId": "b", "name": "story", "parts": [{ "text": "once " }, { "text": "upon" }] },
    ]);
    let agent = ScriptedAgent::start(|url| card(url, false), move |_, answer| answer.result(ended.clone()));
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    let ran = cli.run(&["task", "download", "t-1", "--dir", "out"]).succeeded();
    let folder = cli.folder().join("out");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert_eq!((read("evil.txt"), read("same.bin"), read("same-2.bin")), ("hi".into(), "hi".into(), "hi".into()));
    assert_eq!((read("a-4.json"), read("story.txt")), (r#"{"k":1}"#.into(), "once upon".into()));
    assert_eq!(ran.stdout.matches("Saved: ").count(), 5);
    assert!(!cli.home.path().join("evil.txt").exists());
    let again = cli.run(&["task", "download", "t-1", "--dir", "out"]);
    assert_eq!((again.code, again.error_code().as_str()), (2, "A2ACLI_ERR_USAGE"));
    cli.run(&["task", "download", "t-1", "--dir", "out", "--force", "--artifact", "b"]).succeeded();
}

#[test]
fn webhooks_are_made_read_listed_and_removed_on_every_binding() {
    let server = DemoServer::start();
    let id = server.run(&["send", "--async", "slow 60"]).succeeded().field("Task").to_owned();
    for transport in ["jsonrpc", "http+json", "grpc"] {
        let run = |args: &[&str]| {
            let mut all = vec!["task", "push-config"];
            all.extend(args);
            all.extend(["--transport", transport]);
            server.run(&all)
        };
        let url = "https://hooks.example/a2a";
        let made =
            run(&["create", &id, "--url", url, "--id", transport, "--token", "t0ken", "-o", "json"]).succeeded().json();
        assert_eq!((made["url"].as_str(), made["id"].as_str()), (Some(url), Some(transport)), "{made}");
        assert_eq!(run(&["get", &id, transport]).succeeded().field("Url"), url);
        let listed = run(&["list", &id, "-o", "json"]).succeeded().json();
        assert_eq!(listed["configs"].as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(run(&["delete", &id, transport, "-o", "json"]).succeeded().stdout, "{}\n");
        assert_eq!(run(&["get", &id, transport]).code, 1);
    }
}

#[test]
fn the_tenant_of_an_interface_goes_with_every_request() {
    let agent = ScriptedAgent::start(
        |url| {
            let interface = json!([{ "url": format!("{url}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "acme" }]);
            card_with(url, json!({ "supportedInterfaces": interface }))
        },
        |seen, answer| match seen.rpc() {
            "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
            _ => answer.result(task("TASK_STATE_COMPLETED")),
        },
    );
    agent.run(&["send", "x"]).succeeded();
    agent.run(&["task", "get", "t-1"]).succeeded();
    agent.run(&["task", "cancel", "t-1"]).succeeded();
    let tenants: Vec<Value> = agent.calls().iter().map(|seen| seen.body["params"]["tenant"].clone()).collect();
    assert_eq!(tenants, ["acme", "acme", "acme"]);
    let plain = ScriptedAgent::start(|url| card(url, false), |_, answer| answer.result(task("TASK_STATE_COMPLETED")));
    plain.run(&["task", "get", "t-1"]).succeeded();
    assert!(plain.calls()[0].body["params"].get("tenant").is_none());
}

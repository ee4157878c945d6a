//! Which binding and which version are used, and what is never done unasked.

use serde_json::{Value, json};

use crate::support::{DemoServer, ScriptedAgent, card, card_with, task};

fn interface(url: &str, binding: &str, version: &str) -> Value {
    json!({ "url": url, "protocolBinding": binding, "protocolVersion": version })
}

#[test]
fn the_order_of_the_card_decides_unless_the_user_prefers_otherwise() {
    let orders: [(&[&str], &[&str], &str); 6] = [
        (&["JSONRPC", "HTTP+JSON"], &[], "/rpc"),
        (&["HTTP+JSON", "JSONRPC"], &[], "/rest/tasks/t-1"),
        (&["CARRIER-PIGEON", "JSONRPC"], &[], "/rpc"),
        (&["JSONRPC", "HTTP+JSON"], &["http+json"], "/rest/tasks/t-1"),
        (&["JSONRPC", "HTTP+JSON"], &["grpc", "REST"], "/rest/tasks/t-1"),
        // None of the preferred ones is offered.
        (&["JSONRPC"], &["grpc", "pigeon"], "/rpc"),
    ];
    for (offered, preferred, path) in orders {
        let agent = ScriptedAgent::start(
            move |url| {
                let all = offered.iter().map(|binding| match *binding {
                    "HTTP+JSON" => interface(&format!("{url}/rest"), binding, "1.0"),
                    binding => interface(&format!("{url}/rpc"), binding, "1.0"),
                });
                card_with(url, json!({ "supportedInterfaces": all.collect::<Vec<_>>() }))
            },
            |seen, answer| match seen.path.as_str() {
                "/rpc" => answer.result(task("TASK_STATE_COMPLETED")),
                _ => answer.json(200, &task("TASK_STATE_COMPLETED")),
            },
        );
        let mut args = vec!["task", "get", "t-1"];
        for name in preferred {
            args.extend(["--transport", name]);
        }
        agent.run(&args).succeeded();
        assert_eq!(agent.calls()[0].path, path, "{offered:?} {preferred:?}");
    }
}

#[test]
fn every_request_names_the_version() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |seen, answer| match seen.rpc() {
            "SendMessage" => answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
            "ListTasks" => answer.result(json!({ "tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0 })),
            _ => answer.result(task("TASK_STATE_COMPLETED")),
        },
    );
    for args in [&["send", "x"][..], &["task", "get", "t-1"], &["task", "cancel", "t-1"], &["task", "list"]] {
        agent.run(args).succeeded();
    }
    let seen = agent.seen();
    assert!(seen.len() >= 8);
    for request in seen {
        assert_eq!(request.header("a2a-version"), Some("1.0"), "{request:?}");
    }
}

#[test]
fn an_old_agent_is_called_only_if_that_is_asked_for() {
    let old = |url: &str| {
        json!({
            "protocolVersion": "0.3.0", "name": "Old", "description": "d", "version": "1", "url": format!("{url}/rpc"),
            "preferredTransport": "JSONRPC", "capabilities": {}, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"], "skills": [],
        })
    };
    let agent = ScriptedAgent::start(old, |seen, answer| match seen.rpc() {
        "message/send" => answer.result(json!({
            "kind": "task", "id": "t-1", "contextId": "c-1", "status": { "state": "completed" },
            "artifacts": [{ "artifactId": "a", "parts": [{ "kind": "text", "text": "old words" }] }],
        })),
        other => panic!("{other}"),
    });
    let ran = agent.run(&["send", "x"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "VersionNotSupportedError"), "{ran:?}");
    assert!(ran.stderr.contains("--a2a-version 0.3"), "{}", ran.stderr);
    assert!(agent.calls().is_empty());
    assert_eq!(agent.run(&["card", "get"]).succeeded().field("Name"), "Old");
    for version in ["0.3", "auto"] {
        let ran = agent.run(&["send", "-o", "json", "--a2a-version", version, "x"]).succeeded().json();
        // The form of 1.0, whatever the agent speaks.
        assert_eq!(ran["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{ran}");
        assert_eq!(ran["task"]["artifacts"][0]["parts"][0], json!({ "text": "old words" }));
    }
    assert_eq!(agent.run(&["send", "--a2a-version", "2.0", "x"]).error_code(), "VersionNotSupportedError");
}

#[test]
fn the_demo_is_called_in_every_version_and_binding_with_the_same_output() {
    let server = DemoServer::start();
    let mut outputs = Vec::new();
    for (transport, version) in ["jsonrpc", "http+json", "grpc"].iter().flat_map(|name| [(name, "1.0"), (name, "0.3")])
    {
        let all = ["send", "-o", "json", "one two", "--transport", transport, "--a2a-version", version];
        let mut document = server.run(&all).succeeded().json();
        for id in ["id", "contextId", "history", "metadata"] {
            document["task"][id] = Value::Null;
        }
        document["task"]["status"]["timestamp"] = Value::Null;
        document["task"]["artifacts"][0]["artifactId"] = Value::Null;
        outputs.push(document);
    }
    for other in &outputs[1..] {
        assert_eq!(&outputs[0], other);
    }
}

#[test]
fn an_extension_that_the_agent_requires_is_declared_or_the_call_is_not_made() {
    let agent = ScriptedAgent::start(
        |url| {
            let extensions =
                json!([{ "uri": "https://x.example/ext", "required": true }, { "uri": "https://y.example/ext" }]);
            card_with(url, json!({ "capabilities": { "extensions": extensions } }))
        },
        |_, answer| answer.result(task("TASK_STATE_COMPLETED")),
    );
    let ran = agent.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "ExtensionSupportRequiredError"), "{ran:?}");
    assert!(agent.calls().is_empty());
    agent.run(&["task", "get", "t-1", "--extension", "https://x.example/ext"]).succeeded();
    assert_eq!(agent.calls()[0].header("a2a-extensions"), Some("https://x.example/ext"));
}

//! Each failure has its code and its exit code, the same on every binding, and hostile agents are survived.

use serde_json::{Value, json};
use switchboard_test_servers::free_addr;

use crate::support::{Answer, Cli, DemoServer, ScriptedAgent, Seen, card, card_with, switchboard, task};

#[test]
fn the_errors_of_the_protocol_keep_their_names() {
    for (number, name) in [
        (-32001, "TaskNotFoundError"),
        (-32002, "TaskNotCancelableError"),
        (-32003, "PushNotificationNotSupportedError"),
        (-32004, "UnsupportedOperationError"),
        (-32005, "ContentTypeNotSupportedError"),
        (-32006, "InvalidAgentResponseError"),
        (-32007, "ExtendedAgentCardNotConfiguredError"),
        (-32008, "ExtensionSupportRequiredError"),
        (-32009, "VersionNotSupportedError"),
        (-32700, "JSONParseError"),
        (-32600, "InvalidRequestError"),
        (-32601, "MethodNotFoundError"),
        (-32602, "InvalidParamsError"),
        (-32603, "InternalError"),
    ] {
        let agent =
            ScriptedAgent::start(|url| card(url, false), move |_, answer| answer.error(number, "said by the agent"));
        let ran = agent.run(&["task", "get", "t-1", "-o", "json"]);
        let error = &ran.json()["error"];
        assert_eq!((ran.code, error["code"].as_str()), (1, Some(name)), "{ran:?}");
        assert_eq!(error["a2aCode"], number, "{name}");
        assert_eq!(error["message"], "said by the agent", "{name}");
    }
}

#[test]
fn an_error_is_the_same_on_every_binding() {
    let server = DemoServer::start();
    let ended = server.run(&["send", "hello"]).succeeded().field("Task").to_owned();
    for transport in ["jsonrpc", "http+json", "grpc"] {
        for (args, code) in [
            (&["task", "get", "00000000-0000-0000-0000-000000000000"][..], "TaskNotFoundError"),
            (&["task", "cancel", &ended], "TaskNotCancelableError"),
            (&["send", "--task-id", &ended, "more"], "UnsupportedOperationError"),
        ] {
            let mut args = args.to_vec();
            args.extend(["-o", "json", "--transport", transport]);
            let ran = server.run(&args);
            assert_eq!((ran.code, ran.json()["error"]["code"].as_str()), (1, Some(code)), "{transport} {ran:?}");
        }
    }
}

#[test]
fn exit_codes_agree_with_the_errors() {
    let gone = free_addr().to_string();
    let ran = switchboard(&["card", "get", "-a", &gone]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");

    let empty = ScriptedAgent::start(|_| Value::Null, |_, answer| answer.raw(404, "text/plain", "nothing here"));
    let ran = empty.run(&["card", "get"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");

    let broken = ScriptedAgent::start(|_| Value::Null, |_, answer| answer.raw(200, "application/json", "{\"name\": 7"));
    let ran = broken.run(&["card", "get"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"), "{ran:?}");

    let ran = switchboard(&["card", "get", "-a", "/no/such/card.json"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");

    let proxy =
        ScriptedAgent::start(|url| card(url, false), |_, answer| answer.raw(502, "text/html", "<h1>Bad gateway</h1>"));
    let ran = proxy.run(&["task", "get", "t-1", "--timeout", "20s"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");

    let elsewhere = ScriptedAgent::start(|url| card(url, false), |_, answer| answer.raw(404, "text/plain", "no"));
    let ran = elsewhere.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "MethodNotFoundError"), "{ran:?}");
    assert!(ran.stderr.contains("Hint: "), "{ran:?}");

    let strange = ScriptedAgent::start(|url| card(url, false), |_, answer| answer.raw(200, "application/json", "[1,2"));
    let ran = strange.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "InvalidAgentResponseError"), "{ran:?}");
}

#[test]
fn only_codes_of_the_registry_are_in_the_binary() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_switchboard")).unwrap();
    let mut found = std::collections::BTreeSet::new();
    let start = b"A2ACLI_ERR_";
    for at in binary.windows(start.len()).enumerate().filter(|(_, window)| window == start).map(|(at, _)| at) {
        let name = &binary[at..];
        let end = name.iter().position(|byte| !byte.is_ascii_uppercase() && !byte.is_ascii_digit() && *byte != b'_');
        found.insert(String::from_utf8_lossy(&name[..end.unwrap_or(name.len())]).into_owned());
    }
    let registry = [
        "USAGE",
        "CARD_NOT_FOUND",
        "CARD_INVALID",
        "UNREACHABLE",
        "CREDENTIALS_MISSING",
        "AUTH_FAILED",
        "TIMEOUT",
        "INTERNAL",
    ];
    for name in &found {
        // Texts stand side by side in a binary, so a name may be followed by another.
        assert!(registry.iter().any(|known| name.starts_with(&format!("A2ACLI_ERR_{known}"))), "{name}");
    }
    assert!(found.len() >= 7, "{found:?}");
}

/// A card, and a script for the rest.
fn hostile(script: impl Fn(&Seen, &mut Answer<'_>) + Send + Sync + 'static) -> ScriptedAgent {
    ScriptedAgent::ordinary(script)
}

#[test]
fn hostile_agents_are_survived_with_a_clear_error() {
    let bomb = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let agent = hostile(move |_, answer| answer.raw(200, "application/json", &bomb));
    let ran = agent.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "InvalidAgentResponseError"), "{ran:?}");

    let agent = hostile(|_, answer| answer.raw(200, "text/html", "<html>log in here</html>"));
    let ran = agent.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "InvalidAgentResponseError"), "{ran:?}");

    let agent = hostile(|_, answer| answer.raw(500, "text/plain", &"x".repeat(8 << 20)));
    let ran = agent.run(&["task", "get", "t-1", "--timeout", "30s"]);
    assert!(ran.code != 0 && ran.stderr.len() < 10_000, "{} {}", ran.code, ran.stderr.len());

    let agent = hostile(|_, answer| {
        answer.stream();
        answer.until_closed();
    });
    let ran = agent.run(&["send", "--stream", "x", "--timeout", "300ms"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (5, "A2ACLI_ERR_TIMEOUT"), "{ran:?}");

    let endless = ScriptedAgent::start(
        |_| Value::Null,
        |_, answer| answer.raw(200, "application/json", &format!("{{\"name\":\"{}\"}}", "x".repeat(3 << 20))),
    );
    let ran = endless.run(&["card", "get"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"), "{ran:?}");
}

#[test]
fn an_address_that_the_card_names_may_not_be_private() {
    let inside = ScriptedAgent::ordinary(|_, answer| answer.result(task("TASK_STATE_COMPLETED")));
    let at = inside.url.replace("127.0.0.1", "127.0.0.2");
    let agent = ScriptedAgent::start(
        move |url| {
            let interface = json!([{ "url": at, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }]);
            card_with(url, json!({ "supportedInterfaces": interface }))
        },
        |_, answer| answer.raw(404, "text/plain", ""),
    );
    let ran = agent.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");
    assert!(inside.seen().is_empty());
}

#[test]
fn a_missing_agent_is_a_wrong_usage() {
    let ran = Cli::new().run(&["task", "list"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (2, "A2ACLI_ERR_USAGE"));
    assert!(ran.stderr.contains("--agent-card"));
}

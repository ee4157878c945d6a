//! `card get`, and what `--agent-card` may name.

use serde_json::{Value, json};

use crate::support::{Cli, DemoServer, ScriptedAgent, card, card_with, switchboard, task, write};

#[test]
fn a_card_is_found_by_host_url_file_and_path_and_used() {
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        |_, answer| answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
    );
    let cli = Cli::new();
    let file = write(&cli.folder(), "card.json", &card(&agent.url, false).to_string());
    let host = agent.url.trim_start_matches("http://").to_owned();
    let card_url = format!("{}/.well-known/agent-card.json", agent.url);
    for reference in [&agent.url, &host, &card_url, &format!("file://{file}"), &file, &"./card.json".to_owned()] {
        assert_eq!(cli.run(&["card", "get", "-a", reference]).succeeded().field("Name"), "Scripted", "{reference}");
        cli.run(&["send", "-a", reference, "x"]).succeeded();
    }
    let paths: Vec<String> = agent.seen().into_iter().map(|seen| seen.path).collect();
    assert!(paths.iter().all(|path| path == "/.well-known/agent-card.json" || path == "/rpc"), "{paths:?}");
    assert_eq!(paths.iter().filter(|path| *path == "/rpc").count(), 6);
}

#[test]
fn a_card_is_shown_whole() {
    let server = DemoServer::start();
    let text = server.run(&["card", "get"]).succeeded();
    for (label, expected) in [("Streaming", "yes"), ("Push-Notifications", "yes"), ("Signature", "absent")] {
        assert_eq!(text.field(label), expected);
    }
    assert_eq!(text.stdout.matches("\nInterface: ").count(), 6, "{}", text.stdout);
    assert!(text.stdout.contains("\nSkill: "));
    let document = server.run(&["card", "get", "-o", "json"]).succeeded().json();
    assert_eq!(document["supportedInterfaces"].as_array().unwrap().len(), 6);
    assert_eq!(server.run(&["card", "get", "-o", "json", "--stream"]).succeeded().json_lines().len(), 1);
}

#[test]
fn members_that_are_not_known_are_kept() {
    let agent = ScriptedAgent::start(|url| card_with(url, json!({ "x-own": { "a": 1 } })), |_, _| ());
    assert_eq!(agent.run(&["card", "get", "-o", "json"]).succeeded().json()["x-own"], json!({ "a": 1 }));
}

#[test]
fn a_card_that_breaks_the_specification_is_refused_by_member() {
    let server = DemoServer::start();
    server.run(&["card", "get", "--validate"]).succeeded();
    for (member, broken) in [
        ("name", json!(null)),
        ("version", json!(1)),
        ("skills", json!("none")),
        ("capabilities", json!([])),
        ("supportedInterfaces", json!([{ "url": "", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }])),
    ] {
        let cli = Cli::new();
        let file =
            write(&cli.folder(), "card.json", &card_with("http://127.0.0.1:1", json!({ member: broken })).to_string());
        let ran = cli.run(&["card", "get", "--validate", "-a", &file]);
        assert_eq!((ran.code, ran.error_code().as_str()), (1, "A2ACLI_ERR_CARD_INVALID"), "{ran:?}");
        assert!(ran.stderr.contains(member), "{member}: {}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
}

#[test]
fn an_entry_of_a_catalog_is_as_good_as_its_card() {
    let server = DemoServer::start();
    let cli = Cli::new();
    let named = write(&cli.folder(), "named.json", &json!({ "demo": server.url }).to_string());
    let listed = json!({ "agents": [{ "name": "demo", "agentCard": server.url }, { "name": "x", "url": "loop" }] });
    let listed = write(&cli.folder(), "listed.json", &listed.to_string());
    for catalog in [named, listed] {
        let cli = Cli::new().with("A2ACLI_CATALOG", &catalog).with("A2ACLI_AGENT_CARD", "catalog:demo");
        let id = cli.run(&["send", "hello"]).succeeded().field("Task").to_owned();
        cli.run(&["task", "get", &id]).succeeded();
        cli.run(&["card", "get"]).succeeded();
        let ran = cli.run(&["card", "get", "-a", "catalog:nobody"]);
        assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");
    }
    assert_eq!(switchboard(&["card", "get", "-a", "catalog:x"]).code, 2);
}

#[test]
fn an_entry_of_a_registry_is_fetched_and_may_not_lead_to_private_addresses_elsewhere() {
    let elsewhere = DemoServer::start();
    let foreign = elsewhere.url.clone();
    let agent = ScriptedAgent::start(
        |url| card(url, false),
        move |asked, answer| match asked.path.as_str() {
            "/agents.json" => {
                let own = format!("http://{}", asked.header("host").unwrap());
                let entries = json!({ "own": own, "foreign": foreign, "file": "/etc/hosts", "other": "catalog:own" });
                answer.raw(200, "application/json", &entries.to_string());
            }
            "/rpc" => answer.result(json!({ "task": task("TASK_STATE_COMPLETED") })),
            _ => answer.raw(404, "text/plain", ""),
        },
    );
    let entry = |name: &str| format!("registry+{}/agents.json#{name}", agent.url);
    assert_eq!(switchboard(&["card", "get", "-a", &entry("own")]).succeeded().field("Name"), "Scripted");
    switchboard(&["send", "-a", &entry("own"), "x"]).succeeded();
    for (name, code, said) in [
        ("foreign", 3, "may not be called"),
        ("file", 2, "neither a host nor an http URL"),
        ("other", 2, "names another entry"),
        ("nobody", 3, "has no entry"),
        ("", 2, "names no entry"),
    ] {
        let ran = switchboard(&["card", "get", "-a", &entry(name)]);
        assert!(ran.code == code && ran.stderr.contains(said), "{name}: {ran:?}");
    }
}

#[test]
fn a_url_with_a_path_is_that_of_a_card_and_the_hint_says_what_else_it_may_be() {
    let agent = ScriptedAgent::start(|_| Value::Null, |_, answer| answer.raw(404, "text/plain", ""));
    let url = format!("{}/agents/echo", agent.url);
    let ran = switchboard(&["card", "get", "-a", &url]);
    assert_eq!(ran.error_code(), "A2ACLI_ERR_CARD_NOT_FOUND");
    assert!(ran.stderr.contains("/agents/echo/.well-known/agent-card.json"), "{}", ran.stderr);
    assert_eq!(agent.seen().len(), 1);
}

#[test]
fn a_signature_is_verified_unverifiable_or_absent_and_never_more() {
    let golden =
        |name: &str| std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/signed").join(name);
    let own = |name: &str| golden(name).to_str().unwrap().to_owned();
    let keys = own("keys.json");
    let cli = Cli::new();
    for sdk in ["python-1", "js-1"] {
        let card = own(&format!("{sdk}.json"));
        let ran = cli.run(&["card", "get", "-a", &card, "--card-key", &keys]).succeeded();
        assert!(ran.field("Signature").starts_with("verified with key "), "{sdk}: {ran:?}");
        let ran = cli.run(&["card", "get", "-a", &card]).succeeded();
        assert!(ran.field("Signature").starts_with("unverifiable: "), "{sdk}: {ran:?}");
        let ran = cli.run(&["card", "get", "-a", &card, "--card-key", &keys, "-o", "json"]).succeeded();
        assert!(ran.stderr.contains("Signature: verified") && ran.json().get("signatures").is_some());
        let text = std::fs::read_to_string(golden(&format!("{sdk}.json"))).unwrap();
        let name: Value = serde_json::from_str(&text).unwrap();
        let changed = text.replace(name["description"].as_str().unwrap(), "changed on the way");
        assert_ne!(changed, text);
        let changed = write(&cli.folder(), "changed.json", &changed);
        let ran = cli.run(&["card", "get", "-a", &changed, "--card-key", &keys]).succeeded();
        assert!(ran.field("Signature").starts_with("unverifiable: "), "{sdk}: {ran:?}");
    }
    let unsigned = write(&cli.folder(), "unsigned.json", &card("http://127.0.0.1:1", false).to_string());
    assert_eq!(
        cli.run(&["card", "get", "-a", &unsigned, "--card-key", &keys]).succeeded().field("Signature"),
        "absent"
    );
}

#[test]
fn the_extended_card_is_asked_for_only_by_a_scheme_of_the_public_one() {
    let with = |schemes: Value| {
        ScriptedAgent::start(
            move |url| {
                card_with(url, json!({ "capabilities": { "extendedAgentCard": true }, "securitySchemes": schemes }))
            },
            |seen, answer| {
                let mut extended = card(&format!("http://{}", seen.header("host").unwrap()), false);
                extended["name"] = json!("Extended");
                answer.result(extended);
            },
        )
    };
    let open = with(json!({}));
    let ran = open.run(&["card", "get", "--extended", "--bearer", "s3cret"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"), "{ran:?}");
    assert!(open.calls().is_empty());
    let closed = with(json!({ "b": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } }));
    let ran = closed.run(&["card", "get", "--extended", "--bearer", "s3cret"]).succeeded();
    assert_eq!(ran.field("Name"), "Extended");
    assert_eq!(closed.calls()[0].header("authorization"), Some("Bearer s3cret"));
}

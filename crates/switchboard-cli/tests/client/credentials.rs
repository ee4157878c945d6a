//! Credentials go where the card asks for them, and nowhere else.

use serde_json::{Value, json};

use crate::support::{Cli, ScriptedAgent, card_with, task};

fn agent_with(schemes: Value, requirements: Value) -> ScriptedAgent {
    ScriptedAgent::start(
        move |url| card_with(url, json!({ "securitySchemes": schemes, "securityRequirements": requirements })),
        |seen, answer| match seen.header("authorization") {
            Some("Bearer wrong") => answer.raw(401, "application/json", "{}"),
            _ => answer.result(task("TASK_STATE_COMPLETED")),
        },
    )
}

fn bearer() -> Value {
    json!({ "b": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } })
}

fn key_in(location: &str) -> Value {
    json!({ "k": { "apiKeySecurityScheme": { "location": location, "name": "X-Key" } } })
}

fn requires(name: &str) -> Value {
    json!([{ "schemes": { name: { "list": [] } } }])
}

#[test]
fn a_token_and_a_key_are_sent_where_the_card_asks_for_them() {
    let agent = agent_with(bearer(), requires("b"));
    agent.run(&["task", "get", "t-1", "--bearer", "s3cret"]).succeeded();
    assert_eq!(agent.calls()[0].header("authorization"), Some("Bearer s3cret"));
    for (location, check) in [
        ("header", (|seen| seen.header("x-key") == Some("k3y")) as fn(&crate::support::Seen) -> bool),
        ("query", |seen| seen.path.ends_with("?X-Key=k3y")),
        ("cookie", |seen| seen.header("cookie") == Some("X-Key=k3y")),
    ] {
        let agent = agent_with(key_in(location), requires("k"));
        let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).with("A2ACLI_API_KEY", "k3y");
        cli.run(&["task", "get", "t-1"]).succeeded();
        assert!(check(&agent.calls()[0]), "{location} {:?}", agent.calls());
    }
}

#[test]
fn a_flag_outranks_the_variable() {
    let agent = agent_with(bearer(), requires("b"));
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).with("A2ACLI_BEARER", "of-the-variable");
    cli.run(&["task", "get", "t-1", "--bearer", "of-the-flag"]).succeeded();
    assert_eq!(agent.calls()[0].header("authorization"), Some("Bearer of-the-flag"));
}

#[test]
fn what_is_missing_is_told_before_the_call_and_what_is_wrong_after_it() {
    let agent = agent_with(bearer(), requires("b"));
    let ran = agent.run(&["task", "get", "t-1"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"), "{ran:?}");
    assert!(agent.calls().is_empty());
    let ran = agent.run(&["task", "get", "t-1", "--bearer", "wrong"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (4, "A2ACLI_ERR_AUTH_FAILED"), "{ran:?}");
    // An empty alternative means that anyone may call.
    let open = agent_with(bearer(), json!([{ "schemes": { "b": { "list": [] } } }, { "schemes": {} }]));
    open.run(&["task", "get", "t-1"]).succeeded();
    let ran = agent_with(bearer(), json!([])).run(&["task", "get", "t-1", "--api-key", "k"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (2, "A2ACLI_ERR_USAGE"));
}

#[test]
fn the_card_is_fetched_without_credentials() {
    let agent = agent_with(bearer(), requires("b"));
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).with("A2ACLI_BEARER", "s3cret");
    cli.run(&["task", "get", "t-1", "--svc-param", "X-Team:blue"]).succeeded();
    for request in agent.seen() {
        let is_bare = request.header("authorization").is_none() && request.header("x-team").is_none();
        assert_eq!(is_bare, request.is_card(), "{request:?}");
    }
    // A protected card is not asked for with credentials either.
    let closed = ScriptedAgent::start(|_| Value::Null, |_, answer| answer.raw(401, "text/plain", ""));
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &closed.url).with("A2ACLI_BEARER", "s3cret");
    let ran = cli.run(&["card", "get"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_CARD_NOT_FOUND"), "{ran:?}");
    assert!(closed.seen().iter().all(|seen| seen.header("authorization").is_none()));
}

#[test]
fn service_parameters_are_headers_and_are_split_at_the_first_colon() {
    let agent = agent_with(json!({}), json!([]));
    agent.run(&["task", "get", "t-1", "--svc-param", "X-A:b:c", "--svc-param", "x-d: e"]).succeeded();
    let call = &agent.calls()[0];
    assert_eq!((call.header("x-a"), call.header("x-d")), (Some("b:c"), Some("e")));
    let help = crate::support::switchboard(&["send", "--help"]).stdout;
    let line = help.lines().skip_while(|line| !line.contains("--svc-param")).take(2).collect::<String>().to_lowercase();
    assert!(!line.contains("auth") && !line.contains("credential"), "{line}");
}

#[test]
fn secrets_are_in_no_output() {
    let agent = agent_with(
        json!({ "b": bearer()["b"], "k": key_in("query")["k"] }),
        json!([{ "schemes": { "b": { "list": [] }, "k": { "list": [] } } }]),
    );
    let cli = Cli::new()
        .with("A2ACLI_AGENT_CARD", &agent.url)
        .with("A2ACLI_BEARER", "canary-bearer")
        .with("A2ACLI_API_KEY", "canary-key")
        .with("A2ACLI_SVC_PARAM", "X-Secret:canary-param")
        .with("RUST_LOG", "trace");
    for args in [
        &["task", "get", "t-1"][..],
        &["send", "x"],
        &["card", "get"],
        &["config", "show"],
        &["task", "get"],
        &["send", "--help"],
    ] {
        for more in [&[][..], &["-o", "json"]] {
            let mut all = args.to_vec();
            all.extend(more);
            all.extend(["--debug", "--verbose"]);
            let ran = cli.run(&all);
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("canary"), "{args:?} {ran:?}");
        }
    }
}

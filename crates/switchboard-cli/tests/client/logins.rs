//! `auth login`: a token is got, kept for its owner alone, sent to the agent it was got for, and renewed.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{Answer, Cli, ScriptedAgent, Seen, card_with, task};

/// An agent whose authorization server is the agent itself. `answers` are those of the token endpoint, one after the other.
fn agent_with(flow: &'static str, answers: Vec<(u16, Value)>) -> ScriptedAgent {
    let asked = Arc::new(AtomicUsize::new(0));
    ScriptedAgent::start(
        move |url| {
            let flow = json!({ flow: {
                "tokenUrl": format!("{url}/token"), "deviceAuthorizationUrl": format!("{url}/device"), "scopes": { "call": "c" },
            } });
            card_with(
                url,
                json!({
                    "securitySchemes": { "o": { "oauth2SecurityScheme": { "flows": flow } } },
                    "securityRequirements": [{ "schemes": { "o": { "list": ["call"] } } }],
                }),
            )
        },
        move |seen: &Seen, answer: &mut Answer<'_>| match seen.path.as_str() {
            "/device" => answer.json(
                200,
                &json!({
                    "device_code": "dev", "user_code": "ABCD-EFGH", "verification_uri": "https://login.example/device",
                    "expires_in": 60, "interval": 1,
                }),
            ),
            "/token" => {
                let (status, body) = &answers[asked.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1)];
                answer.json(*status, body);
            }
            _ => match seen.header("authorization") {
                Some("Bearer good-token" | "Bearer renewed-token") => answer.result(task("TASK_STATE_COMPLETED")),
                _ => answer.raw(401, "application/json", "{}"),
            },
        },
    )
}

fn issued(token: &str, expires_in: u64) -> (u16, Value) {
    (200, json!({ "access_token": token, "token_type": "Bearer", "expires_in": expires_in, "refresh_token": "again" }))
}

fn refused(error: &str) -> (u16, Value) {
    (400, json!({ "error": error }))
}

#[test]
fn a_device_is_waited_for_and_its_token_kept_and_sent() {
    let agent = agent_with("deviceCode", vec![refused("authorization_pending"), issued("good-token", 3_600)]);
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    let before = cli.run(&["task", "get", "t-1"]);
    assert_eq!((before.code, before.error_code().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"));
    assert!(before.stderr.contains("switchboard auth login"), "{}", before.stderr);
    let login = cli.run(&["auth", "login", "--client-id", "my-app"]).succeeded();
    assert!(
        login.stderr.contains("ABCD-EFGH") && login.stderr.contains("https://login.example/device"),
        "{}",
        login.stderr
    );
    let file = cli.home.path().join(".config/switchboard/tokens.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    cli.run(&["task", "get", "t-1"]).succeeded();
    let shown = cli.run(&["task", "get", "t-1", "--debug", "--verbose"]).succeeded();
    assert!(!format!("{}{}{}", login.stdout, shown.stdout, shown.stderr).contains("good-token"));
    // A token that is named outranks the kept one, and is not kept.
    assert_eq!(cli.run(&["task", "get", "t-1", "--bearer", "wrong"]).error_code(), "A2ACLI_ERR_AUTH_FAILED");
    cli.run(&["auth", "logout"]).succeeded();
    assert_eq!(cli.run(&["task", "get", "t-1"]).error_code(), "A2ACLI_ERR_CREDENTIALS_MISSING");
}

#[test]
fn a_login_that_is_denied_or_too_late_says_so() {
    for (error, code) in [("access_denied", "A2ACLI_ERR_AUTH_FAILED"), ("expired_token", "A2ACLI_ERR_AUTH_FAILED")] {
        let agent = agent_with("deviceCode", vec![refused(error)]);
        let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
        let ran = cli.run(&["auth", "login"]);
        assert_eq!((ran.code, ran.error_code().as_str()), (4, code), "{ran:?}");
        assert!(ran.stderr.contains(error), "{}", ran.stderr);
        assert!(!cli.home.path().join(".config/switchboard/tokens.json").exists());
    }
}

#[test]
fn an_application_logs_in_by_its_secret_without_a_person() {
    let agent = agent_with("clientCredentials", vec![issued("good-token", 3_600)]);
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).with("A2ACLI_CLIENT_SECRET", "app-s3cret");
    let login = cli.run(&["auth", "login", "--client-id", "my-app", "-o", "json"]).succeeded();
    assert_eq!(login.json()["agentCard"], agent.url.as_str());
    assert!(!login.stdout.contains("good-token") && !login.stderr.contains("s3cret"));
    let asked = agent.seen().into_iter().find(|seen| seen.path == "/token").unwrap();
    assert!(asked.header("authorization").unwrap().starts_with("Basic "));
    cli.run(&["task", "get", "t-1"]).succeeded();
}

#[test]
fn a_token_that_expires_is_renewed_and_the_new_one_kept() {
    let agent = agent_with("deviceCode", vec![issued("old-token", 1), issued("renewed-token", 3_600)]);
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    cli.run(&["auth", "login"]).succeeded();
    cli.run(&["task", "get", "t-1"]).succeeded();
    cli.run(&["task", "get", "t-1"]).succeeded();
    // Once for the login, once to renew, and not again.
    assert_eq!(agent.seen().iter().filter(|seen| seen.path == "/token").count(), 2);
}

#[test]
fn the_checker_and_the_doctor_send_the_token_of_a_login_and_renew_it() {
    for command in [&["conformance", "--only", "get-unknown", "--no-fail"][..], &["doctor", "--no-fail"]] {
        let agent = agent_with("deviceCode", vec![issued("old-token", 1), issued("renewed-token", 3_600)]);
        let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
        cli.run(&["auth", "login"]).succeeded();
        for _ in 0..2 {
            let ran = cli.run(command).succeeded();
            assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("renewed-token"), "{ran:?}");
        }
        // Once for the login, once to renew, and the new one is kept.
        assert_eq!(agent.seen().iter().filter(|seen| seen.path == "/token").count(), 2, "{command:?}");
        let shown = |seen: &Seen| seen.header("authorization") == Some("Bearer renewed-token");
        assert!(agent.calls().iter().any(shown), "{command:?}");
        // A token that is named outranks it.
        let before = agent.calls().iter().filter(|seen| shown(seen)).count();
        cli.run(&[command, &["--bearer", "named"]].concat()).succeeded();
        assert_eq!(agent.calls().iter().filter(|seen| shown(seen)).count(), before, "{command:?}");
        assert!(agent.calls().iter().any(|seen| seen.header("authorization") == Some("Bearer named")));
    }
}

#[test]
fn the_checker_does_not_send_a_token_elsewhere_and_says_when_it_has_expired() {
    let agent = agent_with("deviceCode", vec![issued("old-token", 1), refused("invalid_grant")]);
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    cli.run(&["auth", "login"]).succeeded();
    let ran = cli.run(&["conformance", "--only", "get-unknown", "--no-fail"]).succeeded();
    assert!(ran.stderr.contains("has expired and is not sent"), "{}", ran.stderr);
    let file = cli.home.path().join(".config/switchboard/tokens.json");
    let moved = std::fs::read_to_string(&file).unwrap().replace("[\"127.0.0.1:", "[\"127.0.0.9:");
    std::fs::write(&file, moved).unwrap();
    let ran = cli.run(&["conformance", "--only", "get-unknown", "--no-fail"]).succeeded();
    assert!(ran.stderr.contains("other hosts"), "{}", ran.stderr);
    assert!(agent.calls().iter().all(|seen| seen.path == "/token" || seen.header("authorization").is_none()));
}

#[test]
fn a_token_is_not_sent_where_the_card_leads_later() {
    let agent = agent_with("deviceCode", vec![issued("good-token", 3_600)]);
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    cli.run(&["auth", "login"]).succeeded();
    let file = cli.home.path().join(".config/switchboard/tokens.json");
    let moved = std::fs::read_to_string(&file).unwrap().replace("[\"127.0.0.1:", "[\"127.0.0.9:");
    std::fs::write(&file, moved).unwrap();
    let ran = cli.run(&["task", "get", "t-1"]);
    assert_eq!(ran.error_code(), "A2ACLI_ERR_CREDENTIALS_MISSING");
    assert!(ran.stderr.contains("other hosts"), "{}", ran.stderr);
    assert!(agent.calls().iter().all(|seen| seen.header("authorization") != Some("Bearer good-token")));
}

#[test]
fn openid_connect_is_found_by_its_issuer_and_a_wrong_one_refused() {
    for (issuer_suffix, expected) in [("", 0), ("/other", 4)] {
        let agent = ScriptedAgent::start(
            |url| {
                card_with(
                    url,
                    json!({
                        "securitySchemes": { "o": { "openIdConnectSecurityScheme": { "openIdConnectUrl": format!("{url}/.well-known/openid-configuration") } } },
                        "securityRequirements": [{ "schemes": { "o": { "list": [] } } }],
                    }),
                )
            },
            move |seen, answer| match seen.path.as_str() {
                "/.well-known/openid-configuration" => {
                    let url = format!("http://{}", seen.header("host").unwrap());
                    answer.json(200, &json!({
                        "issuer": format!("{url}{issuer_suffix}"), "token_endpoint": format!("{url}/token"),
                        "device_authorization_endpoint": format!("{url}/device"), "authorization_endpoint": format!("{url}/authorize"),
                        "grant_types_supported": ["client_credentials", "urn:ietf:params:oauth:grant-type:device_code"],
                    }));
                }
                "/token" => answer.json(200, &issued("good-token", 3_600).1),
                _ => answer.result(task("TASK_STATE_COMPLETED")),
            },
        );
        let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url).with("A2ACLI_CLIENT_SECRET", "s");
        let ran = cli.run(&["auth", "login"]);
        assert_eq!(ran.code, expected, "{ran:?}");
    }
}

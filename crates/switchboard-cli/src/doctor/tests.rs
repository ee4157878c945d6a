//! The doctor on a well server, and on servers with one planted fault each.
#![allow(clippy::disallowed_methods, reason = "the servers of a test are tasks of its runtime")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use switchboard::{Server, Tls, Tokens};
use switchboard_core::model::Timestamp;
use tokio::net::TcpListener;

use super::{DoctorArgs, Finding, Format, Mark, as_json, as_text, clock, examine};
use crate::config::Environment;
use crate::conformance::args::AgentArgs;
use crate::conformance::tests::served::{ALL, NOTHING, Plant, Served, demo, usual};

fn args(url: &str) -> DoctorArgs {
    let timeout = Some(Duration::from_secs(5));
    DoctorArgs {
        agent: AgentArgs { url: Some(url.to_owned()), timeout, ..AgentArgs::default() },
        output: Format::Text,
        no_fail: false,
        text: None,
        idle: None,
    }
}

async fn findings(args: &DoctorArgs) -> Vec<Finding> {
    Box::pin(examine(args, &Environment::default(), clock::now())).await.unwrap()
}

/// Asserts that this step has a finding with these words, and that its fix has those.
fn assert_found(findings: &[Finding], mark: Mark, step: &str, seen: &str, fix: &str) {
    let found = findings.iter().any(|finding| {
        let fixes = finding.fix.as_deref().unwrap_or_default();
        finding.mark == mark && finding.step == step && finding.seen.contains(seen) && fixes.contains(fix)
    });
    assert!(found, "no {mark:?} of {step} with {seen:?} and {fix:?} in\n{}", as_text(findings, false));
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/certificates").join(name)
}

async fn planted(plant: Plant) -> Vec<Finding> {
    let served = Served::start(usual(), plant).await;
    findings(&args(&served.url)).await
}

#[tokio::test]
async fn nothing_is_wrong_with_a_well_server() {
    let served = Served::start(usual(), NOTHING).await;
    let mut args = args(&served.url);
    args.text = Some("stream 4".to_owned());
    args.idle = Some(Duration::from_secs(5));
    let findings = findings(&args).await;
    let ill: Vec<&Finding> = findings.iter().filter(|finding| finding.mark == Mark::Fault).collect();
    assert_eq!(ill, Vec::<&Finding>::new());
    for step in ["dns", "tcp", "card", "auth", "call", "stream", "idle"] {
        assert!(findings.iter().any(|finding| finding.step == step), "{step}");
    }
    let text = as_text(&findings, false);
    assert!(text.contains("Nothing is wrong.") && !text.contains('\u{1b}'), "{text}");
    assert!(as_text(&findings, true).contains("\u{1b}[32m"));
    let json: serde_json::Value = serde_json::from_str(&as_json(&findings)).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), findings.len());
}

#[tokio::test]
async fn only_the_chosen_interfaces_are_called() {
    let served = Served::start(usual(), NOTHING).await;
    let mut args = args(&served.url);
    args.agent.transport = vec!["http+json".to_owned()];
    args.agent.a2a_version = Some("0.3".to_owned());
    let findings = findings(&args).await;
    let calls: Vec<&str> = findings.iter().filter(|one| one.step == "call").map(|one| one.seen.as_str()).collect();
    assert_eq!(calls, ["HTTP+JSON 0.3 answers"]);
}

#[tokio::test]
async fn a_name_that_does_not_exist() {
    let findings = findings(&args("http://agent.invalid")).await;
    assert_found(&findings, Mark::Fault, "dns", "agent.invalid", "check the spelling");
}

#[tokio::test]
async fn a_port_at_which_nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let findings = findings(&args(&format!("http://{address}"))).await;
    assert_found(&findings, Mark::Fault, "tcp", "cannot be connected to", "start the server");
}

/// A server with TLS, and the port it has.
async fn with_tls(name: &str) -> u16 {
    let read = |end: &str| std::fs::read(certificate(&format!("{name}.{end}.pem"))).unwrap();
    let tls = Tls::from_pem(&read("cert"), &read("key")).unwrap();
    let server = Server::builder().agent(demo()).tls(tls).build().unwrap();
    let bound = server.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let port = bound.local_addr().port();
    tokio::spawn(bound.run_until(std::future::pending(), Duration::ZERO));
    port
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority() {
    let port = with_tls("first").await;
    let findings = findings(&args(&format!("https://localhost:{port}"))).await;
    assert_found(&findings, Mark::Fault, "tls", "no known authority issued", "--ca-cert");
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    let port = with_tls("named").await;
    let mut args = args(&format!("https://localhost:{port}"));
    args.agent.ca_cert = Some(certificate("named.cert.pem"));
    let findings = findings(&args).await;
    assert_found(&findings, Mark::Fault, "tls", "not for localhost but for", "a name of the certificate");
}

#[tokio::test]
async fn a_certificate_that_expires_soon() {
    let port = with_tls("first").await;
    let mut args = args(&format!("https://localhost:{port}"));
    args.agent.ca_cert = Some(certificate("first.cert.pem"));
    let late = Timestamp::parse_rfc3339("2123-12-25T00:00:00Z").unwrap();
    let findings = Box::pin(examine(&args, &Environment::default(), late)).await.unwrap();
    assert_found(&findings, Mark::Hint, "tls", "expires in 7 days", "renew it");
    // By that clock, the server's is far behind.
    assert_found(&findings, Mark::Fault, "clock", "behind", "NTP");
}

#[tokio::test]
async fn tls_where_there_is_none_and_none_where_it_is() {
    let served = Served::start(usual(), NOTHING).await;
    let secure = served.url.replace("http://", "https://");
    let found = findings(&args(&secure)).await;
    assert_found(&found, Mark::Fault, "tls", "the handshake failed", "http://");
    let port = with_tls("first").await;
    let found = findings(&args(&format!("http://localhost:{port}"))).await;
    assert_found(&found, Mark::Fault, "card", "there is no card", "");
}

#[tokio::test]
async fn a_card_at_the_old_path_only() {
    let findings = planted(Plant {
        answer: |asked, answered| {
            if asked.path.contains("agent-card.json") {
                answered.status = StatusCode::NOT_FOUND;
            }
        },
        ..NOTHING
    })
    .await;
    assert_found(
        &findings,
        Mark::Hint,
        "card",
        "at /.well-known/agent.json only",
        "serve it at /.well-known/agent-card.json",
    );
}

#[tokio::test]
async fn a_card_that_is_elsewhere() {
    let findings = planted(Plant {
        ask: |asked| {
            let to = if asked.path == "/agent.json" { "/.well-known/agent-card.json" } else { "/nothing" };
            asked.path = to.to_owned();
        },
        ..NOTHING
    })
    .await;
    assert_found(&findings, Mark::Fault, "card", "there is no card", "/agent.json");
}

#[tokio::test]
async fn a_card_that_cannot_be_had() {
    for (status, fix) in [
        (StatusCode::UNAUTHORIZED, "without authentication"),
        (StatusCode::FOUND, "redirects to"),
        (StatusCode::OK, "a web page is served"),
        (StatusCode::NOT_FOUND, "passes /.well-known/ on"),
    ] {
        // A plant captures nothing, so there is one for each.
        let answer: fn(&_, &mut crate::conformance::tests::served::Answered) = match status {
            StatusCode::UNAUTHORIZED => |_, answered| answered.status = StatusCode::UNAUTHORIZED,
            StatusCode::FOUND => |_, answered| answered.status = StatusCode::FOUND,
            StatusCode::OK => |_, answered| {
                answered.status = StatusCode::OK;
                answered.body = "<html>".into();
            },
            _ => |_, answered| answered.status = StatusCode::NOT_FOUND,
        };
        let findings = planted(Plant { answer, ..NOTHING }).await;
        assert_found(&findings, Mark::Fault, "card", "there is no card", fix);
    }
}

#[tokio::test]
async fn a_card_that_makes_no_sense() {
    let findings = planted(Plant {
        answer: |asked, answered| {
            if asked.is_card() {
                answered.edit(|card| {
                    card.as_object_mut().unwrap().remove("skills");
                    card["supportedInterfaces"] = json!([
                        { "url": "http://0.0.0.0:8080/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                        { "url": "mqtt://broker", "protocolBinding": "MQTT", "protocolVersion": "1.0" },
                    ]);
                });
            }
        },
        ..NOTHING
    })
    .await;
    assert_found(&findings, Mark::Fault, "card", "skills", "correct the card");
    assert_found(&findings, Mark::Fault, "card", "0.0.0.0:8080/rpc is no address", "public URL");
    assert_found(&findings, Mark::Hint, "card", "MQTT", "JSONRPC, HTTP+JSON and GRPC");
}

#[tokio::test]
async fn clocks_that_disagree() {
    let findings =
        planted(Plant { answer: |_, answered| answered.set("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ..NOTHING }).await;
    assert_found(&findings, Mark::Fault, "clock", "behind", "NTP");
}

#[tokio::test]
async fn interfaces_that_cannot_be_called() {
    let findings = planted(Plant {
        answer: |asked, answered| {
            if asked.is_card() {
                answered.edit(|card| {
                    let own = card["supportedInterfaces"][0]["url"].as_str().unwrap().trim_end_matches("/rpc").to_owned();
                    card["supportedInterfaces"] = json!([
                        { "url": "http://127.0.0.1:9/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0" },
                        { "url": format!("{own}/no/such/path"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0" },
                        { "url": "http://10.255.255.1:9", "protocolBinding": "GRPC", "protocolVersion": "1.0" },
                    ]);
                    card.as_object_mut().unwrap().remove("url");
                });
            }
            if asked.path.starts_with("/no/such/path") {
                answered.status = StatusCode::OK;
                answered.body = "<html>hello</html>".into();
            }
        },
        ..NOTHING
    })
    .await;
    assert_found(
        &findings,
        Mark::Fault,
        "call",
        "JSONRPC 1.0 at http://127.0.0.1:9/rpc does not answer",
        "can be reached",
    );
    assert_found(&findings, Mark::Fault, "call", "does not speak this binding", "check the path in the card");
    assert_found(&findings, Mark::Fault, "call", "may not be called", "--allow-private");
}

#[tokio::test]
async fn a_version_that_is_declared_and_not_spoken() {
    let findings = planted(Plant {
        ask: |asked| {
            if asked.headers.contains_key("a2a-version") && !asked.is_card() {
                asked.headers.insert("a2a-version", "7.0".parse().unwrap());
            }
        },
        ..NOTHING
    })
    .await;
    for to in ["JSONRPC 1.0", "HTTP+JSON 1.0", "GRPC 1.0"] {
        let seen = format!("{to} does not speak the version");
        assert_found(&findings, Mark::Fault, "call", &seen, "declare the versions");
    }
}

fn with_tokens() -> switchboard::ServerBuilder {
    let tokens = Tokens::parse("a-long-token-for-tests alice").unwrap();
    Server::builder().agent(demo()).interfaces(ALL).tokens(tokens)
}

#[tokio::test]
async fn credentials_that_are_missing_wrong_and_right() {
    let served = Served::start(with_tokens(), NOTHING).await;
    let mut args = args(&served.url);
    let found = findings(&args).await;
    assert_found(&found, Mark::Fault, "auth", "JSONRPC 1.0 refuses the caller", "--bearer");
    assert_found(&found, Mark::Fault, "auth", "GRPC 1.0 refuses the caller", "--bearer");
    args.agent.bearer = Some("another-long-token".to_owned());
    let found = findings(&args).await;
    assert_found(&found, Mark::Fault, "auth", "HTTP+JSON 1.0 refuses the caller", "check that the token");
    args.agent.bearer = Some("a-long-token-for-tests".to_owned());
    let found = findings(&args).await;
    assert!(found.iter().all(|finding| finding.mark != Mark::Fault), "{}", as_text(&found, false));
}

#[tokio::test]
async fn credentials_that_are_asked_for_and_not_checked() {
    let plant = Plant {
        ask: |asked| drop(asked.headers.insert("authorization", "Bearer a-long-token-for-tests".parse().unwrap())),
        ..NOTHING
    };
    let served = Served::start(with_tokens(), plant).await;
    let findings = findings(&args(&served.url)).await;
    assert_found(&findings, Mark::Hint, "auth", "a call without them is answered", "check every request");
}

#[tokio::test]
async fn a_proxy_that_holds_streams_back() {
    let served = Served::start(usual(), Plant { holds_streams: true, ..NOTHING }).await;
    let mut args = args(&served.url);
    args.text = Some("stream 25".to_owned());
    let findings = findings(&args).await;
    assert_found(&findings, Mark::Fault, "stream", "events came at once after", "proxy_buffering off");
}

#[tokio::test]
async fn a_stream_that_is_cut_off_and_one_that_is_none() {
    let plant = Plant {
        answer: |asked, answered| {
            answered.edit_events(|events| drop(events.pop()));
            if asked.is("/message:stream") {
                answered.set("content-type", "application/json");
            }
        },
        holds_streams: true,
        ..NOTHING
    };
    let served = Served::start(usual(), plant).await;
    let mut args = args(&served.url);
    args.text = Some("stream 4".to_owned());
    let found = findings(&args).await;
    assert_found(&found, Mark::Fault, "stream", "JSONRPC 1.0: the stream was cut off", "proxy_read_timeout");
    assert_found(&found, Mark::Fault, "stream", "HTTP+JSON 1.0 answers a streaming call with", "text/event-stream");
    args.idle = Some(Duration::from_secs(6));
    let found = findings(&args).await;
    assert_found(&found, Mark::Fault, "idle", "JSONRPC 1.0: the stream was cut off", "idle timeout");
}

#[tokio::test]
async fn an_agent_must_be_named() {
    let mut args = args("x");
    args.agent.url = None;
    let error = Box::pin(examine(&args, &Environment::default(), clock::now())).await.unwrap_err();
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("--agent-card")), "{error:?}");
}

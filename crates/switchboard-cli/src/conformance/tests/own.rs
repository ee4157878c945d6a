//! Our own server, in every version, on every binding and with every capability on and off.

use std::collections::BTreeSet;

use switchboard::{Server, ServerBuilder};

use super::super::args::ConformanceArgs;
use super::super::report::{Report, Status};
use super::planted::{TOKEN, messages, minimal, signed, with_extension, with_tenant, with_tokens};
use super::served::{ALL, NOTHING, Plant, Served, demo, usual};
use super::{args, faults, report};

async fn checked(builder: ServerBuilder, change: impl FnOnce(&mut ConformanceArgs)) -> Report {
    let served = Served::start(builder, NOTHING).await;
    let mut args = args(&served.url, &[]);
    change(&mut args);
    let report = report(&args).await;
    assert_eq!(faults(&report), [], "{}", report.text());
    report
}

fn interfaces(report: &Report) -> BTreeSet<String> {
    report.outcomes.iter().filter_map(|outcome| outcome.on.as_ref()).map(ToString::to_string).collect()
}

/// The checks that were skipped, wherever.
fn skipped(report: &Report) -> BTreeSet<&'static str> {
    let skipped = report.outcomes.iter().filter(|outcome| matches!(outcome.status, Status::Skip(_)));
    skipped.map(|outcome| outcome.check.id).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_on_every_binding_and_version() {
    let report = checked(usual(), |_| {}).await;
    let expected = ["GRPC 0.3", "GRPC 1.0", "HTTP+JSON 0.3", "HTTP+JSON 1.0", "JSONRPC 0.3", "JSONRPC 1.0"];
    assert_eq!(interfaces(&report), expected.map(str::to_owned).into());
    // Only what this configuration cannot show is skipped.
    let expected = [
        "auth-challenge",
        "auth-required",
        "card-signature-type",
        "card-signature-verified",
        "card-signatures",
        "extended-card",
        "extended-card-secret",
        "extension-required",
        "push-not-declared",
        "stream-message-alone",
        "stream-not-declared",
        "tenant-accepted",
    ];
    assert_eq!(skipped(&report), expected.into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_with_signed_cards() {
    let report = checked(signed(), |args| args.only = vec!["card".to_owned()]).await;
    let skipped = skipped(&report);
    for check in ["card-signatures", "card-signature-type", "card-signature-verified"] {
        assert!(!skipped.contains(check), "{check}: {}", report.text());
    }
}

#[tokio::test]
async fn webhooks_at_addresses_that_the_agent_refuses_are_not_waited_for() {
    let builder = Server::builder().agent(demo()).interfaces(ALL);
    let report = checked(builder, |args| args.only = vec!["push-delivered".to_owned()]).await;
    assert!(skipped(&report).contains("push-delivered"), "{}", report.text());
    assert!(report.text().contains("may not be called"), "{}", report.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_as_an_agent_of_0_2() {
    let plant = Plant {
        answer: |asked, answered| {
            if asked.is_card() {
                answered.edit(|card| {
                    card.as_object_mut().unwrap().remove("supportedInterfaces");
                    card.as_object_mut().unwrap().remove("additionalInterfaces");
                    card["protocolVersion"] = "0.2.5".into();
                });
            }
        },
        ..NOTHING
    };
    let served = Served::start(usual(), plant).await;
    let report = report(&args(&served.url, &[])).await;
    assert_eq!(faults(&report), [], "{}", report.text());
    assert_eq!(interfaces(&report), ["JSONRPC 0.2".to_owned()].into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_without_capabilities() {
    let skipped = skipped(&checked(minimal(), |_| {}).await);
    for check in ["stream-not-declared", "push-not-declared", "extended-card-not-declared"] {
        assert!(!skipped.contains(check), "{check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_with_tokens_and_an_extended_card() {
    let report = checked(with_tokens(), |args| args.agent.bearer = Some(TOKEN.to_owned())).await;
    for check in ["auth-required", "auth-challenge", "extended-card", "extended-card-secret"] {
        assert!(!skipped(&report).contains(check), "{check}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_with_a_required_extension() {
    let report = checked(with_extension(), |_| {}).await;
    assert!(!skipped(&report).contains("extension-required"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_passes_with_a_tenant() {
    let plant = Plant { answer: super::planted::tenant_on_the_card, ..NOTHING };
    let served = Served::start(with_tenant(), plant).await;
    let report = report(&args(&served.url, &[])).await;
    assert_eq!(faults(&report), [], "{}", report.text());
    let is_checked = |outcome: &&super::super::report::Outcome| {
        outcome.check.id == "tenant-accepted" && outcome.status == Status::Pass
    };
    assert_eq!(report.outcomes.iter().filter(is_checked).count(), 3, "{}", report.text());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_answers_with_messages_passes() {
    let report = checked(messages(), |args| (args.slow_text, args.question_text) = (None, None)).await;
    assert!(!skipped(&report).contains("stream-message-alone"));
}

#[tokio::test]
async fn the_user_chooses_bindings_and_versions() {
    let served = Served::start(usual(), NOTHING).await;
    let mut args = args(&served.url, &["get-unknown", "version-absent"]);
    args.agent.transport = vec!["grpc".to_owned(), "HTTP+JSON".to_owned()];
    args.agent.a2a_version = Some("1.0".to_owned());
    let chosen = report(&args).await;
    assert_eq!(interfaces(&chosen), ["GRPC 1.0", "HTTP+JSON 1.0"].map(str::to_owned).into());
    assert_eq!(faults(&chosen), [], "{}", chosen.text());
    args.agent.a2a_version = Some("auto".to_owned());
    assert_eq!(interfaces(&report(&args).await).len(), 4);
    for (transport, version, words) in
        [("carrier-pigeon", "1.0", "--transport"), ("grpc", "7", "--a2a-version"), ("grpc", "0.2", "no interface")]
    {
        args.agent.transport = vec![transport.to_owned()];
        args.agent.a2a_version = Some(version.to_owned());
        let checked = Box::pin(super::check(&args, &crate::config::Environment::default())).await;
        let Err(error) = checked else { panic!("{transport} {version} was taken") };
        assert_eq!(error.code.name(), "A2ACLI_ERR_USAGE");
        assert!(error.message.contains(words), "{error:?}");
    }
}

/// As a server may do that offers 0.3 at the same place.
#[tokio::test]
async fn an_answer_of_0_3_to_a_call_without_a_version_passes() {
    let plant = Plant {
        ask: |asked| {
            if asked.path.ends_with("/message:send") && asked.headers.get("a2a-version").is_none() {
                asked.path = asked.path.replace("/v1", "").replace("/message:send", "/v1/message:send");
                asked.edit(|json| {
                    if json["message"].get("content").is_none() {
                        json["message"]["content"] = json["message"]["parts"].take();
                        json["message"].as_object_mut().unwrap().remove("parts");
                    }
                });
            }
        },
        answer: |asked, answered| {
            let is_older = asked.path.ends_with("/v1/message:send");
            assert!(!is_older || answered.json()["task"]["history"][0]["content"].is_array(), "{}", answered.json());
        },
        ..NOTHING
    };
    let served = Served::start(usual(), plant).await;
    let report = report(&args(&served.url, &["version-absent"])).await;
    assert_eq!(faults(&report), [], "{}", report.text());
    let is_checked = |outcome: &&super::super::report::Outcome| outcome.status == Status::Pass;
    assert_eq!(report.outcomes.iter().filter(is_checked).count(), 3, "{}", report.text());
}

#[tokio::test]
async fn without_a_card_there_is_nothing_to_check() {
    let served = Served::start(
        usual(),
        Plant {
            answer: |asked, answered| {
                if asked.is_card() {
                    answered.status = http::StatusCode::NOT_FOUND;
                }
            },
            ..NOTHING
        },
    )
    .await;
    let checked = Box::pin(super::check(&args(&served.url, &[]), &crate::config::Environment::default())).await;
    let Err(error) = checked else { panic!("a card was found") };
    assert_eq!(error.code.name(), "A2ACLI_ERR_CARD_NOT_FOUND");
    assert!(error.message.contains("answered HTTP 404 in place of an agent card"), "{error:?}");
}

#[tokio::test]
async fn a_check_that_does_not_exist_is_wrong_usage() {
    let checked =
        Box::pin(super::check(&args("http://127.0.0.1:1", &["no-such"]), &crate::config::Environment::default())).await;
    let Err(error) = checked else { panic!("it was taken") };
    assert_eq!((error.code.name(), error.message.contains("--list")), ("A2ACLI_ERR_USAGE", true), "{error:?}");
}

//! What is sent again, and what is not.

use std::time::Duration;

use switchboard::client::RetryPolicy;
use switchboard::{CallErrorKind, ProtocolError, Server, TaskId};

use super::{quick, quick_retries};
use crate::support::callers::soon;
use crate::support::edge::echo;
use crate::support::grpc::Served;
use crate::support::proxy::Proxy;
use crate::support::scripted::{Script, Scripted, answer, json};

const CARD: &str = r#"{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC"}"#;
const TASK: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}}"#;

/// A server that answers the card, refuses the first two calls as told, and then answers.
async fn failing_twice(failure: fn() -> Script) -> Scripted {
    Scripted::start(move |count, _| match count {
        0 => json(CARD),
        1 | 2 => failure(),
        _ => json(TASK),
    })
    .await
}

#[tokio::test]
async fn what_only_reads_is_asked_again() {
    let failures: [fn() -> Script; 5] = [
        || answer(503, "retry-after: 0", "later"),
        || answer(429, "", ""),
        || answer(502, "", "<html>"),
        || Script::Cut(Vec::new()),
        || Script::Cut(b"HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{".to_vec()),
    ];
    for failure in failures {
        let server = failing_twice(failure).await;
        let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
        assert_eq!(soon(agent.task(&TaskId::from("t"))).await.unwrap().id.as_str(), "t");
        assert!(server.lines().len() >= 4);
        let once = quick().retry(RetryPolicy::never()).build().unwrap();
        let server = failing_twice(failure).await;
        let error = once.agent(&server.url).await.unwrap().task(&TaskId::from("t")).await.unwrap_err();
        assert!(error.is_retryable(), "{error:?}");
    }
}

#[tokio::test]
async fn a_message_that_was_refused_for_now_is_sent_again_with_the_same_ids() {
    let server = failing_twice(|| answer(503, "", "later")).await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    soon(agent.send_text("go")).await.unwrap();
    let sent = &server.asked()[1..];
    assert_eq!(sent.len(), 3);
    let key = sent[0].header("idempotency-key").unwrap();
    assert_eq!(key.len(), 36);
    assert!(sent.iter().all(|asked| asked.header("idempotency-key") == Some(key) && asked.body == sent[0].body));
}

#[tokio::test]
async fn a_message_that_may_have_arrived_is_not_sent_again() {
    let failures: [fn() -> Script; 3] =
        [|| Script::Cut(Vec::new()), || answer(502, "", "<html>"), || answer(504, "", "")];
    for failure in failures {
        let server = failing_twice(failure).await;
        let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
        let error = soon(agent.send_text("go")).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::OutcomeUnknown, "{error:?}");
        assert!(!error.is_retryable() && error.may_have_arrived(), "{error:?}");
        assert_eq!(server.lines().len(), 2);
        // A server that mounts the agent does not invite its callers to try again, either.
        assert!(matches!(ProtocolError::from(error), ProtocolError::InvalidAgentResponse { .. }));

        let server = failing_twice(failure).await;
        let repeating = quick().retry(quick_retries().repeating_sends(true)).build().unwrap();
        soon(repeating.agent(&server.url).await.unwrap().send_text("go")).await.unwrap();
    }
}

#[tokio::test]
async fn a_message_that_surely_did_not_leave_is_sent_again() {
    // A port that nothing listens on.
    let card = CARD.replace(r#""url":"""#, r#""url":"http://127.0.0.1:9/x/y""#);
    let agent = quick().build().unwrap().agent(&card).await.unwrap();
    let error = soon(agent.send_text("go")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (CallErrorKind::Unreachable, true), "{error:?}");
    assert!(!error.may_have_arrived());
}

#[tokio::test]
async fn a_deadline_ends_attempts_pauses_and_silence() {
    let server = Scripted::start(|count, _| match count {
        0 => json(CARD),
        _ => Script::Stall(Vec::new()),
    })
    .await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    let agent = agent.with_deadline(Duration::from_millis(50));
    let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut, "{error}");
    let error = soon(agent.send_text("go")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (CallErrorKind::TimedOut, false), "{error}");
    assert!(error.to_string().contains("outcome is not known"), "{error}");
    // A pause that is longer than the deadline is not begun.
    let server = failing_twice(|| answer(503, "retry-after: 3600", "")).await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn a_wait_that_is_over_names_the_task_that_goes_on() {
    let served = Served::start(Server::builder().agent(echo())).await;
    let agent = super::agent(&format!("http://{}", served.address)).await;
    let waiting = agent.clone().with_deadline(Duration::from_millis(300));
    let message = switchboard::Message::new(switchboard::Role::User, "", vec![switchboard::Part::text("wait")]);
    let error = soon(waiting.send_and_wait(message)).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut);
    let id = error.task_id().unwrap();
    assert!(!agent.task(id).await.unwrap().state().is_terminal());
    agent.cancel(id).await.unwrap();
}

#[tokio::test]
async fn against_our_own_server_no_repeat_opens_a_second_task() {
    let proxy = Proxy::bind().await;
    let url = proxy.url();
    let served = Served::start(Server::builder().agent(echo()).public_url(&url)).await;
    // The card, then every second connection is cut before its answer.
    proxy.start(served.address, |number| if number > 0 && number % 2 == 1 { Some(10) } else { None });
    let client = quick().retry(quick_retries().repeating_sends(true)).build().unwrap();
    let agent = client.agent(&url).await.unwrap();
    for number in 0..20 {
        let text = format!("hello {number}");
        assert_eq!(soon(agent.send_text(&text)).await.unwrap().text(), text);
    }
    assert_eq!(soon(agent.tasks(Default::default())).await.unwrap().total_size, 20);
}

/// A card that says that repeats are recognised.
fn card_with_the_extension() -> String {
    let extension =
        format!(r#""capabilities":{{"extensions":[{{"uri":"{}"}}]}},"url":"""#, switchboard::IDEMPOTENT_SENDS);
    CARD.replace(r#""url":"""#, &extension)
}

#[tokio::test]
async fn a_message_is_sent_again_to_an_agent_whose_card_says_that_it_recognises_repeats() {
    let failures: [fn() -> Script; 3] =
        [|| Script::Cut(Vec::new()), || answer(502, "", "<html>"), || answer(504, "", "")];
    for failure in failures {
        let server = Scripted::start(move |count, _| match count {
            0 => json(&card_with_the_extension()),
            1 | 2 => failure(),
            _ => json(TASK),
        })
        .await;
        soon(super::agent(&server.url).await.send_text("go")).await.unwrap();
        let sent = &server.asked()[1..];
        assert_eq!(sent.len(), 3);
        let key = sent[0].header("idempotency-key").unwrap();
        assert!(sent.iter().all(|asked| asked.header("idempotency-key") == Some(key) && asked.body == sent[0].body));
    }
    // When all attempts are used up, the outcome is still not known, also if the last one surely did not arrive.
    let server = Scripted::start(|count, _| match count {
        0 => json(&card_with_the_extension()),
        1 => Script::Cut(Vec::new()),
        _ => answer(503, "", ""),
    })
    .await;
    let error = soon(super::agent(&server.url).await.send_text("go")).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (CallErrorKind::OutcomeUnknown, false), "{error}");
    assert_eq!(server.lines().len(), 5);
    // The cards of our own agents say so.
    let (_served, url) = super::served(Server::builder().agent(echo())).await;
    let card = super::agent(&url).await.card();
    assert!(card.capabilities.extensions.iter().any(|own| own.uri == switchboard::IDEMPOTENT_SENDS && !own.required));
}

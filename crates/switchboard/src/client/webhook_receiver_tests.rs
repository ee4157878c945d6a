//! What a receiver takes, what it refuses, and what it recognises.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Full;
use switchboard_core::model::{TaskState, Update};
use tokio::sync::Notify;
use tower::ServiceExt;

use super::{WebhookReceiver, WebhookReceiverBuilder, WebhookUpdate};
use crate::client::webhook_deliveries::DELIVERIES_MAX;
use crate::signing_secrets::SigningSecrets;

const V1_0: &str = r#"{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
const V0_3: &str = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;
const V0_3_UPDATE: &str =
    r#"{"kind":"status-update","taskId":"t","contextId":"c","status":{"state":"failed"},"final":true}"#;
/// Agents of 0.2 leave the kind out.
const V0_2: &str = r#"{"id":"t","contextId":"c","status":{"state":"working"}}"#;

type Taken = Arc<Mutex<Vec<WebhookUpdate>>>;

fn receiver(builder: WebhookReceiverBuilder) -> (WebhookReceiver, Taken) {
    let taken = Taken::default();
    let receiver = builder.build({
        let taken = taken.clone();
        move |update| {
            taken.lock().unwrap().push(update);
            async { Ok(()) }
        }
    });
    (receiver.unwrap(), taken)
}

async fn post(receiver: &WebhookReceiver, headers: &[(&str, &str)], body: &str) -> StatusCode {
    let mut request = Request::post("/hook");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
    receiver.clone().oneshot(request).await.unwrap().status()
}

fn state(update: &WebhookUpdate) -> TaskState {
    match &update.update {
        Update::Task(view) => view.task.state(),
        Update::Status(update) => update.status.state,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn updates_of_every_version_are_typed() {
    let (receiver, taken) = receiver(WebhookReceiver::builder().allow_unverified());
    for body in [V1_0, V0_3, V0_3_UPDATE, V0_2] {
        assert_eq!(post(&receiver, &[], body).await, 204, "{body}");
    }
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    let states: Vec<TaskState> = taken.iter().map(state).collect();
    assert_eq!(states, [TaskState::Working, TaskState::Completed, TaskState::Failed, TaskState::Working]);
    assert!(taken.iter().all(|update| update.task_id().unwrap().as_str() == "t"));
    for body in ["", "{}", "[]", "<html>", r#"{"statusUpdate":{}}"#, r#"{"kind":"poem"}"#] {
        assert_eq!(post(&receiver, &[], body).await, 400, "{body}");
    }
}

#[tokio::test]
async fn a_token_is_required_in_either_header() {
    let (receiver, taken) = receiver(WebhookReceiver::builder().token("old").token("new"));
    for (headers, status) in [
        (&[][..], 401),
        (&[("x-a2a-notification-token", "other")], 401),
        (&[("x-a2a-notification-token", "ol")], 401),
        (&[("authorization", "old")], 401),
        (&[("x-a2a-notification-token", "old")], 204),
        (&[("a2a-notification-token", "new"), ("x-a2a-notification-token", "new")], 204),
    ] {
        assert_eq!(post(&receiver, headers, V1_0).await, status, "{headers:?}");
    }
    // The second of the two that were let in says nothing new.
    assert_eq!(taken.lock().unwrap().len(), 1);
    assert!(WebhookReceiver::builder().build(|_| async { Ok(()) }).is_err());
}

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const OTHER: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn noon() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_700_000_000)
}

#[tokio::test]
async fn a_signature_must_be_right_and_new() {
    let secrets = SigningSecrets::parse(SECRET).unwrap();
    let (receiver, taken) = receiver(WebhookReceiver::builder().secrets(secrets).clock(noon));
    let signed = |secrets: &str, id: &str, at: &str, body: &str| {
        let signature = SigningSecrets::parse(secrets).unwrap().sign(id, at, body.as_bytes());
        [("webhook-id", id.to_owned()), ("webhook-timestamp", at.to_owned()), ("webhook-signature", signature)]
    };
    let both = format!("{OTHER} {SECRET}");
    for (headers, body, status) in [
        (signed(SECRET, "t:c:1", "1700000000", V1_0), V1_0, 204),
        (signed(&both, "t:c:2", "1699999700", V1_0), V1_0, 204),
        (signed(SECRET, "t:c:3", "1700000300", V1_0), V1_0, 204),
        (signed(SECRET, "t:c:4", "1699999699", V1_0), V1_0, 401),
        (signed(SECRET, "t:c:4", "1700000301", V1_0), V1_0, 401),
        (signed(OTHER, "t:c:4", "1700000000", V1_0), V1_0, 401),
        (signed(SECRET, "t:c:4", "1700000000", V1_0), V0_3, 401),
        (signed(SECRET, "t:c:4", "noon", V1_0), V1_0, 401),
    ] {
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        assert_eq!(post(&receiver, &headers, body).await, status, "{headers:?}");
        assert_eq!(post(&receiver, &headers[..2], body).await, 401, "no signature");
    }
    let seqs: Vec<_> = taken.lock().unwrap().iter().map(|update| (update.delivery_id.clone(), update.seq)).collect();
    let expected = [1, 2, 3].map(|seq| (Some(format!("t:c:{seq}")), Some(seq)));
    assert_eq!(seqs, expected);
}

#[tokio::test]
async fn a_delivery_is_handled_once_unless_its_handler_failed() {
    let count = Arc::new(AtomicUsize::new(0));
    let receiver = WebhookReceiver::builder().allow_unverified().build({
        let count = count.clone();
        move |_| {
            let is_first = count.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if is_first { Err("not now".into()) } else { Ok(()) } }
        }
    });
    let receiver = receiver.unwrap();
    let id = [("a2a-delivery-id", "t:c:1")];
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(post(&receiver, &id, V1_0).await.as_u16());
    }
    assert_eq!((statuses, count.load(Ordering::SeqCst)), (vec![500, 204, 204], 2));
    // Another update of the same text is another one.
    assert_eq!(post(&receiver, &[("a2a-delivery-id", "t:c:2")], V1_0).await, 204);
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn the_same_delivery_is_not_handled_at_the_same_time() {
    let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let receiver = WebhookReceiver::builder().allow_unverified().build({
        let (begun, go_on) = (begun.clone(), go_on.clone());
        move |_| {
            let (begun, go_on) = (begun.clone(), go_on.clone());
            async move {
                begun.notify_one();
                go_on.notified().await;
                Ok(())
            }
        }
    });
    let receiver = receiver.unwrap();
    {
        let first = post(&receiver, &[], V1_0);
        let mut first = std::pin::pin!(first);
        tokio::select! {
            biased;
            status = &mut first => panic!("{status}"),
            () = begun.notified() => {}
        }
        assert_eq!(post(&receiver, &[], V1_0).await, 409);
        // The agent no longer waits: the delivery may come again.
    }
    go_on.notify_one();
    assert_eq!(post(&receiver, &[], V1_0).await, 204);
}

#[tokio::test]
async fn bodies_methods_and_memory_are_bounded() {
    let (receiver, _) = receiver(WebhookReceiver::builder().allow_unverified().body_bytes_max(V1_0.len()));
    assert_eq!(post(&receiver, &[], V1_0).await, 204);
    assert_eq!(post(&receiver, &[], &format!("{V1_0} ")).await, 413);
    let get = Request::get("/hook").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(receiver.clone().oneshot(get).await.unwrap().status(), 405);
    for number in 0..=DELIVERIES_MAX {
        post(&receiver, &[("a2a-delivery-id", &number.to_string())], V1_0).await;
    }
    assert_eq!(receiver.shared.deliveries.counts(), (DELIVERIES_MAX, 0));
}

#[tokio::test]
async fn a_challenge_is_answered_if_that_is_wanted_and_with_nothing_but_a_word() {
    use http_body_util::BodyExt as _;
    let ask = async |builder: WebhookReceiverBuilder, query: &str| {
        let (receiver, _) = receiver(builder.allow_unverified());
        let request = Request::get(format!("/hook{query}")).body(Full::new(Bytes::new())).unwrap();
        let answer = receiver.oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    };
    let answering = || WebhookReceiver::builder().answer_challenges();
    assert_eq!(ask(answering(), "?a=b&validationToken=0f-1~x").await, (200, "0f-1~x".to_owned()));
    assert_eq!(ask(WebhookReceiver::builder(), "?validationToken=0f").await.0, 405);
    let long = format!("?validationToken={}", "a".repeat(257));
    for query in ["", "?validationToken=", "?validationToken=%3Cscript%3E", "?validationtoken=0f", &long] {
        assert_eq!(ask(answering(), query).await.0, 400, "{query}");
    }
}

/// Posts as a server does that signs tokens for a receiver.
#[cfg(feature = "server")]
mod of_servers {
    use super::*;
    use crate::client::WebhookServer;
    use crate::signing_keys::{KeyAlgorithm, SigningKeys};
    use serde_json::{Value, json};
    use sha2::{Digest as _, Sha256};

    const NOW_S: u64 = 1_800_000_000;

    fn token(keys: &SigningKeys, changes: &[(&str, Value)], body: &str) -> String {
        let digest: String = Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut claims = json!({"iss": "https://agents.example", "aud": "https://hooks.example", "iat": NOW_S,
            "exp": NOW_S + 300, "jti": "j1", "request_body_sha256": digest});
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        format!("Bearer {}", keys.current().sign_token(&claims).unwrap())
    }

    fn of(server: WebhookServer) -> WebhookReceiverBuilder {
        WebhookReceiver::builder().server(server).clock(|| UNIX_EPOCH + Duration::from_secs(NOW_S))
    }

    #[tokio::test]
    async fn a_token_of_the_server_for_this_receiver_and_this_body_is_believed_and_no_other() {
        let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
        let other = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
        let server = WebhookServer::new("https://agents.example/", "https://hooks.example");
        let (receiver, taken) = receiver(of(server.keys(keys.jwk_set()).unwrap()));
        let bad = [
            token(&other, &[], V1_0),
            token(&keys, &[("iss", json!("https://other.example"))], V1_0),
            token(&keys, &[("aud", json!("https://other.example"))], V1_0),
            token(&keys, &[("exp", json!(NOW_S - 301))], V1_0),
            token(&keys, &[("iat", json!(NOW_S + 301))], V1_0),
            token(&keys, &[("jti", Value::Null)], V1_0),
            token(&keys, &[], V0_3),
            token(&keys, &[], V1_0).replace("Bearer ", "Basic "),
            "Bearer ".to_owned(),
        ];
        for authorization in &bad {
            assert_eq!(post(&receiver, &[("authorization", authorization)], V1_0).await, 401, "{authorization}");
        }
        assert_eq!(post(&receiver, &[], V1_0).await, 401);
        let good = token(&keys, &[("aud", json!(["https://hooks.example"]))], V1_0);
        // The second time with another id, which the token does not cover.
        for id in ["t:c:1", "t:c:2"] {
            let headers = [("authorization", good.as_str()), ("a2a-delivery-id", id)];
            assert_eq!(post(&receiver, &headers, V1_0).await, 204);
        }
        assert_eq!(taken.lock().unwrap().len(), 1, "a token is good for one delivery");
    }

    #[tokio::test]
    async fn keys_are_fetched_and_without_them_the_server_posts_again_later() {
        let keys = SigningKeys::generate(KeyAlgorithm::EdDsa).unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let server = || WebhookServer::new("https://agents.example", "https://hooks.example").keys_at(&url);
        let authorization = token(&keys, &[], V1_0);
        let set = keys.jwk_set();
        let app = axum::Router::new().route("/keys", axum::routing::get(move || async move { set }));
        let (believing, taken) = receiver(of(server()));
        let serving = axum::serve(listener, app);
        let headers = [("authorization", authorization.as_str())];
        tokio::select! {
            status = post(&believing, &headers, V1_0) => assert_eq!(status, 204),
            _ = serving.into_future() => panic!("the keys are served"),
        }
        assert_eq!(taken.lock().unwrap().len(), 1);
        // Nothing listens there any more.
        let (unable, _) = receiver(of(server()));
        assert_eq!(post(&unable, &[("authorization", &authorization)], V1_0).await, 503);
        // Keys come over HTTPS, or from this machine.
        let plain = WebhookServer::new("http://agents.example", "https://hooks.example");
        let (unable, _) = receiver(of(plain));
        let of_plain = token(&keys, &[("iss", json!("http://agents.example"))], V1_0);
        assert_eq!(post(&unable, &[("authorization", &of_plain)], V1_0).await, 503);
    }
}

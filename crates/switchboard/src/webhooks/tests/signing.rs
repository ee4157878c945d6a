//! What a signed post carries, and that each attempt is signed anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use switchboard_core::model::Timestamp;
use switchboard_engine::ports::{Clock, Webhook};

use super::{call, client};
use crate::outbound::tests::receiver::Receiver;
use crate::signing_secrets::SigningSecrets;

const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Shows what it was last set to.
#[derive(Default)]
struct HandClock(AtomicI64);

impl Clock for HandClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.0.load(Ordering::SeqCst))
    }
}

/// The signed headers of a request, in their order.
fn signed(request: &str) -> Vec<&str> {
    request.lines().filter(|line| line.starts_with("webhook-")).collect()
}

#[tokio::test]
async fn each_attempt_has_the_same_id_and_its_own_time_and_signature() {
    let mut receiver = Receiver::start("HTTP/1.1 204 No Content\r\n\r\n").await;
    let clock = Arc::new(HandClock::default());
    let client = client(&["127.0.0.0/8"]).signing(SigningSecrets::parse(OLD).unwrap(), clock.clone());
    let mut requests = Vec::new();
    for ms in [1_700_000_000_999, 1_700_000_001_000] {
        clock.0.store(ms, Ordering::SeqCst);
        client.post(call(format!("http://127.0.0.1:{}/", receiver.port))).await.unwrap();
        requests.push(receiver.request().await);
    }
    // Made with another program: printf 't:c:1.1700000000.{}' | openssl dgst -sha256 -mac HMAC -macopt hexkey:… -binary
    let expected = [
        [
            "webhook-id: t:c:1",
            "webhook-timestamp: 1700000000",
            "webhook-signature: v1,Fz37TRWbNhK+xIv3H/4Wwy9NvrwFYNcb5zm9CUutwNQ=",
        ],
        [
            "webhook-id: t:c:1",
            "webhook-timestamp: 1700000001",
            "webhook-signature: v1,Kqk1CgZb9l1GyUwz92xe7JTl+P9fHvEbVk3OR/5/F3M=",
        ],
    ];
    assert_eq!(requests.iter().map(|request| signed(request)).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn while_secrets_change_both_sign() {
    let mut receiver = Receiver::start("HTTP/1.1 204 No Content\r\n\r\n").await;
    let mut signatures = Vec::new();
    for secrets in [OLD.to_owned(), format!("{NEW}\n{OLD}"), NEW.to_owned()] {
        let secrets = SigningSecrets::parse(&secrets).unwrap();
        let client = client(&["127.0.0.0/8"]).signing(secrets, Arc::new(HandClock::default()));
        client.post(call(format!("http://127.0.0.1:{}/", receiver.port))).await.unwrap();
        let request = receiver.request().await;
        signatures.push(signed(&request)[2].strip_prefix("webhook-signature: ").unwrap().to_owned());
    }
    let [old, both, new] = &signatures[..] else { panic!("{signatures:?}") };
    assert_ne!(old, new);
    assert_eq!(*both, format!("{new} {old}"));
}

//! Signed webhooks of the real binary, verified as a receiver would.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::http::call;
use super::outbox::with_hook;
use super::process::{Server, command, free_addr};
use super::receiver::{Call, Receiver};

const OLD: &str = "C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const NEW: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What a receiver learns from a call if it knows this secret: nothing, if it must not trust it.
fn verified(call: &Call, secret: &str) -> Option<(String, u64)> {
    let header = |name: &str| call.headers.get(name).cloned();
    let (id, timestamp) = (header("webhook-id")?, header("webhook-timestamp")?);
    let signed = [format!("{id}.{timestamp}.").as_bytes(), &call.body].concat();
    let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(secret).unwrap());
    header("webhook-signature")?
        .split(' ')
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .find(|signature| hmac::verify(&key, &signed, signature).is_ok())?;
    Some((id, timestamp.parse().unwrap()))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

#[test]
fn deliveries_and_their_retries_are_signed_over_a_change_of_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr, receiver) = (folder.path().join("data"), free_addr(), Receiver::start());
    let start = |secrets: &str| {
        let mut command = command(&data, addr);
        command.args(["--outbound-allow", "127.0.0.0/8"]);
        command.env("SWITCHBOARD_WEBHOOK_SIGNING_SECRET", secrets);
        Server::start_by(command, addr)
    };

    let server = start(&format!("whsec_{OLD}"));
    let began_s = now_s();
    call(addr, "SendMessage", with_hook("m-1", "hello", &receiver.url())).unwrap();
    let mut first = receiver.next();
    let (id, signed_s) = verified(&first, OLD).expect("it is signed");
    assert_eq!(id, first.id);
    assert!((began_s..=now_s()).contains(&signed_s), "{signed_s}");
    assert_eq!(verified(&first, NEW), None, "somebody else's secret proves nothing");
    first.body.push(b' ');
    assert_eq!(verified(&first, OLD), None, "not another byte");
    first.not_before(1);

    // The same delivery, signed anew: a receiver may refuse old times and still take it.
    let again = receiver.next();
    let (same_id, later_s) = verified(&again, OLD).expect("so is the next attempt");
    assert_eq!((same_id, again.attempt), (id.clone(), 2));
    assert!(later_s > signed_s, "{later_s}");
    // It is not answered, so it comes again from the next server.
    server.kill();

    // While receivers move to the new secret, those with either of them can verify.
    let server = start(&format!("whsec_{NEW},whsec_{OLD}"));
    let between = receiver.next();
    assert_eq!(verified(&between, NEW).expect("both have signed").0, id);
    assert_eq!(verified(&between, OLD), verified(&between, NEW));
    server.kill();

    let server = start(&format!("whsec_{NEW}"));
    let last = receiver.next();
    assert_eq!(verified(&last, NEW).expect("the new one has signed").0, id);
    assert_eq!(verified(&last, OLD), None, "the old one is of no use any more");
    server.kill();
}

#[test]
fn without_a_secret_nothing_claims_to_be_signed() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr, receiver) = (folder.path().join("data"), free_addr(), Receiver::start());
    let server = Server::start_with(&data, addr, &["--outbound-allow", "127.0.0.0/8"]);
    call(addr, "SendMessage", with_hook("m-1", "hello", &receiver.url())).unwrap();
    let first = receiver.next();
    assert!(first.headers.keys().all(|name| !name.starts_with("webhook-")), "{:?}", first.headers);
    server.kill();
}

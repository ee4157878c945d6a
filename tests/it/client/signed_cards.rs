//! Signed cards: whose keys count, where they are fetched, and what is refused.

use std::sync::atomic::Ordering;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use switchboard::client::{CardKeys, SignatureStatus};
use switchboard::outbound::{AddressPolicy, Trust};
use switchboard::{CallErrorKind, KeyAlgorithm, ProtocolBinding, Server, SigningKeys};

use super::{quick, served};
use crate::support::edge::echo;
use crate::support::scripted::{Scripted, json};
use crate::support::tls::{FIRST, json_over_tls};

/// A card in its canonical form.
const CARD: &str = r#"{"capabilities":{},"defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"description":"d","name":"Signed","skills":[{"description":"d","id":"s","name":"s","tags":["t"]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a.example"}],"version":"1"}"#;

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A key set with one key.
fn key_set(key: &Ed25519KeyPair) -> String {
    format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"{}"}}]}}"#, encode(key.public_key()))
}

/// The card with a signature that names its key set, if it has one.
fn signed(key: &Ed25519KeyPair, jku: Option<&str>) -> String {
    signed_as("k1", key, jku, CARD)
}

fn signed_as(key_id: &str, key: &Ed25519KeyPair, jku: Option<&str>, card: &str) -> String {
    let jku = jku.map(|jku| format!(r#","jku":"{jku}""#)).unwrap_or_default();
    let protected = encode(format!(r#"{{"alg":"EdDSA","kid":"{key_id}","typ":"JOSE"{jku}}}"#));
    let signature = encode(key.sign(format!("{protected}.{}", encode(card)).as_bytes()));
    let signatures = format!(r#"[{{"protected":"{protected}","signature":"{signature}"}}]"#);
    format!(r#"{},"signatures":{signatures}}}"#, card.strip_suffix('}').unwrap())
}

#[tokio::test]
async fn the_signature_of_an_extended_card_counts_too() {
    let keys = SigningKeys::generate(KeyAlgorithm::Es256).unwrap();
    let known = CardKeys::none().and_jwk_set(keys.jwk_set()).unwrap();
    let agent = || echo().extended_card(|card| card.description.push_str(" and more")).extended_card_for_anyone();
    let (_served, url) =
        served(Server::builder().agent(agent()).interfaces(ProtocolBinding::ALL).signing_keys(keys)).await;
    for binding in ProtocolBinding::ALL {
        let client = quick().bindings([binding]).versions(["1.0"]).card_keys(known.clone()).require_signed_cards();
        let client = client.build().unwrap();
        let card = client.agent(&url).await.unwrap().extended_card().await.unwrap();
        assert!(card.description.ends_with(" and more"));
        assert!(client.extended_signature_status(&card).await.is_verified(), "{binding:?}");
        let mut changed = (*card).clone();
        changed.description.push('!');
        assert!(!client.extended_signature_status(&changed).await.is_verified(), "{binding:?}");
    }
    // A public card that is signed does not vouch for an extended one that is not.
    let key = Ed25519KeyPair::generate().unwrap();
    let server = Scripted::start(|_, _| json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{CARD}}}"#))).await;
    let card = signed_as("k1", &key, None, &CARD.replace("https://a.example", &server.url));
    let client = quick().card_keys(CardKeys::none().and_jwk_set(key_set(&key)).unwrap()).require_signed_cards();
    let error = client.build().unwrap().agent(&card).await.unwrap().extended_card().await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::CardNotVerified, "{error}");
}

#[tokio::test]
async fn an_agent_whose_card_is_not_verified_is_not_called() {
    let key = Ed25519KeyPair::generate().unwrap();
    let keys = CardKeys::none().and_jwk_set(key_set(&key)).unwrap();
    let client = quick().card_keys(keys).require_signed_cards().build().unwrap();
    client.agent(&signed(&key, None)).await.unwrap();
    let tampered = signed(&key, None).replace("https://a.example", "https://b.example");
    let stranger = signed(&Ed25519KeyPair::generate().unwrap(), None);
    for (card, expected) in [
        (CARD, "the card is not signed"),
        (tampered.as_str(), "the card was changed"),
        (stranger.as_str(), "another key was used"),
    ] {
        let server = Scripted::start({
            let card = card.to_owned();
            move |_, _| json(&card)
        })
        .await;
        for reference in [card, &server.url] {
            let error = client.agent(reference).await.unwrap_err();
            assert_eq!(error.kind(), CallErrorKind::CardNotVerified, "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
    // Without the demand, the outcome is told to those who ask.
    let lenient = quick().build().unwrap();
    let found = lenient.discover(CARD).await.unwrap();
    lenient.agent(CARD).await.unwrap();
    assert_eq!(lenient.signature_status(&found).await, SignatureStatus::Absent);
}

/// A poisoned card: everything on it is the agent's but where messages go.
#[tokio::test]
async fn a_changed_card_leads_messages_elsewhere_unless_signatures_are_demanded() {
    let attacker = Scripted::start(|_, _| json("{}")).await;
    let key = Ed25519KeyPair::generate().unwrap();
    let poisoned = signed(&key, None).replace("https://a.example", &attacker.url);
    let lenient = quick().policy(AddressPolicy::any()).build().unwrap();
    let _ = lenient.agent(&poisoned).await.unwrap().send_text("a secret").await;
    assert!(attacker.asked().iter().any(|asked| asked.body.contains("a secret")), "it arrives without the demand");
    let before = attacker.asked().len();
    let keys = CardKeys::none().and_jwk_set(key_set(&key)).unwrap();
    let strict = quick().policy(AddressPolicy::any()).card_keys(keys).require_signed_cards().build().unwrap();
    assert_eq!(strict.agent(&poisoned).await.unwrap_err().kind(), CallErrorKind::CardNotVerified);
    assert_eq!(attacker.asked().len(), before);
}

#[tokio::test]
async fn keys_are_fetched_over_tls_from_hosts_that_are_trusted() {
    let key = Ed25519KeyPair::generate().unwrap();
    let (address, fetches) = json_over_tls(FIRST, key_set(&key)).await;
    let jku = format!("https://localhost:{}/keys", address.port());
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), FIRST[0]).unwrap();
    let client = |keys: CardKeys, allow: &[&str]| {
        let trust = Trust::Certificate(certificate.path().to_owned());
        quick().card_keys(keys).trust(trust).policy(AddressPolicy::parse(allow).unwrap()).build().unwrap()
    };
    let trusted = || CardKeys::none().and_fetched_from("LOCALHOST");
    let reason = async |keys: CardKeys, allow: &[&str], jku: &str| {
        let client = client(keys, allow);
        let found = client.discover(&signed(&key, Some(jku))).await.unwrap();
        match client.signature_status(&found).await {
            SignatureStatus::Unverifiable { reason } => reason,
            other => panic!("{other:?}"),
        }
    };
    let here = &["127.0.0.1", "::1"];
    let elsewhere = reason(CardKeys::none().and_fetched_from("keys.example"), here, &jku).await;
    assert!(elsewhere.contains("is at \"localhost\", which is not a trusted host"), "{elsewhere}");
    let plain = reason(trusted(), here, &jku.replace("https", "http")).await;
    assert!(plain.contains("is not at an https URL"), "{plain}");
    let private = reason(trusted(), &[], &jku).await;
    assert!(private.contains("may not be called"), "{private}");
    assert_eq!(fetches.load(Ordering::SeqCst), 0);
    for keys in [trusted(), CardKeys::none().and_fetched_from_any_host()] {
        let client = client(keys, here);
        let before = fetches.load(Ordering::SeqCst);
        // The set is kept for the next card.
        for _ in 0..2 {
            let found = client.discover(&signed(&key, Some(&jku))).await.unwrap();
            let status = client.signature_status(&found).await;
            assert_eq!(status, SignatureStatus::Verified { key_id: "k1".to_owned(), key_url: Some(jku.clone()) });
        }
        assert_eq!(fetches.load(Ordering::SeqCst), before + 1);
        // For a key that it lacks, it is fetched again: it may have got it since.
        let renamed = client.discover(&signed_as("k2", &key, Some(&jku), CARD)).await.unwrap();
        match client.signature_status(&renamed).await {
            SignatureStatus::Unverifiable { reason } => assert!(reason.contains("is not among those at"), "{reason}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(fetches.load(Ordering::SeqCst), before + 2);
        let tampered = signed(&key, Some(&jku)).replace("https://a.example", "https://b.example");
        let found = client.discover(&tampered).await.unwrap();
        assert!(!client.signature_status(&found).await.is_verified());
    }
}

#[tokio::test]
async fn a_key_set_that_is_none_or_endless_verifies_nothing() {
    let key = Ed25519KeyPair::generate().unwrap();
    let certificate = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(certificate.path(), FIRST[0]).unwrap();
    let large = format!("{}{}", " ".repeat(300_000), key_set(&key));
    for (body, expected) in [("<html>".to_owned(), "are no JSON Web Key set"), (large, "larger than 262144 bytes")] {
        let (address, _) = json_over_tls(FIRST, body).await;
        let jku = format!("https://127.0.0.1:{}/keys", address.port());
        let trust = Trust::Certificate(certificate.path().to_owned());
        let policy = AddressPolicy::parse(["127.0.0.1"]).unwrap();
        let keys = CardKeys::none().and_fetched_from("127.0.0.1");
        let client = quick().card_keys(keys).trust(trust).policy(policy).build().unwrap();
        let found = client.discover(&signed(&key, Some(&jku))).await.unwrap();
        match client.signature_status(&found).await {
            SignatureStatus::Unverifiable { reason } => assert!(reason.contains(expected), "{reason}"),
            other => panic!("{other:?}"),
        }
    }
}

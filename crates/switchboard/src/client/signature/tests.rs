//! Signatures of every algorithm, over every form, and those that must not count.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm,
    Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RSA_PSS_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;

use super::super::discovered_card::DiscoveredCard;
use super::{CardKeys, SignatureStatus};
use crate::signed_card::{Cover, Node, all_members, forms};

const CARD: &str = r#"{"name":"Bücher","description":"","version":"1","capabilities":{"streaming":false,"extensions":[{"uri":"u","required":false}]},
    "defaultInputModes":["text/plain"],"defaultOutputModes":["text/plain"],"skills":[],"x-own":{"n":1.50},
    "supportedInterfaces":[{"url":"https://a.example","protocolBinding":"JSONRPC","protocolVersion":"1.0"},
    {"url":"https://a.example/v0","protocolBinding":"JSONRPC","protocolVersion":"0.3"}]}"#;

type Sign = dyn Fn(&[u8]) -> Vec<u8>;

/// A key that signs, and how it is pinned.
struct Signer {
    algorithm: &'static str,
    sign: Box<Sign>,
    jwk: String,
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn ec(algorithm: &'static str, curve: &str, signing: &'static EcdsaSigningAlgorithm) -> Signer {
    let key = EcdsaKeyPair::generate(signing).unwrap();
    let point = key.public_key().as_ref()[1..].to_vec();
    let (x, y) = point.split_at(point.len() / 2);
    let jwk = format!(r#"{{"kty":"EC","crv":"{curve}","x":"{}","y":"{}""#, encode(x), encode(y));
    Signer {
        algorithm,
        sign: Box::new(move |text| key.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec()),
        jwk,
    }
}

fn es256() -> Signer {
    ec("ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING)
}

fn ed25519() -> Signer {
    let key = Ed25519KeyPair::generate().unwrap();
    let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{}""#, encode(key.public_key()));
    Signer { algorithm: "EdDSA", sign: Box::new(move |text| key.sign(text).as_ref().to_vec()), jwk }
}

fn rsa(algorithm: &'static str) -> Signer {
    let key = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    // `RSAPublicKey`: a sequence of two integers, whose lengths are known.
    let der = key.public_key().as_ref().to_vec();
    let (n, e) = (&der[8..265], &der[267..]);
    assert_eq!((n[0], e), (0, &[1, 0, 1][..]));
    let jwk = format!(r#"{{"kty":"RSA","n":"{}","e":"{}""#, encode(n), encode(e));
    let encoding = if algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
    let sign = move |text: &[u8]| {
        let mut signature = vec![0; key.public_modulus_len()];
        key.sign(encoding, &SystemRandom::new(), text, &mut signature).unwrap();
        signature
    };
    Signer { algorithm, sign: Box::new(sign), jwk }
}

impl Signer {
    /// The signature over these bytes, under this header.
    fn signature(&self, header: &str, payload: &[u8]) -> String {
        let protected = encode(header);
        let signature = (self.sign)(format!("{protected}.{}", encode(payload)).as_bytes());
        format!(r#"{{"protected":"{protected}","signature":"{}"}}"#, encode(signature))
    }

    fn header(&self) -> String {
        format!(r#"{{"alg":"{}","kid":"k1","typ":"JOSE"}}"#, self.algorithm)
    }

    /// The card with its signature over the form of the specification.
    fn signed(&self) -> String {
        with_signatures(CARD, &self.signature(&self.header(), &form(CARD, 0)))
    }

    fn keys(&self) -> CardKeys {
        CardKeys::none().and_jwk_set(format!(r#"{{"keys":[{},"kid":"k1"}}]}}"#, self.jwk)).unwrap()
    }
}

fn form(card: &str, at: usize) -> Vec<u8> {
    forms(&Node::read_card(card.as_bytes()).unwrap()).swap_remove(at).bytes
}

fn with_signatures(card: &str, signatures: &str) -> String {
    format!(r#"{},"signatures":[{signatures}]}}"#, card.strip_suffix('}').unwrap())
}

fn status(card: &str, keys: &CardKeys) -> SignatureStatus {
    let card = DiscoveredCard::read(Bytes::copy_from_slice(card.as_bytes()), None, &Default::default()).unwrap();
    card.signature_status(keys)
}

#[track_caller]
fn assert_verified(card: &str, keys: &CardKeys) {
    assert_eq!(status(card, keys), SignatureStatus::Verified { key_id: "k1".to_owned(), key_url: None });
}

#[track_caller]
fn assert_unverifiable(card: &str, keys: &CardKeys, expected: &str) {
    match status(card, keys) {
        SignatureStatus::Unverifiable { reason } => assert!(reason.contains(expected), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_signature_of_each_algorithm_is_verified_and_of_no_other_key() {
    let signers =
        [es256(), ec("ES384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING), ed25519(), rsa("RS256"), rsa("PS256")];
    for (at, signer) in signers.iter().enumerate() {
        let card = signer.signed();
        assert_verified(&card, &signer.keys());
        let other = &signers[(at + 1) % signers.len()];
        assert_unverifiable(&card, &other.keys(), "does not match the card under the key \"k1\"");
        let tampered = card.replace("https://a.example", "https://b.example");
        assert_unverifiable(&tampered, &signer.keys(), "the card was changed");
    }
}

#[test]
fn a_signature_over_any_form_counts() {
    let signer = es256();
    let forms = forms(&Node::read_card(CARD.as_bytes()).unwrap());
    let counts = |cover: Cover| forms.iter().filter(|form| form.cover == cover).count();
    assert_eq!([Cover::Whole, Cover::V1_0, Cover::V0_3].map(counts), [6, 3, 3]);
    for form in &forms {
        let card = with_signatures(CARD, &signer.signature(&signer.header(), &form.bytes));
        match form.cover {
            Cover::Whole | Cover::V1_0 => assert_verified(&card, &signer.keys()),
            // It says nothing about the interfaces of 1.0.
            Cover::V0_3 => assert_unverifiable(&card, &signer.keys(), "covered by no valid signature"),
        }
    }
    let stranger = with_signatures(CARD, &signer.signature(&signer.header(), CARD.as_bytes()));
    assert_unverifiable(&stranger, &signer.keys(), "does not match");
}

#[test]
fn what_the_signature_leaves_out_may_not_change_the_meaning_of_the_card() {
    let signer = es256();
    let signature = signer.signature(&signer.header(), &form(CARD, 2));
    let added = |members: &str| with_signatures(&CARD.replacen('{', &format!("{{{members},"), 1), &signature);
    // Members of older versions that say nothing new, and ones that nobody reads.
    assert_verified(&added(r#""url":"https://a.example/v0","protocolVersion":"0.3.0","x-other":1"#), &signer.keys());
    for members in [
        r#""url":"https://b.example","preferredTransport":"JSONRPC""#,
        r#""additionalInterfaces":[{"url":"https://b.example","transport":"JSONRPC"}]"#,
        r#""authentication":{"schemes":["basic"]}"#,
        r#""security":[{"b":[]}]"#,
        r#""supportsAuthenticatedExtendedCard":true"#,
    ] {
        assert_unverifiable(&added(members), &signer.keys(), "covered by no valid signature");
    }
    // One that covers all members covers these, too.
    let whole = CARD.replacen('{', r#"{"url":"https://b.example","#, 1);
    let signature = signer.signature(&signer.header(), &form(&whole, 0));
    assert_verified(&with_signatures(&whole, &signature), &signer.keys());
}

#[test]
fn a_card_of_two_versions_is_verified_if_each_has_its_signature() {
    let signer = es256();
    // The members of 0.3 say something that those of 1.0 do not.
    let card = CARD.replacen(
        '{',
        r#"{"url":"https://old.example","preferredTransport":"JSONRPC","protocolVersion":"0.3.0","supportsAuthenticatedExtendedCard":true,"#,
        1,
    );
    let node = Node::read_card(card.as_bytes()).unwrap();
    let of = |cover: Cover| -> Vec<String> {
        let forms = forms(&node).into_iter().filter(|form| form.cover == cover);
        forms.map(|form| signer.signature(&signer.header(), &form.bytes)).collect()
    };
    let (new, old) = (of(Cover::V1_0), of(Cover::V0_3));
    assert_eq!((new.len(), old.len()), (3, 4));
    for new in &new {
        for old in &old {
            for both in [format!("{new},{old}"), format!("{old},{new}")] {
                let signed = with_signatures(&card, &both);
                assert_verified(&signed, &signer.keys());
                for place in ["old.example", "https://a.example/v0", "Expected"] {
                    let changed = signed.replace(place, "evil.example");
                    if changed != signed {
                        assert_unverifiable(&changed, &signer.keys(), "");
                    }
                }
                // A member that neither version has, and no reader knows, means nothing.
                assert_verified(&signed.replacen('{', r#"{"x-more":1,"#, 1), &signer.keys());
                let added = signed.replacen('{', r#"{"authentication":{"schemes":["basic"]},"#, 1);
                assert_unverifiable(&added, &signer.keys(), "covered by no valid signature");
            }
            for one in [new, old] {
                assert_unverifiable(&with_signatures(&card, one), &signer.keys(), "covered by no valid signature");
            }
        }
    }
    // A second signature by a key that is not trusted covers nothing.
    let stranger = es256();
    let forged = forms(&node).into_iter().find(|form| form.cover == Cover::V0_3).unwrap();
    let forged = stranger.signature(&stranger.header(), &forged.bytes);
    let signed = with_signatures(&card, &format!("{},{forged}", new[0]));
    assert_unverifiable(&signed, &signer.keys(), "covered by no valid signature");
}

#[test]
fn the_key_is_chosen_by_its_id_and_by_what_it_is_for() {
    let signer = es256();
    let card = signer.signed();
    let jwk = |members: &str| CardKeys::none().and_jwk_set(format!("{}{members}}}", signer.jwk));
    for members in ["", r#","use":"sig","alg":"ES256""#, r#","kid":"k1","key_ops":["verify"]"#] {
        assert_verified(&card, &jwk(members).unwrap());
    }
    assert_unverifiable(&card, &jwk(r#","kid":"k2""#).unwrap(), "its key \"k1\" is not known");
    assert_unverifiable(&card, &CardKeys::none(), "its key \"k1\" is not known");
    for members in [r#","use":"enc""#, r#","alg":"HS256""#, r#","key_ops":["sign"]"#] {
        assert!(jwk(members).is_err(), "{members}");
    }
    assert_unverifiable(&card, &jwk(r#","alg":"ES384""#).unwrap(), "does not match");
    for bad in ["", "{}", r#"{"keys":[]}"#, r#"{"kty":"oct","k":"c2VjcmV0"}"#] {
        assert!(CardKeys::none().and_jwk_set(bad).is_err(), "{bad}");
    }
}

#[test]
fn keys_in_pem_form_verify() {
    use aws_lc_rs::encoding::AsDer as _;
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let text = STANDARD.encode(key.public_key().as_der().unwrap().as_ref());
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n");
    let sign = move |text: &[u8]| key.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec();
    let signer = Signer { algorithm: "ES256", sign: Box::new(sign), jwk: String::new() };
    assert_verified(&signer.signed(), &CardKeys::none().and_pem(&pem).unwrap());
    assert_verified(&signer.signed(), &CardKeys::none().and_pem_for("k1", &pem).unwrap());
    assert_unverifiable(&signer.signed(), &CardKeys::none().and_pem_for("k2", &pem).unwrap(), "is not known");
    for bad in ["", "-----BEGIN PUBLIC KEY-----\n%%\n-----END PUBLIC KEY-----\n"] {
        assert!(CardKeys::none().and_pem(bad).is_err(), "{bad}");
    }
}

#[test]
fn what_is_no_signature_proves_nothing() {
    let signer = es256();
    assert_eq!(status(CARD, &signer.keys()), SignatureStatus::Absent);
    assert_eq!(status(&with_signatures(CARD, ""), &signer.keys()), SignatureStatus::Absent);
    let payload = form(CARD, 0);
    for (header, expected) in [
        (r#"{"alg":"none","kid":"k1"}"#, "its algorithm is none"),
        (r#"{"alg":"NONE","kid":"k1"}"#, "its algorithm is none"),
        (r#"{"alg":"HS256","kid":"k1"}"#, "is symmetric"),
        (r#"{"alg":"ES256K","kid":"k1"}"#, "expected ES256, ES384"),
        (r#"{"kid":"k1"}"#, "missing field `alg`"),
        (r#"{"alg":"ES256","kid":"k1","crit":["exp"],"exp":1}"#, "demands extensions"),
        ("[]", "cannot be read"),
    ] {
        assert_unverifiable(&with_signatures(CARD, &signer.signature(header, &payload)), &signer.keys(), expected);
    }
    let cut = with_signatures(CARD, r#"{"protected":"e30","signature":""},{"protected":"%","signature":""}"#);
    assert_unverifiable(&cut, &signer.keys(), "none of the 2 signatures is verified; of the first: ");
    // One that is good is enough, wherever it stands.
    let good = signer.signature(&signer.header(), &payload);
    assert_verified(&with_signatures(CARD, &format!(r#"{{"protected":"%","signature":""}},{good}"#)), &signer.keys());
    // A name that stands twice could mean two things.
    let twice = signer.signed().replacen(r#""version":"1""#, r#""version":"1","x":1,"x":2"#, 1);
    assert_unverifiable(&twice, &signer.keys(), r#""x" stands twice"#);
}

#[test]
fn cards_that_other_sdks_signed_are_verified() {
    let keys = CardKeys::none().and_jwk_set(include_str!("../../../../../tests/golden/signed/keys.json")).unwrap();
    for (name, card) in [
        ("python-1", include_str!("../../../../../tests/golden/signed/python-1.json")),
        ("python-0.3", include_str!("../../../../../tests/golden/signed/python-0.3.json")),
        ("js-1", include_str!("../../../../../tests/golden/signed/js-1.json")),
    ] {
        let expected = SignatureStatus::Verified { key_id: name.to_owned(), key_url: None };
        assert_eq!(status(card, &keys), expected, "{name}");
        for (one, other) in [("B\u{fc}cher", "Bucher"), ("books.example", "evil.example"), ("\"http\"", "\"apiKey\"")] {
            let tampered = card.replace(one, other);
            let is_changed = tampered != card;
            // The type of a scheme is one of the members of 0.3, which are added to a card of 1.0 after it was signed.
            let is_signed = one != "\"http\"" || name == "python-0.3";
            if is_changed && is_signed {
                assert_unverifiable(&tampered, &keys, "does not match");
            }
        }
    }
}

/// Cards that are signed, and what they are canonicalised to: the form of the specification is a fixed point.
#[test]
fn fuzz_canonical_forms() {
    let mut corpus = switchboard_fuzz::golden(".json");
    corpus.push(CARD.as_bytes().to_vec());
    switchboard_fuzz::run("canonical forms", &corpus, |input| {
        let Ok(card) = Node::read_card(input) else { return };
        let all = all_members(&card);
        let again = Node::read_card(&all).expect("what is written can be read");
        assert_eq!(all_members(&again), all);
        assert!(!forms(&card).is_empty());
        if let Ok(found) = DiscoveredCard::read(Bytes::copy_from_slice(input), None, &Default::default()) {
            assert!(!found.signature_status(&CardKeys::none()).is_verified(), "no key is trusted");
        }
    });
}

#[test]
fn fuzz_keys_and_signatures() {
    let mut corpus = switchboard_fuzz::golden("keys.json");
    corpus.extend(switchboard_fuzz::texts(&[
        r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo","kid":"a"}]}"#,
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
        r#"{"alg":"ES256","kid":"a","jku":"https://a.example/jwks","crit":["b"]}"#,
        r#"{"alg":"none"}"#,
    ]));
    switchboard_fuzz::run("keys and signatures", &corpus, |input| {
        let _ = crate::public_keys::read_jwk_set(input);
        let _ = crate::public_keys::read_pem(None, input);
        let signature = |protected: String| switchboard_core::model::AgentCardSignature {
            protected,
            signature: "AAAA".to_owned(),
            header: None,
        };
        let _ = super::Claim::read(&signature(URL_SAFE_NO_PAD.encode(input)));
        let _ = super::Claim::read(&signature(String::from_utf8_lossy(input).into_owned()));
    });
}

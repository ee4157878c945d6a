//! Which tokens of identity providers are believed: each algorithm, tricks with algorithms and keys, and the shapes that Keycloak,
//! Auth0 and Entra give their tokens.

use std::sync::LazyLock;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use aws_lc_rs::{hmac, signature::RsaEncoding};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use switchboard_core::model::Timestamp;

use super::{Claims, Issuer, TrustedIssuer, Verdict};
use crate::jwt::Unverified;
use crate::server::authentication::Identity;

const NOW_S: i64 = 1_800_000_000;
const ISSUER: &str = "https://login.example/realms/acme";

/// A private key, and how it is published.
enum Private {
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn ec(algorithm: &'static EcdsaSigningAlgorithm) -> Private {
    Private::Ec(EcdsaKeyPair::generate(algorithm).unwrap())
}

static RSA: LazyLock<Private> = LazyLock::new(|| Private::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap()));
static P256: LazyLock<Private> = LazyLock::new(|| ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING));
static P384: LazyLock<Private> = LazyLock::new(|| ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING));
static P521: LazyLock<Private> = LazyLock::new(|| ec(&signature::ECDSA_P521_SHA512_FIXED_SIGNING));
static ED: LazyLock<Private> = LazyLock::new(|| Private::Ed(Ed25519KeyPair::generate().unwrap()));

impl Private {
    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Ec(pair) => {
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let curve = match x.len() {
                    32 => "P-256",
                    48 => "P-384",
                    _ => "P-521",
                };
                json!({"kty": "EC", "crv": curve, "kid": id, "x": text(x), "y": text(y)})
            }
            Self::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": text(pair.public_key().as_ref())}),
            // The DER of a key of 2048 bits: n is behind nine bytes, and e is 65537.
            Self::Rsa(pair) => {
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": text(&pair.public_key().as_ref()[9..265]), "e": "AQAB"})
            }
        }
    }

    fn sign(&self, algorithm: &str, signed: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Ec(pair) => pair.sign(&random, signed).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(signed).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let padding: &'static dyn RsaEncoding = match algorithm {
                    "RS384" => &signature::RSA_PKCS1_SHA384,
                    "RS512" => &signature::RSA_PKCS1_SHA512,
                    "PS256" => &signature::RSA_PSS_SHA256,
                    "PS384" => &signature::RSA_PSS_SHA384,
                    "PS512" => &signature::RSA_PSS_SHA512,
                    _ => &signature::RSA_PKCS1_SHA256,
                };
                let mut out = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &random, signed, &mut out).unwrap();
                out
            }
        }
    }

    fn token(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        format!("{signed}.{}", text(&self.sign(algorithm, signed.as_bytes())))
    }
}

fn claims(changes: Value) -> Value {
    let mut claims = json!({"iss": ISSUER, "aud": "agents", "sub": "alice", "iat": NOW_S - 10, "exp": NOW_S + 300});
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (name, value) in changes {
        claims[&name] = value;
    }
    let Value::Object(members) = &mut claims else { panic!("claims are an object") };
    members.retain(|_, value| !value.is_null());
    claims
}

fn trusted(change: impl FnOnce(Issuer) -> Issuer, keys: &[Value]) -> TrustedIssuer {
    let issuer = Issuer::new(ISSUER, "agents").keys(json!({ "keys": keys }).to_string()).unwrap();
    change(issuer).resolve().unwrap()
}

fn verify(issuer: &TrustedIssuer, token: &str) -> Option<Identity> {
    let token = Unverified::read(token.as_bytes())?;
    let claims = Claims::read(&token.claims)?;
    match issuer.verify(&token, &claims, Timestamp::from_ms(NOW_S * 1000)) {
        Verdict::Good(identity) => Some(Identity::clone(&identity)),
        Verdict::Bad => None,
        Verdict::KeysNeeded | Verdict::NoKeys => panic!("the keys are given"),
    }
}

#[test]
fn every_algorithm_is_verified_with_the_key_of_its_kind_alone() {
    let keys: [(&Private, &str); 5] = [(&RSA, "rsa"), (&P256, "p256"), (&P384, "p384"), (&P521, "p521"), (&ED, "ed")];
    let published: Vec<Value> = keys.iter().map(|(key, id)| key.jwk(id)).collect();
    let issuer = trusted(|issuer| issuer, &published);
    for (algorithm, id) in [
        ("RS256", "rsa"),
        ("RS384", "rsa"),
        ("RS512", "rsa"),
        ("PS256", "rsa"),
        ("PS384", "rsa"),
        ("PS512", "rsa"),
        ("ES256", "p256"),
        ("ES384", "p384"),
        ("ES512", "p521"),
        ("EdDSA", "ed"),
    ] {
        let (key, _) = keys.iter().find(|(_, known)| *known == id).unwrap();
        let token = key.token(&json!({"alg": algorithm, "kid": id, "typ": "JWT"}), &claims(json!({})));
        let identity = verify(&issuer, &token).unwrap_or_else(|| panic!("{algorithm}"));
        assert_eq!(identity.principal.as_str(), "https://login.example/realms/acme#alice");
        assert_eq!(identity.expires, Some(Timestamp::from_ms((NOW_S + 330) * 1000)), "with the leeway");
        // Without the name of a key, every key is tried that fits.
        assert!(verify(&issuer, &key.token(&json!({"alg": algorithm}), &claims(json!({})))).is_some(), "{algorithm}");
        for (_, other) in keys.iter().filter(|(_, other)| *other != id) {
            let token = key.token(&json!({"alg": algorithm, "kid": other}), &claims(json!({})));
            assert!(verify(&issuer, &token).is_none(), "{algorithm} with {other}");
        }
        assert!(verify(&issuer, &token.replace(".eyJhdWQ", ".eyJhdWR")).is_none(), "{algorithm} changed");
        let alone = trusted(|issuer| issuer.algorithms(["HS256"; 0]).algorithms(["PS999"; 0]), &[key.jwk("other")]);
        let unknown = key.token(&json!({"alg": algorithm, "kid": id}), &claims(json!({})));
        assert!(verify(&alone, &unknown).is_none(), "a key of another name");
    }
}

#[test]
fn keys_may_be_in_pem_form() {
    let Private::Ed(pair) = &*ED else { panic!("it is one of Ed25519") };
    let der = [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".as_slice(), pair.public_key().as_ref()].concat();
    let pem = format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        base64::engine::general_purpose::STANDARD.encode(der)
    );
    let issuer = Issuer::new(ISSUER, "agents").keys(pem).unwrap().resolve().unwrap();
    assert!(verify(&issuer, &ED.token(&json!({"alg": "EdDSA", "kid": "any"}), &claims(json!({})))).is_some());
    for (other, algorithm) in [(&RSA, "RS256"), (&P256, "ES256"), (&P256, "EdDSA")] {
        assert!(verify(&issuer, &other.token(&json!({"alg": algorithm}), &claims(json!({})))).is_none());
    }
}

#[test]
fn no_trick_with_the_algorithm_works() {
    let rsa = RSA.jwk("rsa");
    let issuer = trusted(|issuer| issuer.algorithms(["RS256"]), &[rsa.clone(), P256.jwk("p256")]);
    let good = |header: Value| verify(&issuer, &RSA.token(&header, &claims(json!({})))).is_some();
    assert!(good(json!({"alg": "RS256", "kid": "rsa"})));
    for header in [
        json!({"alg": "RS384", "kid": "rsa"}),
        json!({"alg": "PS256", "kid": "rsa"}),
        json!({"alg": "rs256", "kid": "rsa"}),
        json!({"alg": "none", "kid": "rsa"}),
        json!({"alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false}),
        json!({"alg": "RS256", "kid": "rsa", "typ": "logout+jwt"}),
        json!({"alg": "RS256", "kid": "p256"}),
        json!({"alg": "RS256", "kid": "../rsa"}),
        json!({"alg": "RS256", "kid": 7}),
    ] {
        assert!(!good(header.clone()), "{header}");
    }
    // A key in the header itself is not looked at.
    let stranger = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let stranger = Private::Rsa(stranger);
    let header = json!({"alg": "RS256", "jwk": stranger.jwk("rsa"), "jku": "https://evil.example/keys", "kid": "rsa"});
    assert!(verify(&issuer, &stranger.token(&header, &claims(json!({})))).is_none());
    let unsigned = format!("{}.{}.", text(br#"{"alg":"none"}"#), text(claims(json!({})).to_string().as_bytes()));
    assert!(verify(&issuer, &unsigned).is_none());
    // The public key, which everybody has, as the secret of HS256: in each form that a careless verifier might hold it.
    for (secret, wanted) in
        [(rsa["n"].as_str().unwrap().as_bytes().to_vec(), "HS256"), (rsa.to_string().into_bytes(), "HS256")]
    {
        let signed = format!(
            "{}.{}",
            text(json!({"alg": wanted, "kid": "rsa"}).to_string().as_bytes()),
            text(claims(json!({})).to_string().as_bytes())
        );
        let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &secret), signed.as_bytes());
        assert!(verify(&issuer, &format!("{signed}.{}", text(signature.as_ref()))).is_none());
    }
    // A key that says which algorithm it is for is for no other.
    let mut bound = rsa;
    bound["alg"] = json!("PS256");
    let issuer = trusted(|issuer| issuer, &[bound]);
    let token = |alg: &str| RSA.token(&json!({"alg": alg, "kid": "rsa"}), &claims(json!({})));
    assert!(verify(&issuer, &token("PS256")).is_some() && verify(&issuer, &token("RS256")).is_none());
}

#[test]
fn what_the_claims_must_say() {
    let issuer =
        trusted(|issuer| issuer.and_audience("other").leeway(std::time::Duration::from_secs(5)), &[ED.jwk("ed")]);
    for (changes, is_good) in [
        (json!({}), true),
        (json!({"aud": "other"}), true),
        (json!({"aud": ["x", "agents"]}), true),
        (json!({"aud": "x"}), false),
        (json!({"aud": []}), false),
        (json!({"aud": null}), false),
        (json!({"aud": "Agents"}), false),
        (json!({"iss": "https://login.example/realms/acme/"}), false),
        (json!({"iss": null}), false),
        (json!({"exp": NOW_S - 4}), true),
        (json!({"exp": NOW_S - 5}), false),
        (json!({"exp": null}), false),
        (json!({"exp": "1900000000"}), false),
        (json!({"nbf": NOW_S + 5}), true),
        (json!({"nbf": NOW_S + 6}), false),
        (json!({"nbf": "now"}), false),
        (json!({"iat": NOW_S + 6}), false),
        (json!({"iat": null}), true),
        (json!({"sub": null}), false),
        (json!({"sub": ""}), false),
        (json!({"sub": ["alice"]}), false),
        (json!({"sub": "a\u{0}b"}), false),
        (json!({"sub": "a".repeat(513)}), false),
    ] {
        let token = ED.token(&json!({"alg": "EdDSA", "kid": "ed"}), &claims(changes.clone()));
        assert_eq!(verify(&issuer, &token).is_some(), is_good, "{changes}");
    }
}

fn named(issuer: &TrustedIssuer, claims: &Value) -> Option<(String, Vec<String>, Vec<String>)> {
    let identity = verify(issuer, &RSA.token(&json!({"alg": "RS256", "typ": "JWT", "kid": "rsa"}), claims))?;
    let tenants = identity.tenants.iter().map(|tenant| tenant.as_str().to_owned()).collect();
    Some((identity.principal.as_str().to_owned(), tenants, identity.scopes.to_vec()))
}

fn of(iss: &str, aud: &str, change: impl FnOnce(Issuer) -> Issuer) -> TrustedIssuer {
    let issuer = Issuer::new(iss, aud).keys(json!({"keys": [RSA.jwk("rsa")]}).to_string()).unwrap();
    change(issuer).resolve().unwrap()
}

#[test]
fn a_token_as_keycloak_makes_it() {
    let issuer = of("https://sso.example/realms/acme", "agents", |issuer| {
        issuer.principal_claim("preferred_username").tenants_claim("groups").scope_claims([
            "scope",
            "realm_access.roles",
            "resource_access.agents.roles",
        ])
    });
    let claims = json!({
        "exp": NOW_S + 300, "iat": NOW_S, "auth_time": NOW_S - 5, "jti": "onrtac:0f0a", "iss": "https://sso.example/realms/acme",
        "aud": ["agents", "account"], "sub": "f2b9c1d0-5d5f-4a53-8a5a-6f1c9a2b7e11", "typ": "Bearer", "azp": "cli",
        "sid": "4c0f", "acr": "1", "realm_access": {"roles": ["offline_access", "agents-user"]},
        "resource_access": {"agents": {"roles": ["operator"]}, "account": {"roles": ["view-profile"]}},
        "scope": "openid email tasks:read", "email_verified": true, "preferred_username": "alice", "groups": ["acme", "globex"],
    });
    let scopes =
        ["openid", "email", "tasks:read", "offline_access", "agents-user", "operator"].map(str::to_owned).to_vec();
    let tenants = vec!["acme".to_owned(), "globex".to_owned()];
    assert_eq!(named(&issuer, &claims), Some(("https://sso.example/realms/acme#alice".to_owned(), tenants, scopes)));
    // Tenants pass the same check as everywhere, and a token without any acts for none.
    for groups in [json!(["acme", "/globex"]), json!(["tasks"]), json!([]), json!(null), json!(7), json!([""])] {
        let mut changed = claims.clone();
        changed["groups"] = groups.clone();
        assert_eq!(named(&issuer, &changed), None, "{groups}");
    }
}

#[test]
fn a_token_as_auth0_makes_it() {
    let issuer = of("https://acme.eu.auth0.com/", "https://agents.example", |issuer| {
        issuer.scope_claims(["scope", "permissions", "https://agents.example/roles"]).operator_scope("admin")
    });
    let claims = json!({
        "iss": "https://acme.eu.auth0.com/", "sub": "auth0|5f7c8ec7c33c6c004bbafe82",
        "aud": ["https://agents.example", "https://acme.eu.auth0.com/userinfo"], "iat": NOW_S, "exp": NOW_S + 86_400,
        "scope": "openid profile", "azp": "1234", "permissions": ["tasks:read", "openid"], "https://agents.example/roles": ["admin"],
    });
    let scopes = ["openid", "profile", "tasks:read", "admin"].map(str::to_owned).to_vec();
    let principal = "https://acme.eu.auth0.com/#auth0|5f7c8ec7c33c6c004bbafe82".to_owned();
    assert_eq!(named(&issuer, &claims), Some((principal, Vec::new(), scopes)));
    let token = RSA.token(&json!({"alg": "RS256", "kid": "rsa"}), &claims);
    assert!(verify(&issuer, &token).unwrap().operator);
}

#[test]
fn a_token_as_entra_makes_it() {
    let tenant = "72f988bf-86f1-41af-91ab-2d7cd011db47";
    let iss = format!("https://login.microsoftonline.com/{tenant}/v2.0");
    let issuer = of(&iss, "api://agents", |issuer| {
        issuer.principal_claim("oid").tenants_claim("tid").scope_claims(["scp", "roles"])
    });
    let claims = json!({
        "aud": "api://agents", "iss": iss, "iat": NOW_S, "nbf": NOW_S, "exp": NOW_S + 4_000, "azp": "c0ffee", "name": "Alice",
        "oid": "00000000-0000-0000-66f3-3332eca7ea81", "preferred_username": "alice@acme.example", "rh": "0.A", "scp": "Tasks.Read Tasks.Send",
        "roles": ["Agent.User"], "sub": "AAAAAAAAAAAAAAAAAAAAAIkzqFVrSaSaFHy782bbtaQ", "tid": tenant, "uti": "x", "ver": "2.0",
    });
    let principal = format!("{iss}#00000000-0000-0000-66f3-3332eca7ea81");
    let scopes = ["Tasks.Read", "Tasks.Send", "Agent.User"].map(str::to_owned).to_vec();
    assert_eq!(named(&issuer, &claims), Some((principal, vec![tenant.to_owned()], scopes)));
}

#[test]
fn wrong_settings_are_refused_with_the_fix() {
    let resolve = |issuer: Issuer| issuer.resolve().map(|_| ()).unwrap_err();
    let sound = || Issuer::new(ISSUER, "agents");
    let wrong = |why: &str| format!("the issuer {ISSUER:?} {why}");
    assert_eq!(
        resolve(Issuer::new(ISSUER, "")),
        wrong("needs an audience, or tokens for other servers would be good here")
    );
    assert_eq!(
        resolve(sound().algorithms(["HS256"])),
        wrong("cannot have the algorithm \"HS256\"; expected RS256, ES256, EdDSA or their like")
    );
    assert!(sound().algorithms(["none"]).resolve().is_err());
    assert_eq!(
        resolve(sound().leeway(std::time::Duration::from_secs(601))),
        wrong("cannot have a leeway of more than 600 seconds")
    );
    assert_eq!(
        resolve(sound().keys_at("http://login.example/keys")),
        wrong("http://login.example/keys must begin with https://")
    );
    assert!(sound().keys_at("http://127.0.0.1:8080/keys").resolve().is_ok());
    let expected = "the issuer \"https://a.example#b\" must be a text without #, as in the iss of its tokens";
    assert_eq!(resolve(Issuer::new("https://a.example#b", "agents")), expected);
    assert_eq!(resolve(Issuer::new("login", "agents")), "the issuer \"login\" login must begin with https://");
    assert!(sound().keys(r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#).is_err(), "a secret is no public key");
}

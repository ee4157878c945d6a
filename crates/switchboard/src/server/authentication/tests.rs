//! Tokens, and what they prove.

use http::{HeaderMap, HeaderValue, header};
use switchboard_core::error::ProtocolError;

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::tokens::Tokens;
use super::{Authenticated, Authentication, Identity, Verifiers};
use crate::reloaded::reload_on_change;

const ALICE: &str = "a-token-of-alice-for-tests";

fn tokens() -> Authentication {
    of_tokens(Tokens::parse(&format!("{ALICE} alice acme,globex\n0123456789abcdef bob # and nobody else\n")).unwrap())
}

fn of_tokens(tokens: Tokens) -> Authentication {
    let mut verifiers = Verifiers::default();
    verifiers.add_tokens(tokens);
    verifiers.require(Vec::new()).unwrap();
    Authentication::Configured(Box::new(verifiers))
}

fn identified(values: &[&str]) -> Result<Identity, ProtocolError> {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    identify(&tokens(), &headers)
}

fn identify(authentication: &Authentication, headers: &HeaderMap) -> Result<Identity, ProtocolError> {
    let mut head = http::Request::new(()).into_parts().0;
    head.headers = headers.clone();
    let Authenticated::Now(identified) = authentication.identify(&head) else { panic!("no application is asked") };
    identified.map(|identified| authentication.identity(&identified).clone())
}

#[test]
fn a_list_of_tokens_is_read_line_by_line() {
    let tokens = Tokens::parse("# a comment\n\n  a-token-of-alice-for-tests   alice\t acme,globex # hers\n").unwrap();
    assert_eq!((tokens.len(), tokens.is_empty()), (1, false));
    assert!(Tokens::parse("").unwrap().is_empty());
    for words in ["", " alice acme globex", " +operator", " alice +admin", " alice +operator acme", " alice a,b + x"] {
        let error = Tokens::parse(&format!("{ALICE}{words}")).unwrap_err();
        assert_eq!(error.to_string(), "line 1: expected TOKEN PRINCIPAL [TENANT,TENANT] [+operator]", "{words}");
    }
    for (text, expected) in [
        ("\nshort alice", "line 2: the token is shorter than 16 characters; use a long random one"),
        ("a-token-of-alice-for-tests alice acme,tasks", "line 1: tenant \"tasks\" is reserved; choose another name"),
        (
            "a-token-of-alice-for-tests alice acme,",
            "line 1: a tenant must be 1 to 64 letters, digits, '-', '_', '.' or '~', and not begin with a dot",
        ),
        ("a-token-of-alice-for-tests alice\na-token-of-alice-for-tests bob", "line 2: the same token appears twice"),
    ] {
        assert_eq!(Tokens::parse(text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_list_may_hold_the_digests_of_tokens_instead() {
    // printf %s a-token-of-alice-for-tests | sha256sum
    let digest = "f124ec956215736ba93338c020470b7dbbdef4b9eba24e9ea1b7dcbc194e3f6d";
    let tokens = Tokens::parse(&format!("sha256:{digest} alice\n")).unwrap();
    assert!(admits(&tokens, ALICE));
    assert!(!admits(&tokens, digest) && !admits(&tokens, &format!("sha256:{digest}")));
    for wrong in ["", "12", &digest[1..], &format!("{digest}0"), &digest.replace('b', "g")] {
        let error = Tokens::parse(&format!("sha256:{wrong} alice")).unwrap_err();
        assert_eq!(error.to_string(), "line 1: sha256: must be followed by 64 hexadecimal digits", "{wrong}");
    }
    let twice = Tokens::parse(&format!("sha256:{digest} alice\n{ALICE} bob")).unwrap_err();
    assert_eq!(twice.to_string(), "line 2: the same token appears twice");
}

#[test]
fn no_token_has_the_name_of_another_issuers_caller() {
    let tokens = Tokens::parse(&format!("{ALICE} https://login.example#alice\n")).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {ALICE}")).unwrap());
    let identity = identify(&of_tokens(tokens), &headers).unwrap();
    assert_eq!((identity.principal.as_str(), identity.issuer), ("https://login.example", None));
    assert!(Identity::issued("https://login.example", "alice").principal.as_str().contains('#'));
}

#[test]
fn no_token_is_ever_printed() {
    let tokens = Tokens::parse(&format!("{ALICE} alice")).unwrap();
    assert_eq!(format!("{tokens:?}"), "1 tokens");
    let error = Tokens::parse("sh0rt-s3cret alice").unwrap_err();
    assert!(!format!("{error:?} {error}").contains("s3cret"), "{error}");
}

#[test]
fn a_known_token_proves_its_principal() {
    for value in [format!("Bearer {ALICE}"), format!("bearer {ALICE}"), format!("BEARER  {ALICE} ")] {
        let identity = identified(&[&value]).unwrap();
        assert_eq!((identity.principal.as_str(), identity.authenticated), ("alice", true), "{value}");
    }
    assert_eq!(identified(&["Bearer 0123456789abcdef"]).unwrap().principal.as_str(), "bob");
}

#[test]
fn everything_else_is_refused_with_the_fix() {
    // One text for all of them: a caller is not told whether it was close.
    let expected = "Authentication required: send a token of this server as Authorization: Bearer TOKEN";
    let twice = format!("Bearer {ALICE}");
    for values in [
        &[][..],
        &["Bearer"][..],
        &["Basic YWxpY2U6eA=="][..],
        &["é"][..],
        &[ALICE][..],
        &["Bearer "][..],
        &["Bearer wrong"][..],
        &["Bearer a-token-of-alice-for-test"][..],
        &["Bearer A-TOKEN-OF-ALICE-FOR-TESTS"][..],
        &[twice.as_str(), twice.as_str()][..],
    ] {
        assert_eq!(identified(values).unwrap_err().to_string(), expected, "{values:?}");
    }
}

#[test]
fn only_a_marked_token_is_an_operators() {
    for (words, operator) in
        [("ops +operator", true), ("ops acme,globex +operator", true), ("ops", false), ("ops acme", false)]
    {
        let authentication = of_tokens(Tokens::parse(&format!("{ALICE} {words}")).unwrap());
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {ALICE}")).unwrap());
        let identity = identify(&authentication, &headers).unwrap();
        assert_eq!((identity.operator, identity.principal.as_str()), (operator, "ops"), "{words}");
    }
}

#[test]
fn a_tenant_is_a_selector_that_must_be_granted() {
    let alice = identified(&[&format!("Bearer {ALICE}")]).unwrap();
    let bob = identified(&["Bearer 0123456789abcdef"]).unwrap();
    let owner = |identity: &Identity, named: Option<&str>| {
        let owner = identity.owner(named).ok()?;
        Some(format!("{} of {:?}", owner.principal, owner.tenant.as_str()))
    };
    for (identity, named, expected) in [
        (&alice, None, Some("alice of \"acme\"")),
        (&alice, Some(""), Some("alice of \"acme\"")),
        (&alice, Some("globex"), Some("alice of \"globex\"")),
        (&alice, Some("Globex"), None),
        (&alice, Some("initech"), None),
        (&bob, None, Some("bob of \"\"")),
        (&bob, Some("acme"), None),
    ] {
        assert_eq!(owner(identity, named).as_deref(), expected, "{named:?}");
    }
}

#[test]
fn an_open_door_lets_everybody_in_as_nobody() {
    let authentication = Authentication::open(vec!["acme".into(), "globex".into()]);
    assert!(authentication.is_open());
    let identity = identify(&authentication, &HeaderMap::new()).unwrap();
    assert_eq!((identity.principal.as_str(), identity.authenticated), ("", false));
    assert_eq!(identity.owner(None).unwrap().tenant.as_str(), "acme");
    assert!(identity.owner(Some("initech")).is_err());
    let plain = Authentication::open(Vec::new());
    assert_eq!(identify(&plain, &HeaderMap::new()).unwrap().owner(None).unwrap().tenant.as_str(), "");
    // A credential proves nothing where none is asked for.
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer whatever"));
    assert!(!identify(&plain, &headers).unwrap().authenticated);
}

/// Whether a server with these tokens accepts a holder of this one.
fn admits(tokens: &Tokens, token: &str) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {token}")).unwrap());
    identify(&of_tokens(tokens.clone()), &headers).is_ok()
}

/// Writes a file, a while after it was last written as far as its time says.
fn rewrite(path: &Path, text: &str) {
    let before = std::fs::metadata(path).map_or(SystemTime::UNIX_EPOCH, |file| file.modified().unwrap());
    std::fs::write(path, text).unwrap();
    File::options().write(true).open(path).unwrap().set_modified(before + Duration::from_secs(60)).unwrap();
}

const BOB: &str = "b-token-of-bob-for-tests";

#[tokio::test]
async fn a_file_that_is_read_again_takes_tokens_away_and_a_bad_one_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.txt");
    std::fs::write(&path, format!("{ALICE} alice\n{BOB} bob\n")).unwrap();
    let tokens = Tokens::from_file(&path).unwrap();
    let given_to_a_server = tokens.clone();
    assert!(admits(&given_to_a_server, ALICE) && admits(&given_to_a_server, BOB));
    for (bad, why) in [
        (format!("{BOB} bob\nshort eve\n"), "line 2: the token is shorter than 16 characters; use a long random one"),
        ("# nobody\n".to_owned(), "no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]"),
        ("x".repeat((1 << 20) + 1), "is larger than 1048576 bytes"),
    ] {
        std::fs::write(&path, bad).unwrap();
        assert_eq!(tokens.reload().await.unwrap_err().to_string(), why);
        assert!(admits(&given_to_a_server, ALICE) && admits(&given_to_a_server, BOB));
    }
    std::fs::write(&path, format!("{BOB} bob\n")).unwrap();
    tokens.reload().await.unwrap();
    assert!(!admits(&given_to_a_server, ALICE) && admits(&given_to_a_server, BOB));
    std::fs::remove_file(&path).unwrap();
    let gone = "cannot be read: No such file or directory (os error 2)";
    assert_eq!(tokens.reload().await.unwrap_err().to_string(), gone);
    assert_eq!(Tokens::from_file(&path).unwrap_err().to_string(), gone);
    assert!(admits(&given_to_a_server, BOB));
}

#[tokio::test(start_paused = true)]
async fn a_changed_file_of_tokens_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.txt");
    rewrite(&path, &format!("{ALICE} alice\n"));
    let tokens = Tokens::from_file(&path).unwrap();
    let every = Duration::from_secs(60);
    let changing = async {
        tokio::time::sleep(every * 2).await;
        assert!(admits(&tokens, ALICE), "an unchanged file is left alone");
        rewrite(&path, &format!("{BOB} bob\n"));
        let deadline = tokio::time::Instant::now() + every * 10;
        while !admits(&tokens, BOB) {
            assert!(tokio::time::Instant::now() < deadline, "the change was never noticed");
            tokio::time::sleep(every).await;
        }
        assert!(!admits(&tokens, ALICE));
    };
    tokio::select! {
        () = reload_on_change(tokens.source(), every) => panic!("the look-out gave up"),
        () = changing => {}
    }
}

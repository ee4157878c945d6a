//! What the answers of an authorization server mean for a login.

use std::time::Duration;

use super::{DeviceAuthorization, Outcome, Refusal, challenge, next_pause, unescaped};
use crate::call_error::{CallError, CallErrorKind};

#[test]
fn the_challenge_is_that_of_rfc_7636() {
    // Appendix B.
    let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    assert_eq!(challenge(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
}

#[test]
fn pauses_between_looks_follow_what_the_server_says() {
    let s = Duration::from_secs;
    let refused = |error: &str| Outcome::Refused(Refusal { error: error.to_owned(), error_description: String::new() });
    assert_eq!(next_pause(s(5), refused("authorization_pending")).unwrap(), s(5));
    assert_eq!(next_pause(s(5), refused("slow_down")).unwrap(), s(10));
    assert_eq!(next_pause(s(58), refused("slow_down")).unwrap(), s(60));
    let broken = || CallError::new(CallErrorKind::Broken, "broken").retryable();
    assert_eq!(next_pause(s(5), Outcome::Failed(broken())).unwrap(), s(10));
    for (error, expected) in [
        ("access_denied", "the login was denied"),
        ("expired_token", "was not confirmed in time"),
        ("invalid_client", "refused: invalid_client"),
    ] {
        let failed = next_pause(s(5), refused(error)).unwrap_err();
        assert_eq!((failed.kind(), failed.wire_text()), (CallErrorKind::NotAuthorized, Some(error)));
        assert!(failed.to_string().contains(expected), "{failed}");
    }
    let final_one = CallError::new(CallErrorKind::NotAllowed, "private");
    assert_eq!(next_pause(s(5), Outcome::Failed(final_one)).unwrap_err().kind(), CallErrorKind::NotAllowed);
}

#[test]
fn what_a_device_is_told_has_its_limits() {
    let read = |json: &str| DeviceAuthorization::read(json.as_bytes());
    let usual = read(r#"{"device_code":"d","user_code":"U","verification_uri":"https://l/d"}"#).unwrap();
    assert_eq!((usual.interval.as_secs(), usual.expires_in.as_secs()), (5, 900));
    let odd = read(
        r#"{"device_code":"d","user_code":"U","verification_url":"https://l/d","interval":0,"expires_in":99999999,"verification_uri_complete":"javascript:x"}"#,
    )
    .unwrap();
    assert_eq!((odd.interval.as_secs(), odd.expires_in.as_secs()), (1, 3_600));
    assert_eq!(odd.verification_url_complete, None);
    for bad in ["{}", r#"{"device_code":"d","user_code":"U","verification_uri":"javascript:alert"}"#] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn parts_of_a_query_are_read_as_they_were_meant() {
    for (text, expected) in [("a%20b+c", "a b c"), ("%C3%A4", "ä"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%2", "%2")]
    {
        assert_eq!(unescaped(text), expected);
    }
}

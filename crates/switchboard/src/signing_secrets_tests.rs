//! The standard's own example, and secrets that are none.

use super::SigningSecrets;

/// Of the test vector in the standard's libraries.
const PUBLISHED: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

fn secret_of(bytes: usize) -> String {
    use base64::Engine as _;
    format!("whsec_{}", super::STANDARD.encode(vec![7_u8; bytes]))
}

fn refusal(text: &str) -> String {
    SigningSecrets::parse(text).unwrap_err().to_string()
}

#[test]
fn the_published_example_is_signed_as_published() {
    let body = br#"{"email":"test@example.com","username":"test_user"}"#;
    let sign = |secrets: &str| {
        let secrets = SigningSecrets::parse(secrets).unwrap();
        secrets.sign("msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", "1649367553", body)
    };
    let published = "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=";
    assert_eq!(sign(PUBLISHED), published);
    // With several secrets each signs for itself, in their order.
    let other = secret_of(64);
    assert_eq!(sign(&format!("{PUBLISHED}\n{other}")), format!("{published} {}", sign(&other)));
    assert_eq!(sign(&format!("{other} {PUBLISHED}")), format!("{} {published}", sign(&other)));
}

#[test]
fn secrets_are_lines_or_lists_with_comments() {
    let (one, two) = (secret_of(24), secret_of(32));
    for text in [
        format!("{one}\n{two}\n"),
        format!("# new\n  {one}  # until May\r\n\r\n{two}"),
        format!("{one},{two}"),
        format!("{one}, {two}"),
    ] {
        assert_eq!(SigningSecrets::parse(&text).unwrap().len(), 2, "{text}");
    }
    assert!(SigningSecrets::parse("# none yet\n").unwrap().is_empty());
}

#[test]
fn what_is_no_secret_is_refused_without_being_quoted() {
    let expected = "expected whsec_ and the base64 of 24 to 64 random bytes, got";
    for (text, refused) in [
        ("hunter2".to_owned(), format!("secret 1: {expected} something that does not begin with whsec_")),
        ("whsk_C2FVsBQIhrscChlQIMV+b5sSYspob7oD".to_owned(), {
            format!("secret 1: {expected} something that does not begin with whsec_")
        }),
        ("whsec_s3cret!".to_owned(), format!("secret 1: {expected} something that is not base64")),
        // Of the other alphabet, which the libraries of receivers do not read.
        ("whsec_C2FVsBQIhrscChlQIMV-b5sSYspob7oD".to_owned(), {
            format!("secret 1: {expected} something that is not base64")
        }),
        ("whsec_".to_owned(), format!("secret 1: {expected} 0 bytes")),
        (secret_of(23), format!("secret 1: {expected} 23 bytes")),
        (format!("{PUBLISHED},{}", secret_of(65)), format!("secret 2: {expected} 65 bytes")),
        (format!("{PUBLISHED}\n{PUBLISHED}"), "secret 2: is there twice".to_owned()),
        ((24..33).map(|bytes| secret_of(bytes) + "\n").collect(), "expected at most 8 secrets, got 9".to_owned()),
    ] {
        assert_eq!(refusal(&text), refused);
    }
}

#[test]
fn secrets_are_not_shown() {
    let secrets = SigningSecrets::parse(PUBLISHED).unwrap();
    assert_eq!(format!("{secrets:?}"), "1 signing secrets");
}

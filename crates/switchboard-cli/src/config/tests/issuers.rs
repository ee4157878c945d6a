//! Several identity providers.

use super::{Environment, load, refusal};

const FILE: &str = r#"
[server]
jwt_issuer = "https://login.example"
jwt_audience = ["agents"]

[[issuer]]
issuer = "https://sso.example/realms/acme"
name = "acme"
audience = ["agents", "agents-of-acme"]
tenants_claim = "groups"

[[issuer]]
issuer = "https://partner.example"
audience = ["agents"]
keys_file = "keys.json"
algorithms = ["EdDSA"]
"#;

#[test]
fn each_table_is_a_provider_beside_that_of_the_settings_of_the_server() {
    let config = load(&["--listen", "0.0.0.0:8080"], &[], FILE).unwrap();
    let names = config.issuers.iter().map(|known| known.settings.as_ref()?.issuer.value.as_deref());
    let expected = [None, Some("https://sso.example/realms/acme"), Some("https://partner.example")];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    assert!(config.open_to_others_at().is_none(), "a server with providers knows its callers");
    crate::serve::check_build(&config, &Environment::of(&[])).unwrap();
    let printed = super::super::print(&config).unwrap();
    let again = load(&[], &[], &printed).unwrap();
    assert_eq!(super::super::print(&again).unwrap(), printed);
    assert_eq!(printed.matches("[[issuer]]").count(), 2, "{printed}");
}

#[test]
fn what_is_wrong_with_a_provider_is_told_with_its_line() {
    let first = "[[issuer]]\nissuer = \"https://a.example\"\naudience = [\"x\"]\n";
    for (file, expected) in [
        ("[[issuer]]\naudience = [\"x\"]".to_owned(), "every issuer has a name that its tokens carry"),
        ("[[issuer]]\nissuer = \"https://a.example\"".to_owned(), "needs an audience, or tokens of the provider"),
        (first.repeat(2), "tokens of another issuer are called \"oidc\" already; set another name for this one"),
        (format!("{first}keys_file = \"missing.json\""), "missing.json cannot be read"),
        (format!("{first}leeway_s = 601"), "expected 0 to 600 seconds"),
        (format!("{first}audiences = []"), "did you mean `audience`?"),
        ("[issuer]\nissuer = \"https://a.example\"".to_owned(), "begin it with the line [[issuer]]"),
        ("[[issuers]]".to_owned(), "did you mean [[issuer]]?"),
    ] {
        let why = refusal(&[], &[], &file);
        assert!(why.contains(expected) && why.contains("switchboard.toml"), "{why}");
    }
}

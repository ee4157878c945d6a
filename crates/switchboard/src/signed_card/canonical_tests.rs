//! The canonical form, and which members are there in which form.

use super::{Cover, Node, forms, number_text};

fn node(json: &str) -> Node {
    Node::read_card(json.as_bytes()).unwrap()
}

/// The forms of a card but for those of 0.3 alone; those that leave members out are marked with `~`.
fn written(json: &str) -> Vec<String> {
    let mark = |cover: Cover| if cover == Cover::V1_0 { "~" } else { "" };
    let texts = forms(&node(json)).into_iter().filter(|form| form.cover != Cover::V0_3);
    texts.map(|form| format!("{}{}", mark(form.cover), String::from_utf8(form.bytes).unwrap())).collect()
}

#[test]
fn numbers_are_written_as_ecmascript_does() {
    // Of RFC 8785, appendix B, and around the places where the notation changes.
    for (bits, expected) in [
        (0x0000_0000_0000_0000_u64, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
    ] {
        assert_eq!(number_text(f64::from_bits(bits)), expected, "{bits:x}");
    }
    for (number, expected) in
        [(1.0, "1"), (-1.5, "-1.5"), (100.0, "100"), (0.1, "0.1"), (1e-7, "1e-7"), (12.25, "12.25")]
    {
        assert_eq!(number_text(number), expected);
    }
}

#[test]
fn names_are_sorted_by_utf_16_and_letters_escaped_only_where_they_must_be() {
    // Of RFC 8785, 3.2.3: by code units, so that a letter beyond the first plane comes before U+FB33.
    let card =
        r#"{"\u20ac":"Euro","\r":"\u000f\b\"\\\/\u007f","\ufb33":"Dalet","1":1.0,"\ud83d\ude00":"Smile","\u0080":[]}"#;
    let whole = &written(card)[1];
    let expected = "{\"\\r\":\"\\u000f\\b\\\"\\\\/\u{7f}\",\"1\":1,\"\u{80}\":[],\"€\":\"Euro\",\"😀\":\"Smile\",\"\u{fb33}\":\"Dalet\"}";
    assert_eq!(whole, expected);
    let ascii = written(card).into_iter().find(|form| form.contains("\\ud83d\\ude00")).unwrap();
    assert!(ascii.is_ascii() && ascii.contains("\\u007f\""), "{ascii}");
}

#[test]
fn presence_follows_the_rules_of_the_specification() {
    let card = r#"{"name":"A","description":"","version":"1","provider":{},"documentationUrl":"","iconUrl":null,
        "supportedInterfaces":[{"url":"https://a","protocolBinding":"JSONRPC","protocolVersion":"1.0","tenant":""}],
        "capabilities":{"streaming":false,"extensions":[{"uri":"u","required":false,"params":{"a":"","b":[]}}]},
        "securitySchemes":{"m":{"mtlsSecurityScheme":{}},"o":{"type":"oauth2","oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t"}}}}},
        "securityRequirements":[],"skills":[{"id":"s","name":"s","description":"s","examples":[]}],"signatures":[{}],"url":"x"}"#;
    let all = written(card);
    let spec = r#"{"capabilities":{"extensions":[{"params":{"a":"","b":[]},"uri":"u"}],"streaming":false},"defaultInputModes":[],"defaultOutputModes":[],"description":"","documentationUrl":"","name":"A","provider":{"organization":"","url":""},"securitySchemes":{"m":{"mtlsSecurityScheme":{}},"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"scopes":{},"tokenUrl":"t"}}},"type":"oauth2"}},"skills":[{"description":"s","id":"s","name":"s","tags":[]}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a"}],"url":"x","version":"1"}"#;
    assert_eq!(all[0], spec);
    assert_eq!(all[2], format!("~{}", spec.replace(r#","type":"oauth2""#, "").replace(r#""url":"x","#, "")));
    // What the SDKs sign: nothing that is empty.
    let sdk = r#"~{"capabilities":{"extensions":[{"uri":"u"}],"streaming":false},"name":"A","securitySchemes":{"o":{"oauth2SecurityScheme":{"flows":{"clientCredentials":{"tokenUrl":"t"}}}}},"skills":[{"description":"s","id":"s","name":"s"}],"supportedInterfaces":[{"protocolBinding":"JSONRPC","protocolVersion":"1.0","url":"https://a"}],"version":"1"}"#;
    assert!(all.contains(&sdk.to_owned()), "{all:#?}");
    assert!(all.iter().all(|form| !form.contains("signatures")));
}

#[test]
fn a_card_with_a_name_twice_or_nested_too_deep_is_refused() {
    for (json, expected) in [
        (r#"{"a":{"b":1,"b":2}}"#.to_owned(), r#""b" stands twice"#),
        (r#"{"signatures":[],"signatures":[]}"#.to_owned(), r#""signatures" stands twice"#),
        (format!(r#"{{"a":{}{}}}"#, "[".repeat(70), "]".repeat(70)), "nested more than 64 deep"),
        (r#"{"a":1e999}"#.to_owned(), "out of range"),
        ("[]".to_owned(), "no object"),
        ("{".to_owned(), "not JSON"),
    ] {
        let error = Node::read_card(json.as_bytes()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

//! Free-form JSON: what is kept, what is refused, and how two objects become one.

use super::{Json, JsonLimits};

fn parse(text: &str) -> Result<Json, String> {
    Json::parse(text, JsonLimits::default()).map_err(|error| error.to_string())
}

#[test]
fn a_value_is_kept_as_it_was_written() {
    for text in ["null", "true", "-0", "1e2", "12345678901234567890.5", "\"\\u00e4\"", "[ 1 ,2]", "{\"b\":1, \"a\":{}}"]
    {
        assert_eq!(parse(&format!(" \r\n{text}\t")).unwrap().as_str(), text);
    }
}

#[test]
fn what_is_not_one_json_value_is_refused() {
    for text in
        ["", " ", "nul", "1 2", "{", "[1,]", "{\"a\"}", "NaN", "01", "\"\n\"", "\"\\ud800\"", "1e999", "\u{a0}1"]
    {
        assert!(parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_repeated_key_is_refused_however_it_is_spelled_and_however_many_there_are() {
    assert!(parse(r#"{"a":1,"a":2}"#).unwrap_err().starts_with("duplicate key `a`"));
    assert!(parse(r#"{"a":1,"\u0061":2}"#).is_err());
    assert!(parse(r#"[{"x":{"a":1,"b":2,"a":3}}]"#).is_err());
    assert!(parse(r#"{"a":{"a":{"a":1}}}"#).is_ok());
    let members = |count: usize| (0..count).map(|i| format!("\"k{i}\":{i}")).collect::<Vec<_>>().join(",");
    for count in [15, 16, 17, 40, 1_000] {
        assert!(parse(&format!("{{{}}}", members(count))).is_ok(), "{count}");
        for repeated in [0, count / 2, count - 1] {
            assert!(parse(&format!("{{{},\"k{repeated}\":0}}", members(count))).is_err(), "{count} {repeated}");
        }
    }
}

#[test]
fn depth_is_bounded() {
    let nested =
        |depth: usize| format!("{}{}", "[{\"a\":".repeat(depth / 2), "}]".repeat(depth / 2)).replace(":}", ":0}");
    assert!(parse(&nested(64)).is_ok());
    assert!(parse(&nested(66)).unwrap_err().starts_with("nested too deep"));
    assert!(Json::parse("[]", JsonLimits { depth_max: 0 }).is_err());
    assert!(Json::parse("1", JsonLimits { depth_max: 0 }).is_ok());
}

#[test]
fn the_newer_of_two_objects_wins_key_by_key() {
    let merged = |old: &str, new: &str| parse(old).unwrap().merged_with(&parse(new).unwrap()).as_str().to_owned();
    assert_eq!(merged(r#"{"a":1,"b":{"x":1}}"#, r#"{"b":{"y":2},"c":[ 3 ]}"#), r#"{"a":1,"b":{"y":2},"c":[ 3 ]}"#);
    assert_eq!(merged("{}", "{}"), "{}");
    assert_eq!(merged("[1]", r#"{"a":1}"#), r#"{"a":1}"#);
}

#[test]
fn members_are_picked_and_left_out_by_name() {
    let only = |text: &str| parse(text).unwrap().only(&["k.a", "k.b"]).map(|json| json.as_str().to_owned());
    let without = |text: &str| parse(text).unwrap().without(&["k.a", "k.b"]).map(|json| json.as_str().to_owned());
    let both = r#"{"x":{"k.a":1},"k.a":[ 1 ],"y":"k.b"}"#;
    assert_eq!(only(both).unwrap(), r#"{"k.a":[ 1 ]}"#);
    assert_eq!(without(both).unwrap(), r#"{"x":{"k.a":1},"y":"k.b"}"#);
    let escaped = r#"{"k\u002eb":2,"z":3}"#;
    assert_eq!((only(escaped).unwrap().as_str(), without(escaped).unwrap().as_str()), (r#"{"k.b":2}"#, r#"{"z":3}"#));
    for none in ["{}", r#"{"x":1}"#, r#"{"x":"k.a"}"#, r#"["k.a"]"#, "7", r#"{"x":"\n"}"#] {
        assert_eq!((only(none), without(none)), (None, None), "{none}");
    }
}

//! The shared writer and readers: what is written is JSON and says the same, what is read is what was meant.

use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use serde::Deserialize;

use super::{
    Int, LIST_ITEMS_KEPT, List, NameOrNumber, Obj, Object, Text, decode_base64, excerpt, merge_objects, parse_object,
    write_array, write_base64, write_i64, write_json, write_str, write_u64,
};
use crate::model::Json;

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("the writer writes UTF-8")
}

fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Option<T> {
    serde_json::from_str(text).ok()
}

#[test]
fn objects_and_arrays_are_separated_by_commas() {
    let text = written(|out| {
        let mut object = Object::open(out);
        object.str("a", "x");
        object.str_if_set("absent", None);
        object.flag("off", false);
        object.flag("on", true);
        object.bool("no", false);
        object.u64("n", 0);
        write_array(object.key("list"), [1u64, 2], write_u64);
        write_array(object.key("none"), [0u64; 0], write_u64);
        write_str(object.named("odd \"name\""), "y");
        object.close();
    });
    assert_eq!(text, r#"{"a":"x","on":true,"no":false,"n":0,"list":[1,2],"none":[],"odd \"name\"":"y"}"#);
}

#[test]
fn every_character_below_space_is_escaped_and_nothing_else_is() {
    let all: String = (0..=0x7f).map(char::from).collect();
    let text = written(|out| write_str(out, &all));
    assert!(text.bytes().all(|b| b >= 0x20));
    assert_eq!(serde_json::from_str::<String>(&text).unwrap(), all);
    assert_eq!(written(|out| write_str(out, "äöü → 🙂 \u{2028}/")), "\"äöü → 🙂 \u{2028}/\"");
    assert_eq!(written(|out| write_str(out, "\0\u{1f}\n\t\"\\")), r#""\u0000\u001f\n\t\"\\""#);
}

#[test]
fn free_form_json_is_written_on_one_line() {
    let json = Json::parse("{\r\n  \"a\\n\": [1,\n 2]\n}", Default::default()).unwrap();
    assert_eq!(written(|out| write_json(out, &json)), r#"{  "a\n": [1, 2]}"#);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_survives_being_written(text: String, pad in 0usize..70) {
        // Padding moves the interesting characters across the borders of the blocks that are scanned at once.
        let text = format!("{}{text}", "x".repeat(pad));
        let json = written(|out| write_str(out, &text));
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn any_number_is_written_as_the_standard_library_would(signed in any::<i64>(), unsigned in any::<u64>()) {
        prop_assert_eq!(written(|out| write_i64(out, signed)), signed.to_string());
        prop_assert_eq!(written(|out| write_u64(out, unsigned)), unsigned.to_string());
    }

    #[test]
    fn any_bytes_survive_base64(bytes: Vec<u8>) {
        let json = written(|out| write_base64(out, &bytes));
        prop_assert_eq!(decode_base64(&serde_json::from_str::<String>(&json).unwrap()), Some(bytes));
    }
}

#[test]
fn extreme_numbers_are_written_whole() {
    assert_eq!(written(|out| write_i64(out, i64::MIN)), i64::MIN.to_string());
    assert_eq!(written(|out| write_u64(out, u64::MAX)), u64::MAX.to_string());
    assert_eq!(written(|out| write_u64(out, 0)), "0");
}

#[test]
fn whole_numbers_are_read_in_every_spelling() {
    let int = |text| read::<Int>(text).map(|int| int.0);
    for (text, number) in [
        ("10", 10),
        ("10.0", 10),
        ("1e1", 10),
        ("\"10\"", 10),
        ("\"10.0\"", 10),
        ("\"-3\"", -3),
        ("-0", 0),
        ("2147483647", i32::MAX),
        ("-2147483648", i32::MIN),
    ] {
        assert_eq!(int(text), Some(number), "{text}");
    }
    for text in [
        "2147483648",
        "-2147483649",
        "10.5",
        "1e99",
        "\"\"",
        "\"ten\"",
        "\"inf\"",
        "\"NaN\"",
        "\"+1\"",
        "\" 1\"",
        "\"0x10\"",
        "true",
        "null",
        "[]",
        "{}",
        "18446744073709551615",
    ] {
        assert_eq!(int(text), None, "{text}");
    }
}

#[test]
fn enums_are_read_by_name_or_number() {
    assert_eq!(read::<NameOrNumber<'_>>("\"A_B\""), Some(NameOrNumber::Name("A_B".into())));
    assert_eq!(read::<NameOrNumber<'_>>(r#""A\u005fB""#), Some(NameOrNumber::Name("A_B".into())));
    assert_eq!(read::<NameOrNumber<'_>>("3"), Some(NameOrNumber::Number(3)));
    assert_eq!(read::<NameOrNumber<'_>>("3.0"), Some(NameOrNumber::Number(3)));
    assert_eq!(read::<NameOrNumber<'_>>("18446744073709551615"), Some(NameOrNumber::Number(i64::MAX)));
    for text in ["3.5", "true", "[]", "{}"] {
        assert_eq!(read::<NameOrNumber<'_>>(text), None, "{text}");
    }
}

#[test]
fn base64_is_read_in_both_alphabets_padded_or_not() {
    for text in ["+/+/", "-_-_"] {
        assert_eq!(decode_base64(text).as_deref(), Some(&[0xfb, 0xff, 0xbf][..]), "{text}");
    }
    for text in ["aGk=", "aGk"] {
        assert_eq!(decode_base64(text).as_deref(), Some(&b"hi"[..]), "{text}");
    }
    assert_eq!(decode_base64("").as_deref(), Some(&b""[..]));
    for text in ["a", "a===", "aGk=x", "aG k", "aGk\n", "+-==", "äöü", "="] {
        assert_eq!(decode_base64(text), None, "{text}");
    }
}

#[derive(Debug, PartialEq, Deserialize)]
struct Outer<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    inner: Option<Obj<Inner>>,
    list: Option<List<Obj<Inner>>>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Inner {
    n: Option<Int>,
}

fn fault(text: &str) -> (bool, String, String) {
    let fault = parse_object::<Outer<'_>>(text).expect_err("the text is wrong");
    (fault.is_syntax, fault.path, fault.description)
}

#[test]
fn a_wrong_field_is_found_by_its_path() {
    for (text, path, description) in [
        (r#"{"inner":{"n":"x"}}"#, "inner.n", "invalid value: string \"x\", expected a whole number of 32 bits"),
        (r#"{"list":[{},{"n":[]}]}"#, "list[1].n", "invalid type: sequence, expected a whole number of 32 bits"),
        (r#"{"list":[1]}"#, "list[0]", "invalid type: integer `1`, expected an object"),
        (r#"{"inner":[1]}"#, "inner", "invalid type: sequence, expected an object"),
        (r#"{"name":5}"#, "name", "invalid type: integer `5`, expected a string"),
        ("[]", "", "invalid type: sequence, expected an object"),
    ] {
        assert_eq!(fault(text), (false, path.to_owned(), description.to_owned()), "{text}");
    }
}

#[test]
fn broken_json_is_told_from_wrong_json() {
    for text in ["", "{", "{\"name\":}", "{} {}", "{\"name\":1,", "{\"name\":1}}", "nul", "{'name':1}"] {
        assert!(fault(text).0, "{text}");
    }
    for text in ["null", "1", "\"x\"", "[]", "{\"name\":1}", "{\"name\":\"a\",\"name\":\"b\"}"] {
        assert!(!fault(text).0, "{text}");
    }
}

#[test]
fn a_fault_repeats_only_a_little_of_what_was_sent() {
    let (_, path, description) = fault(&format!(r#"{{"inner":{{"n":"{}"}}}}"#, "ä".repeat(100_000)));
    assert_eq!(path, "inner.n");
    assert!(description.len() < 300, "{}", description.len());
}

#[test]
fn null_is_absent_and_unknown_members_are_skipped() {
    let read = parse_object::<Outer<'_>>(r#"{"name":null,"inner":null,"list":null,"other":[[[[{}]]]]}"#);
    assert_eq!(read, Ok(Outer { name: None, inner: None, list: None }));
}

#[test]
fn a_long_list_is_counted_and_not_kept() {
    let text = format!(r#"{{"list":[{}{{}}]}}"#, "{},".repeat(LIST_ITEMS_KEPT + 4));
    let list = parse_object::<Outer<'_>>(&text).unwrap().list.unwrap();
    assert_eq!((list.items.len(), list.total), (LIST_ITEMS_KEPT, LIST_ITEMS_KEPT + 5));
}

#[test]
fn an_excerpt_ends_between_characters() {
    assert_eq!(excerpt("abc", 3), "abc");
    assert_eq!(excerpt("abcd", 3), "abc…");
    assert_eq!(excerpt("ää", 3), "ä…");
    assert_eq!(excerpt("🙂", 3), "…");
}

#[test]
fn two_objects_become_one() {
    for (first, second, expected) in [
        ("{}", "{}", "{}"),
        (r#"{"a":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#),
        (r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":1}"#),
        (r#"{"a":{"x":1}}"#, r#"{"a":{"x":3,"y":2}}"#, r#"{"a":{"x":1,"y":2}}"#),
        (r#"{"a":[{"x":1},{}]}"#, r#"{"a":[{"y":2},{"z":3}]}"#, r#"{"a":[{"x":1,"y":2},{"z":3}]}"#),
        (r#"{"a":["x"]}"#, r#"{"a":["y"]}"#, r#"{"a":["x"]}"#),
        (r#"{"a":[1]}"#, r#"{"a":[1,2]}"#, r#"{"a":[1]}"#),
        (r#"{"a":[]}"#, r#"{"a":{"x":1}}"#, r#"{"a":[]}"#),
        (r#"{"a \"b":1}"#, r#"{"a \"b":2,"c":3}"#, r#"{"a \"b":1,"c":3}"#),
        ("1", "{}", "1"),
    ] {
        assert_eq!(written(|out| merge_objects(first, second, out)), expected, "{first} {second}");
    }
}

/// Texts are looked at eight bytes at a time, and the last eight may overlap.
#[test]
fn a_character_that_needs_an_escape_is_found_wherever_it_stands() {
    for length in 1..=40 {
        for at in 0..length {
            for special in ["\"", "\\", "\u{0}", "\u{1f}", "\n"] {
                let text = format!("{}{special}{}", "ä".repeat(at), "\u{7f}~".repeat(length - at - 1));
                let mut out = Vec::new();
                write_str(&mut out, &text);
                assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
            }
        }
    }
}

//! JSON as Python writes it: `json.dumps` with `ensure_ascii=False` for what an agent reads, `repr` for what a refusal
//! quotes. Both work on the text of a value that is known to be JSON.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::json::{Members, excerpt};

/// A value as `json.dumps(value, ensure_ascii=False)` writes it: a space behind each comma and colon, and letters beyond
/// ASCII as themselves. Numbers keep the spelling they came in.
pub(super) fn dumps(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 16);
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        match first {
            '"' => {
                let end = end_of_string(rest);
                write_string(&rest[..end], &mut out);
                rest = &rest[end..];
                continue;
            }
            ',' | ':' => out.extend([first, ' ']),
            ' ' | '\t' | '\n' | '\r' => {}
            other => out.push(other),
        }
        rest = &rest[first.len_utf8()..];
    }
    out
}

/// The length of the string literal that a text begins with, quotes included.
fn end_of_string(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

fn write_string(literal: &str, out: &mut String) {
    // Half of a surrogate pair is no text in Rust; it stays escaped.
    let Ok(text) = serde_json::from_str::<String>(literal) else { return out.push_str(literal) };
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// How many bytes of a quoted value a refusal repeats.
const REPR_BYTES_MAX: usize = 256;

/// A value as `repr` shows it: a text in quotes, `None`, `True`, numbers, lists and dictionaries.
pub(super) fn repr(json: &str) -> String {
    let mut out = String::new();
    write_repr(json, &mut out);
    excerpt(&out, REPR_BYTES_MAX)
}

fn write_repr(json: &str, out: &mut String) {
    if out.len() > REPR_BYTES_MAX {
        return;
    }
    match json.as_bytes().first() {
        Some(b'{') => {
            let Some(Members(members)) = Members::read(json) else { return };
            out.push('{');
            for (i, (name, value)) in members.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                out.push_str(&repr_of_text(name));
                out.push_str(": ");
                write_repr(value.get(), out);
            }
            out.push('}');
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(json) else { return };
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                write_repr(item.get(), out);
            }
            out.push(']');
        }
        _ => match serde_json::from_str::<Value>(json) {
            Ok(Value::String(text)) => out.push_str(&repr_of_text(&text)),
            Ok(Value::Bool(true)) => out.push_str("True"),
            Ok(Value::Bool(false)) => out.push_str("False"),
            Ok(Value::Number(number)) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => out.push_str(&repr_of_float(float)),
                None => out.push_str(&number.to_string()),
            },
            _ => out.push_str("None"),
        },
    }
}

/// Rust and Python agree on the shortest digits of a float, and differ in how an exponent is spelled.
fn repr_of_float(float: f64) -> String {
    let text = format!("{float:?}");
    match text.split_once('e') {
        None => text,
        Some((digits, exponent)) => {
            let digits = digits.strip_suffix(".0").unwrap_or(digits);
            match exponent.strip_prefix('-') {
                Some(exponent) => format!("{digits}e-{exponent:0>2}"),
                None => format!("{digits}e+{exponent:0>2}"),
            }
        }
    }
}

/// A text in the quotes that need the least escaping.
pub(super) fn repr_of_text(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len().min(REPR_BYTES_MAX) + 2);
    out.push(quote);
    for letter in excerpt(text, REPR_BYTES_MAX).chars() {
        match letter {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter == quote => out.extend(['\\', letter]),
            letter if letter.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push(quote);
    out
}

/// The text that `repr` shows, the other way. None if it does not show a text.
pub(super) fn text_of_repr(shown: &str) -> Option<String> {
    let quote = shown.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let inner = shown.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next()? {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'x' => {
                let digits: String = letters.by_ref().take(2).collect();
                text.push(char::from(u8::from_str_radix(&digits, 16).ok()?));
            }
            escaped => text.push(escaped),
        }
    }
    Some(text)
}

//! The bytes that a signature of a card may be over: the card without its signatures, in a canonical form of JSON (RFC 8785).
//!
//! The specification says which members are there (A2A 1.0, 8.4.1), and the SDKs leave out more than it allows, so that one card
//! has several forms. All are written from the JSON as it came: members that this library does not know may have been signed.
//! 0.3 does not say in which form a card is signed; its forms are those of the SDKs that sign and verify cards of 0.3.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::schema::{CARD, CARD_OF_0_3, Field, Kind, Presence};

/// How deep a card may be nested.
const DEPTH_MAX: usize = 64;

/// JSON whose objects have each name once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

/// What a signature says something about.
#[cfg(feature = "client")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cover {
    /// Every member of the card.
    Whole,
    /// The members that a card of 1.0 has, and no others.
    V1_0,
    /// The members that a card of 0.3 has, and no others.
    V0_3,
}

/// One way to write a card for its signature.
#[cfg(feature = "client")]
pub(crate) struct Form {
    pub(crate) bytes: Vec<u8>,
    pub(crate) cover: Cover,
}

/// Every form of a card that a signer may have signed; the one of the specification comes first.
#[cfg(feature = "client")]
pub(crate) fn forms(card: &Node) -> Vec<Form> {
    let (whole, known) = (shaped(card, CARD, true, true), shaped(card, CARD, false, true));
    let (card_bare, whole_bare, known_bare) = (bare(card), bare(&whole), bare(&known));
    let of_0_3 = bare(&without_defaults_of_0_3(card));
    let known_of_0_3 = projected(card, CARD_OF_0_3);
    let known_bare_of_0_3 = bare(&known_of_0_3);
    let known_short_of_0_3 = bare(&without_defaults_of_0_3(&known_of_0_3));
    let all = [
        (&whole, Letters::Utf8, Cover::Whole),
        (card, Letters::Utf8, Cover::Whole),
        (&known, Letters::Utf8, Cover::V1_0),
        // The SDKs leave out everything that is empty, also where the specification requires it.
        (&whole_bare, Letters::Utf8, Cover::Whole),
        (&card_bare, Letters::Utf8, Cover::Whole),
        (&known_bare, Letters::Utf8, Cover::V1_0),
        // Earlier ones for Python escape what is not ASCII, and the one of 0.3 leaves out what has its default.
        (&whole_bare, Letters::Ascii, Cover::Whole),
        (&card_bare, Letters::Ascii, Cover::Whole),
        (&known_bare, Letters::Ascii, Cover::V1_0),
        (&of_0_3, Letters::Ascii, Cover::Whole),
        (&known_short_of_0_3, Letters::Ascii, Cover::V0_3),
        (&known_bare_of_0_3, Letters::Ascii, Cover::V0_3),
        (&known_bare_of_0_3, Letters::Utf8, Cover::V0_3),
        (&known_of_0_3, Letters::Utf8, Cover::V0_3),
    ];
    let mut forms: Vec<Form> = Vec::new();
    for (node, letters, cover) in all {
        let bytes = written(node, letters);
        if !forms.iter().any(|form| form.bytes == bytes) {
            forms.push(Form { bytes, cover });
        }
    }
    forms
}

/// What is signed of a card.
#[cfg(feature = "server")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) bytes: Vec<u8>,
    /// Whether empty members are left out, as SDKs do. Such a signature says nothing about them: a requirement without scopes could
    /// be removed from the card. It is marked, and counts only for readers that know no other form.
    pub(crate) is_non_empty: bool,
}

/// What is signed of a card of 1.0: the form of the specification first, and then those of SDKs that leave out more than it says
/// or escape what is not ASCII, where they differ.
///
/// # Errors
/// When the JSON is no card.
#[cfg(feature = "server")]
pub(crate) fn payloads_of_1_0(json: &[u8]) -> Result<Vec<Payload>, String> {
    let known = shaped(&Node::read_card(json)?, CARD, false, true);
    let bare = bare(&known);
    Ok(distinct([written(&known, Letters::Utf8), written(&bare, Letters::Utf8), written(&bare, Letters::Ascii)]))
}

/// What is signed of a card of 0.3, which does not say in which form: every member in canonical JSON, and the form of the SDK for
/// Python, which verifies cards of 0.3.
///
/// # Errors
/// When the JSON is no card.
#[cfg(feature = "server")]
pub(crate) fn payloads_of_0_3(json: &[u8]) -> Result<Vec<Payload>, String> {
    let known = projected(&Node::read_card(json)?, CARD_OF_0_3);
    let short = bare(&without_defaults_of_0_3(&known));
    Ok(distinct([written(&known, Letters::Utf8), written(&short, Letters::Ascii)]))
}

/// The first has every member; those that are the same as an earlier one are left out.
#[cfg(feature = "server")]
fn distinct<const N: usize>(forms: [Vec<u8>; N]) -> Vec<Payload> {
    let mut payloads: Vec<Payload> = Vec::with_capacity(N);
    for bytes in forms {
        if !payloads.iter().any(|payload| payload.bytes == bytes) {
            payloads.push(Payload { bytes, is_non_empty: !payloads.is_empty() });
        }
    }
    payloads
}

/// All members of a card, as JSON.
#[cfg(feature = "client")]
pub(crate) fn all_members(card: &Node) -> Vec<u8> {
    written(&shaped(card, CARD, true, false), Letters::Utf8)
}

/// The members of a card that signatures with these covers say something about, as JSON.
#[cfg(feature = "client")]
pub(crate) fn covered_members(card: &Node, covers: &[Cover]) -> Vec<u8> {
    let mut members = Node::Object(Vec::new());
    for cover in covers {
        let covered = match cover {
            Cover::Whole => shaped(card, CARD, true, false),
            Cover::V1_0 => shaped(card, CARD, false, false),
            Cover::V0_3 => projected(card, CARD_OF_0_3),
        };
        members = united(members, covered);
    }
    written(&members, Letters::Utf8)
}

/// The members that these fields name, at any depth, as they are.
fn projected(node: &Node, fields: &'static [Field]) -> Node {
    let Node::Object(members) = node else { return node.clone() };
    let kept = members.iter().filter_map(|(name, value)| {
        let (_, kind, _) = fields.iter().find(|(known, ..)| known == name)?;
        Some((name.clone(), each_message(kind, value, &|value, fields| projected(value, fields))))
    });
    Node::Object(kept.collect())
}

/// A value with its messages changed.
fn each_message(kind: &Kind, value: &Node, change: &dyn Fn(&Node, &'static [Field]) -> Node) -> Node {
    match (kind, value) {
        (Kind::Message(fields), value) => change(value, fields),
        (Kind::Messages(fields), Node::List(items)) => {
            Node::List(items.iter().map(|item| change(item, fields)).collect())
        }
        (Kind::Map(fields), Node::Object(members)) => {
            let of = |(name, value): &(String, Node)| (name.clone(), change(value, fields));
            Node::Object(members.iter().map(of).collect())
        }
        _ => value.clone(),
    }
}

/// The members of both, which are parts of one card.
#[cfg(feature = "client")]
fn united(one: Node, other: Node) -> Node {
    match (one, other) {
        (Node::Object(mut members), Node::Object(others)) => {
            for (name, value) in others {
                match members.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, own)) => *own = united(std::mem::replace(own, Node::Null), value),
                    None => members.push((name, value)),
                }
            }
            Node::Object(members)
        }
        (Node::List(items), Node::List(others)) if items.len() == others.len() => {
            Node::List(items.into_iter().zip(others).map(|(one, other)| united(one, other)).collect())
        }
        (one, _) => one,
    }
}

/// A message by the rules of presence: what is required is there, what is explicitly set stays, other defaults go.
fn shaped(node: &Node, fields: &'static [Field], keeps_unknown: bool, adds_required: bool) -> Node {
    let Node::Object(members) = node else { return node.clone() };
    let mut out = Vec::with_capacity(members.len());
    for (name, value) in members {
        let Some((_, kind, presence)) = fields.iter().find(|(known, ..)| known == name) else {
            if keeps_unknown {
                out.push((name.clone(), value.clone()));
            }
            continue;
        };
        // In the JSON of protobuf, null is the same as nothing.
        if *value == Node::Null {
            continue;
        }
        let message = |value: &Node, fields: &'static [Field]| shaped(value, fields, keeps_unknown, adds_required);
        let value = each_message(kind, value, &message);
        if *presence != Presence::Implicit || !is_default(&value) {
            out.push((name.clone(), value));
        }
    }
    for (name, kind, presence) in fields {
        if adds_required && *presence == Presence::Required && !out.iter().any(|(known, _)| known == name) {
            let empty = match kind {
                Kind::Text => Node::Text(String::new()),
                Kind::Bool => Node::Bool(false),
                Kind::Texts | Kind::Messages(_) => Node::List(Vec::new()),
                Kind::Message(fields) => shaped(&Node::Object(Vec::new()), fields, false, true),
                Kind::Map(_) | Kind::Texted | Kind::Free => Node::Object(Vec::new()),
            };
            out.push(((*name).to_owned(), empty));
        }
    }
    Node::Object(out)
}

fn is_default(node: &Node) -> bool {
    match node {
        Node::Null => true,
        Node::Bool(value) => !value,
        Node::Number(number) => *number == 0.0,
        Node::Text(text) => text.is_empty(),
        Node::List(items) => items.is_empty(),
        Node::Object(members) => members.is_empty(),
    }
}

/// Without empty texts, lists and objects, at any depth.
fn bare(node: &Node) -> Node {
    let is_empty = |node: &Node| !matches!(node, Node::Bool(_) | Node::Number(_)) && is_default(node);
    match node {
        Node::List(items) => Node::List(items.iter().map(bare).filter(|item| !is_empty(item)).collect()),
        Node::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), bare(value)));
            Node::Object(members.filter(|(_, value)| !is_empty(value)).collect())
        }
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => node.clone(),
    }
}

/// Without what has its default in the Python SDK of 0.3. The type of a scheme is left out only where its other members tell it.
fn without_defaults_of_0_3(card: &Node) -> Node {
    let Node::Object(members) = card else { return card.clone() };
    let text = |node: &Node, expected: &str| matches!(node, Node::Text(text) if text == expected);
    let kept = members.iter().filter(|(name, value)| match name.as_str() {
        "preferredTransport" => !text(value, "JSONRPC"),
        "protocolVersion" => !text(value, "0.3.0"),
        _ => true,
    });
    let kept = kept.map(|(name, value)| match (name.as_str(), value) {
        ("securitySchemes", Node::Object(schemes)) => {
            let schemes = schemes.iter().map(|(name, scheme)| (name.clone(), without_type(scheme)));
            (name.clone(), Node::Object(schemes.collect()))
        }
        _ => (name.clone(), value.clone()),
    });
    Node::Object(kept.collect())
}

fn without_type(scheme: &Node) -> Node {
    let Node::Object(members) = scheme else { return scheme.clone() };
    let has = |name: &str| members.iter().any(|(known, _)| known == name);
    let told = match () {
        () if has("in") => "apiKey",
        () if has("scheme") => "http",
        () if has("flows") => "oauth2",
        () if has("openIdConnectUrl") => "openIdConnect",
        () => "mutualTLS",
    };
    let is_told = |(name, value): &&(String, Node)| name != "type" || *value != Node::Text(told.to_owned());
    Node::Object(members.iter().filter(is_told).cloned().collect())
}

/// How letters beyond ASCII are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Letters {
    Utf8,
    Ascii,
}

fn written(node: &Node, letters: Letters) -> Vec<u8> {
    let mut out = String::new();
    write(node, letters, &mut out);
    out.into_bytes()
}

fn write(node: &Node, letters: Letters, out: &mut String) {
    match node {
        Node::Null => out.push_str("null"),
        Node::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Node::Number(number) => out.push_str(&number_text(*number)),
        Node::Text(text) => write_text(text, letters, out),
        Node::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, letters, out);
            }
            out.push(']');
        }
        Node::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (at, (name, value)) in members.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, letters, out);
                out.push(':');
                write(value, letters, out);
            }
            out.push('}');
        }
    }
}

fn write_text(text: &str, letters: Letters, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter < ' ' || (letters == Letters::Ascii && letter > '~') => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// A number as ECMAScript writes it (ECMA-262, `Number::toString`), which RFC 8785 asks for.
fn number_text(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // The shortest digits that read back as the same number: `d.ddde±x`.
    let text = format!("{:e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let sign = if number < 0.0 { "-" } else { "" };
    // The decimal point stands before the digit of this index.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    match point {
        _ if count <= point && point <= 21 => format!("{sign}{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, part) = digits.split_at(usize::try_from(point).unwrap_or_default());
            format!("{sign}{whole}.{part}")
        }
        -5..=0 => format!("{sign}0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = digits.split_at(1);
            let rest = if rest.is_empty() { String::new() } else { format!(".{rest}") };
            let exponent = point - 1;
            let plus = if exponent > 0 { "+" } else { "" };
            format!("{sign}{first}{rest}e{plus}{exponent}")
        }
    }
}

impl Node {
    /// Reads a card without its signatures. A name that stands twice in an object is refused, because two readers could take two
    /// different values for it.
    pub(crate) fn read_card(json: &[u8]) -> Result<Self, String> {
        let raw: &RawValue = serde_json::from_slice(json).map_err(|error| format!("the card is not JSON: {error}"))?;
        match Self::read(raw, 0)? {
            Self::Object(mut members) => {
                members.retain(|(name, _)| name != "signatures");
                Ok(Self::Object(members))
            }
            _ => Err("the card is no object".to_owned()),
        }
    }

    fn read(raw: &RawValue, depth: usize) -> Result<Self, String> {
        if depth > DEPTH_MAX {
            return Err(format!("the card is nested more than {DEPTH_MAX} deep"));
        }
        let text = raw.get();
        let unread = |error: serde_json::Error| format!("the card cannot be read: {error}");
        match text.as_bytes().first() {
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text).map_err(unread)?;
                let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
                names.sort_unstable();
                if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                    return Err(format!("{:?} stands twice in one object of the card", twice[0]));
                }
                let read = |(name, raw): (String, &RawValue)| Ok((name, Self::read(raw, depth + 1)?));
                Ok(Self::Object(members.into_iter().map(read).collect::<Result<_, String>>()?))
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(unread)?;
                let items = items.into_iter().map(|raw| Self::read(raw, depth + 1));
                Ok(Self::List(items.collect::<Result<_, _>>()?))
            }
            Some(b'"') => Ok(Self::Text(serde_json::from_str(text).map_err(unread)?)),
            Some(b't') => Ok(Self::Bool(true)),
            Some(b'f') => Ok(Self::Bool(false)),
            Some(b'n') => Ok(Self::Null),
            // The standard library reads a number exactly, which JSON libraries need not.
            _ => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(Self::Number(number)),
                _ => Err("a number of the card is out of range".to_owned()),
            },
        }
    }
}

/// The members of an object in their order.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry().map_err(de::Error::custom)? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Reader).map(Members)
    }
}

#[cfg(test)]
#[cfg(feature = "client")]
#[path = "canonical_tests.rs"]
mod tests;

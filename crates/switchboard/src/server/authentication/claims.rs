//! What a token says, each claim of which is read only when it is asked for.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A text, which is copied only if it is written with escapes.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// All claims of a token, each as it is written: most of those that identity providers add are never asked for.
pub(super) struct Claims<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'a> Claims<'a> {
    /// None if this is no object of JSON.
    pub(super) fn read(json: &'a str) -> Option<Self> {
        serde_json::from_str(json).ok()
    }

    /// A claim by its name. One that cannot be read is null, so that it is not taken for one that is not there.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.written(name).map(|json| serde_json::from_str(json).unwrap_or(Value::Null))
    }

    /// A claim by its name, or by the way to it: `realm_access.roles`.
    pub(super) fn at(&self, name: &str) -> Option<Value> {
        if let Some(claim) = self.get(name) {
            return Some(claim);
        }
        let (first, steps) = name.split_once('.')?;
        let first = self.get(first)?;
        steps.split('.').try_fold(&first, |value, step| value.get(step)).cloned()
    }

    /// Whether a claim is this text.
    pub(super) fn is_text(&self, name: &str, text: &str) -> bool {
        self.written(name).is_some_and(|json| serde_json::from_str::<Text<'_>>(json).is_ok_and(|found| &*found == text))
    }

    /// Of a name that is there twice the last one counts.
    fn written(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rfind(|(known, _)| &**known == name).map(|(_, json)| json.get())
    }
}

impl<'de> Deserialize<'de> for Claims<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Claims<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of claims")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut claims = Vec::with_capacity(16);
                while let Some(claim) = map.next_entry()? {
                    claims.push(claim);
                }
                Ok(Claims(claims))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Claims;

    #[test]
    fn a_claim_is_read_when_it_is_asked_for() {
        let json = r#"{"iss":"https:\/\/a","s\u0075b":"al\"ice","exp":17e8,"realm_access":{"roles":["a","b"]},"a.b":1,"a":{"b":2}}"#;
        let claims = Claims::read(json).unwrap();
        assert!(claims.is_text("iss", "https://a") && claims.is_text("sub", "al\"ice"));
        assert!(
            !claims.is_text("iss", "https:\\/\\/a") && !claims.is_text("exp", "17e8") && !claims.is_text("aud", "")
        );
        assert_eq!(
            (claims.get("sub"), claims.get("exp"), claims.get("aud")),
            (Some(json!("al\"ice")), Some(json!(17e8)), None)
        );
        assert_eq!(claims.at("realm_access.roles"), Some(json!(["a", "b"])));
        assert_eq!(claims.at("a.b"), Some(json!(1)), "a claim that has the whole name comes first");
        for missing in ["realm_access.groups", "realm_access.roles.0", "exp.a", "b", "b.a", ""] {
            assert_eq!(claims.at(missing), None, "{missing}");
        }
    }

    #[test]
    fn the_last_of_two_claims_with_one_name_counts() {
        let claims = Claims::read(r#"{"sub":"a","exp":1,"sub":"b"}"#).unwrap();
        assert!(claims.is_text("sub", "b") && !claims.is_text("sub", "a"));
        assert_eq!(claims.get("sub"), Some(json!("b")));
    }

    #[test]
    fn a_claim_that_cannot_be_read_is_not_missing() {
        let deep = format!("{{\"nbf\":{}{},\"iat\":\"\\ud800\"}}", "[".repeat(200), "]".repeat(200));
        let claims = Claims::read(&deep).unwrap();
        assert_eq!((claims.get("nbf"), claims.get("iat")), (Some(Value::Null), Some(Value::Null)));
    }

    #[test]
    fn what_is_no_object_has_no_claims() {
        for json in
            ["", "[]", "1", "null", "\"a\"", "{", "{}x", r#"{"a":}"#, r#"{"a":1,}"#, r#"{1:2}"#, "{\"a\":\"\n\"}"]
        {
            assert!(Claims::read(json).is_none(), "{json}");
        }
    }
}

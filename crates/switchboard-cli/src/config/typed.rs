//! From the values of the layers to Rust types. The macro `settings!` turns rows into a struct with one field for each;
//! a field holds the value and where it came from.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::ValueEnum;
use switchboard::{Dialect, ProtocolBinding};

use super::choices::{
    Audit, Card, CardChangesName, CompatRpc, CredentialKind, Dispatch, Effects, ErrorDetails, Idempotency, KindName,
    LogFormat, Recovery, RelayDialect, ResendName, Synchronous,
};
use super::layer::Layer;
use super::listen;
use super::origin::{Errors, Given, Origin};
use super::row::{Row, Value};

/// A type that a setting may have.
pub(crate) trait SettingValue: Sized {
    /// # Errors
    /// When the value does not fit the type; the error says what was expected.
    fn from_value(value: Value) -> Result<Self, String>;

    /// The value for the file; none for a setting that is unset or must not be shown.
    fn to_value(&self) -> Option<Value>;

    /// What an unset setting is, for types that can say so.
    fn unset() -> Option<Self> {
        None
    }
}

/// Declares the struct `$name` and the rows `$rows` of one table of the file.
macro_rules! settings {
    ($(#[$meta:meta])* $name:ident, $rows:ident: $table:expr; $($key:ident: $type:ty = $row:expr;)*) => {
        pub(crate) static $rows: &[Row] = &[$($row.at($table, stringify!($key)),)*];

        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $key: Given<$type>,)*
        }

        impl $name {
            /// Takes the settings of this table out of the layer. A bad value is reported, and replaced by the default
            /// so that the rest can still be judged. None is a row without a default whose type cannot be unset.
            pub(crate) fn read(layer: &mut Layer, errors: &mut Errors) -> Option<Self> {
                let mut rows = $rows.iter();
                $(let $key = rows.next().and_then(|row| typed::take::<$type>(row, layer, errors));)*
                Some(Self { $($key: $key?,)* })
            }

            /// Every setting of this table with its value, in the order of the rows.
            pub(crate) fn values(&self) -> Vec<(&'static Row, Option<Value>)> {
                let values = [$(self.$key.value.to_value(),)*];
                $rows.iter().zip(values).collect()
            }
        }
    };
}
pub(super) use settings;

/// The checked value of one setting, or its default.
pub(super) fn take<T: SettingValue>(row: &Row, layer: &mut Layer, errors: &mut Errors) -> Option<Given<T>> {
    if let Some(given) = layer.take(row.id()) {
        match given.try_map(|value| row.kind.check(value).and_then(T::from_value)) {
            Ok(given) => return Some(given),
            Err(error) => errors.add_about(row.id(), error),
        }
    }
    let default = match row.default_value() {
        Some(value) => T::from_value(value).ok(),
        None => T::unset(),
    };
    default.map(|value| Given::new(value, Origin::Default))
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A command as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommandLine {
    /// One text, for a shell or to be split into words.
    Line(String),
    Words(Vec<String>),
}

/// The message for a row whose kind and type contradict each other; the test of the table finds such a row first.
fn wrong_type(value: &Value) -> String {
    format!("{value:?} does not fit the type of this setting")
}

impl<T: SettingValue> SettingValue for Option<T> {
    fn from_value(value: Value) -> Result<Self, String> {
        T::from_value(value).map(Some)
    }

    fn to_value(&self) -> Option<Value> {
        self.as_ref().and_then(T::to_value)
    }

    fn unset() -> Option<Self> {
        Some(None)
    }
}

impl SettingValue for bool {
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Bool(value) = value { Ok(value) } else { Err(wrong_type(&value)) }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Bool(*self))
    }
}

impl SettingValue for String {
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Text(text) = value { Ok(text) } else { Err(wrong_type(&value)) }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.clone()))
    }
}

impl SettingValue for PathBuf {
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Path(path) = value { Ok(path) } else { Err(wrong_type(&value)) }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Path(self.clone()))
    }
}

impl SettingValue for Vec<String> {
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::List(items) = value { Ok(items) } else { Err(wrong_type(&value)) }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::List(self.clone()))
    }
}

impl SettingValue for Vec<ProtocolBinding> {
    fn from_value(value: Value) -> Result<Self, String> {
        let Value::List(items) = value else { return Err(wrong_type(&value)) };
        items.iter().map(|item| item.parse()).collect()
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::List(self.iter().map(ToString::to_string).collect()))
    }
}

impl SettingValue for Secret {
    fn from_value(value: Value) -> Result<Self, String> {
        // A value of the wrong type is not quoted, because it may be the secret.
        if let Value::Text(text) = value { Ok(Self(text)) } else { Err("expected a text".to_owned()) }
    }

    fn to_value(&self) -> Option<Value> {
        None
    }
}

impl SettingValue for CommandLine {
    fn from_value(value: Value) -> Result<Self, String> {
        match value {
            Value::Text(line) => Ok(Self::Line(line)),
            Value::List(words) => Ok(Self::Words(words)),
            _ => Err(wrong_type(&value)),
        }
    }

    fn to_value(&self) -> Option<Value> {
        Some(match self {
            Self::Line(line) => Value::Text(line.clone()),
            Self::Words(words) => Value::List(words.clone()),
        })
    }
}

impl SettingValue for SocketAddr {
    fn from_value(value: Value) -> Result<Self, String> {
        if let Value::Text(text) = value { listen::parse(&text) } else { Err(wrong_type(&value)) }
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.to_string()))
    }
}

impl SettingValue for Dialect {
    fn from_value(value: Value) -> Result<Self, String> {
        let Value::Text(text) = value else { return Err(wrong_type(&value)) };
        Self::of_version(&text).ok_or_else(|| format!("expected 1.0 or 0.3, got {text:?}"))
    }

    fn to_value(&self) -> Option<Value> {
        Some(Value::Text(self.version().to_owned()))
    }
}

macro_rules! numbers {
    ($($type:ty)*) => { $(
        impl SettingValue for $type {
            fn from_value(value: Value) -> Result<Self, String> {
                let Value::Number(number) = value else { return Err(wrong_type(&value)) };
                Self::try_from(number).map_err(|_| format!("expected at most {}, got {number}", Self::MAX))
            }

            fn to_value(&self) -> Option<Value> {
                u64::try_from(*self).ok().map(Value::Number)
            }
        }
    )* };
}
numbers!(u32 u64 usize);

macro_rules! choices {
    ($($type:ty)*) => { $(
        impl SettingValue for $type {
            fn from_value(value: Value) -> Result<Self, String> {
                let Value::Text(text) = value else { return Err(wrong_type(&value)) };
                Self::from_str(&text, true)
            }

            fn to_value(&self) -> Option<Value> {
                Some(Value::Text(self.to_possible_value()?.get_name().to_owned()))
            }
        }
    )* };
}
choices!(Audit Card CardChangesName CompatRpc CredentialKind Dispatch Effects ErrorDetails Idempotency KindName);
choices!(LogFormat Recovery RelayDialect ResendName Synchronous);

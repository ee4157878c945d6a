//! What the program knows about one setting: its key, the values it may have, its default, the flag and the variable
//! that set it, and the words that explain it. [`super::table`] holds one row for each setting; flags, the readers of the
//! environment and of the file, `--print-config`, `switchboard.example.toml` and `docs/configuration.md` all come from
//! those rows.

use std::path::PathBuf;

use clap::ValueEnum;
use toml::de::DeValue;

use super::values;

pub(super) const DAY_S: u64 = 86_400;

/// A table of `switchboard.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Table {
    Server,
    Tls,
    Issuer,
    Agent,
    Compat,
    Relay,
    Skill,
}

impl Table {
    /// The header of the table in the file.
    pub(crate) fn header(self) -> &'static str {
        match self {
            Self::Server => "[server]",
            Self::Tls => "[tls]",
            Self::Issuer => "[[issuer]]",
            Self::Agent => "[[agent]]",
            Self::Compat => "[agent.compat]",
            Self::Relay => "[agent.relay]",
            Self::Skill => "[[agent.skill]]",
        }
    }
}

/// A setting as the rest of this module names it.
pub(crate) type SettingId = (Table, &'static str);

/// A value of the right type, before it is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bool(bool),
    Number(u64),
    Text(String),
    /// Kept apart from text, since a path from a flag need not be UTF-8.
    Path(PathBuf),
    List(Vec<String>),
}

/// Judges a text and brings it into its usual form. The error says what was expected and what came.
pub(crate) type Check = fn(String) -> Result<String, String>;

/// Which values a setting may have.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text(Check),
    /// Names a `"file"` or a `"folder"`.
    Path(&'static str),
    Bool,
    /// A whole number; both bounds are allowed.
    Number {
        min: u64,
        max: u64,
        unit: &'static str,
    },
    /// Texts, each judged alone. Flags are repeated; variables separate the items by commas.
    List(Check),
    /// One of a few words.
    Choice(fn() -> Vec<String>),
    /// A command line, or in the file also the list of its words.
    Command,
    /// A text, or in the file also a list of texts, that no output may ever show.
    Secret,
}

/// Any text.
pub(super) const ANY: Kind = Kind::Text(Ok);
/// A text that people read in a card.
pub(super) const WORDS: Kind = Kind::Text(values::words);

pub(super) const fn seconds(min: u64, max: u64) -> Kind {
    Kind::Number { min, max, unit: "seconds" }
}

pub(super) const fn bytes(min: u64, max: u64) -> Kind {
    Kind::Number { min, max, unit: "bytes" }
}

pub(super) fn number(number: impl TryInto<u64>) -> Value {
    Value::Number(number.try_into().unwrap_or(u64::MAX))
}

/// What holds when no layer says anything about a setting.
#[derive(Clone, Copy)]
pub(crate) enum Default {
    /// The setting stays unset; these words say what happens then.
    Words(&'static str),
    /// The setting stays unset, and the part that it is for then behaves as with this value.
    UnsetLike(fn() -> Value),
    /// This value, written as in a variable.
    Text(&'static str),
    /// A value that a library decides.
    Of(fn() -> Value),
}

/// Everything about one setting but its type, which [`super::table`] adds.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) table: Table,
    pub(crate) key: &'static str,
    pub(crate) kind: Kind,
    pub(crate) default: Default,
    /// With its two hyphens, as in `--listen`.
    pub(crate) flag: Option<&'static str>,
    pub(crate) variable: Option<&'static str>,
    /// What `--help` calls the value of the flag.
    pub(crate) placeholder: &'static str,
    /// The group of settings it belongs to, in `--help` and in the documentation.
    pub(crate) heading: &'static str,
    /// One sentence without a full stop, for `--help`, the example file and the documentation.
    pub(crate) help: &'static str,
    /// Further sentences, for the example file and the documentation.
    pub(crate) more: &'static str,
    /// A value in TOML form for the example file, where the default is not telling.
    pub(crate) example: &'static str,
    /// Whether `--help` leaves the flag out.
    pub(crate) is_hidden: bool,
    /// Whether the setting may stand in the file.
    pub(crate) is_in_file: bool,
    /// Of an agent: whether flag and variable change every agent, and not the default one alone.
    pub(crate) is_for_every_agent: bool,
    /// A layer that sets this other key hides what lower layers say about this one.
    pub(crate) hidden_by: Option<&'static str>,
}

impl Row {
    pub(crate) const fn new(kind: Kind, heading: &'static str, help: &'static str) -> Self {
        Self {
            // The macro `settings!` fills in both.
            table: Table::Server,
            key: "",
            kind,
            default: Default::Words(""),
            flag: None,
            variable: None,
            placeholder: "",
            heading,
            help,
            more: "",
            example: "",
            is_hidden: false,
            is_in_file: true,
            is_for_every_agent: false,
            hidden_by: None,
        }
    }

    pub(crate) const fn at(mut self, table: Table, key: &'static str) -> Self {
        self.table = table;
        self.key = key;
        self
    }

    /// A value written as in a variable.
    pub(crate) const fn default(mut self, text: &'static str) -> Self {
        self.default = Default::Text(text);
        self
    }

    /// A value that a library decides.
    pub(crate) const fn default_of(mut self, value: fn() -> Value) -> Self {
        self.default = Default::Of(value);
        self
    }

    /// The setting stays unset; the words say what happens then.
    pub(crate) const fn unset(mut self, words: &'static str) -> Self {
        self.default = Default::Words(words);
        self
    }

    /// The setting stays unset, which has the effect of this value.
    pub(crate) const fn unset_like(mut self, value: fn() -> Value) -> Self {
        self.default = Default::UnsetLike(value);
        self
    }

    pub(crate) const fn flag(mut self, flag: &'static str, placeholder: &'static str) -> Self {
        self.flag = Some(flag);
        self.placeholder = placeholder;
        self
    }

    pub(crate) const fn variable(mut self, variable: &'static str) -> Self {
        self.variable = Some(variable);
        self
    }

    pub(crate) const fn more(mut self, more: &'static str) -> Self {
        self.more = more;
        self
    }

    pub(crate) const fn example(mut self, toml: &'static str) -> Self {
        self.example = toml;
        self
    }

    pub(crate) const fn hidden(mut self) -> Self {
        self.is_hidden = true;
        self
    }

    pub(crate) const fn not_in_file(mut self) -> Self {
        self.is_in_file = false;
        self
    }

    pub(crate) const fn for_every_agent(mut self) -> Self {
        self.is_for_every_agent = true;
        self
    }

    pub(crate) const fn hidden_by(mut self, key: &'static str) -> Self {
        self.hidden_by = Some(key);
        self
    }

    pub(crate) fn id(&self) -> SettingId {
        (self.table, self.key)
    }

    /// The value that holds when no layer says anything, unless the setting then stays unset.
    pub(crate) fn default_value(&self) -> Option<Value> {
        match self.default {
            Default::Words(_) | Default::UnsetLike(_) => None,
            Default::Text(text) => self.kind.parse(text.to_owned()).ok(),
            Default::Of(value) => Some(value()),
        }
    }

    /// The default in words; empty when there is nothing to say.
    pub(crate) fn default_words(&self) -> String {
        match self.default {
            Default::Words(words) => words.to_owned(),
            Default::UnsetLike(value) => value().shown(),
            Default::Text(_) | Default::Of(_) => self.default_value().map_or(String::new(), |value| value.shown()),
        }
    }
}

impl Kind {
    /// Reads what a flag, a variable or a default says.
    pub(crate) fn parse(self, text: String) -> Result<Value, String> {
        match self {
            Self::Text(_) | Self::Choice(_) | Self::Command | Self::Secret => Ok(Value::Text(text)),
            Self::Path(_) => Ok(Value::Path(PathBuf::from(text))),
            Self::Bool => values::boolean(&text).map(Value::Bool),
            Self::Number { .. } => values::number(&text).map(Value::Number),
            Self::List(_) => Ok(Value::List(values::list(&text))),
        }
    }

    /// Reads what the file says.
    pub(crate) fn parse_toml(self, value: &DeValue<'_>) -> Result<Value, String> {
        let unexpected = |got: &DeValue<'_>| match self {
            Self::Secret => format!("expected {}", self.expected()),
            _ => format!("expected {}, got {}", self.expected(), described(got)),
        };
        let strings = |items: &[toml::Spanned<DeValue<'_>>]| {
            let texts = items.iter().map(|item| item.get_ref());
            texts
                .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| unexpected(item)))
                .collect::<Result<Vec<_>, _>>()
        };
        match (self, value) {
            (Self::Text(_) | Self::Choice(_) | Self::Command | Self::Secret, DeValue::String(text)) => {
                Ok(Value::Text(text.to_string()))
            }
            (Self::Path(_), DeValue::String(text)) => Ok(Value::Path(PathBuf::from(text.as_ref()))),
            (Self::Bool, DeValue::Boolean(value)) => Ok(Value::Bool(*value)),
            (Self::Number { min, max, unit }, DeValue::Integer(number)) => {
                let read = u64::from_str_radix(number.as_str(), number.radix());
                read.map(Value::Number).map_err(|_| format!("expected {min} to {max} {unit}, got {number}"))
            }
            (Self::List(_) | Self::Command, DeValue::Array(items)) => strings(items).map(Value::List),
            (Self::Secret, DeValue::Array(items)) => strings(items).map(|texts| Value::Text(texts.join("\n"))),
            _ => Err(unexpected(value)),
        }
    }

    /// Judges a value of the right type.
    pub(crate) fn check(self, value: Value) -> Result<Value, String> {
        match (self, value) {
            (Self::Text(check), Value::Text(text)) => check(text).map(Value::Text),
            (Self::List(check), Value::List(items)) => {
                items.into_iter().map(check).collect::<Result<_, _>>().map(Value::List)
            }
            (Self::Number { min, max, unit }, Value::Number(number)) => {
                values::within(number, min, max, unit).map(Value::Number)
            }
            (Self::Path(what), Value::Path(path)) if path.as_os_str().is_empty() => {
                Err(format!("expected the name of a {what}, got none"))
            }
            (Self::Choice(words), Value::Text(text)) => {
                let words = words();
                match words.iter().find(|word| word.eq_ignore_ascii_case(&text)) {
                    Some(word) => Ok(Value::Text(word.clone())),
                    None => Err(format!("expected {}, got {text:?}", words.join(" or "))),
                }
            }
            (_, value) => Ok(value),
        }
    }

    /// What a value must be, for the message about one that is something else.
    fn expected(self) -> &'static str {
        match self {
            Self::Text(_) | Self::Path(_) | Self::Choice(_) => "a string",
            Self::Bool => "true or false",
            Self::Number { .. } => "a whole number",
            Self::List(_) => "a list of strings",
            Self::Command | Self::Secret => "a string, or a list of strings",
        }
    }
}

impl Value {
    /// The value as TOML writes it. A path that is not UTF-8 has no such form.
    pub(crate) fn toml(&self) -> Option<String> {
        Some(match self {
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => toml::Value::from(text.as_str()).to_string(),
            Self::Path(path) => toml::Value::from(path.to_str()?).to_string(),
            Self::List(items) => toml::Value::from(items.clone()).to_string(),
        })
    }

    /// The value as help texts show it.
    fn shown(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
            Self::Path(path) => path.display().to_string(),
            Self::List(items) => items.join(", "),
        }
    }
}

/// The words of a setting whose type is an enumeration.
pub(crate) fn words<T: ValueEnum>() -> Vec<String> {
    let variants = T::value_variants().iter();
    variants.filter_map(|variant| Some(variant.to_possible_value()?.get_name().to_owned())).collect()
}

fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("{text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

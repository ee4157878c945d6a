//! The flags of `serve` that are settings, made from the rows. Clap only splits the command line; the values are judged
//! together with those of the other layers, so that every layer is refused in the same words.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use super::headings::HEADINGS;
use super::layer::Layer;
use super::origin::{Errors, Given, Origin};
use super::row::{Kind, Row, Table, Value};
use super::table;

/// The flags that were given, with their values as they were typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SettingFlags {
    given: Vec<(&'static str, Vec<OsString>)>,
}

impl SettingFlags {
    /// The flags of a command that only takes a data folder.
    pub(crate) fn data(folder: Option<&Path>) -> Self {
        Self { given: folder.map(|folder| ("--data", vec![folder.into()])).into_iter().collect() }
    }

    /// The flags of a command about PostgreSQL.
    pub(crate) fn store(url: Option<&str>, schema: Option<&str>) -> Self {
        let given = [("--store", url), ("--store-schema", schema)];
        Self { given: given.into_iter().filter_map(|(flag, value)| Some((flag, vec![value?.into()]))).collect() }
    }

    /// The flags of a server that keeps nothing.
    pub(crate) fn in_memory(listen: &str) -> Self {
        let bindings = [
            "JSONRPC",
            "HTTP+JSON",
            #[cfg(feature = "grpc")]
            "GRPC",
        ];
        Self {
            given: vec![
                ("--memory", vec!["true".into()]),
                ("--listen", vec![listen.into()]),
                ("--interface", bindings.into_iter().map(Into::into).collect()),
            ],
        }
    }

    pub(super) fn layer(&self, errors: &mut Errors) -> Layer {
        let mut layer = Layer::default();
        for row in table::all() {
            let Some(flag) = row.flag else { continue };
            let Some((_, typed)) = self.given.iter().find(|(given, _)| *given == flag) else { continue };
            match read(row.kind, typed) {
                Ok(value) => layer.set(row.id(), Given::new(value, Origin::Flag(flag))),
                Err(why) => errors.add_about(row.id(), Origin::Flag(flag).error(why)),
            }
        }
        let memory = layer.take((Table::Server, "memory"));
        let is_memory = memory.as_ref().is_some_and(|given| given.value == Value::Bool(true));
        if is_memory && layer.has((Table::Server, "data")) {
            errors.add(Origin::Flag("--data").error("cannot be used with --memory"));
        }
        if layer.has((Table::Server, "store")) && layer.has((Table::Server, "data")) {
            errors.add(Origin::Flag("--data").error("cannot be used with --store"));
        }
        if let Some(memory) = memory {
            layer.set((Table::Server, "memory"), memory);
        }
        layer
    }
}

fn read(kind: Kind, typed: &[OsString]) -> Result<Value, String> {
    if let (Kind::Path(_), [path]) = (kind, typed) {
        return Ok(Value::Path(path.into()));
    }
    let texts = typed.iter().map(|text| text.to_str().map(str::to_owned).ok_or("is not text".to_owned()));
    let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
    match kind {
        Kind::List(_) => Ok(Value::List(texts)),
        _ => kind.parse(texts.into_iter().next().unwrap_or_default()),
    }
}

impl Args for SettingFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        rows().into_iter().fold(command, |command, (row, flag)| command.arg(arg(row, flag)))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = rows().into_iter().filter_map(|(_, flag)| {
            let values = matches.get_many::<OsString>(flag)?;
            Some((flag, values.cloned().collect()))
        });
        Ok(Self { given: given.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The rows that have a flag, in the order of the help.
fn rows() -> Vec<(&'static Row, &'static str)> {
    let mut rows: Vec<_> = table::all().filter_map(|row| Some((row, row.flag?))).collect();
    rows.sort_by_key(|(row, _)| HEADINGS.iter().position(|heading| *heading == row.heading));
    rows
}

fn arg(row: &'static Row, flag: &'static str) -> Arg {
    let long = flag.trim_start_matches('-');
    let mut help = row.help.to_owned();
    if matches!(row.kind, Kind::List(_)) {
        help.push_str("; may be repeated");
    }
    if row.is_for_every_agent {
        help.push_str(", of every agent");
    }
    let default = row.default_words();
    if !default.is_empty() && !matches!(row.kind, Kind::Bool) {
        help.push_str(&format!(" [default: {default}]"));
    }
    let arg = Arg::new(flag)
        .long(long)
        .value_name(row.placeholder)
        .value_parser(clap::value_parser!(OsString))
        .help(help)
        .help_heading(if row.table == Table::Agent { "Default agent" } else { row.heading })
        .hide(row.is_hidden);
    match row.kind {
        Kind::Bool => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Kind::List(_) => arg.action(ArgAction::Append),
        _ => arg,
    }
}

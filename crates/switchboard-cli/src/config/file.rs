//! Reads `switchboard.toml`. Keys that no row knows are refused, since a misspelled setting would silently not hold.
//! Every value remembers its line and its key.

use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::layer::Layer;
use super::origin::{ConfigError, Errors, Given, Origin};
use super::row::{Row, Table};
use super::table;
use switchboard_core::nearest::nearest;

/// What may stand below an agent beside its own settings.
const TABLES_OF_AGENT: [&str; 3] = ["compat", "relay", "skill"];

/// One `[[agent]]` of the file, with its `[agent.compat]` and `[agent.relay]`.
#[derive(Debug)]
pub(crate) struct AgentTable {
    pub(super) values: Layer,
    pub(super) skills: Vec<RepeatedTable>,
    /// Where the table begins.
    pub(super) from: Origin,
}

/// One `[[agent.skill]]` or `[[issuer]]` of the file.
#[derive(Debug)]
pub(crate) struct RepeatedTable {
    pub(super) values: Layer,
    /// Where the table begins.
    pub(super) from: Origin,
}

/// The text of a file, and what is needed to say where something is in it.
pub(super) struct Source {
    path: Arc<Path>,
    text: String,
}

impl Source {
    pub(super) fn new(path: &Path, text: String) -> Self {
        Self { path: Arc::from(path), text }
    }

    /// A place in the text, by its offset in bytes. Lines count from 1.
    fn at(&self, offset: usize, key: impl Into<String>) -> Origin {
        let before = self.text.as_bytes().iter().take(offset);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { path: self.path.clone(), line, key: key.into() }
    }
}

/// What the file says.
#[derive(Default)]
pub(super) struct FileTables {
    pub(super) settings: Layer,
    pub(super) issuers: Vec<RepeatedTable>,
    pub(super) agents: Vec<AgentTable>,
}

/// The settings of the server, of each identity provider, and of each agent.
///
/// # Errors
/// When the text is not TOML. Other mistakes go to `errors`.
pub(super) fn read_file(source: &Source, errors: &mut Errors) -> Result<FileTables, ConfigError> {
    let document = DeTable::parse(&source.text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        source.at(offset, "").error(error.message().replace('\n', "; "))
    })?;
    let mut reader = Reader { source, errors };
    let mut file = FileTables::default();
    for (name, value) in document.get_ref() {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("server", DeValue::Table(entries)) => reader.table(Table::Server, "server", entries, &mut file.settings),
            ("tls", DeValue::Table(entries)) => reader.table(Table::Tls, "tls", entries, &mut file.settings),
            ("agent", DeValue::Array(tables)) => file.agents = reader.agents(tables),
            ("issuer", DeValue::Array(tables)) => file.issuers = reader.repeated(Table::Issuer, "issuer", tables),
            (name @ ("server" | "tls"), _) => reader.misplaced(value, name, "a table", &format!("[{name}]")),
            (name @ ("agent" | "issuer"), _) => {
                reader.misplaced(value, name, "a list of tables", &format!("[[{name}]]"));
            }
            (unknown, _) => reader.unknown_table(name, unknown),
        }
    }
    Ok(file)
}

struct Reader<'a> {
    source: &'a Source,
    errors: &'a mut Errors,
}

impl Reader<'_> {
    fn table(&mut self, table: Table, place: &str, entries: &DeTable<'_>, layer: &mut Layer) {
        for (name, value) in entries {
            // Tables of an agent are read by themselves.
            if table == Table::Agent && TABLES_OF_AGENT.contains(&name.get_ref().as_ref()) {
                continue;
            }
            match table::rows_of(table).iter().find(|row| row.key == name.get_ref()) {
                Some(row) if row.is_in_file => self.value(row, place, value, layer),
                Some(row) => {
                    let why = match (row.hidden_by, row.variable) {
                        (Some(other), Some(variable)) => {
                            format!("this cannot stand in the file; use {other}, or the variable {variable}")
                        }
                        _ => "this cannot stand in the file".to_owned(),
                    };
                    let from = self.source.at(name.span().start, format!("{place}.{}", row.key));
                    self.errors.add_about(row.id(), from.error(why));
                }
                None => self.unknown_key(table, place, name),
            }
        }
    }

    fn value(&mut self, row: &Row, place: &str, value: &Spanned<DeValue<'_>>, layer: &mut Layer) {
        let from = self.source.at(value.span().start, format!("{place}.{}", row.key));
        match row.kind.parse_toml(value.get_ref()) {
            Ok(read) => layer.set(row.id(), Given::new(read, from)),
            Err(why) => self.errors.add_about(row.id(), from.error(why)),
        }
    }

    fn agents(&mut self, tables: &DeArray<'_>) -> Vec<AgentTable> {
        let mut agents = Vec::new();
        for (index, value) in tables.iter().enumerate() {
            let place = format!("agent[{index}]");
            let DeValue::Table(entries) = value.get_ref() else {
                self.misplaced(value, &place, "a table", "[[agent]]");
                continue;
            };
            let mut agent = AgentTable {
                values: Layer::default(),
                skills: Vec::new(),
                from: self.source.at(value.span().start, place.clone()),
            };
            self.table(Table::Agent, &place, entries, &mut agent.values);
            for (name, table) in [("compat", Table::Compat), ("relay", Table::Relay)] {
                match entries.get(name).map(|value| (value, value.get_ref())) {
                    None => {}
                    Some((_, DeValue::Table(entries))) => {
                        self.table(table, &format!("{place}.{name}"), entries, &mut agent.values);
                    }
                    Some((value, _)) => self.misplaced(value, &format!("{place}.{name}"), "a table", table.header()),
                }
            }
            match entries.get("skill").map(|value| (value, value.get_ref())) {
                None => {}
                Some((_, DeValue::Array(skills))) => {
                    agent.skills = self.repeated(Table::Skill, &format!("{place}.skill"), skills);
                }
                Some((value, _)) => {
                    self.misplaced(value, &format!("{place}.skill"), "a list of tables", "[[agent.skill]]");
                }
            }
            agents.push(agent);
        }
        agents
    }

    /// Tables that may stand there any number of times, and hold nothing but settings.
    fn repeated(&mut self, table: Table, name: &str, tables: &DeArray<'_>) -> Vec<RepeatedTable> {
        let mut found = Vec::new();
        for (index, value) in tables.iter().enumerate() {
            let place = format!("{name}[{index}]");
            let DeValue::Table(entries) = value.get_ref() else {
                self.misplaced(value, &place, "a table", table.header());
                continue;
            };
            let from = self.source.at(value.span().start, place.clone());
            let mut read = RepeatedTable { values: Layer::default(), from };
            self.table(table, &place, entries, &mut read.values);
            found.push(read);
        }
        found
    }

    fn misplaced(&mut self, value: &Spanned<DeValue<'_>>, key: &str, expected: &str, header: &str) {
        let from = self.source.at(value.span().start, key);
        self.errors.add(from.error(format_args!("expected {expected}; begin it with the line {header}")));
    }

    fn unknown_key(&mut self, table: Table, place: &str, name: &Spanned<std::borrow::Cow<'_, str>>) {
        let key = name.get_ref().as_ref();
        let from = self.source.at(name.span().start, format!("{place}.{key}"));
        let keys = table::rows_of(table)
            .iter()
            .map(|row| row.key)
            .chain(TABLES_OF_AGENT.into_iter().filter(|_| table == Table::Agent));
        let elsewhere = table::all().find(|row| row.key == key);
        let meant = nearest(key, keys);
        let hint = match (elsewhere, meant) {
            (Some(row), _) => format!("; it belongs to {}", row.table.header()),
            (None, Some(meant)) => format!("; did you mean `{meant}`?"),
            (None, None) => "; docs/configuration.md lists all settings".to_owned(),
        };
        let error = from.error(format_args!("there is no such setting in {}{hint}", table.header()));
        let row = elsewhere.or_else(|| table::rows_of(table).iter().find(|row| Some(row.key) == meant));
        match row {
            Some(row) => self.errors.add_about(row.id(), error),
            None => self.errors.add(error),
        }
    }

    fn unknown_table(&mut self, name: &Spanned<std::borrow::Cow<'_, str>>, unknown: &str) {
        let from = self.source.at(name.span().start, unknown);
        let setting = table::all().find(|row| row.key == unknown);
        let hint = match (setting, nearest(unknown, ["server", "tls", "issuer", "agent"])) {
            (Some(row), _) => format!("it belongs to {}; put it below that line", row.table.header()),
            (None, Some(meant @ ("agent" | "issuer"))) => format!("there is no such table; did you mean [[{meant}]]?"),
            (None, Some(meant)) => format!("there is no such table; did you mean [{meant}]?"),
            (None, None) => "there is no such table; expected [server], [tls], [[issuer]] or [[agent]]".to_owned(),
        };
        self.errors.add(from.error(hint));
    }
}

//! The pages that list every setting come from the table: `switchboard.example.toml`, and the reference in
//! `docs/configuration.md`. `UPDATE_EXPECT=1 cargo test -p switchboard-cli reference` writes them again.

use expect_test::expect_file;

use super::load;
use crate::config::AgentSettings;
use crate::config::headings::HEADINGS;
use crate::config::layer::Layer;
use crate::config::origin::Errors;
use crate::config::row::{Default, Kind, Row, Table};
use crate::config::table::{self, ServerSettings, TlsSettings};

const BEGIN: &str = "<!-- Every setting, from crates/switchboard-cli/src/config/table.rs. Do not edit: \
                     UPDATE_EXPECT=1 cargo test -p switchboard-cli reference -->\n";
const END: &str = "<!-- The end of every setting. -->\n";

const EXAMPLE_WIDTH: usize = 118;

#[test]
fn the_example_file_shows_every_setting() {
    let example = example();
    assert_eq!(load(&[], &[], &example).unwrap().agents.len(), 3);
    // With everything that is only a suggestion, too, apart from settings that exclude each other or need a file.
    let suggested = example.lines().map(|line| match line.strip_prefix("# ") {
        Some("[[issuer]]") => "[[issuer]]",
        Some(rest) if is_assignment(rest) && !EXCLUSIVE.iter().any(|key| rest.starts_with(key)) => rest,
        _ => line,
    });
    let suggested: Vec<&str> = suggested.collect();
    load(&["--allow-unauthenticated"], &[], &suggested.join("\n")).unwrap();
    expect_file!["../../../switchboard.example.toml"].assert_eq(&example);
}

const EXCLUSIVE: [&str; 16] = [
    "tokens_file",
    "rules_file",
    "api_key_env",
    "webhook_signing",
    "recovery_reason",
    "secrets_key_file",
    "url",
    "credential_",
    "oauth_",
    "dispatch_to",
    "authorities",
    "card_keys",
    "store = ",
    "hints = ",
    "hints_credentials_file",
    "otlp_headers_file",
];

fn is_assignment(line: &str) -> bool {
    line.split_once(" = ").is_some_and(|(key, _)| table::all().any(|row| row.key == key))
}

#[test]
fn the_documentation_lists_every_setting() {
    let page = include_str!("../../../../../docs/configuration.md");
    let (before, rest) = page.split_once(BEGIN).expect("the page has the line where the reference begins");
    let (_, after) = rest.split_once(END).expect("the page has the line where the reference ends");
    let page = format!("{before}{BEGIN}{}{END}{after}", reference());
    expect_file!["../../../../../docs/configuration.md"].assert_eq(&page);
}

#[test]
fn the_rows_fit_their_types_and_name_nothing_twice() {
    let mut errors = Errors::default();
    let mut layer = Layer::default();
    assert!(
        ServerSettings::read(&mut layer, &mut errors).is_some(),
        "each row of [server] has a default or is optional"
    );
    assert!(
        TlsSettings::read(&mut layer, &mut errors).is_some() && AgentSettings::read(&mut layer, &mut errors).is_some()
    );
    for row in table::all() {
        let setting = format!("{:?}", row.id());
        let same = |other: &&Row| other.table == row.table && other.key == row.key;
        assert_eq!(table::all().filter(same).count(), 1, "{setting}");
        if let Some(value) = row.default_value() {
            assert!(row.kind.check(value).is_ok(), "{setting} refuses its own default");
        }
        assert!(!row.help.is_empty() && !row.help.ends_with('.'), "{setting}");
        assert!(row.flag.is_none() || row.variable.is_some(), "{setting} has a flag and no variable");
        for (flag, variable) in row.flag.into_iter().zip(row.variable) {
            assert!(HEADINGS.contains(&row.heading), "{setting} has no place in the help");
            let expected = format!("SWITCHBOARD_{}", flag.trim_start_matches('-').replace('-', "_").to_uppercase());
            // The names that OpenTelemetry has for its settings are the same for all programs.
            let is_usual = variable == expected || variable == format!("{expected}_FILE");
            assert!(is_usual || variable.starts_with("OTEL_"), "{setting}: {variable}");
            assert_eq!(table::all().filter(|other| other.flag == row.flag).count(), 1, "{setting}");
            assert_eq!(table::all().filter(|other| other.variable == row.variable).count(), 1, "{setting}");
        }
        if let Some(other) = row.hidden_by {
            assert!(table::all().any(|known| known.id() == (row.table, other)), "{setting}");
        }
    }
}

/// The reference for people who look a setting up.
fn reference() -> String {
    let mut text = String::new();
    for table in [Table::Server, Table::Tls, Table::Issuer, Table::Agent, Table::Compat, Table::Relay, Table::Skill] {
        text.push_str(&format!("\n### `{}`\n", table.header()));
        for group in groups(table) {
            let heading = group.first().map_or("", |row| row.heading);
            text.push_str(&format!("\n{heading}:\n\n| key | flag, variable | default | meaning |\n"));
            text.push_str("| --- | --- | --- | --- |\n");
            for row in group {
                let ways = [row.flag, row.variable].into_iter().flatten().map(|way| format!("`{way}`"));
                let ways: Vec<String> = ways.collect();
                let key = if row.is_in_file { format!("`{}`", row.key) } else { "not in the file".to_owned() };
                text.push_str(&format!(
                    "| {key} | {} | {} | {} |\n",
                    ways.join("<br>"),
                    default_of(row),
                    sentences(row).replace('|', "\\|")
                ));
            }
        }
    }
    text.push('\n');
    text
}

/// The rows of a table, those of a heading together.
fn groups(table: Table) -> Vec<Vec<&'static Row>> {
    let mut groups: Vec<Vec<&'static Row>> = Vec::new();
    for row in table::rows_of(table) {
        match groups.last_mut() {
            Some(group) if group[0].heading == row.heading => group.push(row),
            _ => groups.push(vec![row]),
        }
    }
    groups
}

fn default_of(row: &Row) -> String {
    match row.default {
        Default::Words(words) => words.to_owned(),
        Default::Text("") => "none".to_owned(),
        Default::UnsetLike(_) | Default::Text(_) | Default::Of(_) => format!("`{}`", row.default_words()),
    }
}

/// What the setting does, and which values it takes.
fn sentences(row: &Row) -> String {
    let mut text = format!("{}.", row.help);
    for more in [row.more, &values_of(row)] {
        if !more.is_empty() {
            text.push(' ');
            text.push_str(more);
        }
    }
    text
}

fn values_of(row: &Row) -> String {
    match row.kind {
        Kind::Number { min, max, unit } => format!("From {min} to {max} {unit}."),
        Kind::Choice(words) => {
            let words: Vec<String> = words().iter().map(|word| format!("\"{word}\"")).collect();
            format!("One of {}.", words.join(", "))
        }
        Kind::Text(_) | Kind::Path(_) | Kind::Bool | Kind::Command | Kind::Secret => String::new(),
        Kind::List(_) => "A list.".to_owned(),
    }
}

/// A file with every setting. Those without a default are comments.
fn example() -> String {
    let mut text = "\
# Every setting of `switchboard serve`. Each has a default: write down only what should differ. Flags and variables of
# the environment come before this file; `switchboard serve --print-config` prints what is in effect, and
# `switchboard serve --check-config` says what is wrong. Paths are relative to the folder the server is started in.
"
    .to_owned();
    for table in [Table::Server, Table::Tls, Table::Issuer] {
        example_table(&mut text, table);
    }
    text.push_str("\n# The first agent is the default one: it is served at the root of the URL, too.\n");
    text.push_str("[[agent]]\nname = \"Demo\"\nkind = \"demo\"\n");
    for table in [Table::Agent, Table::Compat, Table::Skill] {
        example_table(&mut text, table);
    }
    text.push_str("\n# An agent elsewhere (docs/relay.md).\n[[agent]]\nname = \"Weather\"\nkind = \"relay\"\nurl = \"https://weather.example\"\n");
    example_table(&mut text, Table::Relay);
    text
}

fn example_table(text: &mut String, table: Table) {
    // A provider that does not exist would keep the server from knowing its callers.
    let is_possible = table == Table::Issuer;
    text.push_str(&format!("\n{}{}\n", if is_possible { "# " } else { "" }, table.header()));
    for (index, group) in groups(table).into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        for row in group.into_iter().filter(|row| row.is_in_file) {
            let default = match row.default {
                Default::Words("") | Default::Text(_) | Default::Of(_) => String::new(),
                Default::Words(_) | Default::UnsetLike(_) => format!(" Default: {}.", row.default_words()),
            };
            for line in wrapped(&format!("{}{default}", sentences(row))) {
                text.push_str(&format!("# {line}\n"));
            }
            let value = match row.default_value().filter(|_| row.example.is_empty()) {
                Some(value) => value.toml().expect("defaults are text"),
                None => row.example.to_owned(),
            };
            assert!(!value.is_empty(), "{:?} needs an example", row.id());
            // What describes the agent of the example is set; what is merely possible is a comment.
            let is_set = row.default_value().is_some() || row.heading == "Agent" || row.table == Table::Skill;
            let mark = if is_set && !is_possible { "" } else { "# " };
            text.push_str(&format!("{mark}{} = {value}\n", row.key));
        }
    }
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > EXAMPLE_WIDTH {
            lines.push(word.to_owned());
            continue;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines
}

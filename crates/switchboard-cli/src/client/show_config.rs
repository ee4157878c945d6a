//! `switchboard config show`: the settings of the client commands in effect, and where each came from. Nothing is changed.

use clap::{Args, Subcommand};

use super::error::ClientError;
use super::options::CommonArgs;
use super::render::Lines;
use super::session::Session;
use super::settings::{KEYS, Key};

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum ConfigCommand {
    /// Show the settings of the client commands, and where each came from
    Show(ShowArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// # Errors
/// When the output is closed.
pub(crate) fn run(session: &Session) -> Result<(), ClientError> {
    let settings = &session.settings;
    let set = KEYS.iter().filter_map(|key| Some((key, settings.shown(key)?, settings.value(key.name)?)));
    if session.printer.is_json() {
        let shown: Vec<_> = set
            .map(|(key, shown, value)| {
                let source = value.source.to_string();
                serde_json::json!({ "setting": key.name, "value": shown, "source": source })
            })
            .collect();
        return session.printer.json(serde_json::json!({ "settings": shown }).to_string());
    }
    let mut lines = Lines::default();
    for (key, shown, value) in set {
        lines.field(&label(key), format!("{shown} ({})", value.source));
    }
    session.printer.text(lines.into_text())
}

/// The name of a setting in the form of our labels, as in `Agent-Card`.
fn label(key: &Key) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    key.name.split('-').map(capital).collect::<Vec<_>>().join("-")
}

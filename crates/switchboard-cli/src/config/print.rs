//! The configuration in effect, as a file that would give the same one. Secrets are left out: tokens, signing secrets and the
//! private key are named by their file, and those from elsewhere only counted.

use super::agent_table::AgentSettings;
use super::origin::ConfigError;
use super::row::{Row, Value};
use super::{AgentConfig, Config, Kind, Storage};

const OF_POSTGRES: &[&str] = &[
    "store_schema",
    "store_migrate",
    "store_readers",
    "store_statement_timeout_s",
    "replica",
    "hints_subject",
    "hints_credentials_file",
];

/// # Errors
/// When a path is not text, which TOML cannot hold.
pub(crate) fn print(config: &Config) -> Result<String, ConfigError> {
    let mut text = "# The configuration in effect.\n".to_owned();
    if let Some(known) = config.tokens.as_ref().filter(|known| known.file.is_none()) {
        text.push_str(&format!("# Left out: {} tokens from SWITCHBOARD_TOKENS.\n", known.tokens.len()));
    }
    if config.shared_secret.is_some() && config.server.a2a_secret.is_given() {
        text.push_str("# Left out: the secret from A2A_SECRET.\n");
    }
    if let Some(known) = config.webhook_signing_secrets.as_ref().filter(|known| known.file.is_none()) {
        text.push_str(&format!("# Left out: {} signing secrets from {}.\n", known.secrets.len(), known.from));
    }
    if config.server.store.is_some() {
        text.push_str(&format!("# Left out: the address of PostgreSQL from {}.\n", config.server.store.from));
    }
    if config.server.hints.is_some() {
        text.push_str(&format!("# Left out: the address of NATS from {}.\n", config.server.hints.from));
    }
    if config.server.otlp_headers.is_given() {
        text.push_str(&format!(
            "# Left out: the headers for the collector from {}.\n",
            config.server.otlp_headers.from
        ));
    }
    // Settings of another store have no effect.
    let mut unused = match config.storage {
        Storage::Memory => [&["data", "synchronous"][..], OF_POSTGRES].concat(),
        Storage::Sqlite { .. } => OF_POSTGRES.to_vec(),
        Storage::Postgres { .. } => vec!["data", "memory", "synchronous"],
    };
    // Nor have those of a collector if there is none.
    if config.otlp.is_none() {
        unused.extend(["otlp_service_name", "otlp_sample_ratio", "otlp_interval_s"]);
    }
    write(&mut text, "[server]", config.server.values(), &unused)?;
    if config.tls.is_some() {
        write(&mut text, "\n[tls]", config.tls_settings.values(), &[])?;
    }
    for settings in config.issuers.iter().filter_map(|known| known.settings.as_ref()) {
        write(&mut text, "\n[[issuer]]", settings.values(), &[])?;
    }
    for agent in &config.agents {
        print_agent(&mut text, agent)?;
    }
    Ok(text)
}

fn print_agent(text: &mut String, agent: &AgentConfig) -> Result<(), ConfigError> {
    // The file may not say these about an agent that runs no command.
    let mut unused: Vec<&str> = match agent.kind {
        Kind::Demo | Kind::Relay(_) | Kind::Dispatch => {
            let of_commands = ["command", "shell", "env", "calls", "processes_max", "user", "new_privileges"];
            of_commands.into_iter().chain(["memory_bytes_max", "cpu_s_max"]).collect()
        }
        Kind::Exec { .. } => Vec::new(),
    };
    if let Kind::Relay(_) = agent.kind {
        // What is not said is what the card of the upstream says.
        let AgentSettings { name, description, input_modes, output_modes, .. } = &agent.settings;
        unused.extend((!name.is_given()).then_some("name"));
        unused.extend((!description.is_given()).then_some("description"));
        unused.extend((!input_modes.is_given()).then_some("input_modes"));
        unused.extend((!output_modes.is_given()).then_some("output_modes"));
    }
    write(text, "\n[[agent]]", agent.settings.values(), &unused)?;
    if let Kind::Relay(relay) = &agent.kind {
        write(text, "\n[agent.relay]", relay.settings.values(), &[])?;
    }
    write(text, "\n[agent.compat]", agent.compat.values(), &[])?;
    for skill in &agent.skills {
        // Every skill has all the lists; an empty one says nothing.
        let said = skill.values().into_iter().filter(|(_, value)| *value != Some(Value::List(Vec::new())));
        write(text, "\n[[agent.skill]]", said.collect(), &[])?;
    }
    Ok(())
}

/// Writes a table. Settings that are unset, and those in `unused`, are left out.
fn write(
    text: &mut String,
    header: &str,
    values: Vec<(&'static Row, Option<Value>)>,
    unused: &[&str],
) -> Result<(), ConfigError> {
    text.push_str(header);
    text.push('\n');
    for (row, value) in values {
        if let Some(value) = value.filter(|_| row.is_in_file && !unused.contains(&row.key)) {
            let toml = value.toml();
            let toml =
                toml.ok_or_else(|| ConfigError::new(format!("{} cannot be printed: it is not text", row.key)))?;
            text.push_str(&format!("{} = {toml}\n", row.key));
        }
    }
    Ok(())
}

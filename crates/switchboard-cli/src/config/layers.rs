//! Reads the layers and lays them on each other: a setting of a higher one replaces that of a lower one.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use switchboard_core::nearest::nearest;

use super::environment::Environment;
use super::file::{AgentTable, FileTables, RepeatedTable, Source, read_file};
use super::flags::SettingFlags;
use super::layer::Layer;
use super::origin::{ConfigError, Errors, Given, Origin};
use super::row::{SettingId, Table, Value};
use super::{FILE_NAME, listen, table};

impl Layer {
    /// Lays this layer on top of another one.
    pub(super) fn over(mut self, below: Self) -> Self {
        let above: Vec<SettingId> = self.values.keys().copied().collect();
        for row in table::all() {
            let hidden = row.hidden_by.is_some_and(|key| above.contains(&(row.table, key)));
            if !hidden
                && !self.has(row.id())
                && let Some(given) = below.values.get(&row.id())
            {
                self.set(row.id(), given.clone());
            }
        }
        self
    }

    /// The part of the layer about every agent.
    pub(super) fn for_every_agent(&self) -> Self {
        let rows = table::rows_of(Table::Agent).iter().filter(|row| row.is_for_every_agent);
        let values = rows.filter_map(|row| Some((row.id(), self.values.get(&row.id())?.clone())));
        Self { values: values.collect() }
    }
}

/// All layers. What flags and environment say about agents is kept apart from what the file says about each.
pub(crate) struct Layers {
    pub(super) settings: Layer,
    /// Without one, the file names no agent.
    pub(super) agents: Vec<AgentTable>,
    pub(super) issuers: Vec<RepeatedTable>,
    /// Mistakes found while reading.
    pub(super) errors: Errors,
    /// The file could not be read or is no TOML, so nothing is known about what it says.
    pub(super) is_file_unknown: bool,
}

/// Lays the flags on the environment, and both on the file: the one named, or the one in `folder` if there is one.
pub(crate) fn read_layers(
    flags: &SettingFlags,
    config: Option<&Path>,
    environment: &Environment,
    folder: &Path,
) -> Layers {
    let mut errors = Errors::default();
    let flags = flags.layer(&mut errors);
    let variables = of_environment(environment, &mut errors);
    let source = find_file(config, environment, folder);
    let file = source.and_then(|source| source.map(|source| read_file(&source, &mut errors)).transpose());
    let is_file_unknown = file.is_err();
    let FileTables { settings, issuers, agents } = errors.keep(file).flatten().unwrap_or_default();
    Layers { settings: flags.over(variables).over(settings), agents, issuers, errors, is_file_unknown }
}

/// The same for a server that reads no file.
pub(crate) fn layers_without_file(flags: &SettingFlags, environment: &Environment) -> Layers {
    let mut errors = Errors::default();
    let flags = flags.layer(&mut errors);
    let variables = of_environment(environment, &mut errors);
    Layers { settings: flags.over(variables), agents: Vec::new(), issuers: Vec::new(), errors, is_file_unknown: false }
}

/// The text of the configuration file, if there is one.
fn find_file(config: Option<&Path>, environment: &Environment, folder: &Path) -> Result<Option<Source>, ConfigError> {
    let named = match config {
        Some(path) => Some(Given::new(path.to_owned(), Origin::Flag("--config"))),
        None => {
            let path = environment.get("SWITCHBOARD_CONFIG")?;
            path.map(|path| Given::new(PathBuf::from(path), Origin::Variable("SWITCHBOARD_CONFIG")))
        }
    };
    match named {
        Some(Given { value: path, from }) => match std::fs::read_to_string(folder.join(&path)) {
            Ok(text) => Ok(Some(Source::new(&path, text))),
            Err(error) => Err(from.error(format_args!("{} cannot be read: {error}", path.display()))),
        },
        None => match std::fs::read_to_string(folder.join(FILE_NAME)) {
            Ok(text) => Ok(Some(Source::new(Path::new(FILE_NAME), text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ConfigError::new(format!("{FILE_NAME} cannot be read: {error}"))),
        },
    }
}

fn of_environment(environment: &Environment, errors: &mut Errors) -> Layer {
    let mut layer = Layer::default();
    for row in table::all() {
        let Some(name) = row.variable else { continue };
        let from = Origin::Variable(name);
        let value = environment
            .get(name)
            .and_then(|text| text.map(|text| row.kind.parse(text).map_err(|why| from.error(why))).transpose());
        match value {
            Ok(Some(value)) => layer.set(row.id(), Given::new(value, from)),
            Ok(None) => {}
            Err(error) => errors.add_about(row.id(), error),
        }
    }
    let listen = (Table::Server, "listen");
    if !layer.has(listen) {
        match host_and_port(environment) {
            Ok(Some(given)) => layer.set(listen, given),
            Ok(None) => {}
            Err(error) => errors.add_about(listen, error),
        }
    }
    report_unknown(environment, errors);
    layer
}

/// The two variables that container platforms set. Either alone leaves the other at its default.
fn host_and_port(environment: &Environment) -> Result<Option<Given<Value>>, ConfigError> {
    let variable = |name: &'static str| -> Result<Option<Given<String>>, ConfigError> {
        Ok(environment.get(name)?.map(|text| Given::new(text, Origin::Variable(name))))
    };
    let (host, port) = (variable("BIND_HOST")?, variable("PORT")?);
    let Some(from) = host.as_ref().or(port.as_ref()).map(|given| given.from.clone()) else { return Ok(None) };
    let ip = host.map(|host| host.try_map(|text| listen::parse_host(&text))).transpose()?;
    let port = port.map(|port| port.try_map(|text| listen::parse_port(&text))).transpose()?;
    let ip = ip.map_or(listen::DEFAULT.ip(), |ip| ip.value);
    let port = port.map_or(listen::DEFAULT.port(), |port| port.value);
    Ok(Some(Given::new(Value::Text(SocketAddr::new(ip, port).to_string()), from)))
}

const PREFIX: &str = "SWITCHBOARD_";

/// Variables of this program that are no settings: of other commands, and of its own tests.
const OTHER_VARIABLES: &[&str] = &["SWITCHBOARD_CONFIG", "SWITCHBOARD_TOKEN"];
const OTHER_PREFIXES: &[&str] =
    &["SWITCHBOARD_CHAOS_", "SWITCHBOARD_SIM_", "SWITCHBOARD_TEST_", "SWITCHBOARD_HOSTILE_"];

/// Refuses variables that look like settings and are none, since a misspelled setting would silently not hold.
fn report_unknown(environment: &Environment, errors: &mut Errors) {
    let settings = || table::all().filter_map(|row| Some((row.variable?, row.id())));
    for (name, value) in environment.with_prefix(PREFIX) {
        let is_known = settings().any(|(variable, _)| variable == name)
            || OTHER_VARIABLES.contains(&name)
            || OTHER_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_known || value.is_empty() || is_service_link(name, value) {
            continue;
        }
        let known = settings().map(|(variable, _)| variable).chain(OTHER_VARIABLES.iter().copied());
        let meant = nearest(name, known);
        let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
        let error = ConfigError::new(format!("{name}: there is no such variable{hint}"));
        match settings().find(|(variable, _)| Some(*variable) == meant) {
            Some((_, setting)) => errors.add_about(setting, error),
            None => errors.add(error),
        }
    }
}

/// Whether Kubernetes set the variable: a service called `switchboard` puts SWITCHBOARD_PORT, SWITCHBOARD_SERVICE_HOST and
/// more of the kind into every container beside it.
fn is_service_link(name: &str, value: &str) -> bool {
    let is_address = ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme));
    let is_port = name.split_once("_PORT_").is_some_and(|(_, rest)| {
        let number = rest.split('_').next().unwrap_or_default();
        let protocol = rest.split('_').nth(1).unwrap_or_default();
        number.parse::<u16>().is_ok() && ["TCP", "UDP", "SCTP"].contains(&protocol)
    });
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && is_address)
        || is_port
}

//! From what was said to what holds: fills in defaults, checks each value, and checks them against each other. After
//! this nothing about the configuration can be wrong but the world: a port that is taken, a disk that is full.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard::{Dialect, Limits};

use super::agents::settle_agents;
use super::layer::{Layers, RetentionLayer};
use super::secrets::{signing_secrets, tokens};
use super::{
    Card, Config, ConfigError, Environment, Given, Layer, Lifetimes, LogFormat, Origin, Retention, Storage, listen,
    tls, values,
};

const DATA_DEFAULT: &str = "./switchboard-data";
const GRACE_S_DEFAULT: u64 = 10;
const GRACE_S_MAX: u64 = 3_600;
const ATTEMPTS_MAX: u32 = 1_000;
const COALESCE_MAX: u32 = 1_000_000;
const LEASE_S_MAX: u64 = 3_600;
/// A year.
const TASK_TIMEOUT_S_MAX: u64 = 365 * 86_400;
/// Ten years.
const RETENTION_S_MAX: u32 = 3_650 * 86_400;
const RETENTION_TASKS_MAX: u64 = 1_000_000_000;
const BODY_BYTES_MIN: u64 = 1 << 10;
const BODY_BYTES_MAX: u64 = 1 << 30;
/// What an agent writes at once must fit a reply, so it cannot be very little.
const REPLY_BYTES_MIN: u64 = 1 << 20;
const REPLY_BYTES_MAX: u64 = 1 << 30;

/// # Errors
/// When something is wrong; the error says what and where.
pub(crate) fn settle(layers: Layers, environment: &Environment, folder: &Path) -> Result<Config, ConfigError> {
    let Layers { mut settings, agents } = layers;
    let search = environment.raw("PATH").unwrap_or_else(|| OsString::from("/usr/local/bin:/usr/bin:/bin"));
    let agents = settle_agents(&mut settings, agents, &search)?;
    let storage = settings.storage()?;
    let retention = settings.retention()?;
    let Layer { listen, public_url, log_format, allow_unauthenticated, tenants, outbound_allow, cors_origins, .. } =
        settings;
    let listen = listen.map(|given| given.try_map(|text| listen::parse(&text))).transpose()?;
    let listen = listen.unwrap_or(Given::new(listen::DEFAULT, Origin::Default));
    let tokens = tokens(settings.tokens, settings.tokens_file, folder)?;
    let allow_unauthenticated = allow_unauthenticated.is_some_and(|given| given.value);
    if !listen::is_local(listen.value) && tokens.is_none() && !allow_unauthenticated {
        return Err(listen.from.error(format_args!(
            "{} can be reached from other machines, and whoever reaches it could use every agent and read every task; \
             either give out tokens (--tokens FILE, or SWITCHBOARD_TOKENS) or say --allow-unauthenticated",
            listen.value
        )));
    }
    let body_bytes_max = match settings.body_bytes_max {
        Some(given) => given.try_map(|bytes| values::within(bytes, BODY_BYTES_MIN, BODY_BYTES_MAX, "bytes"))?.value,
        None => switchboard::ServerLimits::default().body_bytes_max as u64,
    };
    let reply_bytes_max = match settings.reply_bytes_max {
        Some(given) => given.try_map(|bytes| values::within(bytes, REPLY_BYTES_MIN, REPLY_BYTES_MAX, "bytes"))?.value,
        None => Limits::default().reply_bytes_max,
    };
    let limits = Limits::default();
    let webhook_attempts_max =
        small(settings.webhook_attempts_max, 1, ATTEMPTS_MAX, "attempts", limits.delivery_failures_max)?;
    let webhook_coalesce_after =
        small(settings.webhook_coalesce_after, 0, COALESCE_MAX, "updates", limits.delivery_coalesce_after)?;
    let webhook_signing_secrets =
        signing_secrets(settings.webhook_signing_secret, settings.webhook_signing_secret_file, folder)?;
    let grace_s = match settings.grace_s {
        Some(given) => given.try_map(|seconds| values::within(seconds, 0, GRACE_S_MAX, "seconds"))?.value,
        None => GRACE_S_DEFAULT,
    };
    let lifetimes = lifetimes(settings.lease_s, settings.queued_timeout_s, settings.processing_timeout_s)?;
    Ok(Config {
        listen: listen.value,
        public_url: public_url.map(|given| given.try_map(values::public_url)).transpose()?.map(|given| given.value),
        tls: tls::tls(settings.tls_cert, settings.tls_key, folder)?,
        storage,
        log_format: log_format.map_or(LogFormat::default(), |given| given.value),
        tenants: anonymous_tenants(tenants, tokens.is_some())?,
        tokens,
        allow_unauthenticated,
        outbound_allow: outbound_allow.unwrap_or(Given::new(Vec::new(), Origin::Default)),
        cors_origins: each(cors_origins, values::origin)?,
        webhook_attempts_max,
        webhook_coalesce_after,
        webhook_signing_secrets,
        body_bytes_max: usize::try_from(body_bytes_max).unwrap_or(usize::MAX),
        reply_bytes_max,
        default_version: settings.default_version.map(default_version).transpose()?,
        card: settings.card.map_or(Card::default(), |given| given.value),
        grace: Duration::from_secs(grace_s),
        lifetimes,
        retention,
        agents,
    })
}

impl Layer {
    /// Where tasks are kept. All that `db` commands need to know.
    ///
    /// # Errors
    /// When the folder has no name.
    pub(crate) fn storage(&self) -> Result<Storage, ConfigError> {
        if self.memory.as_ref().is_some_and(|given| given.value) {
            return Ok(Storage::Memory);
        }
        let folder = match &self.data {
            Some(given) if given.value.as_os_str().is_empty() => {
                return Err(given.from.error("expected the name of a folder, got none"));
            }
            Some(given) => given.value.clone(),
            None => PathBuf::from(DATA_DEFAULT),
        };
        let synchronous = self.synchronous.as_ref().map(|given| given.value).unwrap_or_default();
        Ok(Storage::Sqlite { folder, synchronous })
    }

    /// What is kept of tasks that have ended.
    ///
    /// # Errors
    /// When a number is out of bounds.
    pub(crate) fn retention(&self) -> Result<Retention, ConfigError> {
        let RetentionLayer { resume_window_s, events_s, tasks_s, tasks_max } =
            self.retention.clone().unwrap_or_default();
        let limits = Limits::default();
        let seconds = |given, low, default| small(given, low, RETENTION_S_MAX, "seconds", default);
        let tasks_max = match tasks_max {
            Some(given) => given.try_map(|number| values::within(number, 1, RETENTION_TASKS_MAX, "tasks"))?.value,
            None => limits.retention_tasks_max,
        };
        Ok(Retention {
            resume_window_s: seconds(resume_window_s, 0, limits.resume_window_s)?,
            events_s: seconds(events_s, 0, limits.retention_events_s)?,
            tasks_s: seconds(tasks_s, 0, limits.retention_tasks_s)?,
            tasks_max,
        })
    }
}

/// A number within bounds, or what holds without it.
fn small(given: Option<Given<u64>>, low: u32, high: u32, unit: &str, default: u32) -> Result<u32, ConfigError> {
    let Some(given) = given else { return Ok(default) };
    let number = given.try_map(|number| values::within(number, low.into(), high.into(), unit))?.value;
    Ok(u32::try_from(number).unwrap_or(high))
}

fn lifetimes(
    lease_s: Option<Given<u64>>,
    queued_s: Option<Given<u64>>,
    processing_s: Option<Given<u64>>,
) -> Result<Lifetimes, ConfigError> {
    let seconds = |given: Option<Given<u64>>, most| -> Result<Option<u32>, ConfigError> {
        let Some(given) = given else { return Ok(None) };
        let seconds = given.try_map(|seconds| values::within(seconds, 1, most, "seconds"))?.value;
        Ok(u32::try_from(seconds).ok())
    };
    Ok(Lifetimes {
        lease_s: seconds(lease_s, LEASE_S_MAX)?.unwrap_or(Limits::default().lease_ms / 1000),
        queued_s_max: seconds(queued_s, TASK_TIMEOUT_S_MAX)?,
        processing_s_max: seconds(processing_s, TASK_TIMEOUT_S_MAX)?,
    })
}

/// Checks each item of a list; what is wrong with one is said of the list.
fn each(
    given: Option<Given<Vec<String>>>,
    check: impl Fn(String) -> Result<String, String>,
) -> Result<Vec<String>, ConfigError> {
    let Some(Given { value, from }) = given else { return Ok(Vec::new()) };
    value.into_iter().map(|item| check(item).map_err(|why| from.error(why))).collect()
}

fn anonymous_tenants(given: Option<Given<Vec<String>>>, has_tokens: bool) -> Result<Vec<String>, ConfigError> {
    if let Some(given) = given.as_ref().filter(|given| has_tokens && !given.value.is_empty()) {
        let why =
            "these are the tenants of callers without a token, and there are tokens; name them in the tokens' lines";
        return Err(given.from.error(why));
    }
    each(given, values::path_name)
}

fn default_version(given: Given<String>) -> Result<Dialect, ConfigError> {
    let named = |text: String| Dialect::of_version(&text).ok_or_else(|| format!("expected 1.0 or 0.3, got {text:?}"));
    Ok(given.try_map(named)?.value)
}

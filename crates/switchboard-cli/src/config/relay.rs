//! Agents of kind relay: their settings, and the credentials that they show their upstream.

use std::path::{Path, PathBuf};

use switchboard::Dialect;
use switchboard::client::{CardKeys, Credentials, OAuthClient};
use switchboard_hub::relay::{AcceptedCard, RelayOptions};

use super::choices::{CardChangesName, CredentialKind, RelayDialect, ResendName};
use super::environment::Environment;
use super::headings::RELAY;
use super::layer::Layer;
use super::origin::{ConfigError, Errors, Given};
use super::row::Kind::{Bool, Choice, List, Number, Path as PathKind, Text};
use super::row::{DAY_S, Row, Table, Value, number, seconds, words};
use super::typed::{self, SettingValue, settings};
use super::values;

/// The default of a duration, in seconds.
fn default_s(of: fn(&RelayOptions) -> std::time::Duration) -> Value {
    number(of(&RelayOptions::default()).as_secs())
}

fn default_count(of: fn(&RelayOptions) -> usize) -> Value {
    number(of(&RelayOptions::default()))
}

settings! {
    /// What one `[agent.relay]` says: how a relay treats its upstream.
    RelaySettings, RELAYS: Table::Relay;

    credential_env: Option<String> = Row::new(Text(values::variable_name), RELAY,
            "Name of the variable that holds the credential for the upstream")
        .more("Credentials of callers are never passed on.")
        .flag("--relay-credential-env", "NAME").variable("SWITCHBOARD_RELAY_CREDENTIAL_ENV")
        .unset("no credential").example("\"UPSTREAM_TOKEN\"").hidden_by("credential_file");
    credential_file: Option<PathBuf> = Row::new(PathKind("file"), RELAY, "File that holds the credential for the upstream")
        .more("It is read at start.")
        .flag("--relay-credential-file", "FILE").variable("SWITCHBOARD_RELAY_CREDENTIAL_FILE")
        .unset("no credential").example("\"upstream-token.txt\"").hidden_by("credential_env");
    credential_kind: CredentialKind = Row::new(Choice(words::<CredentialKind>), RELAY,
            "What the credential is: a token, an API key for the place that the card of the upstream names, NAME:PASSWORD for HTTP Basic, or the secret \
             of an application that gets tokens of OAuth 2.0 in its own name (client credentials)")
        .default("bearer");
    oauth_client_id: Option<String> = Row::new(Text(Ok), RELAY,
            "The application, as the authorization server of the upstream knows it; credential_kind = \"oauth\" needs it")
        .unset("none").example("\"gateway\"");
    oauth_token_url: Option<String> = Row::new(Text(values::web_url), RELAY, "Where tokens are issued, whatever the card of the upstream says")
        .more("Without it the card chooses where the secret of the application goes.")
        .unset("what its card says").example("\"https://login.example/token\"");
    oauth_scopes: Option<Vec<String>> = Row::new(List(Ok), RELAY, "Scopes to ask for")
        .unset("those that the card requires").example("[\"agents\"]");
    dialect: Option<RelayDialect> = Row::new(Choice(words::<RelayDialect>), RELAY,
            "What the upstream speaks, if its card does not tell")
        .flag("--relay-dialect", "DIALECT").variable("SWITCHBOARD_RELAY_DIALECT")
        .unset("what its card says").example("\"0.3\"");
    authorities: Option<PathBuf> = Row::new(PathKind("file"), RELAY,
            "File of authorities, in PEM form, whose certificates are trusted beside those of the public ones")
        .unset("the public ones").example("\"upstream-ca.pem\"");
    resend: ResendName = Row::new(Choice(words::<ResendName>), RELAY,
            "When a message is sent again of which is not known whether it arrived: if the upstream recognises the repeat, or always")
        .more("With \"always\" the work may be done twice; otherwise the task fails, and says that the outcome is not known.")
        .flag("--relay-resend", "if-recognised|always").variable("SWITCHBOARD_RELAY_RESEND").default("if-recognised");
    tries_max: u32 = Row::new(Number { min: 1, max: 100, unit: "tries" }, RELAY,
            "How often a message is tried, the first time included, before the upstream counts as down")
        .default_of(|| Value::Number(RelayOptions::default().tries_max.into()));
    pause_s: u64 = Row::new(seconds(0, 3_600), RELAY, "The pause after the first try, in seconds; each later one is twice as long")
        .default_of(|| default_s(|options| options.pause_first));
    pause_s_max: u64 = Row::new(seconds(0, 3_600), RELAY, "The longest pause between tries, in seconds")
        .default_of(|| default_s(|options| options.pause_max));
    first_sign_s_max: u64 = Row::new(seconds(1, 3_600), RELAY,
            "How long the upstream has for its first sign of life, connecting included, in seconds")
        .more("It is no limit for the task: an upstream that streams or answers with a task may take as long as it likes.")
        .default_of(|| default_s(|options| options.first_sign_max));
    answer_s_max: u64 = Row::new(seconds(1, 7 * DAY_S), RELAY,
            "How long an upstream that neither streams nor answers with a task may take for its answer, in seconds")
        .default_of(|| default_s(|options| options.answer_max));
    down_s_max: u64 = Row::new(seconds(0, 7 * DAY_S), RELAY,
            "How long a message waits for an upstream that is down, in seconds; 0 refuses messages while it is known to be down")
        .flag("--relay-down", "SECONDS").variable("SWITCHBOARD_RELAY_DOWN")
        .default_of(|| default_s(|options| options.down_max));
    lost_s_max: u64 = Row::new(seconds(0, 7 * DAY_S), RELAY,
            "How long an upstream that is at work on a task may be away before the task is failed, in seconds")
        .default_of(|| default_s(|options| options.lost_max));
    calls_max: usize = Row::new(Number { min: 1, max: 1_000_000, unit: "tasks" }, RELAY,
            "Tasks that may be at work at the upstream at once; further ones wait")
        .default_of(|| default_count(|options| options.calls_max));
    streams_max: usize = Row::new(Number { min: 0, max: 1_000_000, unit: "streams" }, RELAY,
            "Streams of the upstream that may be open at once; further tasks are asked for from time to time")
        .default_of(|| default_count(|options| options.streams_max));
    sends_per_second_max: Option<u32> = Row::new(Number { min: 1, max: 1_000_000, unit: "messages" }, RELAY,
            "Messages that the upstream is sent within a second at most; further ones wait")
        .unset("no limit").example("50");
    answer_bytes_max: u64 = Row::new(Number { min: 1 << 10, max: 1 << 30, unit: "bytes" }, RELAY,
            "Size of one answer or event of the upstream at most, in bytes")
        .default_of(|| Value::Number(RelayOptions::default().answer_bytes_max));
    card_keys: Vec<String> = Row::new(List(Ok), RELAY,
            "Files of public keys, as PEM or as a JSON Web Key set, that verify the signature of the upstream's card")
        .default("");
    require_signed_card: bool = Row::new(Bool, RELAY, "Call the upstream only while its card is signed with one of card_keys")
        .default("false");
    card_changes: CardChangesName = Row::new(Choice(words::<CardChangesName>), RELAY,
            "What happens when skills, provider, keys or hosts on the upstream's card differ from those that `switchboard agents add` saw")
        .more("\"show\" writes it to the log; \"refuse\" refuses messages, too, until `switchboard agents refresh` has accepted the card.")
        .default("show");
}

/// A relay that was checked.
#[derive(Clone, Debug)]
pub(crate) struct RelayConfig {
    pub(crate) url: String,
    pub(crate) settings: RelaySettings,
    pub(crate) credentials: Credentials,
    pub(crate) card_keys: CardKeys,
}

impl RelayConfig {
    /// # Errors
    /// When a credential or a key cannot be read.
    pub(super) fn new(
        url: String,
        settings: RelaySettings,
        environment: &Environment,
        folder: &Path,
    ) -> Result<Self, ConfigError> {
        let credentials = credentials(&settings, environment, folder)?;
        let mut card_keys = CardKeys::none();
        for path in &settings.card_keys.value {
            let refuse = |why: &dyn std::fmt::Display| settings.card_keys.from.error(format_args!("{path}: {why}"));
            let text = std::fs::read(folder.join(path)).map_err(|error| refuse(&error))?;
            let is_json = text.trim_ascii_start().starts_with(b"{");
            let added = if is_json { card_keys.and_jwk_set(&text) } else { card_keys.and_pem(&text) };
            card_keys = added.map_err(|error| refuse(&error))?;
        }
        if *settings.require_signed_card && settings.card_keys.is_empty() {
            return Err(settings.require_signed_card.from.error("there are no keys to verify it with; add card_keys"));
        }
        if *settings.pause_s_max < *settings.pause_s {
            let (first, most) = (*settings.pause_s, *settings.pause_s_max);
            let why = format!("expected at least pause_s, {first}, got {most}");
            return Err(settings.pause_s_max.from.error(why));
        }
        if let Some(path) = &settings.authorities.value
            && let Err(error) = std::fs::metadata(folder.join(path))
        {
            return Err(settings.authorities.from.error(format_args!("{} cannot be read: {error}", path.display())));
        }
        Ok(Self { url, settings, credentials, card_keys })
    }

    pub(crate) fn dialect(&self) -> Option<Dialect> {
        self.settings.dialect.map(|dialect| match dialect {
            RelayDialect::V1_0 => Dialect::V1_0,
            RelayDialect::V0_3 => Dialect::V0_3,
            RelayDialect::AgentNative => Dialect::AgentNative,
            RelayDialect::Selectools => Dialect::Selectools,
            RelayDialect::Corvid => Dialect::Corvid,
            RelayDialect::Nexus => Dialect::Nexus,
        })
    }

    /// How the relay treats its upstream. `namespace` is what no other gateway has.
    pub(crate) fn options(&self, namespace: String, accepted: Option<AcceptedCard>) -> RelayOptions {
        use std::time::Duration;
        use switchboard_hub::relay::{CardChanges, Resend};
        let settings = &self.settings;
        let mut options = RelayOptions::default();
        options.dialect = self.dialect();
        options.resend = match *settings.resend {
            ResendName::IfRecognised => Resend::IfRecognised,
            ResendName::Always => Resend::Always,
        };
        options.tries_max = *settings.tries_max;
        options.pause_first = Duration::from_secs(*settings.pause_s);
        options.pause_max = Duration::from_secs(*settings.pause_s_max);
        options.first_sign_max = Duration::from_secs(*settings.first_sign_s_max);
        options.answer_max = Duration::from_secs(*settings.answer_s_max);
        options.down_max = Duration::from_secs(*settings.down_s_max);
        options.lost_max = Duration::from_secs(*settings.lost_s_max);
        options.calls_max = *settings.calls_max;
        options.streams_max = *settings.streams_max;
        options.sends_per_second_max = *settings.sends_per_second_max;
        options.answer_bytes_max = *settings.answer_bytes_max;
        options.card_changes = match *settings.card_changes {
            CardChangesName::Show => CardChanges::Show,
            CardChangesName::Refuse => CardChanges::Refuse,
        };
        options.namespace = namespace;
        options.accepted_card = accepted;
        options
    }
}

/// The credential for the upstream, from the variable or the file that a setting names. Its text goes no further.
fn credentials(settings: &RelaySettings, environment: &Environment, folder: &Path) -> Result<Credentials, ConfigError> {
    let RelaySettings { credential_env, credential_file, credential_kind, .. } = settings;
    let RelaySettings { oauth_client_id, oauth_token_url, oauth_scopes, .. } = settings;
    if **credential_kind != CredentialKind::Oauth {
        let stray = oauth_client_id.is_given().then_some(&oauth_client_id.from);
        let stray = stray.or(oauth_token_url.is_given().then_some(&oauth_token_url.from));
        if let Some(from) = stray.or(oauth_scopes.is_given().then_some(&oauth_scopes.from)) {
            return Err(from.error("this goes with credential_kind = \"oauth\""));
        }
    }
    let (text, from) = match (&credential_env.value, &credential_file.value) {
        (Some(_), Some(_)) => {
            return Err(credential_env.from.error("there is a file with a credential, too; keep one of the two"));
        }
        (Some(name), None) => {
            let refuse = |why: &str| credential_env.from.error(format_args!("the variable {name} {why}"));
            let text = environment.raw(name).ok_or_else(|| refuse("is not set"))?;
            (text.into_string().map_err(|_| refuse("is not text"))?, &credential_env.from)
        }
        (None, Some(path)) => {
            let unread = |error| credential_file.from.error(format_args!("{} cannot be read: {error}", path.display()));
            (std::fs::read_to_string(folder.join(path)).map_err(unread)?, &credential_file.from)
        }
        (None, None) if **credential_kind == CredentialKind::Oauth => {
            let why = "the application needs a secret; add credential_env or credential_file";
            return Err(credential_kind.from.error(why));
        }
        (None, None) => return Ok(Credentials::none()),
    };
    let text = text.trim();
    if text.is_empty() {
        return Err(from.error("the credential is empty"));
    }
    Ok(match **credential_kind {
        CredentialKind::Bearer => Credentials::bearer(text),
        CredentialKind::ApiKey => Credentials::api_key(text),
        CredentialKind::Basic => {
            let pair = text.split_once(':').ok_or_else(|| from.error("expected NAME:PASSWORD in the credential"))?;
            Credentials::basic(pair.0, pair.1)
        }
        CredentialKind::Oauth => {
            let Some(id) = oauth_client_id.value.as_deref().map(str::trim).filter(|id| !id.is_empty()) else {
                return Err(credential_kind.from.error("the application needs a name; add oauth_client_id"));
            };
            let mut client = OAuthClient::new(id).with_secret(text);
            if let Some(url) = &oauth_token_url.value {
                client = client.with_token_url(url);
            }
            if let Some(scopes) = &oauth_scopes.value {
                client = client.with_scopes(scopes.iter().cloned());
            }
            Credentials::oauth(client)
        }
    })
}

/// What a relay is called that has no name: host, port and path of its upstream. It stays the same whatever the upstream's card says.
pub(super) fn name_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    rest.trim_end_matches('/').trim_end_matches("/.well-known/agent-card.json").to_owned()
}

/// The address of an upstream: that of an agent, or of its card.
pub(super) fn upstream_url(text: String) -> Result<String, String> {
    values::web_url(text.clone()).and_then(|url| match url.contains('#') {
        true => Err(format!("expected a URL without #, got {text:?}")),
        false => Ok(url),
    })
}

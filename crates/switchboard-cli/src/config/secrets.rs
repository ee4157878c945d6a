//! Tokens and signing secrets: from a setting that holds them, or from the file it names. Their text goes no further, and
//! no refusal quotes it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use switchboard::{
    ListError, Otlp, Rules, SecretKeySource, SecretKeys, SharedSecret, SigningKeys, SigningSecrets, Tokens,
};

use super::environment::Environment;
use super::origin::{ConfigError, Given, Origin};
use super::table::ServerSettings;
use super::typed::Secret;
use super::{KnownSecrets, KnownTokens, listen};

pub(super) fn tokens(server: &mut ServerSettings, folder: &Path) -> Result<Option<KnownTokens>, ConfigError> {
    if let Some(Secret(text)) = server.tokens.value.take() {
        let tokens = Tokens::parse(&text).map_err(|error| server.tokens.from.error(error))?;
        if tokens.is_empty() {
            let why = "no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]";
            return Err(server.tokens.from.error(why));
        }
        return Ok(Some(KnownTokens { tokens, file: None }));
    }
    let Some(path) = &server.tokens_file.value else { return Ok(None) };
    // The server keeps an eye on the file, so that new tokens need no restart.
    let tokens = Tokens::from_file(folder.join(path)).map_err(|error| unfit(&server.tokens_file.from, path, &error))?;
    Ok(Some(KnownTokens { tokens, file: Some(path.clone()) }))
}

/// The rules about what callers may do. They are no secret, but are read in the same way as tokens.
pub(super) fn rules(server: &ServerSettings, folder: &Path) -> Result<Option<Rules>, ConfigError> {
    let Some(path) = &server.rules_file.value else { return Ok(None) };
    let rules = Rules::from_file(folder.join(path)).map_err(|error| unfit(&server.rules_file.from, path, &error))?;
    Ok(Some(rules))
}

/// What is wrong with the list in a file that a setting names.
fn unfit(from: &Origin, path: &Path, error: &ListError) -> ConfigError {
    let comma = if error.line > 0 { "," } else { "" };
    from.error(format_args!("{}{comma} {error}", path.display()))
}

/// The key that all callers share, from the variable that the setting names.
pub(super) fn api_key(server: &ServerSettings, environment: &Environment) -> Result<Option<Secret>, ConfigError> {
    let Some(name) = &server.api_key_env.value else { return Ok(None) };
    let refuse = |why: &str| server.api_key_env.from.error(format_args!("the variable {name} {why}"));
    let text = environment.raw(name).ok_or_else(|| refuse("is not set"))?;
    let text = text.into_string().map_err(|_| refuse("is not text"))?;
    let key = text.trim();
    if key.is_empty() {
        return Err(refuse("is empty"));
    }
    if key.len() < API_KEY_BYTES_MIN && !listen::is_local(*server.listen) {
        let why =
            "holds a key of fewer than 16 characters, which can be guessed, and other machines can reach the server";
        return Err(refuse(why));
    }
    Ok(Some(Secret(key.to_owned())))
}

/// Shorter keys are for one machine alone.
const API_KEY_BYTES_MIN: usize = 16;

/// The secret that callers sign their tokens with, and those of organizations.
pub(super) fn shared_secret(server: &mut ServerSettings, folder: &Path) -> Result<Option<SharedSecret>, ConfigError> {
    let given = server.a2a_secret.value.take().filter(|Secret(text)| !text.trim().is_empty());
    let mut secrets = match &given {
        Some(Secret(text)) if text.trim().len() < API_KEY_BYTES_MIN && !listen::is_local(*server.listen) => {
            let why = "is shorter than 16 characters, so that it can be found by trying, and other machines can reach the server";
            return Err(server.a2a_secret.from.error(why));
        }
        Some(Secret(text)) => SharedSecret::new(text),
        None => SharedSecret::default(),
    };
    if let Some(path) = &server.org_secrets_file.value {
        let refuse = |error| unfit(&server.org_secrets_file.from, path, &error);
        secrets = secrets.with_orgs_of(folder.join(path)).map_err(refuse)?;
    }
    Ok((given.is_some() || server.org_secrets_file.is_some()).then_some(secrets))
}

pub(super) fn signing_secrets(server: &mut ServerSettings, folder: &Path) -> Result<Option<KnownSecrets>, ConfigError> {
    let (secret, file) = (&mut server.webhook_signing_secret, &server.webhook_signing_secret_file);
    if secret.is_some() && file.is_some() {
        return Err(secret.from.error("there is a file of signing secrets, too; keep one of the two"));
    }
    let Some(found) = find(secret, file, folder)? else { return Ok(None) };
    let secrets = SigningSecrets::parse(&found.text).map_err(|error| found.refuse(error))?;
    if secrets.is_empty() {
        return Err(found.refuse("no secret in it; expected whsec_ and the base64 of 24 to 64 random bytes"));
    }
    Ok(Some(KnownSecrets { secrets, from: found.from, file: found.file }))
}

/// Where the keys are that secrets of webhooks are encrypted with.
pub(crate) fn secret_keys(server: &mut ServerSettings, folder: &Path) -> Result<SecretKeySource, ConfigError> {
    if let Some(Secret(text)) = server.secrets_key.value.take() {
        let keys = SecretKeys::parse(&text).map_err(|error| server.secrets_key.from.error(error))?;
        return Ok(SecretKeySource::Keys(keys));
    }
    let Some(file) = &server.secrets_key_file.value else { return Ok(SecretKeySource::Beside) };
    let refuse = |why: &dyn std::fmt::Display| server.secrets_key_file.from.error(why);
    match SecretKeys::read(&folder.join(file)) {
        Ok(Some(keys)) => Ok(SecretKeySource::Keys(keys)),
        Ok(None) => Err(refuse(&format_args!(
            "{} does not exist; make one: echo \"swkey_$(openssl rand -base64 32)\" > {} && chmod 600 {}",
            file.display(),
            file.display(),
            file.display()
        ))),
        Err(error) => Err(refuse(&error)),
    }
}

/// The text of the credentials for NATS.
pub(super) fn hints_credentials(server: &mut ServerSettings, folder: &Path) -> Result<Option<Secret>, ConfigError> {
    let found = find(&mut server.hints_credentials, &server.hints_credentials_file, folder)?;
    Ok(found.map(|found| Secret(found.text)))
}

/// Where traces and metrics are sent.
pub(super) fn otlp(server: &mut ServerSettings, folder: &Path) -> Result<Option<Otlp>, ConfigError> {
    let found = find(&mut server.otlp_headers, &server.otlp_headers_file, folder)?;
    let Some(endpoint) = &server.otlp_endpoint.value else {
        // A variable may be there for other programs. A file was named for this one.
        return match server.otlp_headers_file.is_some() {
            true => Err(server.otlp_headers_file.from.error("there is no collector; name it (--otlp-endpoint)")),
            false => Ok(None),
        };
    };
    let mut otlp = Otlp::new(endpoint).map_err(|why| server.otlp_endpoint.from.error(why))?;
    if let Some(found) = found {
        otlp = otlp.with_headers(&found.text).map_err(|why| found.refuse(why))?;
    }
    let ratio = server.otlp_sample_ratio.parse().unwrap_or(1.0);
    let otlp = otlp.with_sample_ratio(ratio).map_err(|why| server.otlp_sample_ratio.from.error(why))?;
    let interval = Duration::from_secs(*server.otlp_interval_s);
    Ok(Some(otlp.with_service_name(&*server.otlp_service_name).with_interval(interval)))
}

/// The keys that cards are signed with, which may be none yet.
pub(super) fn signing_keys(server: &ServerSettings, folder: &Path) -> Result<Option<SigningKeys>, ConfigError> {
    let Some(dir) = server.keys_dir() else { return Ok(None) };
    SigningKeys::open(folder.join(dir)).map(Some).map_err(|error| server.keys_dir.from.error(error))
}

struct FoundSecret {
    text: String,
    from: Origin,
    file: Option<PathBuf>,
}

impl FoundSecret {
    fn refuse(&self, why: impl std::fmt::Display) -> ConfigError {
        match &self.file {
            Some(path) => self.from.error(format_args!("{}, {why}", path.display())),
            None => self.from.error(why),
        }
    }
}

/// The text of secrets. It is taken out of its setting, so that the configuration does not keep it.
fn find(
    secret: &mut Given<Option<Secret>>,
    file: &Given<Option<PathBuf>>,
    folder: &Path,
) -> Result<Option<FoundSecret>, ConfigError> {
    if let Some(Secret(text)) = secret.value.take() {
        return Ok(Some(FoundSecret { text, from: secret.from.clone(), file: None }));
    }
    let Some(path) = &file.value else { return Ok(None) };
    let text = std::fs::read_to_string(folder.join(path))
        .map_err(|error| file.from.error(format_args!("{} cannot be read: {error}", path.display())))?;
    Ok(Some(FoundSecret { text, from: file.from.clone(), file: Some(path.clone()) }))
}

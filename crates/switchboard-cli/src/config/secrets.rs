//! Tokens and signing secrets: from a setting that holds them, or from the file it names. Their text goes no further, and
//! no refusal quotes it.

use std::path::{Path, PathBuf};

use switchboard::{SigningSecrets, Tokens};

use super::table::ServerSettings;
use super::typed::Secret;
use super::{ConfigError, Given, KnownSecrets, KnownTokens, Origin};

pub(super) fn tokens(server: &mut ServerSettings, folder: &Path) -> Result<Option<KnownTokens>, ConfigError> {
    let Some(found) = find(&mut server.tokens, &server.tokens_file, folder)? else { return Ok(None) };
    let tokens = Tokens::parse(&found.text).map_err(|error| found.refuse(error))?;
    if tokens.is_empty() {
        return Err(found.refuse("no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]"));
    }
    Ok(Some(KnownTokens { tokens, file: found.file }))
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

struct Found {
    text: String,
    from: Origin,
    file: Option<PathBuf>,
}

impl Found {
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
) -> Result<Option<Found>, ConfigError> {
    if let Some(Secret(text)) = secret.value.take() {
        return Ok(Some(Found { text, from: secret.from.clone(), file: None }));
    }
    let Some(path) = &file.value else { return Ok(None) };
    let text = std::fs::read_to_string(folder.join(path))
        .map_err(|error| file.from.error(format_args!("{} cannot be read: {error}", path.display())))?;
    Ok(Some(Found { text, from: file.from.clone(), file: Some(path.clone()) }))
}

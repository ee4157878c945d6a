//! The tokens of `auth login`, in a file that only its owner can read. A token belongs to a reference of an agent and to the hosts
//! that its card named at the login; to others it is not sent.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use switchboard::client::{OAuthClient, StoredToken};
use switchboard::model::AgentCard;

use super::error::ClientError;
use super::printer::Printer;
use super::settings::Settings;
use crate::config::Environment;

/// The file is not larger.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// One login.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct KeptToken {
    /// Where the card led at the time of the login. Elsewhere the token is not sent.
    pub(crate) hosts: Vec<String>,
    pub(crate) token: StoredToken,
}

impl KeptToken {
    /// The application that renews it.
    pub(crate) fn application(&self, settings: &Settings) -> OAuthClient {
        let application = OAuthClient::new(&self.token.client_id);
        match settings.text("client-secret") {
            Some(secret) => application.with_secret(secret),
            None => application,
        }
    }
}

/// Where tokens are kept.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) path: PathBuf,
}

impl Tokens {
    /// The user's file; none without a home.
    pub(crate) fn of(environment: &Environment) -> Option<Self> {
        let own = |name: &str| environment.raw(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = own("XDG_CONFIG_HOME").or_else(|| own("HOME").map(|home| home.join(".config")))?;
        Some(Self { path: folder.join("switchboard/tokens.json") })
    }

    fn failed(&self, why: &dyn Display) -> ClientError {
        ClientError::internal(format!("{}: {why}", self.path.display()))
            .with_hint("Remove the file, and log in again with switchboard auth login")
    }

    fn read(&self) -> Result<BTreeMap<String, KeptToken>, ClientError> {
        let file = match std::fs::File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
            Err(error) => return Err(self.failed(&error)),
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(|error| self.failed(&error))?;
        // The error of the parser could quote a token.
        serde_json::from_str(&text).map_err(|_| self.failed(&"it is not a file of tokens"))
    }

    /// The token for an agent, if there was a login.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn get(&self, reference: &str) -> Result<Option<KeptToken>, ClientError> {
        Ok(self.read()?.remove(reference))
    }

    /// The token for an agent, if its card still leads where it led at the login. Elsewhere it is not sent, and the user is told.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn for_agent(
        &self,
        reference: &str,
        hosts: &[String],
        printer: &Printer,
    ) -> Result<Option<KeptToken>, ClientError> {
        let Some(kept) = self.get(reference)? else { return Ok(None) };
        if hosts.iter().all(|host| kept.hosts.contains(host)) {
            return Ok(Some(kept));
        }
        printer.warn(format!(
            "the card leads to other hosts than at the login ({}), so the token is not sent; log in again if that is right",
            kept.hosts.join(", ")
        ));
        Ok(None)
    }

    /// Keeps a token, in place of an older one for the same agent.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn put(&self, reference: &str, kept: KeptToken) -> Result<(), ClientError> {
        let mut all = self.read()?;
        all.insert(reference.to_owned(), kept);
        self.write(&all)
    }

    /// Forgets the token for an agent; false if there was none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn remove(&self, reference: &str) -> Result<bool, ClientError> {
        let mut all = self.read()?;
        let was_there = all.remove(reference).is_some();
        if was_there {
            self.write(&all)?;
        }
        Ok(was_there)
    }

    /// Writes a new file and puts it in place of the old one, so that no reader sees half of it.
    fn write(&self, all: &BTreeMap<String, KeptToken>) -> Result<(), ClientError> {
        use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
        let failed = |error: std::io::Error| self.failed(&error);
        if let Some(folder) = self.path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let text = serde_json::to_string(all).map_err(|error| self.failed(&error))?;
        let new = self.path.with_extension(format!("json.{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new).map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| std::fs::rename(&new, &self.path)).map_err(|error| {
            let _ = std::fs::remove_file(&new);
            self.failed(&error)
        })
    }
}

/// The hosts and ports that a card leads to.
pub(crate) fn hosts_of(card: &AgentCard) -> Vec<String> {
    hosts_at(card.supported_interfaces.iter().map(|own| own.url.as_str()))
}

/// The hosts and ports of these URLs, each once.
pub(crate) fn hosts_at<'a>(urls: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut hosts: Vec<String> = urls.map(host_of).collect();
    hosts.sort();
    hosts.dedup();
    hosts
}

/// Host and port of a URL, which may have no scheme.
fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use switchboard::client::StoredToken;

    use super::{KeptToken, Tokens, host_of};

    #[test]
    fn tokens_are_kept_for_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let tokens = Tokens { path: folder.path().join("switchboard/tokens.json") };
        let token = |text: &str| KeptToken {
            hosts: vec!["a.example".to_owned()],
            token: StoredToken::new("https://login.example", "app", text),
        };
        tokens.put("a.example", token("one")).unwrap();
        tokens.put("b.example", token("two")).unwrap();
        assert_eq!(tokens.get("a.example").unwrap().unwrap().token.access_token, "one");
        assert_eq!(std::fs::metadata(&tokens.path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(tokens.path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(tokens.remove("a.example").unwrap() && !tokens.remove("a.example").unwrap());
        assert!(tokens.get("a.example").unwrap().is_none() && tokens.get("b.example").unwrap().is_some());
        std::fs::write(&tokens.path, "s3cret{").unwrap();
        assert!(!tokens.get("b.example").unwrap_err().message.contains("s3cret"));
    }

    #[test]
    fn a_host_is_read_from_every_form_of_url() {
        for (url, host) in [
            ("https://A.example:8443/x?y", "a.example:8443"),
            ("127.0.0.1:50051", "127.0.0.1:50051"),
            ("http://user@h.example", "h.example"),
        ] {
            assert_eq!(host_of(url), host);
        }
    }
}

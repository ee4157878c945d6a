//! The secrets of organizations: a list of which each line has a domain and its secret. When a secret is replaced, the one before stays
//! good for a while, so that no call fails until all apps of the organization have the new one. It is kept in the same line, with the
//! time at which it ends: `DOMAIN SECRET [PREVIOUS UNTIL]…`.

use std::collections::HashMap;
use std::sync::Arc;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest, Sha256};
use switchboard_core::model::Timestamp;
use switchboard_engine::ports::audit::AuditEvent;

use super::identity::Revocation;
use crate::jwt::Unverified;
use crate::reloaded::{ListError, ListOfLines};
use crate::server::uri::check_name;

/// Shorter secrets can be found by trying, since each token shows what one makes of it.
pub(crate) const SECRET_BYTES_MIN: usize = 16;
/// Longer ones are no secrets.
pub(crate) const SECRET_BYTES_MAX: usize = 512;
/// How many organizations a file of secrets may have.
const ORG_SECRETS_MAX: usize = 10_000;
/// How many secrets of one organization are good beside the newest.
const PREVIOUS_SECRETS_MAX: usize = 4;
/// How long a secret is good after it was replaced: longer than a token lives, and long enough to tell all apps.
const PREVIOUS_SECRET_S_MAX: i64 = 3_600;

const LINE: &str = "expected DOMAIN SECRET";

/// The secrets by the domains of their organizations, in lower case.
#[derive(Clone, Default)]
pub(crate) struct OrgSecrets(HashMap<String, OrgSecret>);

#[derive(Clone)]
struct OrgSecret {
    newest: Secret,
    /// Those that were replaced, the newest first, each with the time at which it ends.
    previous: Vec<(Secret, Timestamp)>,
}

#[derive(Clone)]
struct Secret {
    text: Arc<str>,
    key: TokenKey,
    /// Of the text, by which a reload knows that it is still the same.
    digest: [u8; 32],
    revocation: Revocation,
}

impl Secret {
    fn new(text: &str) -> Self {
        Self {
            text: text.into(),
            key: TokenKey::new(text),
            digest: Sha256::digest(text).into(),
            revocation: Revocation::possible(),
        }
    }

    fn is_short(&self) -> bool {
        self.text.len() < SECRET_BYTES_MIN
    }
}

/// What tokens are signed with under a secret.
#[derive(Clone)]
pub(super) struct TokenKey(Hmac<Sha256>);

impl TokenKey {
    pub(super) fn new(secret: &str) -> Self {
        Self(Hmac::new_from_slice(secret.as_bytes()).expect("a key of HMAC may have any length"))
    }

    /// The signatures are compared in constant time.
    pub(super) fn has_signed(&self, token: &Unverified<'_>) -> bool {
        self.0.clone().chain_update(token.signed).verify_slice(&token.signature).is_ok()
    }
}

/// Who has signed a token, as far as the secret tells: what tells that the secret was taken back, and when it ends.
pub(super) struct OrgSignature {
    pub(super) revocation: Revocation,
    pub(super) until: Option<Timestamp>,
}

/// The secrets of one organization at one moment, the newest first.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KnownSecrets {
    pub(crate) newest: Arc<str>,
    pub(crate) previous: Vec<Arc<str>>,
}

impl OrgSecret {
    fn all(&self) -> impl Iterator<Item = &Secret> {
        std::iter::once(&self.newest).chain(self.previous.iter().map(|(secret, _)| secret))
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Secret> {
        std::iter::once(&mut self.newest).chain(self.previous.iter_mut().map(|(secret, _)| secret))
    }
}

impl OrgSecrets {
    pub(super) fn insert(&mut self, domain: String, secret: &str) {
        self.0.insert(domain, OrgSecret { newest: Secret::new(secret), previous: Vec::new() });
    }

    pub(super) fn has_short(&self) -> bool {
        self.0.values().flat_map(OrgSecret::all).any(Secret::is_short)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The domains, in their order.
    pub(crate) fn domains(&self) -> Vec<String> {
        let mut domains: Vec<String> = self.0.keys().cloned().collect();
        domains.sort();
        domains
    }

    pub(crate) fn known(&self, domain: &str, now: Timestamp) -> Option<KnownSecrets> {
        let OrgSecret { newest, previous } = self.0.get(domain)?;
        let previous = previous.iter().filter(|(_, until)| *until > now).map(|(secret, _)| secret.text.clone());
        Some(KnownSecrets { newest: newest.text.clone(), previous: previous.collect() })
    }

    /// Whether the organization has signed.
    pub(super) fn verify(&self, org: &str, token: &Unverified<'_>, now: Timestamp) -> Option<OrgSignature> {
        let OrgSecret { newest, previous } = self.0.get(org)?;
        let fits = |secret: &Secret| secret.key.has_signed(token);
        if fits(newest) {
            return Some(OrgSignature { revocation: newest.revocation.clone(), until: None });
        }
        let (secret, until) = previous.iter().find(|(secret, until)| *until > now && fits(secret))?;
        Some(OrgSignature { revocation: secret.revocation.clone(), until: Some(*until) })
    }

    /// The text of a file with another newest secret of an organization. The one before becomes a previous one; those whose time is over
    /// go. Other lines stay as they are.
    pub(crate) fn replaced(&self, text: &str, domain: &str, secret: &str, now: Timestamp) -> String {
        let mut words = vec![domain.to_owned(), secret.to_owned()];
        if let Some(OrgSecret { newest, previous }) = self.0.get(domain) {
            let until = now.plus_ms(PREVIOUS_SECRET_S_MAX * 1000);
            let kept = std::iter::once((newest, until)).chain(previous.iter().map(|(secret, until)| (secret, *until)));
            let kept = kept.filter(|(before, until)| *until > now && &*before.text != secret);
            for (before, until) in kept.take(PREVIOUS_SECRETS_MAX) {
                words.extend([before.text.to_string(), String::from_utf8_lossy(&until.to_rfc3339()).into_owned()]);
            }
        }
        let line = words.join(" ");
        let is_own =
            |line: &str| line.split_whitespace().next().is_some_and(|first| first.eq_ignore_ascii_case(domain));
        let mut lines: Vec<&str> = text.lines().collect();
        match lines.iter_mut().find(|line| is_own(line)) {
            Some(own) => *own = &line,
            None => lines.push(&line),
        }
        lines.join("\n") + "\n"
    }
}

/// Why a text cannot be a secret in a file.
pub(crate) fn check_secret(secret: &str) -> Result<(), String> {
    let length = secret.len();
    match length {
        _ if !secret.bytes().all(|byte| byte.is_ascii_graphic()) || secret.starts_with('#') => {
            Err("a secret must be letters, digits and signs of ASCII, without spaces, and not begin with #".to_owned())
        }
        SECRET_BYTES_MIN..=SECRET_BYTES_MAX => Ok(()),
        _ => Err(format!("a secret must have {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} characters")),
    }
}

impl ListOfLines for OrgSecrets {
    const WHAT: &'static str = "secrets of organizations";
    const EVENT: AuditEvent = AuditEvent::Credentials;
    const NONE_IN_FILE: &'static str = "no secret in it; expected lines of DOMAIN SECRET";

    fn parse(text: &str) -> Result<Self, ListError> {
        let mut orgs = HashMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = |reason: String| ListError { line: index + 1, reason };
            let words: Vec<&str> = line.split_whitespace().collect();
            let (domain, secret, pairs) = match words.as_slice() {
                [] => continue,
                [first, ..] if first.starts_with('#') => continue,
                [domain, secret, pairs @ ..] => (domain.to_ascii_lowercase(), *secret, pairs),
                _ => return Err(wrong(LINE.to_owned())),
            };
            check_name("domain", &domain).map_err(wrong)?;
            let mut previous = Vec::new();
            for pair in pairs.chunks(2) {
                let [text, until] = pair else { return Err(wrong(LINE.to_owned())) };
                let until = Timestamp::parse_rfc3339(until).ok_or_else(|| {
                    wrong(format!("{LINE}, or behind them an earlier secret and the time at which it ends"))
                })?;
                previous.push((Secret::new(text), until));
            }
            if previous.len() > PREVIOUS_SECRETS_MAX {
                return Err(wrong(format!("there are more than {PREVIOUS_SECRETS_MAX} earlier secrets")));
            }
            if orgs.len() == ORG_SECRETS_MAX {
                return Err(wrong(format!("there are more than {ORG_SECRETS_MAX} organizations")));
            }
            if orgs.insert(domain, OrgSecret { newest: Secret::new(secret), previous }).is_some() {
                return Err(wrong("this organization has a secret already".to_owned()));
            }
        }
        Ok(Self(orgs))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Streams of organizations whose secret is gone end; those of the others go on. A server that was started with secrets that
    /// cannot be found by trying may be where other machines reach it, so it takes no short ones later.
    fn succeed(&mut self, before: &Self) -> Result<(), ListError> {
        if self.has_short() && !before.has_short() {
            let reason = format!("a secret is shorter than {SECRET_BYTES_MIN} characters; use a long random one");
            return Err(ListError { line: 0, reason });
        }
        for (domain, earlier) in &before.0 {
            for secret in earlier.all() {
                let kept = self.0.get_mut(domain);
                match kept.and_then(|kept| kept.all_mut().find(|kept| kept.digest == secret.digest)) {
                    Some(same) => same.revocation = secret.revocation.clone(),
                    None => secret.revocation.revoke(),
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "org_secrets_tests.rs"]
mod tests;

//! Static bearer tokens, each naming its principal and the tenants it may act for. A file of tokens is read again when
//! it changes (`reloaded`).

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use switchboard_core::model::Tenant;
use switchboard_engine::id_hash::SeededHash;
use switchboard_engine::ports::audit::AuditEvent;
use switchboard_engine::sha256::sha256;

use super::identity::Identity;
use super::identity::Revocation;
use super::verified::is_equal;
use crate::reloaded::{ListError, ListOfLines, ReloadedList, reloads_by_itself};
use crate::server::uri::{RESERVED, check_name};

/// A set of bearer tokens.
///
/// One per line: the token, the principal it proves, and optionally the tenants it may act for, separated by commas
/// (the first is the default one). `+operator` at the end makes its holder an operator, who may see and change the
/// webhook deliveries of all callers. `#` begins a comment. In place of a token may stand `sha256:` and the digest of it in
/// hexadecimal digits, so that the list itself lets nobody in.
///
/// Clones share one list: what [`Tokens::reload`] changes holds for every server it was given to, from the next request
/// on.
///
/// ```
/// let lines = "s3cret-token-of-alice alice acme,globex\ns3cret-token-of-ops ops +operator # nobody else";
/// assert_eq!(switchboard::Tokens::parse(lines).unwrap().len(), 2);
/// ```
#[derive(Clone)]
pub struct Tokens(Arc<ReloadedList<TokenList>>, Option<Key>);

/// The API key of a server, which no reload changes: its digest, and the identity of its holders.
type Key = ([u8; 32], Arc<Identity>);

/// Each token by its digest: a memory dump or a stray debug print shows no credential. The hash of the table has a seed of its own in each
/// process, so that the time it takes to look for a token tells nothing about the digests of others.
#[derive(Default)]
struct TokenList(HashMap<[u8; 32], Arc<Identity>, SeededHash>);

/// Shorter tokens can be guessed.
const TOKEN_BYTES_MIN: usize = 16;
/// The principal of all callers that use the API key of a server.
const API_KEY: &str = "api-key";

/// Whether a key can be guessed.
pub(crate) fn is_short(key: &str) -> bool {
    key.len() < TOKEN_BYTES_MIN
}

/// Begins the digest of a token, where it stands in place of the token.
const HASHED: &str = "sha256:";
/// Marks the line of an operator.
const OPERATOR: &str = "+operator";
const TENANT: &str = "a tenant must be 1 to 64 letters, digits, '-', '_', '.' or '~', and not begin with a dot";
const LINE: &str = "expected TOKEN PRINCIPAL [TENANT,TENANT] [+operator]";

reloads_by_itself!(Tokens);

impl Tokens {
    /// Reads a list of tokens.
    ///
    /// # Errors
    /// When a line is not a token and a principal, a token is too short or appears twice, or a tenant could not be named in
    /// a path.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        Ok(Self(Arc::new(ReloadedList::given(TokenList::parse(text)?)), None))
    }

    /// Reads a list of tokens from a file.
    ///
    /// A server looks every minute whether the file has changed, and then uses the new list: a token that is gone is
    /// refused from the next request on, and streams that were opened with it end; their tasks go on. If the new list is not good, or is empty, the server goes on with the one it has
    /// and says so in the log.
    ///
    /// # Errors
    /// When the file cannot be read, holds no token, or for the reasons of [`Tokens::parse`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ListError> {
        Ok(Self(Arc::new(ReloadedList::open(path.as_ref())?), None))
    }

    /// The tokens and one more: a key that all who call share. It proves the principal `api-key`, who is no operator.
    ///
    /// # Errors
    /// When the key is empty or could not be sent in a header, or is one of the tokens.
    pub(crate) fn with_api_key(mut self, key: &str) -> Result<Self, &'static str> {
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("must be letters, digits and signs of ASCII, without spaces");
        }
        let digest = sha256(key);
        if self.0.read(|list| list.0.contains_key(&digest)) {
            return Err("is also the token of somebody");
        }
        let identity = Identity::new(API_KEY).tenants([Tenant::default()]);
        self.1 = Some((digest, Arc::new(identity)));
        Ok(self)
    }

    /// How many tokens are on the list.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read(TokenList::len) + usize::from(self.1.is_some())
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whose token it is.
    pub(crate) fn find(&self, token: &[u8]) -> Option<Arc<Identity>> {
        let digest = sha256(token);
        let key = self.1.as_ref().filter(|(known, _)| is_equal(known, &digest)).map(|(_, identity)| identity.clone());
        key.or_else(|| self.0.read(|list| list.0.get(&digest).cloned()))
    }
}

/// Reads 64 hexadecimal digits.
fn digest_of(hex: &str) -> Option<[u8; 32]> {
    let digits = hex.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut digest = [0; 32];
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
    }
    Some(digest)
}

impl ListOfLines for TokenList {
    const WHAT: &'static str = "tokens";
    const EVENT: AuditEvent = AuditEvent::Credentials;
    const NONE_IN_FILE: &'static str = "no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]";

    fn parse(text: &str) -> Result<Self, ListError> {
        let mut list = HashMap::default();
        for (index, line) in text.lines().enumerate() {
            let error = |reason: &str| ListError { line: index + 1, reason: reason.to_owned() };
            let line = line.split('#').next().unwrap_or_default();
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let operator = words.len() > 2 && words.last() == Some(&OPERATOR);
            if operator {
                words.pop();
            }
            let (token, principal, tenants) = match words.as_slice() {
                [] => continue,
                // A mark that is not known must not become a tenant, and its right must not be lost in silence.
                [_, mark] | [_, _, mark] if mark.starts_with('+') => return Err(error(LINE)),
                [token, principal] => (*token, *principal, ""),
                [token, principal, tenants] => (*token, *principal, *tenants),
                _ => return Err(error(LINE)),
            };
            let digest: [u8; 32] = match token.strip_prefix(HASHED) {
                Some(hex) => {
                    digest_of(hex).ok_or_else(|| error("sha256: must be followed by 64 hexadecimal digits"))?
                }
                None if token.len() < TOKEN_BYTES_MIN => {
                    return Err(error("the token is shorter than 16 characters; use a long random one"));
                }
                None => sha256(token),
            };
            if list.contains_key(&digest) {
                return Err(error("the same token appears twice"));
            }
            for tenant in tenants.split(',').filter(|_| !tenants.is_empty()) {
                // It is not quoted: where a line break is missing, it is a token.
                let is_reserved = RESERVED.contains(&tenant);
                check_name("tenant", tenant).map_err(|refused| error(if is_reserved { &refused } else { TENANT }))?;
            }
            let mut identity = Identity::new(principal).tenants(tenants.split(',')).operator(operator);
            identity.revocation = Revocation::possible();
            list.insert(digest, Arc::new(identity));
        }
        Ok(Self(list))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    /// Streams of tokens that are no longer there, or prove something else now, end; those of the others go on.
    fn succeed(&mut self, before: &Self) -> Result<(), ListError> {
        for (digest, identity) in &mut self.0 {
            if let Some(same) = before.0.get(digest).filter(|earlier| *earlier == identity) {
                *identity = same.clone();
            }
        }
        for (digest, identity) in &before.0 {
            if !self.0.get(digest).is_some_and(|kept| Arc::ptr_eq(kept, identity)) {
                identity.revocation.revoke();
            }
        }
        Ok(())
    }
}

impl Default for Tokens {
    fn default() -> Self {
        Self(Arc::new(ReloadedList::given(TokenList::default())), None)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.len())
    }
}

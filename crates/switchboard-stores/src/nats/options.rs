//! What hints over NATS are told: the addresses of the servers, who we are, and under which subject. What is wrong with them is told
//! without quoting them, because an address may have a password in it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rustls::ClientConfig;

use super::credentials::Credentials;
use crate::client_tls::client_config;

/// How many servers an address may name.
const SERVERS_MAX: usize = 32;
/// The longest subject that hints may have in front of theirs.
const SUBJECT_BYTES_MAX: usize = 128;
const PORT: u16 = 4222;

/// How hints go over NATS.
#[derive(Clone)]
pub struct NatsOptions {
    url: String,
    subject: String,
    credentials: Option<String>,
}

impl fmt::Debug for NatsOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may have a password in it.
        f.debug_struct("NatsOptions").field("subject", &self.subject).finish_non_exhaustive()
    }
}

/// Why hints cannot go over NATS.
#[derive(Debug)]
pub struct NatsError(pub(super) String);

impl fmt::Display for NatsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NATS: {}", self.0)
    }
}

impl std::error::Error for NatsError {}

/// What an address says, checked.
pub(super) struct Place {
    /// Hosts and ports, each tried in turn.
    pub(super) servers: Vec<(String, u16)>,
    pub(super) login: Login,
    pub(super) encryption: Encryption,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) subject: String,
}

/// Who we are.
pub(super) enum Login {
    Nobody,
    User { name: String, password: String },
    Token(String),
    Credentials(Credentials),
}

/// When a connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encryption {
    /// Never.
    Off,
    /// If the server says that it must be.
    AsTheServerSays,
    /// Always, after the server has introduced itself.
    Required,
    /// Always, before the server says anything.
    First,
}

impl NatsOptions {
    pub const SUBJECT_DEFAULT: &str = "switchboard";

    /// `nats://user:password@host:port`, or `nats://token@host:port`; several servers of a cluster are separated by commas.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), subject: Self::SUBJECT_DEFAULT.to_owned(), credentials: None }
    }

    /// The text of a file of credentials (a token and a seed), in place of a user or a token in the address.
    #[must_use]
    pub fn credentials(mut self, text: impl Into<String>) -> Self {
        self.credentials = Some(text.into());
        self
    }

    /// The subject under which hints are published. Groups of servers that share no database should not share it.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Whether everything in it can be used, as far as that can be told without a connection.
    ///
    /// # Errors
    /// When it cannot.
    pub fn check(&self) -> Result<(), NatsError> {
        self.place("check").map(drop)
    }

    /// The options with `group` as the last word of the subject.
    pub(super) fn place(&self, group: &str) -> Result<Place, NatsError> {
        let subject = format!("{}.{group}", self.subject);
        check_subject(&subject)?;
        let (scheme, rest) = self.url.split_once("://").ok_or_else(expected)?;
        let (base, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, hosts) = base.rsplit_once('@').map_or((None, base), |(user, hosts)| (Some(user), hosts));
        let servers: Vec<_> = hosts.trim_end_matches('/').split(',').map(server).collect::<Result<_, _>>()?;
        if servers.len() > SERVERS_MAX {
            return Err(NatsError(format!("the address names more than {SERVERS_MAX} servers")));
        }
        let (mut root, mut mode) = (None, None);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("tlsrootcert", file)) => root = Some(PathBuf::from(file)),
                Some(("tls", word)) => mode = Some(word),
                _ => {
                    return Err(NatsError(
                        "the address has an unknown parameter; there are tls and tlsrootcert".to_owned(),
                    ));
                }
            }
        }
        let is_near = servers.iter().all(|(host, _)| is_this_machine(host));
        let encryption = match (scheme, mode) {
            ("nats", None) if is_near => Encryption::AsTheServerSays,
            ("nats", Some("disable")) => Encryption::Off,
            ("nats" | "tls", None | Some("require")) => Encryption::Required,
            ("nats" | "tls", Some("first")) => Encryption::First,
            ("nats" | "tls", Some(_)) => {
                return Err(NatsError(
                    "tls in the address: expected disable (with nats://), require or first".to_owned(),
                ));
            }
            _ => return Err(expected()),
        };
        let named = |why| NatsError(if root.is_some() { format!("tlsrootcert {why}") } else { why });
        let tls = client_config(root.as_deref()).map_err(named)?;
        Ok(Place { servers, login: self.login(user)?, encryption, tls, subject })
    }

    fn login(&self, user: Option<&str>) -> Result<Login, NatsError> {
        let decode = |text: &str| {
            let decoded = percent_decode_str(text).decode_utf8().map(|text| text.into_owned());
            decoded.map_err(|_| NatsError("the user in the address is not text".to_owned()))
        };
        match (user, &self.credentials) {
            (None, None) => Ok(Login::Nobody),
            (Some(_), Some(_)) => {
                Err(NatsError("there are credentials and a user in the address; keep one".to_owned()))
            }
            (None, Some(text)) => {
                let why = |why| NatsError(format!("the credentials cannot be read: {why}"));
                Ok(Login::Credentials(Credentials::parse(text).map_err(why)?))
            }
            (Some(user), None) => match user.split_once(':') {
                Some((name, password)) => Ok(Login::User { name: decode(name)?, password: decode(password)? }),
                None => Ok(Login::Token(decode(user)?)),
            },
        }
    }
}

fn expected() -> NatsError {
    NatsError("the address is not valid; expected nats://USER:PASSWORD@HOST:PORT or tls://…".to_owned())
}

/// Host and port of one server. An address may repeat the scheme in front of each.
fn server(text: &str) -> Result<(String, u16), NatsError> {
    let text = text.rsplit_once("://").map_or(text, |(_, host)| host);
    let after = if text.starts_with('[') {
        text.find(']').ok_or_else(expected)? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, port) = text.split_at(after);
    let port = match port.strip_prefix(':') {
        Some(port) => port.parse().map_err(|_| expected())?,
        None if port.is_empty() => PORT,
        None => return Err(expected()),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte));
    if is_host { Ok((host.to_owned(), port)) } else { Err(expected()) }
}

/// Wildcards and other marks in a subject would reach what is not ours.
fn check_subject(subject: &str) -> Result<(), NatsError> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let is_ours =
        subject.len() <= SUBJECT_BYTES_MAX && subject.split('.').all(is_word) && !subject.starts_with("_INBOX");
    if is_ours {
        return Ok(());
    }
    Err(NatsError(format!(
        "the subject is not valid: expected up to {SUBJECT_BYTES_MAX} letters, digits, `-` and `_` in words with a dot between, without wildcards"
    )))
}

/// Whether a host is this machine, to which nobody else can listen.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Encryption, Login, NatsOptions, Place};

    fn place(url: &str) -> Place {
        NatsOptions::new(url).place("group").unwrap()
    }

    #[test]
    fn an_address_names_servers_a_login_and_when_to_encrypt() {
        let near = place("nats://127.0.0.1");
        assert_eq!(
            (near.servers, near.encryption),
            (vec![("127.0.0.1".to_owned(), 4222)], Encryption::AsTheServerSays)
        );
        let far = place("nats://a.example,nats://b.example:1234,[::1]:5");
        let servers =
            [("a.example", 4222), ("b.example", 1234), ("::1", 5)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!((&far.servers[..], far.encryption), (&servers[..], Encryption::Required));
        assert_eq!(place("nats://a.example?tls=disable").encryption, Encryption::Off);
        assert_eq!(place("tls://localhost").encryption, Encryption::Required);
        assert_eq!(place("nats://localhost?tls=first").encryption, Encryption::First);
        let login = place("nats://us%40er:p%3Aw@localhost").login;
        assert!(matches!(&login, Login::User { name, password } if name == "us@er" && password == "p:w"));
        assert!(matches!(&place("nats://s3cret@localhost").login, Login::Token(token) if token == "s3cret"));
        assert_eq!(place("nats://localhost").subject, "switchboard.group");
    }

    #[test]
    fn what_cannot_be_used_is_refused_without_being_quoted() {
        for url in [
            "localhost",
            "http://hidden@localhost",
            "nats://",
            "nats://hidden@host:port",
            "nats://hidden@host/path",
            "nats://hidden@localhost?x=1",
            "tls://hidden@localhost?tls=disable",
            "nats://hidden@a b",
            "nats://hidden@[::1",
            "nats://hidden@localhost?tlsrootcert=/absent",
        ] {
            let refused = NatsOptions::new(url).check().unwrap_err().to_string();
            assert!(!refused.contains("hidden"), "{url}: {refused}");
        }
        let with = NatsOptions::new("nats://hidden@localhost").credentials("x").check().unwrap_err().to_string();
        assert!(with.contains("keep one"), "{with}");
    }

    #[test]
    fn a_subject_reaches_nothing_but_our_own() {
        let check = |subject: &str| NatsOptions::new("nats://localhost").subject(subject).check();
        for good in ["a", "a.b", "prod-1.cell_2", "A"] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "*",
            "a.*",
            ">",
            "a.>",
            "$SYS",
            "_INBOX.x",
            "a b",
            "a\r\nPUB x",
            "ä",
            &"a".repeat(200),
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}

//! What a server says when it is up: what it serves, where the data is, who may reach it, and lines to paste that work
//! every time.

use std::fmt;
use std::net::SocketAddr;

use super::exposure::origins::reachable;
use crate::server::authentication::{Authentication, Tokens};
use crate::server::shared::Shared;
use crate::server::uri::is_loopback_host;

const CARD: &str = "/.well-known/agent-card.json";

/// Makes an id that is new each time, in any shell and without a program that may be missing.
const FRESH_ID: &str = r#"'"$(date +%s%N)$RANDOM"'"#;

/// What [`Bound::banner`](crate::Bound::banner) says, as text for a terminal.
#[derive(Clone, Debug)]
pub struct Banner {
    /// The address that the port has.
    pub(crate) addr: SocketAddr,
    /// The URL of the port itself.
    pub(crate) url: String,
    /// The URL that clients use; the port's own if there is no other.
    pub(crate) public_url: String,
    /// The name and the card of each agent, the default one first.
    pub(crate) agents: Vec<(String, String)>,
    pub(crate) data: String,
    pub(crate) tokens: usize,
    /// Whether the application decides who calls.
    pub(crate) asks_application: bool,
    /// Whether callers prove themselves by something else than tokens of this server.
    pub(crate) asks_others: bool,
    /// The file of the certificate.
    pub(crate) certificate: Option<String>,
    /// The texts of the lines to paste: for a plain call, and for a stream if the default agent streams.
    pub(crate) send: String,
    pub(crate) stream: Option<String>,
}

impl Banner {
    pub(crate) fn of(shared: &Shared, addr: SocketAddr, url: &str) -> Self {
        let site = &shared.own_site;
        let agents = site.agents.iter().enumerate().map(|(place, agent)| {
            let at = if place == 0 { shared.origins.own() } else { &agent.url };
            (agent.endpoint.card().name.clone(), format!("{at}{CARD}"))
        });
        let default = site.root.as_ref().map(|agent| agent.endpoint.card());
        // The agent's own example shows it off best, if it is one that a shell takes as it is.
        let example = default.as_ref().and_then(|card| card.skills.first()?.examples.first().cloned());
        let send = example.filter(|text| is_plain(text)).unwrap_or_else(|| "hello".to_owned());
        let streams = default.is_some_and(|card| card.capabilities.streaming == Some(true));
        Self {
            addr,
            url: url.to_owned(),
            public_url: shared.origins.own().to_owned(),
            agents: agents.collect(),
            data: shared.data.clone(),
            tokens: shared.authentication.tokens().map_or(0, Tokens::len),
            asks_application: matches!(shared.authentication, Authentication::Custom(_)),
            asks_others: shared.authentication.takes_foreign_credentials(),
            certificate: shared.tls.as_ref().and_then(|tls| Some(tls.certificate_file()?.display().to_string())),
            stream: streams.then(|| send.clone()),
            send,
        }
    }

    /// The texts of the lines to paste, where others show the agent off better than its first example does. A text with
    /// anything but letters, digits and plain punctuation is left out, because a shell would take it apart.
    #[must_use]
    pub fn examples(mut self, send: &str, stream: &str) -> Self {
        if is_plain(send) {
            self.send = send.to_owned();
        }
        if is_plain(stream) {
            self.stream = self.stream.map(|_| stream.to_owned());
        }
        self
    }

    /// What makes curl take the certificate: that it is the one of this server and, where its name does not lead to this
    /// machine, that it does.
    fn trust(&self) -> String {
        let Some(certificate) = &self.certificate else { return String::new() };
        let here = reachable(self.addr);
        let leads_here =
            [here.to_string(), format!("localhost:{}", here.port())].contains(&authority(&self.url).to_owned());
        let detour = if leads_here { String::new() } else { format!(" --connect-to ::{here}") };
        format!(" --cacert {}{detour}", quoted(certificate))
    }

    /// Who may call, and from where.
    fn access(&self) -> String {
        let address = (!self.addr.ip().to_canonical().is_loopback()).then(|| self.addr.to_string());
        let url = Some(&self.public_url).filter(|url| **url != self.url && !is_local(url)).cloned();
        let places: Vec<String> = [address, url].into_iter().flatten().collect();
        let reach = places.join(" or ");
        if self.asks_application {
            let from =
                if places.is_empty() { ", from this machine".to_owned() } else { format!(" who can reach {reach}") };
            return format!("whom the application lets in{from}");
        }
        if self.asks_others {
            let from =
                if places.is_empty() { ", from this machine".to_owned() } else { format!(" who can reach {reach}") };
            return format!("callers with a credential that the configuration names{from}");
        }
        match (self.tokens, places.is_empty()) {
            (0, true) => "everybody on this machine, and nobody else; they share all tasks".to_owned(),
            (0, false) => format!("anyone who can reach {reach}, without a token; they share all tasks"),
            (1, true) => "the holder of 1 token, from this machine".to_owned(),
            (tokens, true) => format!("holders of {tokens} tokens, from this machine"),
            (1, false) => format!("the holder of 1 token who can reach {reach}"),
            (tokens, false) => format!("holders of {tokens} tokens who can reach {reach}"),
        }
    }

    fn curl(&self, options: &str, call: &str, text: &str) -> String {
        // The line is pasted on this machine, where the port answers even if a proxy is not there yet.
        let here = format!("{}{}", self.url, base_path(&self.public_url));
        let token = if self.tokens > 0 { " -H \"Authorization: Bearer $TOKEN\"" } else { "" };
        format!(
            "curl {options}{} {here}/{call} -H 'A2A-Version: 1.0' -H 'Content-Type: application/json'{token} \
             -d '{{\"message\":{{\"messageId\":\"{FRESH_ID}\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}'",
            self.trust()
        )
    }
}

impl fmt::Display for Banner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "switchboard {}\n", env!("CARGO_PKG_VERSION"))?;
        let widest = self.agents.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, card) in &self.agents {
            writeln!(f, "  agent   {name:<widest$}  {card}")?;
        }
        writeln!(f, "  data    {}", self.data)?;
        writeln!(f, "  access  {}\n", self.access())?;
        let invitation = if self.tokens > 0 { "Put one of the tokens into TOKEN, then paste:" } else { "Try it:" };
        writeln!(f, "{invitation}\n")?;
        writeln!(f, "  {}", self.curl("-sS", "message:send", &self.send))?;
        match &self.stream {
            Some(text) => writeln!(f, "  {}", self.curl("-sSN", "message:stream", text)),
            None => Ok(()),
        }
    }
}

/// Whether a text can stand in a line for a shell, inside JSON inside quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || " .,:;?+-_/()".contains(letter))
}

/// Whether a URL leads to this machine and to no other.
fn is_local(url: &str) -> bool {
    let host = url.parse::<http::Uri>().ok().and_then(|url| url.host().map(is_loopback_host));
    host.unwrap_or(false)
}

/// The path of a URL that is known to be one.
fn base_path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |slash| rest[slash..].trim_end_matches('/'))
}

/// Host and port of a URL that is known to have both.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

/// A word as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

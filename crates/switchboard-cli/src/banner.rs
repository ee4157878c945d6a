//! What is said when the server is up: what it serves, where the data is, who may reach it, and lines to paste that
//! work every time. Taken from the configuration before it is used up, and completed with the address that was got.

use std::fmt::Write;
use std::net::SocketAddr;

use crate::agents::demo::Address;
use crate::config::{Config, DATABASE_NAME, Kind, Storage, is_local, is_local_url, reachable};

const CARD: &str = "/.well-known/agent-card.json";

/// Makes an id that is new each time, in any shell and without a program that may be missing.
const FRESH_ID: &str = r#"'"$(date +%s%N)$RANDOM"'"#;

/// What is known before the address is.
pub(crate) struct Banner {
    /// Name and slug, the default one first.
    agents: Vec<(String, String)>,
    /// Texts that show the default agent off: for a plain call, and for a stream.
    texts: (&'static str, &'static str),
    streams: bool,
    public_url: Option<String>,
    data: String,
    tokens: usize,
    /// The file of the certificate, for a shell.
    certificate: Option<String>,
}

impl Banner {
    pub(crate) fn of(config: &Config) -> Self {
        let agents = config.agents.iter().map(|agent| (agent.name.clone(), agent.slug.clone())).collect();
        let default = config.agents.first();
        let texts = match default.map(|agent| &agent.kind) {
            Some(Kind::Demo) => ("hello", "stream 40"),
            Some(Kind::Exec { .. }) | None => ("hello", "hello"),
        };
        let data = match &config.storage {
            Storage::Memory => "in memory, gone when it stops".to_owned(),
            Storage::Sqlite { folder, .. } => folder.join(DATABASE_NAME).display().to_string(),
        };
        Self {
            agents,
            texts,
            streams: default.is_some_and(|agent| *agent.settings.streaming),
            public_url: config.server.public_url.value.clone(),
            data,
            tokens: config.tokens.as_ref().map_or(0, |known| known.tokens.len())
                + usize::from(config.api_key.is_some()),
            certificate: config.tls.as_ref().map(|known| quoted(&known.cert.display().to_string())),
        }
    }

    /// `url` is that of the port itself.
    pub(crate) fn text(&self, addr: SocketAddr, url: &str) -> String {
        let public = self.public_url.as_deref().unwrap_or(url);
        let mut text = format!("switchboard {}\n\n", env!("CARGO_PKG_VERSION"));
        let widest = self.agents.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (index, (name, slug)) in self.agents.iter().enumerate() {
            let place = if index == 0 { String::new() } else { format!("/agents/{slug}") };
            let _ = writeln!(text, "  agent   {name:<widest$}  {public}{place}{CARD}");
        }
        let _ = writeln!(text, "  data    {}", self.data);
        let _ = writeln!(text, "  access  {}\n", self.access(addr));
        // Whoever pastes the line sits at this machine, where the port answers even if a proxy is not there yet.
        let here = format!("{url}{}", base_path(public));
        let options = self.trust(addr, url);
        if self.tokens > 0 {
            text.push_str("Put one of the tokens into TOKEN, then paste:\n\n");
        } else {
            text.push_str("Try it:\n\n");
        }
        let _ = writeln!(text, "  {}", self.curl(&format!("-sS{options}"), &here, "message:send", self.texts.0));
        if self.streams {
            let _ = writeln!(text, "  {}", self.curl(&format!("-sSN{options}"), &here, "message:stream", self.texts.1));
        }
        text
    }

    /// What callers are told to reach the server by: the certificate's file is for this machine alone.
    pub(crate) fn address(&self, url: &str) -> Address {
        let url = self.public_url.as_deref().unwrap_or(url).trim_end_matches('/').to_owned();
        Address { url, needs_token: self.tokens > 0 }
    }

    /// What makes curl take the certificate: that it is the one of this server and, where its name does not lead to this
    /// machine, that it does.
    fn trust(&self, addr: SocketAddr, url: &str) -> String {
        let Some(certificate) = &self.certificate else { return String::new() };
        let here = reachable(addr);
        let leads_here = [here.to_string(), format!("localhost:{}", here.port())].contains(&authority(url).to_owned());
        let detour = if leads_here { String::new() } else { format!(" --connect-to ::{here}") };
        format!(" --cacert {certificate}{detour}")
    }

    /// Who may call, and from where.
    fn access(&self, addr: SocketAddr) -> String {
        let address = (!is_local(addr)).then(|| addr.to_string());
        let url = self.public_url.clone().filter(|url| !is_local_url(url));
        let places: Vec<String> = [address, url].into_iter().flatten().collect();
        let reach = places.join(" or ");
        match (self.tokens, places.is_empty()) {
            (0, true) => "everybody on this machine, and nobody else; they share all tasks".to_owned(),
            (0, false) => format!("anyone who can reach {reach}, without a token; they share all tasks"),
            (1, true) => "the holder of 1 token, from this machine".to_owned(),
            (tokens, true) => format!("holders of {tokens} tokens, from this machine"),
            (1, false) => format!("the holder of 1 token who can reach {reach}"),
            (tokens, false) => format!("holders of {tokens} tokens who can reach {reach}"),
        }
    }

    fn curl(&self, options: &str, here: &str, call: &str, text: &str) -> String {
        let token = if self.tokens > 0 { " -H \"Authorization: Bearer $TOKEN\"" } else { "" };
        format!(
            "curl {options} {here}/{call} -H 'A2A-Version: 1.0' -H 'Content-Type: application/json'{token} \
             -d '{{\"message\":{{\"messageId\":\"{FRESH_ID}\",\"role\":\"ROLE_USER\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}'"
        )
    }
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
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,:@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
#[path = "banner_tests.rs"]
mod tests;

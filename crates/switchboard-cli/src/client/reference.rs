//! What `--agent-card` names: a host, the URL of a card, a file, or an entry of a catalog.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use switchboard::ProtocolBinding;
use switchboard::client::CardReference;

use super::error::{ClientError, Code};
use super::settings::Settings;

/// A catalog is not larger.
const CATALOG_BYTES_MAX: u64 = 1 << 20;
const WELL_KNOWN: &str = "/.well-known/agent-card.json";

/// The binding of this name, in any case and spelling.
pub(crate) fn binding(name: &str) -> Option<ProtocolBinding> {
    match name.to_ascii_lowercase().as_str() {
        "jsonrpc" | "json-rpc" => Some(ProtocolBinding::JsonRpc),
        "http+json" | "http-json" | "rest" => Some(ProtocolBinding::HttpJson),
        "grpc" => Some(ProtocolBinding::Grpc),
        _ => None,
    }
}

/// Decides what a text names, looking into the catalog if it names an entry of one.
///
/// # Errors
/// When it names nothing, or the catalog has no such entry.
pub(crate) fn resolve(text: &str, settings: &Settings) -> Result<CardReference, ClientError> {
    match text.strip_prefix("catalog:") {
        Some(name) => {
            let entry = catalog_entry(name, settings)?;
            if entry.starts_with("catalog:") {
                return Err(ClientError::usage(format!("the entry {name:?} of the catalog names another entry")));
            }
            read(&entry)
        }
        None => read(text),
    }
}

fn read(text: &str) -> Result<CardReference, ClientError> {
    let text = text.trim();
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("file") => Ok(CardReference::File(PathBuf::from(&text["file://".len()..]))),
        Some("http" | "https") => Ok(match path_of(text) {
            "" | "/" => CardReference::Base(text.trim_end_matches('/').to_owned()),
            _ => CardReference::Card(text.to_owned()),
        }),
        Some(other) => Err(ClientError::usage(format!("{other}:// names no agent card"))
            .with_hint("Use a host, an http or https URL, a file, or catalog:NAME")),
        None if text.starts_with(['/', '.', '~']) || text.ends_with(".json") || Path::new(text).is_file() => {
            Ok(CardReference::File(text.into()))
        }
        None if is_host(text) => Ok(CardReference::Base(format!("{}://{text}", scheme_for(text)))),
        None => Err(ClientError::usage(format!("{text:?} names no agent card"))
            .with_hint("Use a host, an http or https URL, a file, or catalog:NAME")),
    }
}

fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |at| &rest[at..])
}

fn is_host(text: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]_".contains(letter);
    !text.is_empty() && text.chars().all(is_allowed)
}

/// A host on this machine is called without TLS.
fn scheme_for(host: &str) -> &'static str {
    let is_local =
        host == "localhost" || host.starts_with("localhost:") || host.starts_with("127.") || host.starts_with("[::1]");
    if is_local { "http" } else { "https" }
}

/// What to try if the URL of a card leads to none: it may be the address of the agent.
pub(crate) fn well_known_hint(reference: &CardReference) -> Option<String> {
    match reference {
        CardReference::Card(url) if !url.contains("/.well-known/") => Some(format!(
            "A URL with a path is taken to be that of the card. If it is the agent's, try {}{WELL_KNOWN}",
            url.trim_end_matches('/')
        )),
        _ => None,
    }
}

/// A catalog: names, and what they stand for.
#[derive(Deserialize)]
#[serde(untagged)]
enum Catalog {
    Listed { agents: Vec<Entry> },
    Named(std::collections::BTreeMap<String, String>),
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(alias = "url", alias = "cardUrl", rename = "agentCard")]
    agent_card: String,
}

/// What the catalog has under this name.
fn catalog_entry(name: &str, settings: &Settings) -> Result<String, ClientError> {
    use std::io::Read;
    let Some(path) = settings.text("catalog") else {
        return Err(ClientError::usage("no catalog is named")
            .with_hint("Name its file with A2ACLI_CATALOG: a JSON object of names and what --agent-card takes"));
    };
    let missing =
        |why: &dyn std::fmt::Display| ClientError::new(Code::CardNotFound, format!("the catalog {path}: {why}"));
    let file = std::fs::File::open(path).map_err(|error| missing(&error))?;
    let mut text = String::new();
    file.take(CATALOG_BYTES_MAX).read_to_string(&mut text).map_err(|error| missing(&error))?;
    let catalog: Catalog = serde_json::from_str(&text)
        .map_err(|_| missing(&"is neither {\"agents\":[{\"name\":…,\"agentCard\":…}]} nor {\"NAME\":\"REF\"}"))?;
    let entries: Vec<(String, String)> = match catalog {
        Catalog::Named(entries) => entries.into_iter().collect(),
        Catalog::Listed { agents } => agents.into_iter().map(|entry| (entry.name, entry.agent_card)).collect(),
    };
    match entries.iter().find(|(known, _)| known == name) {
        Some((_, reference)) => Ok(reference.clone()),
        None => {
            let known: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).take(20).collect();
            Err(missing(&format!("has no entry {name:?}; it has {}", known.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CardReference, read, well_known_hint};

    #[test]
    fn what_names_an_agent_is_told_apart() {
        let base = |url: &str| CardReference::Base(url.to_owned());
        let card = |url: &str| CardReference::Card(url.to_owned());
        for (text, expected) in [
            ("agent.example", base("https://agent.example")),
            ("agent.example:8443", base("https://agent.example:8443")),
            ("localhost:8080", base("http://localhost:8080")),
            ("127.0.0.1:8080", base("http://127.0.0.1:8080")),
            ("https://agent.example/", base("https://agent.example")),
            ("http://h/agents/echo", card("http://h/agents/echo")),
            ("https://h/x/.well-known/agent-card.json", card("https://h/x/.well-known/agent-card.json")),
            ("file:///tmp/card.json", CardReference::File("/tmp/card.json".into())),
            ("./card.json", CardReference::File("./card.json".into())),
            ("card.json", CardReference::File("card.json".into())),
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        for text in ["", "two words", "ftp://h", "a|b"] {
            assert_eq!(read(text).unwrap_err().code.name(), "A2ACLI_ERR_USAGE", "{text}");
        }
        assert!(
            well_known_hint(&card("http://h/agents/echo/"))
                .unwrap()
                .ends_with("/agents/echo/.well-known/agent-card.json")
        );
    }
}

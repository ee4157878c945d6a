//! What `--agent-card` names: a host, the URL of a card, a file, or an entry of a catalog, which is a file or is fetched from a registry.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use serde::Deserialize;
use switchboard::ProtocolBinding;
use switchboard::client::CardReference;
use switchboard::outbound::{AddressPolicy, Client, RequestLimits, Trust};

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

/// What a text stands for.
pub(crate) struct Resolved {
    pub(crate) card: CardReference,
    /// Whether a registry named it, at another origin than its own. Its address must then be public.
    pub(crate) is_foreign: bool,
}

/// Decides what a text names, looking into a catalog if it names an entry of one.
///
/// # Errors
/// When it names nothing, or the catalog has no such entry.
pub(crate) async fn resolve(text: &str, settings: &Settings, trust: &Trust) -> Result<Resolved, ClientError> {
    let (entry, is_foreign) = named_by(text, settings, trust).await?;
    Ok(Resolved { card: read(&entry)?, is_foreign })
}

/// The host, URL or file that a text stands for, and whether another machine said so of a third one.
///
/// # Errors
/// When the catalog has no such entry.
pub(crate) async fn named_by(text: &str, settings: &Settings, trust: &Trust) -> Result<(String, bool), ClientError> {
    let text = text.trim();
    if let Some(name) = text.strip_prefix("catalog:") {
        return Ok((no_further(name, catalog_entry(name, settings)?)?, false));
    }
    let Some(registry) = text.strip_prefix("registry+") else { return Ok((text.to_owned(), false)) };
    let Some((url, name)) = registry.split_once('#').filter(|(_, name)| !name.is_empty()) else {
        return Err(ClientError::usage(format!("{text:?} names no entry of the registry")).with_hint(
            "Put the name of the entry behind #, as in registry+https://registry.example/agents.json#echo",
        ));
    };
    let entry = no_further(name, registry_entry(url, name, trust).await?)?;
    let (CardReference::Base(named) | CardReference::Card(named)) = read(&entry)? else {
        return Err(ClientError::usage(format!(
            "the entry {name:?} of the registry is neither a host nor an http URL"
        )));
    };
    let origin = |url: &str| url.split('/').take(3).collect::<Vec<_>>().join("/").to_ascii_lowercase();
    Ok((entry, origin(&named) != origin(url)))
}

fn no_further(name: &str, entry: String) -> Result<String, ClientError> {
    match entry.starts_with("catalog:") || entry.starts_with("registry+") {
        true => Err(ClientError::usage(format!("the entry {name:?} of the catalog names another entry"))),
        false => Ok(entry),
    }
}

/// What the registry at this URL, which is a catalog on another machine, has under this name. No credentials are sent.
async fn registry_entry(url: &str, name: &str, trust: &Trust) -> Result<String, ClientError> {
    let missing =
        |why: &dyn std::fmt::Display| ClientError::new(Code::CardNotFound, format!("the registry {url}: {why}"));
    let mut request = http::Request::new(Bytes::new());
    *request.uri_mut() = url.parse().map_err(|_| ClientError::usage(format!("{url:?} is no URL of a registry")))?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
    let mut limits = RequestLimits::default();
    limits.body_bytes_max = Some(CATALOG_BYTES_MAX);
    let client = Client::builder().policy(AddressPolicy::any()).trust(trust.clone()).build();
    let client = client.map_err(ClientError::usage)?;
    let answer = client.send_repeatable(request, &limits).await.map_err(|error| missing(&error))?;
    if answer.status() != http::StatusCode::OK {
        return Err(missing(&format_args!("HTTP {}", answer.status().as_u16())));
    }
    let text = answer.into_body().bytes().await.map_err(|error| missing(&error))?;
    entry_of(&text, name).map_err(|why| missing(&why))
}

/// What a host, a URL or a path stands for.
///
/// # Errors
/// When it is none of them.
pub(crate) fn read(text: &str) -> Result<CardReference, ClientError> {
    let text = text.trim();
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("file") => Ok(CardReference::File(PathBuf::from(&text["file://".len()..]))),
        Some("http" | "https") => Ok(match path_of(text) {
            "" | "/" => CardReference::Base(text.trim_end_matches('/').to_owned()),
            _ => CardReference::Card(text.to_owned()),
        }),
        Some(other) => Err(ClientError::usage(format!("{other}:// names no agent card")).with_hint(FORMS)),
        None if text.starts_with(['/', '.', '~']) || text.ends_with(".json") || Path::new(text).is_file() => {
            Ok(CardReference::File(text.into()))
        }
        None if is_host(text) => Ok(CardReference::Base(format!("{}://{text}", scheme_for(text)))),
        None => Err(ClientError::usage(format!("{text:?} names no agent card")).with_hint(FORMS)),
    }
}

const FORMS: &str = "Use a host, an http or https URL, a file, catalog:NAME or registry+https://HOST/PATH#NAME";

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
    let mut text = Vec::new();
    file.take(CATALOG_BYTES_MAX).read_to_end(&mut text).map_err(|error| missing(&error))?;
    entry_of(&text, name).map_err(|why| missing(&why))
}

fn entry_of(text: &[u8], name: &str) -> Result<String, String> {
    let catalog: Catalog = serde_json::from_slice(text)
        .map_err(|_| "is neither {\"agents\":[{\"name\":…,\"agentCard\":…}]} nor {\"NAME\":\"REF\"}".to_owned())?;
    let entries: Vec<(String, String)> = match catalog {
        Catalog::Named(entries) => entries.into_iter().collect(),
        Catalog::Listed { agents } => agents.into_iter().map(|entry| (entry.name, entry.agent_card)).collect(),
    };
    match entries.iter().find(|(known, _)| known == name) {
        Some((_, reference)) => Ok(reference.clone()),
        None => {
            let known: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).take(20).collect();
            Err(format!("has no entry {name:?}; it has {}", known.join(", ")))
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

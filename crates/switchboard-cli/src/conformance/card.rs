//! The card of the agent under test: where it was found, what it says, and which interfaces that makes.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use switchboard::client::{CardKeys, CardReference, Client, SignatureStatus};

use super::wire::http::Outgoing;
use super::wire::{Binding, Interface, Raw, Version, Wire, shown};

/// Interfaces beyond this number are left alone.
const INTERFACES_MAX: usize = 16;
/// Signatures beyond this number are left alone.
const SIGNATURES_MAX: usize = 16;
const CARD_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// The address of an agent, without a final slash.
    Base(String),
    /// The address of a card.
    Card(String),
    File(String),
}

impl Reference {
    /// A bare host is one that speaks TLS, unless it is this machine.
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if lower.starts_with("http://") || lower.starts_with("https://") {
            let path = text.split('?').next().unwrap_or(text);
            return match path.ends_with(".json") {
                true => Self::Card(text.to_owned()),
                false => Self::Base(text.trim_end_matches('/').to_owned()),
            };
        }
        if let Some(path) = text.strip_prefix("file://") {
            return Self::File(path.to_owned());
        }
        if text.starts_with(['/', '.']) || text.ends_with(".json") || Path::new(text).is_file() {
            return Self::File(text.to_owned());
        }
        let host = text.split(['/', ':']).next().unwrap_or(text);
        let scheme = if matches!(host, "localhost" | "127.0.0.1") { "http" } else { "https" };
        Self::Base(format!("{scheme}://{}", text.trim_end_matches('/')))
    }

    pub(crate) fn url(&self) -> Option<&str> {
        match self {
            Self::Base(url) | Self::Card(url) => Some(url),
            Self::File(_) => None,
        }
    }

    /// The host that the user vouches for.
    pub(crate) fn host(&self) -> Option<String> {
        let uri: http::Uri = self.url()?.parse().ok()?;
        uri.host().map(str::to_owned)
    }
}

/// A card, and how it came.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) json: Value,
    /// None for a file.
    pub(crate) raw: Option<Raw>,
    pub(crate) url: String,
    /// Whether the user named the place of the card itself, and not that of the agent.
    pub(crate) is_named: bool,
    pub(crate) interfaces: Vec<Interface>,
    /// Interfaces that the user did not choose.
    pub(crate) left_out: Vec<Interface>,
    /// Interfaces that this tool cannot speak.
    pub(crate) unknown: Vec<String>,
    /// What its signatures show, once that was looked at.
    pub(crate) signatures: Signatures,
}

/// What the signatures of a card show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Signatures {
    /// There are none, or nothing was looked at.
    #[default]
    Unchecked,
    /// Why their keys are not known.
    NoKeys(String),
    Verified,
    Refused(String),
}

impl Card {
    /// # Errors
    /// When there is none, in words.
    pub(crate) async fn find(wire: &Wire, reference: &Reference) -> Result<Self, String> {
        let urls = match reference {
            Reference::File(path) => return Self::of_file(path),
            Reference::Card(url) => vec![url.clone()],
            Reference::Base(base) => CARD_PATHS.map(|path| format!("{base}{path}")).to_vec(),
        };
        let mut first = None;
        for url in urls {
            match fetch(wire, &url, None).await {
                Ok((raw, json)) => {
                    let is_named = matches!(reference, Reference::Card(_));
                    return Ok(Self { is_named, ..Self::fetched(wire, url, raw, json).await });
                }
                Err(why) => drop(first.get_or_insert(format!("{}: {why}", shown(&url)))),
            }
        }
        Err(first.unwrap_or_default())
    }

    /// A server may give each version a card of its own, and tell them apart by `A2A-Version`. The interfaces of both count.
    async fn fetched(wire: &Wire, url: String, raw: Raw, json: Value) -> Self {
        let (mut interfaces, mut unknown) = interfaces(&json, Some(&url));
        let mut card = (raw, json);
        if let Ok((raw, json)) = fetch(wire, &url, Some("1.0")).await {
            let (own, others) = self::interfaces(&json, Some(&url));
            let own = own.into_iter().filter(|it| !interfaces.contains(it)).collect::<Vec<_>>();
            interfaces.extend(own);
            unknown.extend(others.into_iter().filter(|it| !unknown.contains(it)).collect::<Vec<_>>());
            if json["supportedInterfaces"].is_array() {
                card = (raw, json);
            }
        }
        interfaces.truncate(INTERFACES_MAX);
        let (raw, json) = card;
        let signatures = Signatures::default();
        Self { json, raw: Some(raw), url, is_named: false, interfaces, left_out: Vec::new(), unknown, signatures }
    }

    /// Verifies the signatures by the keys that the user named, else by those that the signatures name (`jku`), and else by those that
    /// lie beside the card.
    pub(crate) async fn verify(&mut self, wire: &Wire, mut keys: CardKeys) {
        let signed = self.json["signatures"].as_array().into_iter().flatten();
        let headers: Vec<Value> = signed.take(SIGNATURES_MAX).map(protected_header).collect();
        if headers.is_empty() {
            return;
        }
        let mut unknown = "its key is not known; name it with --card-key".to_owned();
        if keys == CardKeys::none() {
            let mut urls: Vec<&str> = headers.iter().filter_map(|header| header["jku"].as_str()).collect();
            urls.dedup();
            let beside = beside(&self.url);
            let is_named = !urls.is_empty();
            urls.extend(beside.as_deref().filter(|_| !is_named));
            for url in urls {
                let fetched = wire.exchange(Outgoing::get(url)).await.and_then(|raw| match raw.status {
                    200 => keys.clone().and_jwk_set(&raw.body).map_err(|error| error.to_string()),
                    status => Err(format!("HTTP {status}")),
                });
                match fetched {
                    Ok(more) => keys = more,
                    Err(_) if !is_named => {}
                    Err(why) => unknown = format!("its key set {} could not be had: {why}", shown(url)),
                }
            }
        }
        if keys == CardKeys::none() {
            self.signatures = Signatures::NoKeys(unknown);
            return;
        }
        let json = self.raw.as_ref().map(|raw| String::from_utf8_lossy(&raw.body).into_owned());
        let card = CardReference::Inline(json.unwrap_or_else(|| self.json.to_string()));
        let status = match Client::builder().build() {
            Ok(client) => client
                .discover_at(&card)
                .await
                .map(|card| card.signature_status(&keys))
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        self.signatures = match status {
            Ok(SignatureStatus::Verified { .. }) => Signatures::Verified,
            Ok(SignatureStatus::Unverifiable { reason }) | Err(reason) => Signatures::Refused(reason),
            Ok(_) => Signatures::Unchecked,
        };
    }

    fn of_file(path: &str) -> Result<Self, String> {
        let size = std::fs::metadata(path).map_err(|error| format!("{path}: {error}"))?.len();
        if size > FILE_BYTES_MAX {
            return Err(format!("{path}: is larger than {FILE_BYTES_MAX} bytes"));
        }
        let text = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        let json: Value = serde_json::from_slice(&text).map_err(|error| format!("{path}: is not JSON: {error}"))?;
        let (mut interfaces, unknown) = interfaces(&json, None);
        interfaces.truncate(INTERFACES_MAX);
        let signatures = Signatures::default();
        let (url, left_out) = (path.to_owned(), Vec::new());
        Ok(Self { json, raw: None, url, is_named: true, interfaces, left_out, unknown, signatures })
    }

    pub(crate) fn name(&self) -> String {
        shown(self.json["name"].as_str().unwrap_or("an agent without a name"))
    }

    /// Whether the card is of 1.0, alone or together with older members.
    pub(crate) fn is_v1(&self) -> bool {
        self.json["supportedInterfaces"].is_array()
    }

    pub(crate) fn can(&self, capability: &str) -> bool {
        self.json["capabilities"][capability] == true
    }

    pub(crate) fn has_extended(&self) -> bool {
        self.can("extendedAgentCard") || self.json["supportsAuthenticatedExtendedCard"] == true
    }

    /// The extensions that clients must name.
    pub(crate) fn required_extensions(&self) -> Vec<String> {
        let all = self.json["capabilities"]["extensions"].as_array().into_iter().flatten();
        let required = all.filter(|extension| extension["required"] == true);
        required.filter_map(|extension| extension["uri"].as_str().map(str::to_owned)).collect()
    }

    /// Whether callers must prove who they are.
    pub(crate) fn wants_credentials(&self) -> bool {
        let lists = ["securityRequirements", "security"].map(|name| self.json[name].as_array());
        let requirements: Vec<&Value> = lists.into_iter().flatten().flatten().collect();
        let is_empty = |one: &Value| {
            let schemes = one.get("schemes").unwrap_or(one);
            schemes.as_object().is_none_or(serde_json::Map::is_empty)
        };
        !requirements.is_empty() && !requirements.into_iter().any(is_empty)
    }
}

/// The protected header of a signature; null if there is none that can be read.
pub(crate) fn protected_header(signature: &Value) -> Value {
    let header = URL_SAFE_NO_PAD.decode(signature["protected"].as_str().unwrap_or_default()).unwrap_or_default();
    serde_json::from_slice(&header).unwrap_or_default()
}

/// Where the keys of an agent lie whose signatures do not name them.
fn beside(card_url: &str) -> Option<String> {
    let uri: http::Uri = card_url.parse().ok()?;
    Some(format!("{}://{}/.well-known/jwks.json", uri.scheme_str()?, uri.authority()?))
}

async fn fetch(wire: &Wire, url: &str, version: Option<&'static str>) -> Result<(Raw, Value), String> {
    let mut outgoing = Outgoing::get(url).with("accept", "application/json");
    if let Some(version) = version {
        outgoing = outgoing.with("a2a-version", version);
    }
    let mut raw = wire.exchange(outgoing.clone()).await?;
    // Cards are public; one that is not is asked for again.
    if raw.status == 401 && !wire.credentials.is_empty() {
        outgoing.headers.extend(wire.credentials.iter().cloned());
        raw = wire.exchange(outgoing).await?;
    }
    if raw.status != 200 {
        return Err(format!("answered HTTP {} in place of an agent card", raw.status));
    }
    let json: Value = serde_json::from_slice(&raw.body).map_err(|error| format!("is not JSON: {error}"))?;
    if !json.is_object() {
        return Err("is no agent card: expected a JSON object".to_owned());
    }
    Ok((raw, json))
}

/// The interfaces that a card declares, in either form, and the ones that this tool does not know.
pub(crate) fn interfaces(card: &Value, fetched_from: Option<&str>) -> (Vec<Interface>, Vec<String>) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    let mut add = |binding: &str, version: &str, url: &str, tenant: Option<&str>| {
        let tenant = tenant.filter(|tenant| !tenant.is_empty()).map(str::to_owned);
        match (Binding::parse(binding), Version::parse(version)) {
            (Some(binding), Some(version)) if !url.is_empty() => {
                let url = if binding == Binding::Grpc { grpc_url(url, fetched_from) } else { url.to_owned() };
                let interface = Interface { binding, version, url, tenant };
                if !known.contains(&interface) {
                    known.push(interface);
                }
            }
            (_, _) => unknown.push(shown(&format!("{binding} {version} {url}"))),
        }
    };
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    for each in card["supportedInterfaces"].as_array().into_iter().flatten() {
        let tenant = each["tenant"].as_str();
        add(&text(each, "protocolBinding"), &text(each, "protocolVersion"), &text(each, "url"), tenant);
    }
    if let Some(url) = card["url"].as_str().filter(|url| !url.is_empty()) {
        // Cards from before 0.2.5 name no version.
        let version = card["protocolVersion"].as_str().unwrap_or("0.2");
        if Version::parse(version) != Some(Version::V1_0) {
            add(card["preferredTransport"].as_str().unwrap_or("JSONRPC"), version, url, None);
            for each in card["additionalInterfaces"].as_array().into_iter().flatten() {
                add(&text(each, "transport"), version, &text(each, "url"), None);
            }
        }
    }
    (known, unknown)
}

/// The URL of a gRPC interface, which may have any scheme or none. Without one, TLS is used if the card was fetched with it.
fn grpc_url(url: &str, fetched_from: Option<&str>) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "https" | "grpcs" => "https",
        "http" | "grpc" => "http",
        _ if fetched_from.is_some_and(|from| from.starts_with("https://")) => "https",
        _ => "http",
    };
    format!("{scheme}://{}", rest.trim_start_matches('/').trim_end_matches('/'))
}

//! The card of an upstream as an operator has accepted it, and in what a newer one differs. Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard::model::{AgentCard, AgentCardSignature};

/// An agent elsewhere that an operator has accepted, as a file of `remote-agents` holds it. Other members of such a file are kept by
/// nobody: the file is written as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PinnedAgent {
    /// What it is called here; also the name of its file.
    pub id: String,
    /// The name on its card.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// What it is for, from its card.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// When its card was accepted, in seconds since 1970.
    #[serde(default, rename = "pinnedAt", skip_serializing_if = "Option::is_none")]
    pub pinned_at: Option<u64>,
    /// Its card as it came, signatures included; none in a file that was written by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Value>,
}

/// In what a card differs from the one that was accepted, one sentence each: skills, provider, keys, and the hosts that are called.
/// Texts, versions and capabilities may change.
#[must_use]
pub fn card_changes(accepted: &AgentCard, now: &AgentCard) -> Vec<String> {
    let mut changes = Vec::new();
    let mut sets = |what: &str, before: BTreeSet<String>, after: BTreeSet<String>| {
        let list = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>().join(", ");
        let (gone, new) =
            (before.difference(&after).collect::<Vec<_>>(), after.difference(&before).collect::<Vec<_>>());
        match (gone.is_empty(), new.is_empty()) {
            (true, true) => {}
            (false, true) => changes.push(format!("{what} gone: {}", list(gone))),
            (true, false) => changes.push(format!("{what} new: {}", list(new))),
            (false, false) => changes.push(format!("{what} gone: {}; new: {}", list(gone), list(new))),
        }
    };
    let skills = |card: &AgentCard| card.skills.iter().map(|skill| skill.id.clone()).collect();
    sets("skills", skills(accepted), skills(now));
    let provider = |card: &AgentCard| -> BTreeSet<String> {
        card.provider.iter().map(|known| format!("{} ({})", known.organization, known.url)).collect()
    };
    sets("provider", provider(accepted), provider(now));
    let keys = |card: &AgentCard| card.signatures.iter().map(key_of).collect();
    sets("signing keys", keys(accepted), keys(now));
    let hosts = |card: &AgentCard| card.supported_interfaces.iter().map(|known| host_of(&known.url)).collect();
    sets("hosts", hosts(accepted), hosts(now));
    changes
}

/// Names the key of a signature by what the signature says about it.
fn key_of(signature: &AgentCardSignature) -> String {
    let header = URL_SAFE_NO_PAD.decode(&signature.protected).ok();
    let header: Value = header.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
    let member = |name: &str| header.get(name).and_then(Value::as_str).map(str::to_owned);
    match (member("kid"), member("jku")) {
        (Some(kid), Some(jku)) => format!("{kid} of {jku}"),
        (Some(kid), None) => kid,
        (None, Some(jku)) => format!("a key of {jku}"),
        (None, None) => "a key without a name".to_owned(),
    }
}

/// Scheme, host and port of a URL; of gRPC addresses of 0.3, which are none, the whole.
fn host_of(url: &str) -> String {
    let parsed: Option<http::Uri> = url.parse().ok();
    match parsed.as_ref().and_then(|uri| Some((uri.scheme_str()?, uri.authority()?))) {
        Some((scheme, authority)) => format!("{scheme}://{authority}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::card_changes;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use switchboard::model::{AgentCard, AgentCardSignature, AgentInterface, AgentProvider, AgentSkill};

    fn card(skills: &[&str], provider: Option<&str>, kid: Option<&str>, url: &str) -> AgentCard {
        let skill = |id: &&str| AgentSkill { id: (*id).to_owned(), ..AgentSkill::default() };
        let sign = |kid: &str| AgentCardSignature {
            protected: URL_SAFE_NO_PAD.encode(format!(r#"{{"kid":"{kid}"}}"#)),
            signature: String::new(),
            header: None,
        };
        let interface = AgentInterface {
            url: url.to_owned(),
            protocol_binding: "JSONRPC".to_owned(),
            protocol_version: "1.0".to_owned(),
            tenant: None,
        };
        AgentCard {
            skills: skills.iter().map(skill).collect(),
            provider: provider.map(|name| AgentProvider { organization: name.to_owned(), url: "u".to_owned() }),
            signatures: kid.map(sign).into_iter().collect(),
            supported_interfaces: vec![interface],
            ..AgentCard::default()
        }
    }

    #[test]
    fn what_matters_to_an_operator_is_told_and_nothing_else() {
        let accepted = card(&["a", "b"], Some("Acme"), Some("k1"), "https://a.example/x");
        let mut same = card(&["b", "a"], Some("Acme"), Some("k1"), "https://a.example/y");
        same.description = "new words".to_owned();
        assert_eq!(card_changes(&accepted, &same), Vec::<String>::new());
        let other = card(&["a", "c"], None, Some("k2"), "https://b.example/x");
        assert_eq!(
            card_changes(&accepted, &other),
            [
                "skills gone: b; new: c",
                "provider gone: Acme (u)",
                "signing keys gone: k1; new: k2",
                "hosts gone: https://a.example; new: https://b.example"
            ]
        );
    }
}

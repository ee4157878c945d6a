//! Checks of the card. They look at what was fetched and call nothing.

use serde_json::Value;

use super::super::bench::{Checked, Finding, fault, hold, shown_head, shown_json, skip};
use super::super::card::{Card, Signatures, protected_header};
use super::super::check::{CARD, Check, Run};
use super::super::wire::{Raw, shown};
use super::{may, must, should};

pub(super) const CHECKS: &[Check] = &[
    must(
        "card-well-known",
        "CARD-DISC-001",
        "8.1, 8.2",
        CARD,
        "A server MUST make an agent card available; its well-known path is /.well-known/agent-card.json.",
        Run::Card(well_known),
    ),
    should(
        "card-content-type",
        "CARD-DISC-001",
        "8.2",
        CARD,
        "The card is a JSON document and is served as one.",
        Run::Card(content_type),
    ),
    must(
        "card-members",
        "CARD-STRUCT-001",
        "4.4.1",
        CARD,
        "An agent card MUST contain all required fields.",
        Run::Card(members),
    ),
    must(
        "card-skills",
        "CARD-STRUCT-001",
        "4.4.5",
        CARD,
        "Each skill MUST have an id, a name, a description and tags.",
        Run::Card(skills),
    ),
    must(
        "card-interfaces",
        "CARD-PROTO-001",
        "8.3",
        CARD,
        "The agent card MUST properly declare supported protocols.",
        Run::Card(interfaces),
    ),
    must(
        "card-interface-members",
        "CARD-PROTO-002",
        "8.3.1",
        CARD,
        "Each interface MUST accurately declare its binding, version and URL.",
        Run::Card(interface_members),
    ),
    should(
        "card-version-numbers",
        "VER-CLIENT-002",
        "3.6",
        CARD,
        "Versions are Major.Minor; patch numbers SHOULD NOT be used in requests, responses and cards.",
        Run::Card(version_numbers),
    ),
    should(
        "card-security-names",
        "CARD-STRUCT-001",
        "4.4.1, 7.3",
        CARD,
        "Security requirements name schemes that the card declares, or no client can meet them.",
        Run::Card(security_names),
    ),
    must(
        "card-signatures",
        "CARD-SIGN-003",
        "8.4.2",
        CARD,
        "The protected header of a signature MUST have alg and kid.",
        Run::Card(signatures),
    ),
    should(
        "card-signature-type",
        "CARD-SIGN-003",
        "8.4.2",
        CARD,
        "The protected header of a signature SHOULD have the typ JOSE.",
        Run::Card(signature_type),
    ),
    must(
        "card-signature-verified",
        "CARD-SIGN-001, CARD-SIGN-002",
        "8.4.1, 8.4.3",
        CARD,
        "The card is signed in its canonical form (RFC 8785), without its signatures, with the key that the signature names.",
        Run::Card(signature_verified),
    ),
    should(
        "card-cache-control",
        "CARD-CACHE-001",
        "8.6.1",
        CARD,
        "The endpoint of the card SHOULD send Cache-Control with max-age.",
        Run::Card(cache_control),
    ),
    should("card-etag", "CARD-CACHE-002", "8.6.1", CARD, "The endpoint of the card SHOULD send ETag.", Run::Card(etag)),
    may(
        "card-last-modified",
        "CARD-CACHE-003",
        "8.6.1",
        CARD,
        "The endpoint of the card MAY send Last-Modified.",
        Run::Card(last_modified),
    ),
];

fn fetched(card: &Card) -> Result<&Raw, Finding> {
    card.raw.as_ref().ok_or_else(|| skip("the card is a file"))
}

/// The same for rules that came with 1.0.
fn fetched_v1(card: &Card) -> Result<&Raw, Finding> {
    match card.is_v1() {
        true => fetched(card),
        false => Err(skip("the card is of an older version, which says nothing about caching")),
    }
}

fn well_known(card: &Card) -> Checked {
    fetched(card)?;
    if card.is_named {
        return Err(skip("the card was named by its own URL"));
    }
    if !card.is_v1() {
        return Err(skip("the card is of an older version, which may have another path"));
    }
    hold(card.url.contains("/.well-known/agent-card.json"), "the card at /.well-known/agent-card.json", || {
        format!("the card is at {}", shown(&card.url))
    })
}

fn content_type(card: &Card) -> Checked {
    let raw = fetched(card)?;
    let is_json = matches!(raw.media_type().as_str(), "application/json" | "application/a2a+json");
    hold(is_json, "Content-Type: application/json", || shown_head(raw))
}

fn members(card: &Card) -> Checked {
    let texts: &[&str] = match card.is_v1() {
        true => &["name", "description", "version"],
        false => &["name", "description", "version", "url", "protocolVersion"],
    };
    let mut wrong = Vec::new();
    wrong.extend(texts.iter().filter(|name| card.json[**name].as_str().is_none_or(str::is_empty)).copied());
    let lists = ["skills", "defaultInputModes", "defaultOutputModes"];
    wrong.extend(lists.into_iter().filter(|name| !card.json[*name].is_array()));
    if !card.json["capabilities"].is_object() {
        wrong.push("capabilities");
    }
    hold(wrong.is_empty(), "all required members", || format!("missing or of the wrong type: {}", wrong.join(", ")))
}

fn skills(card: &Card) -> Checked {
    for (i, skill) in card.json["skills"].as_array().into_iter().flatten().enumerate() {
        let is_text = |name: &&&str| skill[**name].as_str().is_none_or(str::is_empty);
        if let Some(name) = ["id", "name", "description"].iter().find(is_text) {
            return Err(fault(format!("skills[{i}].{name}, a text"), shown_json(skill)));
        }
        hold(skill["tags"].is_array(), &format!("skills[{i}].tags, a list"), || shown_json(skill))?;
    }
    Ok(())
}

fn interfaces(card: &Card) -> Checked {
    let declared = card.json["supportedInterfaces"].as_array().map(Vec::len);
    let is_declared = declared.map_or_else(|| card.json["url"].is_string(), |count| count > 0);
    hold(is_declared, "at least one interface", || "none".to_owned())
}

fn interface_members(card: &Card) -> Checked {
    for (i, each) in card.json["supportedInterfaces"].as_array().into_iter().flatten().enumerate() {
        for name in ["url", "protocolBinding", "protocolVersion"] {
            let is_there = each[name].as_str().is_some_and(|text| !text.is_empty());
            hold(is_there, &format!("supportedInterfaces[{i}].{name}, a text"), || shown_json(each))?;
        }
        let (url, binding) = (each["url"].as_str().unwrap_or_default(), each["protocolBinding"].as_str());
        let is_absolute = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
        let is_grpc = binding.is_some_and(|name| name.eq_ignore_ascii_case("GRPC"));
        hold(is_absolute || is_grpc, &format!("supportedInterfaces[{i}].url, an absolute URL"), || shown(url))?;
    }
    match card.unknown.is_empty() || !card.interfaces.is_empty() {
        true => Ok(()),
        false => Err(fault("an interface of A2A 1.0, 0.3 or 0.2", card.unknown.join("; "))),
    }
}

fn version_numbers(card: &Card) -> Checked {
    let all = card.json["supportedInterfaces"].as_array().into_iter().flatten();
    let patched = all.filter_map(|each| each["protocolVersion"].as_str()).find(|it| it.split('.').count() != 2);
    patched.map_or(Ok(()), |version| Err(fault("a version such as 1.0", shown(version))))
}

fn security_names(card: &Card) -> Checked {
    let lists = ["securityRequirements", "security"].map(|name| card.json[name].as_array());
    for requirement in lists.into_iter().flatten().flatten() {
        let named = requirement.get("schemes").unwrap_or(requirement);
        for name in named.as_object().into_iter().flatten().map(|(name, _)| name) {
            let is_declared = card.json["securitySchemes"].get(name).is_some();
            hold(is_declared, &format!("securitySchemes.{}", shown(name)), || {
                "a requirement names it, and the card does not declare it".to_owned()
            })?;
        }
    }
    Ok(())
}

/// The protected headers of the signatures.
fn signature_headers(card: &Card) -> Result<Vec<Value>, Finding> {
    let all = card.json["signatures"].as_array().filter(|all| !all.is_empty());
    all.map(|all| all.iter().map(protected_header).collect()).ok_or_else(|| skip("the card is not signed"))
}

fn signatures(card: &Card) -> Checked {
    for (i, header) in signature_headers(card)?.iter().enumerate() {
        for name in ["alg", "kid"] {
            hold(header[name].is_string(), &format!("{name} in the protected header of signatures[{i}]"), || {
                shown_json(header)
            })?;
        }
    }
    Ok(())
}

fn signature_type(card: &Card) -> Checked {
    for (i, header) in signature_headers(card)?.iter().enumerate() {
        hold(header["typ"] == "JOSE", &format!("typ JOSE in the protected header of signatures[{i}]"), || {
            shown_json(header)
        })?;
    }
    Ok(())
}

fn signature_verified(card: &Card) -> Checked {
    match &card.signatures {
        Signatures::Unchecked => Err(skip("the card is not signed")),
        Signatures::NoKeys(why) => Err(skip(why)),
        Signatures::Verified => Ok(()),
        Signatures::Refused(why) => Err(fault("a signature that fits the card", why)),
    }
}

fn cache_control(card: &Card) -> Checked {
    let raw = fetched_v1(card)?;
    let value = raw.header("cache-control");
    hold(value.contains("max-age"), "Cache-Control with max-age", || format!("{:?}", shown(value)))
}

fn etag(card: &Card) -> Checked {
    hold(!fetched_v1(card)?.header("etag").is_empty(), "ETag", || "no such header".to_owned())
}

fn last_modified(card: &Card) -> Checked {
    hold(!fetched_v1(card)?.header("last-modified").is_empty(), "Last-Modified", || "no such header".to_owned())
}

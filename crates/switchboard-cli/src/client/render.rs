//! Tasks, messages and cards as lines of text. Each line is `Label: value`; a text of several lines is a block: a line with its
//! label, the text indented by two blanks, and an empty line. The labels are always the same, and all text of others is cleaned, so
//! that nothing in it can pose as a line of ours.

use switchboard::client::DiscoveredCard;
use switchboard::model::{AgentCard, Artifact, Message, Part, PartContent, PushConfig, Role, SecurityScheme, Update};
use switchboard::{Json, Task, TaskState};

use super::text::{clean, clean_lines};

/// Lines of text.
#[derive(Debug, Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// One line.
    pub(crate) fn field(&mut self, label: &str, value: impl AsRef<str>) -> &mut Self {
        let value = value.as_ref();
        match value.contains(['\n', '\r']) {
            true => self.block(label, value),
            false => self.line(label, &clean(value)),
        }
    }

    fn line(&mut self, label: &str, value: &str) -> &mut Self {
        self.0.push_str(format!("{label}: {value}").trim_end());
        self.0.push('\n');
        self
    }

    /// A text of any length.
    pub(crate) fn block(&mut self, label: &str, text: &str) -> &mut Self {
        self.0.push_str(label);
        self.0.push_str(":\n");
        // The line break at the end of a text begins no further line.
        for line in clean_lines(text.strip_suffix('\n').unwrap_or(text)) {
            self.0.push_str("  ");
            self.0.push_str(&line);
            self.0.push('\n');
        }
        self.0.push('\n');
        self
    }

    pub(crate) fn blank(&mut self) -> &mut Self {
        self.0.push('\n');
        self
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// How much of a task is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detail {
    pub(crate) history: bool,
    pub(crate) metadata: bool,
}

/// The state as it is on the wire.
pub(crate) fn state_name(state: TaskState) -> &'static str {
    match state {
        TaskState::Submitted => "TASK_STATE_SUBMITTED",
        TaskState::Working => "TASK_STATE_WORKING",
        TaskState::Completed => "TASK_STATE_COMPLETED",
        TaskState::Failed => "TASK_STATE_FAILED",
        TaskState::Canceled => "TASK_STATE_CANCELED",
        TaskState::InputRequired => "TASK_STATE_INPUT_REQUIRED",
        TaskState::Rejected => "TASK_STATE_REJECTED",
        TaskState::AuthRequired => "TASK_STATE_AUTH_REQUIRED",
        TaskState::Unspecified => "TASK_STATE_UNSPECIFIED",
    }
}

/// A state by its name on the wire, or by the short form of it.
pub(crate) fn state_of(name: &str) -> Option<TaskState> {
    let wanted = name.to_ascii_uppercase().replace('-', "_");
    let wanted = wanted.strip_prefix("TASK_STATE_").unwrap_or(&wanted);
    TaskState::ALL.into_iter().find(|state| state_name(*state).strip_prefix("TASK_STATE_") == Some(wanted))
}

fn task_head(lines: &mut Lines, task: &Task) {
    lines.field("Task", task.id.as_str()).field("Context", task.context_id.as_str());
    lines.field("State", state_name(task.state()));
}

pub(crate) fn task(lines: &mut Lines, task: &Task, detail: Detail) {
    task_head(lines, task);
    if task.status.timestamp.as_ms() != 0 {
        lines.field("Updated", String::from_utf8_lossy(&task.status.timestamp.to_rfc3339()));
    }
    if let Some(message) = &task.status.message {
        status_message(lines, message, detail);
    }
    for artifact in &task.artifacts {
        self::artifact(lines, artifact, "", detail);
    }
    if detail.history {
        for message in &task.history {
            lines.field("History", format!("{} {}", role(message.role), message.message_id));
            parts(lines, &message.parts, detail);
        }
    }
    metadata(lines, task.metadata.as_ref(), detail);
}

/// The message of a status. Its texts are one block; other parts are shown like everywhere.
fn status_message(lines: &mut Lines, message: &Message, detail: Detail) {
    let text = message.text();
    if !text.is_empty() {
        lines.block("Status-Message", &text);
    }
    for part in message.parts.iter().filter(|part| part.as_text().is_none()) {
        self::part(lines, part, detail);
    }
}

fn artifact(lines: &mut Lines, artifact: &Artifact, note: &str, detail: Detail) {
    let words = [artifact.artifact_id.as_str(), artifact.name().unwrap_or_default(), note];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    lines.field("Artifact", words.join(" ").replace(['\n', '\r'], " "));
    // The chunks of a streamed text are one text.
    if artifact.parts.len() > 1 && artifact.parts.iter().all(|part| part.as_text().is_some()) {
        lines.block("Text", &artifact.text());
    } else {
        parts(lines, &artifact.parts, detail);
    }
    metadata(lines, artifact.metadata(), detail);
}

fn parts(lines: &mut Lines, parts: &[Part], detail: Detail) {
    for part in parts {
        self::part(lines, part, detail);
    }
}

fn part(lines: &mut Lines, part: &Part, detail: Detail) {
    match &part.content {
        PartContent::Text(text) => drop(lines.block("Text", text)),
        PartContent::Data(json) => drop(lines.block("Data", &pretty(json))),
        PartContent::Raw(bytes) => file(lines, part, &format!("{} bytes", bytes.len()), None),
        PartContent::Url(url) => file(lines, part, "unknown", Some(url)),
    }
    metadata(lines, part.metadata(), detail);
}

fn file(lines: &mut Lines, part: &Part, size: &str, url: Option<&str>) {
    let name = part.filename().unwrap_or("unnamed");
    let url = url.map(|url| format!(" {url}")).unwrap_or_default();
    lines.field("File", format!("{name} {} {size}{url}", part.effective_media_type()).replace(['\n', '\r'], " "));
}

fn metadata(lines: &mut Lines, metadata: Option<&Json>, detail: Detail) {
    if let (Some(json), true) = (metadata, detail.metadata) {
        lines.block("Metadata", &pretty(json));
    }
}

fn pretty(json: &Json) -> String {
    let value: Result<serde_json::Value, _> = serde_json::from_str(json.as_str());
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| json.as_str().to_owned())
}

fn role(role: Role) -> &'static str {
    match role {
        Role::User => "ROLE_USER",
        Role::Agent => "ROLE_AGENT",
    }
}

pub(crate) fn message(lines: &mut Lines, message: &Message, detail: Detail) {
    if let Some(context) = &message.context_id {
        lines.field("Context", context.as_str());
    }
    lines.field("Message-Id", message.message_id.as_str()).field("Role", role(message.role));
    parts(lines, &message.parts, detail);
    metadata(lines, message.metadata.as_ref(), detail);
}

/// One event of a stream.
pub(crate) fn update(lines: &mut Lines, update: &Update, detail: Detail) {
    match update {
        Update::Task(view) => task(lines, &view.task, detail),
        Update::Message(said) => message(lines, said, detail),
        Update::Status(update) => {
            lines.field("Task", update.task_id.as_str()).field("Context", update.context_id.as_str());
            lines.field("State", state_name(update.status.state));
            if let Some(message) = &update.status.message {
                status_message(lines, message, detail);
            }
            metadata(lines, update.metadata.as_ref(), detail);
        }
        Update::Artifact(update) => {
            lines.field("Task", update.task_id.as_str());
            let note = match (update.append, update.last_chunk) {
                (true, true) => "(appended, last chunk)",
                (true, false) => "(appended)",
                (false, true) => "(last chunk)",
                (false, false) => "",
            };
            artifact(lines, &update.artifact, note, detail);
            metadata(lines, update.metadata.as_ref(), detail);
        }
    }
}

pub(crate) fn push_config(lines: &mut Lines, config: &PushConfig) {
    lines.field("Push-Config", config.id.as_str()).field("Task", config.task_id.as_str()).field("Url", &config.url);
    if let Some(authentication) = &config.authentication {
        lines.field("Auth-Scheme", &authentication.scheme);
    }
}

pub(crate) fn card(lines: &mut Lines, card: &AgentCard, signature: &str) {
    lines.field("Name", &card.name).field("Description", &card.description).field("Version", &card.version);
    if let Some(provider) = &card.provider {
        lines.field("Provider", format!("{} {}", provider.organization, provider.url));
    }
    let yes = |capability: Option<bool>| if capability == Some(true) { "yes" } else { "no" };
    lines.field("Streaming", yes(card.capabilities.streaming));
    lines.field("Push-Notifications", yes(card.capabilities.push_notifications));
    lines.field("Extended-Card", yes(card.capabilities.extended_agent_card));
    for extension in &card.capabilities.extensions {
        let required = if extension.required { " (required)" } else { "" };
        lines.field("Extension", format!("{}{required}", extension.uri));
    }
    for interface in &card.supported_interfaces {
        let tenant = interface.tenant.as_deref().map(|tenant| format!(" tenant {tenant}")).unwrap_or_default();
        let (binding, version) = (&interface.protocol_binding, &interface.protocol_version);
        lines.field("Interface", format!("{binding} {version} {}{tenant}", interface.url));
    }
    for (name, scheme) in &card.security_schemes {
        lines.field("Security", format!("{name} {}", scheme_words(scheme)));
    }
    for skill in &card.skills {
        lines.field("Skill", format!("{} {}", skill.id, skill.name));
    }
    lines.field("Signature", signature);
}

fn scheme_words(scheme: &SecurityScheme) -> String {
    match scheme {
        SecurityScheme::ApiKey { location, name, .. } => format!("API key in {location} {name}"),
        SecurityScheme::Http { scheme, .. } => format!("HTTP {scheme}"),
        SecurityScheme::OAuth2 { flow, .. } => format!("OAuth 2.0 {:?}", flow.kind),
        SecurityScheme::OpenIdConnect { url, .. } => format!("OpenID Connect {url}"),
        SecurityScheme::MutualTls { .. } => "mutual TLS".to_owned(),
    }
}

/// The card as JSON of 1.0: as it came if it is one, else converted.
pub(crate) fn card_json(found: &DiscoveredCard) -> Vec<u8> {
    let value: Option<serde_json::Value> = serde_json::from_slice(found.json()).ok();
    match value {
        Some(value) if value.get("supportedInterfaces").is_some() => value.to_string().into_bytes(),
        _ => card_of(found.card()),
    }
}

/// A card as JSON of 1.0.
pub(crate) fn card_of(card: &AgentCard) -> Vec<u8> {
    let mut json = Vec::new();
    switchboard_core::dialect::v1_0::encode_card(card, &mut json);
    json
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;

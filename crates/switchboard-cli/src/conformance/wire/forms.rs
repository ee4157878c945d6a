//! How the versions spell what checks ask for and look at. Calls are written from the form of 1.0; answers are not converted, only
//! looked into.

use serde_json::{Map, Value, json};

use super::{Binding, Interface, Operation, Version};

/// The three shapes that objects have on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// 1.0 on every binding.
    V1,
    /// 0.2 and 0.3 over JSON-RPC: a `kind` in each object, states in small letters.
    Kinds,
    /// 0.3 over HTTP+JSON and gRPC: JSON of its protobuf messages.
    Proto03,
}

impl Interface {
    pub(crate) fn form(&self) -> Form {
        match (self.version, self.binding) {
            (Version::V1_0, _) => Form::V1,
            (Version::V0_3 | Version::V0_2, Binding::JsonRpc) => Form::Kinds,
            (Version::V0_3 | Version::V0_2, Binding::HttpJson | Binding::Grpc) => Form::Proto03,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Submitted,
    Working,
    Completed,
    Failed,
    Canceled,
    Rejected,
    InputRequired,
    AuthRequired,
}

/// Each state in each form.
const STATES: [(State, [&str; 3]); 8] = [
    (State::Submitted, ["TASK_STATE_SUBMITTED", "submitted", "TASK_STATE_SUBMITTED"]),
    (State::Working, ["TASK_STATE_WORKING", "working", "TASK_STATE_WORKING"]),
    (State::Completed, ["TASK_STATE_COMPLETED", "completed", "TASK_STATE_COMPLETED"]),
    (State::Failed, ["TASK_STATE_FAILED", "failed", "TASK_STATE_FAILED"]),
    (State::Canceled, ["TASK_STATE_CANCELED", "canceled", "TASK_STATE_CANCELLED"]),
    (State::Rejected, ["TASK_STATE_REJECTED", "rejected", "TASK_STATE_REJECTED"]),
    (State::InputRequired, ["TASK_STATE_INPUT_REQUIRED", "input-required", "TASK_STATE_INPUT_REQUIRED"]),
    (State::AuthRequired, ["TASK_STATE_AUTH_REQUIRED", "auth-required", "TASK_STATE_AUTH_REQUIRED"]),
];

impl State {
    pub(crate) fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether a blocking call has nothing more to wait for.
    pub(crate) fn is_settled(self) -> bool {
        self.is_terminal() || matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// What an answer to a send, or an event of a stream, is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Payload<'a> {
    Task(&'a Value),
    Message(&'a Value),
    Status(&'a Value),
    Artifact(&'a Value),
    /// None of them, or more than one.
    Unknown,
}

impl Form {
    fn column(self) -> usize {
        match self {
            Self::V1 => 0,
            Self::Kinds => 1,
            Self::Proto03 => 2,
        }
    }

    pub(crate) fn state_named(self, name: &str) -> Option<State> {
        STATES.iter().find(|(_, names)| names[self.column()] == name).map(|(state, _)| *state)
    }

    pub(crate) fn state_names(self) -> Vec<&'static str> {
        STATES.iter().map(|(_, names)| names[self.column()]).collect()
    }

    /// The state of a task or of an update of its status; none if it is spelled otherwise than this version does.
    pub(crate) fn state(self, task: &Value) -> Option<State> {
        self.state_named(task["status"]["state"].as_str()?)
    }

    pub(crate) fn roles(self) -> [&'static str; 2] {
        match self {
            Self::V1 | Self::Proto03 => ["ROLE_USER", "ROLE_AGENT"],
            Self::Kinds => ["user", "agent"],
        }
    }

    /// What the list of parts of a message is called.
    pub(crate) fn parts_member(self) -> &'static str {
        match self {
            Self::V1 | Self::Kinds => "parts",
            Self::Proto03 => "content",
        }
    }

    /// What is in an answer to a send, or in an event.
    pub(crate) fn payload(self, value: &Value) -> Payload<'_> {
        if self == Self::Kinds {
            return match value["kind"].as_str() {
                Some("task") => Payload::Task(value),
                Some("message") => Payload::Message(value),
                Some("status-update") => Payload::Status(value),
                Some("artifact-update") => Payload::Artifact(value),
                Some(_) | None => Payload::Unknown,
            };
        }
        let members = ["task", "message", "statusUpdate", "artifactUpdate"];
        let mut found = members.into_iter().filter(|name| value.get(*name).is_some_and(|it| !it.is_null()));
        match (found.next(), found.next()) {
            (Some("task"), None) => Payload::Task(&value["task"]),
            (Some("message"), None) => Payload::Message(&value["message"]),
            (Some("statusUpdate"), None) => Payload::Status(&value["statusUpdate"]),
            (Some("artifactUpdate"), None) => Payload::Artifact(&value["artifactUpdate"]),
            (Some(_) | None, _) => Payload::Unknown,
        }
    }

    /// The id and the URL of a push configuration.
    pub(crate) fn push_config(self, value: &Value) -> (Option<String>, Option<String>) {
        let config = if self == Self::V1 { value } else { &value["pushNotificationConfig"] };
        let text = |name: &str| config[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let named = value["name"].as_str().and_then(|name| name.rsplit_once('/')).map(|(_, id)| id.to_owned());
        (text("id").or(named.filter(|_| self == Self::Proto03)), text("url"))
    }

    /// The list of push configurations.
    pub(crate) fn push_configs(self, value: &Value) -> Vec<Value> {
        let list = if self == Self::Kinds { value } else { &value["configs"] };
        list.as_array().cloned().unwrap_or_default()
    }

    /// Spells the parameters of a call, which come in the form of 1.0. None where the version has no such call. For 0.3 over
    /// HTTP+JSON this is the body; the rest is in the path.
    pub(super) fn params(self, operation: Operation, v1: &Value) -> Option<Value> {
        match self {
            Self::V1 => Some(v1.clone()),
            Self::Kinds => kinds(operation, v1),
            Self::Proto03 => proto03(operation, v1),
        }
    }
}

/// The members of an object that have a value, under new names.
fn renamed(of: &Value, names: &[(&str, &str)]) -> Map<String, Value> {
    let found = names.iter().filter_map(|(from, to)| Some(((*to).to_owned(), of.get(*from)?.clone())));
    found.collect()
}

fn kinds(operation: Operation, v1: &Value) -> Option<Value> {
    Some(match operation {
        Operation::Send | Operation::Stream => {
            let mut params = json!({ "configuration": configuration(v1, "pushNotificationConfig") });
            if let Some(message) = v1.get("message") {
                params["message"] = kinds_message(message);
            }
            params
        }
        Operation::Get => Value::Object(renamed(v1, &[("id", "id"), ("historyLength", "historyLength")])),
        Operation::Cancel | Operation::Subscribe => Value::Object(renamed(v1, &[("id", "id")])),
        Operation::CreatePush => json!({
            "taskId": v1["taskId"],
            "pushNotificationConfig": renamed(v1, &[("id", "id"), ("url", "url"), ("token", "token")]),
        }),
        Operation::GetPush | Operation::DeletePush => {
            Value::Object(renamed(v1, &[("taskId", "id"), ("id", "pushNotificationConfigId")]))
        }
        Operation::ListPush => Value::Object(renamed(v1, &[("taskId", "id")])),
        Operation::ExtendedCard => json!({}),
        Operation::List => return None,
    })
}

fn kinds_message(message: &Value) -> Value {
    let mut spelled = message.clone();
    spelled["kind"] = json!("message");
    if message["role"] == "ROLE_USER" {
        spelled["role"] = json!("user");
    }
    if let Some(parts) = message["parts"].as_array() {
        let spell = |part: &Value| match part.get("text") {
            Some(text) => json!({ "kind": "text", "text": text }),
            None => json!({ "kind": "file", "file": { "bytes": part["raw"], "mimeType": part["mediaType"] } }),
        };
        spelled["parts"] = parts.iter().map(spell).collect();
    }
    spelled
}

/// 0.2 wants `acceptedOutputModes` to be there.
fn configuration(v1: &Value, push: &str) -> Value {
    let given = &v1["configuration"];
    let mut spelled = renamed(given, &[("historyLength", "historyLength")]);
    let modes = given.get("acceptedOutputModes").cloned();
    spelled.insert("acceptedOutputModes".to_owned(), modes.unwrap_or_else(|| json!(["text/plain"])));
    spelled.insert("blocking".to_owned(), json!(given["returnImmediately"] != true));
    if let Some(config) = given.get("taskPushNotificationConfig") {
        spelled.insert(push.to_owned(), config.clone());
    }
    Value::Object(spelled)
}

fn proto03(operation: Operation, v1: &Value) -> Option<Value> {
    let text = |name: &str| v1[name].as_str().unwrap_or_default();
    let task = format!("tasks/{}", text("id"));
    let parent = format!("tasks/{}", text("taskId"));
    let config = format!("{parent}/pushNotificationConfigs/{}", text("id"));
    Some(match operation {
        Operation::Send | Operation::Stream => {
            let mut params = json!({ "configuration": configuration(v1, "pushNotification") });
            if let Some(message) = v1.get("message") {
                let mut spelled = message.clone();
                if let Some(spelled) = spelled.as_object_mut()
                    && let Some(parts) = spelled.remove("parts")
                {
                    spelled.insert("content".to_owned(), proto03_parts(&parts));
                }
                params["message"] = spelled;
            }
            params
        }
        Operation::Get => {
            let mut params = renamed(v1, &[("historyLength", "historyLength")]);
            params.insert("name".to_owned(), json!(task));
            Value::Object(params)
        }
        Operation::Cancel | Operation::Subscribe => json!({ "name": task }),
        Operation::CreatePush => json!({
            "parent": parent,
            "configId": text("id"),
            "config": {
                "name": config,
                "pushNotificationConfig": renamed(v1, &[("id", "id"), ("url", "url"), ("token", "token")]),
            },
        }),
        Operation::GetPush | Operation::DeletePush => json!({ "name": config }),
        Operation::ListPush => json!({ "parent": parent }),
        Operation::ExtendedCard => json!({}),
        Operation::List => return None,
    })
}

fn proto03_parts(parts: &Value) -> Value {
    let spell = |part: &Value| match part.get("text") {
        Some(text) => json!({ "text": text }),
        None => json!({ "file": { "fileWithBytes": part["raw"], "mimeType": part["mediaType"] } }),
    };
    parts.as_array().into_iter().flatten().map(spell).collect()
}

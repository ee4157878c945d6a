//! Webhooks, and the names of resources by which they and their tasks are called: `tasks/{id}` and
//! `tasks/{id}/pushNotificationConfigs/{id}`.

use std::fmt::Arguments;

use super::generated as wire;
use crate::call::PushConfigPage;
use crate::dialect::json::Check;
use crate::dialect::protobuf::{Holds, ListField, Lists, each, list, text};
use crate::model::{AuthenticationInfo, ConfigId, PushConfig, TaskId};

/// The lists of a webhook.
pub(super) const CONFIG: Lists =
    &[ListField(wire::PushNotificationConfig::AUTHENTICATION, "authentication", Holds::One(AUTHENTICATION))];
const AUTHENTICATION: Lists = &[ListField(wire::AuthenticationInfo::SCHEMES, "schemes", Holds::Texts)];
/// The lists of a webhook with its name.
pub(super) const NAMED: Lists = &[ListField(
    wire::TaskPushNotificationConfig::PUSH_NOTIFICATION_CONFIG,
    "pushNotificationConfig",
    Holds::One(CONFIG),
)];
/// The lists of a registration.
pub(super) const CREATE: Lists =
    &[ListField(wire::CreateTaskPushNotificationConfigRequest::CONFIG, "config", Holds::One(NAMED))];
/// The lists of a page of webhooks.
pub(super) const CONFIGS: Lists =
    &[ListField(wire::ListTaskPushNotificationConfigResponse::CONFIGS, "configs", Holds::Many("entries", NAMED))];

impl wire::PushNotificationConfig {
    pub(super) fn of(config: &PushConfig) -> Self {
        let authentication = config.authentication.as_ref().map(|authentication| wire::AuthenticationInfo {
            schemes: vec![authentication.scheme.clone()],
            credentials: authentication.credentials.clone().unwrap_or_default(),
        });
        Self {
            id: config.id.as_str().to_owned(),
            url: config.url.clone(),
            token: config.token.clone().unwrap_or_default(),
            authentication,
        }
    }

    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>, task_id: TaskId) -> PushConfig {
        let authentication = self.authentication.map(|sent| {
            let schemes = check.lines(format_args!("{at}.authentication.schemes"), list(sent.schemes));
            let scheme = schemes.into_iter().find(|scheme| !scheme.is_empty());
            if scheme.is_none() {
                let description = "needs at least one scheme, such as Bearer";
                check.violation(format_args!("{at}.authentication.schemes"), description);
            }
            let credentials = format_args!("{at}.authentication.credentials");
            let credentials = check.optional_line(credentials, Some(sent.credentials));
            AuthenticationInfo { scheme: scheme.unwrap_or_default(), credentials }
        });
        PushConfig {
            id: check.id(format_args!("{at}.id"), text(&self.id)).unwrap_or_default(),
            task_id,
            url: check.push_url(format_args!("{at}.url"), Some(self.url)),
            token: check.optional_line(format_args!("{at}.token"), Some(self.token)),
            authentication,
        }
    }

    /// Reads a webhook that must be there.
    fn read_required(config: Option<Self>, check: &mut Check<'_>, at: Arguments<'_>, task_id: TaskId) -> PushConfig {
        match config {
            Some(config) => config.read(check, at, task_id),
            None => {
                check.violation(at, "is required");
                PushConfig { id: ConfigId::default(), task_id, url: String::new(), token: None, authentication: None }
            }
        }
    }
}

impl wire::CreateTaskPushNotificationConfigRequest {
    pub(super) fn of(config: &PushConfig) -> Self {
        Self {
            parent: task_name(&config.task_id),
            config_id: config.id.as_str().to_owned(),
            config: Some(wire::TaskPushNotificationConfig::of(config)),
        }
    }

    /// The task is named by `parent`, the config by its own id, by `configId`, or by its name.
    pub(super) fn read(self, check: &mut Check<'_>) -> PushConfig {
        let task_id = read_task_name(check, format_args!("parent"), &self.parent);
        let sent = self.config.unwrap_or_default();
        let Some(config) = sent.push_notification_config else {
            let at = format_args!("config.pushNotificationConfig");
            return wire::PushNotificationConfig::read_required(None, check, at, task_id);
        };
        let mut config = config.read(check, format_args!("config.pushNotificationConfig"), task_id);
        if config.id.is_empty()
            && let Some(id) = check.id(format_args!("configId"), text(&self.config_id))
        {
            config.id = id;
        }
        if config.id.is_empty() && !sent.name.is_empty() {
            config.id = read_push_config_name(check, format_args!("config.name"), &sent.name).1;
        }
        config
    }
}

impl wire::TaskPushNotificationConfig {
    /// A config is a resource, so it has a name beside its id, unless it has yet to be given one.
    pub(super) fn of(config: &PushConfig) -> Self {
        let name = if config.id.is_empty() { String::new() } else { push_config_name(&config.task_id, &config.id) };
        Self { name, push_notification_config: Some(wire::PushNotificationConfig::of(config)) }
    }

    /// Reads what a server says of a webhook. Its name says whose it is, and its id where it has none of its own.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> PushConfig {
        let (task_id, id) = read_push_config_name(check, format_args!("{at}name"), &self.name);
        let (config, field) = (self.push_notification_config, format_args!("{at}pushNotificationConfig"));
        let config = wire::PushNotificationConfig::read_required(config, check, field, task_id);
        if config.id.is_empty() { PushConfig { id, ..config } } else { config }
    }
}

impl wire::ListTaskPushNotificationConfigResponse {
    pub(super) fn of(page: &PushConfigPage) -> Self {
        Self {
            configs: page.configs.iter().map(wire::TaskPushNotificationConfig::of).collect(),
            next_page_token: page.next_page_token.clone(),
        }
    }

    pub(super) fn read(self, check: &mut Check<'_>) -> PushConfigPage {
        let read = |config: wire::TaskPushNotificationConfig, check: &mut Check<'_>, at: Arguments<'_>| {
            config.read(check, format_args!("{at}."))
        };
        let max = ("entries", check.limits.list_items_max);
        PushConfigPage {
            configs: each(check, format_args!("configs"), max, self.configs, read),
            next_page_token: self.next_page_token,
        }
    }
}

/// Reads the name of a task.
pub(super) fn read_task_name(check: &mut Check<'_>, field: Arguments<'_>, name: &str) -> TaskId {
    let id = name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'));
    if id.is_none() {
        check.violation(field, "must be tasks/{id}");
    }
    id.map_or_else(TaskId::default, |id| check.required_id(field, text(id)))
}

/// Reads the name of a push config.
pub(super) fn read_push_config_name(check: &mut Check<'_>, field: Arguments<'_>, name: &str) -> (TaskId, ConfigId) {
    let ids = name.strip_prefix("tasks/").and_then(|rest| rest.split_once("/pushNotificationConfigs/"));
    match ids.filter(|(task, config)| [task, config].iter().all(|id| !id.is_empty() && !id.contains('/'))) {
        Some((task, config)) => (check.required_id(field, text(task)), check.required_id(field, text(config))),
        None => {
            check.violation(field, "must be tasks/{id}/pushNotificationConfigs/{id}");
            (TaskId::default(), ConfigId::default())
        }
    }
}

pub(super) fn task_name(task: &TaskId) -> String {
    format!("tasks/{task}")
}

pub(super) fn push_config_name(task: &TaskId, config: &ConfigId) -> String {
    format!("tasks/{task}/pushNotificationConfigs/{config}")
}

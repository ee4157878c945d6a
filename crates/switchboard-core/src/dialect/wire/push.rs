//! Webhooks.

use std::borrow::Cow;
use std::fmt::Arguments;

use serde::{Deserialize, Serialize};

use crate::dialect::json::{Check, LazyMember, List, Obj, Text};
use crate::model::{self, AuthenticationInfo, ConfigId, TaskId};

use super::{PushForm, Spelling};

/// A webhook, in 1.0 with the task it belongs to and the tenant.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct PushConfig<'a> {
    #[serde(borrow)]
    tenant: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    task_id: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow)]
    token: Option<Text<'a>>,
    #[serde(borrow)]
    authentication: Option<Obj<Authentication<'a>>>,
}

/// 1.0 names one scheme, 0.3 a list of which the model keeps the first.
#[derive(Default, Deserialize, Serialize)]
struct Authentication<'a> {
    #[serde(borrow)]
    scheme: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    schemes: Option<LazyMember<'a, List<Text<'a>>>>,
    #[serde(borrow)]
    credentials: Option<Text<'a>>,
}

/// A webhook of 0.3 and whose it is: `taskId` in its schema, `name` in its proto. Registering one over HTTP is done in three
/// ways: the whole request, only its `config`, or a config without its envelope.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct TaskPushConfig<'a> {
    #[serde(borrow)]
    pub(in crate::dialect) tenant: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    pub(in crate::dialect) task_id: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow, alias = "config_id")]
    pub(in crate::dialect) config_id: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    name: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow)]
    pub(in crate::dialect) config: Option<LazyMember<'a, Obj<InnerConfig<'a>>>>,
    #[serde(borrow, alias = "push_notification_config")]
    pub(in crate::dialect) push_notification_config: Option<Obj<PushConfig<'a>>>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct InnerConfig<'a> {
    #[serde(borrow, alias = "push_notification_config")]
    pub(in crate::dialect) push_notification_config: Option<Obj<PushConfig<'a>>>,
}

/// What is written of a webhook.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum WrittenConfig<'a> {
    Flat(Box<PushConfig<'a>>),
    OfTask(Box<TaskPushConfig<'a>>),
}

impl<'a> WrittenConfig<'a> {
    pub(super) fn of(config: &'a model::PushConfig, spelling: &Spelling) -> Self {
        let inner = PushConfig::of(config, spelling);
        let task_id = Some(LazyMember::Own(Text::from(config.task_id.as_str())));
        let task_id = task_id.filter(|_| spelling.push == PushForm::OfTask);
        let name = (spelling.push == PushForm::Resource).then(|| {
            LazyMember::Own(Text(Cow::Owned(format!("tasks/{}/pushNotificationConfigs/{}", config.task_id, config.id))))
        });
        match spelling.push {
            PushForm::Flat => Self::Flat(Box::new(inner)),
            PushForm::OfTask | PushForm::Resource => Self::OfTask(Box::new(TaskPushConfig {
                task_id,
                name,
                push_notification_config: Some(Obj(inner)),
                ..TaskPushConfig::default()
            })),
        }
    }
}

impl<'a> WrittenConfig<'a> {
    /// The same in a request that names its tenant.
    pub(super) fn for_tenant(mut self, tenant: Option<Text<'a>>) -> Self {
        match &mut self {
            Self::Flat(config) => config.tenant = tenant.map(LazyMember::Own),
            Self::OfTask(config) => config.tenant = tenant,
        }
        self
    }
}

/// The request of 0.3's proto that registers a webhook. The servers of the SDKs read all of it over HTTP, too, where the proto has
/// only its `config` in the body and the task in the path.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateConfig<'a> {
    tenant: Option<Text<'a>>,
    parent: String,
    config_id: Option<Text<'a>>,
    config: WrittenConfig<'a>,
}

impl<'a> CreateConfig<'a> {
    pub(super) fn of(config: &'a model::PushConfig, tenant: Option<Text<'a>>, spelling: &Spelling) -> Self {
        Self {
            tenant,
            parent: format!("tasks/{}", config.task_id),
            config_id: Some(config.id.as_str()).filter(|id| !id.is_empty()).map(Text::from),
            config: WrittenConfig::of(config, spelling),
        }
    }
}

impl<'a> PushConfig<'a> {
    pub(super) fn of(config: &'a model::PushConfig, spelling: &Spelling) -> Self {
        let authentication = config.authentication.as_ref().map(|AuthenticationInfo { scheme, credentials }| {
            let scheme = Text::from(scheme.as_str());
            let credentials = credentials.as_deref().map(Text::from);
            Obj(match spelling.push {
                PushForm::Flat => Authentication { scheme: Some(LazyMember::Own(scheme)), schemes: None, credentials },
                PushForm::OfTask | PushForm::Resource => {
                    let schemes = Some(LazyMember::Own([scheme].into_iter().collect()));
                    Authentication { scheme: None, schemes, credentials }
                }
            })
        });
        let task_id = Some(config.task_id.as_str()).filter(|id| spelling.push == PushForm::Flat && !id.is_empty());
        Self {
            tenant: None,
            id: Some(config.id.as_str()).filter(|id| !id.is_empty()).map(Text::from),
            task_id: task_id.map(|id| LazyMember::Own(Text::from(id))),
            url: Some(Text::from(config.url.as_str())),
            token: config.token.as_deref().map(Text::from),
            authentication,
        }
    }

    /// Reads a webhook and the tenant that stands beside its fields. `at` is the place of the config in its request, with a dot
    /// at its end; empty, if it is the request.
    pub(in crate::dialect) fn read(
        self,
        check: &mut Check<'_>,
        at: Arguments<'_>,
        spelling: &Spelling,
    ) -> (Option<String>, model::PushConfig) {
        // In 0.3 both stand beside it.
        let own = |member: Option<LazyMember<'a, Text<'a>>>| member.filter(|_| spelling.push == PushForm::Flat);
        let tenant = check.only(format_args!("{at}tenant"), own(self.tenant));
        let tenant = check.id(format_args!("{at}tenant"), tenant);
        let task_id = check.only(format_args!("{at}taskId"), own(self.task_id));
        let authentication = self.authentication.and_then(|Obj(authentication)| match spelling.push {
            PushForm::Flat => Some(authentication.read_one(check, at)),
            PushForm::OfTask | PushForm::Resource => authentication.read_list(check, at),
        });
        let config = model::PushConfig {
            id: check.id(format_args!("{at}id"), self.id).unwrap_or_default(),
            task_id: check.id(format_args!("{at}taskId"), task_id).unwrap_or_default(),
            url: check.push_url(format_args!("{at}url"), self.url),
            token: check.optional_line(format_args!("{at}token"), self.token),
            authentication,
        };
        (tenant, config)
    }

    /// Reads a webhook of 0.3 that must be there and belongs to this task.
    pub(in crate::dialect) fn read_required(
        config: Option<Obj<Self>>,
        check: &mut Check<'_>,
        at: &str,
        task_id: TaskId,
        spelling: &Spelling,
    ) -> model::PushConfig {
        match config {
            Some(Obj(config)) => {
                let (_, config) = config.read(check, format_args!("{at}."), spelling);
                model::PushConfig { task_id, ..config }
            }
            None => {
                check.violation(format_args!("{at}"), "is required");
                let (id, url) = (ConfigId::default(), String::new());
                model::PushConfig { id, task_id, url, token: None, authentication: None }
            }
        }
    }
}

impl Authentication<'_> {
    fn read_one(self, check: &mut Check<'_>, at: Arguments<'_>) -> AuthenticationInfo {
        let scheme = check.only(format_args!("{at}authentication.scheme"), self.scheme);
        let scheme = check.optional_line(format_args!("{at}authentication.scheme"), scheme);
        if scheme.is_none() {
            check.violation(format_args!("{at}authentication.scheme"), "is required and must not be empty");
        }
        AuthenticationInfo {
            scheme: scheme.unwrap_or_default(),
            credentials: check.optional_line(format_args!("{at}authentication.credentials"), self.credentials),
        }
    }

    fn read_list(self, check: &mut Check<'_>, at: Arguments<'_>) -> Option<AuthenticationInfo> {
        let schemes = check.only(format_args!("{at}authentication.schemes"), self.schemes);
        let schemes = check.lines(format_args!("{at}authentication.schemes"), schemes);
        let credentials = check.optional_line(format_args!("{at}authentication.credentials"), self.credentials);
        let scheme = schemes.into_iter().find(|scheme| !scheme.is_empty());
        match (scheme, credentials) {
            (Some(scheme), credentials) => Some(AuthenticationInfo { scheme, credentials }),
            // An empty message is how a proto says nothing.
            (None, None) => None,
            (None, Some(_)) => {
                let description = "needs at least one scheme, such as Bearer";
                check.violation(format_args!("{at}authentication.schemes"), description);
                None
            }
        }
    }
}

/// The ids in the name of a webhook's resource.
fn read_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("tasks/")?.split_once("/pushNotificationConfigs/")
}

impl TaskPushConfig<'_> {
    /// Reads what a server says of a webhook.
    pub(super) fn read_reply(self, check: &mut Check<'_>, spelling: &Spelling) -> model::PushConfig {
        let name = check.only(format_args!("name"), self.name);
        let task_id = match (name.as_ref().and_then(|name| read_name(&name.0)), self.task_id) {
            (Some((task, _)), _) => TaskId::from(task),
            (None, sent) => {
                let sent = check.only(format_args!("taskId"), sent);
                check.required_id(format_args!("taskId"), sent)
            }
        };
        PushConfig::read_required(self.push_notification_config, check, "pushNotificationConfig", task_id, spelling)
    }
}

//! Webhooks.

use std::fmt::Arguments;

use crate::call::PushConfigPage;
use crate::dialect::json::Check;
use crate::dialect::protobuf::{Holds, ListField, Lists, each, text};
use crate::model::{AuthenticationInfo, PushConfig};

use super::generated as wire;

/// The lists of a page of webhooks.
pub(super) const CONFIGS: Lists =
    &[ListField(wire::ListTaskPushNotificationConfigsResponse::CONFIGS, "configs", Holds::Many("entries", &[]))];

impl wire::TaskPushNotificationConfig {
    pub(super) fn of(config: &PushConfig, tenant: Option<&str>) -> Self {
        let authentication = config.authentication.as_ref().map(|authentication| wire::AuthenticationInfo {
            scheme: authentication.scheme.clone(),
            credentials: authentication.credentials.clone().unwrap_or_default(),
        });
        Self {
            tenant: tenant.unwrap_or_default().to_owned(),
            id: config.id.as_str().to_owned(),
            task_id: config.task_id.as_str().to_owned(),
            url: config.url.clone(),
            token: config.token.clone().unwrap_or_default(),
            authentication,
        }
    }

    /// Reads a webhook and the tenant that stands beside its fields. `at` is the place of the config in its request, with a dot
    /// at its end; empty, if it is the request.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>) -> (Option<String>, PushConfig) {
        let tenant = check.id(format_args!("{at}tenant"), text(&self.tenant));
        let authentication = self.authentication.map(|sent| {
            let scheme = check.optional_line(format_args!("{at}authentication.scheme"), Some(sent.scheme));
            if scheme.is_none() {
                check.violation(format_args!("{at}authentication.scheme"), "is required and must not be empty");
            }
            let credentials = format_args!("{at}authentication.credentials");
            let credentials = check.optional_line(credentials, Some(sent.credentials));
            AuthenticationInfo { scheme: scheme.unwrap_or_default(), credentials }
        });
        let config = PushConfig {
            id: check.id(format_args!("{at}id"), text(&self.id)).unwrap_or_default(),
            task_id: check.id(format_args!("{at}taskId"), text(&self.task_id)).unwrap_or_default(),
            url: check.push_url(format_args!("{at}url"), Some(self.url)),
            token: check.optional_line(format_args!("{at}token"), Some(self.token)),
            authentication,
        };
        (tenant, config)
    }
}

impl wire::ListTaskPushNotificationConfigsResponse {
    pub(super) fn of(page: &PushConfigPage) -> Self {
        Self {
            configs: page.configs.iter().map(|config| wire::TaskPushNotificationConfig::of(config, None)).collect(),
            next_page_token: page.next_page_token.clone(),
        }
    }

    pub(super) fn read(self, check: &mut Check<'_>) -> PushConfigPage {
        let read = |config: wire::TaskPushNotificationConfig, check: &mut Check<'_>, at: Arguments<'_>| {
            config.read(check, format_args!("{at}.")).1
        };
        let max = ("entries", check.limits.list_items_max);
        PushConfigPage {
            configs: each(check, format_args!("configs"), max, self.configs, read),
            next_page_token: self.next_page_token,
        }
    }
}

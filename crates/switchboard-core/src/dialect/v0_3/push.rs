//! What both spellings share about webhooks: a 0.3 client names a list of schemes, of which the model keeps the first.

use std::fmt::Arguments;

use serde::Deserialize;

use crate::dialect::json::{Check, List, Obj, Object, Text, write_strings};
use crate::model::{AuthenticationInfo, ConfigId, PushConfig, TaskId};

#[derive(Deserialize)]
pub(super) struct WirePushConfig<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    url: Option<String>,
    token: Option<String>,
    authentication: Option<Obj<WireAuthentication>>,
}

#[derive(Deserialize)]
struct WireAuthentication {
    schemes: Option<List<String>>,
    credentials: Option<String>,
}

/// A webhook of a task. Fields are named relative to `at`, the place of the config in its request.
pub(super) fn convert(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    task_id: TaskId,
    config: WirePushConfig<'_>,
) -> PushConfig {
    let authentication = config.authentication.and_then(|Obj(authentication)| {
        let schemes = check.lines(format_args!("{at}.authentication.schemes"), authentication.schemes);
        let credentials = authentication.credentials;
        let credentials = check.optional_line(format_args!("{at}.authentication.credentials"), credentials);
        let scheme = schemes.into_iter().find(|scheme| !scheme.is_empty());
        match (scheme, credentials) {
            (Some(scheme), credentials) => Some(AuthenticationInfo { scheme, credentials }),
            // An empty message is how a proto says nothing.
            (None, None) => None,
            (None, Some(_)) => {
                check.violation(
                    format_args!("{at}.authentication.schemes"),
                    "needs at least one scheme, such as Bearer",
                );
                None
            }
        }
    });
    PushConfig {
        id: check.id(format_args!("{at}.id"), config.id).unwrap_or_default(),
        task_id,
        url: check.push_url(format_args!("{at}.url"), config.url),
        token: check.optional_line(format_args!("{at}.token"), config.token),
        authentication,
    }
}

/// As [`convert`], where there must be one.
pub(super) fn convert_required(
    check: &mut Check<'_>,
    at: Arguments<'_>,
    task_id: TaskId,
    config: Option<Obj<WirePushConfig<'_>>>,
) -> PushConfig {
    match config {
        Some(Obj(config)) => convert(check, at, task_id, config),
        None => {
            check.violation(at, "is required");
            PushConfig { id: ConfigId::default(), task_id, url: String::new(), token: None, authentication: None }
        }
    }
}

/// Writes the config itself, without the task it belongs to.
pub(super) fn encode(config: &PushConfig, out: &mut Vec<u8>) {
    let mut object = Object::open(out);
    if !config.id.is_empty() {
        object.str("id", config.id.as_str());
    }
    object.str("url", &config.url);
    object.str_if_set("token", config.token.as_deref());
    if let Some(AuthenticationInfo { scheme, credentials }) = &config.authentication {
        let mut authentication = Object::open(object.key("authentication"));
        write_strings(authentication.key("schemes"), std::slice::from_ref(scheme));
        authentication.str_if_set("credentials", credentials.as_deref());
        authentication.close();
    }
    object.close();
}

//! Registers a webhook, either with a message or by its own operation: checks how many a task may have, and what a
//! replaced config keeps.

use switchboard_core::model::{AuthenticationInfo, PushConfig};

use crate::ports::store::PushChange;
use crate::state::webhooks::WebhookEndpoint;

/// The change that adds a config to a task, or replaces the one with the same id. Refused with a reason if there are
/// too many.
pub(crate) fn put_config(configs: &[PushConfig], mut put: PushChange, max: u32) -> Result<Vec<PushChange>, String> {
    if let PushChange::Put { config, .. } = &mut put
        && let Some(known) = configs.iter().find(|known| known.id == config.id)
    {
        keep_secrets(known, config);
        return Ok(vec![PushChange::Delete { id: known.id.clone() }, put]);
    }
    if configs.len() >= max as usize {
        return Err(format!("task has {} push configs, the most it keeps; delete one first", configs.len()));
    }
    Ok(vec![put])
}

/// Clients read configs without their secrets, so an update that leaves secrets out keeps the stored ones. Secrets are
/// meant for one receiver: they are dropped when the config moves to another host. Otherwise a caller who cannot read
/// them could have them sent to an address of its own.
fn keep_secrets(known: &PushConfig, update: &mut PushConfig) {
    if WebhookEndpoint::of(&known.url) != WebhookEndpoint::of(&update.url) {
        return;
    }
    if update.token.is_none() {
        update.token.clone_from(&known.token);
    }
    match (&known.authentication, &mut update.authentication) {
        (Some(known), None) => update.authentication = Some(known.clone()),
        // Credentials of another scheme are not valid under this one.
        (Some(AuthenticationInfo { scheme, credentials: Some(secret) }), Some(update))
            if update.credentials.is_none() && scheme.eq_ignore_ascii_case(&update.scheme) =>
        {
            update.credentials = Some(secret.clone());
        }
        (Some(_) | None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use switchboard_core::model::Dialect;

    use super::*;

    fn config(url: &str, token: Option<&str>, authentication: Option<(&str, Option<&str>)>) -> PushConfig {
        let authentication = authentication.map(|(scheme, credentials)| AuthenticationInfo {
            scheme: scheme.to_owned(),
            credentials: credentials.map(str::to_owned),
        });
        let (url, token) = (url.to_owned(), token.map(str::to_owned));
        PushConfig { id: "mine".into(), task_id: "t".into(), url, token, authentication }
    }

    #[test]
    fn an_update_keeps_the_secrets_it_leaves_out() {
        let here = "https://hooks.example/in";
        let known = config(here, Some("k"), Some(("Bearer", Some("c"))));
        let table = [
            ("nothing given", config(here, None, None), known.clone()),
            ("as it was read", config(here, None, Some(("bearer", None))), {
                config(here, Some("k"), Some(("bearer", Some("c"))))
            }),
            ("another path", config("https://hooks.example:443/other", None, None), {
                config("https://hooks.example:443/other", Some("k"), Some(("Bearer", Some("c"))))
            }),
            ("new ones", config(here, Some("k2"), Some(("Basic", Some("d")))), {
                config(here, Some("k2"), Some(("Basic", Some("d"))))
            }),
            ("another scheme", config(here, None, Some(("Basic", None))), {
                config(here, Some("k"), Some(("Basic", None)))
            }),
            ("another host", config("https://elsewhere.example/in", None, None), {
                config("https://elsewhere.example/in", None, None)
            }),
            ("another port", config("https://hooks.example:444/in", None, Some(("Bearer", None))), {
                config("https://hooks.example:444/in", None, Some(("Bearer", None)))
            }),
        ];
        for (name, update, expected) in table {
            let put = PushChange::Put { config: update, dialect: Dialect::V1_0, after_seq: 0 };
            let changes = put_config(std::slice::from_ref(&known), put, 1).unwrap();
            let [PushChange::Delete { .. }, PushChange::Put { config, .. }] = changes.as_slice() else {
                panic!("{name}: replaced")
            };
            assert!(*config == expected, "{name}");
        }
    }
}

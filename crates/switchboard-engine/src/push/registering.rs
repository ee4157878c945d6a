//! Registering a webhook, whichever way it is asked for: how many a task may have, and what a new version of one keeps.

use switchboard_core::model::{AuthenticationInfo, PushConfig};

use super::WebhookEndpoint;
use crate::ports::store::PushChange;

/// The changes that put a config beside the ones a task has; one of the same id is replaced. Refused with a sentence if
/// there are too many.
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

/// A client reads its configs without their secrets, so it can only send them back without: what an update leaves out
/// stays as it was. Secrets were given for one receiver. They do not follow a config that moves to another host, or a
/// caller who cannot read them could have them sent to an address of its own.
fn keep_secrets(known: &PushConfig, update: &mut PushConfig) {
    if WebhookEndpoint::of(&known.url) != WebhookEndpoint::of(&update.url) {
        return;
    }
    if update.token.is_none() {
        update.token.clone_from(&known.token);
    }
    match (&known.authentication, &mut update.authentication) {
        (Some(known), None) => update.authentication = Some(known.clone()),
        // The credentials of another scheme prove nothing under this one.
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

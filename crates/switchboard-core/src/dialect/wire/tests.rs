//! What is written is read back as it was, in every form, up to what the form cannot say.

use std::sync::Arc;

use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

use crate::call::{Reply, Request, SendMessage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, append, read_body};
use crate::dialect::testing::{card, push_config, request, send, update};
use crate::dialect::{v0_3, v1_0};
use crate::error::ProtocolError;
use crate::model::{
    AgentCard, Artifact, Dialect, Message, OAuthFlow, OAuthFlowKind, Part, PartContent, PushConfig, SecurityScheme,
    TaskView, Update,
};

use super::spelling::{PartForm, Spelling, V0_3, V0_3_REST, V1_0};
use super::{
    SendParams, read_card, read_push_config, read_update, write_call, write_card_0_3, write_card_1_0, write_reply,
    write_update,
};

const SPELLINGS: [&Spelling; 3] = [&V1_0, &V0_3, &V0_3_REST];

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    assert!(!out.contains(&b'\n'), "a form fits on one line: {}", String::from_utf8_lossy(&out));
    out
}

/// The losses of a form are listed in the head of its dialect.
fn lose_of_parts(parts: &mut [Part], spelling: &Spelling) {
    for part in parts.iter_mut().filter(|_| spelling.parts != PartForm::Flat) {
        match &part.content {
            PartContent::Text(_) => (part.filename, part.media_type) = (None, None),
            PartContent::Data(data) => {
                (part.filename, part.media_type) = (None, None);
                if !data.is_object() {
                    part.metadata.take_if(|metadata| metadata.as_str() == "{}");
                }
            }
            PartContent::Raw(_) | PartContent::Url(_) => {}
        }
    }
}

fn lose_of_message(message: &mut Message, spelling: &Spelling) {
    lose_of_parts(&mut message.parts, spelling);
    if !spelling.has_references {
        message.reference_task_ids.clear();
    }
}

fn lose_of_artifact(artifact: &mut Artifact, spelling: &Spelling) {
    lose_of_parts(&mut artifact.parts, spelling);
}

fn without_losses(mut update: Update, spelling: &Spelling) -> Update {
    match &mut update {
        Update::Task(view) => {
            let task = Arc::make_mut(&mut view.task);
            task.history.iter_mut().for_each(|message| lose_of_message(Arc::make_mut(message), spelling));
            task.artifacts.iter_mut().for_each(|artifact| lose_of_artifact(Arc::make_mut(artifact), spelling));
            task.status.message.iter_mut().for_each(|message| lose_of_message(Arc::make_mut(message), spelling));
        }
        Update::Message(message) => lose_of_message(Arc::make_mut(message), spelling),
        Update::Status(update) => {
            update.status.message.iter_mut().for_each(|message| lose_of_message(Arc::make_mut(message), spelling));
        }
        Update::Artifact(update) => lose_of_artifact(Arc::make_mut(&mut update.artifact), spelling),
    }
    update
}

fn send_without_losses(mut send: SendMessage, spelling: &Spelling) -> SendMessage {
    lose_of_message(&mut send.message, spelling);
    send
}

type DecodeCall = fn(&str, Option<&str>, &DecodeLimits) -> Result<Decoded, ProtocolError>;

/// Lists of webhooks have no pages in 0.3.
fn request_without_losses(mut request: Request, spelling: &Spelling) -> Request {
    match &mut request {
        Request::SendMessage(send) | Request::SendStreamingMessage(send) => {
            lose_of_message(&mut send.message, spelling)
        }
        Request::ListPushConfigs { page_size, page_token, .. } if spelling.parts != PartForm::Flat => {
            (*page_size, *page_token) = (None, None);
        }
        _ => {}
    }
    request
}

/// A card of 0.3 has no signatures, no device flow, no word for PKCE.
fn card_without_losses(mut card: AgentCard) -> AgentCard {
    card.signatures.clear();
    card.security_schemes.retain(|(_, scheme)| {
        !matches!(scheme, SecurityScheme::OAuth2 { flow: OAuthFlow { kind: OAuthFlowKind::DeviceCode, .. }, .. })
    });
    for (_, scheme) in &mut card.security_schemes {
        if let SecurityScheme::OAuth2 { flow, .. } = scheme {
            flow.pkce_required = false;
        }
    }
    // The version of the protocol is told once, for all interfaces.
    card.supported_interfaces.iter_mut().for_each(|own| own.protocol_version = "0.3.0".to_owned());
    let mut seen = Vec::new();
    card.supported_interfaces.retain(|own| {
        let is_new = !seen.contains(&(own.url.clone(), own.protocol_binding.clone()));
        seen.push((own.url.clone(), own.protocol_binding.clone()));
        is_new
    });
    card
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_update_is_read_as_it_was_written(update in update()) {
        for spelling in SPELLINGS {
            let text = written(|out| write_update(&update, spelling, out));
            let read = read_update(&text, spelling, Dialect::V1_0, &DecodeLimits::default());
            prop_assert_eq!(read.unwrap(), without_losses(update.clone(), spelling));
        }
    }

    #[test]
    fn a_send_is_read_as_it_was_written(send in send(), tenant in proptest::option::of("[a-z]{1,9}")) {
        for spelling in SPELLINGS {
            let params = SendParams::of(&send, tenant.as_deref(), spelling);
            let text = written(|out| append(out, &params).unwrap());
            let limits = DecodeLimits::default();
            let mut check = Check::new(&limits);
            let (read_tenant, read) = read_body::<SendParams<'_>>(&text).unwrap().read(&mut check, spelling);
            let read = check.finish(read).unwrap();
            prop_assert_eq!(&read_tenant, &tenant);
            prop_assert_eq!(read, send_without_losses(send.clone(), spelling));
        }
    }

    #[test]
    fn a_call_is_read_as_it_was_written(request in request(), tenant in proptest::option::of("[a-z]{1,9}")) {
        for (spelling, decode) in [(&V1_0, v1_0::decode_call as DecodeCall), (&V0_3, v0_3::rpc::decode_call)] {
            let mut params = Vec::new();
            let Some(method) = write_call(&request, tenant.as_deref(), spelling, &mut params) else {
                prop_assert!(matches!(request, Request::ListTasks(_)));
                continue;
            };
            let read = decode(method, Some(std::str::from_utf8(&params).unwrap()), &DecodeLimits::default()).unwrap();
            prop_assert_eq!(&read.tenant, &tenant);
            prop_assert_eq!(read.request, request_without_losses(request.clone(), spelling));
        }
    }

    #[test]
    fn a_webhook_is_read_as_it_was_written(config in push_config(), ids in ("[a-z]{1,9}", "[a-z]{1,9}")) {
        let config = PushConfig { task_id: ids.0.into(), id: ids.1.into(), ..config };
        for spelling in SPELLINGS {
            let text = written(|out| write_reply(&Reply::PushConfig(config.clone()), spelling, out));
            prop_assert_eq!(read_push_config(&text, spelling, &DecodeLimits::default()).unwrap(), config.clone());
        }
    }

    #[test]
    fn a_card_of_1_0_is_read_as_it_was_written(card in card(&["1.0", "0.3", "2.7"])) {
        let text = written(|out| write_card_1_0(&card, out));
        prop_assert_eq!(read_card(&text, &DecodeLimits::default()).unwrap(), card);
    }

    #[test]
    fn a_card_of_0_3_is_read_as_it_was_written(card in card(&["0.3", "0.2.5"])) {
        let text = written(|out| write_card_0_3(&card, out));
        prop_assert_eq!(read_card(&text, &DecodeLimits::default()).unwrap(), card_without_losses(card));
    }
}

#[test]
fn a_task_without_a_kind_is_a_task() {
    let text = br#"{"id":"t","contextId":"c","status":{"state":"working"}}"#;
    let Update::Task(TaskView { task, .. }) =
        read_update(text, &V0_3, Dialect::V0_3, &DecodeLimits::default()).unwrap()
    else {
        panic!("it is a task");
    };
    assert_eq!(task.id.as_str(), "t");
}

#[test]
fn what_is_wrong_with_an_update_is_named() {
    for (spelling, text, expected) in [
        (&V1_0, r#"{"task":{"id":"","status":{"state":"done"}}}"#, "task.status.state"),
        (&V1_0, r#"{"other":{}}"#, "result"),
        (&V0_3, r#"{"kind":"news"}"#, "kind"),
        (&V0_3_REST, r#"{"statusUpdate":{"taskId":"t"}}"#, "statusUpdate.status"),
    ] {
        let error = read_update(text.as_bytes(), spelling, Dialect::V1_0, &DecodeLimits::default()).unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{text}: {error:?}");
    }
}

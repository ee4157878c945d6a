//! What is written is read back as it was, in every form, up to what the form cannot say.

use std::sync::Arc;

use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

use crate::call::{ListTasks, PushConfigPage, Reply, Request, SendMessage, TaskPage};
use crate::dialect::json::{Check, DecodeLimits, Decoded, append, read_body};
use crate::dialect::testing::{card, every_refusal, push_config, request, send, task, update};
use crate::dialect::{OutgoingCall, Transport, WrittenCall, codes, v0_3, v1_0};
use crate::error::ProtocolError;
use crate::model::{
    AgentCard, Artifact, ConfigId, Dialect, Message, OAuthFlow, OAuthFlowKind, Part, PartContent, PushConfig,
    SecurityScheme, TaskId, TaskState, TaskView, Timestamp, Update,
};

use super::{
    PartForm, ReceivedError, SendParams, Spelling, V0_3, V0_3_REST, V1_0, read_card, read_error, read_push_config,
    read_update, write_call, write_card_0_3, write_card_1_0, write_http_error, write_reply, write_rpc_error,
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
    parts.iter_mut().filter(|_| spelling.parts != PartForm::Flat).for_each(lose_of_part);
}

/// Removes what both spellings of 0.3 lose of a part.
pub(in crate::dialect) fn lose_of_part(part: &mut Part) {
    let (has_names, is_marked) = match &part.content {
        PartContent::Text(_) => (false, false),
        PartContent::Data(data) => (false, !data.is_object()),
        PartContent::Raw(_) | PartContent::Url(_) => (true, false),
    };
    part.change_details(|details| {
        if !has_names {
            (details.filename, details.media_type) = (None, None);
        }
        if is_marked {
            details.metadata.take_if(|metadata| metadata.as_str() == "{}");
        }
    });
}

pub(in crate::dialect) fn lose_of_message(message: &mut Message, spelling: &Spelling) {
    lose_of_parts(&mut message.parts, spelling);
    if !spelling.has_references {
        message.reference_task_ids.clear();
    }
}

fn lose_of_artifact(artifact: &mut Artifact, spelling: &Spelling) {
    lose_of_parts(&mut artifact.parts, spelling);
}

pub(in crate::dialect) fn without_losses(mut update: Update, spelling: &Spelling) -> Update {
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
            lose_of_message(&mut send.message, spelling);
        }
        Request::ListPushConfigs { page_size, page_token, .. } if spelling.parts != PartForm::Flat => {
            (*page_size, *page_token) = (None, None);
        }
        _ => {}
    }
    request
}

/// A card of 0.3 has no signatures, no device flow, no word for PKCE.
pub(in crate::dialect) fn card_without_losses(mut card: AgentCard) -> AgentCard {
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

#[test]
fn a_refusal_is_read_as_it_was_written() {
    for error in every_refusal() {
        for spelling in SPELLINGS {
            let reply = written(|out| write_rpc_error(&error, "\"7\"", spelling, out));
            let read = read_error(&reply).unwrap();
            assert_eq!(read.code, i64::from(codes::of(&error).jsonrpc));
            assert_eq!(read.protocol_error(None).as_ref(), Some(&error));
            let http = codes::of(&error).http;
            let body = written(|out| write_http_error(&error, http, spelling, out));
            assert_eq!(read_error(&body).unwrap().protocol_error(Some(http)), Some(error.clone()));
        }
    }
}

/// What other servers send has a code and a text, and nothing else that can be relied on.
#[test]
fn a_foreign_refusal_is_read_as_far_as_it_is_understood() {
    let read = |text: &str| read_error(text.as_bytes());
    let plain = read(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"nope","data":"t-1"}}"#).unwrap();
    assert_eq!(plain, ReceivedError { code: -32001, message: "nope".to_owned(), ..ReceivedError::default() });
    assert_eq!(plain.protocol_error(None), Some(ProtocolError::TaskNotFound { id: "".into() }));
    let unknown = read(r#"{"code":-32099,"message":"odd","data":[1,{"@type":7}],"more":{}}"#).unwrap();
    assert_eq!((unknown.code, unknown.protocol_error(None)), (-32099, None));
    let gone = unknown.protocol_error(Some(503));
    assert_eq!(gone, Some(ProtocolError::Unavailable { reason: "odd".to_owned(), retry_after_s: 0 }));
    let google = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow down","details":[
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"}]}}"#;
    let google = read(google).unwrap();
    assert_eq!((google.code, google.retry_after_s), (0, Some(2)));
    for none in ["", "[]", "null", "{}", r#"{"error":"text"}"#, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "\u{fffd}"] {
        assert_eq!(read(none), None, "{none}");
    }
}

/// What is answered to each request, in the dialects that have the forms.
const DIALECTS: [(Dialect, &Spelling); 3] =
    [(Dialect::V1_0, &V1_0), (Dialect::V0_3, &V0_3), (Dialect::V0_3Rest, &V0_3_REST)];

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_page_of_tasks_is_read_as_it_was_written(tasks in proptest::collection::vec(task(), 0..3), token in "[a-z]{0,9}") {
        let list = Request::ListTasks(ListTasks::default());
        let page = TaskPage {
            tasks: tasks.into_iter().map(|task| TaskView::whole(task.into())).collect(),
            next_page_token: token,
            page_size: 50,
            total_size: 7,
        };
        let shown = format!("{page:?}");
        let text = written(|out| Dialect::V1_0.write_reply(&Reply::Tasks(page), out));
        let Ok(Reply::Tasks(read)) = Dialect::V1_0.read_reply(&list, &text, &DecodeLimits::default()) else {
            panic!("{}", String::from_utf8_lossy(&text));
        };
        prop_assert_eq!(format!("{read:?}"), shown);
    }

    #[test]
    fn a_list_of_webhooks_is_read_as_it_was_written(configs in proptest::collection::vec(push_config(), 0..3)) {
        let list = Request::ListPushConfigs { task_id: "t".into(), page_size: None, page_token: None };
        let place = |(i, config)| PushConfig { task_id: "t".into(), id: format!("c{i}").into(), ..config };
        let configs: Vec<PushConfig> = configs.into_iter().enumerate().map(place).collect();
        for (dialect, _) in DIALECTS {
            let page = PushConfigPage { configs: configs.clone(), next_page_token: String::new() };
            let text = written(|out| dialect.write_reply(&Reply::PushConfigs(page), out));
            let Ok(Reply::PushConfigs(read)) = dialect.read_reply(&list, &text, &DecodeLimits::default()) else {
                panic!("{}", String::from_utf8_lossy(&text));
            };
            prop_assert_eq!(&read.configs, &configs);
        }
    }

    /// What is sent to a path has the body that a server finds there.
    #[test]
    fn a_send_over_http_is_read_as_it_was_written(send in send()) {
        let request = Request::SendMessage(send.clone().into());
        for (dialect, spelling, path) in
            [(Dialect::V1_0, &V1_0, "/message:send"), (Dialect::V0_3Rest, &V0_3_REST, "/v1/message:send")]
        {
            let (verb, at, body) = over_http(dialect, &request, None).unwrap();
            prop_assert_eq!((verb, at.as_str()), ("POST", path));
            let limits = DecodeLimits::default();
            let (_, read) = match dialect {
                Dialect::V1_0 => v1_0::decode_send_body(&body, &limits),
                _ => v0_3::rest::decode_send_body(&body, &limits),
            }
            .unwrap();
            prop_assert_eq!(read, send_without_losses(send.clone(), spelling));
        }
    }
}

#[test]
fn a_state_that_an_agent_of_0_3_cannot_determine_is_final() {
    let get = Request::GetTask { id: TaskId::from("t"), history_length: None };
    let read = |dialect: Dialect, state: &str| {
        let task = format!(r#"{{"kind":"task","id":"t","contextId":"c","status":{{"state":"{state}"}}}}"#);
        match dialect.read_reply(&get, task.as_bytes(), &DecodeLimits::default()) {
            Ok(Reply::Task(view)) => Some(view.task.state()),
            Ok(_) => panic!("another reply"),
            Err(_) => None,
        }
    };
    assert_eq!(read(Dialect::V0_3, "unknown"), Some(TaskState::Failed));
    assert_eq!(read(Dialect::V0_3Rest, "TASK_STATE_UNSPECIFIED"), Some(TaskState::Failed));
    // In 1.0 it is no state at all. A name that is none is an error in every version.
    assert_eq!(read(Dialect::V1_0, "TASK_STATE_UNSPECIFIED"), Some(TaskState::Unspecified));
    assert_eq!(read(Dialect::V1_0, "lost"), None);
    assert_eq!([Dialect::V0_3, Dialect::V0_3Rest].map(|dialect| read(dialect, "lost")), [None, None]);
}

fn over_http(
    dialect: Dialect,
    request: &Request,
    tenant: Option<&str>,
) -> Result<(&'static str, String, Vec<u8>), ProtocolError> {
    let call = OutgoingCall { request, over: Transport::Http, tenant, idempotency_key: None };
    match dialect.write_call(&call)? {
        WrittenCall::Http { verb, path, body } => Ok((verb, path, body)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_call_has_its_path() {
    let (task, config) = (|| TaskId::from("a/b c:d"), || ConfigId::from("ü"));
    let list = ListTasks {
        context_id: Some("c&d".into()),
        state: Some(TaskState::Working),
        page_size: Some(5),
        status_since: Timestamp::parse_rfc3339("2026-02-03T10:00:00.000Z"),
        include_artifacts: true,
        ..ListTasks::default()
    };
    let of_1_0 = "GET /tasks?contextId=c%26d&status=TASK_STATE_WORKING&pageSize=5&statusTimestampAfter=2026-02-03T10%3A00%3A00.000Z&includeArtifacts=true";
    for (request, of_1_0, of_0_3) in [
        (
            Request::GetTask { id: task(), history_length: Some(3) },
            "GET /tasks/a%2Fb%20c%3Ad?historyLength=3",
            "GET /v1/tasks/a%2Fb%20c%3Ad?historyLength=3",
        ),
        (
            Request::CancelTask { id: task(), metadata: None },
            "POST /tasks/a%2Fb%20c%3Ad:cancel {}",
            "POST /v1/tasks/a%2Fb%20c%3Ad:cancel {}",
        ),
        (
            Request::SubscribeToTask { id: task() },
            "GET /tasks/a%2Fb%20c%3Ad:subscribe",
            "GET /v1/tasks/a%2Fb%20c%3Ad:subscribe",
        ),
        (Request::ListTasks(list), of_1_0, "A2A 0.3 has no call for ListTasks"),
        (
            Request::GetPushConfig { task_id: "t".into(), id: config() },
            "GET /tasks/t/pushNotificationConfigs/%C3%BC",
            "GET /v1/tasks/t/pushNotificationConfigs/%C3%BC",
        ),
        (
            Request::DeletePushConfig { task_id: "t".into(), id: config() },
            "DELETE /tasks/t/pushNotificationConfigs/%C3%BC",
            "DELETE /v1/tasks/t/pushNotificationConfigs/%C3%BC",
        ),
        (
            Request::ListPushConfigs { task_id: "t".into(), page_size: Some(2), page_token: Some("x=".to_owned()) },
            "GET /tasks/t/pushNotificationConfigs?pageSize=2&pageToken=x%3D",
            "GET /v1/tasks/t/pushNotificationConfigs",
        ),
        (Request::GetExtendedAgentCard, "GET /extendedAgentCard", "GET /v1/card"),
    ] {
        for (dialect, expected) in [(Dialect::V1_0, of_1_0), (Dialect::V0_3Rest, of_0_3)] {
            let shown = match over_http(dialect, &request, None) {
                Ok((verb, path, body)) => format!("{verb} {path} {}", String::from_utf8(body).unwrap()),
                Err(error) => error.to_string(),
            };
            assert_eq!(shown.trim_end(), expected, "{request:?}");
        }
    }
    let (_, path, _) = over_http(Dialect::V1_0, &Request::GetExtendedAgentCard, Some("acme corp")).unwrap();
    assert_eq!(path, "/acme%20corp/extendedAgentCard");
    let (_, path, _) = over_http(Dialect::V0_3Rest, &Request::GetExtendedAgentCard, Some("acme")).unwrap();
    assert_eq!(path, "/v1/card?tenant=acme");
    let refused = over_http(Dialect::V0_3, &Request::GetExtendedAgentCard, None).unwrap_err();
    assert_eq!(refused, ProtocolError::unsupported("A2A 0.3 travels over JSON-RPC, not over HTTP"));
}

/// A server of 0.3 finds the webhook where a client puts it.
#[test]
fn a_webhook_over_http_is_read_as_it_was_written() {
    let config = PushConfig {
        id: "c".into(),
        task_id: "t".into(),
        url: "https://h.example/hook".to_owned(),
        token: Some("s".to_owned()),
        authentication: None,
    };
    let request = Request::CreatePushConfig(config.clone().into());
    let (_, path, body) = over_http(Dialect::V0_3Rest, &request, None).unwrap();
    assert_eq!(path, "/v1/tasks/t/pushNotificationConfigs");
    // The servers of the SDKs look for the whole request.
    let whole = r#"{"parent":"tasks/t","configId":"c","config":{"name":"tasks/t/pushNotificationConfigs/c","pushNotificationConfig":{"id":"c","url":"https://h.example/hook","token":"s"}}}"#;
    assert_eq!(String::from_utf8_lossy(&body), whole);
    let (_, read) = v0_3::rest::decode_push_config_body("t".into(), &body, &DecodeLimits::default()).unwrap();
    assert_eq!(read, config);
    let (_, _, body) = over_http(Dialect::V1_0, &request, None).unwrap();
    assert_eq!(v1_0::decode_push_config_body(&body, &DecodeLimits::default()).unwrap().1, config);
}

#[test]
fn words_of_http_authentication_stand_for_schemes() {
    let text = br#"{"name":"a","url":"https://a.example","authentication":{"schemes":["Bearer","bearer","Basic"]}}"#;
    let card = read_card(text, &DecodeLimits::default()).unwrap();
    let http =
        |scheme: &str| SecurityScheme::Http { description: None, scheme: scheme.to_owned(), bearer_format: None };
    assert_eq!(card.security_schemes, [("bearer".to_owned(), http("Bearer")), ("basic".to_owned(), http("Basic"))]);
    assert_eq!(card.security_requirements.len(), 2, "either is enough");
}

#[test]
fn what_is_wrong_with_a_list_is_named() {
    let list = Request::ListPushConfigs { task_id: "t".into(), page_size: None, page_token: None };
    let limits = DecodeLimits::default();
    let refused = Dialect::V0_3.read_reply(&list, br#"[{"taskId":"t"}]"#, &limits).unwrap_err();
    assert_eq!(refused, ProtocolError::invalid("configs[0].pushNotificationConfig", "is required"));
    let tasks = Request::ListTasks(ListTasks::default());
    let refused = Dialect::V1_0.read_reply(&tasks, br#"{"tasks":[{"id":"t"}]}"#, &limits).unwrap_err();
    assert_eq!(format!("{refused}"), "Invalid parameters: tasks[0].status: is required");
}

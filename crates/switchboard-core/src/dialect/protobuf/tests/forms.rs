//! What is written is read back as it was, by both packages, up to what the package and protobuf cannot say. What a foreign
//! server sent is read or refused by field, within the limits, and never panics.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use prost::Message as _;

use crate::call::{PushConfigPage, Reply, Request, TaskPage};
use crate::dialect::json::DecodeLimits;
use crate::dialect::testing::{Dice, card, mutate_message, push_config, request, update};
use crate::dialect::wire::tests::{card_without_losses, lose_of_message, without_losses};
use crate::dialect::wire::{Spelling, V0_3_REST, V1_0};
use crate::dialect::{v0_3, v1_0};
use crate::error::ProtocolError;
use crate::model::{
    AgentCard, Artifact, ConfigId, Dialect, Json, Message, Package, Part, PartContent, PushConfig, SecurityScheme,
    TaskId, TaskState, Update,
};

const PACKAGES: [(Package, &Spelling); 2] = [(Package::V1_0, &V1_0), (Package::V0_3, &V0_3_REST)];

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut out = Vec::new();
    write(&mut out);
    out.into()
}

fn limits() -> DecodeLimits {
    DecodeLimits::default()
}

/// Free-form JSON as protobuf leaves it: numbers are doubles, members are sorted, and there are no spaces.
fn as_doubles(json: &mut Json) {
    fn double(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Number(number) => {
                let number = number.as_f64().unwrap();
                let whole = number as i64;
                *value = if number.abs() <= 9_007_199_254_740_992.0 { whole.into() } else { number.into() };
            }
            serde_json::Value::Array(items) => items.iter_mut().for_each(double),
            serde_json::Value::Object(members) => members.values_mut().for_each(double),
            _ => {}
        }
    }
    let mut value: serde_json::Value = serde_json::from_str(json.as_str()).unwrap();
    double(&mut value);
    *json = Json::from_trusted(value.to_string());
}

fn lose_in_parts(parts: &mut [Part]) {
    for part in parts {
        part.change_details(|details| details.metadata.iter_mut().for_each(as_doubles));
        if let PartContent::Data(data) = &mut part.content {
            as_doubles(data);
        }
    }
}

fn lose_in_message(message: &mut Message) {
    message.metadata.iter_mut().for_each(as_doubles);
    lose_in_parts(&mut message.parts);
}

/// A text that is empty is none.
fn lose_in_artifact(artifact: &mut Artifact) {
    artifact.change_details(|details| {
        details.metadata.iter_mut().for_each(as_doubles);
        details.description.take_if(|description| description.is_empty());
    });
    lose_in_parts(&mut artifact.parts);
}

fn lose_in_update(update: &mut Update) {
    match update {
        Update::Task(view) => {
            let task = Arc::make_mut(&mut view.task);
            task.metadata.iter_mut().for_each(as_doubles);
            task.history.iter_mut().for_each(|message| lose_in_message(Arc::make_mut(message)));
            task.artifacts.iter_mut().for_each(|artifact| lose_in_artifact(Arc::make_mut(artifact)));
            task.status.message.iter_mut().for_each(|message| lose_in_message(Arc::make_mut(message)));
        }
        Update::Message(message) => lose_in_message(Arc::make_mut(message)),
        Update::Status(update) => {
            update.metadata.iter_mut().for_each(as_doubles);
            update.status.message.iter_mut().for_each(|message| lose_in_message(Arc::make_mut(message)));
        }
        Update::Artifact(update) => {
            update.metadata.iter_mut().for_each(as_doubles);
            lose_in_artifact(Arc::make_mut(&mut update.artifact));
        }
    }
}

/// The update as it is read again: what is lost, and the dialect that a task is told in.
fn expected_update(update: &Update, spelling: &Spelling) -> Update {
    let mut update = without_losses(update.clone(), spelling);
    if let Update::Task(view) = &mut update {
        let is_1_0 = std::ptr::eq(spelling, &V1_0);
        Arc::make_mut(&mut view.task).dialect = if is_1_0 { Dialect::V1_0 } else { Dialect::V0_3Rest };
    }
    // Twice, since what was read is text again, and reading a long fraction may move its last digit.
    lose_in_update(&mut update);
    lose_in_update(&mut update);
    update
}

fn lose_in_request(request: &mut Request) {
    match request {
        Request::SendMessage(send) | Request::SendStreamingMessage(send) => {
            lose_in_message(&mut send.message);
            send.metadata.iter_mut().for_each(as_doubles);
        }
        Request::CancelTask { metadata, .. } => metadata.iter_mut().for_each(as_doubles),
        _ => {}
    }
}

/// 0.3 names tasks and webhooks by a path, in which an id has no slash, and cancels without metadata.
fn nameable(mut request: Request) -> Request {
    let mend = |id: &mut TaskId| *id = id.as_str().replace('/', "-").into();
    let mend_config = |id: &mut ConfigId| *id = id.as_str().replace('/', "-").into();
    match &mut request {
        Request::GetTask { id, .. } | Request::SubscribeToTask { id } => mend(id),
        Request::CancelTask { id, metadata } => {
            mend(id);
            *metadata = None;
        }
        Request::CreatePushConfig(config) => mend(&mut config.task_id),
        Request::ListPushConfigs { task_id, .. } => mend(task_id),
        Request::GetPushConfig { task_id, id } | Request::DeletePushConfig { task_id, id } => {
            mend(task_id);
            mend_config(id);
        }
        _ => {}
    }
    request
}

fn sorted<T>(mut named: Vec<(String, T)>) -> Vec<(String, T)> {
    named.reverse();
    named.sort_by(|(one, _), (other, _)| one.cmp(other));
    named.dedup_by(|(one, _), (other, _)| one == other);
    named
}

/// Names of a card stand in maps, which have an order of their own and each name once, the last.
fn lose_in_card(card: &mut AgentCard) {
    card.security_schemes = sorted(std::mem::take(&mut card.security_schemes));
    for (_, scheme) in &mut card.security_schemes {
        if let SecurityScheme::OAuth2 { flow, .. } = scheme {
            flow.scopes = sorted(std::mem::take(&mut flow.scopes));
        }
    }
    let of_skills = card.skills.iter_mut().flat_map(|skill| &mut skill.security_requirements);
    for requirement in card.security_requirements.iter_mut().chain(of_skills) {
        requirement.schemes = sorted(std::mem::take(&mut requirement.schemes));
    }
    card.capabilities.extensions.iter_mut().for_each(|own| own.params.iter_mut().for_each(as_doubles));
    card.signatures.iter_mut().for_each(|own| own.header.iter_mut().for_each(as_doubles));
}

fn read_again(package: Package, method: &str, reply: &Reply) -> Reply {
    package.read_reply(method, written(|out| package.write_reply(reply, out)), &limits()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_update_is_read_as_it_was_written(update in update()) {
        for (package, spelling) in PACKAGES {
            let message = written(|out| package.write_update(&update, out));
            let mut read = package.read_update(message, &limits()).unwrap();
            lose_in_update(&mut read);
            prop_assert_eq!(read, expected_update(&update, spelling));
        }
    }

    #[test]
    fn the_bytes_of_an_update_are_those_of_the_generated_code(update in update()) {
        let message = written(|out| Package::V1_0.write_update(&update, out));
        let decoded = v1_0::proto::generated::StreamResponse::decode(message.clone()).unwrap();
        prop_assert_eq!(decoded.encode_to_vec(), message);
        let message = written(|out| Package::V0_3.write_update(&update, out));
        let decoded = v0_3::proto::generated::StreamResponse::decode(message.clone()).unwrap();
        prop_assert_eq!(decoded.encode_to_vec(), message);
    }

    #[test]
    fn a_reply_about_a_task_or_a_message_is_read_as_it_was_written(update in update()) {
        for (package, spelling) in PACKAGES {
            let expected = expected_update(&update, spelling);
            let mut read = match &update {
                Update::Task(view) => {
                    let Reply::Task(task) = read_again(package, "GetTask", &Reply::Task(view.clone())) else {
                        panic!("a task");
                    };
                    let Reply::SentTask(sent) = read_again(package, "SendMessage", &Reply::SentTask(view.clone())) else {
                        panic!("a task");
                    };
                    prop_assert_eq!(&task, &sent);
                    Update::Task(sent)
                }
                Update::Message(said) => {
                    let reply = read_again(package, "SendMessage", &Reply::SentMessage(said.clone()));
                    let Reply::SentMessage(said) = reply else { panic!("a message") };
                    Update::Message(said)
                }
                Update::Status(_) | Update::Artifact(_) => continue,
            };
            lose_in_update(&mut read);
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_page_of_tasks_is_read_as_it_was_written(updates in proptest::collection::vec(update(), 0..3)) {
        let views = |update: &Update| if let Update::Task(view) = update { Some(view.clone()) } else { None };
        let tasks: Vec<_> = updates.iter().filter_map(views).collect();
        let page = TaskPage { tasks: tasks.clone(), next_page_token: "more".to_owned(), page_size: 50, total_size: 1234 };
        let Reply::Tasks(read) = read_again(Package::V1_0, "ListTasks", &Reply::Tasks(page)) else { panic!("tasks") };
        prop_assert_eq!((read.next_page_token.as_str(), read.page_size, read.total_size), ("more", 50, 1234));
        prop_assert_eq!(read.tasks.len(), tasks.len());
        for (read, sent) in read.tasks.into_iter().zip(tasks) {
            let mut read = Update::Task(read);
            lose_in_update(&mut read);
            prop_assert_eq!(read, expected_update(&Update::Task(sent), &V1_0));
        }
    }

    #[test]
    fn a_call_is_read_as_it_was_written(request in request(), tenant in proptest::option::of("[a-z]{1,9}")) {
        for (package, spelling) in PACKAGES {
            let is_1_0 = package == Package::V1_0;
            let sent = if is_1_0 { request.clone() } else { nameable(request.clone()) };
            let mut message = Vec::new();
            let Some(method) = package.write_call(&sent, tenant.as_deref(), &mut message) else {
                prop_assert!(matches!(sent, Request::ListTasks(_)) && !is_1_0);
                continue;
            };
            let mut read = package.read_call(method, message.into(), &limits()).unwrap();
            prop_assert_eq!(read.tenant, tenant.clone().filter(|_| is_1_0));
            let mut expected = sent;
            if let Request::SendMessage(send) | Request::SendStreamingMessage(send) = &mut expected {
                lose_of_message(&mut send.message, spelling);
            }
            lose_in_request(&mut expected);
            lose_in_request(&mut expected);
            lose_in_request(&mut read.request);
            prop_assert_eq!(read.request, expected);
        }
    }

    #[test]
    fn a_webhook_is_read_as_it_was_written(config in push_config(), ids in ("[a-z]{1,9}", "[a-z]{1,9}")) {
        let config = PushConfig { task_id: ids.0.into(), id: ids.1.into(), ..config };
        for (package, list) in [
            (Package::V1_0, "ListTaskPushNotificationConfigs"),
            (Package::V0_3, "ListTaskPushNotificationConfig"),
        ] {
            let one = Reply::PushConfig(config.clone());
            for method in ["CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig"] {
                let Reply::PushConfig(read) = read_again(package, method, &one) else { panic!("a webhook") };
                prop_assert!(read == config, "{:?}", read);
            }
            let page = PushConfigPage { configs: vec![config.clone()], next_page_token: "more".to_owned() };
            let Reply::PushConfigs(read) = read_again(package, list, &Reply::PushConfigs(page)) else { panic!("webhooks") };
            prop_assert!(read.configs == [config.clone()] && read.next_page_token == "more", "{:?}", read);
        }
    }

    #[test]
    fn a_card_of_1_0_is_read_as_it_was_written(card in card(&["1.0", "0.3", "2.7"])) {
        let reply = read_again(Package::V1_0, "GetExtendedAgentCard", &Reply::Card(card.clone().into()));
        let (Reply::Card(mut read), mut expected) = (reply, card) else { panic!("a card") };
        lose_in_card(&mut expected);
        lose_in_card(&mut expected);
        lose_in_card(Arc::make_mut(&mut read));
        prop_assert_eq!(&*read, &expected);
    }

    #[test]
    fn a_card_of_0_3_is_read_as_it_was_written(card in card(&["0.3", "0.2.5"])) {
        let reply = read_again(Package::V0_3, "GetAgentCard", &Reply::Card(card.clone().into()));
        let (Reply::Card(mut read), mut expected) = (reply, card) else { panic!("a card") };
        lose_in_card(&mut expected);
        lose_in_card(&mut expected);
        lose_in_card(Arc::make_mut(&mut read));
        // Signatures are written: those of an extended card come over gRPC.
        let signatures = expected.signatures.clone();
        prop_assert_eq!(&*read, &AgentCard { signatures, ..card_without_losses(expected) });
    }
}

/// What is wrong with an answer, one `field: description` per violation.
fn wrong<T: std::fmt::Debug>(read: Result<T, ProtocolError>) -> Vec<String> {
    match read {
        Err(ProtocolError::InvalidParams { violations }) => {
            violations.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_state_that_an_agent_of_0_3_cannot_determine_is_final() {
    use v0_3::proto::generated as wire;
    let status = Some(wire::TaskStatus { state: 0, ..Default::default() });
    let task = wire::Task { id: "t".to_owned(), status, ..Default::default() };
    match Package::V0_3.read_reply("GetTask", task.encode_to_vec().into(), &limits()) {
        Ok(Reply::Task(view)) => assert_eq!(view.task.state(), TaskState::Failed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_wrong_with_an_answer_is_named() {
    use v1_0::proto::generated as wire;
    let status = |state| Some(wire::TaskStatus { state, ..Default::default() });
    let task = |id: &str, status| wire::Task { id: id.to_owned(), status, ..Default::default() };
    let read = |method: &str, message: Vec<u8>| wrong(Package::V1_0.read_reply(method, message.into(), &limits()));
    assert_eq!(read("GetTask", Vec::new()), ["task.status: is required", "task.id: is required and must not be empty"]);
    let unsaid = Package::V1_0.read_reply("GetTask", task("t", status(0)).encode_to_vec().into(), &limits());
    assert!(matches!(unsaid, Ok(Reply::Task(view)) if view.task.state() == TaskState::Unspecified));
    assert_eq!(read("GetTask", task("t", status(99)).encode_to_vec()), ["task.status.state: 99 is not a task state"]);
    assert_eq!(read("SendMessage", Vec::new()), ["result: holds none of task and message"]);
    let mut odd = task("t", status(1));
    odd.history = vec![wire::Message { message_id: "m".to_owned(), role: 7, ..Default::default() }];
    let page = wire::ListTasksResponse { tasks: vec![task("t", status(1)), odd], ..Default::default() };
    assert_eq!(
        read("ListTasks", page.encode_to_vec()),
        [
            "tasks[1].history[0].role: 7 is neither ROLE_USER nor ROLE_AGENT",
            "tasks[1].history[0].parts: needs at least one part"
        ]
    );
    let nothing = wrong(Package::V0_3.read_update(Bytes::new(), &limits()));
    assert_eq!(nothing, ["result: holds none of task, message, statusUpdate and artifactUpdate"]);
    let name = wrong(Package::V0_3.read_reply("GetTaskPushNotificationConfig", Bytes::new(), &limits()));
    let expected = ["name: must be tasks/{id}/pushNotificationConfigs/{id}", "pushNotificationConfig: is required"];
    assert_eq!(name, expected);
}

#[test]
fn bytes_that_are_no_answer_are_the_agents_fault() {
    for (package, _) in PACKAGES {
        let read = package.read_reply("GetTask", Bytes::from_static(b"\xff\xff\xff\xff"), &limits());
        assert!(matches!(read, Err(ProtocolError::InvalidAgentResponse { .. })), "{read:?}");
        let read = package.read_reply("SendStreamingMessage", Bytes::new(), &limits());
        assert!(matches!(read, Err(ProtocolError::MethodNotFound { .. })), "{read:?}");
    }
}

#[test]
fn answers_with_lists_too_long_are_refused_before_they_are_built() {
    use v0_3::proto::generated as wire;
    let status = Some(wire::TaskStatus { state: 1, ..Default::default() });
    let mut task = wire::Task { id: "t".to_owned(), status, ..Default::default() };
    task.history = vec![wire::Message::default(); 20_000];
    let read = |task: &wire::Task| wrong(Package::V0_3.read_reply("GetTask", task.encode_to_vec().into(), &limits()));
    assert_eq!(read(&task), ["history: has 20000 messages; the limit is 10000"]);
    // Lists inside a list are counted together, and more of them are taken.
    task.history = vec![wire::Message { content: vec![wire::Part::default(); 11_000], ..Default::default() }; 10];
    assert_eq!(read(&task), ["history.content: has 110000 parts; the limit is 100000"]);
    task.history.truncate(1);
    assert!(read(&task).contains(&"task.history[0].content: has 11000 parts; the limit is 1000".to_owned()));
}

#[test]
fn answers_with_mistakes_in_their_bytes_never_panic() {
    let mut runner = TestRunner::deterministic();
    let mut dice = Dice::new(7);
    for (package, _) in PACKAGES {
        let method = if package == Package::V1_0 { "GetExtendedAgentCard" } else { "GetAgentCard" };
        for _ in 0..10 {
            let update = update().new_tree(&mut runner).unwrap().current();
            let update = written(|out| package.write_update(&update, out));
            let card = Reply::Card(card(&["0.3", "1.0"]).new_tree(&mut runner).unwrap().current().into());
            let card = written(|out| package.write_reply(&card, out));
            let config = Reply::PushConfig(push_config().new_tree(&mut runner).unwrap().current());
            let config = written(|out| package.write_reply(&config, out));
            for _ in 0..300 {
                let mut mutated = |sample: &Bytes| Bytes::from(mutate_message(&mut dice, sample));
                let _ = package.read_update(mutated(&update), &limits());
                let _ = package.read_reply("SendMessage", mutated(&update), &limits());
                let _ = package.read_reply(method, mutated(&card), &limits());
                let _ = package.read_reply("GetTaskPushNotificationConfig", mutated(&config), &limits());
            }
        }
    }
}

//! Which rule decides, and what is wrong with a line.

use switchboard_core::call::{Request, SendMessage};
use switchboard_core::model::{Json, Message, Role};

use super::{OPERATIONS, Rules, Subject};
use crate::server::authentication::Identity;

fn send(skill: Option<&str>) -> Request {
    let mut send = SendMessage::new(Message::new(Role::User, "m", Vec::new()));
    send.metadata = skill.map(|skill| Json::from_trusted(serde_json::json!({"skillId": skill}).to_string()));
    Request::SendMessage(Box::new(send))
}

fn get() -> Request {
    Request::GetTask { id: "t".into(), history_length: None }
}

#[test]
fn the_first_rule_that_fits_decides_and_without_one_it_is_no() {
    let rules = Rules::parse(
        "deny  principal:mallory         *           *\n\
         allow tenant:acme,scope:use     send        researcher/summarise\n\
         allow tenant:acme               send        researcher/-\n\
         deny  *                         ListTasks   *\n\
         allow authenticated             read        researcher\n\
         allow anonymous                 GetTask     *",
    )
    .unwrap();
    let alice = Identity::new("alice").scopes(["use"]);
    let bob = Identity::new("bob");
    let mallory = Identity::new("mallory").scopes(["use"]);
    let nobody = Identity::anonymous();
    for (identity, tenant, agent, request, expected) in [
        (&alice, "acme", "researcher", send(Some("summarise")), true),
        (&alice, "globex", "researcher", send(Some("summarise")), false),
        (&alice, "acme", "writer", send(Some("summarise")), false),
        (&alice, "acme", "researcher", send(Some("translate")), false),
        (&bob, "acme", "researcher", send(Some("summarise")), false),
        (&bob, "acme", "researcher", send(None), true),
        (&mallory, "acme", "researcher", send(None), false),
        (&bob, "", "researcher", get(), true),
        (&bob, "", "writer", get(), false),
        (&bob, "", "researcher", Request::ListTasks(Default::default()), false),
        (&bob, "", "researcher", Request::GetExtendedAgentCard, false),
        (&nobody, "", "writer", get(), true),
        (&nobody, "", "writer", send(None), false),
    ] {
        let subject = Subject { identity, tenant };
        let name = format!("{} of {tenant:?} at {agent}: {request:?}", identity.principal.as_str());
        assert_eq!(rules.check(&subject, agent, &request).is_ok(), expected, "{name}");
    }
}

#[test]
fn a_rule_can_name_a_principal_with_its_issuer() {
    let rules = Rules::parse("allow principal:https://login.example#alice read * # of the provider").unwrap();
    for (identity, expected) in [
        (Identity::issued("https://login.example", "alice"), true),
        (Identity::issued("https://other.example", "alice"), false),
        (Identity::new("alice"), false),
    ] {
        let subject = Subject { identity: &identity, tenant: "" };
        assert_eq!(rules.check(&subject, "any", &get()).is_ok(), expected, "{:?}", identity.principal);
    }
}

#[test]
fn every_operation_has_a_bit_and_a_group() {
    let whole = Rules::parse("allow * send,read,cancel,push,extended-card *").unwrap();
    let nobody = Identity::anonymous();
    let subject = Subject { identity: &nobody, tenant: "" };
    let requests = [
        send(None),
        Request::SendStreamingMessage(Box::new(SendMessage::new(Message::new(Role::User, "m", Vec::new())))),
        get(),
        Request::ListTasks(Default::default()),
        Request::SubscribeToTask { id: "t".into() },
        Request::CancelTask { id: "t".into(), metadata: None },
        Request::GetPushConfig { task_id: "t".into(), id: "c".into() },
        Request::ListPushConfigs { task_id: "t".into(), page_size: None, page_token: None },
        Request::DeletePushConfig { task_id: "t".into(), id: "c".into() },
        Request::GetExtendedAgentCard,
    ];
    for request in &requests {
        assert!(OPERATIONS.contains(&request.operation()));
        assert!(whole.check(&subject, "a", request).is_ok(), "{request:?}");
        let one = Rules::parse(&format!("allow * {} *", request.operation())).unwrap();
        let allowed = requests.iter().filter(|other| one.check(&subject, "a", other).is_ok()).count();
        assert_eq!(allowed, 1, "{request:?}");
    }
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_its_number() {
    for (text, line, reason) in [
        ("allow * *", 1, "expected allow|deny WHOM OPERATIONS AGENT[/SKILL]"),
        ("# nothing\n\npermit * * *", 3, "\"permit\" is neither allow nor deny"),
        ("allow alice * *", 1, "\"alice\" is nobody; expected *, authenticated"),
        ("allow principal: * *", 1, "a name is missing behind \"principal:\""),
        ("allow * *\nallow * write *", 1, "expected allow|deny"),
        ("allow * write *", 1, "\"write\" is no operation; expected *, send"),
        ("allow * read a/b", 1, "only sends are for a skill"),
        ("allow * send a/", 1, "a skill is missing"),
        ("allow * send Ä", 1, "agent slug \"Ä\" must be"),
    ] {
        let error = Rules::parse(text).unwrap_err();
        assert!(error.line == line && error.reason.starts_with(reason), "{text}: {error}");
    }
}

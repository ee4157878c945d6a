//! Chains of calls, guarded and damaged.

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_core::model::{Json, JsonLimits};

use super::{HOP_NAME_CHARS_MAX, HOPS_MAX, HopError, Hops};

fn metadata(value: &Value) -> Json {
    Json::parse(&value.to_string(), JsonLimits::default()).unwrap()
}

fn read(value: &Value) -> Hops {
    Hops::read(Some(&metadata(value)))
}

fn written(json: &Json) -> Value {
    serde_json::from_str(json.as_str()).unwrap()
}

#[test]
fn a_hop_says_what_the_framework_says() {
    let hop = Hops::read(None).next("dispatch", "mail").unwrap();
    let hop = hop.thread("t:1").parent_run("run-1").parent_turn("2").invocation("i-1").model("gpt-5.1");
    let before = metadata(&json!({"userEmail": "alice@example.com", "delegationDepth": 0, "callerModel": "another"}));
    let expected = json!({
        "userEmail": "alice@example.com",
        "callerApp": "dispatch",
        "selectedReceiverApp": "mail",
        "callerThreadId": "t:1",
        "parentRunId": "run-1",
        "parentTurnId": "2",
        "invocationId": "i-1",
        "delegationDepth": 1,
        "visitedApps": ["dispatch"],
        "callerModel": "gpt-5.1",
    });
    assert_eq!(written(&hop.metadata(Some(&before))), expected);
}

#[test]
fn what_an_earlier_agent_said_about_its_hop_is_not_passed_on() {
    let before = metadata(&json!({"parentRunId": "theirs", "invocationId": "theirs", "kept": [1]}));
    let sent = written(&Hops::read(Some(&before)).next("b", "c").unwrap().metadata(Some(&before)));
    assert_eq!(
        sent,
        json!({"kept": [1], "callerApp": "b", "selectedReceiverApp": "c", "delegationDepth": 1, "visitedApps": ["b"]})
    );
}

#[test]
fn calls_of_oneself_cycles_and_long_chains_are_refused_by_name() {
    let first = Hops::read(None);
    assert_eq!(first.next("a", "A"), Err(HopError::SelfCall { agent: "a".to_owned() }));
    let second = Hops::read(Some(&first.next("a", "b").unwrap().metadata(None)));
    let cycle = second.next("b", "A").unwrap_err();
    assert_eq!(cycle, HopError::Cycle { agent: "A".to_owned(), visited: vec!["a".to_owned()] });
    assert_eq!(cycle.to_string(), "DELEGATION_CYCLE: agent \"A\" has had this message already (a > A)");
    assert_eq!(second.arrive("a").unwrap_err().name(), "DELEGATION_CYCLE");
    assert_eq!(second.arrive("b"), Ok(()));

    let third = Hops::read(Some(&second.next("b", "c").unwrap().metadata(None)));
    let fourth = Hops::read(Some(&third.next("c", "d").unwrap().metadata(None)));
    assert_eq!((fourth.depth(), fourth.visited().len()), (3, 3));
    let refused = fourth.next("d", "e").unwrap_err();
    assert_eq!(refused, HopError::TooManyHops { agent: "e".to_owned() });
    assert_eq!(
        refused.to_string(),
        "TOO_MANY_HOPS: agent \"e\" is not called, because the message was passed on 3 times already"
    );
    let odd = "-".repeat(HOP_NAME_CHARS_MAX);
    assert_eq!(first.next("a", &odd).unwrap_err().name(), "AGENT_NAME_INVALID");
    assert_eq!(first.next("", "b").unwrap_err().name(), "AGENT_NAME_INVALID");
}

#[test]
fn damaged_metadata_never_makes_a_message_look_younger() {
    for (damaged, depth) in [
        (json!({"delegationDepth": 2}), 2),
        (json!({"delegationDepth": -1}), 3),
        (json!({"delegationDepth": "0"}), 3),
        (json!({"delegationDepth": 1.5}), 3),
        (json!({"delegationDepth": null}), 3),
        (json!({"delegationDepth": 1e30}), 3),
        (json!({"delegationDepth": 0, "visitedApps": ["a", "b"]}), 2),
        (json!({"visitedApps": ["a", "A", "b", 7, "c d", "", "x".repeat(HOP_NAME_CHARS_MAX + 1)]}), 2),
        (json!({"visitedApps": ["a", "b", "c", "d", "e", "f"]}), 3),
        (json!({"visitedApps": "a"}), 0),
        (json!([1, 2]), 0),
        (json!({}), 0),
    ] {
        assert_eq!(read(&damaged).depth(), depth, "{damaged}");
    }
    assert_eq!(read(&json!({"visitedApps": ["a", "b", "c", "d", "e"]})).visited().len(), 4);
    let said = read(&json!({"callerApp": " mail ", "invocationId": "i:1"}));
    assert_eq!((said.caller(), said.invocation()), (Some("mail"), Some("i:1")));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..5).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-dA-D]{1,2}".prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 12, 6, |inner| prop::collection::vec(inner, 0..6).prop_map(Value::from))
}

proptest! {
    /// Whatever was said before, a chain of guarded agents ends: no agent has the message twice, and there are at most three hops.
    #[test]
    fn every_chain_ends(
        depth in prop::option::of(any_value()),
        visited in prop::option::of(any_value()),
        targets in prop::collection::vec("[a-dA-D]{1,2}", 1..12),
    ) {
        let mut first = serde_json::Map::new();
        depth.map(|depth| first.insert("delegationDepth".to_owned(), depth));
        visited.map(|visited| first.insert("visitedApps".to_owned(), visited));
        let mut said = metadata(&Value::Object(first));
        let mut own = "start".to_owned();
        let mut had = vec![own.clone()];
        let mut hops = 0;
        for target in targets {
            let before = Hops::read(Some(&said));
            prop_assert!(before.depth() <= HOPS_MAX && before.visited().len() <= 4);
            let Ok(hop) = before.next(&own, &target) else { continue };
            prop_assert_eq!(hop.depth(), before.depth() + 1);
            prop_assert!(!had.iter().any(|had| had.eq_ignore_ascii_case(&target)), "{} again", target);
            hops += 1;
            prop_assert!(hops <= HOPS_MAX);
            said = hop.metadata(Some(&said));
            let after = Hops::read(Some(&said));
            prop_assert!(after.depth() > before.depth());
            prop_assert!(after.arrive(&own).is_err(), "the sender is among the visited");
            prop_assert!(after.arrive(&target).is_ok());
            had.push(target.clone());
            own = target;
        }
    }

    #[test]
    fn ids_of_any_text_stay_within_bounds(text in ".{0,300}") {
        let hop = Hops::read(None).next("a", "b").unwrap().thread(&text).invocation(&text).model(&text);
        let said = written(&hop.metadata(None));
        for member in ["callerThreadId", "invocationId", "callerModel"] {
            let id = said.get(member).and_then(Value::as_str).unwrap_or("x");
            prop_assert!(!id.is_empty() && id.len() <= HOP_NAME_CHARS_MAX && id.is_ascii());
        }
    }
}

#[test]
fn a_relay_counts_as_a_hop_and_keeps_what_was_said() {
    let said = metadata(&json!({"callerApp": "desk", "visitedApps": ["desk"], "kept": 1}));
    let passed = Hops::read(Some(&said)).relayed("mail", Some(&said)).unwrap();
    let passed: Value = passed.deserialize().unwrap();
    assert_eq!(passed, json!({"callerApp": "desk", "visitedApps": ["desk"], "kept": 1, "delegationDepth": 2}));
    let mut message = None;
    for depth in 1..=HOPS_MAX {
        let passed = Hops::read(message.as_ref()).relayed("loop", message.as_ref()).unwrap();
        assert_eq!(Hops::read(Some(&passed)).depth(), depth);
        message = Some(passed);
    }
    let refused = Hops::read(message.as_ref()).relayed("loop", None).unwrap_err();
    assert_eq!(refused, HopError::TooManyHops { agent: "loop".to_owned() });
}

//! By what a repeated send is recognised.

use switchboard_core::call::Owner;
use switchboard_core::model::{AgentName, Message, Part, Role};

use super::Identity;

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Stores keep these bytes: a server that computed others would take the messages of the day before for new ones. The
/// expected ones were made with `hashlib` of Python.
#[test]
fn the_identity_of_a_send_is_what_earlier_builds_stored() {
    let owner = Owner { tenant: "acme".into(), principal: "alice".into() };
    let agent = AgentName::from("Demo");
    let message = Message::new(Role::User, "m-1", vec![Part::text("hello")]);
    let by_message = Identity::of(&owner, &agent, None, &message);
    let digest = "8bdfa9be8d268253d60340f419aa60c258ff2c58defbc7afe53569b6833f0c45";
    assert_eq!(hex(by_message.digest), digest);
    assert_eq!(hex(by_message.key), "4025c9e23708f851abe9fb301c831e6d41bfd3175c94c356cc0df9a7b3e81942");
    let by_key = Identity::of(&owner, &agent, Some("k-1"), &message);
    assert_eq!(hex(by_key.digest), digest);
    assert_eq!(hex(by_key.key), "0effe998e761fc88f56b6994cb048679a9059df370fe7ef4768e5049bf066d40");
    assert!(by_key.strict && !by_message.strict);
}

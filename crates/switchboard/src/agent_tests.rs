//! What is logged about an agent when it is registered.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::Server;

/// Keeps the texts of warnings.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Visit for &Warnings {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0.lock().unwrap().push(format!("{value:?}"));
        }
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut &*self);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is warned of when a server with these agents is built.
fn warned(agents: Vec<AgentBuilder>) -> Vec<String> {
    let warnings = Warnings::default();
    tracing::subscriber::with_default(warnings.clone(), || {
        let builder = agents.into_iter().fold(Server::builder(), crate::ServerBuilder::agent);
        drop(builder.build().unwrap());
    });
    warnings.0.lock().unwrap().clone()
}

fn agent(name: &str) -> AgentBuilder {
    AgentBuilder::from_fn(name, |_: Turn| async { Ok(()) })
}

#[test]
fn an_agent_without_skills_is_warned_of_once() {
    let skilled = || agent("Skilled").skill(Skill::new("x", "X", "Does x"));
    assert_eq!(warned(vec![skilled()]), [""; 0]);
    let expected = "the card lists no skills; other agents will not know what to ask for";
    assert_eq!(warned(vec![agent("Mute"), skilled()]), [expected]);
    // The public card is what others read first.
    let extended = agent("Secretive").extended_skill(Skill::new("x", "X", "Does x"));
    assert_eq!(warned(vec![extended]), [expected]);
}

#[test]
fn a_key_that_can_be_guessed_is_warned_of_once() {
    let warnings = Warnings::default();
    let skilled = agent("Skilled").skill(Skill::new("x", "X", "Does x"));
    tracing::subscriber::with_default(warnings.clone(), || {
        drop(Server::builder().agent(skilled).api_key("short").build().unwrap());
    });
    let expected = "the API key is shorter than 16 characters and can be guessed; use it on this machine alone";
    assert_eq!(*warnings.0.lock().unwrap(), [expected]);
}

//! The checker against our own server, which passes, and against servers with planted faults, which do not.
#![allow(clippy::disallowed_methods, reason = "the servers of a test are tasks of its runtime")]

mod broken;
mod own;
mod page;
mod planted;
pub(crate) mod served;

use std::time::Duration;

use super::args::{AgentArgs, ConformanceArgs, Format};
use super::check;
use super::report::{Report, Status};
use crate::config::Environment;

/// What is asked of the demo agent.
fn args(url: &str, only: &[&str]) -> ConformanceArgs {
    let timeout = Some(Duration::from_secs(20));
    ConformanceArgs {
        agent: AgentArgs { url: Some(url.to_owned()), timeout, ..AgentArgs::default() },
        output: Format::Text,
        report: None,
        no_fail: false,
        only: only.iter().map(|&name| name.to_owned()).collect(),
        list: false,
        card_key: Vec::new(),
        listen: None,
        public_url: None,
        text: "hello".to_owned(),
        slow_text: Some("stream 8".to_owned()),
        question_text: Some("ask which colour?".to_owned()),
    }
}

async fn report(args: &ConformanceArgs) -> Report {
    match Box::pin(check(args, &Environment::default())).await {
        Ok(report) => report,
        Err(error) => panic!("{error:?}"),
    }
}

/// What did not hold, each as the check, the interface, and what was found.
fn faults(report: &Report) -> Vec<(&'static str, String, String)> {
    let faults = report.outcomes.iter().filter_map(|outcome| match &outcome.status {
        Status::Fail { expected, came } | Status::Warn { expected, came } | Status::Note { expected, came } => {
            let on = outcome.on.as_ref().map_or_else(|| "card".to_owned(), ToString::to_string);
            Some((outcome.check.id, on, format!("expected {expected}, came {came}")))
        }
        Status::Pass | Status::Skip(_) => None,
    });
    faults.collect()
}

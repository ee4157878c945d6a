//! `switchboard doctor`: finds out why an agent cannot be talked to. It goes the way of a call, from the name to the stream, and says
//! at each step what it saw and, where something is wrong, how to put it right.
//!
//! `reach` looks at the name, the port and the certificate, `card` at the card and its addresses, `calls` at credentials, versions
//! and streams. The calls themselves are those of the conformance checker: raw, so that faults are seen.

mod calls;
mod card;
mod certificate;
mod clock;
mod reach;
#[cfg(test)]
mod tests;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use switchboard_core::model::Timestamp;

use crate::client::error::ClientError;
use crate::client::printer::Printer;
use crate::config::Environment;
use crate::conformance::args::{Agent, AgentArgs, duration};
use crate::conformance::wire::shown;
use crate::output;

const HELP: &str = "\
What it looks at, in this order:
  dns     whether the name has addresses
  tcp     whether the port can be reached, at each address
  tls     whether the certificate is for this name, in time, and from a known authority
  card    whether there is a card, where, and whether its addresses make sense
  clock   whether both clocks agree
  auth    what the card asks for, and what a call without credentials gets
  call    whether each interface answers the cheapest call (GetTask of an unknown id)
  stream  only with --text: whether events arrive as they happen, or in one lump
  idle    only with --idle: whether a quiet stream is cut off

Examples:
  switchboard doctor https://agent.example
  switchboard doctor https://agent.example --text 'tell me a story'
  switchboard doctor https://agent.example --text 'work for two minutes' --idle 120s

Exit codes:
  0  nothing is wrong, or --no-fail was given
  1  a fault was found
  2  wrong usage";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

#[derive(Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    agent: AgentArgs,
    /// How to print what was found
    #[arg(short = 'o', long, value_name = "FORMAT", value_enum, default_value = "text")]
    output: Format,
    /// Exit with 0 even if a fault was found
    #[arg(long)]
    no_fail: bool,
    /// Also send this text as a stream, to see whether something on the way holds events back
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Follow that stream for so long, to see whether something on the way cuts off quiet connections
    #[arg(long, value_name = "TIME", requires = "text", value_parser = duration)]
    idle: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Fine,
    /// Worth knowing.
    Hint,
    Fault,
}

/// What was seen at one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) step: &'static str,
    pub(crate) mark: Mark,
    pub(crate) seen: String,
    /// What to do about it, in one sentence.
    pub(crate) fix: Option<String>,
}

pub(crate) fn fine(step: &'static str, seen: impl Into<String>) -> Finding {
    Finding { step, mark: Mark::Fine, seen: seen.into(), fix: None }
}

pub(crate) fn hint(step: &'static str, seen: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { step, mark: Mark::Hint, seen: seen.into(), fix: Some(fix.into()) }
}

pub(crate) fn wrong(step: &'static str, seen: impl Into<String>, fix: impl Into<String>) -> Finding {
    Finding { step, mark: Mark::Fault, seen: seen.into(), fix: Some(fix.into()) }
}

/// Examines the agent that the command line names.
pub(crate) fn run(args: &DoctorArgs, environment: &Environment) -> ExitCode {
    let failed = |error: &ClientError| Printer::plain(args.output == Format::Json).fail(error);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&ClientError::internal(error)),
    };
    let findings = match runtime.block_on(examine(args, environment, clock::now())) {
        Ok(findings) => findings,
        Err(error) => return failed(&error),
    };
    match args.output {
        Format::Text => output::say(as_text(&findings, std::io::stdout().is_terminal()).trim_end()),
        Format::Json => output::say(as_json(&findings)),
    }
    let is_ill = findings.iter().any(|finding| finding.mark == Mark::Fault);
    if is_ill && !args.no_fail { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// # Errors
/// When the command line names no agent, or something that cannot be used.
async fn examine(args: &DoctorArgs, environment: &Environment, now: Timestamp) -> Result<Vec<Finding>, ClientError> {
    let printer = Printer::plain(args.output == Format::Json);
    let agent = Agent::named(&args.agent, |flags| flags, environment, &printer).await?;
    let mut wire = agent.wire().map_err(ClientError::usage)?;
    let mut findings = Vec::new();
    if let Some(url) = agent.reference.url() {
        let target = reach::Target::parse(url).map_err(ClientError::usage)?;
        if !reach::examine(&target, &agent.trust, wire.timeout, now, &mut findings).await {
            return Ok(findings);
        }
    }
    let Some(mut found) = card::find(&wire, &agent.reference, now, &mut findings).await else { return Ok(findings) };
    agent.prove(&mut wire, &found, &printer).await?;
    wire.extensions = found.required_extensions().join(", ");
    card::make_sense(&found, &agent.reference, &mut findings);
    agent.choose(&mut found)?;
    calls::examine(&wire, &found, &mut findings).await;
    if let Some(text) = &args.text {
        calls::stream(&mut wire, &found, text, args.idle, &mut findings).await;
    }
    Ok(findings)
}

fn as_text(findings: &[Finding], with_colour: bool) -> String {
    let mut text = String::new();
    for finding in findings {
        let (word, colour) = match finding.mark {
            Mark::Fine => ("ok   ", "32"),
            Mark::Hint => ("hint ", "33"),
            Mark::Fault => ("FAULT", "31"),
        };
        let word = if with_colour { format!("\u{1b}[{colour}m{word}\u{1b}[0m") } else { word.to_owned() };
        let _ = writeln!(text, "{word}  {:<6}  {}", finding.step, shown(&finding.seen));
        if let Some(fix) = &finding.fix {
            let _ = writeln!(text, "               {}", shown(fix));
        }
    }
    let faults = findings.iter().filter(|finding| finding.mark == Mark::Fault).count();
    let _ = match faults {
        0 => writeln!(text, "\nNothing is wrong."),
        1 => writeln!(text, "\n1 fault."),
        count => writeln!(text, "\n{count} faults."),
    };
    text
}

fn as_json(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let mark = match finding.mark {
            Mark::Fine => "ok",
            Mark::Hint => "hint",
            Mark::Fault => "fault",
        };
        json!({ "step": finding.step, "mark": mark, "seen": shown(&finding.seen), "fix": finding.fix.as_deref().map(shown) })
    };
    let all: Vec<Value> = findings.iter().map(one).collect();
    format!("{:#}", json!({ "findings": all }))
}

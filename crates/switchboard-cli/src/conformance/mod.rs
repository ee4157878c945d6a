//! `switchboard conformance`: checks a live agent against the specification, on every binding and version that its card declares.
//!
//! `check` says what a check is; `checks` is the list of them and their code, one file for each area. A check works on a `bench`: an interface of the
//! agent, and calls to it over `wire`, which speaks raw requests so that faults are seen and not smoothed over. `report` says what
//! was found, with the `sentences` of the specification.

pub(crate) mod args;
pub(crate) mod bench;
pub(crate) mod card;
mod check;
mod checks;
mod receiver;
mod report;
mod sentences;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod wire;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::SocketAddr;
use std::process::ExitCode;

use tokio::time::Instant;

use crate::client::error::{ClientError, Code};
use crate::client::options::Flags;
use crate::client::printer::Printer;
use crate::client::session;
use crate::config::Environment;
use crate::output;
use args::{Agent, ConformanceArgs, Format};
use bench::{Bench, Finding, Texts};
use card::Card;
use check::{Check, Level, Run};
use receiver::Receiver;
use report::{Outcome, Report, Status};
use wire::{Interface, Wire};

/// The exit code for a failed MUST.
const FAULT_FOUND: u8 = 1;

/// Checks the agent that the command line names, and says what was found.
pub(crate) fn run(args: &ConformanceArgs, environment: &Environment) -> ExitCode {
    if args.list {
        output::say(report::list().trim_end());
        return ExitCode::SUCCESS;
    }
    let failed = |error: &ClientError| Printer::plain(args.output == Format::Json).fail(error);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&ClientError::internal(error)),
    };
    let report = match runtime.block_on(check(args, environment)) {
        Ok(report) => report,
        Err(error) => return failed(&error),
    };
    let written = match args.output {
        Format::Text => report.text(),
        Format::Json => report.json(),
        Format::Junit => report.junit(),
    };
    match &args.report {
        None => output::say(written.trim_end()),
        Some(file) => {
            if let Err(error) = std::fs::write(file, written) {
                return failed(&ClientError::internal(format_args!("{}: cannot be written: {error}", file.display())));
            }
            output::say(report.summary());
        }
    }
    if report.failures() > 0 && !args.no_fail { ExitCode::from(FAULT_FOUND) } else { ExitCode::SUCCESS }
}

/// # Errors
/// Why nothing could be checked.
async fn check(args: &ConformanceArgs, environment: &Environment) -> Result<Report, ClientError> {
    let printer = Printer::plain(args.output == Format::Json);
    let more = |flags: Flags| flags.list("card-key", &args.card_key);
    let agent = Agent::named(&args.agent, more, environment, &printer).await?;
    let chosen = chosen(&args.only).map_err(ClientError::usage)?;
    let mut wire = agent.wire().map_err(ClientError::usage)?;
    let found = Card::find(&wire, &agent.reference).await;
    let mut card = found.map_err(|why| ClientError::new(Code::CardNotFound, why))?;
    card.verify(&wire, session::card_keys(&agent.settings)?).await;
    agent.prove(&mut wire, &card, &printer).await?;
    agent.choose(&mut card)?;
    wire.extensions = card.required_extensions().join(", ");
    let texts = Texts { plain: args.text.clone(), slow: args.slow_text.clone(), question: args.question_text.clone() };
    let here = || agent.is_here().then_some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let Some(listen) = args.listen.or_else(here) else {
        return Ok(check_card(&wire, &card, &texts, &chosen, None).await);
    };
    let listening = Receiver::listen(listen, args.public_url.as_deref()).await;
    let (receiver, receiving) = listening.map_err(|error| ClientError::usage(format!("--listen {listen}: {error}")))?;
    tokio::select! {
        report = check_card(&wire, &card, &texts, &chosen, Some(&receiver)) => Ok(report),
        never = receiving => match never {},
    }
}

/// The checks that `--only` names: by their id, or by the first words of it.
fn chosen(only: &[String]) -> Result<Vec<&'static Check>, String> {
    let is_named = |check: &Check, name: &str| check.id == name || check.id.starts_with(&format!("{name}-"));
    for name in only {
        if !checks::all().any(|check| is_named(check, name)) {
            return Err(format!("--only {name}: there is no such check; `switchboard conformance --list` names them"));
        }
    }
    let is_chosen = |check: &&Check| only.is_empty() || only.iter().any(|name| is_named(check, name));
    Ok(checks::all().filter(is_chosen).collect())
}

async fn check_card(
    wire: &Wire,
    card: &Card,
    texts: &Texts,
    chosen: &[&'static Check],
    receiver: Option<&Receiver>,
) -> Report {
    let mut report = Report::of(card);
    for check in chosen {
        if let Run::Card(run) = check.run {
            let status = judged(check.level, run(card));
            report.outcomes.push(Outcome { check, on: None, status, ms: 0 });
        }
    }
    for to in &card.interfaces {
        let bench = Bench::new(wire, to, card, texts, &card.interfaces, receiver);
        for check in chosen {
            report.outcomes.extend(check_interface(&bench, to, check).await);
        }
    }
    report
}

async fn check_interface(bench: &Bench<'_>, to: &Interface, check: &'static Check) -> Option<Outcome> {
    let Run::Interface(run) = check.run else { return None };
    if !check.is_for(to) {
        return None;
    }
    let started = Instant::now();
    let status = match check.needs.missing(bench.card, to) {
        Some(why) => Status::Skip(why.to_owned()),
        None => judged(check.level, run(bench).await),
    };
    let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Some(Outcome { check, on: Some(to.clone()), status, ms })
}

/// What a finding means for a rule of this level.
fn judged(level: Level, checked: bench::Checked) -> Status {
    match (level, checked) {
        (_, Ok(())) => Status::Pass,
        (_, Err(Finding::Skip(why))) => Status::Skip(why),
        (Level::Must, Err(Finding::Fault { expected, came })) => Status::Fail { expected, came },
        (Level::Should, Err(Finding::Fault { expected, came })) => Status::Warn { expected, came },
        (Level::May, Err(Finding::Fault { expected, came })) => Status::Note { expected, came },
    }
}

/// What is wrong with a card by the checks that look at nothing else: the rule, what was expected, and what came.
pub(crate) fn card_faults(card: &Card) -> Vec<(&'static str, String, String)> {
    let of_cards = checks::all().filter(|check| check.level == Level::Must);
    let faults = of_cards.filter_map(|check| match check.run {
        Run::Card(run) => match run(card) {
            Err(Finding::Fault { expected, came }) => Some((check.rule, expected, came)),
            Ok(()) | Err(Finding::Skip(_)) => None,
        },
        Run::Interface(_) => None,
    });
    faults.collect()
}

/// An id that no other run uses: of a message, of a context, or of a task that does not exist.
pub(crate) fn fresh_id() -> String {
    let draw = || RandomState::new().build_hasher().finish();
    format!("conformance-{:016x}{:016x}", draw(), draw())
}

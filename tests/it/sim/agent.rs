//! The agents of the simulation: they do what the message says, slowly, and not always well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard_core::model::{Json, Part, TaskId};
use switchboard_engine::runs::{Agent, AgentError, AgentSource, Effects, Recovery, Replies, Traits, Turn};

use super::journal::Journal;
use super::life::Life;

/// Does anything it is told, and has effects.
pub(super) const PUPPET: &str = "puppet";
/// Has none, so that it is asked before its message is stored.
pub(super) const PURE: &str = "pure";
/// May answer without a task.
pub(super) const EITHER: &str = "either";

/// Must not be started twice.
pub(super) const FRAIL: &str = "frail";

/// What all runs of a world have done that a store cannot take back.
#[derive(Default)]
pub(super) struct Deeds {
    /// Every fence that a run was started under.
    begun: BTreeSet<String>,
    /// Every turn that was started and must not be started again.
    begun_once: BTreeSet<(TaskId, u32)>,
    /// The last checkpoint that each turn knows to be stored, and the attempt that stored it.
    checkpoints: BTreeMap<(TaskId, u32), (u32, u64)>,
}

#[derive(Clone)]
pub(super) struct Puppet {
    pub(super) life: Arc<Life>,
    pub(super) journal: Arc<Journal>,
    pub(super) deeds: Arc<Mutex<Deeds>>,
    pub(super) traits: Traits,
}

impl Puppet {
    pub(super) fn source(&self, name: &str) -> AgentSource {
        let traits = match name {
            PURE => self.traits.clone().with_effects(Effects::Never),
            EITHER => self.traits.clone().with_replies(Replies::Either),
            FRAIL => self.traits.clone().with_recovery(Recovery::Fail { reason: "interrupted".to_owned() }),
            _ => self.traits.clone(),
        };
        AgentSource::shared(Self { traits, ..self.clone() })
    }

    /// A run begins: the only one under its fence.
    fn begin(&self, turn: &Turn) {
        let token = turn.fencing_token();
        self.journal.say(|| format!("{} runs {token}, attempt {}", self.life.name, turn.attempt()));
        let mut deeds = self.deeds.lock().unwrap();
        if !deeds.begun.insert(token.clone()) {
            self.journal.broken(&format!("two runs were started under {token}"));
        }
        let once = matches!(self.traits.recovery, Recovery::Fail { .. });
        if once && !deeds.begun_once.insert((turn.task().id.clone(), turn.number())) {
            self.journal.broken(&format!("{token} was started although it had been started before"));
        }
    }

    /// Counts to `number`, remembering how far it came; a later attempt goes on from there.
    async fn remember(&self, turn: &Turn, number: u64) -> Result<(), AgentError> {
        let place = (turn.task().id.clone(), turn.number());
        let last = turn.last_checkpoint().map_or(0, |value| value.as_str().parse().unwrap());
        let known = self.deeds.lock().unwrap().checkpoints.get(&place).copied();
        // (A process that stood still may begin an earlier attempt after a later one.)
        if let Some((attempt, known)) = known
            && attempt < turn.attempt()
            && known > last
        {
            self.journal.broken(&format!("{}: checkpoint {known} was stored, and {last} came back", place.0));
        }
        for n in last + 1..=number {
            self.work(60).await;
            turn.checkpoint(&Json::from_trusted(n.to_string())).await?;
            self.deeds.lock().unwrap().checkpoints.insert(place.clone(), (turn.attempt(), n));
        }
        Ok(turn.answer(answer(&turn.text())).await?)
    }

    /// Writes chunks and goes on after an interruption where its last checkpoint was. Not every chunk has one, so that some
    /// have to be taken back.
    async fn resume(&self, turn: &Turn, number: u64) -> Result<(), AgentError> {
        let mut writer = turn.artifact_writer().resume();
        let last = turn.last_checkpoint().filter(|_| writer.resumes());
        let last = last.map_or(0, |value| value.as_str().parse().unwrap());
        for n in last + 1..=number {
            match n % 3 {
                0 => writer.text_with_checkpoint(chunk(n), &Json::from_trusted(n.to_string())).await?,
                _ => writer.text(chunk(n)).await?,
            }
            self.work(10 * (n % 4)).await;
        }
        Ok(())
    }

    async fn work(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        self.life.awake().await;
    }
}

/// What a chunk of an answer says.
fn chunk(number: u64) -> String {
    format!("[{number}]")
}

/// The whole answer to a message, by whatever run of whatever attempt.
pub(super) fn answer(text: &str) -> String {
    match parse(text) {
        ("chunks" | "resume", number) => (1..=number).map(chunk).collect(),
        ("slow", _) => "slow done".to_owned(),
        ("ask", _) => String::new(),
        _ => format!("to {text}"),
    }
}

/// `verb number`.
pub(super) fn parse(text: &str) -> (&str, u64) {
    let (verb, number) = text.split_once(' ').unwrap_or((text, ""));
    (verb, number.parse().unwrap_or(1))
}

impl Agent for Puppet {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        self.life.awake().await;
        self.begin(&turn);
        let text = turn.text();
        match parse(&text) {
            ("chunks", number) => {
                let mut writer = turn.artifact_writer();
                for n in 1..=number {
                    writer.text(chunk(n)).await?;
                    self.work(10 * (n % 4)).await;
                }
            }
            ("slow", steps) => {
                for step in 0..steps {
                    turn.working(format!("step {step}")).await?;
                    tokio::select! {
                        biased;
                        () = turn.cancelled() => return Ok(()),
                        () = self.work(700) => {}
                    }
                }
                turn.answer(answer(&text)).await?;
            }
            // Does not listen to cancel; its late write must not count.
            ("stubborn", _) => {
                self.work(6_000).await;
                turn.answer(answer(&text)).await?;
            }
            // Never comes back.
            ("lost", _) => std::future::pending().await,
            ("resume", number) => self.resume(&turn, number).await?,
            ("remember", number) => self.remember(&turn, number).await?,
            ("ask", _) => turn.ask("what?").await?,
            ("reply", _) => turn.reply(vec![Part::text(answer(&text))]).await?,
            ("fail", _) => return Err(AgentError::told("as told")),
            // Without the message of a panic: this one is meant.
            ("panic", _) => std::panic::resume_unwind(Box::new("as told")),
            _ => turn.answer(answer(&text)).await?,
        }
        Ok(())
    }

    fn traits(&self) -> Traits {
        self.traits.clone()
    }
}

//! The demo agent. The first word of a message chooses what it does, so that each part of the protocol can be tried
//! with one line of text: see [`GUIDE`]. All other text is echoed.
//!
//! It computes answers and touches nothing outside, which it declares: a message and its echo are one commit.

mod lines;

use std::borrow::Cow;
use std::future::Future;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use switchboard::{Agent, AgentError, Artifact, Json, Message, Part, Role, TaskState, Traits, Turn};
use tokio::time::{Instant, sleep_until};

pub(crate) use lines::{Address, ServedAt};

/// What it can do: the word, what happens, and an example of it.
pub(crate) const GUIDE: &[Ability] = &[
    Ability { word: "echo", name: "Echo", does: "repeats any text in one artifact", example: "hello" },
    Ability {
        word: "slow",
        name: "Slow work",
        does: "works the given number of seconds, says so once a second, and can be canceled",
        example: "slow 10 tidy the attic",
    },
    Ability {
        word: "stream",
        name: "Streamed answer",
        does: "sends the given number of chunks of one artifact, 50 ms apart, and goes on at the next one if the server dies",
        example: "stream 40",
    },
    Ability { word: "fail", name: "Failure", does: "fails, with your words as the reason", example: "fail out of tea" },
    Ability {
        word: "ask",
        name: "Question",
        does: "asks back and completes with your next message",
        example: "ask which colour?",
    },
    Ability {
        word: "auth",
        name: "Authorization",
        does: "asks for authorization and completes with your next message",
        example: "auth the calendar",
    },
    Ability {
        word: "reject",
        name: "Rejection",
        does: "rejects the task, with your words as the reason",
        example: "reject too late",
    },
    Ability { word: "file", name: "File", does: "answers with a file", example: "file" },
    Ability { word: "data", name: "Data", does: "answers with JSON", example: "data the quick brown fox" },
];

const SECONDS: RangeInclusive<u32> = 1..=3_600;
const CHUNKS: RangeInclusive<u32> = 1..=100_000;
const CHUNK_PAUSE: Duration = Duration::from_millis(50);

/// The time limit of a run: enough for the longest command, which is all chunks or the slowest work.
const RUN_MAX: Duration = Duration::from_secs(2 * 3_600);

pub(crate) struct Ability {
    pub(crate) word: &'static str,
    pub(crate) name: &'static str,
    pub(crate) does: &'static str,
    pub(crate) example: &'static str,
}

pub(crate) struct Demo {
    /// The path of this agent below the server's address.
    place: String,
    served_at: ServedAt,
}

impl Demo {
    /// An agent at this path of a server whose address becomes known when it has its port.
    pub(crate) fn at(place: impl Into<String>, served_at: ServedAt) -> Self {
        Self { place: place.into(), served_at }
    }
}

impl Agent for Demo {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        // Only a later turn can be an answer, and asking for the history of a first one would cost it a copy.
        if turn.number() > 1
            && let Some(topic) = question_before(turn.history())
        {
            return answered(&turn, &topic).await;
        }
        let text = turn.text();
        match DemoCommand::parse(&text) {
            DemoCommand::Echo => turn.answer(text).await?,
            DemoCommand::Slow { seconds, what } => slow(&turn, seconds, &quoted(what)).await?,
            DemoCommand::Stream { chunks } => self.stream(&turn, chunks).await?,
            DemoCommand::Fail { reason } => turn.fail(&*quoted(reason)).await?,
            DemoCommand::Ask { topic } => self.ask(&turn, &quoted(topic)).await?,
            DemoCommand::Auth { what } => turn.require_auth(&*quoted(what)).await?,
            DemoCommand::Reject { reason } => turn.reject(&*quoted(reason)).await?,
            DemoCommand::File { text } => turn.artifact(file(text)).await?,
            DemoCommand::Data { text } => turn.artifact(data(text)?).await?,
            DemoCommand::Guide => turn.answer(guide()).await?,
            DemoCommand::Number { word, unit, allowed } => turn.answer(number_help(word, unit, &allowed)).await?,
        }
        Ok(())
    }

    fn traits(&self) -> Traits {
        Traits::pure().with_run_max(RUN_MAX)
    }
}

impl Demo {
    /// Asks, and shows how to answer: as metadata of the question, so that a program that shows texts shows the question alone.
    async fn ask(&self, turn: &Turn, topic: &str) -> Result<(), AgentError> {
        let mut question = Part::text(topic);
        if let Some(address) = self.served_at.get() {
            let task = turn.task();
            let line = address.answer_line(&self.place, task.id.as_str(), task.context_id.as_str());
            let shown = line.map(|line| serde_json::json!({ "pasteToAnswer": line }).to_string());
            question = question.with_metadata(shown.map(Json::from_trusted));
        }
        turn.status(TaskState::InputRequired, vec![question]).await?;
        Ok(())
    }

    /// Writes each chunk together with how many there are, so that the next attempt goes on with the next one.
    async fn stream(&self, turn: &Turn, chunks: u32) -> Result<(), AgentError> {
        let mut writer = turn.artifact_writer().with_name("stream").resume();
        let line = self.served_at.get().and_then(|address| address.resume_line(&self.place, turn.task().id.as_str()));
        if let Some(line) = line {
            writer = writer.with_description(format!("If the stream breaks, put the last id you saw for 1: {line}"));
        }
        let written: u32 = if writer.resumes() { turn.checkpoint_as()?.unwrap_or(0) } else { 0 };
        let mut next = Instant::now();
        for number in written + 1..chunks {
            writer.text_with_checkpoint(chunk(number, chunks), &number).await?;
            // Counted from the chunk before: after a stall they come in their own pace and not all at once.
            next = (next + CHUNK_PAUSE).max(Instant::now());
            if !pause(turn, sleep_until(next)).await {
                return Ok(());
            }
        }
        if written < chunks {
            let last = vec![Part::text(chunk(chunks, chunks))];
            writer.finish_with_checkpoint(last, &chunks).await?;
        }
        Ok(())
    }
}

/// What a message asks the demo agent to do.
#[derive(Debug, PartialEq, Eq)]
enum DemoCommand<'a> {
    Echo,
    Slow {
        seconds: u32,
        what: &'a str,
    },
    Stream {
        chunks: u32,
    },
    Fail {
        reason: &'a str,
    },
    Ask {
        topic: &'a str,
    },
    Auth {
        what: &'a str,
    },
    Reject {
        reason: &'a str,
    },
    File {
        text: &'a str,
    },
    Data {
        text: &'a str,
    },
    /// There was no text.
    Guide,
    /// The word needs a number and got none, or one out of bounds.
    Number {
        word: &'static str,
        unit: &'static str,
        allowed: RangeInclusive<u32>,
    },
}

impl<'a> DemoCommand<'a> {
    fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let (word, rest) = first_word(text);
        // The command words are short. A longer first word cannot be one, so its text is echoed without a comparison.
        let mut lower = [0; 6];
        let Some(lower) = lower.get_mut(..word.len()) else { return Self::Echo };
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        match &*lower {
            b"" => Self::Guide,
            b"slow" => match number(rest, &SECONDS) {
                Some((seconds, what)) => Self::Slow { seconds, what },
                None => Self::Number { word: "slow", unit: "seconds", allowed: SECONDS },
            },
            b"stream" => match number(rest, &CHUNKS) {
                Some((chunks, _)) => Self::Stream { chunks },
                None => Self::Number { word: "stream", unit: "chunks", allowed: CHUNKS },
            },
            b"fail" => Self::Fail { reason: or(rest, "Failed, as you asked") },
            b"ask" => Self::Ask { topic: or(rest, "What would you like to know?") },
            b"auth" => Self::Auth { what: or(rest, "Please allow me to do this") },
            b"reject" => Self::Reject { reason: or(rest, "Rejected, as you asked") },
            b"file" => Self::File { text: or(rest, "Hello from Switchboard.\n") },
            b"data" => Self::Data { text: rest },
            _ => Self::Echo,
        }
    }
}

fn first_word(text: &str) -> (&str, &str) {
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim_start()))
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

/// What is quoted of a message: its first line, and of that no more than a screen is wide. A long message that is quoted again and
/// again would fill the store.
const QUOTE_CHARS_MAX: usize = 200;

fn quoted(text: &str) -> Cow<'_, str> {
    let line = text.lines().next().unwrap_or_default().trim_end();
    let cut = line.char_indices().nth(QUOTE_CHARS_MAX).map(|(place, _)| &line[..place]);
    match cut.or((line.len() < text.trim_end().len()).then_some(line)) {
        Some(part) => Cow::Owned(format!("{part}…")),
        None => Cow::Borrowed(line),
    }
}

/// The number a text begins with, and the rest of it.
fn number<'a>(text: &'a str, allowed: &RangeInclusive<u32>) -> Option<(u32, &'a str)> {
    let (word, rest) = first_word(text);
    let number = word.parse().ok()?;
    allowed.contains(&number).then_some((number, rest))
}

/// What the turn before asked, if it asked: then this turn's message is the answer, even if it begins with a command
/// word.
fn question_before(history: &[Arc<Message>]) -> Option<String> {
    let (_, before) = history.split_last()?;
    let asked = before.iter().rev().find(|message| message.role == Role::User)?;
    match DemoCommand::parse(&asked.text()) {
        DemoCommand::Ask { topic } | DemoCommand::Auth { what: topic } => Some(topic.to_owned()),
        _ => None,
    }
}

async fn answered(turn: &Turn, topic: &str) -> Result<(), AgentError> {
    let text = turn.text();
    let topic = quoted(topic);
    turn.answer(format!("I asked: {topic}\nYou said: {}", or(&text, "nothing in words"))).await?;
    Ok(())
}

async fn slow(turn: &Turn, seconds: u32, what: &str) -> Result<(), AgentError> {
    let what = or(what, "slow work");
    let begun = Instant::now();
    for done in 0..seconds {
        turn.working(format!("{what}: {done} of {seconds} s")).await?;
        if !pause(turn, sleep_until(begun + Duration::from_secs(u64::from(done) + 1))).await {
            return Ok(());
        }
    }
    turn.answer(format!("{what}: done in {seconds} s")).await?;
    Ok(())
}

fn chunk(number: u32, of: u32) -> String {
    format!("chunk {number} of {of}\n")
}

/// Waits; false if the task was canceled meanwhile.
async fn pause(turn: &Turn, wait: impl Future<Output = ()>) -> bool {
    tokio::select! {
        biased;
        () = turn.cancelled() => false,
        () = wait => true,
    }
}

fn file(text: &str) -> Artifact {
    let part = Part::raw(text.to_owned()).with_filename("switchboard.txt").with_media_type("text/plain");
    Artifact::new("", vec![part]).with_name("switchboard.txt")
}

fn data(text: &str) -> Result<Artifact, serde_json::Error> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = serde_json::json!({ "text": text, "characters": text.chars().count(), "words": words });
    let part = Part::json(Json::from_trusted(serde_json::to_string(&value)?)).with_media_type("application/json");
    Ok(Artifact::new("", vec![part]).with_name("data"))
}

fn guide() -> String {
    let mut text = "I work on text, and its first word chooses what I do:\n".to_owned();
    for Ability { word, does, example, .. } in GUIDE.iter().filter(|ability| ability.word != "echo") {
        text.push_str(&format!("  {word:<7} {does} (try: {example})\n"));
    }
    text.push_str("Anything else I repeat.\n");
    text
}

fn number_help(word: &str, unit: &str, allowed: &RangeInclusive<u32>) -> String {
    let (low, high) = (allowed.start(), allowed.end());
    format!("After \"{word}\" I need a number of {unit} from {low} to {high}, as in: {word} 5")
}

#[cfg(test)]
#[path = "demo_tests.rs"]
mod tests;

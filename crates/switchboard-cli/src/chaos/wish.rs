//! What clients ask for, and what must come of it. A wish is small enough to be written down before it is sent, and says
//! by itself how its task may end and with which words.

use serde::{Deserialize, Serialize};

use super::dice::Dice;

/// The agents of the child server, by their names in the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Whom {
    /// The demo agent.
    Demo,
    /// A command that is started again when its server dies.
    Command,
    /// A command that is not.
    Fragile,
}

impl Whom {
    pub(super) const ALL: [Self; 3] = [Self::Demo, Self::Command, Self::Fragile];

    pub(super) fn slug(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Command => "command",
            Self::Fragile => "fragile",
        }
    }
}

/// What the client of a fragile command is told when its server dies.
pub(super) const FRAGILE_REASON: &str = "broken with its server";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wish {
    /// The text is made from the salt.
    Echo {
        salt: u64,
        bytes: usize,
    },
    Chunks {
        chunks: u32,
    },
    Fail {
        salt: u64,
    },
    /// Asks back, and is answered.
    Ask {
        salt: u64,
    },
    /// So many lines, printed with a pause after each.
    Lines {
        salt: u64,
        lines: u32,
        pause_ms: u32,
        fragile: bool,
    },
    /// Work that takes longer than anybody waits: it is there to be canceled.
    Endless {
        by_command: bool,
    },
    /// Work that ends about when it is canceled.
    Race {
        salt: u64,
    },
}

/// How a task may end, and the whole text of its artifacts then, or of its status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) state: &'static str,
    pub(super) artifacts: Option<String>,
    pub(super) status: Option<String>,
}

pub(super) const COMPLETED: &str = "TASK_STATE_COMPLETED";
pub(super) const FAILED: &str = "TASK_STATE_FAILED";
pub(super) const CANCELED: &str = "TASK_STATE_CANCELED";
pub(super) const INPUT_REQUIRED: &str = "TASK_STATE_INPUT_REQUIRED";

pub(super) fn is_terminal(state: &str) -> bool {
    [COMPLETED, FAILED, CANCELED, "TASK_STATE_REJECTED"].contains(&state)
}

impl Wish {
    pub(super) fn whom(&self) -> Whom {
        match self {
            Self::Lines { fragile: true, .. } => Whom::Fragile,
            Self::Lines { .. } | Self::Endless { by_command: true } => Whom::Command,
            Self::Echo { .. } | Self::Chunks { .. } | Self::Fail { .. } | Self::Ask { .. } => Whom::Demo,
            Self::Endless { by_command: false } | Self::Race { .. } => Whom::Demo,
        }
    }

    /// What is sent.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Echo { salt, bytes } => words(*salt, *bytes),
            Self::Chunks { chunks } => format!("stream {chunks}"),
            Self::Fail { salt } => format!("fail {}", words(*salt, 20)),
            Self::Ask { salt } => format!("ask {}", words(*salt, 20)),
            Self::Lines { salt, lines, pause_ms, .. } => format!("{lines} {pause_ms} {salt}"),
            Self::Endless { by_command: true } => "100000 500 0".to_owned(),
            Self::Endless { by_command: false } => "slow 3600 until canceled".to_owned(),
            Self::Race { salt } => format!("slow 1 {}", words(*salt, 20)),
        }
    }

    /// What is sent to the same task when it has asked back.
    pub(super) fn answer(&self) -> Option<String> {
        match self {
            Self::Ask { salt } => Some(words(salt.wrapping_add(1), 30)),
            _ => None,
        }
    }

    /// Every way its task may end.
    pub(super) fn ends(&self) -> Vec<End> {
        let completed = |text: String| End { state: COMPLETED, artifacts: Some(text), status: None };
        let failed = |why: String| End { state: FAILED, artifacts: None, status: Some(why) };
        let canceled = || End { state: CANCELED, artifacts: None, status: None };
        match self {
            Self::Echo { .. } => vec![completed(self.text())],
            Self::Chunks { chunks } => {
                vec![completed((1..=*chunks).map(|chunk| format!("chunk {chunk} of {chunks}\n")).collect())]
            }
            Self::Fail { salt } => vec![failed(words(*salt, 20))],
            Self::Ask { salt } => {
                let answer = self.answer().unwrap_or_default();
                vec![completed(format!("I asked: {}\nYou said: {answer}", words(*salt, 20)))]
            }
            Self::Lines { salt, lines, fragile, .. } => {
                let mut ends = vec![completed((1..=*lines).map(|number| line(*salt, number)).collect())];
                if *fragile {
                    ends.push(failed(FRAGILE_REASON.to_owned()));
                }
                ends
            }
            Self::Endless { .. } => vec![canceled()],
            Self::Race { salt } => vec![canceled(), completed(format!("{}: done in 1 s", words(*salt, 20)))],
        }
    }
}

/// What the command prints as one of its lines.
pub(super) fn line(salt: u64, number: u32) -> String {
    format!("{number} {}\n", words(salt.wrapping_add(number.into()), 24))
}

/// Text that is all its own, in words that no agent takes for an order.
fn words(salt: u64, bytes: usize) -> String {
    let mut dice = Dice::new(salt);
    let mut text = String::with_capacity(bytes + 18);
    while text.len() < bytes {
        text.push_str(&format!("{:016x} ", dice.roll()));
    }
    text.truncate(bytes);
    text.trim_end().to_owned()
}

//! What can be wrong, counted by kind, with the first of each described.

/// Described faults; the others are only counted.
const LINES_MAX: usize = 40;

/// In the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lost,
    Duplicated,
    OutOfOrder,
    TwoTerminals,
    Stuck,
    WebhooksLost,
    WrongContent,
    Orphans,
}

impl Kind {
    pub(super) const ALL: [Self; 8] = [
        Self::Lost,
        Self::Duplicated,
        Self::OutOfOrder,
        Self::TwoTerminals,
        Self::Stuck,
        Self::WebhooksLost,
        Self::WrongContent,
        Self::Orphans,
    ];

    /// For programs.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Duplicated => "duplicated",
            Self::OutOfOrder => "out_of_order",
            Self::TwoTerminals => "two_terminals",
            Self::Stuck => "stuck",
            Self::WebhooksLost => "webhooks_lost",
            Self::WrongContent => "wrong_content",
            Self::Orphans => "orphans",
        }
    }

    /// For people.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Lost => "events or tasks that were acknowledged and are not there",
            Self::Duplicated => "events shown twice to a reader, messages that became two tasks",
            Self::OutOfOrder => "events or webhooks that came before an earlier one",
            Self::TwoTerminals => "tasks that ended twice, or went on after their end",
            Self::Stuck => "tasks that did not end, messages that were never answered",
            Self::WebhooksLost => "updates that no webhook brought",
            Self::WrongContent => "answers that contradict each other, or what was asked for",
            Self::Orphans => "processes of commands that outlived their run",
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    counts: [u64; Kind::ALL.len()],
    pub(super) lines: Vec<String>,
}

impl Faults {
    pub(super) fn add(&mut self, kind: Kind, count: u64, what: impl FnOnce() -> String) {
        if count == 0 {
            return;
        }
        self.counts[kind as usize] += count;
        if self.lines.len() < LINES_MAX {
            self.lines.push(format!("{}: {}", kind.key(), what()));
        }
    }

    pub(super) fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize]
    }

    pub(super) fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

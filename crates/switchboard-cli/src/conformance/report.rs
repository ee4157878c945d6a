//! What was found, as text, as JSON, and as JUnit XML. No text of the other side is printed raw.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::card::Card;
use super::check::{Check, KIT};
use super::checks::AREAS;
use super::sentences;
use super::wire::{Interface, shown};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Pass,
    Fail { expected: String, came: String },
    Warn { expected: String, came: String },
    Note { expected: String, came: String },
    Skip(String),
}

impl Status {
    fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail { .. } => "fail",
            Self::Warn { .. } => "warn",
            Self::Note { .. } => "note",
            Self::Skip(_) => "skip",
        }
    }

    fn finding(&self) -> Option<(&str, &str)> {
        match self {
            Self::Fail { expected, came } | Self::Warn { expected, came } | Self::Note { expected, came } => {
                Some((expected, came))
            }
            Self::Pass | Self::Skip(_) => None,
        }
    }
}

/// One check on one interface, or on the card.
pub(crate) struct Outcome {
    pub(crate) check: &'static Check,
    pub(crate) on: Option<Interface>,
    pub(crate) status: Status,
    pub(crate) ms: u64,
}

impl Outcome {
    fn place(&self) -> String {
        self.on.as_ref().map_or_else(|| "card".to_owned(), |to| format!("{to} {}", shown(&to.url)))
    }
}

pub(crate) struct Report {
    agent: String,
    card: String,
    unknown: Vec<String>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Report {
    pub(crate) fn of(card: &Card) -> Self {
        Self { agent: card.name(), card: shown(&card.url), unknown: card.unknown.clone(), outcomes: Vec::new() }
    }

    fn count(&self, word: &str) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.status.word() == word).count()
    }

    pub(crate) fn failures(&self) -> usize {
        self.count("fail")
    }

    pub(crate) fn summary(&self) -> String {
        let count = |word| self.count(word);
        format!(
            "Result: {} passed, {} failed, {} warnings, {} notes, {} skipped",
            count("pass"),
            count("fail"),
            count("warn"),
            count("note"),
            count("skip")
        )
    }

    /// The outcomes of each place, in the order in which they were checked.
    fn places(&self) -> Vec<(String, Vec<&Outcome>)> {
        let mut places: Vec<(String, Vec<&Outcome>)> = Vec::new();
        for outcome in &self.outcomes {
            let place = outcome.place();
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, outcomes)) => outcomes.push(outcome),
                None => places.push((place, vec![outcome])),
            }
        }
        places
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("Agent: {}\nCard: {}\n", self.agent, self.card);
        for unknown in &self.unknown {
            let _ = writeln!(text, "Not checked: {unknown} (this tool does not speak it)");
        }
        for (place, outcomes) in self.places() {
            let _ = writeln!(text, "\n{place}");
            for outcome in outcomes {
                write_outcome(&mut text, outcome);
            }
        }
        let _ = writeln!(text, "\n{}", self.summary());
        text
    }

    pub(crate) fn json(&self) -> String {
        let results: Vec<Value> = self.outcomes.iter().map(as_json).collect();
        let report = json!({
            "agent": self.agent,
            "card": self.card,
            "kit": format!("a2aproject/a2a-tck@{KIT}"),
            "notChecked": self.unknown,
            "passed": self.count("pass"),
            "failed": self.count("fail"),
            "warnings": self.count("warn"),
            "notes": self.count("note"),
            "skipped": self.count("skip"),
            "results": results,
        });
        format!("{report:#}\n")
    }

    pub(crate) fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(
            xml,
            "<testsuites name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
            escaped(&format!("A2A conformance of {}", self.agent)),
            self.outcomes.len(),
            self.failures(),
            self.count("skip"),
        );
        for (place, outcomes) in self.places() {
            let count = |word| outcomes.iter().filter(|outcome| outcome.status.word() == word).count();
            let (failures, skipped) = (count("fail"), count("skip"));
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">",
                escaped(&place),
                outcomes.len(),
            );
            for outcome in outcomes {
                write_junit(&mut xml, &place, outcome);
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

/// What the specification says, in its own words, after the number of the section.
fn quoted(check: &Check) -> String {
    sentences::of(check.id).map_or_else(String::new, |(section, words)| format!("{section}: \"{words}\""))
}

fn write_outcome(text: &mut String, outcome: &Outcome) {
    let check = outcome.check;
    let word = if outcome.status.word() == "fail" { "FAIL" } else { outcome.status.word() };
    let _ = write!(text, "  {word}  {}", check.id);
    match (&outcome.status, outcome.status.finding()) {
        (Status::Skip(why), _) => {
            let _ = writeln!(text, ": {}", shown(why));
        }
        (_, Some((expected, came))) => {
            let kit = if check.kit.is_empty() { String::new() } else { format!(", kit {}", check.kit) };
            let _ = writeln!(text, " ({} of {}{kit})", check.level.word(), check.section);
            let _ = writeln!(text, "        expected: {}", shown(expected));
            let _ = writeln!(text, "        came: {}", shown(came));
            let _ = writeln!(text, "        rule: {}", check.rule);
            let _ = writeln!(text, "        specification: {}", quoted(check));
        }
        (_, None) => text.push('\n'),
    }
}

fn as_json(outcome: &Outcome) -> Value {
    let check = outcome.check;
    let kit: Vec<&str> = check.kit.split(", ").filter(|id| !id.is_empty()).collect();
    let mut json = json!({
        "check": check.id,
        "kit": kit,
        "level": check.level.word(),
        "section": check.section,
        "rule": check.rule,
        "specification": quoted(check),
        "status": outcome.status.word(),
        "ms": outcome.ms,
    });
    match &outcome.on {
        None => json["on"] = json!("card"),
        Some(to) => {
            json["on"] = json!(to.binding.name());
            json["version"] = json!(to.version.name());
            json["url"] = json!(shown(&to.url));
        }
    }
    if let Some((expected, came)) = outcome.status.finding() {
        json["expected"] = json!(shown(expected));
        json["came"] = json!(shown(came));
    }
    if let Status::Skip(why) = &outcome.status {
        json["reason"] = json!(shown(why));
    }
    json
}

fn write_junit(xml: &mut String, place: &str, outcome: &Outcome) {
    let check = outcome.check;
    let seconds = format!("{}.{:03}", outcome.ms / 1_000, outcome.ms % 1_000);
    let _ =
        write!(xml, "    <testcase classname=\"{}\" name=\"{}\" time=\"{seconds}\"", escaped(place), escaped(check.id));
    let said = outcome.status.finding().map(|(expected, came)| {
        let rule = format!("{} of {}: {}", check.level.word(), check.section, check.rule);
        let (expected, came, spec) = (shown(expected), shown(came), quoted(check));
        format!("expected: {expected}\ncame: {came}\nrule: {rule}\nspecification: {spec}\nkit: {}", check.kit)
    });
    match (&outcome.status, said) {
        (Status::Fail { came, .. }, Some(said)) => {
            let _ = writeln!(
                xml,
                ">\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                escaped(&shown(came)),
                escaped(&said)
            );
        }
        (_, Some(said)) => {
            let _ = writeln!(xml, ">\n      <system-out>{}</system-out>\n    </testcase>", escaped(&said));
        }
        (Status::Skip(why), None) => {
            let _ = writeln!(xml, ">\n      <skipped message=\"{}\"/>\n    </testcase>", escaped(&shown(why)));
        }
        (_, None) => xml.push_str("/>\n"),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for each in text.chars() {
        match each {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write these.
            '\u{fffe}' | '\u{ffff}' => {}
            each if each.is_control() && each != '\n' => {}
            each => escaped.push(each),
        }
    }
    escaped
}

/// The catalogue, as `--list` prints it and as the page about the checker has it.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for (area, checks) in AREAS {
        let _ = writeln!(
            text,
            "## {area}\n\n| check | level | on | spec | kit | rule | the specification |\n\
             | --- | --- | --- | --- | --- | --- | --- |"
        );
        for check in *checks {
            let (level, on) = (check.level.word(), check.scope.words);
            let kit = if check.kit.is_empty() { "none" } else { check.kit };
            let (section, rule, spec) = (check.section, check.rule, quoted(check));
            let _ = writeln!(text, "| `{}` | {level} | {on} | {section} | {kit} | {rule} | {spec} |", check.id);
        }
        text.push('\n');
    }
    text
}

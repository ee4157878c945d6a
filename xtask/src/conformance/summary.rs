//! What the kit said, for machines (JSON) and for people (Markdown). The same kit and the same server give the same
//! bytes: no times, no ports, no paths.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::junit::{Case, TestOutcome};
use super::kit::Kit;
use super::known::{self, KnownFailure};
use super::suites::{KitRun, Suite};

pub(super) struct Run {
    setting: &'static KitRun,
    must: Option<String>,
    passed: usize,
    failures: Vec<Failure>,
    expected_failures: BTreeMap<String, Vec<String>>,
    skips: BTreeMap<String, Vec<String>>,
    skips_expected: usize,
}

struct Failure {
    id: String,
    /// All that the kit said.
    said: String,
    known: Option<&'static KnownFailure>,
}

impl Failure {
    /// What the kit said, for a known failure without the ids and addresses that differ from run to run.
    fn line(&self) -> &str {
        self.known.map_or_else(|| self.said.lines().next().unwrap_or_default(), |known| known.said)
    }

    fn reason(&self) -> Option<&'static str> {
        self.known.map(|known| known.reason)
    }
}

impl Run {
    pub(super) fn new(
        suite: &Suite,
        setting: &'static KitRun,
        corrected: bool,
        must: Option<String>,
        cases: impl Iterator<Item = Case>,
    ) -> Run {
        let mut run = Run {
            setting,
            must,
            passed: 0,
            failures: Vec::new(),
            expected_failures: BTreeMap::new(),
            skips: BTreeMap::new(),
            skips_expected: if corrected { setting.skips.corrected } else { setting.skips.as_published },
        };
        for Case { id, verdict } in cases {
            match verdict {
                TestOutcome::Passed => run.passed += 1,
                TestOutcome::Failed(said) => {
                    let known = known::excuse(suite.failures, setting.name, corrected, &id, &said);
                    run.failures.push(Failure { id, said, known });
                }
                TestOutcome::Skipped(why) => run.skips.entry(why).or_default().push(id),
                TestOutcome::ExpectedFailure(why) => run.expected_failures.entry(why).or_default().push(id),
            }
        }
        run
    }

    pub(super) fn line(&self) -> String {
        format!(
            "{}: {} passed, {} failed, {} skipped",
            self.setting.name,
            self.passed,
            self.failures.len(),
            self.skipped()
        )
    }

    fn skipped(&self) -> usize {
        self.skips.values().map(Vec::len).sum()
    }

    fn to_json(&self) -> Value {
        let groups = |groups: &BTreeMap<String, Vec<String>>| -> Vec<Value> {
            groups.iter().map(|(why, ids)| json!({ "why": why, "count": ids.len(), "ids": ids })).collect()
        };
        let failure =
            |failure: &Failure| json!({ "id": failure.id, "said": failure.line(), "known": failure.reason() });
        json!({
            "run": self.setting.name,
            "config": self.setting.config,
            "tests": self.setting.tests,
            "pytest": self.setting.pytest,
            "passed": self.passed,
            "failed": self.failures.len(),
            "skipped": self.skipped(),
            "skipped_expected": self.skips_expected,
            "must": self.must,
            "failures": self.failures.iter().map(failure).collect::<Vec<_>>(),
            "expected_failures": groups(&self.expected_failures),
            "skips": groups(&self.skips),
        })
    }
}

pub(super) struct Summary {
    pub(super) suite: &'static Suite,
    pub(super) kit: Kit,
    pub(super) runs: Vec<Run>,
    /// Servers that shared a database; none was one server.
    pub(super) replicas: Option<usize>,
}

impl Summary {
    /// What must be looked at: failures without a known reason, other numbers of skips than expected, and reasons for failures
    /// that did not happen.
    pub(super) fn unexplained(&self) -> impl Iterator<Item = String> {
        let happened = self
            .runs
            .iter()
            .flat_map(|run| run.failures.iter().map(|failure| (run.setting.name, &*failure.id, &*failure.said)));
        let unused = known::unused(self.suite.failures, self.kit.is_corrected(), happened)
            .map(|known| format!("{} no longer says {:?}; remove it from the known failures", known.id, known.said));
        let unexplained = self.runs.iter().flat_map(|run| {
            let failed = run.failures.iter().filter(|failure| failure.known.is_none());
            let failed = failed.map(|failure| format!("{}: {} failed: {}", run.setting.name, failure.id, failure.said));
            let (skipped, expected) = (run.skipped(), run.skips_expected);
            let skipped =
                (skipped != expected).then(|| format!("{}: {skipped} skipped, not {expected}", run.setting.name));
            failed.chain(skipped)
        });
        unexplained.chain(unused)
    }

    /// What several servers did otherwise than the one whose result is in this folder.
    pub(super) fn difference(&self, folder: &Path) -> Result<Option<String>, String> {
        if self.replicas.is_none() {
            return Ok(None);
        }
        let path = folder.join(format!("{}.json", self.kit.name()));
        let text = std::fs::read_to_string(&path).map_err(|error| {
            format!("{}: {error}; the result of several servers is compared with that of one", path.display())
        })?;
        let of_one: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let of_several = self.to_json();
        let differs = ["kit", "version", "bindings", "runs"].into_iter().find(|part| of_one[part] != of_several[part]);
        Ok(differs.map(|part| format!("{part:?} is not that of one server, see {}", path.display())))
    }

    fn name(&self) -> String {
        let servers = self.replicas.map(|replicas| format!("-{replicas}-servers")).unwrap_or_default();
        format!("{}{servers}", self.kit.name())
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), String> {
        let name = self.name();
        let json = serde_json::to_string_pretty(&self.to_json()).map_err(|error| error.to_string())?;
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        for (ending, text) in [("json", json + "\n"), ("md", self.to_markdown())] {
            let path = folder.join(format!("{name}.{ending}"));
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            println!("wrote {}", path.display());
        }
        Ok(())
    }

    fn to_json(&self) -> Value {
        let corrections = self.kit.corrections.iter();
        let corrections: Vec<_> = corrections
            .map(|made| json!({ "file": made.file, "sha256": made.after, "reasons": made.reasons() }))
            .collect();
        let mut summary = json!({
            "kit": {
                "repository": "a2aproject/a2a-tck",
                "commit": self.kit.commit,
                "files_sha256": self.kit.tree,
                "corrected": corrections,
            },
            "version": self.suite.version,
            "bindings": self.suite.bindings.split(',').collect::<Vec<_>>(),
            "runs": self.runs.iter().map(Run::to_json).collect::<Vec<_>>(),
        });
        if let Some(replicas) = self.replicas {
            summary["servers"] = replicas.into();
        }
        summary
    }

    fn to_markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_markdown(&mut text);
        text
    }

    fn write_markdown(&self, text: &mut String) -> std::fmt::Result {
        let which = if self.kit.is_corrected() { "corrected" } else { "as published" };
        let Suite { version, bindings, .. } = self.suite;
        writeln!(text, "# Official test kit of A2A {version}, {which}\n")?;
        writeln!(text, "Kit a2aproject/a2a-tck at `{}`, bindings {bindings}.", self.kit.commit)?;
        writeln!(text, "SHA-256 of its files: `{}`.\n", self.kit.tree)?;
        if let Some(replicas) = self.replicas {
            writeln!(
                text,
                "Run against {replicas} servers that share a PostgreSQL, behind a balancer that passes each request on to the next of them. \
                 The result of every test is that of one server.\n"
            )?;
        }
        writeln!(text, "| run | passed | failed | skipped | MUST | failures not explained below |")?;
        writeln!(text, "|---|--:|--:|--:|--:|--:|")?;
        for run in &self.runs {
            let unexplained = run.failures.iter().filter(|failure| failure.known.is_none()).count();
            let must = run.must.as_deref().filter(|_| !run.setting.is_part).unwrap_or("–");
            let (name, passed, failed, skipped) = (run.setting.name, run.passed, run.failures.len(), run.skipped());
            writeln!(text, "| {name} | {passed} | {failed} | {skipped} | {must} | {unexplained} |")?;
        }
        self.write_failures(text)?;
        self.write_skips(text)?;
        self.write_corrections(text)
    }

    fn write_failures(&self, text: &mut String) -> std::fmt::Result {
        if self.runs.iter().all(|run| run.failures.is_empty()) {
            return Ok(());
        }
        writeln!(text, "\n## Failures\n")?;
        for run in &self.runs {
            for failure in &run.failures {
                let reason = failure.reason().map_or_else(|| format!("**ours**: {}", failure.line()), str::to_owned);
                writeln!(text, "- {} `{}`: {reason}", run.setting.name, failure.id)?;
            }
        }
        Ok(())
    }

    fn write_skips(&self, text: &mut String) -> std::fmt::Result {
        writeln!(text, "\n## Skips by reason\n\n| run | tests | the kit's reason |\n|---|--:|---|")?;
        for run in &self.runs {
            for (why, ids) in &run.skips {
                writeln!(text, "| {} | {} | {} |", run.setting.name, ids.len(), why.replace('|', "\\|"))?;
            }
        }
        Ok(())
    }

    fn write_corrections(&self, text: &mut String) -> std::fmt::Result {
        if self.kit.is_corrected() {
            writeln!(text, "\n## Files of the kit that were corrected\n")?;
        }
        for correction in self.kit.corrections {
            writeln!(text, "- `{}`: {}", correction.file, correction.reasons().join("; "))?;
        }
        Ok(())
    }
}

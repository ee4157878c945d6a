//! What the commands share that run programs of other SDKs: which of them to run, and what a program did against what it must have done, told
//! in the words of cargo's test runner, so that `scripts/test` can count it.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use crate::packages::python_version;

/// What `scripts/stages.bash` takes for a stage that cannot be run here.
const NOT_RUN: u8 = 77;

/// A command that takes names of rows, or none for all of them, and whose programs need Python.
pub(crate) struct StepsCommand<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) usage: &'static str,
    pub(crate) rows: &'static [T],
    pub(crate) name_of: fn(&T) -> &'static str,
    /// False is a step that failed, an error what kept steps from being taken.
    pub(crate) run_all: fn(&[&'static T]) -> Result<bool, String>,
}

impl<T> StepsCommand<T> {
    /// Runs it for these names. Fails if a step fails, and on anything that keeps one from being taken.
    pub(crate) fn run(&self, names: &[String]) -> ExitCode {
        if names.iter().any(|name| matches!(name.as_str(), "--help" | "-h")) {
            println!("{}", self.usage);
            return ExitCode::SUCCESS;
        }
        if let Err(message) = python_version() {
            println!("{message}");
            return ExitCode::from(NOT_RUN);
        }
        match self.chosen(names).and_then(|rows| (self.run_all)(&rows)) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(message) => {
                eprintln!("{}: {message}", self.name);
                ExitCode::from(2)
            }
        }
    }

    /// The rows with these names, or all.
    fn chosen(&self, names: &[String]) -> Result<Vec<&'static T>, String> {
        if names.is_empty() {
            return Ok(self.rows.iter().collect());
        }
        let find = |name: &String| {
            let known = || self.rows.iter().map(self.name_of).collect::<Vec<_>>().join(", ");
            let found = self.rows.iter().find(|row| (self.name_of)(row) == name);
            found.ok_or_else(|| format!("no {name}; there are {}", known()))
        };
        names.iter().map(find).collect()
    }
}

/// Tells of each step, and of what went wrong. Returns whether all is well.
pub(crate) fn tell(
    name: &str,
    expected: &BTreeSet<String>,
    said: &str,
    trouble: Option<String>,
    took: Duration,
) -> bool {
    let verdict = judge(expected, said, trouble);
    for step in &verdict.passed {
        println!("test {name} {step} ... ok");
    }
    if let Some(trouble) = &verdict.trouble {
        println!("test {name} ... FAILED: {trouble}\n{}", said.trim_end());
    }
    let word = if verdict.trouble.is_none() { "ok" } else { "FAILED" };
    let failed = u32::from(verdict.trouble.is_some());
    let seconds = took.as_secs_f64();
    println!("test result: {word}. {} passed; {failed} failed; finished in {seconds:.2}s\n", verdict.passed.len());
    verdict.trouble.is_none()
}

#[derive(Debug, PartialEq, Eq)]
struct StepResults {
    passed: Vec<String>,
    trouble: Option<String>,
}

/// Compares the lines `ok TRANSPORT STEP` with what the program must have done. A program that ends well but left out a
/// step has failed: it would otherwise pass by doing nothing.
fn judge(expected: &BTreeSet<String>, said: &str, trouble: Option<String>) -> StepResults {
    let passed: Vec<String> = said.lines().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect();
    let done: BTreeSet<String> = passed.iter().cloned().collect();
    let list = |steps: &mut dyn Iterator<Item = &String>| steps.cloned().collect::<Vec<_>>().join(", ");
    let trouble = trouble.or_else(|| {
        let missing = list(&mut expected.difference(&done));
        (!missing.is_empty()).then(|| format!("it left out {missing}"))
    });
    let trouble = trouble.or_else(|| {
        let unknown = list(&mut done.difference(expected));
        (!unknown.is_empty()).then(|| format!("nobody expected {unknown}; add it to the list"))
    });
    StepResults { passed, trouble }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{StepResults, judge};

    fn expected() -> BTreeSet<String> {
        ["a send", "a get", "b send", "b get"].map(str::to_owned).into()
    }

    fn trouble(said: &str, trouble: Option<&str>) -> Option<String> {
        judge(&expected(), said, trouble.map(str::to_owned)).trouble
    }

    #[test]
    fn every_step_over_every_transport_is_all_it_takes() {
        let passed = ["a send", "a get", "b send", "b get"].map(str::to_owned).to_vec();
        let said = "a line of the SDK's\nok a send\nok a get\nok b send\nok b get\n";
        assert_eq!(judge(&expected(), said, None), StepResults { passed, trouble: None });
    }

    #[test]
    fn a_program_that_leaves_out_a_step_has_failed() {
        assert_eq!(trouble("ok a send\nok a get\nok b get\n", None).as_deref(), Some("it left out b send"));
        assert_eq!(trouble("", None).as_deref(), Some("it left out a get, a send, b get, b send"));
    }

    #[test]
    fn a_step_that_is_not_in_the_list_is_told() {
        let said = "ok a send\nok a get\nok b send\nok b get\nok b sing\n";
        assert_eq!(trouble(said, None).as_deref(), Some("nobody expected b sing; add it to the list"));
    }

    #[test]
    fn what_the_program_itself_says_comes_first() {
        assert_eq!(trouble("ok a send\n", Some("it failed")).as_deref(), Some("it failed"));
    }
}

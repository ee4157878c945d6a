//! docs/cli-compliance.md and the skill: what they name is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::switchboard;

/// How many requirements each tier has.
const REQUIREMENTS: [(u8, usize); 3] = [(1, 39), (2, 15), (3, 12)];
/// A skill is read whole by an agent each time, so it is short.
const SKILL_BYTES_MAX: usize = 3_000;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of all tests below a folder.
fn tests_below(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, names);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let after = text.split("#[test]").skip(1).chain(text.split("#[tokio::test").skip(1));
            names.extend(after.filter_map(|rest| Some(rest.split("fn ").nth(1)?.split('(').next()?.to_owned())));
        }
    }
}

#[test]
fn every_requirement_is_on_the_page_once_with_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/cli-compliance.md")).unwrap();
    let mut known = BTreeSet::new();
    tests_below(&root().join("crates/switchboard-cli"), &mut known);
    let mut seen = BTreeSet::new();
    let mut tiers = [0; 4];
    for line in page.lines().filter(|line| line.starts_with("| `A2ACLI_")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, tier, mark, evidence] = cells[..] else { panic!("{line}") };
        assert!(seen.insert(id.to_owned()), "{id} is there twice");
        tiers[tier.parse::<usize>().unwrap()] += 1;
        assert!(["pass", "partial", "fail", "not measured"].contains(&mark), "{line}");
        let named: Vec<&str> = evidence.split('`').skip(1).step_by(2).collect();
        assert!(mark != "pass" || !named.is_empty(), "{id} passes, and no test is named");
        assert!(mark == "pass" || evidence.split_whitespace().count() > 5, "{id} does not say what is missing");
        for name in named {
            assert!(known.contains(name), "{id} names the test {name}, which is not there");
        }
    }
    for (tier, count) in REQUIREMENTS {
        assert_eq!(tiers[usize::from(tier)], count, "tier {tier}");
    }
}

#[test]
fn the_report_for_programs_says_what_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/cli-compliance.md")).unwrap();
    let report = std::fs::read_to_string(root().join("docs/cli-compliance.yaml")).unwrap();
    let blocks: Vec<&str> = report.split("\n  A2ACLI_").skip(1).collect();
    let block = |id: &str| {
        let named = |block: &&&str| block.split_once(':').is_some_and(|(name, _)| id == format!("A2ACLI_{name}"));
        *blocks.iter().find(named).unwrap_or_else(|| panic!("{id} is not in the report"))
    };
    let mut passed = [0; 4];
    for line in page.lines().filter(|line| line.starts_with("| `A2ACLI_")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [id, tier, mark, evidence] = cells[..] else { panic!("{line}") };
        let tests = evidence.split('`').skip(1).step_by(2).collect::<Vec<_>>().join(" ");
        let block = block(id.trim_matches('`'));
        for member in [
            format!("tier: {tier}\n"),
            format!("status: {}\n", mark.replace(' ', "_")),
            format!("evidence: \"{tests}\"\n"),
        ] {
            assert!(format!("{block}\n").contains(&format!("    {member}")), "{id}: {member}");
        }
        passed[tier.parse::<usize>().unwrap()] += usize::from(mark == "pass");
    }
    for (tier, count) in REQUIREMENTS {
        let passed = passed[usize::from(tier)];
        let is_satisfied = passed == count;
        assert!(report.contains(&format!("  tier_{tier}: {{total: {count}, pass: {passed}, ")), "tier {tier}");
        assert!(report.lines().any(|line| {
            line.starts_with(&format!("  tier_{tier}: ")) && line.ends_with(&format!("satisfied: {is_satisfied}}}"))
        }));
    }
    assert!(report.contains(&format!("tool_version: {}\n", env!("CARGO_PKG_VERSION"))));
    let codes = blocks.iter().filter(|block| block.starts_with("ERR_")).count();
    assert_eq!(codes, 8, "the codes of the specification");
}

#[test]
fn the_skill_is_lean_and_names_only_what_there_is() {
    let skill = std::fs::read_to_string(root().join(".agents/skills/switchboard/SKILL.md")).unwrap();
    assert!(skill.len() < SKILL_BYTES_MAX, "{} bytes", skill.len());
    for word in ["MUST", "SHOULD", "A2ACLI_ERR_", "A2ACLI_SEND_0"] {
        assert!(!skill.contains(word), "{word}");
    }
    assert!(skill.contains("--help"));
    let examples = root().join(".agents/skills/switchboard/references/examples.md");
    let all = format!("{skill}{}", std::fs::read_to_string(examples).unwrap());
    for piece in all.split("switchboard ").skip(1) {
        let words: Vec<&str> = piece.split_whitespace().take(2).collect();
        let command = words[0].trim_matches(['`', '.']);
        if ["send", "card", "task"].contains(&command) {
            let mut args = vec![command];
            args.extend(words.get(1).filter(|_| command == "card" || command == "task"));
            args.push("--help");
            switchboard(&args).succeeded();
        }
    }
}

#[test]
fn help_tells_of_the_risk_of_credentials_in_flags() {
    let help = switchboard(&["send", "--help"]).succeeded().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for variable in ["A2ACLI_BEARER", "A2ACLI_API_KEY"] {
        assert!(
            help.contains(&format!("A flag is seen in the process table and the shell's history: {variable}")),
            "{help}"
        );
    }
}

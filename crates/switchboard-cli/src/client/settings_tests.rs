//! Which of the sources of a setting decides.

use std::path::Path;
use std::time::Duration;

use super::{KEYS, Kind, Settings, Source, read_duration};
use crate::client::options::Flags;
use crate::config::Environment;

/// A home, a project below it, and a folder in the project.
struct Tree {
    home: tempfile::TempDir,
}

impl Tree {
    fn new() -> Self {
        let tree = Self { home: tempfile::tempdir().unwrap() };
        std::fs::create_dir_all(tree.path().join("project/deep")).unwrap();
        std::fs::create_dir_all(tree.path().join(".config/a2a-cli")).unwrap();
        tree
    }

    fn path(&self) -> &Path {
        self.home.path()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).unwrap();
    }

    fn read(&self, flags: &Flags, config: Option<&str>, variables: &[(&str, &str)]) -> Settings {
        let home = self.path().to_str().unwrap();
        let variables: Vec<_> = variables.iter().copied().chain([("HOME", home)]).collect();
        Settings::read(flags, config, &Environment::of(&variables), &self.path().join("project/deep")).unwrap()
    }
}

fn value_of(key: &super::Key, which: usize) -> String {
    match key.kind {
        Kind::Switch => ["true", "false"][which % 2].to_owned(),
        Kind::Duration => format!("{}s", which + 1),
        _ if key.name == "output" => ["text", "json"][which % 2].to_owned(),
        _ => format!("value-{which}"),
    }
}

#[test]
fn of_five_levels_the_strongest_decides_for_every_key() {
    for key in KEYS {
        let name = key.variable();
        for strongest in 0..4 {
            let tree = Tree::new();
            let mut flags = Flags::default();
            let mut variables = Vec::new();
            let values: Vec<String> = (0..4).map(|level| value_of(key, level)).collect();
            if strongest == 0 {
                flags = flags.text(key.name, Some(&values[0]));
            }
            if strongest <= 1 {
                variables.push((name.as_str(), values[1].as_str()));
            }
            if strongest <= 2 {
                tree.write("project/.env", &format!("OTHER=1\n{name}={}\n", values[2]));
            }
            tree.write(".config/a2a-cli/.env", &format!("{name}='{}'\n", values[3]));
            let settings = tree.read(&flags, None, &variables);
            let value = settings.value(key.name).unwrap();
            assert_eq!(value.texts, [values[strongest].clone()], "{name} at level {strongest}");
            let found = match value.source {
                Source::Flag(_) => 0,
                Source::Variable(_) => 1,
                Source::Local(_) => 2,
                Source::Global(_) => 3,
                Source::BuiltIn => 4,
            };
            assert_eq!(found, strongest, "{name}");
        }
        let none = Tree::new().read(&Flags::default(), None, &[]);
        assert_eq!(none.text(key.name), key.built_in, "{name}");
    }
}

#[test]
fn a_named_file_replaces_the_nearest_and_leaves_the_users() {
    let tree = Tree::new();
    tree.write("project/.env", "A2ACLI_AGENT_CARD=nearest\n");
    tree.write("project/deep/agent.env", "A2ACLI_TASK_ID=t-1\n");
    tree.write(".config/a2a-cli/.env", "A2ACLI_AGENT_CARD=global\n");
    let settings = tree.read(&Flags::default(), Some("agent.env"), &[]);
    assert_eq!((settings.text("agent-card"), settings.text("task-id")), (Some("global"), Some("t-1")));
    let settings = tree.read(&Flags::default(), None, &[("A2ACLI_CONFIG", "agent.env")]);
    assert_eq!(settings.text("task-id"), Some("t-1"));
}

#[test]
fn the_stronger_of_async_and_wait_decides() {
    let tree = Tree::new();
    let wait = Flags::default().switch("wait", true);
    let both = Flags::default().switch("wait", true).switch("async", true);
    let is_async = |flags: &Flags, variables: &[(&str, &str)]| tree.read(flags, None, variables).is_async();
    assert_eq!(is_async(&Flags::default(), &[]), Ok(false));
    assert_eq!(is_async(&Flags::default(), &[("A2ACLI_ASYNC", "1")]), Ok(true));
    assert_eq!(is_async(&wait, &[("A2ACLI_ASYNC", "yes")]), Ok(false));
    assert!(is_async(&both, &[]).is_err());
}

#[test]
fn a_value_that_is_none_is_refused_by_name() {
    let tree = Tree::new();
    let home = tree.path().to_str().unwrap();
    for (name, value, told) in [
        ("A2ACLI_TIMEOUT", "soon", "--timeout takes a duration"),
        ("A2ACLI_INSECURE", "maybe", "--insecure takes true or false"),
        ("A2ACLI_OUTPUT", "xml", "--output takes text or json"),
    ] {
        let environment = Environment::of(&[(name, value), ("HOME", home)]);
        let error = Settings::read(&Flags::default(), None, &environment, tree.path()).unwrap_err();
        assert!(error.message.contains(told) && error.message.contains(name), "{}", error.message);
    }
}

#[test]
fn the_user_is_told_of_files_that_reach_far() {
    let tree = Tree::new();
    tree.write("project/.env", "A2ACLI_AGENT_CARD=x\nA2ACLI_INSECURE=true\nA2ACLI_TYPO=1\nA2ACLI_API_KEY=k\n");
    let settings = tree.read(&Flags::default(), None, &[("A2ACLI_BEARER", "s3cret")]);
    let told = settings.warnings.join("\n");
    for part in
        ["A2ACLI_TYPO is not a setting", "can be read by others", "--insecure is set by", "the agent is named by"]
    {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert!(!told.contains("s3cret"));
}

#[test]
fn durations_have_units() {
    for (text, expected) in [
        ("500ms", Some(Duration::from_millis(500))),
        ("2s", Some(Duration::from_secs(2))),
        ("1.5m", Some(Duration::from_secs(90))),
        ("1h", Some(Duration::from_secs(3_600))),
        ("7", Some(Duration::from_secs(7))),
        ("", None),
        ("-1s", None),
        ("5 weeks", None),
        ("999999999h", None),
    ] {
        assert_eq!(read_duration(text), expected, "{text:?}");
    }
}

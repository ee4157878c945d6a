//! Looking after a database from the command line.

use clap::Parser;
use switchboard::{AgentBuilder, Server};

use super::*;
use crate::agents::demo::{Demo, ServedAt};
use crate::cli::{Cli, Command};

fn db_in(folder: &Path, typed: &[&str]) -> Result<String, Failure> {
    let Command::Db(command) = Cli::parse_from(["switchboard", "db"].iter().chain(typed)).command else {
        panic!("db was typed")
    };
    run(&command, &Environment::of(&[]), folder)
}

fn reset_in(folder: &Path, flags: &[&str]) -> Result<String, Failure> {
    db_in(folder, &[&["reset"], flags].concat())
}

/// A server on the folder that is looked in by default.
fn server_in(folder: &Path) -> (Server, PathBuf) {
    let database = folder.join("./switchboard-data").join(DATABASE_NAME);
    let server = Server::builder()
        .agent(AgentBuilder::new("Demo", Demo::at("", ServedAt::default())))
        .sqlite(&database)
        .build()
        .unwrap();
    (server, database)
}

/// As [`server_in`], with one task.
async fn serving(folder: &Path) -> (Server, PathBuf) {
    let (server, database) = server_in(folder);
    server.local("demo").unwrap().send_text("hello").await.unwrap();
    (server, database)
}

fn files_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A folder with a used database, and something that is not ours.
fn used() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("./switchboard-data");
    std::fs::create_dir(&data).unwrap();
    for name in ["switchboard.db", "switchboard.db-wal", "switchboard.db-shm", "switchboard.db.v1-backup", "notes.txt"]
    {
        std::fs::write(data.join(name), "").unwrap();
    }
    (folder, data)
}

#[test]
fn without_yes_it_only_says_what_would_go() {
    let (folder, data) = used();
    let said = reset_in(folder.path(), &[]).unwrap_err();
    let names = ["switchboard.db", "switchboard.db-shm", "switchboard.db-wal", "switchboard.db.v1-backup"];
    let list: Vec<String> = names.iter().map(|name| format!("  {}", data.join(name).display())).collect();
    let expected = format!("this would delete every task for ever:\n{}\nsay --yes to do it", list.join("\n"));
    assert_eq!(said, Failure::Usage(expected));
    assert_eq!(files_in(&data).len(), 5);
}

#[test]
fn with_yes_the_database_goes_and_the_rest_stays() {
    let (folder, data) = used();
    assert!(reset_in(folder.path(), &["--yes"]).unwrap().starts_with("deleted\n"));
    assert_eq!(files_in(&data), ["notes.txt", "switchboard.db.lock"]);
    let nothing = format!("{} does not exist; nothing to delete", data.join(DATABASE_NAME).display());
    assert_eq!(reset_in(folder.path(), &["--yes"]), Ok(nothing));
}

#[tokio::test]
async fn what_needs_the_database_alone_leaves_a_running_server_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (server, database) = server_in(folder.path());
    let expected = format!(
        "{} is in use by process {}; one process at a time may open it; stop the server first",
        database.canonicalize().unwrap().display(),
        std::process::id()
    );
    assert_eq!(reset_in(folder.path(), &["--yes"]), Err(Failure::Runtime(expected.clone())));
    assert_eq!(db_in(folder.path(), &["compact"]), Err(Failure::Runtime(expected)));
    drop(server);
    assert!(db_in(folder.path(), &["compact"]).unwrap().starts_with("removed 0 tasks and 0 commits from "));
    let data = database.parent().unwrap();
    reset_in(folder.path(), &["--yes", "--data", data.to_str().unwrap()]).unwrap();
    let [audit, lock] = &files_in(data)[..] else { panic!("two files stay") };
    assert!(audit.starts_with("switchboard.db.audit-") && audit.ends_with(".jsonl"), "{audit}");
    assert_eq!(lock, "switchboard.db.lock");
}

#[tokio::test]
async fn a_running_server_is_backed_up_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, database) = serving(folder.path()).await;
    let said = db_in(folder.path(), &["backup", "--to", "copy.db"]).unwrap();
    let copy = folder.path().join("copy.db");
    let expected = format!("copied {} to {} (", database.display(), copy.display());
    assert!(said.starts_with(&expected), "{said}");
    let check = format!("\ncheck it: switchboard db verify --file {}", copy.display());
    assert!(said.ends_with(&format!("{check}\nnot in the audit log: a server uses the database")), "{said}");

    let counts = "looked at 1 tasks (0 of them compacted), 1 commits with 3 events, 0 pieces of content (0 bytes), \
                  0 webhooks, 0 accepted messages and 0 entries of the audit log\nno faults";
    for (file, typed) in [(&database, vec!["verify"]), (&copy, vec!["verify", "--file", "copy.db"])] {
        assert_eq!(db_in(folder.path(), &typed), Ok(format!("{}: {counts}", file.display())));
    }
    let again = db_in(folder.path(), &["backup", "--to", "copy.db"]);
    let expected = format!("{} exists already, and nothing is overwritten", copy.display());
    assert_eq!(again, Err(Failure::Runtime(expected)));
}

#[tokio::test]
async fn accepted_cards_are_copied_beside_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, database) = serving(folder.path()).await;
    let cards = database.parent().unwrap().join("remote-agents");
    std::fs::create_dir(&cards).unwrap();
    let texts = [("weather.json", r#"{"name": "Weather", "url": "https://w.example"}"#), ("half.json", "{")];
    for (name, text) in texts {
        std::fs::write(cards.join(name), text).unwrap();
    }
    std::fs::write(cards.join("readme.md"), "no agent").unwrap();
    let said = db_in(folder.path(), &["backup", "--to", "copy.db"]).unwrap();
    let copies = folder.path().join("copy.db.remote-agents");
    let line =
        format!("accepted cards of 2 agents: {}; they belong into remote-agents of the data folder", copies.display());
    assert!(said.contains(&line), "{said}");
    assert_eq!(files_in(&copies), ["half.json", "weather.json"]);
    for (name, text) in texts {
        assert_eq!(std::fs::read_to_string(copies.join(name)).unwrap(), text);
    }
    // A folder that is there already is not written to; the database was copied.
    std::fs::create_dir(folder.path().join("other.db.remote-agents")).unwrap();
    let Err(Failure::Runtime(said)) = db_in(folder.path(), &["backup", "--to", "other.db"]) else {
        panic!("the folder is there")
    };
    assert!(said.contains("the database is in ") && folder.path().join("other.db").exists(), "{said}");
}

#[tokio::test]
async fn a_backup_is_in_the_audit_log_if_no_server_uses_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let (server, database) = serving(folder.path()).await;
    server.shutdown(std::time::Duration::ZERO).await;
    drop(server);
    let said = db_in(folder.path(), &["backup", "--to", "copy.db"]).unwrap();
    assert!(!said.contains("audit"), "{said}");
    let mut lines = Vec::new();
    audit_log::export(&database, &mut |line| lines.push(line)).unwrap();
    let [line] = &lines[..] else { panic!("{lines:?}") };
    let entry: serde_json::Value = serde_json::from_str(line).unwrap();
    let copied = format!("copied to {}", folder.path().join("copy.db").display());
    assert_eq!([&entry["event"], &entry["operation"], &entry["reason"]], ["offline", "db backup", copied.as_str()]);
    assert_eq!(entry["principal"].as_str(), Some(os_user().as_str()));
}

#[tokio::test]
async fn a_fault_fails_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, _) = serving(folder.path()).await;
    db_in(folder.path(), &["backup", "--to", "copy.db"]).unwrap();
    let copy = folder.path().join("copy.db");
    // The page of the one commit.
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'log'";
    let page: usize = rusqlite::Connection::open(&copy).unwrap().query_row(sql, [], |row| row.get(0)).unwrap();
    let mut bytes = std::fs::read(&copy).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xAA);
    std::fs::write(&copy, bytes).unwrap();
    for typed in [&["verify", "--file", "copy.db"][..], &["verify", "--json", "--file", "copy.db"]] {
        let Err(Failure::Runtime(said)) = db_in(folder.path(), typed) else { panic!("it is damaged") };
        assert!(said.starts_with(&format!("{} has ", copy.display())) && said.ends_with(" faults"), "{said}");
    }
}

#[tokio::test]
async fn a_check_can_be_read_by_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, database) = serving(folder.path()).await;
    let said = db_in(folder.path(), &["verify", "--json"]).unwrap();
    let expected = serde_json::json!({
        "file": database.display().to_string(), "tasks": 1, "tasks_compacted": 0, "commits": 1, "events": 3, "chunks": 0,
        "chunk_bytes": 0, "webhooks": 0, "webhooks_without_key": 0, "accepted": 0, "audit_entries": 0, "faults_total": 0, "faults": [],
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), expected);
}

#[test]
fn what_is_not_there_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    for typed in [&["verify"][..], &["compact"], &["backup", "--to", "copy.db"]] {
        let missing = folder.path().join("./switchboard-data").join(DATABASE_NAME);
        let expected = format!("{} does not exist", missing.display());
        assert_eq!(db_in(folder.path(), typed), Err(Failure::Runtime(expected)), "{typed:?}");
    }
    assert_eq!(files_in(folder.path()), [] as [&str; 0]);
}

#[test]
fn sizes_are_for_people() {
    for (bytes, expected) in
        [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (1_600_000, "1.5 MiB"), (5 << 30, "5.0 GiB")]
    {
        assert_eq!(size(bytes), expected);
    }
}

#[test]
fn in_memory_there_is_nothing_to_forget() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.toml"), "[server]\nmemory = true").unwrap();
    let expected = "the configuration keeps tasks in memory; name a folder with --data".to_owned();
    assert_eq!(reset_in(folder.path(), &["--yes"]), Err(Failure::Usage(expected)));
    assert!(reset_in(folder.path(), &["--yes", "--data", "d"]).is_ok());
}

/// A server on the folder that is looked in by default, with one task that has a webhook with secrets.
async fn served_with_webhook(folder: &Path) -> PathBuf {
    let (server, database) = server_in(folder);
    let agent = server.local("demo").unwrap();
    let task = agent.send_text("hello").await.unwrap().into_task().unwrap();
    let config = switchboard::model::PushConfig {
        id: "c".into(),
        task_id: task.id.clone(),
        url: "https://hooks.example/".to_owned(),
        token: Some("a-token-for-tests".to_owned()),
        authentication: None,
    };
    agent.set_push_config(config).await.unwrap();
    drop(server);
    database
}

#[test]
fn the_key_of_webhook_secrets_is_left_out_of_backups_changed_and_missed() {
    let folder = tempfile::tempdir().unwrap();
    // What the server has begun ends with its runtime, and the file is free.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = runtime.block_on(served_with_webhook(folder.path()));
    drop(runtime);
    let key = database::secret_key_file(&database);
    let said = db_in(folder.path(), &["backup", "--to", "copy.db"]).unwrap();
    assert!(said.ends_with(&format!("{}; keep a copy of it elsewhere", key.display())), "{said}");
    let said = db_in(folder.path(), &["verify", "--file", "copy.db"]).unwrap();
    assert!(said.contains("of 1 webhooks cannot be read: their key is not there"), "{said}");
    let before = std::fs::read(&key).unwrap();
    let said = db_in(folder.path(), &["rotate-secrets-key"]).unwrap();
    assert!(said.starts_with("encrypted the secrets of 1 webhooks anew"), "{said}");
    assert_ne!(std::fs::read(&key).unwrap(), before);
    let said = db_in(folder.path(), &["verify"]).unwrap();
    assert!(!said.contains("cannot be read") && said.ends_with("no faults"), "{said}");
    std::fs::remove_file(&key).unwrap();
    let said = db_in(folder.path(), &["verify"]).unwrap();
    assert!(said.contains("of 1 webhooks cannot be read") && said.ends_with("no faults"), "{said}");
    let refused = db_in(folder.path(), &["rotate-secrets-key"]).unwrap_err();
    assert!(refused.to_string().contains("there is no key to change yet"), "{refused}");
}

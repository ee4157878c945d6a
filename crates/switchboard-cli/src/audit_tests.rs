//! Looking at the audit log from the command line.

use clap::Parser;
use switchboard::audit_log::record_offline;
use switchboard::{AgentBuilder, AuditLevel, Server};

use super::*;
use crate::agents::demo::{Demo, ServedAt};
use crate::cli::{Cli, Command};
use crate::config::DATABASE_NAME;

fn audit_in(folder: &Path, typed: &[&str]) -> Result<String, Failure> {
    match Cli::parse_from(["switchboard"].iter().chain(typed)).command {
        Command::Audit(command) => run(&command, &Environment::of(&[]), folder),
        Command::Db(command) => crate::db::run(&command, &Environment::of(&[]), folder),
        _ => panic!("audit or db was typed"),
    }
}

/// A database whose log has an entry about a message and one about a command.
async fn logged() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("./switchboard-data").join(DATABASE_NAME);
    let server = Server::builder()
        .agent(AgentBuilder::new("Demo", Demo::at("", ServedAt::default())))
        .sqlite(&database)
        .audit(AuditLevel::All)
        .build()
        .unwrap();
    server.local("demo").unwrap().send_text("hello").await.unwrap();
    server.shutdown(std::time::Duration::ZERO).await;
    drop(server);
    record_offline(&database, "uid 0", "test", "").unwrap();
    (folder, database)
}

#[tokio::test]
async fn a_log_is_verified_exported_and_verified_again() {
    let (folder, _) = logged().await;
    let verified = audit_in(folder.path(), &["audit", "verify"]).unwrap();
    assert!(verified.starts_with("looked at 2 entries of the audit log\nchain "), "{verified}");
    let noted = verified.rsplit(' ').next().unwrap();
    assert!(noted.starts_with("2:"), "{verified}");
    audit_in(folder.path(), &["audit", "verify", "--noted", noted]).unwrap();

    let last = audit_in(folder.path(), &["audit", "export"]).unwrap();
    assert!(
        last.contains(r#""event":"offline","decision":"allowed","principal":"uid 0","operation":"test""#),
        "{last}"
    );
    std::fs::write(folder.path().join("export.jsonl"), format!("{last}\n")).unwrap();
    let verified = audit_in(folder.path(), &["audit", "verify", "--file", "export.jsonl", "--noted", noted]).unwrap();
    assert!(verified.contains("entries 2 to 2"), "{verified}");
    std::fs::write(folder.path().join("export.jsonl"), last.replace("uid 0", "uid 1")).unwrap();
    let Err(Failure::Runtime(why)) = audit_in(folder.path(), &["audit", "verify", "--file", "export.jsonl"]) else {
        panic!("it was changed")
    };
    assert!(why.starts_with("the audit log is broken: entry 2 does not match its hash"), "{why}");
}

#[tokio::test]
async fn a_log_that_was_made_anew_is_not_the_one_that_was_noted() {
    let (folder, _) = logged().await;
    let noted = format!("2:{}", "0".repeat(64));
    let Err(Failure::Runtime(why)) = audit_in(folder.path(), &["audit", "verify", "--noted", &noted]) else {
        panic!("there is no such entry")
    };
    assert!(why.ends_with("it is not the log that was noted"), "{why}");
    let wrong = audit_in(folder.path(), &["audit", "verify", "--noted", "2"]);
    assert!(matches!(&wrong, Err(Failure::Usage(why)) if why.starts_with("--noted: expected")), "{wrong:?}");
}

#[tokio::test]
async fn what_is_done_to_the_database_is_in_its_log() {
    let (folder, database) = logged().await;
    audit_in(folder.path(), &["db", "compact"]).unwrap();
    let last = audit_in(folder.path(), &["audit", "export"]).unwrap();
    assert!(last.contains(r#""operation":"db compact""#), "{last}");

    // The log outlives the database.
    let said = audit_in(folder.path(), &["db", "reset", "--yes"]).unwrap();
    assert!(!database.exists());
    let kept = said.rsplit(' ').next().unwrap();
    let lines = std::fs::read_to_string(kept).unwrap();
    assert!(lines.lines().last().unwrap().contains(r#""operation":"db reset""#), "{lines}");
    let verified = audit_in(folder.path(), &["audit", "verify", "--file", kept]).unwrap();
    assert!(verified.contains("entries 1 to 4"), "{verified}");
}

//! Forgetting everything, on purpose.

use clap::Parser;

use super::*;
use crate::cli::{Cli, Command, DbCommand};

fn reset_in(folder: &Path, flags: &[&str]) -> Result<String, Failure> {
    let typed = ["switchboard", "db", "reset"].iter().chain(flags);
    let Command::Db(DbCommand::Reset(args)) = Cli::parse_from(typed).command else { panic!("reset was typed") };
    reset(&args, &Environment::of(&[]), folder)
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
    let nothing = "no database in ./switchboard-data; nothing to delete".to_owned();
    assert_eq!(reset_in(folder.path(), &["--yes"]), Ok(nothing));
}

#[tokio::test]
async fn a_running_server_keeps_its_database() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("./switchboard-data");
    let agent = switchboard::AgentBuilder::new("Demo", crate::agents::demo::Demo);
    let server = switchboard::Server::builder().agent(agent).sqlite(data.join(DATABASE_NAME)).build().unwrap();
    let expected = format!("{} is in use; stop the server first", data.join(DATABASE_NAME).display());
    assert_eq!(reset_in(folder.path(), &["--yes"]), Err(Failure::Runtime(expected)));
    drop(server);
    reset_in(folder.path(), &["--yes", "--data", data.to_str().unwrap()]).unwrap();
    assert_eq!(files_in(&data), ["switchboard.db.lock"]);
}

#[test]
fn in_memory_there_is_nothing_to_forget() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("switchboard.toml"), "[server]\nmemory = true").unwrap();
    let expected = "the configuration keeps tasks in memory; name a folder with --data".to_owned();
    assert_eq!(reset_in(folder.path(), &["--yes"]), Err(Failure::Usage(expected)));
    assert!(reset_in(folder.path(), &["--yes", "--data", "d"]).is_ok());
}

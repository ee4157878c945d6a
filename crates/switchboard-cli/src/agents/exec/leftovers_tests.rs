//! Which processes are killed at start, and which are left alone.

use std::process::{Child, Command};

use rustix::process::Pid;

use super::*;

/// A shell that waits for a child, in the middle of a message in this folder.
fn at_work(folder: &Path, daemon: bool) -> Child {
    let mut command = Command::new(if daemon { "setsid" } else { "sh" });
    command.args(if daemon { &["sh", "-c", "sleep 600 & wait"][..] } else { &["-c", "sleep 600 & wait"] });
    command.env("A2A_MESSAGE_FILE", folder.join("1/message.json")).spawn().unwrap()
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

#[tokio::test]
async fn what_a_dead_server_left_is_killed_and_removed_and_nothing_else() {
    let (mine, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (folder, foreign) = (message_folder(mine.path()).unwrap(), message_folder(other.path()).unwrap());
    std::fs::create_dir(folder.join("1")).unwrap();
    std::fs::write(folder.join("1/message.json"), "{}").unwrap();
    let mut left = [at_work(&folder, false), at_work(&folder, true)];
    let mut others = [at_work(&foreign, false)];
    // Each has begun when it no longer has our own environment.
    for child in others.iter().chain(&left) {
        let environment = format!("/proc/{}/environ", child.id());
        while !std::fs::read(&environment).unwrap().windows(16).any(|window| window == b"A2A_MESSAGE_FILE") {
            tokio::time::sleep(LOOK).await;
        }
    }
    // A daemon is one when it has left its session.
    let daemon = Pid::from_child(&left[1]);
    while rustix::process::getsid(Some(daemon)) != Ok(daemon) {
        tokio::time::sleep(LOOK).await;
    }
    clear(mine.path()).await;
    assert!(!left.iter_mut().any(is_running), "a daemon is one of them");
    assert!(others.iter_mut().all(is_running), "another server's");
    assert!(!mine.path().join(FOLDER).exists());
    assert_eq!(kill_all(&mine.path().canonicalize().unwrap().join(FOLDER)), 0, "its child is gone, too");
    for child in &mut others {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    kill_all(&other.path().canonicalize().unwrap().join(FOLDER));
}

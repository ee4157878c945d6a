//! `switchboard db move`, killed at every step that it tells about, from a folder to PostgreSQL and back.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use super::super::http::{call, message};
use super::super::process::{Server, free_addr};
use super::{Cluster, KEY, get};

/// So many tasks, some with artifacts in many pieces.
const TASKS: usize = 120;

/// Runs a move and kills it after so many lines; false if it came to its end before.
fn move_and_kill(cluster: &Cluster<'_>, arguments: &[&str], lines: usize) -> bool {
    let mut child = cluster.command(arguments).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let told = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let told: Vec<String> = told.take(lines).collect();
    if told.len() < lines {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // The one before may have come to its end just before it was killed.
        let was_done = told.iter().any(|line| line.contains("its tasks were moved to"));
        assert!(was_done || (output.status.success() && text.contains("finished moving")), "{told:?} {text}");
        return false;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

/// Moves to the end, killed again and again on the way.
fn move_all(cluster: &Cluster<'_>, from: &str, to: &str) {
    let arguments = ["db", "move", "--from", from, "--to", to];
    let kills = (1..100).take_while(|lines| move_and_kill(cluster, &arguments, *lines)).count();
    assert!(kills > 10, "{kills}");
}

fn serve(cluster: &Cluster<'_>, data: Option<&Path>) -> Server {
    let addr = free_addr();
    let listen = addr.to_string();
    let mut command =
        cluster.command(&["serve", "--listen", &listen, "--grace", "5", "--outbound-allow", "127.0.0.0/8"]);
    match data {
        Some(data) => {
            command.env_remove("SWITCHBOARD_STORE").env_remove("SWITCHBOARD_STORE_SCHEMA").arg("--data").arg(data);
        }
        None => {
            command.args(["--replica", "one"]);
        }
    }
    Server::start_by(command, addr)
}

fn tasks(server: &Server, ids: &[String]) -> Vec<Value> {
    ids.iter().map(|id| get(server, id)).collect()
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_move_that_is_killed_again_and_again_loses_nothing() {
    let cluster = Cluster::new();
    let (data, back) = (cluster.folder.path().join("data"), cluster.folder.path().join("back"));
    let server = serve(&cluster, Some(&data));
    let ids: Vec<String> = (0..TASKS)
        .map(|number| {
            let text = if number % 10 == 0 { "stream 40".to_owned() } else { format!("text {number}") };
            let sent = call(server.addr, "SendMessage", message(&format!("m-{number}"), &text)).unwrap();
            sent["task"]["id"].as_str().expect("a task has an id").to_owned()
        })
        .collect();
    let webhook = json!({"taskId": ids[0], "id": "w", "url": "http://127.0.0.1:9/", "token": "secret"});
    call(server.addr, "CreateTaskPushNotificationConfig", webhook).unwrap();
    let before = tasks(&server, &ids);

    let refused = cluster.run(&["db", "move", "--from", "data", "--to", &cluster.url]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && why.contains("is in use by process"), "{why}");
    server.terminate();

    move_all(&cluster, "data", &cluster.url);
    let server = serve(&cluster, None);
    assert_eq!(tasks(&server, &ids), before);
    let again = call(server.addr, "SendMessage", message("m-1", "text 1")).unwrap();
    assert_eq!(again["task"]["id"], ids[1].as_str(), "a repeated message is known");
    let webhook = call(server.addr, "GetTaskPushNotificationConfig", json!({"taskId": ids[0], "id": "w"})).unwrap();
    assert_eq!(webhook["url"], "http://127.0.0.1:9/", "{webhook}");
    let refused = cluster.run(&["db", "move", "--from", &cluster.url, "--to", "back"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && why.contains("servers use the database (one)"), "{why}");
    server.terminate();

    move_all(&cluster, &cluster.url, "back");
    let server = serve(&cluster, Some(&back));
    assert_eq!(tasks(&server, &ids), before);
    server.terminate();
    for (place, expected) in [("data", "its tasks were moved to PostgreSQL"), ("none", "does not exist")] {
        let output = cluster.run(&["db", "move", "--from", place, "--to", "elsewhere"]);
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && why.contains(expected) && !why.contains(KEY), "{why}");
    }
}

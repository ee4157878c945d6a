//! Commands that call other agents through the door of their server: the binary, shells and curl.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::http::{call_agent, message};
use super::process::{Server, eventually, free_addr, verify};

/// `concierge` has `shout` shout; `mirror` calls itself; `there` and `back` call each other; `slow` ends when a file is there.
const CONFIG: &str = r#"
[server]
grace_s = 0

[[agent]]
name = "Concierge"
shell = true
command = '''
echo "$A2A_CALL_URL $A2A_CALL_TOKEN" > pass
curl -fsS -H "Authorization: Bearer $A2A_CALL_TOKEN" -H "Accept: text/plain" --data-binary @- "$A2A_CALL_URL/agents/Shout"
'''

[[agent]]
name = "Shout"
command = ["tr", "a-z", "A-Z"]

[[agent]]
name = "Alone"
shell = true
command = 'env | grep ^A2A_CALL || echo "no door"'
calls = false

[[agent]]
name = "Mirror"
shell = true
command = 'curl -sS -H "Authorization: Bearer $A2A_CALL_TOKEN" --data-binary @- "$A2A_CALL_URL/agents/mirror"'

[[agent]]
name = "There"
shell = true
command = 'curl -sS -H "Authorization: Bearer $A2A_CALL_TOKEN" --data-binary @- "$A2A_CALL_URL/agents/back"'

[[agent]]
name = "Back"
shell = true
command = 'curl -sS -H "Authorization: Bearer $A2A_CALL_TOKEN" --data-binary @- "$A2A_CALL_URL/agents/there"'

[[agent]]
name = "Asking"
shell = true
command = '''
echo "$A2A_ATTEMPT" >> attempts
curl -fsS -H "Authorization: Bearer $A2A_CALL_TOKEN" -H "Accept: text/plain" --data-binary @- "$A2A_CALL_URL/agents/slow"
'''

[[agent]]
name = "Slow"
shell = true
command = 'echo "$A2A_TASK_ID" >> begun; while [ ! -e go ]; do sleep 0.02; done; echo "done: $(cat)"'
"#;

/// The examples of the page, which call `translator`.
const EXAMPLES: &str = r#"
[[agent]]
name = "Shell"
command = ["sh", "example.sh"]

[[agent]]
name = "Python"
command = ["python3", "example.py"]

[[agent]]
name = "Translator"
command = ["sed", "s/Good morning/Bom dia/"]
"#;

/// The first block of this language on the page about commands.
fn example(language: &str) -> &'static str {
    let page = include_str!("../../../docs/exec.md");
    let (_, after) = page.split_once(&format!("```{language}\n")).expect("the page has an example");
    after.split_once("```").expect("it ends").0
}

#[test]
fn the_examples_of_the_page_work() {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free_addr());
    std::fs::write(folder.path().join("switchboard.toml"), EXAMPLES).unwrap();
    std::fs::write(folder.path().join("example.sh"), example("sh")).unwrap();
    std::fs::write(folder.path().join("example.py"), example("python")).unwrap();
    let server = Server::start(&folder.path().join("data"), addr);
    for agent in ["shell", "python"] {
        let task = said(addr, agent, "Good morning");
        assert_eq!(text_of(&task).trim(), "Bom dia", "{agent}: {task}");
    }
    assert_eq!(tasks(addr, "translator").len(), 2);
    server.interrupt();
}

fn start(folder: &Path, addr: SocketAddr) -> Server {
    std::fs::write(folder.join("switchboard.toml"), CONFIG).unwrap();
    Server::start(&folder.join("data"), addr)
}

/// The task that a message to an agent came to.
fn said(addr: SocketAddr, agent: &str, text: &str) -> Value {
    call_agent(addr, agent, "SendMessage", &message(&format!("to-{agent}"), text))["task"].take()
}

fn text_of(task: &Value) -> String {
    task["artifacts"][0]["parts"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect()
}

fn tasks(addr: SocketAddr, agent: &str) -> Vec<Value> {
    call_agent(addr, agent, "ListTasks", &json!({}))["tasks"].as_array().unwrap().clone()
}

/// What curl says at the door, and the status.
fn curl(url: &str, token: &str) -> String {
    let bearer = format!("Authorization: Bearer {token}");
    let asked = Command::new("curl")
        .args(["-sS", "-w", " %{http_code}", "-H", &bearer, "--data-binary", "hello", url])
        .output();
    String::from_utf8(asked.unwrap().stdout).unwrap()
}

#[test]
fn a_command_calls_another_agent_and_its_token_ends_with_its_run() {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let server = start(folder.path(), addr);
    let task = said(addr, "concierge", "hello");
    assert_eq!(
        (&task["status"]["state"], text_of(&task).as_str()),
        (&json!("TASK_STATE_COMPLETED"), "HELLO"),
        "{task}"
    );
    let called = tasks(addr, "shout");
    assert_eq!(
        (called.len(), &called[0]["contextId"]),
        (1, &task["contextId"]),
        "the call is in the context of its caller"
    );

    let pass = std::fs::read_to_string(folder.path().join("pass")).unwrap();
    let (url, token) = pass.trim().split_once(' ').unwrap();
    assert_eq!(url, format!("http://{addr}/_switchboard"));
    let refused = r#"{"error":"Invalid or expired call token"} 401"#;
    for token in [token, "", "a-guess"] {
        assert_eq!(curl(&format!("{url}/agents/shout"), token), refused);
    }
    assert_eq!(tasks(addr, "shout").len(), 1, "nothing was called");
    assert_eq!(text_of(&said(addr, "alone", "hello")), "no door\n", "a command that may not call");
    server.interrupt();
    let data = folder.path().join("data");
    verify(&data);
    // The same row as a call in Rust has.
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = rusqlite::Connection::open_with_flags(data.join("switchboard.db"), flags).unwrap();
    let row = database.query_row("SELECT called, called_task, status FROM a2a_calls", [], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, String>(2)?))
    });
    let theirs = called[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(row.unwrap(), ("shout".to_owned(), theirs, "completed".to_owned()));
}

#[test]
fn a_command_that_calls_itself_or_goes_round_is_refused_by_name() {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let server = start(folder.path(), addr);
    let itself = text_of(&said(addr, "mirror", "hello"));
    assert!(itself.contains(r#""code":"SELF_CALL""#), "{itself}");
    assert_eq!(tasks(addr, "mirror").len(), 1);
    let round: Value = serde_json::from_str(&text_of(&said(addr, "there", "hello"))).unwrap();
    let back = round["text"].as_str().unwrap();
    assert!(back.contains(r#""code":"DELEGATION_CYCLE""#), "{round}");
    assert!(back.contains("(there > there)"), "{round}");
    assert_eq!((tasks(addr, "there").len(), tasks(addr, "back").len()), (1, 1));
    server.interrupt();
}

#[test]
fn after_kill_the_next_attempt_of_a_command_finds_the_same_task() {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let lines = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    let server = start(folder.path(), addr);
    let mut send = message("m-1", "a letter");
    send["configuration"] = json!({"returnImmediately": true});
    let task = call_agent(addr, "asking", "SendMessage", &send)["task"].take();
    eventually("the other agent is at work", || (!lines("begun").is_empty()).then_some(()));
    server.kill();

    let server = start(folder.path(), addr);
    eventually("both are at work again", || {
        (lines("attempts").lines().count() == 2 && lines("begun").lines().count() == 2).then_some(())
    });
    std::fs::write(folder.path().join("go"), "").unwrap();
    let ended = eventually("the task ends", || {
        let task = call_agent(addr, "asking", "GetTask", &json!({"id": task["id"]}));
        (task["status"]["state"] == "TASK_STATE_COMPLETED").then_some(task)
    });
    assert_eq!(text_of(&ended), "done: a letter\n");
    let called = tasks(addr, "slow");
    let begun = lines("begun");
    let begun: Vec<&str> = begun.lines().collect();
    assert_eq!((called.len(), begun[0], called[0]["id"].as_str().unwrap()), (1, begun[1], begun[1]), "one task");
    assert_eq!(lines("attempts"), "1\n2\n");
    server.interrupt();
    verify(&folder.path().join("data"));
}

/// The run of the command is ended, and with it the other agent's task.
#[test]
fn a_cancel_goes_down_to_what_a_command_has_called() {
    let (folder, addr) = (tempfile::tempdir().unwrap(), free_addr());
    let server = start(folder.path(), addr);
    let mut send = message("m-1", "a letter");
    send["configuration"] = json!({"returnImmediately": true});
    let task = call_agent(addr, "asking", "SendMessage", &send)["task"].take();
    eventually("the other agent is at work", || {
        tasks(addr, "slow").first().filter(|task| task["status"]["state"] == "TASK_STATE_WORKING").map(|_| ())
    });
    let canceled = call_agent(addr, "asking", "CancelTask", &json!({"id": task["id"]}));
    assert_eq!(canceled["status"]["state"], "TASK_STATE_CANCELED");
    eventually("the other task is canceled", || {
        (tasks(addr, "slow")[0]["status"]["state"] == "TASK_STATE_CANCELED").then_some(())
    });
    server.interrupt();
}

//! An agent of kind dispatch in the binary: in front of a command, the demo agent, a relay to a second server, and an agent that was accepted.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::http::{call, call_agent, message};
use super::process::{Server, eventually, free_addr, verify};

const MAIL: &str = r#"
[[agent]]
name = "Mail"
shell = true
command = 'echo "mail: $(cat)"'

[[agent.skill]]
id = "compose"
tags = ["email", "inbox"]
examples = ["Reply to Alice that Tuesday works"]
"#;

const COMPANY: &str = r#"
[server]
grace_s = 0

[[agent]]
name = "Front"
kind = "dispatch"

[[agent]]
name = "Analytics"
shell = true
command = '''
echo "$A2A_TASK_ID" >> begun
case "$(cat)" in *slowly*) while [ ! -e go ]; do sleep 0.02; done;; esac
echo "analytics, called by $A2A_SOURCE_AGENT"
'''

[[agent.skill]]
id = "query"
examples = ["How many signups did we have last week?"]

[[agent]]
name = "Demo"
kind = "demo"

[[agent]]
slug = "letters"
url = "MAIL"
"#;

const BAKERY: &str = r#"
[[agent]]
name = "Bakery"
shell = true
command = 'echo "bakery: $(cat)"'

[[agent.skill]]
id = "bake"
examples = ["Bake a cake for Sunday"]
"#;

struct Company {
    mail: Server,
    _bakery: Server,
    folder: tempfile::TempDir,
    addr: SocketAddr,
}

impl Company {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let theirs = folder.path().join("mail");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("switchboard.toml"), MAIL).unwrap();
        let mail = Server::start(&theirs.join("data"), free_addr());
        let theirs = folder.path().join("bakery");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::write(theirs.join("switchboard.toml"), BAKERY).unwrap();
        let bakery = Server::start(&theirs.join("data"), free_addr());
        let accepted = folder.path().join("data/remote-agents");
        std::fs::create_dir_all(&accepted).unwrap();
        let entry = json!({"name": "Bakery", "url": format!("http://{}", bakery.addr)});
        std::fs::write(accepted.join("bakery.json"), entry.to_string()).unwrap();
        let config = COMPANY.replace("MAIL", &format!("http://{}", mail.addr));
        std::fs::write(folder.path().join("switchboard.toml"), config).unwrap();
        Self { mail, _bakery: bakery, folder, addr: free_addr() }
    }

    fn start(&self) -> Server {
        Server::start(&self.folder.path().join("data"), self.addr)
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn send(addr: SocketAddr, number: u32, text: &str) -> Value {
    call(addr, "SendMessage", message(&format!("m-{number}"), text)).unwrap()["task"].take()
}

fn text_of(task: &Value) -> String {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|artifact| artifact["parts"].as_array().into_iter().flatten());
    parts.filter_map(|part| part["text"].as_str()).collect()
}

fn chosen(task: &Value) -> &Value {
    &task["metadata"]["switchboard.dispatch"]
}

#[test]
fn each_message_goes_to_the_agent_that_fits_and_what_fits_none_is_answered() {
    let company = Company::new();
    let server = company.start();
    let task = send(company.addr, 1, "signups");
    assert_eq!(text_of(&task), "analytics, called by front\n", "{task}");
    let why = json!("\"signups\" is in an example of the skill \"query\"");
    assert_eq!((&chosen(&task)["agent"], &chosen(&task)["reason"]), (&json!("analytics"), &why), "{task}");

    let task = send(company.addr, 2, "reply to Alice");
    assert_eq!(
        (text_of(&task).as_str(), &chosen(&task)["agent"]),
        ("mail: reply to Alice\n", &json!("letters")),
        "{task}"
    );
    let at_mail = call(company.mail.addr, "ListTasks", json!({})).unwrap();
    assert_eq!(at_mail["tasks"].as_array().unwrap().len(), 1);
    assert_eq!(call_agent(company.addr, "letters", "ListTasks", &json!({}))["totalSize"], 0, "no task in between");

    let task = send(company.addr, 4, "please bake a cake");
    assert_eq!(text_of(&task), "bakery: please bake a cake\n", "an agent of the directory: {task}");
    assert_eq!(chosen(&task)["agent"], "bakery");

    let task = send(company.addr, 3, "boil an egg for six minutes");
    assert_eq!((&chosen(&task)["agent"], &task["status"]["state"]), (&Value::Null, &json!("TASK_STATE_COMPLETED")));
    let answer = text_of(&task);
    assert!(answer.starts_with("No agent here fits this message. These are the agents:\n- Analytics"), "{answer}");
    assert!(answer.contains("\n- Mail") && !answer.contains("- Front"), "{answer}");
    server.interrupt();
    verify(&company.path().join("data"));
}

#[test]
fn a_dispatched_task_goes_on_after_kill_with_the_same_task_of_the_agent() {
    let company = Company::new();
    let server = company.start();
    let mut slow = message("m-1", "signups, slowly");
    slow["configuration"] = json!({"returnImmediately": true});
    let task = call(company.addr, "SendMessage", slow).unwrap()["task"].take();
    let begun = || std::fs::read_to_string(company.path().join("begun")).unwrap_or_default();
    eventually("the agent is at work", || (!begun().is_empty()).then_some(()));
    server.kill();

    let server = company.start();
    eventually("it is at work again", || (begun().lines().count() == 2).then_some(()));
    std::fs::write(company.path().join("go"), "").unwrap();
    let ended = eventually("the task ends", || {
        let task = call(company.addr, "GetTask", json!({"id": task["id"]})).unwrap();
        (task["status"]["state"] == "TASK_STATE_COMPLETED").then_some(task)
    });
    assert_eq!(text_of(&ended), "analytics, called by front\n");
    assert_eq!(chosen(&ended)["agent"], "analytics");
    let begun = begun();
    let begun: Vec<&str> = begun.lines().collect();
    let theirs = call_agent(company.addr, "analytics", "ListTasks", &json!({}));
    assert_eq!((theirs["tasks"].as_array().unwrap().len(), begun[0]), (1, begun[1]), "{theirs}");
    server.interrupt();
    verify(&company.path().join("data"));
}

#[test]
fn a_question_is_passed_on_its_answer_goes_to_the_same_agent_and_a_cancel_reaches_it() {
    let company = Company::new();
    let server = company.start();
    let asked = send(company.addr, 1, "ask which colour?");
    assert_eq!(
        (&asked["status"]["state"], &chosen(&asked)["agent"]),
        (&json!("TASK_STATE_INPUT_REQUIRED"), &json!("demo"))
    );
    let mut reply = message("m-2", "signups");
    reply["message"]["taskId"] = asked["id"].clone();
    let ended = call(company.addr, "SendMessage", reply).unwrap()["task"].take();
    assert_eq!(
        (&ended["status"]["state"], &chosen(&ended)["agent"]),
        (&json!("TASK_STATE_COMPLETED"), &json!("demo")),
        "{ended}"
    );

    let asked = send(company.addr, 3, "ask which colour?");
    call(company.addr, "CancelTask", json!({"id": asked["id"]})).unwrap();
    let states = || -> Vec<Value> {
        let tasks = call_agent(company.addr, "demo", "ListTasks", &json!({}))["tasks"].take();
        tasks.as_array().unwrap().iter().map(|task| task["status"]["state"].clone()).collect()
    };
    eventually("the task of the demo agent is canceled", || {
        let mut states = states();
        states.sort_by_key(ToString::to_string);
        (states == [json!("TASK_STATE_CANCELED"), json!("TASK_STATE_COMPLETED")]).then_some(())
    });
    server.interrupt();
}

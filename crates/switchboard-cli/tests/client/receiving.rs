//! `task push-config listen`: the updates of a task as webhooks.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Cli, DemoServer, ScriptedAgent, card_with, task};

fn agent_with_push() -> ScriptedAgent {
    ScriptedAgent::start(
        |url| card_with(url, json!({ "capabilities": { "pushNotifications": true } })),
        |seen, answer| match seen.rpc() {
            "CreateTaskPushNotificationConfig" => {
                let mut config = seen.body["params"].clone();
                config["id"] = json!("hook-1");
                answer.result(config);
            }
            "DeleteTaskPushNotificationConfig" => answer.result(json!({})),
            _ => answer.result(task("TASK_STATE_WORKING")),
        },
    )
}

/// Posts to a webhook as an agent does; gives the status.
fn post(url: &str, token: &str, body: &Value) -> String {
    let mut curl = std::process::Command::new("curl");
    curl.args(["-sS", "-o", "/dev/null", "-w", "%{http_code}", "-H", "content-type: application/json"]);
    curl.args(["-H", &format!("X-A2A-Notification-Token: {token}"), "-d", &body.to_string(), url]);
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

#[test]
fn updates_are_received_from_those_who_have_the_token_and_the_webhook_is_removed() {
    let agent = agent_with_push();
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &agent.url);
    let mut command = cli.command(&["task", "push-config", "listen", "t-1", "-o", "json", "--stream"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let config = loop {
        let calls = agent.calls();
        let made = calls.iter().find(|seen| seen.rpc() == "CreateTaskPushNotificationConfig");
        match made {
            // The task is looked at after the webhook was made.
            Some(made) if calls.iter().any(|seen| seen.rpc() == "GetTask") => break made.body["params"].clone(),
            _ => std::thread::yield_now(),
        }
    };
    let (url, token) = (config["url"].as_str().unwrap(), config["token"].as_str().unwrap());
    let update =
        |state: &str| json!({ "statusUpdate": { "taskId": "t-1", "contextId": "c-1", "status": { "state": state } } });
    assert_eq!(post(url, "wrong", &update("TASK_STATE_COMPLETED")), "401");
    let other =
        json!({ "statusUpdate": { "taskId": "t-2", "contextId": "c", "status": { "state": "TASK_STATE_COMPLETED" } } });
    assert_eq!(post(url, token, &other), "500");
    assert_eq!(post(url, token, &update("TASK_STATE_WORKING")), "204");
    assert_eq!(post(url, token, &update("TASK_STATE_COMPLETED")), "204");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let states: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["statusUpdate"]["status"]["state"].clone())
        .collect();
    assert_eq!(states, ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]);
    let deleted = agent.calls().into_iter().find(|seen| seen.rpc() == "DeleteTaskPushNotificationConfig").unwrap();
    assert_eq!(deleted.body["params"]["id"], "hook-1");
}

#[test]
fn the_webhooks_of_a_real_server_are_received_to_the_end() {
    let server = DemoServer::with_settings(&["--outbound-allow", "127.0.0.1/32"]);
    let id = server.run(&["send", "--async", "slow 2"]).succeeded().field("Task").to_owned();
    let ran = server.run(&["task", "push-config", "listen", &id, "-o", "json", "--timeout", "60s"]).succeeded();
    assert_eq!(ran.json()["status"]["state"], "TASK_STATE_COMPLETED", "{ran:?}");
    let left = server.run(&["task", "push-config", "list", &id, "-o", "json"]).succeeded().json();
    assert!(left["configs"].as_array().is_none_or(Vec::is_empty), "{left}");
}

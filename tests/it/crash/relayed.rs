//! A gateway that is killed at every step of a relayed message, in front of an upstream that is a real process, too: what its caller
//! has seen in the end is what the upstream has done, each event once.

use std::path::Path;

use rustix::process::Signal;
use serde_json::json;

use super::http::{Event, call, message, metric, stream};
use super::process::{Server, eventually, free_addr, verify};

/// Says that it was started, and takes each step when the file for it is there.
const UPSTREAM: &str = r#"
[[agent]]
name = "Steps"
command = 'echo "$(cat)" >> ran; for step in 1 2 3 end; do while [ ! -e "open-$step" ]; do sleep 0.02; done; echo "step $step"; done'
shell = true
"#;
const STEPS: [&str; 4] = ["1", "2", "3", "end"];

/// When the gateway is killed.
#[derive(Clone, Copy, Debug)]
enum Killed {
    /// The message is on its way: the upstream has the connection, and has answered nothing.
    Sending,
    /// The upstream is at work, and nothing of its work was seen.
    Begun,
    /// So many steps have come through.
    After(usize),
    /// The upstream ends while there is no gateway.
    BeforeTheEnd,
    /// The caller has seen the end.
    Ended,
}

fn open(folder: &Path, step: &str) {
    std::fs::write(folder.join(format!("open-{step}")), "").unwrap();
}

/// An update, without ids and times.
fn shape(event: &Event) -> String {
    let result = &event.result;
    if let Some(update) = result.get("statusUpdate") {
        return format!("{} {}", update["status"]["state"], update["status"]["message"]["parts"]);
    }
    let update = &result["artifactUpdate"];
    let artifact = &update["artifact"];
    format!("{} {} {} {}", artifact["artifactId"], artifact["parts"], update["append"], update["lastChunk"])
}

fn kill_and_go_on(killed: Killed) {
    let folder = tempfile::tempdir().unwrap();
    let (theirs, ours) = (folder.path().join("upstream"), folder.path().join("gateway"));
    std::fs::create_dir(&theirs).unwrap();
    std::fs::create_dir(&ours).unwrap();
    std::fs::write(theirs.join("switchboard.toml"), UPSTREAM).unwrap();
    let upstream = Server::start(&theirs.join("data"), free_addr());
    let url = format!("http://{}", upstream.addr);
    let addr = free_addr();
    let start = || Server::start_with(&ours.join("data"), addr, &["--relay", &url]);
    let gateway = start();
    let ran = || std::fs::read_to_string(theirs.join("ran")).unwrap_or_default();

    if let Killed::Sending = killed {
        upstream.signal(Signal::STOP);
    }
    let mut first = stream(addr, "SendStreamingMessage", message("m-1", "go"), None);
    let mut events = vec![first.next().expect("the task")];
    let id = events[0].result["task"]["id"].as_str().expect("the first event is the task").to_owned();
    let mut read_until = |text: &str| {
        let has = |event: &Event| shape(event).contains(text);
        while !events.last().is_some_and(has) {
            events.push(first.next().expect("the gateway is up"));
        }
    };
    match killed {
        Killed::Sending => {}
        Killed::Begun => eventually("the upstream is at work", || (!ran().is_empty()).then_some(())),
        Killed::After(steps) => {
            for step in &STEPS[..steps] {
                open(&theirs, step);
                read_until(&format!("step {step}"));
            }
        }
        Killed::BeforeTheEnd => {
            open(&theirs, STEPS[0]);
            read_until("step 1");
        }
        Killed::Ended => {
            STEPS.iter().for_each(|step| open(&theirs, step));
            read_until("COMPLETED");
        }
    }
    gateway.kill();
    // What was on its way when the gateway died still counts.
    events.extend(first);

    if let Killed::Sending = killed {
        upstream.signal(Signal::CONT);
    }
    let theirs_has_ended = || {
        let listed = call(upstream.addr, "ListTasks", json!({})).unwrap();
        (listed["tasks"][0]["status"]["state"] == "TASK_STATE_COMPLETED").then_some(())
    };
    if let Killed::BeforeTheEnd = killed {
        STEPS.iter().for_each(|step| open(&theirs, step));
        eventually("the upstream has ended", theirs_has_ended);
    }
    let gateway = start();
    // Without this the upstream might have done several steps before the gateway is back, and show them as one.
    if let Killed::Sending | Killed::Begun | Killed::After(_) = killed {
        eventually("the gateway follows", || (metric(addr, "switchboard_relay_streams_open") == Some(1)).then_some(()));
        STEPS.iter().for_each(|step| open(&theirs, step));
    }
    let last = events.last().unwrap().id;
    events.extend(stream(addr, "SubscribeToTask", json!({"id": id}), Some(last)));
    let numbers: Vec<u64> = events.iter().map(|event| event.id).collect();
    assert_eq!(
        numbers,
        (1..=numbers.len() as u64).collect::<Vec<_>>(),
        "{killed:?}: none is missing, none comes twice"
    );

    let listed = call(upstream.addr, "ListTasks", json!({})).unwrap();
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 1, "{killed:?}: {listed}");
    assert_eq!(ran(), "go\n", "{killed:?}: executed once");
    let their_id = listed["tasks"][0]["id"].as_str().unwrap();
    let done: Vec<Event> = stream(upstream.addr, "SubscribeToTask", json!({"id": their_id}), Some(0)).collect();
    let shapes = |events: &[Event]| events[1..].iter().map(shape).collect::<Vec<_>>();
    assert_eq!(shapes(&events), shapes(&done), "{killed:?}");
    gateway.interrupt();
    upstream.interrupt();
    verify(&ours.join("data"));
}

#[test]
fn a_gateway_killed_at_any_step_of_a_relayed_message_passes_every_event_on_once() {
    let rounds = if std::env::var_os("SWITCHBOARD_TEST_LONG").is_some() { 10 } else { 1 };
    let moments = [
        Killed::Sending,
        Killed::Begun,
        Killed::After(1),
        Killed::After(2),
        Killed::After(3),
        Killed::BeforeTheEnd,
        Killed::Ended,
    ];
    for _ in 0..rounds {
        std::thread::scope(|threads| {
            for killed in moments {
                threads.spawn(move || kill_and_go_on(killed));
            }
        });
    }
}

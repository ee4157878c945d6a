//! Many clients, many kills, one ledger. Everything that was acknowledged must be there afterwards, as it was told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use super::http::{call, message, stream};
use super::process::{Server, free_addr, verify};

const KILLS: u32 = 8;
const KILLS_LONG: u32 = 100;
const CLIENTS: u64 = 6;

/// Acknowledged tasks: what was asked, by id.
type Ledger = Mutex<BTreeMap<String, String>>;

/// With fewer tasks than this a loss could go unseen.
const ACKNOWLEDGED_MIN: usize = 200;

#[test]
fn nothing_acknowledged_is_lost_however_often_the_server_is_killed() {
    let long = std::env::var_os("SWITCHBOARD_TEST_LONG").is_some();
    let kills = if long { KILLS_LONG } else { KILLS };
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let ledger = Arc::new(Ledger::default());
    let done = Arc::new(AtomicBool::new(false));
    let numbers = Arc::new(AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            let (ledger, done, numbers) = (ledger.clone(), done.clone(), numbers.clone());
            std::thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let number = numbers.fetch_add(1, Ordering::Relaxed);
                    let (id, text) = (format!("m-{number}"), format!("text {number} of client {client}"));
                    let task = if number % 3 == 0 {
                        let mut events = stream(addr, "SendStreamingMessage", message(&id, &text), None);
                        events.next().map(|event| event.result["task"]["id"].clone())
                    } else {
                        call(addr, "SendMessage", message(&id, &text)).map(|sent| sent["task"]["id"].clone())
                    };
                    match task {
                        Some(task) => {
                            ledger.lock().unwrap().insert(task.as_str().unwrap().to_owned(), text);
                        }
                        // The server is down at the moment.
                        None => std::thread::sleep(Duration::from_millis(5)),
                    }
                }
            })
        })
        .collect();
    // On a busy machine little is acknowledged between two kills; then there are more of them.
    for round in 0..4 * kills {
        if round >= kills && ledger.lock().unwrap().len() > ACKNOWLEDGED_MIN {
            break;
        }
        let server = Server::start(&data, addr);
        // A different moment each time, some of them right after the start.
        std::thread::sleep(Duration::from_millis(u64::from(round * 67 % 400)));
        server.kill();
    }
    let server = Server::start(&data, addr);
    done.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().expect("clients do not panic");
    }
    let ledger = ledger.lock().unwrap();
    assert!(ledger.len() > ACKNOWLEDGED_MIN, "only {} tasks were acknowledged between kills", ledger.len());
    for (id, text) in ledger.iter() {
        let task = call(addr, "GetTask", json!({"id": id})).expect("the server is up");
        assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{id}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], *text, "{id}");
    }
    println!("{} acknowledged tasks survived {kills} kills", ledger.len());
    server.interrupt();
    verify(&data);
}

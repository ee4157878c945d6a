//! A process that is killed while its agent waits for another agent: the next process goes on with the same task of that agent. The
//! process is this test itself, started once more.

use std::ffi::OsString;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard::call::ListTasks;
use switchboard::client::Client;
use switchboard::{AgentBuilder, AgentClient, Server, TaskState, Turn};
use switchboard_hub::callees::DirectoryCallees;
use switchboard_hub::directory::{Directory, Sources};
use tokio::sync::Semaphore;

use super::process::OwnProcess;
use crate::support::callers::{at_once, say, soon};
use crate::support::grpc::Served;

const DATABASE: &str = "SWITCHBOARD_TEST_CALLS_DATABASE";
const URL: &str = "SWITCHBOARD_TEST_CALLS_URL";

/// When the process is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// The other agent has begun, and the process may not know yet that it has.
    Begun,
    /// The process has recorded which task the other agent has.
    Recorded,
}

#[test]
fn a_call_in_the_middle_is_found_again_after_kill() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    if let (Some(database), Ok(url)) = (std::env::var_os(DATABASE), std::env::var(URL)) {
        return runtime.block_on(serve(database, url));
    }
    for moment in [Moment::Begun, Moment::Recorded] {
        runtime.block_on(killed(moment));
    }
}

/// The process that is killed.
async fn serve(database: OsString, url: String) {
    let manifest = format!(r#"[{{"id": "mail", "path": "/", "url": "{url}"}}]"#);
    let directory = Directory::open(Sources::new("/nowhere").manifest(&manifest)).await;
    let callees = DirectoryCallees::new(directory, Client::builder().build().unwrap());
    let desk = AgentBuilder::from_fn("Desk", |turn: Turn| async move {
        let answer = turn.call_and_wait("mail", turn.text()).await?;
        Ok(turn.answer(format!("attempt {}: {}", turn.attempt(), answer.text())).await?)
    });
    let server = Server::builder().agent(desk).callees(Arc::new(callees)).sqlite(Path::new(&database));
    let bound = server.build().unwrap().bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    println!("listening on {}", bound.local_addr());
    bound.run_until(pending(), Duration::ZERO).await;
}

fn start(database: &Path, url: &str) -> OwnProcess {
    let variables = [(DATABASE, database.as_os_str()), (URL, url.as_ref())];
    OwnProcess::start("crash::calls::a_call_in_the_middle_is_found_again_after_kill", &variables)
}

async fn desk_at(address: SocketAddr) -> AgentClient {
    Client::builder().build().unwrap().agent(&format!("http://{address}")).await.unwrap()
}

fn recorded(database: &Path) -> Option<String> {
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    let connection = rusqlite::Connection::open_with_flags(database, flags).unwrap();
    connection.query_row("SELECT called_task FROM a2a_calls", [], |row| row.get(0)).ok().flatten()
}

async fn killed(moment: Moment) {
    let (runs, permits) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let begun = Arc::new(Semaphore::new(0));
    let mail = {
        let (runs, permits, begun) = (runs.clone(), permits.clone(), begun.clone());
        AgentBuilder::from_fn("Mail", move |turn: Turn| {
            runs.fetch_add(1, Ordering::SeqCst);
            begun.add_permits(1);
            let permits = permits.clone();
            async move {
                permits.acquire().await?.forget();
                Ok(turn.answer(format!("sent {}", turn.text())).await?)
            }
        })
    };
    let mail = Served::start(Server::builder().agent(mail)).await;
    let url = format!("http://{}", mail.address);
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("tasks.db");

    let process = start(&database, &url);
    let desk = desk_at(process.addr).await;
    let task = soon(desk.send_with(at_once(say("a letter")))).await.unwrap().into_task().unwrap();
    soon(begun.acquire()).await.unwrap().forget();
    if let Moment::Recorded = moment {
        while recorded(&database).is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    drop(process);

    let process = start(&database, &url);
    permits.add_permits(10);
    let desk = desk_at(process.addr).await;
    let ended = loop {
        let task = soon(desk.task(&task.id)).await.unwrap();
        if task.state().is_terminal() {
            break task;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(ended.state(), TaskState::Completed, "{moment:?}: {ended:?}");
    assert_eq!(ended.artifacts[0].text(), "attempt 2: sent a letter", "{moment:?}");
    let theirs = Client::builder().build().unwrap().agent(&url).await.unwrap();
    let tasks = theirs.tasks(ListTasks::default()).await.unwrap().tasks;
    assert_eq!((tasks.len(), runs.load(Ordering::SeqCst)), (1, 1), "{moment:?}: the message was worked on once");
    assert_eq!(recorded(&database), Some(tasks[0].task.id.to_string()));
}

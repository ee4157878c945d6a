//! The blocking facade: without a runtime, and inside one.

use std::future::pending;
use std::sync::mpsc;
use std::time::Duration;

use switchboard::client::{CallTextOptions, InvokeOptions, blocking};
use switchboard::{CallErrorKind, Server, TaskId, TaskState};

use super::quick;
use crate::support::edge::echo;

/// A server on a thread of its own. It stops with the test.
fn url() -> String {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let server = Server::builder().agent(echo()).build().unwrap();
            let bound = server.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
            send.send(format!("http://{}", bound.local_addr())).unwrap();
            bound.run_until(pending(), Duration::ZERO).await;
        });
    });
    receive.recv().unwrap()
}

fn every_face(url: &str) {
    let client = blocking::Client::new(quick().build().unwrap()).unwrap();
    assert_eq!(client.discover(url).unwrap().card().name, "Echo");
    let agent = client.agent(url).unwrap();
    let task = agent.send_text("ask which?").unwrap().into_task().unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    assert_eq!(agent.reply_text(&task.id, "this").unwrap().text(), "this");
    let mut stream = agent.stream_text("chunks 3").unwrap();
    let seqs: Vec<u64> = stream.by_ref().map(|frame| frame.unwrap().seq.unwrap()).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert_eq!(stream.task().unwrap().artifacts[0].text(), "1 2 3 ");
    let mut waiting = agent.stream_text("wait").unwrap();
    waiting.next().unwrap().unwrap();
    let id = waiting.task().unwrap().id.clone();
    assert_eq!(agent.cancel(&id).unwrap().state(), TaskState::Canceled);
    assert!(waiting.map(Result::unwrap).count() > 0);
    let error = agent.task(&TaskId::from("nowhere")).unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::Refused);
    assert_eq!(client.call_text(url, "hello", CallTextOptions::default()).unwrap(), "hello");
    assert!(client.invoke(url, "hello", InvokeOptions::default()).unwrap().success);
    // An agent and a stream outlive their client.
    let stream = agent.stream_text("hello").unwrap();
    drop((client, agent));
    assert_eq!(stream.map(Result::unwrap).count(), 3);
}

#[test]
fn it_works_without_a_runtime() {
    every_face(&url());
}

#[tokio::test]
async fn it_works_inside_a_runtime() {
    every_face(&url());
}

#[test]
fn threads_share_a_client_and_do_not_wait_for_each_other() {
    let url = url();
    let client = blocking::Client::new(quick().build().unwrap()).unwrap();
    let agent = client.agent(&url).unwrap();
    let mut waiting = agent.stream_text("wait").unwrap();
    waiting.next().unwrap().unwrap();
    let id = waiting.task().unwrap().id.clone();
    let reader = std::thread::spawn(move || waiting.map(Result::unwrap).count());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let agent = agent.clone();
            scope.spawn(move || {
                let text = format!("hello {number}");
                assert_eq!(agent.send_text(&text).unwrap().text(), text);
            });
        }
    });
    agent.cancel(&id).unwrap();
    assert!(reader.join().unwrap() > 0);
}

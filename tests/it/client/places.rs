//! An agent that can be called at several places: where a call goes when one of them is not there, and when it comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard::{AgentClient, Message, Part, Role, TaskId};

use super::quick;
use crate::support::callers::soon;
use crate::support::scripted::{Script, Scripted, answer, json};

const TASK: &str =
    r#"{"jsonrpc":"2.0","id":1,"result":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;

/// What a place does, as its test says from call to call.
#[derive(Clone, Default)]
struct Does(Arc<AtomicUsize>);

const ANSWERS: usize = 0;
const IS_GONE: usize = 1;
const BREAKS: usize = 2;

impl Does {
    fn now(&self, what: usize) {
        self.0.store(what, Ordering::SeqCst);
    }
}

async fn place(does: &Does) -> Scripted {
    let does = does.0.clone();
    Scripted::start(move |_, _| match does.load(Ordering::SeqCst) {
        ANSWERS => json(TASK),
        IS_GONE => answer(404, "", "<html>"),
        _ => Script::Cut(Vec::new()),
    })
    .await
}

async fn agent_at(places: [&Scripted; 2]) -> AgentClient {
    let interface = |place: &Scripted| {
        format!(r#"{{"url":"{}/rpc/x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}}"#, place.url)
    };
    let card = format!(
        r#"{{"name":"Two","version":"1","supportedInterfaces":[{},{}]}}"#,
        interface(places[0]),
        interface(places[1])
    );
    quick().build().unwrap().agent(&card).await.unwrap()
}

#[tokio::test]
async fn a_call_comes_back_to_the_preferred_place_after_a_while_or_when_the_other_fails() {
    let (first_does, second_does) = (Does::default(), Does::default());
    let (first, second) = (place(&first_does).await, place(&second_does).await);
    let agent = agent_at([&first, &second]).await;
    let asked = || (first.asked().len(), second.asked().len());
    let id = TaskId::from("t");
    let look = || soon(agent.task(&id));
    first_does.now(IS_GONE);
    look().await.unwrap();
    look().await.unwrap();
    assert_eq!(asked(), (1, 2), "the place that answered is remembered");
    assert!(agent.spoken().unwrap().url.starts_with(&second.url));
    // The other one breaks: the attempt after it begins with the preferred place.
    first_does.now(ANSWERS);
    second_does.now(BREAKS);
    look().await.unwrap();
    assert_eq!(asked(), (2, 4), "a kept connection that breaks is dialled once more");
    look().await.unwrap();
    assert_eq!(asked(), (3, 4));
    // The other one is not there any more: the rest of the places are tried, the preferred one included.
    first_does.now(IS_GONE);
    second_does.now(ANSWERS);
    look().await.unwrap();
    assert_eq!(asked(), (4, 5));
    first_does.now(ANSWERS);
    second_does.now(IS_GONE);
    look().await.unwrap();
    assert_eq!(asked(), (5, 6));
    // After a while the preferred one is tried again, and if it is still not there, that is remembered for as long.
    first_does.now(IS_GONE);
    second_does.now(ANSWERS);
    look().await.unwrap();
    assert_eq!(asked(), (6, 7));
    let minutes_later = async {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(300)).await;
        tokio::time::resume();
    };
    minutes_later.await;
    look().await.unwrap();
    look().await.unwrap();
    assert_eq!(asked(), (7, 9));
    first_does.now(ANSWERS);
    look().await.unwrap();
    assert_eq!(asked(), (7, 10));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(300)).await;
    tokio::time::resume();
    look().await.unwrap();
    look().await.unwrap();
    assert_eq!(asked(), (9, 10));
}

#[tokio::test]
async fn a_file_goes_to_0_3_over_json_rpc_where_that_is_offered() {
    let task = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}"#;
    let server = Scripted::start(move |_, asked| match asked.line.as_str() {
        "POST /rpc" => json(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{task}}}"#)),
        "POST /v1/message:send" => {
            json(r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}"#)
        }
        _ => answer(404, "", ""),
    })
    .await;
    let card = format!(
        r#"{{"name":"Old","version":"1","protocolVersion":"0.3.0","url":"{url}","preferredTransport":"HTTP+JSON","additionalInterfaces":[{{"url":"{url}/rpc","transport":"JSONRPC"}}]}}"#,
        url = server.url
    );
    let agent = quick().build().unwrap().agent(&card).await.unwrap();
    let file = Part::raw(vec![0, 159, 146, 150]);
    let message = |part: &Part| Message::new(Role::User, "", vec![part.clone()]);
    for part in [Part::text("hello"), file, Part::text("bye")] {
        soon(agent.send(message(&part))).await.unwrap();
    }
    assert_eq!(server.lines(), ["POST /v1/message:send", "POST /rpc", "POST /v1/message:send"]);
}

//! The public crate without a socket: what a program embeds, end to end.

use expect_test::expect;
use futures_util::StreamExt;
use switchboard::call::{ListTasks, UpdateStream};
use switchboard::{AgentBuilder, Limits, ProtocolError, Server, TaskState, TaskStream, Turn};

use crate::support::pictures::{film, picture};

fn updates(stream: TaskStream) -> UpdateStream {
    Box::pin(stream.map(|frame| frame.map_err(ProtocolError::from)))
}

fn server() -> Server {
    let asking = AgentBuilder::from_fn("Travel Agent!", |turn: Turn| async move {
        match (turn.number(), turn.text().as_str()) {
            (_, "wait") => {
                turn.working("packing").await?;
                turn.cancelled().await;
            }
            (1, _) => turn.ask("where to?").await?,
            (_, place) => turn.answer(format!("a ticket to {place}")).await?,
        }
        Ok(())
    });
    Server::builder().agent(asking).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_conversation_over_the_local_door() {
    let server = server();
    assert!(server.local("nobody").is_none());
    let agent = server.local("travel-agent").unwrap();
    let task = agent.send_text("book me a trip").await.unwrap().into_task().unwrap();
    assert_eq!(task.state(), TaskState::InputRequired);
    let task = agent.reply_text(&task.id, "Lisbon").await.unwrap().into_task().unwrap();
    expect![[r#"
        completed
        user: book me a trip
        agent: where to?
        user: Lisbon
        artifact-2-1: a ticket to Lisbon
    "#]]
    .assert_eq(&picture(&task));
    assert_eq!(agent.task(&task.id).await.unwrap(), task);
    assert_eq!(agent.tasks(ListTasks::default()).await.unwrap().total_size, 1);
}

#[tokio::test(start_paused = true)]
async fn callers_of_the_local_door_have_their_own_tasks() {
    let server = server();
    let agent = server.local("travel-agent").unwrap();
    let alice = agent.clone().as_caller("acme", "alice");
    let task = alice.send_text("book me a trip").await.unwrap().into_task().unwrap();
    assert_eq!(alice.task(&task.id).await.unwrap(), task);
    assert_eq!(agent.task(&task.id).await.unwrap_err().to_string(), "Task not found");
    let bob = agent.as_caller("acme", "bob");
    assert_eq!(bob.cancel(&task.id).await.unwrap_err().to_string(), "Task not found");
}

#[tokio::test(start_paused = true)]
async fn streams_and_cancels_work_over_the_local_door() {
    let server = server();
    let agent = server.local("travel-agent").unwrap();
    let stream = agent.stream_text("wait").await.unwrap();
    let task = agent.tasks(ListTasks::default()).await.unwrap().tasks[0].task.clone();
    let followed = agent
        .clone()
        .with_caller(|caller| caller.last_event_id = Some("0".to_owned()))
        .subscribe(&task.id)
        .await
        .unwrap();
    let followed = tokio::spawn(film(updates(followed)));
    tokio::task::yield_now().await;
    assert_eq!(agent.cancel(&task.id).await.unwrap().state(), TaskState::Canceled);
    let shown = film(updates(stream)).await;
    expect![[r#"
        1 task submitted said [wait] made []
        2 working "packing"
        3 canceled
    "#]]
    .assert_eq(&shown);
    assert_eq!(followed.await.unwrap(), shown);
}

#[tokio::test(start_paused = true)]
async fn what_is_configured_wrongly_is_said_in_a_sentence() {
    let agent = |name: &str| AgentBuilder::from_fn(name, |_: Turn| async { Ok(()) });
    let said = |builder: switchboard::ServerBuilder| builder.build().err().unwrap().to_string();
    let server = || Server::builder().agent(agent("Echo"));
    assert_eq!(said(Server::builder()), "no agent was given; add one with ServerBuilder::agent");
    assert_eq!(said(server().agent(agent("echo"))), "two agents have the slug \"echo\"");
    assert_eq!(said(server().agent(agent("Tasks"))), "agent slug \"tasks\" is reserved; choose another name");
    let fit = "must be 1 to 64 letters, digits, '-', '_', '.' or '~', and not begin with a dot";
    assert_eq!(said(server().agent(agent("x").slug("a b"))), format!("agent slug \"a b\" {fit}"));
    assert_eq!(said(server().tenants(["a/b"])), format!("tenant \"a/b\" {fit}"));
    assert_eq!(said(server().tenants(["metrics"])), "tenant \"metrics\" is reserved; choose another name");
    let wrong = "public URL \"ftp://x\" must begin with http:// or https:// and name a host";
    assert_eq!(said(server().public_url("ftp://x")), wrong);
    assert_eq!(said(server().public_url("https://x/?q")), "public URL \"https://x/?q\" must not have a query");
    let invites = "the public URL \"https://agents.example\" invites clients from other machines, and without tokens each of \
                   them could use every agent and read every task; give out tokens (ServerBuilder::tokens), or call \
                   ServerBuilder::allow_unauthenticated";
    assert_eq!(said(server().public_url("https://agents.example")), invites);
    let tokens = switchboard::Tokens::parse("0123456789abcdef alice").unwrap();
    assert!(server().public_url("https://agents.example").tokens(tokens).build().is_ok());
    assert!(server().public_url("https://agents.example").allow_unauthenticated(true).build().is_ok());
    for local in ["http://localhost:3000", "http://127.0.0.2/a2a", "https://[::1]:8443"] {
        assert!(server().public_url(local).build().is_ok(), "{local}");
    }
    assert_eq!(said(server().tokens(switchboard::Tokens::default())), "the list of tokens is empty");
}

#[tokio::test]
async fn an_address_that_other_machines_reach_needs_tokens_or_a_word() {
    let server = || Server::builder().agent(AgentBuilder::from_fn("Echo", |_: Turn| async { Ok(()) }));
    let tokens = switchboard::Tokens::parse("0123456789abcdef alice").unwrap();
    for address in ["0.0.0.0:0", "[::ffff:192.0.2.1]:0"] {
        let refused = server().build().unwrap().bind(address.parse().unwrap()).await.err().unwrap();
        let expected = format!(
            "{address} can be reached from other machines, and every client that reaches it could use every agent and read \
             every task; give out tokens (ServerBuilder::tokens), or call ServerBuilder::allow_unauthenticated"
        );
        assert_eq!(refused.to_string(), expected);
        assert_eq!(refused.kind(), switchboard::ServeErrorKind::Configuration);
    }
    let open = "0.0.0.0:0".parse().unwrap();
    assert!(server().tokens(tokens).build().unwrap().bind(open).await.is_ok());
    assert!(server().allow_unauthenticated(true).build().unwrap().bind(open).await.is_ok());
    assert!(server().build().unwrap().bind("127.0.0.1:0".parse().unwrap()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn memory_holds_as_many_tasks_as_it_is_told_and_drops_the_oldest_ended_one() {
    let echo = || AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) });
    let keeping = |tasks_max| Limits { retention_tasks_max: tasks_max, ..Limits::default() };
    for (builder, kept) in [
        (Server::builder().memory_holding(2), 2),
        (Server::builder().engine_limits(keeping(3)), 3),
        (Server::builder().memory_holding(4).engine_limits(keeping(100)), 4),
    ] {
        let server = builder.agent(echo()).build().unwrap();
        let agent = server.local("echo").unwrap();
        let first = agent.send_text("first").await.unwrap().into_task().unwrap();
        for _ in 1..kept {
            agent.send_text("another").await.unwrap();
        }
        assert_eq!(agent.tasks(ListTasks::default()).await.unwrap().total_size, kept);
        agent.send_text("one too many").await.unwrap();
        assert_eq!(agent.tasks(ListTasks::default()).await.unwrap().total_size, kept);
        assert_eq!(agent.task(&first.id).await.unwrap_err().to_string(), "Task not found");
    }
}

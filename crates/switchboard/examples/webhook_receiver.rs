//! An agent that works in the background, and a program that is told of its progress by webhook: nothing is polled, and no connection
//! stays open. The receiver is a route of an axum app. It says that it wants webhooks when it is asked, and verifies each post: its signature, and
//! the token by which the server shows who it is. It ends with the task.

use std::future::{IntoFuture as _, pending};
use std::io::Write as _;
use std::time::Duration;

use axum::Router;
use switchboard::call::SendMessage;
use switchboard::client::{Client, WebhookReceiver, WebhookServer, WebhookUpdate};
use switchboard::model::{AuthenticationInfo, PushConfig, Update};
use switchboard::{
    AgentBuilder, AgentError, KeyAlgorithm, Message, Part, Role, Server, SigningKeys, SigningSecrets, Turn,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // The agent, on a server that may post to this machine, asks receivers whether they want it, and signs what it posts.
    let baker = AgentBuilder::from_fn("Baker", |turn: Turn| async move {
        turn.working("Kneading").await?;
        turn.working("Baking").await?;
        turn.answer("A loaf of bread").await?;
        Ok::<_, AgentError>(())
    });
    let server = Server::builder().agent(baker).outbound_allow(["127.0.0.1"]).challenge_webhooks(true);
    let server = server.signing_keys(SigningKeys::generate(KeyAlgorithm::Es256)?);
    let bound = server.sign_webhooks(SigningSecrets::parse(SECRET)?).build()?.bind(([127, 0, 0, 1], 0).into()).await?;
    let url = format!("http://{}", bound.local_addr());

    // The receiver: it knows the server by its secret and by the keys that it publishes, and hands updates on to the program.
    let (updates, mut received) = mpsc::channel(16);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let origin = format!("http://{}", listener.local_addr()?);
    let receiver = WebhookReceiver::builder()
        .token("s3cret")
        .secrets(SigningSecrets::parse(SECRET)?)
        .server(WebhookServer::new(&url, &origin))
        .answer_challenges()
        .build(move |update: WebhookUpdate| {
            let updates = updates.clone();
            async move { Ok(updates.send(update).await?) }
        })?;
    let receiving = axum::serve(listener, Router::new().route_service("/hook", receiver)).into_future();
    let hook = format!("{origin}/hook");

    tokio::select! {
        outcome = order(&url, hook, &mut received) => outcome,
        _ = receiving => anyhow::bail!("the receiver stopped"),
        () = bound.run_until(pending(), Duration::ZERO) => anyhow::bail!("the agent stopped"),
    }
}

/// Sends a message and reads what the webhook brings until the task has ended.
async fn order(url: &str, hook: String, received: &mut mpsc::Receiver<WebhookUpdate>) -> anyhow::Result<()> {
    // The message names the webhook and is answered at once.
    let agent = Client::builder().build()?.agent(url).await?;
    let config = PushConfig {
        id: "progress".into(),
        task_id: "".into(),
        url: hook,
        token: Some("s3cret".to_owned()),
        // The server shows a token of its own to receivers that ask for one and give none.
        authentication: Some(AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: None }),
    };
    let send = SendMessage {
        open_as: None,
        message: Message::new(Role::User, "", vec![Part::text("Bread, please")]),
        accepted_output_modes: Vec::new(),
        push_config: Some(config),
        history_length: None,
        return_immediately: true,
        metadata: None,
    };
    agent.send_with(send).await?;
    let mut out = std::io::stdout();
    while let Some(WebhookUpdate { update, seq, .. }) = received.recv().await {
        let state = match &update {
            Update::Task(view) => view.task.state(),
            Update::Status(update) => update.status.state,
            Update::Artifact(update) => {
                writeln!(out, "{seq:?}: {}", update.artifact.text())?;
                continue;
            }
            Update::Message(_) => continue,
        };
        writeln!(out, "{seq:?}: {state:?}")?;
        if state.is_terminal() {
            return Ok(());
        }
    }
    anyhow::bail!("the receiver stopped")
}

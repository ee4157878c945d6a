//! The agent that the official test kits want to talk to: the beginning of a message's id says what it should do.
//!
//! `--config full|minimal|required-extension` chooses what its card offers to the kit of A2A 1.0, `--config 0.3` makes it
//! the agent that the kit of 0.3 expects. `--listen ADDR` says where. Tasks are in memory, or with `--store URL` in a PostgreSQL that several
//! such servers share, which clients find at `--public-url URL`.

#![expect(clippy::print_stderr, reason = "the program that runs the kit waits for the address")]

use std::net::SocketAddr;
use std::time::Duration;

use switchboard::{
    Agent, AgentBuilder, AgentError, Artifact, CardForm, Json, Part, ProtocolBinding, Replies, Server, ServerBuilder,
    Skill, TaskState, Traits, Turn,
};

/// For the kit of 1.0.
struct Conformance;

/// For the kit of 0.3, which sends anything and wants a task that can still be canceled, answered and followed.
struct Conversation;

/// Twice the kit's own patience with a stream.
const STAY_ACTIVE: Duration = Duration::from_secs(4);
const DELAY: Duration = Duration::from_secs(2);
const THOUGHT: Duration = Duration::from_secs(1);

impl Agent for Conformance {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let id = turn.message().message_id.clone();
        let is = |prefix: &str| id.as_str().starts_with(prefix);
        if is("tck-message-response") {
            turn.reply(vec![Part::text("Direct message response")]).await?;
        } else if is("tck-input-required") {
            turn.ask("What else do you want me to know?").await?;
        } else if is("tck-auth-required") {
            turn.require_auth("Somebody has to allow this first").await?;
        } else if is("tck-reject-task") {
            turn.reject("Not this one").await?;
        } else if is("tck-artifact-file-url") {
            let part = Part::url("https://example.com/output.txt");
            artifact(&turn, part.with_filename("output.txt").with_media_type("text/plain")).await?;
        } else if is("tck-artifact-file") {
            artifact(&turn, file()).await?;
        } else if is("tck-artifact-data") {
            artifact(&turn, Part::json(Json::from_trusted(r#"{"key":"value","count":42}"#))).await?;
        } else if is("tck-artifact-text") {
            artifact(&turn, Part::text("Generated text content")).await?;
        } else if is("tck-stream-002") {
            turn.status(TaskState::Completed, Vec::new()).await?;
        } else if is("tck-stream-artifact-chunked") {
            turn.working("").await?;
            let mut writer = turn.artifact_writer();
            writer.text("chunk-1 ").await?;
            writer.finish(vec![Part::text("chunk-2")]).await?;
        } else if is("tck-stream-artifact-file") {
            turn.working("").await?;
            artifact(&turn, file()).await?;
        } else if let Some(text) = stream_text(id.as_str()) {
            turn.working("").await?;
            artifact(&turn, Part::text(text)).await?;
        } else if is("test-resubscribe-message-id") {
            turn.working("").await?;
            tokio::time::sleep(STAY_ACTIVE).await;
        } else if is("tck-delayed-complete") {
            turn.working("").await?;
            tokio::time::sleep(DELAY).await;
            turn.complete("Done after delay").await?;
        } else {
            turn.complete("Hello from TCK").await?;
        }
        Ok(())
    }

    fn traits(&self) -> Traits {
        Traits::pure().with_replies(Replies::Either)
    }
}

impl Agent for Conversation {
    async fn run(&self, turn: Turn) -> Result<(), AgentError> {
        let id = turn.message().message_id.clone();
        turn.working("").await?;
        if id.as_str().starts_with("test-resubscribe-message-id") {
            tokio::time::sleep(STAY_ACTIVE).await;
            return Ok(());
        }
        tokio::time::sleep(THOUGHT).await;
        turn.ask("What else do you want me to know?").await?;
        Ok(())
    }

    fn traits(&self) -> Traits {
        Traits::pure()
    }
}

fn stream_text(id: &str) -> Option<&'static str> {
    [
        ("tck-stream-001", "Stream hello from TCK"),
        ("tck-stream-003", "Stream task lifecycle"),
        ("tck-stream-ordering-001", "Ordered output"),
        ("tck-stream-artifact-text", "Streamed text content"),
    ]
    .into_iter()
    .find_map(|(prefix, text)| id.starts_with(prefix).then_some(text))
}

fn file() -> Part {
    Part::raw(b"file content".as_slice()).with_filename("output.txt").with_media_type("text/plain")
}

async fn artifact(turn: &Turn, part: Part) -> Result<(), AgentError> {
    turn.artifact(Artifact::new("", vec![part])).await?;
    Ok(())
}

fn server(config: &str) -> anyhow::Result<ServerBuilder> {
    let agent = if config == "0.3" {
        AgentBuilder::new("Conformance", Conversation)
    } else {
        AgentBuilder::new("Conformance", Conformance)
    };
    let agent = agent
        .description("Does what the official test kit expects")
        .output_modes(["text/plain", "application/json"])
        .skill(Skill::new("tck", "Test kit", "Answers by the beginning of a message's id").tag("test"));
    let agent = match config {
        "full" => agent.extended_card(|card| card.description.push_str(", extended")).extended_card_for_anyone(),
        // This kit wants the extended card refused with -32007 or -32603 to anonymous callers, not with 401.
        "0.3" => agent,
        "minimal" => agent.streaming(false).push_notifications(false),
        "required-extension" => agent.extension("urn:a2a:tck:required-extension", "Must be asked for", true),
        other => anyhow::bail!("--config {other}: expected full, minimal, required-extension or 0.3"),
    };
    // The kit of 1.0 refuses members it does not know.
    let card = if config == "0.3" { CardForm::All } else { CardForm::V1_0 };
    // The kit's own webhook receiver is on this machine.
    let server = Server::builder().agent(agent).card_form(card);
    // The card of 1.0 names gRPC by itself, the one of all versions only when asked to.
    let server = if config == "0.3" { server.interfaces(ProtocolBinding::ALL) } else { server };
    Ok(server.outbound_allow(["127.0.0.0/8", "::1/128"]))
}

/// Keeps tasks in PostgreSQL.
#[cfg(feature = "postgres")]
fn shared(server: ServerBuilder, url: String) -> anyhow::Result<ServerBuilder> {
    let keys = switchboard::SecretKeys::parse(&std::env::var("SWITCHBOARD_SECRETS_KEY")?)?;
    Ok(server.postgres(switchboard::PostgresOptions::new(url).secrets(keys)))
}

#[cfg(not(feature = "postgres"))]
fn shared(_: ServerBuilder, url: String) -> anyhow::Result<ServerBuilder> {
    anyhow::bail!("--store {url} needs a build with the feature postgres")
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (mut config, mut listen) = ("full".to_owned(), SocketAddr::from(([127, 0, 0, 1], 9999)));
    let (mut public_url, mut store) = (None, None);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| anyhow::anyhow!("{word} needs a value"))?;
        match word.as_str() {
            "--config" => config = value,
            "--listen" => listen = value.parse()?,
            "--public-url" => public_url = Some(value),
            "--store" => store = Some(value),
            other => anyhow::bail!("{other}: expected --config, --listen, --public-url or --store"),
        }
    }
    let mut server = server(&config)?;
    if let Some(url) = public_url {
        server = server.public_url(url);
    }
    if let Some(url) = store {
        server = shared(server, url)?;
    }
    let bound = server.build()?.bind(listen).await?;
    eprintln!("listening on {}", bound.local_addr());
    let stop = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    bound.run_until(stop, Duration::from_secs(1)).await;
    Ok(())
}

//! `switchboard agents`: the agents elsewhere that an operator has accepted, each a file with the card that was seen.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use switchboard::call::Request;
use switchboard::client::{Client, Credentials, DiscoveredCard};
use switchboard::model::AgentCard;
use switchboard::{CallError, ProtocolError};
use switchboard_hub::relay::{PinnedAgent, card_changes};

use crate::config::{Environment, REMOTE_AGENTS_NAME, read_layers};
use crate::data_args::DataArgs;
use crate::failure::Failure;
use crate::relays::{read_card, remote_agents, same_url};

pub(crate) const EXAMPLES: &str = "\
Examples:
  switchboard agents add https://weather.example
      Reads the card and keeps it as accepted. A relay to that URL compares its
      upstream with it from then on: changed skills, provider, signing keys or
      hosts are in the log, and with card_changes = \"refuse\" messages are
      refused until the change is accepted.
  switchboard agents test weather
      Whether the agent answers, and in what its card differs now.
  switchboard agents refresh weather
      Shows in what the card differs, and accepts it. A server that runs knows
      within a minute.

Where they are:
  In the folder `remote-agents` of the data folder, a file ID.json for each.";

/// How long an agent has for each answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);

#[derive(Subcommand)]
pub(crate) enum AgentsCommand {
    /// Accept an agent with the card that it shows now
    Add(AddArgs),
    /// List the accepted agents
    List(ListArgs),
    /// Show what was accepted about an agent
    Show(ShowArgs),
    /// Forget an agent; relays to it accept every card again
    Remove(NamedArgs),
    /// Ask an agent whether it answers, and compare its card
    Test(CallArgs),
    /// Accept the card that an agent shows now
    Refresh(CallArgs),
}

#[derive(Args)]
pub(crate) struct AddArgs {
    /// The agent, or its card
    url: String,
    /// What it is called here [default: made from the name on its card]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    /// Name of the variable that holds a token for it, if its card wants one
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    #[command(flatten)]
    of: DataArgs,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: DataArgs,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// What it is called here
    id: String,
    /// Print the file: where it is, and the card as it came
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    of: DataArgs,
}

#[derive(Args)]
pub(crate) struct NamedArgs {
    /// What it is called here
    id: String,
    #[command(flatten)]
    of: DataArgs,
}

#[derive(Args)]
pub(crate) struct CallArgs {
    /// What it is called here
    id: String,
    /// Name of the variable that holds a token for it
    #[arg(long, value_name = "NAME")]
    token_env: Option<String>,
    #[command(flatten)]
    of: DataArgs,
}

/// Runs the command and returns the text to print.
///
/// # Errors
/// When an agent does not answer, is not known, or its card has changed and was to be tested.
pub(crate) async fn run(command: &AgentsCommand, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let data = |of: &DataArgs| data_folder(of, environment, folder);
    match command {
        AgentsCommand::Add(args) => add(args, &data(&args.of)?, environment).await,
        AgentsCommand::List(args) => list(&data(&args.of)?, args.json),
        AgentsCommand::Show(args) => show(&data(&args.of)?, args),
        AgentsCommand::Remove(args) => {
            let (path, agent) = find(&data(&args.of)?, &args.id)?;
            std::fs::remove_file(&path).map_err(|error| Failure::runtime(format!("{}: {error}", path.display())))?;
            Ok(format!("removed {}", agent.id))
        }
        AgentsCommand::Test(args) => test(args, &data(&args.of)?, environment).await,
        AgentsCommand::Refresh(args) => refresh(args, &data(&args.of)?, environment).await,
    }
}

/// The data folder that flags, environment and configuration name, in this order.
fn data_folder(of: &DataArgs, environment: &Environment, folder: &Path) -> Result<PathBuf, Failure> {
    let (server, _) = read_layers(&of.settings(), of.config.as_deref(), environment, folder).server()?;
    match server.storage().folder() {
        Some(data) => Ok(folder.join(data)),
        None => Err(Failure::Usage("the configuration keeps tasks in memory; name a folder with --data".to_owned())),
    }
}

async fn add(args: &AddArgs, data: &Path, environment: &Environment) -> Result<String, Failure> {
    let client = client(args.token_env.as_deref(), environment)?;
    let found = client.discover(&args.url).await.map_err(Failure::runtime)?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => crate::config::slug_of(&found.card().name),
    };
    let id = crate::config::path_name(id).map_err(|why| Failure::Usage(format!("--id: {why}")))?;
    let known = remote_agents(data).map_err(Failure::runtime)?;
    if let Some((_, other)) = known.iter().find(|(_, agent)| agent.id == id || same_url(&agent.url, &args.url)) {
        let why =
            format!("{} ({}) is accepted already; `switchboard agents refresh {}`", other.id, other.url, other.id);
        return Err(Failure::Usage(format!("{why} accepts its card as it is now")));
    }
    let agent = pinned(id, args.url.clone(), &found)?;
    write(data, &agent)?;
    Ok(format!("added {}\n{}", agent.id, summary(&agent, found.card())))
}

fn list(data: &Path, json: bool) -> Result<String, Failure> {
    let agents = remote_agents(data).map_err(Failure::runtime)?;
    if json {
        let agents = agents.iter().map(|(path, agent)| {
            serde_json::json!({"id": agent.id, "name": agent.name, "url": agent.url, "pinnedAt": agent.pinned_at, "file": path})
        });
        return Ok(serde_json::Value::from_iter(agents).to_string());
    }
    if agents.is_empty() {
        return Ok("no agent was accepted; `switchboard agents add URL` accepts one".to_owned());
    }
    let line = |(_, agent): &(PathBuf, PinnedAgent)| format!("{}  {}  {}", agent.id, agent.url, agent.name);
    Ok(agents.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn show(data: &Path, args: &ShowArgs) -> Result<String, Failure> {
    let (path, agent) = find(data, &args.id)?;
    if args.json {
        return serde_json::to_string_pretty(&agent).map_err(Failure::runtime);
    }
    let card = read_card(&agent).map_err(Failure::runtime)?;
    let said = match card {
        Some(card) => summary(&agent, &card),
        None => format!("URL: {}\nCard: none was accepted; `switchboard agents refresh {}`", agent.url, agent.id),
    };
    Ok(format!("{}\n{said}\nFile: {}", agent.id, path.display()))
}

async fn test(args: &CallArgs, data: &Path, environment: &Environment) -> Result<String, Failure> {
    let (_, agent) = find(data, &args.id)?;
    let client = client(args.token_env.as_deref(), environment)?;
    let found = client.discover(&agent.url).await.map_err(Failure::runtime)?;
    let changes = changes(&agent, &found)?;
    let called = client.agent(&agent.url).await.map_err(Failure::runtime)?;
    // No agent has a task of this id. An agent that answers so can be reached and speaks A2A.
    let asked = called.call(Request::GetTask { id: "switchboard-agents-test".into(), history_length: Some(0) }).await;
    if let Err(error) = asked
        && !is_answer(&error)
    {
        return Err(Failure::runtime(format!("{} does not answer: {error}", agent.url)));
    }
    match changes.is_empty() {
        true => Ok(format!("{} answers, and its card is as it was accepted", agent.id)),
        false => Err(Failure::runtime(format!(
            "{} answers, and its card has changed:\n{}\n`switchboard agents refresh {}` accepts it",
            agent.id,
            changes.join("\n"),
            agent.id
        ))),
    }
}

/// Whether an agent has understood a question about a task that it cannot know.
fn is_answer(error: &CallError) -> bool {
    matches!(error.protocol_error(), Some(ProtocolError::TaskNotFound { .. } | ProtocolError::InvalidParams { .. }))
}

async fn refresh(args: &CallArgs, data: &Path, environment: &Environment) -> Result<String, Failure> {
    let (_, agent) = find(data, &args.id)?;
    let client = client(args.token_env.as_deref(), environment)?;
    let found = client.discover(&agent.url).await.map_err(Failure::runtime)?;
    let changes = changes(&agent, &found)?;
    let agent = pinned(agent.id, agent.url, &found)?;
    write(data, &agent)?;
    match changes.is_empty() {
        true => Ok(format!("{}: nothing that matters has changed", agent.id)),
        false => Ok(format!("{}: accepted\n{}", agent.id, changes.join("\n"))),
    }
}

/// In what the card of an agent differs from the accepted one.
fn changes(agent: &PinnedAgent, found: &DiscoveredCard) -> Result<Vec<String>, Failure> {
    let accepted = read_card(agent).map_err(Failure::runtime)?;
    Ok(accepted.map(|accepted| card_changes(&accepted, found.card())).unwrap_or_default())
}

fn find(data: &Path, id: &str) -> Result<(PathBuf, PinnedAgent), Failure> {
    let agents = remote_agents(data).map_err(Failure::runtime)?;
    let names = agents.iter().map(|(_, agent)| agent.id.clone()).collect::<Vec<_>>().join(", ");
    let found = agents.into_iter().find(|(_, agent)| agent.id.eq_ignore_ascii_case(id));
    found.ok_or_else(|| match names.is_empty() {
        true => Failure::Usage(format!("no agent {id:?} was accepted; `switchboard agents add URL` accepts one")),
        false => Failure::Usage(format!("no agent {id:?} was accepted; there are {names}")),
    })
}

fn client(token_env: Option<&str>, environment: &Environment) -> Result<Client, Failure> {
    let mut limits = switchboard::client::ClientLimits::default();
    limits.call = ANSWER_MAX;
    let credentials = match token_env {
        Some(name) => {
            let refuse = |why: &str| Failure::Usage(format!("--token-env: the variable {name} {why}"));
            let token = environment.raw(name).ok_or_else(|| refuse("is not set"))?;
            Credentials::bearer(token.into_string().map_err(|_| refuse("is not text"))?.trim())
        }
        None => Credentials::none(),
    };
    Client::builder().limits(limits).credentials(credentials).build().map_err(Failure::runtime)
}

#[expect(clippy::disallowed_methods, reason = "when a card was accepted is for people to read")]
fn pinned(id: String, url: String, found: &DiscoveredCard) -> Result<PinnedAgent, Failure> {
    let card = found.card();
    let json = serde_json::from_slice(found.json()).map_err(Failure::runtime)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map(|since| since.as_secs()).ok();
    let (name, description) = (card.name.clone(), card.description.clone());
    Ok(PinnedAgent { id, name, url, description, pinned_at: now, card: Some(json) })
}

fn write(data: &Path, agent: &PinnedAgent) -> Result<(), Failure> {
    let folder = data.join(REMOTE_AGENTS_NAME);
    let path = folder.join(format!("{}.json", agent.id));
    let text = serde_json::to_string_pretty(agent).map_err(Failure::runtime)?;
    let new = path.with_extension("new");
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&new, text + "\n"))
        .and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|error| Failure::runtime(format!("{} cannot be written: {error}", path.display())))
}

/// What an operator accepts.
fn summary(agent: &PinnedAgent, card: &AgentCard) -> String {
    let list = |items: Vec<String>| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let provider = card.provider.iter().map(|known| format!("{} ({})", known.organization, known.url)).collect();
    let skills = card.skills.iter().map(|skill| skill.id.clone()).collect();
    let interface = |known: &switchboard::model::AgentInterface| {
        format!("{} {} {}", known.protocol_binding, known.protocol_version, known.url)
    };
    let interfaces = card.supported_interfaces.iter().map(interface).collect();
    [
        format!("URL: {}", agent.url),
        format!("Name: {}", card.name),
        format!("Version: {}", card.version),
        format!("Provider: {}", list(provider)),
        format!("Skills: {}", list(skills)),
        format!("Interfaces: {}", list(interfaces)),
        format!("Signatures: {}", card.signatures.len()),
    ]
    .join("\n")
}

#[cfg(test)]
#[path = "remote_agents_tests.rs"]
mod tests;

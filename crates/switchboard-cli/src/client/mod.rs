//! The client commands, after the a2a-cli specification (v0.2): `card`, `send`, `task`, `auth`, `config` and `chat`.
//!
//! `options` is what may be typed, `settings` adds the environment and files, `reference` and `session` find the agent and check
//! what its card tells, `follow` waits for tasks, `render` and `printer` are the output, and `error` is every failure with its code.
//! Nothing is remembered from one command to the next but tokens of `auth login`.

pub(crate) mod auth;
pub(crate) mod card;
pub(crate) mod chat;
mod debug;
mod download;
pub(crate) mod error;
mod follow;
pub(crate) mod listen;
pub(crate) mod options;
pub(crate) mod printer;
mod push;
pub(crate) mod reference;
mod render;
pub(crate) mod send;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod show_config;
pub(crate) mod task;
mod task_args;
pub(crate) mod text;
pub(crate) mod tokens;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{ArgMatches, Subcommand};

use crate::config::Environment;
use auth::AuthCommand;
use card::CardCommand;
use chat::ChatArgs;
use error::{ClientError, Code};
use options::{CommonArgs, Flags};
use printer::Printer;
use send::SendArgs;
use session::Session;
use settings::{KEYS, Settings};
use show_config::ConfigCommand;
use task::TaskCommand;
use tokens::Tokens;

#[derive(Subcommand)]
pub(crate) enum ClientCommand {
    /// Send a message to an agent, and wait for the answer
    Send(Box<SendArgs>),
    /// Look at the card of an agent
    #[command(subcommand)]
    Card(CardCommand),
    /// Look at tasks, cancel them, follow them, save their artifacts
    #[command(subcommand)]
    Task(TaskCommand),
    /// Talk to an agent in the terminal
    Chat(Box<ChatArgs>),
    /// Log in to agents that want tokens of OAuth 2.0 or OpenID Connect
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Look at the settings of the commands that call agents
    #[command(subcommand)]
    Config(ConfigCommand),
}

/// The names of the commands here.
const COMMANDS: [&str; 6] = ["card", "send", "task", "auth", "config", "chat"];
/// Those of the commands that look at agents in their own way, and fail in the same words.
const CHECKS: [&str; 2] = ["conformance", "doctor"];

/// Runs a client command.
pub(crate) fn run(command: &ClientCommand, matches: &ArgMatches, environment: &Environment) -> ExitCode {
    let (flags, common) = said(command);
    let settings = match Settings::read(&flags, common.config.as_deref(), environment, Path::new("")) {
        Ok(settings) => settings,
        Err(error) => {
            let asked = common.output.clone().or_else(|| of_variable(environment));
            return Printer::plain(asked.as_deref() == Some("json")).fail(&error);
        }
    };
    let session = Session::new(settings, Tokens::of(environment), common.stream);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return session.printer.fail(&ClientError::internal(error)),
    };
    let done = runtime.block_on(perform(&session, command, matches));
    session.keep_renewed();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => session.printer.fail(&error),
    }
}

/// What was said on the command line.
fn said(command: &ClientCommand) -> (Flags, &CommonArgs) {
    match command {
        ClientCommand::Send(args) => (args.flags(), &args.common),
        ClientCommand::Card(CardCommand::Get(args)) => (args.common.flags(), &args.common),
        ClientCommand::Config(ConfigCommand::Show(args)) => (args.common.flags(), &args.common),
        ClientCommand::Chat(args) => (args.flags(), &args.common),
        ClientCommand::Auth(AuthCommand::Login(args)) => (args.flags(), &args.common),
        ClientCommand::Auth(AuthCommand::Logout(args)) => (args.common.flags(), &args.common),
        ClientCommand::Task(TaskCommand::Get(args)) => (args.flags(), &args.common),
        ClientCommand::Task(TaskCommand::Cancel(args)) => (args.flags(), &args.common),
        ClientCommand::Task(TaskCommand::List(args)) => (args.flags(), &args.common),
        ClientCommand::Task(TaskCommand::Subscribe(args)) => (args.flags(), &args.common),
        ClientCommand::Task(TaskCommand::Download(args)) => (args.flags(), &args.common),
        ClientCommand::Task(TaskCommand::PushConfig(command)) => (command.flags(), command.common()),
    }
}

async fn perform(session: &Session, command: &ClientCommand, matches: &ArgMatches) -> Result<(), ClientError> {
    match command {
        ClientCommand::Send(args) => {
            let own = matches.subcommand_matches("send").unwrap_or(matches);
            send::run(session, args, own).await
        }
        ClientCommand::Card(CardCommand::Get(args)) => card::get(session, args).await,
        ClientCommand::Config(ConfigCommand::Show(_)) => show_config::run(session),
        ClientCommand::Chat(args) => chat::run(session, args).await,
        ClientCommand::Auth(AuthCommand::Login(args)) => auth::login(session, args).await,
        ClientCommand::Auth(AuthCommand::Logout(_)) => auth::logout(session),
        ClientCommand::Task(TaskCommand::Get(args)) => task::get(session, args).await,
        ClientCommand::Task(TaskCommand::Cancel(args)) => task::cancel(session, args).await,
        ClientCommand::Task(TaskCommand::List(args)) => task::list(session, args).await,
        ClientCommand::Task(TaskCommand::Subscribe(args)) => task::subscribe(session, args).await,
        ClientCommand::Task(TaskCommand::Download(args)) => download::run(session, args).await,
        ClientCommand::Task(TaskCommand::PushConfig(command)) => push::run(session, command).await,
    }
}

fn of_variable(environment: &Environment) -> Option<String> {
    environment.raw("A2ACLI_OUTPUT").and_then(|value| value.into_string().ok())
}

/// Says that a client command was typed wrongly, in the form that was asked for. None for other commands, which clap speaks for.
pub(crate) fn usage_error(arguments: &[OsString], error: &clap::Error, environment: &Environment) -> Option<ExitCode> {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    words.get(1).filter(|name| COMMANDS.contains(&name.as_str()) || CHECKS.contains(&name.as_str()))?;
    let mut asked = of_variable(environment);
    for (at, word) in words.iter().enumerate() {
        let value = match word.as_str() {
            "-o" | "--output" => words.get(at + 1).cloned(),
            word => word
                .strip_prefix("--output=")
                .or_else(|| word.strip_prefix("-o=").or_else(|| word.strip_prefix("-o")))
                .map(str::to_owned),
        };
        asked = value.or(asked);
    }
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let usage = text.lines().find(|line| line.starts_with("Usage:")).map(str::to_owned);
    let mut failure = ClientError::new(Code::Usage, first);
    failure.hint = Some(match usage {
        Some(usage) => format!("{usage}; see --help"),
        None => "see --help".to_owned(),
    });
    Some(Printer::plain(asked.as_deref() == Some("json")).fail(&failure))
}

/// The commands, with what the settings come to when nothing more is said at the end of the help of those here.
pub(crate) fn with_defaults_in_effect(mut all: clap::Command, environment: &Environment) -> clap::Command {
    let defaults = defaults_in_effect(environment);
    for name in COMMANDS {
        if all.find_subcommand(name).is_some() {
            all = all.mut_subcommand(name, |command| add_help(command, &defaults));
        }
    }
    all
}

fn add_help(command: clap::Command, text: &str) -> clap::Command {
    let help = match command.get_after_help() {
        Some(known) => format!("{known}\n\n{text}"),
        None => text.to_owned(),
    };
    let command = command.after_help(help);
    let names: Vec<String> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, |below| add_help(below, text)))
}

fn defaults_in_effect(environment: &Environment) -> String {
    let Ok(settings) = Settings::read(&Flags::default(), None, environment, Path::new("")) else {
        return "Defaults in effect: the settings cannot be read; see switchboard config show".to_owned();
    };
    let mut text = "Defaults in effect:".to_owned();
    for key in KEYS {
        if let (Some(shown), Some(value)) = (settings.shown(key), settings.value(key.name)) {
            text.push_str(&format!("\n  --{} {} ({})", key.name, text::clean(&shown), value.source));
        }
    }
    text
}

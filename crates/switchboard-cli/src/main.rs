//! The binary. `serve` goes: read the configuration, put the server together, take the port, say so, serve until a
//! signal, then let work in progress end. A second signal leaves at once.

mod agent_card;
mod agent_context;
mod agents;
mod audit;
mod chaos;
mod cli;
mod client;
mod config;
mod conformance;
mod data_args;
mod db;
mod doctor;
mod failure;
mod health;
mod keys;
mod logging;
mod manual;
mod neighbours;
mod operator_key;
mod outbox;
mod output;
mod postgres_options;
mod process;
mod relays;
mod remote_agents;
mod serve;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use switchboard::{AccessLog, StopSignals};
use tokio_util::sync::CancellationToken;

use crate::agents::demo::{Address, ServedAt};
use crate::agents::exec::Program;
use crate::cli::{Cli, Command, HealthArgs, OutboxCommand, ServeArgs};
use crate::config::{Config, Environment, Kind, SettingFlags};
use crate::failure::Failure;
use crate::logging::Log;
use crate::remote_agents::AgentsCommand;
use crate::serve::Assembled;

// Commits that share a batch hold their allocations at the same time, and the system's allocator does not keep that
// much memory ready.
#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

fn main() -> ExitCode {
    let environment = Environment::of_process();
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let (matches, command) = match parse(&arguments, &environment) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let done = match command {
        Command::Client(command) => return client::run(&command, &matches, &environment),
        Command::Serve(args) => serve(&args.settings, Some(&args), &environment),
        Command::DemoServer(args) => serve(&args.settings(), None, &environment.without_settings()),
        Command::Agents(command) => agents(&command, &environment),
        Command::Outbox(command) => outbox(&command, &environment),
        Command::Audit(command) => audit::run(&command, &environment, Path::new("")).map(output::say),
        Command::Db(command) => db::run(&command, &environment, Path::new("")).map(output::say),
        Command::Keys(command) => keys::run(&command, &environment, Path::new("")).map(output::say),
        Command::Health(args) => health(&args, &environment),
        Command::Completion(args) => {
            output::say(manual::completion(&args));
            Ok(())
        }
        Command::Man(args) => manual::man(&args, Path::new("")).map(output::say),
        Command::Chaos(args) => chaos::run(&args),
        Command::Conformance(args) => return conformance::run(&args, &environment),
        Command::Doctor(args) => return doctor::run(&args, &environment),
        Command::ChaosAgent(args) => chaos::command::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::complain(&failure);
            failure.exit_code()
        }
    }
}

/// Reads the command line. What is wrong with it is told, and help is printed, here.
fn parse(arguments: &[OsString], environment: &Environment) -> Result<(ArgMatches, Command), ExitCode> {
    let asks_for_help = arguments.iter().skip(1).any(|word| matches!(word.to_str(), Some("-h" | "--help" | "help")));
    let mut all = Cli::command();
    if asks_for_help {
        all = client::with_defaults_in_effect(all, environment);
    }
    let parsed = all.try_get_matches_from(arguments).and_then(|matches| {
        let command = Cli::from_arg_matches(&matches)?.command;
        Ok((matches, command))
    });
    parsed.map_err(|error| {
        use clap::error::ErrorKind;
        if let ErrorKind::DisplayHelp | ErrorKind::DisplayVersion = error.kind() {
            output::say(error.to_string().trim_end());
            return ExitCode::SUCCESS;
        }
        client::usage_error(arguments, &error, environment).unwrap_or_else(|| {
            let _ = error.print();
            ExitCode::from(2)
        })
    })
}

fn agents(command: &AgentsCommand, environment: &Environment) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    runtime.block_on(remote_agents::run(command, environment, Path::new(""))).map(output::say)
}

fn outbox(command: &OutboxCommand, environment: &Environment) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    runtime.block_on(outbox::run(command, environment, Path::new(""))).map(output::say)
}

fn health(args: &HealthArgs, environment: &Environment) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    runtime.block_on(health::run(args, environment, Path::new(""))).map(output::say)
}

/// Serves. Without `args`, no file of settings is read.
fn serve(settings: &SettingFlags, args: Option<&ServeArgs>, environment: &Environment) -> Result<(), Failure> {
    let layers = match args {
        Some(args) => config::read_layers(settings, args.config.as_deref(), environment, Path::new("")),
        None => config::layers_without_file(settings, environment),
    };
    let config = config::resolve(layers, environment, Path::new(""))?;
    serve::check_build(&config, environment)?;
    if args.is_some_and(|args| args.print_config) {
        output::say(config::print(&config)?.trim_end());
        return Ok(());
    }
    if args.is_some_and(|args| args.check_config) {
        if let Some(doubt) = config.tls.as_ref().and_then(|known| known.doubt.as_ref()) {
            output::complain(doubt);
        }
        for doubt in &config.doubts {
            output::complain(doubt);
        }
        for agent in &config.agents {
            if let Kind::Exec { program: Program { doubt: Some(doubt), .. }, .. } = &agent.kind {
                output::complain(format_args!("agent {:?}: {doubt}", agent.name));
            }
        }
        output::say("the configuration is good");
        return Ok(());
    }
    let mut log = logging::start(*config.server.log_format, environment)?;
    let access_log = log.access_log(&config.server.access_log)?;
    process::raise_file_limit();
    agents::exec::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::runtime)?;
    let served = runtime.block_on(run(config, environment, access_log, &log));
    agents::exec::wait_for_stopping();
    served
}

async fn run(
    config: Config,
    environment: &Environment,
    access_log: Option<AccessLog>,
    log: &Log,
) -> Result<(), Failure> {
    let signals = StopSignals::listen().map_err(Failure::runtime)?;
    process::ignore_file_size_signal().map_err(Failure::runtime)?;
    let (listen, grace) = (*config.server.listen, Duration::from_secs(*config.server.grace_s));
    let (examples, needs_token) = (serve::examples(&config), config.tokens.is_some());
    let data = config.storage.folder().map(Path::to_path_buf);
    // SIGHUP asks for new files to be read. It never ends the server, even if there is nothing to read again.
    let mut hangups = switchboard::hangups().map_err(Failure::runtime)?;
    let has_tls = config.tls.is_some();
    for doubt in &config.doubts {
        tracing::warn!("{doubt}");
    }
    if config.is_closed() {
        let variable = config.production.unwrap_or_default();
        tracing::warn!(
            variable,
            "this is production and nobody has said who may call, so every call is refused with 503; give out tokens (--tokens FILE), \
             or say --allow-unauthenticated"
        );
    } else if let Some(place) = config.open_to_others_at() {
        tracing::warn!(place, "every client that reaches this server may call without a token; they share all tasks");
    } else if !config.has_authentication() {
        tracing::warn!("no tokens are configured: everybody on this machine may call; they share all tasks");
    }
    let served_at = ServedAt::default();
    let Assembled { server, relays, directory } = serve::assemble(config, environment, access_log, &served_at)?;
    relays::begin(&relays).await;
    if let Some(directory) = &directory {
        directory.refresh().await;
    }
    if let Some(data) = data {
        agents::exec::clear_leftovers(&data).await;
    }
    let handle = server.handle();
    let bound = server.bind(listen).await.map_err(Failure::runtime)?;
    tracing::info!(address = %bound.local_addr(), tls = has_tls, "serving");
    served_at.set(Address { url: bound.public_url().to_owned(), needs_token });
    output::say(bound.banner().examples(examples.send, examples.stream).to_string().trim_end());
    let stop = CancellationToken::new();
    let renewing = async {
        loop {
            hangups.next().await;
            handle.reload_files().await;
        }
    };
    tokio::select! {
        biased;
        never = renewing => never,
        never = relays::keep_fresh(&relays) => match never {},
        () = bound.run_until(stop.cancelled(), grace) => {
            tracing::info!("stopped");
            Ok(())
        }
        () = pass_on_signals(signals, &stop) => exit_now(log),
    }
}

/// Passes the first stop signal on to `stop`, and is done with the second.
async fn pass_on_signals(mut signals: StopSignals, stop: &CancellationToken) {
    signals.next().await;
    tracing::info!("stopping; a second signal stops at once");
    stop.cancel();
    signals.next().await;
}

#[expect(clippy::disallowed_methods, reason = "a second signal means now; what is durable is durable already")]
fn exit_now(log: &Log) -> ! {
    agents::exec::kill_commands_and_remove_files();
    log.flush();
    std::process::exit(1)
}

//! The command line: what may be typed, and the help that teaches it. The flags of `serve` that are settings come from
//! the table of settings (`config/table.rs`).

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::chaos::args::{ChaosAgentArgs, ChaosArgs};
use crate::client::ClientCommand;
use crate::config::{ConfigError, Environment, Origin, SettingFlags};
use crate::conformance::args::ConformanceArgs;
use crate::data_args::DatabaseArgs;
use crate::db::args::DbCommand;
use crate::doctor::DoctorArgs;
use crate::keys::{self, KeysCommand};
use crate::remote_agents::{self, AgentsCommand};

const EXAMPLES: &str = "\
Call agents:
  switchboard card get -a agent.example     what an agent says about itself
  switchboard send -a agent.example 'Hi'    send a message, wait for the answer
  switchboard task get -a agent.example ID  look at a task again
  switchboard chat agent.example            talk to an agent

Serve agents:
  switchboard serve                         a demo agent on 127.0.0.1:8080, durable
  switchboard serve --exec 'tr a-z A-Z'     any command as an agent
  switchboard serve --relay https://agent.example
                                            an agent elsewhere, durably
  switchboard serve --config agents.toml    several agents
  switchboard agents add https://agent.example
                                            accept the card of an agent elsewhere
  switchboard outbox list                   webhooks that were given up on
  switchboard db backup --to monday.db      copy the database, in use or not
  switchboard db verify                     check that nothing is missing in it
  switchboard db move --from DIR --to URL   move it to PostgreSQL, or back
  switchboard db reset --yes                forget every task
  switchboard keys make                     a key to sign the agent cards with
  switchboard health                        ask a server whether it is well
  switchboard doctor https://agent.example  why an agent cannot be talked to
  switchboard conformance https://agent.example
                                            check an agent against the specification
  switchboard chaos --minutes 5             kill a server for five minutes, and prove
                                            that nothing it acknowledged was lost

Exit codes:
  0  it did what was asked, or was stopped in order
  1  it failed at run time: the port or the database could not be had,
     a check found a fault, or a second signal cut it off
  2  the command line or the configuration is wrong
  3  card, send, task, chat: the agent or its card cannot be reached
  4  the same: credentials are missing or rejected
  5  the same: --timeout is over";

const SERVE_EXAMPLES: &str = "\
Examples:
  switchboard serve
      A demo agent for this machine alone. It prints lines to paste into another
      terminal.
  switchboard serve --exec 'python3 -u agent.py' --exec-env API_KEY --name Helper
      Any command: the text of a message on stdin, the answer from stdout, a
      failure by its exit code. Output is streamed as it is printed, so have the
      program print unbuffered (-u). The whole message is in the file named by
      A2A_MESSAGE_FILE, the rest of the request in A2A_REQUEST_FILE; A2A_TASK_ID,
      A2A_CONTEXT_ID, A2A_ATTEMPT, A2A_INTERRUPTED, A2A_PRINCIPAL, A2A_TENANT
      and, if the caller named them, A2A_SKILL, A2A_DEPTH and A2A_SOURCE_AGENT are
      set, too. A command dies with the server. After a crash it is started again,
      with A2A_ATTEMPT one higher; after an orderly stop, as the same attempt.
  switchboard serve --exec 'fortune | cowsay' --exec-shell
      The same with the help of a shell.
  switchboard serve --relay http://127.0.0.1:9000 --relay https://weather.example
      Agents elsewhere, of any A2A version, binding or older dialect: durable
      tasks, streams that resume, webhooks and cancel for each, under its own
      card. --relay-credential-env names the variable with the token for the
      upstream; all else is in [agent.relay] of a file (docs/relay.md).
  switchboard serve --listen 0.0.0.0:8080 --tokens tokens.txt
      For other machines. Each line of the file:
      TOKEN PRINCIPAL [TENANT,TENANT] [+operator]
  switchboard serve --tls-cert cert.pem --tls-key key.pem
      With TLS, for HTTP and gRPC alike. A new pair in the same files is used
      within a minute, or at once after SIGHUP.
  switchboard serve --print-config > switchboard.toml
      A file to begin with.

What decides a setting, first to last:
  1. The flag.
  2. The environment: SWITCHBOARD_ and the name of the flag, as in
     SWITCHBOARD_PUBLIC_URL. Lists are separated by commas, switches are true or
     false. SWITCHBOARD_TOKENS holds the lines of tokens themselves, and
     SWITCHBOARD_TOKENS_FILE names the file; SWITCHBOARD_WEBHOOK_SIGNING_SECRET
     holds signing secrets themselves. BIND_HOST and PORT stand in for
     SWITCHBOARD_LISTEN. RUST_LOG chooses what is logged, as in RUST_LOG=debug.
  3. switchboard.toml in the current folder, or the file named with --config.
  4. The default.

Exit codes:
  0  stopped in order
  1  failed at run time
  2  wrong usage or configuration";

const DEMO_SERVER_HELP: &str = "\
Examples:
  switchboard demo-server
      then, in another terminal:
  switchboard send -a localhost:8080 hello
  switchboard send -a localhost:8080 'ask which colour?'
      An empty message is answered with all that the agent can do: it shows every
      state of a task. Tasks are gone when the server stops; `serve` keeps them.";

const OUTBOX_EXAMPLES: &str = "\
Examples:
  switchboard outbox list
  switchboard outbox show 17
  switchboard outbox redrive 17 18
  switchboard outbox redrive --endpoint https://hooks.example
  switchboard outbox purge --all --yes

Which outbox:
  --url asks a running server, --data opens a database that no server uses.
  Without either, the server of the configuration is asked and, if nobody
  listens at its address, its database is opened. A server with TLS must then
  show the certificate of the configuration, and no other.

Who may ask:
  A server with tokens wants one whose line ends with +operator, from
  SWITCHBOARD_TOKEN or --token-file. A server without tokens answers those on
  its own machine, unless it has a public URL.";

const HEALTH_HELP: &str = "\
Examples:
  switchboard health
      The server of the configuration in this folder, or of the environment.
  switchboard health --ready http://127.0.0.1:8080

Exit codes:
  0  well
  1  not well, or no answer within 5 seconds
  2  wrong usage or configuration";

const COMPLETION_HELP: &str = "\
Examples:
  switchboard completion bash > ~/.local/share/bash-completion/completions/switchboard
  switchboard completion zsh > ~/.zfunc/_switchboard
  switchboard completion fish > ~/.config/fish/completions/switchboard.fish";

const MAN_HELP: &str = "\
Examples:
  switchboard man | man -l -
  switchboard man serve | man -l -
  switchboard man --out /usr/local/share/man/man1";

/// Agents that call each other over A2A and never lose the call: a client and a durable server.
// Help and errors have no colours: the output of the client commands never has control sequences, on a terminal or not.
#[derive(Parser)]
#[command(name = "switchboard", version, after_help = EXAMPLES, arg_required_else_help = true)]
#[command(disable_version_flag = true, color = clap::ColorChoice::Never)]
pub(crate) struct Cli {
    /// Print the version
    #[arg(short = 'v', short_alias = 'V', long, action = clap::ArgAction::Version)]
    version: Option<bool>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Client(Box<ClientCommand>),
    /// Serve agents over A2A
    Serve(Box<ServeArgs>),
    /// Serve an agent to practise with, in memory and for this machine alone
    DemoServer(DemoServerArgs),
    /// Look after the agents elsewhere whose cards were accepted
    #[command(subcommand, after_help = remote_agents::EXAMPLES)]
    Agents(AgentsCommand),
    /// Look after deliveries to webhooks
    #[command(subcommand, after_help = OUTBOX_EXAMPLES)]
    Outbox(OutboxCommand),
    /// Look after the database
    #[command(subcommand)]
    Db(DbCommand),
    /// Look at the audit log: who did or was refused what
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Look after the keys that a server signs cards and webhook tokens with
    #[command(subcommand, after_help = keys::EXAMPLES)]
    Keys(KeysCommand),
    /// Ask a server whether it is well; for health checks, where no curl is at hand
    Health(HealthArgs),
    /// Print a script that completes commands and flags in a shell
    Completion(CompletionArgs),
    /// Print the manual as a man page
    Man(ManArgs),
    /// Prove on this machine that nothing acknowledged is lost: kill a server under load, and check
    Chaos(ChaosArgs),
    /// Check a live agent against the A2A specification, on every binding and version of its card
    Conformance(Box<ConformanceArgs>),
    /// Find out why an agent cannot be talked to, and how to put it right
    Doctor(Box<DoctorArgs>),
    /// What the command agents of `chaos` run
    #[command(hide = true)]
    ChaosAgent(ChaosAgentArgs),
}

#[derive(Subcommand)]
pub(crate) enum OutboxCommand {
    /// List deliveries, dead letters unless told otherwise, and endpoints that are down
    List(ListArgs),
    /// Show one delivery and the update it is stuck at
    Show(ShowArgs),
    /// Try deliveries again, now
    Redrive(ChangeArgs),
    /// Drop what dead letters still had to deliver; the webhooks stay registered
    Purge(ChangeArgs),
}

#[derive(Subcommand)]
pub(crate) enum AuditCommand {
    /// Check that no entry was changed, removed or put in later; names the first that does not follow
    Verify(AuditVerifyArgs),
    /// Print every entry as a line of JSON, oldest first
    Export(AuditExportArgs),
}

#[derive(Args)]
pub(crate) struct AuditVerifyArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
    /// Check this export, and not the database of the configuration
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "config"])]
    pub(crate) file: Option<PathBuf>,
    /// An entry that was noted before, as verify prints it; the log must still hold it
    #[arg(long, value_name = "NO:HASH")]
    pub(crate) noted: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AuditExportArgs {
    #[command(flatten)]
    pub(crate) of: DatabaseArgs,
}

#[derive(Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) settings: SettingFlags,

    /// Configuration file [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub(crate) config: Option<PathBuf>,
    /// Print the configuration in effect, without secrets, and exit
    #[arg(long, help_heading = "Configuration")]
    pub(crate) print_config: bool,
    /// Check the configuration and exit
    #[arg(long, conflicts_with = "print_config", help_heading = "Configuration")]
    pub(crate) check_config: bool,
}

#[derive(Args)]
#[command(after_help = DEMO_SERVER_HELP)]
pub(crate) struct DemoServerArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: String,
}

impl DemoServerArgs {
    pub(crate) fn settings(&self) -> SettingFlags {
        SettingFlags::in_memory(&self.listen)
    }
}

/// Where the outbox is.
#[derive(Args)]
pub(crate) struct OutboxTarget {
    /// Server to ask, as in http://127.0.0.1:8080 [default: from the configuration]
    #[arg(long, value_name = "URL", conflicts_with = "data", help_heading = "Which outbox")]
    pub(crate) url: Option<String>,
    /// File with an operator's token [default: the variable SWITCHBOARD_TOKEN, if set]
    #[arg(long, value_name = "FILE", conflicts_with = "data", help_heading = "Which outbox")]
    token_file: Option<PathBuf>,
    /// Certificates to trust, in PEM form [default: with --url the well-known authorities, else the server's own]
    #[arg(long, value_name = "FILE", conflicts_with = "data", help_heading = "Which outbox")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Folder of a database that no server uses at the moment
    #[arg(long, value_name = "DIR", help_heading = "Which outbox")]
    data: Option<PathBuf>,
    /// Configuration file [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Which outbox")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ListArgs {
    /// Which deliveries
    #[arg(long, value_enum, default_value = "dead")]
    pub(crate) state: OutboxStateName,
    /// Only those of one endpoint, as in https://hooks.example:443
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// How many at most
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: OutboxTarget,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OutboxStateName {
    Dead,
    Waiting,
    UnderWay,
    All,
}

impl OutboxStateName {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Waiting => "waiting",
            Self::UnderWay => "under-way",
            Self::All => "all",
        }
    }
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// The delivery, as `outbox list` names it
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: OutboxTarget,
}

#[derive(Args)]
pub(crate) struct ChangeArgs {
    /// Deliveries, as `outbox list` names them
    pub(crate) ids: Vec<String>,
    /// Every dead letter
    #[arg(long, conflicts_with = "endpoint")]
    pub(crate) all: bool,
    /// Every dead letter of one endpoint, as in https://hooks.example:443
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Really do it; purge wants it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) place: OutboxTarget,
}

impl OutboxTarget {
    pub(crate) fn settings(&self) -> SettingFlags {
        SettingFlags::data(self.data.as_deref())
    }

    pub(crate) fn names_folder(&self) -> bool {
        self.data.is_some()
    }

    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn token(&self, environment: &Environment, folder: &Path) -> Result<Option<String>, ConfigError> {
        let Some(file) = &self.token_file else { return environment.get("SWITCHBOARD_TOKEN") };
        let text = std::fs::read_to_string(folder.join(file)).map_err(|error| {
            Origin::Flag("--token-file").error(format_args!("{} cannot be read: {error}", file.display()))
        })?;
        Ok(Some(text.trim().to_owned()))
    }
}

#[derive(Args)]
#[command(after_help = HEALTH_HELP)]
pub(crate) struct HealthArgs {
    /// Server to ask, as in http://127.0.0.1:8080 [default: the one of the configuration, on this machine]
    pub(crate) url: Option<String>,
    /// Ask whether the server should be given work (/readyz), and not only whether it is there (/healthz)
    #[arg(long)]
    pub(crate) ready: bool,
    /// Certificates to trust, in PEM form [default: with a URL the well-known authorities, else the server's own]
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Configuration file [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = COMPLETION_HELP)]
pub(crate) struct CompletionArgs {
    /// The shell that reads the script
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
#[command(after_help = MAN_HELP)]
pub(crate) struct ManArgs {
    /// Print the page of a command, as in `switchboard man serve` or `switchboard man db backup`
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

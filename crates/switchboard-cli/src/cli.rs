//! The command line: what may be typed, and the help that teaches it. Values are checked later, together with those of
//! the other layers, so that every layer is refused in the same words.

use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use crate::config::{Card, ConfigError, Effects, Environment, Given, Layer, LogFormat, Origin, Synchronous};

const EXAMPLES: &str = "\
Examples:
  switchboard serve                         a demo agent on 127.0.0.1:8080, durable
  switchboard serve --exec 'tr a-z A-Z'     any command as an agent
  switchboard serve --config agents.toml    several agents
  switchboard outbox list                   webhooks that were given up on
  switchboard db backup --to monday.db      copy the database, in use or not
  switchboard db verify                     check that nothing is missing in it
  switchboard db reset --yes                forget every task
  switchboard chaos --minutes 5             kill a server for five minutes, and prove
                                            that nothing it acknowledged was lost

Exit codes:
  0  it did what was asked, or was stopped in order
  1  it failed at run time: the port or the database could not be had,
     a check found a fault, or a second signal cut it off
  2  the command line or the configuration is wrong";

const SERVE_EXAMPLES: &str = "\
Examples:
  switchboard serve
      A demo agent for this machine alone. It prints lines to paste into another
      terminal.
  switchboard serve --exec 'python3 agent.py' --name Helper --run-timeout 60
      Any command: the text of a message on stdin, the answer from stdout, a
      failure by its exit code. The whole message is in the file named by
      A2A_MESSAGE_FILE; A2A_TASK_ID, A2A_CONTEXT_ID, A2A_ATTEMPT,
      A2A_INTERRUPTED, A2A_PRINCIPAL and A2A_TENANT are set, too. A command dies
      with the server. After a crash it is started again, with A2A_ATTEMPT one
      higher; after an orderly stop, as the same attempt.
  switchboard serve --exec 'fortune | cowsay' --exec-shell
      The same with the help of a shell.
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

const CHAOS_HELP: &str = "\
What it does:
  1. Tests itself: after a short run in peace it erases one acknowledged event
     from a copy of the database. If its own checker does not notice, it stops.
  2. Starts a server of its own (this binary, a demo agent and two command
     agents, data in a temporary folder) and clients that send, stream, resume,
     answer and cancel, and a receiver of webhooks that often fails.
  3. Kills (SIGKILL), freezes (SIGSTOP, some longer than a lease) and restarts
     the server all the while. What the server acknowledged is written to a
     ledger in this process, and counts once it is synced to disk.
  4. Lets everything come to rest, asks the server for every task and its whole
     log, holds that against the ledger, and runs `db verify`.

Every number after acknowledged_events is a count of faults:
  lost           acknowledged, and not there
  duplicated     shown twice to a reader, or one message that became two tasks
  out_of_order   shown or delivered before an earlier one
  two_terminals  tasks that ended twice, or went on after their end
  stuck          tasks that did not end, messages that were never answered
  webhooks_lost  updates that no webhook brought
  wrong_content  answers that contradict each other, or what was asked for
  orphans        processes of commands that outlived their run

The verdict is `pass`, `fail` (a fault), or `not enough`: less than one kill per
5 s or 10,000 acknowledged events per minute, or, per 5 minutes, 100 resumed
streams, 100 webhook retries, 20 kills while a send was unanswered.

Examples:
  switchboard chaos                         one minute
  switchboard chaos --minutes 5 --json      for a script: the last line is JSON
  switchboard chaos --seed 42 --data ./run  the same plan again, and keep the data

Exit codes:
  0  pass
  1  a fault, too little seen, or the self-test failed
  2  wrong usage";

/// A durable A2A server: agents that call each other and never lose the call.
#[derive(Parser)]
#[command(name = "switchboard", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Serve agents over A2A
    Serve(Box<ServeArgs>),
    /// Look after deliveries to webhooks
    #[command(subcommand, after_help = OUTBOX_EXAMPLES)]
    Outbox(OutboxCommand),
    /// Look after the database
    #[command(subcommand)]
    Db(DbCommand),
    /// Prove on this machine that nothing acknowledged is lost: kill a server under load, and check
    Chaos(ChaosArgs),
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
pub(crate) enum DbCommand {
    /// Copy the database to a file, while a server uses it or not
    Backup(BackupArgs),
    /// Check that the database, or a backup, is whole and nothing in it contradicts itself
    Verify(VerifyArgs),
    /// Remove what is no longer kept and give the space back, while no server runs
    Compact(CompactArgs),
    /// Delete every task, history, artifact and push configuration
    Reset(ResetArgs),
}

#[derive(Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Address to listen on [default: from BIND_HOST and PORT, else 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", help_heading = "Address")]
    listen: Option<String>,
    /// URL that clients use, path included [default: from the address]
    #[arg(long, value_name = "URL", help_heading = "Address")]
    public_url: Option<String>,
    /// File of the certificate, in PEM form, with those that vouch for it below; the port then speaks TLS alone
    #[arg(long, value_name = "FILE", help_heading = "Address")]
    tls_cert: Option<PathBuf>,
    /// File of the private key of the certificate, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "Address")]
    tls_key: Option<PathBuf>,
    /// Web page that may call from a browser; may be repeated
    #[arg(long, value_name = "ORIGIN", help_heading = "Address")]
    cors_origin: Vec<String>,

    /// Name of the default agent
    #[arg(long, help_heading = "Agent")]
    name: Option<String>,
    /// What the default agent says about itself
    #[arg(long, value_name = "TEXT", help_heading = "Agent")]
    description: Option<String>,
    /// Version of the default agent
    #[arg(long, value_name = "VERSION", help_heading = "Agent")]
    agent_version: Option<String>,
    /// Make a command the default agent: a program and its arguments, quotes respected
    #[arg(long, value_name = "CMD", help_heading = "Agent")]
    exec: Option<String>,
    /// Give the command to a shell (sh -c)
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true, help_heading = "Agent")]
    exec_shell: Option<bool>,
    /// End runs that take longer, of every agent [default: 300, the demo agent 7200]
    #[arg(long, value_name = "SECONDS", help_heading = "Agent")]
    run_timeout: Option<u64>,
    /// Whether the default agent may do things that last, whatever it declares itself
    #[arg(long, value_enum, hide = true, help_heading = "Agent")]
    effects: Option<Effects>,

    /// Folder of the database [default: ./switchboard-data]
    #[arg(long, value_name = "DIR", conflicts_with = "memory", help_heading = "Tasks")]
    data: Option<PathBuf>,
    /// Keep tasks in memory; they are gone when the server stops
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true, help_heading = "Tasks")]
    memory: Option<bool>,
    /// What a power cut may cost: nothing (full), or the last moments (normal) [default: full]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "full|normal", help_heading = "Tasks")]
    synchronous: Option<Synchronous>,
    /// How long work in progress may go on after a signal to stop [default: 10]
    #[arg(long, value_name = "SECONDS", help_heading = "Tasks")]
    grace: Option<u64>,

    /// File of tokens; only their holders may call
    #[arg(long, value_name = "FILE", help_heading = "Access")]
    tokens: Option<PathBuf>,
    /// Let everybody call who reaches an address beyond this machine
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    #[arg(hide_possible_values = true, help_heading = "Access")]
    allow_unauthenticated: Option<bool>,
    /// Tenant that callers without a token may name; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Access")]
    tenant: Vec<String>,
    /// Private address that webhooks may go to, as in 10.0.0.0/8 or 127.0.0.1:9000; may be repeated
    #[arg(long, value_name = "TARGET", help_heading = "Access")]
    outbound_allow: Vec<String>,
    /// Attempts at a webhook before it becomes a dead letter [default: 12]
    #[arg(long, value_name = "N", help_heading = "Webhooks")]
    webhook_attempts: Option<u64>,
    /// Send a receiver that is further behind than N updates the newest state instead [default: 0, never]
    #[arg(long, value_name = "N", help_heading = "Webhooks")]
    webhook_coalesce: Option<u64>,
    /// File of secrets to sign webhooks with, each whsec_ and base64, the newest first
    #[arg(long, value_name = "FILE", help_heading = "Webhooks")]
    webhook_signing_secret_file: Option<PathBuf>,
    /// Size of a request body at most [default: 10485760]
    #[arg(long, value_name = "BYTES", help_heading = "Access")]
    body_limit: Option<u64>,
    /// Size of a reply at most, about; larger artifacts are shown as links [default: 33554432]
    #[arg(long, value_name = "BYTES", help_heading = "Access")]
    reply_limit: Option<u64>,
    /// What a request without A2A-Version means where its method or path does not tell; the specification says 0.3
    #[arg(long, value_name = "VERSION", help_heading = "Access")]
    default_version: Option<String>,
    /// Whose members the agent cards hold: of all versions side by side, of A2A 1.0 alone, or of one system [default: all]
    #[arg(long, value_name = "FORM", help_heading = "Access")]
    card: Option<Card>,

    /// Configuration file [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE", help_heading = "Configuration")]
    pub(crate) config: Option<PathBuf>,
    /// Print the configuration in effect, without secrets, and exit
    #[arg(long, help_heading = "Configuration")]
    pub(crate) print_config: bool,
    /// Check the configuration and exit
    #[arg(long, conflicts_with = "print_config", help_heading = "Configuration")]
    pub(crate) check_config: bool,
    /// How logs are written to stderr [default: text]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "text|json", help_heading = "Configuration")]
    log_format: Option<LogFormat>,
}

/// Where the outbox is.
#[derive(Args)]
pub(crate) struct OutboxPlace {
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
    pub(crate) place: OutboxPlace,
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
    pub(crate) place: OutboxPlace,
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
    pub(crate) place: OutboxPlace,
}

impl OutboxPlace {
    pub(crate) fn layer(&self) -> Layer {
        Layer { data: flag("--data", &self.data), ..Layer::default() }
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

/// Which database.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Folder of the database [default: from the configuration, else ./switchboard-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Configuration file that names the folder [default: switchboard.toml in the current folder, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) of: DataArgs,
    /// The copy; it must not exist yet, and only its owner will be able to read it
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    pub(crate) of: DataArgs,
    /// Check this file, such as a backup, and not the database of the configuration
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "config"])]
    pub(crate) file: Option<PathBuf>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    pub(crate) of: DataArgs,
}

#[derive(Args)]
pub(crate) struct ResetArgs {
    #[command(flatten)]
    pub(crate) of: DataArgs,
    /// Really do it
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Args)]
#[command(after_help = CHAOS_HELP)]
pub(crate) struct ChaosArgs {
    /// How long, in minutes
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    pub(crate) minutes: u64,
    /// How long, in seconds
    #[arg(long, value_name = "S", conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(5..=604_800))]
    pub(crate) seconds: Option<u64>,
    /// What is drawn: the same number draws the same plan [default: a new one]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Empty folder to keep the data, the ledger and the logs in [default: a temporary one, kept after a fault]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// End with one line of JSON on standard output; everything else goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ChaosAgentArgs {
    /// Do nothing, for a long time
    #[arg(long)]
    pub(crate) linger: bool,
}

impl ServeArgs {
    /// What the flags say.
    pub(crate) fn layer(&self) -> Layer {
        Layer {
            listen: flag("--listen", &self.listen),
            public_url: flag("--public-url", &self.public_url),
            tls_cert: flag("--tls-cert", &self.tls_cert),
            tls_key: flag("--tls-key", &self.tls_key),
            data: flag("--data", &self.data),
            memory: flag("--memory", &self.memory),
            synchronous: flag("--synchronous", &self.synchronous),
            log_format: flag("--log-format", &self.log_format),
            tokens_file: flag("--tokens", &self.tokens),
            tokens: None,
            allow_unauthenticated: flag("--allow-unauthenticated", &self.allow_unauthenticated),
            tenants: flags("--tenant", &self.tenant),
            outbound_allow: flags("--outbound-allow", &self.outbound_allow),
            cors_origins: flags("--cors-origin", &self.cors_origin),
            webhook_attempts_max: flag("--webhook-attempts", &self.webhook_attempts),
            webhook_coalesce_after: flag("--webhook-coalesce", &self.webhook_coalesce),
            webhook_signing_secret: None,
            webhook_signing_secret_file: flag("--webhook-signing-secret-file", &self.webhook_signing_secret_file),
            body_bytes_max: flag("--body-limit", &self.body_limit),
            reply_bytes_max: flag("--reply-limit", &self.reply_limit),
            default_version: flag("--default-version", &self.default_version),
            card: flag("--card", &self.card),
            grace_s: flag("--grace", &self.grace),
            lease_s: None,
            queued_timeout_s: None,
            processing_timeout_s: None,
            retention: None,
            name: flag("--name", &self.name),
            description: flag("--description", &self.description),
            agent_version: flag("--agent-version", &self.agent_version),
            exec: flag("--exec", &self.exec),
            exec_shell: flag("--exec-shell", &self.exec_shell),
            effects: flag("--effects", &self.effects),
            run_timeout_s: flag("--run-timeout", &self.run_timeout),
        }
    }
}

impl DataArgs {
    pub(crate) fn layer(&self) -> Layer {
        Layer { data: flag("--data", &self.data), ..Layer::default() }
    }
}

fn flag<T: Clone>(name: &'static str, value: &Option<T>) -> Option<Given<T>> {
    value.clone().map(|value| Given::new(value, Origin::Flag(name)))
}

fn flags(name: &'static str, values: &[String]) -> Option<Given<Vec<String>>> {
    (!values.is_empty()).then(|| Given::new(values.to_vec(), Origin::Flag(name)))
}

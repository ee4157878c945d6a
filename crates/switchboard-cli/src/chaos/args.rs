//! What `switchboard chaos` is told.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

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

With --relay the clients talk to a gateway, whose relays pass everything on to
that server. Gateway and server are killed and frozen, the network between them
is cut and healed, and in the end every message must have been executed by
exactly one task of the server behind the gateway.

With --replicas several servers share a database in PostgreSQL. They are killed
and frozen one by one, their links to the database are cut (in network
namespaces, where root may make them), their clocks are wrong (with
libfaketime), and their commands are run by an upstream, which they relay to.

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
streams, 100 webhook retries, 20 kills while a send was unanswered. With --relay
1,000 events and, per 5 minutes, 20 webhook retries are enough, and it takes a
kill of each server and a cut per 5 s. With --replicas it takes those and a cut
of a link to the database per 5 s.

Examples:
  switchboard chaos                         one minute
  switchboard chaos --minutes 5 --json      for a script: the last line is JSON
  switchboard chaos --relay --minutes 5     a gateway in front of the server
  switchboard chaos --seed 42 --data ./run  the same plan again, and keep the data

Exit codes:
  0  pass
  1  a fault, too little seen, or the self-test failed
  2  wrong usage";

#[derive(Args)]
#[command(after_help = CHAOS_HELP)]
pub(crate) struct ChaosArgs {
    /// How long, in minutes
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_080))]
    pub(crate) minutes: u64,
    /// How long, in seconds
    #[arg(long, value_name = "S", conflicts_with = "minutes", value_parser = clap::value_parser!(u64).range(5..=604_800))]
    pub(crate) seconds: Option<u64>,
    /// Put a gateway with relays in front of the server, and kill both of them and the network between them
    #[arg(long)]
    pub(crate) relay: bool,
    /// What is drawn: the same number draws the same plan [default: a new one]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Empty folder to keep the data, the ledger and the logs in [default: a temporary one, kept after a fault]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// End with one line of JSON on standard output; everything else goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Kill so many servers that share a database in PostgreSQL, in place of one
    #[arg(long, value_name = "N", requires = "store", value_parser = clap::value_parser!(u32).range(2..=16))]
    pub(crate) replicas: Option<u32>,
    /// Their database, postgres://USER@HOST:PORT/DATABASE; a schema of its own is made in it, and removed if all is well
    #[arg(long, value_name = "URL", requires = "replicas")]
    pub(crate) store: Option<String>,
    /// NATS for the hints between them, nats://HOST:PORT [default: PostgreSQL]
    #[arg(long, value_name = "URL", requires = "replicas")]
    pub(crate) hints: Option<String>,
    /// Shell command that disturbs what they share, as in 'pg_ctl -m immediate -w restart'; one of those given is run every few seconds
    #[arg(long, value_name = "COMMAND", requires = "replicas")]
    pub(crate) disturb: Vec<String>,
    /// The library libfaketime, which makes the clocks of the servers wrong [default: where Debian puts it, if it is there]
    #[arg(long, value_name = "FILE", requires = "replicas")]
    pub(crate) faketime: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ChaosAgentArgs {
    /// Do nothing, for a long time
    #[arg(long)]
    pub(crate) linger: bool,
}

impl ChaosArgs {
    pub(super) fn length(&self) -> Duration {
        Duration::from_secs(self.seconds.unwrap_or(self.minutes * 60))
    }
}

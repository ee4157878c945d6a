//! `switchboard chaos`: proves on this machine that nothing acknowledged is lost. A child server is put under a real load
//! and killed, frozen and restarted all the while; a ledger in this process keeps what it acknowledged, and in the end
//! everything it says is held against that.
//!
//! The order of things is in [`run`]. [`stage`] plays one [`performance`] with the [`players`] of every run: [`child`] is the server, [`behind`] the upstream of a gateway
//! with the [`link`] to it, [`killer`] what is done to them, [`load`] its clients, [`hooks`] the receiver of webhooks, [`command`] what its command agents run. [`ledger`] is
//! written meanwhile and read back as a [`book`]; [`inspect`] asks the server and [`upstream`] the one behind it, [`checker`] compares, [`verdict`] tells.
//! `replicas` plays the same with several servers that share a database.

pub(crate) mod args;
mod behind;
mod book;
mod checker;
mod child;
mod client;
pub(crate) mod command;
mod crew;
mod dice;
mod faults;
mod found;
mod hooks;
mod inspect;
mod killer;
mod ledger;
mod link;
mod load;
mod performance;
mod players;
mod processes;
#[cfg(feature = "postgres")]
mod replicas;
mod selftest;
mod stage;
mod upstream;
mod verdict;
mod wish;

use std::path::{Path, PathBuf};

use switchboard::database;

use self::args::ChaosArgs;
use self::book::Book;
use self::dice::Dice;
use self::faults::{Faults, Kind};
use self::performance::{Performance, Plot};
use self::stage::{Homes, Script, ledger_of, perform};
use self::verdict::Verdict;
use crate::failure::Failure;
use crate::output;

/// # Errors
/// When anything was lost or wrong, when too little was seen to tell, and when the checker does not notice a loss.
pub(crate) fn run(args: &ChaosArgs) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::runtime)?;
    let folder = Folder::make(args.data.as_deref())?;
    let outcome = match args.replicas {
        #[cfg(feature = "postgres")]
        Some(count) => replicas::run(args, count, &folder.path, &runtime),
        #[cfg(not(feature = "postgres"))]
        Some(_) => Err(Failure::Usage("this build has no PostgreSQL (its feature `postgres` is off)".to_owned())),
        None => runtime.block_on(unless_interrupted(prove(args, &folder.path))),
    };
    match &outcome {
        Ok(()) if args.data.is_none() => folder.remove(),
        _ => output::remark(format_args!("the data, the ledger and the server's log are in {}", folder.path.display())),
    }
    outcome
}

/// Does the work unless a signal comes first.
async fn unless_interrupted<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut signals = switchboard::StopSignals::listen().map_err(Failure::runtime)?;
    tokio::select! {
        biased;
        () = signals.next() => Err(Failure::Runtime("interrupted".to_owned())),
        outcome = work => outcome,
    }
}

async fn prove(args: &ChaosArgs, folder: &Path) -> Result<(), Failure> {
    let tell = |line: String| if args.json { output::remark(line) } else { output::say(line) };
    let (seed, length) = (args.seed.unwrap_or_else(Dice::fresh_seed), args.length());
    let mut dice = Dice::new(seed);
    tell(format!("seed {seed}"));
    let trusted = selftest::run(&folder.join("self-test"), dice.fork()).await?;
    tell(format!("self-test: {trusted}"));
    let (plot, whom, option) = match args.relay {
        true => (Plot::Relay, "a gateway, its upstream and the network between them", " --relay"),
        false => (Plot::Server, "a server", ""),
    };
    tell(format!("killing {whom} for {} s", length.as_secs()));
    let folder = folder.join("run");
    let script = Script { folder: folder.clone(), dice, length, plot };
    let (seen, homes) = perform(script, tell).await?;
    let faults = faults(&seen, &folder, &homes)?;
    let verdict = Verdict { seed, seen: &seen, faults: &faults };
    if !processes::can_be_listed() {
        tell("this system does not list processes with their environment, so orphans were not looked for".to_owned());
    }
    tell(verdict.text());
    if args.json {
        output::say(verdict.json());
    }
    if verdict.is_good() {
        return Ok(());
    }
    let why = if faults.total() > 0 { "promises were broken" } else { "too little was seen to tell" };
    Err(Failure::Runtime(format!("{why}; once more with the same plan: switchboard chaos{option} --seed {seed}")))
}

/// Everything that is wrong: by the ledger, and by the check of each database itself.
fn faults(seen: &Performance, folder: &Path, homes: &Homes) -> Result<Faults, Failure> {
    let book = Book::read(&ledger_of(folder)).map_err(Failure::runtime)?;
    let mut faults = checker::check(&book, &seen.evidence);
    for home in [Some(&homes.front), homes.upstream.as_ref()].into_iter().flatten() {
        let mut found = |fault: database::Fault| faults.add(Kind::WrongContent, 1, || format!("db verify: {fault}"));
        database::verify(&home.database(), &mut found).map_err(Failure::runtime)?;
    }
    Ok(faults)
}

/// Where everything is kept.
struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The one that was asked for, if it can be made and is empty, or one of our own.
    fn make(asked: Option<&Path>) -> Result<Self, Failure> {
        let path = asked.map_or_else(
            || std::env::temp_dir().join(format!("switchboard-chaos-{}", std::process::id())),
            Path::to_path_buf,
        );
        let refused = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        std::fs::create_dir_all(&path).map_err(|error| refused(error.to_string()))?;
        let mut inside = std::fs::read_dir(&path).map_err(|error| refused(error.to_string()))?;
        if inside.next().is_some() {
            return Err(refused("expected an empty folder, or one that does not exist yet".to_owned()));
        }
        Ok(Self { path })
    }

    fn remove(&self) {
        if let Err(error) = std::fs::remove_dir_all(&self.path) {
            output::complain(format_args!("{} could not be removed: {error}", self.path.display()));
        }
    }
}

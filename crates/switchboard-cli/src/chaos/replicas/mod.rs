//! Several servers that share a database in PostgreSQL, under the load of one. Who takes part is in [`cast`], what is done to the servers in [`fleet`]; each has a link to the
//! database that is cut ([`address`] leads it there) and a wrong [`clock`]. Their commands are run by an upstream, which they relay to. When everything has come to rest, servers are killed one by one, and others must go on with their work in time; at the
//! end the database is checked as by `switchboard db verify`.

mod address;
mod cast;
mod clock;
mod fleet;
mod namespace;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard::{PostgresOptions, database, postgres};
use tokio::runtime::Runtime;

use self::cast::Cast;
use self::fleet::{Berth, kill};
use super::args::ChaosArgs;
use super::book::Book;
use super::checker;
use super::child::{Child, Home, LEASE};
use super::crew::Crew;
use super::dice::Dice;
use super::faults::Kind;
use super::killer::Deeds;
use super::ledger::Ledger;
use super::load::{World, takeover};
use super::performance::Performance;
use super::stage::ledger_of;
use super::verdict::Verdict;
use super::{selftest, unless_interrupted};
use crate::failure::Failure;
use crate::output;

/// A run of a dead server is taken over within its lease, one sweep and this.
const TAKEOVER_SLACK: Duration = Duration::from_secs(2);
/// Servers look for such runs six times in a lease.
const SWEEPS_PER_LEASE: u32 = 6;
/// How many takeovers are measured.
const TAKEOVERS: usize = 5;

/// What all servers share.
struct Shared {
    url: String,
    schema: String,
    hints: Option<String>,
    secrets_key: String,
    /// What shifts the clocks of the servers.
    faketime: Option<PathBuf>,
}

/// # Errors
/// As `chaos::run`.
pub(super) fn run(args: &ChaosArgs, count: u32, folder: &Path, runtime: &Runtime) -> Result<(), Failure> {
    let tell = |line: String| if args.json { output::remark(line) } else { output::say(line) };
    let (seed, length) = (args.seed.unwrap_or_else(Dice::fresh_seed), args.length());
    let mut dice = Dice::new(seed);
    tell(format!("seed {seed}"));
    let trusted = runtime.block_on(unless_interrupted(selftest::run(&folder.join("self-test"), dice.fork())))?;
    tell(format!("self-test: {trusted}"));
    let url = args.store.clone().ok_or_else(|| Failure::Usage("--replicas needs --store".to_owned()))?;
    // The same plan may be played twice at once, and a database may be left over from an earlier run.
    let schema = format!("chaos_{}_{}", std::process::id(), Dice::fresh_seed());
    let secrets_key = secrets_key(&mut dice);
    let faketime = clock::library(args.faketime.as_deref());
    if faketime.is_none() {
        tell("the clocks of the servers are right, because libfaketime is not installed (--faketime FILE)".to_owned());
    }
    let shared = Shared { url, schema, hints: args.hints.clone(), secrets_key, faketime };
    let mut options = PostgresOptions::new(&*shared.url).schema(&*shared.schema);
    if let Ok(password) = std::env::var("PGPASSWORD") {
        options = options.password(password);
    }
    postgres::migrate(&options).map_err(Failure::runtime)?;
    tell(format!("killing {count} servers for {} s", length.as_secs()));
    let script = Script { folder: folder.join("run"), dice, length, count, disturb: &args.disturb };
    let (seen, upstream) = runtime.block_on(unless_interrupted(perform(script, &shared, &tell)))?;
    let book = Book::read(&ledger_of(&folder.join("run"))).map_err(Failure::runtime)?;
    let mut faults = checker::check(&book, &seen.evidence);
    let mut found = |fault: postgres::Fault| faults.add(Kind::WrongContent, 1, || format!("db verify: {fault}"));
    let checked = postgres::verify(&options, &mut found).map_err(Failure::runtime)?;
    tell(format!("checked {} tasks with {} commits in PostgreSQL", checked.tasks, checked.commits));
    let mut found = |fault: database::Fault| faults.add(Kind::WrongContent, 1, || format!("db verify: {fault}"));
    database::verify(&upstream.database(), &mut found).map_err(Failure::runtime)?;
    let verdict = Verdict { seed, seen: &seen, faults: &faults };
    tell(verdict.text());
    if args.json {
        output::say(verdict.json());
    }
    if verdict.is_good() {
        return postgres::remove(&options).map(drop).map_err(Failure::runtime);
    }
    let why = if faults.total() > 0 { "promises were broken" } else { "too little was seen to tell" };
    let schema = &shared.schema;
    Err(Failure::Runtime(format!("{why}; the schema {schema} was kept; once more with the same plan: --seed {seed}")))
}

/// A key for the secrets of webhooks, of which there are none worth keeping.
fn secrets_key(dice: &mut Dice) -> String {
    let bytes: Vec<u8> = (0..4).flat_map(|_| dice.roll().to_le_bytes()).collect();
    format!("swkey_{}", STANDARD.encode(bytes))
}

struct Script<'a> {
    folder: PathBuf,
    dice: Dice,
    length: Duration,
    count: u32,
    disturb: &'a [String],
}

async fn perform(script: Script<'_>, shared: &Shared, tell: &impl Fn(String)) -> Result<(Performance, Home), Failure> {
    let Script { folder, mut dice, length, count, disturb } = script;
    std::fs::create_dir_all(&folder).map_err(Failure::runtime)?;
    let (ledger, writer) = Ledger::create(&ledger_of(&folder)).map_err(Failure::runtime)?;
    let mut ours = Crew::new();
    let cast = Cast::make(&folder, shared, count, Arc::new(ledger), &mut dice, &mut ours, tell).await?;
    let mut clients = cast.players.world.start(&mut dice);
    let (children, mut seen) = cast.suffer(&folder, disturb, &mut dice, length, tell).await;
    let all_run = children.iter().all(Option::is_some);
    cast.players.leave(&mut clients, all_run).await;
    if all_run {
        cast.look(children.into_iter().flatten().collect(), &mut dice, &mut seen, tell).await;
    }
    cast.clear_away().await;
    cast.players.finish(&mut seen, cast.counts(), writer).await?;
    Ok((seen, cast.behind.home))
}

/// Kills one server after the other, each while it works on a task, and sees how long others take to go on with it.
async fn measure(
    world: &World,
    berths: &[Berth],
    mut children: Vec<Child>,
    dice: &mut Dice,
    deeds: &mut Deeds,
    tell: &impl Fn(String),
) -> Vec<Child> {
    let limit = LEASE + LEASE / SWEEPS_PER_LEASE + TAKEOVER_SLACK;
    let mut took = Vec::new();
    for _ in 0..TAKEOVERS {
        let victim = usize::try_from(dice.below(berths.len() as u64)).unwrap_or(0);
        let other = (victim + 1) % berths.len();
        let child = children.remove(victim);
        let killing = async || kill(world, child).await;
        match takeover(world, &berths[victim].client, &berths[other].client, killing).await {
            Ok(time) => {
                took.push(format!("{:.1}", time.as_secs_f64()));
                if time > limit {
                    deeds
                        .misdeeds
                        .push(format!("a run was taken over after {time:?}, and should have within {limit:?}"));
                }
            }
            Err(why) => deeds.misdeeds.push(why),
        }
        match berths[victim].start().await {
            Ok(child) => children.insert(victim, child),
            Err(misdeed) => {
                deeds.misdeeds.push(misdeed);
                return children;
            }
        }
    }
    tell(format!(
        "takeovers of runs of killed servers took {} s; {:.1} s is the most allowed",
        took.join(", "),
        limit.as_secs_f64()
    ));
    children
}

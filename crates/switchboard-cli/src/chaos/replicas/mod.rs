//! Several servers that share a database in PostgreSQL, under the load of one. What is done to them is in [`fleet`], the ways that are cut in
//! [`proxy`]. When everything has come to rest, servers are killed one by one, and others must go on with their work in time; at the
//! end the database is checked as by `switchboard db verify`.

mod fleet;
mod proxy;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use switchboard::{PostgresOptions, postgres};
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep};

use self::fleet::{Berth, Cuts, disturb, kill};
use self::proxy::{Way, divide};
use super::book::Book;
use super::checker;
use super::child::{Child, Home, LEASE};
use super::client::Client;
use super::crew::Crew;
use super::dice::Dice;
use super::faults::Kind;
use super::hooks::Hooks;
use super::inspect::inspect;
use super::killer::{Deeds, Place};
use super::ledger::Ledger;
use super::load::{World, takeover};
use super::stage::{
    ANSWERS_WAIT_MAX, LONGER_MAX, NEWS, Performance, Plot, TASKS_WAIT_MAX, ledger_of, wait_for_webhooks,
};
use super::verdict::{Counts, Verdict};
use super::{processes, selftest, unless_interrupted};
use crate::cli::ChaosArgs;
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
    let shared = Shared { url, schema, hints: args.hints.clone(), secrets_key };
    let mut options = PostgresOptions::new(&*shared.url).schema(&*shared.schema);
    if let Ok(password) = std::env::var("PGPASSWORD") {
        options = options.password(password);
    }
    postgres::migrate(&options).map_err(Failure::runtime)?;
    tell(format!("killing {count} servers for {} s", length.as_secs()));
    let script = Script { folder: folder.join("run"), dice, length, count, disturb: &args.disturb };
    let seen = runtime.block_on(unless_interrupted(perform(script, &shared, &tell)))?;
    let book = Book::read(&ledger_of(&folder.join("run"))).map_err(Failure::runtime)?;
    let mut faults = checker::check(&book, &seen.evidence);
    let mut found = |fault: postgres::Fault| faults.add(Kind::WrongContent, 1, || format!("db verify: {fault}"));
    let checked = postgres::verify(&options, &mut found).map_err(Failure::runtime)?;
    tell(format!("checked {} tasks with {} commits in PostgreSQL", checked.tasks, checked.commits));
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

async fn perform(script: Script<'_>, shared: &Shared, tell: &impl Fn(String)) -> Result<Performance, Failure> {
    let Script { folder, mut dice, length, count, disturb: commands } = script;
    std::fs::create_dir_all(&folder).map_err(Failure::runtime)?;
    let (ledger, writer) = Ledger::create(&ledger_of(&folder)).map_err(Failure::runtime)?;
    let ledger = Arc::new(ledger);
    let (listener, hooks_addr) = Hooks::listen().await.map_err(Failure::runtime)?;
    let hooks = Hooks::new(ledger.clone(), dice.fork());
    let (mut receiver, mut ways) = (Crew::new(), Crew::new());
    receiver.add(hooks.clone().serve(listener));
    let berths = berths(&folder, shared, count, hooks_addr, &mut dice, &mut ways).await?;
    if berths.iter().any(|berth| berth.way.is_none()) {
        tell("the way to the database is not cut, because it is not on this machine or is encrypted".to_owned());
    }
    let client = Arc::new(Client::of(berths.iter().map(|berth| berth.home.addr).collect())?);
    let world = World::new(client.clone(), ledger.clone(), hooks_addr);
    let mut clients = world.start(&mut dice);

    let begun = Instant::now();
    let counts = || Counts {
        kills: world.kills(Place::Front),
        acknowledged: ledger.acknowledged(),
        resumed: world.resumed(),
        webhooks_repeated: hooks.repeated(),
        kills_felt: world.kills_felt(),
        upstream_kills: 0,
        cuts: 0,
    };
    let (until, latest) = (begun + length, begun + length * LONGER_MAX);
    let over = || {
        let now = Instant::now();
        now >= latest || (now >= until && counts().shortfalls(Plot::Server, length).is_empty())
    };
    let (misdeeds, disturbed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let raging = futures_util::future::join_all(berths.iter().map(|berth| berth.rage(&world, dice.fork(), over)));
    let telling = async {
        loop {
            sleep(NEWS).await;
            let Counts { kills, acknowledged, resumed, .. } = counts();
            let seconds = begun.elapsed().as_secs();
            tell(format!(
                "{seconds:>4} s: {kills} kills, {acknowledged} acknowledged events, {resumed} resumed streams"
            ));
        }
    };
    let disturbing = disturb(commands, &folder, dice.fork(), &misdeeds, &disturbed);
    let raged = tokio::select! {
        biased;
        raged = raging => raged,
        () = telling => unreachable!("it never ends by itself"),
        () = disturbing => unreachable!("it never ends by itself"),
    };
    let mut seen = Performance { asked: length, length: begun.elapsed(), ..Performance::default() };
    let (mut children, mut cuts) = (Vec::new(), Cuts::default());
    for (child, deeds, cut) in raged {
        children.push(child);
        seen.deeds.add(deeds);
        cuts.hung += cut.hung;
        cuts.broken += cut.broken;
    }
    let disturbed = disturbed.into_inner();
    tell(format!(
        "ways to the database hung {} times and broke {} times; {disturbed} disturbances",
        cuts.hung, cuts.broken
    ));

    hooks.calm_down();
    let all_run = children.iter().all(Option::is_some);
    world.close(if all_run { Instant::now() + ANSWERS_WAIT_MAX } else { Instant::now() });
    clients.all_leave().await;
    if all_run {
        let children =
            measure(&world, &berths, children.into_iter().flatten().collect(), &mut dice, &mut seen.deeds, tell).await;
        tell("no client waits any more; looking at every task".to_owned());
        seen.evidence = inspect(client.clone(), world.tasks(), Instant::now() + TASKS_WAIT_MAX).await;
        wait_for_webhooks(&hooks, &world.tasks(), &seen.evidence).await;
        for child in children {
            seen.deeds.misdeeds.extend(child.stop().await.err());
        }
    }
    // Commands of a killed server are for its service manager to end, which we are here.
    for berth in &berths {
        processes::orphans(&berth.home.mark, Duration::ZERO).await;
    }
    let wrong = &mut seen.evidence.misdeeds;
    wrong.append(&mut seen.deeds.misdeeds);
    wrong.append(&mut misdeeds.lock().unwrap_or_else(PoisonError::into_inner));
    wrong.extend(world.refusals());
    wrong.extend(hooks.strange());
    (seen.requests, seen.counts) = (client.requests(), counts());
    seen.counts.acknowledged = ledger.finish(writer).await.map_err(|error| {
        Failure::Runtime(format!("the ledger could not be written, so nothing can be said: {error}"))
    })?;
    Ok(seen)
}

/// A place for each server, with a way of its own to the database.
async fn berths(
    folder: &Path,
    shared: &Shared,
    count: u32,
    hooks: std::net::SocketAddr,
    dice: &mut Dice,
    ways: &mut Crew,
) -> Result<Vec<Berth>, Failure> {
    let mut berths = Vec::new();
    for number in 1..=count {
        let name = format!("replica-{number}");
        let (way, url) = match divide(&shared.url) {
            Some((to, [before, after])) => {
                let way = Way::open(to, ways).await.map_err(Failure::runtime)?;
                let url = format!("{before}{}{after}", way.addr);
                (Some(way), url)
            }
            None => (None, shared.url.clone()),
        };
        let mut variables = vec![
            ("SWITCHBOARD_STORE", url),
            ("SWITCHBOARD_STORE_SCHEMA", shared.schema.clone()),
            ("SWITCHBOARD_REPLICA", name.clone()),
            ("SWITCHBOARD_SECRETS_KEY", shared.secrets_key.clone()),
        ];
        variables.extend(shared.hints.clone().map(|hints| ("SWITCHBOARD_HINTS", hints)));
        variables.extend(std::env::var("PGPASSWORD").ok().map(|password| ("PGPASSWORD", password)));
        let home = Home::make_replica(&folder.join(&name), hooks, dice, variables).map_err(Failure::runtime)?;
        let client = Client::of(vec![home.addr])?;
        berths.push(Berth { name, home, client, way });
    }
    Ok(berths)
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

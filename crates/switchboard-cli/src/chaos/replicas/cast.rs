//! Who takes part: the servers that share a database, their upstream, the clients, and the receiver of webhooks.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::time::Instant;

use super::super::behind::{Behind, BehindSeen};
use super::super::child::{Child, Home, free_addr};
use super::super::client::Client;
use super::super::crew::Crew;
use super::super::dice::Dice;
use super::super::hooks::Hooks;
use super::super::killer::Victim;
use super::super::ledger::Ledger;
use super::super::link::Link;
use super::super::load::Place;
use super::super::performance::{Counts, Performance, Plot};
use super::super::players::{Players, look_behind, with_news};
use super::super::processes;
use super::super::stage::{COMMANDS_WAIT_MAX, LONGER_MAX};
use super::address::{divide, over};
use super::clock::WrongClock;
use super::fleet::{Berth, Cuts, disturb};
use super::namespace::Namespace;
use super::{Shared, measure};
use crate::failure::Failure;

pub(super) struct Cast {
    pub(super) players: Players,
    pub(super) behind: Behind,
    berths: Vec<Berth>,
}

impl Cast {
    pub(super) async fn make(
        folder: &Path,
        shared: &Shared,
        count: u32,
        ledger: Arc<Ledger>,
        dice: &mut Dice,
        ours: &mut Crew,
        tell: &impl Fn(String),
    ) -> Result<Self, Failure> {
        let (hooks, hooks_addr) = Hooks::start(ledger.clone(), dice.fork(), ours).await.map_err(Failure::runtime)?;
        let behind = Behind::make(&folder.join("upstream"), hooks_addr, dice, ours)?;
        let addresses = (behind.link.addr, hooks_addr);
        let berths = berths(folder, shared, count, addresses, dice, ours, tell).await?;
        if berths.iter().any(|berth| berth.link.is_none()) {
            tell("the link to the database is not cut, because it is not on this machine or is encrypted".to_owned());
        }
        let client = Client::of(berths.iter().map(|berth| berth.home.addr).collect())?;
        Ok(Self { players: Players::new(ledger, hooks, hooks_addr, client), behind, berths })
    }

    pub(super) fn counts(&self) -> Counts {
        let database_cuts = self.berths.iter().map(|berth| Some(berth.link.as_ref()?.cuts())).sum();
        Counts { cuts: self.behind.link.cuts(), database_cuts, ..self.players.counts() }
    }

    /// Does everything to the servers, for as long as was asked for, or longer until enough was seen. Gives the servers that run in the end.
    pub(super) async fn suffer(
        &self,
        folder: &Path,
        commands: &[String],
        dice: &mut Dice,
        length: Duration,
        tell: &impl Fn(String),
    ) -> (Vec<Option<Child>>, Performance) {
        let begun = Instant::now();
        let (until, latest) = (begun + length, begun + length * LONGER_MAX);
        let over = || {
            let now = Instant::now();
            now >= latest || (now >= until && self.counts().shortfalls(Plot::Replicas, length).is_empty())
        };
        let (Behind { home, client, link }, world) = (&self.behind, &*self.players.world);
        let upstream = Victim { home, client, world, place: Place::Upstream };
        let rages: Vec<_> = self.berths.iter().map(|berth| berth.rage(world, dice.fork(), over)).collect();
        let (suffering, cutting) = (upstream.suffer(dice.fork(), over), link.be_cut(dice.fork(), over));
        let raging = async { tokio::join!(futures_util::future::join_all(rages), suffering, cutting) };
        let (misdeeds, disturbed) = (Mutex::new(Vec::new()), AtomicU64::new(0));
        let disturbing = disturb(commands, folder, dice.fork(), &misdeeds, &disturbed);
        let suffering = Box::pin(async {
            tokio::select! {
                biased;
                raged = raging => raged,
                () = disturbing => unreachable!("it never ends by itself"),
            }
        });
        let text = || self.counts().text(Plot::Replicas);
        let (raged, (child, deeds), ()) = with_news(suffering, begun, text, tell).await;
        let mut seen =
            Performance { plot: Plot::Replicas, asked: length, length: begun.elapsed(), ..Performance::default() };
        seen.behind = BehindSeen { deeds, child, left_over: 0 };
        let (mut children, mut cuts) = (Vec::new(), Cuts::default());
        for (child, deeds, cut) in raged {
            children.push(child);
            seen.deeds.add(deeds);
            cuts.add(&cut);
        }
        seen.deeds.misdeeds.append(&mut misdeeds.into_inner().unwrap_or_else(PoisonError::into_inner));
        let (Cuts { silent, broken, down, clock_jumps }, disturbed) = (cuts, disturbed.into_inner());
        tell(format!(
            "links to the database fell silent {silent} times and broke {broken} times, their networks were down {down} times; \
             clocks jumped {clock_jumps} times; {disturbed} disturbances"
        ));
        (children, seen)
    }

    /// Measures takeovers, reads everything that the servers have, and stops them.
    pub(super) async fn look(
        &self,
        children: Vec<Child>,
        dice: &mut Dice,
        seen: &mut Performance,
        tell: &impl Fn(String),
    ) {
        let children = measure(&self.players.world, &self.berths, children, dice, &mut seen.deeds, tell).await;
        tell("no client waits any more; looking at every task".to_owned());
        self.players.look(seen).await;
        look_behind(&self.behind, seen).await;
        seen.evidence.orphans = processes::orphans(&self.behind.home.mark, COMMANDS_WAIT_MAX).await;
        for child in children {
            seen.deeds.misdeeds.extend(child.stop().await.err());
        }
    }

    /// Ends what commands of the servers have left. Commands of a killed server are for its service manager to end, which we are here.
    pub(super) async fn clear_away(&self) {
        for berth in &self.berths {
            processes::orphans(&berth.home.mark, Duration::ZERO).await;
        }
    }
}

/// A place for each server, with a link of its own to the database.
async fn berths(
    folder: &Path,
    shared: &Shared,
    count: u32,
    (upstream, hooks): (SocketAddr, SocketAddr),
    dice: &mut Dice,
    ours: &mut Crew,
    tell: &impl Fn(String),
) -> Result<Vec<Berth>, Failure> {
    let mut berths = Vec::new();
    for number in 1..=count {
        let name = format!("replica-{number}");
        let (link, network, url) = match divide(&shared.url) {
            Some((to, parts)) => {
                let (link, network) = lay(number, to, dice, ours, tell).await.map_err(Failure::runtime)?;
                let url = over(link.addr, parts);
                (Some(link), network, url)
            }
            None => (None, None, shared.url.clone()),
        };
        let mut variables = vec![
            ("SWITCHBOARD_STORE", url),
            ("SWITCHBOARD_STORE_SCHEMA", shared.schema.clone()),
            ("SWITCHBOARD_REPLICA", name.clone()),
            ("SWITCHBOARD_SECRETS_KEY", shared.secrets_key.clone()),
        ];
        variables.extend(shared.hints.clone().map(|hints| ("SWITCHBOARD_HINTS", hints)));
        variables.extend(std::env::var("PGPASSWORD").ok().map(|password| ("PGPASSWORD", password)));
        let folder = folder.join(&name);
        let clock = shared.faketime.as_deref().map(|library| WrongClock::make(library, &folder, dice));
        let clock = clock.transpose().map_err(Failure::runtime)?;
        variables.extend(clock.iter().flat_map(WrongClock::variables));
        let home = Home::make_replica(&folder, upstream, hooks, dice, variables).map_err(Failure::runtime)?;
        let client = Client::of(vec![home.addr])?;
        berths.push(Berth { name, home, client, link, network, clock });
    }
    Ok(berths)
}

/// Puts a link between a server and its database, over a network of its own where that is permitted.
async fn lay(
    number: u32,
    to: String,
    dice: &mut Dice,
    ours: &mut Crew,
    tell: &impl Fn(String),
) -> io::Result<(Arc<Link>, Option<Namespace>)> {
    match Namespace::make(u8::try_from(number).unwrap_or(u8::MAX)).await {
        Ok((network, listener)) => {
            let link = Link::new(network.addr);
            ours.add(link.clone().serve_on(TcpListener::from_std(listener)?, to));
            Ok((link, Some(network)))
        }
        Err(why) => {
            if number == 1 {
                tell(format!(
                    "links to the database are cut by a proxy alone, because there are no network namespaces: {why}"
                ));
            }
            let link = Link::new(free_addr(dice)?);
            ours.add(link.clone().serve(to));
            Ok((link, None))
        }
    }
}

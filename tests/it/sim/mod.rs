//! The whole engine on virtual time: one to three nodes that share a store, over ports that fail. Commits conflict, are
//! refused, or happen without an answer; hints get lost, repeated and overtaken; processes stand still beyond their
//! lease and go on as if nothing had been; they die at any await and start again; clocks jump both ways; webhooks are
//! refused, cut off and answered too late. Clients send, repeat, stream, resume, answer and cancel through any node.
//! Everything is drawn from one seed, so a failure is a number (see CONTRIBUTING.md):
//!
//! `SWITCHBOARD_SIM_SEED=4711 cargo test --profile ci --workspace --test it -- sim::seeds --nocapture`
//!
//! - `world`, `life`, `weather`, `clocks`: nodes, and what happens to them;
//! - `store`, `hints`, `hooks`, `agent`: the ports as one process sees them;
//! - `client`: what is asked of the nodes, and what was answered;
//! - `audit`, `check`: what must hold at every write, and when all has come to rest;
//! - `seeds`, `blows`, `planted`: the tests.

mod agent;
mod audit;
mod blows;
mod check;
mod client;
mod clocks;
pub(crate) mod dice;
mod fleet;
mod hints;
mod hooks;
mod journal;
mod life;
mod planted;
mod seeds;
mod store;
mod weather;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use self::client::Client;
use self::dice::Dice;
use self::journal::{Story, Totals};
use self::weather::Trouble;
use self::world::{Build, World};
use crate::support::limit::Limit;

/// One world from its first call to its rest.
struct Simulation<'a> {
    seed: u64,
    build: &'a Build,
    trouble: Trouble,
    /// Whether to keep every step, for a reader.
    keep_steps: bool,
}

impl Simulation<'_> {
    /// Runs it. A panic is a broken promise, too.
    fn run(&self) -> Story {
        catch_unwind(AssertUnwindSafe(|| self.live().0)).unwrap_or_else(|cause| {
            let text = cause.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no words");
            Story { broken: Some(format!("panicked: {text}")), totals: Totals::default(), steps: Vec::new() }
        })
    }

    /// Its story, and how many steps its processes took.
    fn live(&self) -> (Story, u64) {
        let _limit = Limit::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut dice = Dice::new(self.seed);
            let world = World::new(self.build, self.trouble, self.keep_steps, &mut dice);
            world.start(&mut dice);
            tokio::spawn(world.clone().trouble(dice.fork()));
            // A world that is lived once for each of its steps is a small one.
            let (clients, patience) = match self.trouble {
                Trouble::Seeded => (dice.between(1, 5), 3),
                Trouble::One(..) => (1, 1),
            };
            let client = |number| Client::new(number, patience, world.clone(), dice.fork());
            let clients: Vec<_> = (0..clients).map(client).map(|client| tokio::spawn(client.live())).collect();
            let mut ledgers = Vec::new();
            for client in clients {
                ledgers.push(client.await.unwrap_or_else(|died| std::panic::resume_unwind(died.into_panic())));
            }
            world.calm_down();
            check::come_to_rest(&world).await;
            check::promises(&world, &ledgers).await;
            (world.journal().close(), world.steps())
        })
    }
}

//! What a send costs beside few stored tasks and beside many. Two servers, each with a schema of its own on one PostgreSQL, take turns, so that
//! what else the machine does falls on both. Every task that is stored was sent.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use switchboard_test_servers::Postgres;

use super::cost::{Cost, PerSend};
use super::{Arguments, with_settings};
use crate::load::{Pool, Until, Work};
use crate::server::Server;

/// The smaller number of stored tasks.
const FEW: u64 = 1_000;
/// Sends of one round. They are stored, too, so there are not more of them.
const SENDS: u64 = 10_000;
/// The last sends before the first round, which fill caches.
const WARMING: u64 = FEW;

struct Filled {
    server: Server,
    stored: u64,
    cost: Cost,
}

pub(super) async fn measure(arguments: &Arguments, program: &Path, folder: &Path, postgres: &Postgres) -> Result<()> {
    let mut both = Vec::new();
    for (name, wanted) in [("few", FEW), ("many", arguments.stored)] {
        let settings = format!("store_schema = \"{name}\"\nretention_tasks_max = {}", 2 * wanted.max(1_000_000));
        let server = with_settings(program, folder, name, postgres, &settings)?;
        server.until_ready().await?;
        let begun = Instant::now();
        let mut pool = Pool::open(server.address, arguments.connections).await?;
        let filling = pool.run(&Work::Send, Until::Requests(wanted.saturating_sub(WARMING))).await;
        ensure!(filling.errors == 0, "{} errors, first: {:?}", filling.errors, filling.first_error);
        println!("{wanted} tasks were sent in {:.0} s", begun.elapsed().as_secs_f64());
        both.push(Filled { server, stored: wanted, cost: Cost::default() });
    }
    // What was filled is on disk before anything is measured.
    let _ = postgres.sql("checkpoint");
    for round in 0..=arguments.rounds {
        for Filled { server, cost, .. } in &mut both {
            let mut pool = Pool::open(server.address, arguments.connections).await?;
            let sends = if round == 0 { WARMING } else { SENDS };
            cost.measure(server, postgres, round > 0, pool.run(&Work::Send, Until::Requests(sends))).await?;
        }
    }
    println!("durable sends of an ordinary agent beside stored tasks, {} connections:", arguments.connections);
    let mut sends: Vec<PerSend> = Vec::new();
    for Filled { stored, cost, .. } in both {
        let each = cost.per_send();
        println!("{stored:>9} to {}: {each}", stored + SENDS * arguments.rounds as u64);
        println!("           {}", each.of_database());
        sends.push(each);
    }
    let [few, many] = &sends[..] else { unreachable!("two were measured") };
    println!(
        "           beside many: {:.2} of the sends/s, {:.2} of the server's CPU, {:.2} of PostgreSQL's",
        many.per_second / few.per_second,
        many.server_us / few.server_us,
        many.database_us / few.database_us
    );
    Ok(())
}

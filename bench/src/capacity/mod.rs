//! What a cell can carry: a small calculation with the figures of [`constants`]. It is about the CPU of servers and of PostgreSQL, which is
//! what was measured; docs/scale.md says what is left out. The tables of that page are made here (`page`).

pub mod constants;
#[cfg(test)]
mod page;

use constants::{CONNECTIONS, DATABASE_PER_IDLE_SERVER, DATABASE_PER_RUN, DATABASE_PER_SEND, SERVER_PER_SEND};

/// Which part of the cores may be busy. The rest is for peaks, for takeovers after a failure, and for what the model leaves out. It is a
/// choice, not a measurement.
pub const BUSY_PART: f64 = 0.5;
/// Servers that a cell has beside those that its load needs, so that one may be down.
pub const SPARE_SERVERS: f64 = 1.0;

/// The machines of a cell.
#[derive(Clone, Copy, Debug)]
pub struct Machines {
    pub database_cores: f64,
    pub server_cores: f64,
}

/// The measured costs, in µs of CPU.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    pub database_per_send: f64,
    pub server_per_send: f64,
    /// Per second.
    pub database_per_idle_server: f64,
    /// Per second.
    pub database_per_run: f64,
}

/// What a cell carries, and what it needs for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    pub sends_per_second: f64,
    /// Runs that are under way at once.
    pub runs: f64,
    pub servers: f64,
    pub connections: f64,
}

impl Costs {
    /// The measured ones; none if one of them was not measured.
    #[must_use]
    pub fn measured() -> Option<Self> {
        Some(Self {
            database_per_send: DATABASE_PER_SEND.value?,
            server_per_send: SERVER_PER_SEND.value?,
            database_per_idle_server: DATABASE_PER_IDLE_SERVER.value?,
            database_per_run: DATABASE_PER_RUN.value?,
        })
    }
}

impl Cell {
    /// The most that PostgreSQL can carry on these machines if a run takes `run_seconds` on average, with as many servers as that needs.
    #[must_use]
    pub fn most(costs: &Costs, machines: Machines, run_seconds: f64) -> Self {
        let database = machines.database_cores * BUSY_PART * 1e6;
        let server = machines.server_cores * BUSY_PART * 1e6;
        // Each send per second needs this part of a server, and keeps `run_seconds` runs under way.
        let servers_per_send = costs.server_per_send / server;
        let per_send = costs.database_per_send
            + run_seconds * costs.database_per_run
            + servers_per_send * costs.database_per_idle_server;
        let left = (database - SPARE_SERVERS * costs.database_per_idle_server).max(0.0);
        let sends_per_second = left / per_send;
        let servers = (sends_per_second * servers_per_send).ceil() + SPARE_SERVERS;
        Self {
            sends_per_second,
            runs: sends_per_second * run_seconds,
            servers,
            connections: servers * CONNECTIONS.value.unwrap_or_default(),
        }
    }

    /// How many such cells a load needs.
    #[must_use]
    pub fn cells_for(&self, sends_per_second: f64) -> f64 {
        (sends_per_second / self.sends_per_second).ceil().max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{BUSY_PART, Cell, Costs, Machines};

    const MACHINES: Machines = Machines { database_cores: 8.0, server_cores: 4.0 };

    fn costs() -> Costs {
        Costs {
            database_per_send: 100.0,
            server_per_send: 50.0,
            database_per_idle_server: 1_000.0,
            database_per_run: 10.0,
        }
    }

    /// What PostgreSQL is busy with, in cores.
    fn database_cores(cell: &Cell, costs: &Costs) -> f64 {
        let micros = cell.sends_per_second * costs.database_per_send
            + cell.runs * costs.database_per_run
            + cell.servers * costs.database_per_idle_server;
        micros / 1e6
    }

    #[test]
    fn a_full_cell_keeps_its_database_busy_and_no_more() {
        for run_seconds in [0.0, 1.0, 60.0, 3_600.0] {
            let cell = Cell::most(&costs(), MACHINES, run_seconds);
            let busy = database_cores(&cell, &costs());
            let allowed = MACHINES.database_cores * BUSY_PART;
            // The number of servers is rounded up, which costs at most one idle server.
            assert!((busy - allowed).abs() <= 0.001 + 1e-9, "{run_seconds} s: {busy} of {allowed} cores");
        }
    }

    #[test]
    fn servers_are_busy_to_the_same_part_and_one_is_to_spare() {
        let cell = Cell::most(&costs(), MACHINES, 0.0);
        let needed = cell.sends_per_second * costs().server_per_send / 1e6 / (MACHINES.server_cores * BUSY_PART);
        assert!((needed..needed + 1.0).contains(&(cell.servers - 1.0)), "{needed} of {}", cell.servers);
    }

    #[test]
    fn longer_runs_leave_room_for_fewer_sends() {
        let [short, long] = [1.0, 600.0].map(|seconds| Cell::most(&costs(), MACHINES, seconds));
        assert!(short.sends_per_second > 10.0 * long.sends_per_second);
        assert!(long.runs > short.runs);
    }

    #[test]
    fn cells_add_up() {
        let cell = Cell { sends_per_second: 10_000.0, runs: 0.0, servers: 2.0, connections: 18.0 };
        assert_eq!([1.0, 10_000.0, 10_001.0, 100_000.0].map(|sends| cell.cells_for(sends)), [1.0, 1.0, 2.0, 10.0]);
    }
}

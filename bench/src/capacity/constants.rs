//! What the model of capacity stands on: figures, each with the command that measures or counts it. A figure that was not measured has no
//! value, and what depends on it is not calculated.

/// A figure of the model.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    pub name: &'static str,
    /// None if it was not measured.
    pub value: Option<f64>,
    pub unit: &'static str,
    /// The command that prints it.
    pub command: &'static str,
}

const REPLICAS: &str = "cargo run --release -p bench --bin replicas";
const SIMULATION: &str = "cargo test --profile ci --workspace --test it -- sim::fleet::the_calls --nocapture";

/// What one durable send of an ordinary agent costs PostgreSQL: two commits.
pub const DATABASE_PER_SEND: Constant =
    Constant { name: "PostgreSQL, per send", value: Some(94.0), unit: "µs of CPU", command: REPLICAS };

/// What it costs the server.
pub const SERVER_PER_SEND: Constant =
    Constant { name: "server, per send", value: Some(91.0), unit: "µs of CPU", command: REPLICAS };

/// What a server costs PostgreSQL in a second in which nothing happens.
pub const DATABASE_PER_IDLE_SERVER: Constant = Constant {
    name: "PostgreSQL, per idle server and second",
    value: Some(2_000.0),
    unit: "µs of CPU",
    command: REPLICAS,
};

/// What it costs PostgreSQL that a run goes on for a second and writes nothing: its lease is renewed with every sweep.
pub const DATABASE_PER_RUN: Constant = Constant {
    name: "PostgreSQL, per run under way and second",
    value: Some(4.85),
    unit: "µs of CPU",
    command: REPLICAS,
};

/// How much later a follower at another server sees an event.
pub const FOLLOWER_DELAY: Constant =
    Constant { name: "delay of a follower at another server, p50", value: Some(1.03), unit: "ms", command: REPLICAS };

/// Calls of a server to its store in a minute in which nothing happens. Counted, not measured: they are the same everywhere.
pub const IDLE_CALLS: Constant = Constant {
    name: "calls of an idle server to its store",
    value: Some(28.0),
    unit: "per minute",
    command: SIMULATION,
};

/// The same while runs are under way that write nothing, however many.
pub const HOLDING_CALLS: Constant =
    Constant { name: "calls of a server that holds runs", value: Some(55.0), unit: "per minute", command: SIMULATION };

/// Connections of a server to PostgreSQL with the default `store_readers`.
pub const CONNECTIONS: Constant = Constant {
    name: "connections of a server to PostgreSQL",
    value: Some(9.0),
    unit: "connections",
    command: "counted: docs/postgres.md, `store_readers`",
};

/// All of them, in the order of the page.
pub const ALL: [Constant; 8] = [
    DATABASE_PER_SEND,
    SERVER_PER_SEND,
    DATABASE_PER_IDLE_SERVER,
    DATABASE_PER_RUN,
    FOLLOWER_DELAY,
    IDLE_CALLS,
    HOLDING_CALLS,
    CONNECTIONS,
];

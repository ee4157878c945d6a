//! Servers that a test starts, on free ports of this machine and in temporary folders: PostgreSQL and NATS, and a balancer in front of servers of ours.
//!
//! A shell keeps each of the first two and ends it when this process ends, however that happens.

mod balancer;
mod keeper;
mod nats;
mod ports;
mod postgres;

pub use balancer::{Balancer, RunningBalancer};
pub use nats::{Nats, NatsCluster};
pub use ports::free_addr;
pub use postgres::{Postgres, Stop};

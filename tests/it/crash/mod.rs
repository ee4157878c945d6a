//! The real binary on a real file, killed for real. What a client was told is written down in this process, outside the
//! one that dies.

mod besieged;
mod calls;
mod chaos;
mod commands;
mod disk_full;
mod dispatched;
mod door;
mod files;
mod frozen;
mod herd;
mod http;
mod interrupted;
mod killed;
mod large;
mod oauth;
mod outbox;
mod postgres;
mod process;
mod receiver;
mod relayed;
mod restored;
mod rolling;
mod signed;
mod storage;
mod synced;
mod traced;
mod upgrade;
mod upkeep;
mod workspace;
mod workspaces;

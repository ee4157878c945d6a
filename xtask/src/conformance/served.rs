//! What the kit talks to: the conformance agent in one server, or in several on one PostgreSQL, behind a balancer.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use switchboard_test_servers::{Balancer, Postgres, RunningBalancer};

use crate::server::Server;

/// A key for the secrets of webhooks: 32 zeros.
const SECRETS_KEY: &str = "swkey_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// What is served, until it is dropped: first the balancer goes, then the servers, then the database.
pub(super) struct Served {
    url: String,
    balancer: Option<RunningBalancer>,
    _servers: Vec<Server>,
    _database: Option<Postgres>,
}

impl Served {
    pub(super) fn start(agent: &Path, config: &str, replicas: Option<usize>) -> Result<Served, String> {
        let command = |address: SocketAddr| {
            let mut command = Command::new(agent);
            command.args(["--config", config, "--listen", &address.to_string()]);
            command
        };
        let Some(replicas) = replicas else {
            let server = Server::start(command)?;
            return Ok(Served { url: server.url(), balancer: None, _servers: vec![server], _database: None });
        };
        let (database, balancer) = (Postgres::start(), Balancer::bind());
        let url = balancer.url();
        let replica = |_| {
            Server::start(|address| {
                let mut command = command(address);
                command.args(["--public-url", &url, "--store", &database.url()]);
                command.env("SWITCHBOARD_SECRETS_KEY", SECRETS_KEY);
                command
            })
        };
        let servers = (0..replicas).map(replica).collect::<Result<Vec<_>, _>>()?;
        let balancer = balancer.start(servers.iter().map(Server::address).collect());
        Ok(Served { url, balancer: Some(balancer), _servers: servers, _database: Some(database) })
    }

    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// Whether every server has had its part of the requests.
    pub(super) fn check(&self) -> Result<(), String> {
        let passed = self.balancer.as_ref().map(RunningBalancer::passed).unwrap_or_default();
        if !passed.is_empty() {
            println!("requests by server: {passed:?}");
        }
        match passed.contains(&0) {
            true => Err(format!("a server got no request: {passed:?}")),
            false => Ok(()),
        }
    }
}

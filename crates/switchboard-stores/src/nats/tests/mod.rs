//! Hints over NATS: what every carrier of hints must do, on one server and on a cluster, and what only this one has. The tests start
//! servers of their own, so they are ignored unless they are asked for, as `scripts/test` does.

mod logins;
mod losses;

use std::sync::Arc;

use switchboard_engine::contract::hints::HintSubject;
use switchboard_engine::ports::Hints;
use switchboard_test_servers::{Nats, NatsCluster};

use super::{NatsHints, NatsOptions};

/// Two processes on one server.
struct OnServer {
    first: Arc<NatsHints>,
    second: Arc<NatsHints>,
    server: Nats,
}

impl OnServer {
    fn new(server: Nats, options: &NatsOptions) -> Self {
        let hints = || Arc::new(NatsHints::start(options, "group").unwrap());
        Self { first: hints(), second: hints(), server }
    }
}

impl HintSubject for OnServer {
    fn first(&self) -> Arc<dyn Hints> {
        self.first.clone()
    }

    fn second(&self) -> Arc<dyn Hints> {
        self.second.clone()
    }

    fn cut(&self) {
        self.server.kill();
        self.server.resume();
    }
}

mod contract {
    fn make() -> super::OnServer {
        let server = super::Nats::start();
        let options = super::NatsOptions::new(server.url());
        super::OnServer::new(server, &options)
    }
    switchboard_engine::hints_contract!(
        #[ignore = "starts NATS"]
        make
    );
}

/// Two processes on a cluster of three servers.
struct OnCluster {
    first: Arc<NatsHints>,
    second: Arc<NatsHints>,
    cluster: NatsCluster,
    killed: std::sync::atomic::AtomicUsize,
}

impl HintSubject for OnCluster {
    fn first(&self) -> Arc<dyn Hints> {
        self.first.clone()
    }

    fn second(&self) -> Arc<dyn Hints> {
        self.second.clone()
    }

    /// Kills one node after the other; the one before comes back.
    fn cut(&self) {
        let number = self.killed.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number > 0 {
            self.cluster.nodes[(number - 1) % 3].resume();
        }
        self.cluster.nodes[number % 3].kill();
    }
}

mod cluster_contract {
    fn make() -> super::OnCluster {
        let cluster = super::NatsCluster::start();
        let options = super::NatsOptions::new(cluster.url());
        let hints = || std::sync::Arc::new(super::NatsHints::start(&options, "group").unwrap());
        super::OnCluster { first: hints(), second: hints(), cluster, killed: Default::default() }
    }
    switchboard_engine::hints_contract!(
        #[ignore = "starts NATS"]
        make
    );
}

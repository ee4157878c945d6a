//! What stands behind the gateway in a run with relays: the upstream, which is a server with the agents of every run, and the link
//! to it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use super::child::{Child, Home, Serves, free_addr};
use super::client::Client;
use super::crew::Crew;
use super::dice::Dice;
use super::killer::Deeds;
use super::link::Link;
use crate::failure::Failure;

pub(super) struct Behind {
    pub(super) home: Home,
    /// Asks the upstream itself.
    pub(super) client: Arc<Client>,
    pub(super) link: Arc<Link>,
}

/// What was done to it, and what was left of it.
#[derive(Debug, Default)]
pub(super) struct BehindSeen {
    pub(super) deeds: Deeds,
    /// The upstream that runs in the end; none, if it does not start any more.
    pub(super) child: Option<Child>,
    /// Tasks that were canceled at the gateway and went on at the upstream.
    pub(super) left_over: u64,
}

impl Behind {
    /// Makes the home of the upstream, whose cards lead to the link, and puts the link to work.
    pub(super) fn make(folder: &Path, hooks: SocketAddr, dice: &mut Dice, crew: &mut Crew) -> Result<Self, Failure> {
        let link = Link::new(free_addr(dice).map_err(Failure::runtime)?);
        let serves = Serves::Agents { public: Some(link.addr) };
        let home = Home::make(folder, &serves, hooks, dice).map_err(Failure::runtime)?;
        let client = Arc::new(Client::new(home.addr)?);
        crew.add(link.clone().serve(home.addr.to_string()));
        Ok(Self { home, client, link })
    }
}

//! Tokens of the workspace, shown to a real server.

use std::net::SocketAddr;
use std::time::Duration;

use switchboard::call::Owner;
use switchboard::client::{Client, Credentials};
use switchboard::{AgentBuilder, Server, SharedSecret, Turn};

use super::WorkspaceCaller;
use crate::directory::{Directory, DirectoryEntry, Sources};

const SHARED: &str = "the-secret-of-all-apps";
const OF_ORG: &str = "the-secret-of-acme-alone";

/// Calls the app `mail` as Alice and gives back whom it takes her for, or that it refuses.
async fn taken_for(known: SharedSecret, caller: &WorkspaceCaller, path: &str) -> String {
    taken(known, path, |entry| caller.credentials("alice@acme.com", entry).unwrap()).await
}

async fn taken(known: SharedSecret, path: &str, shown: impl FnOnce(&DirectoryEntry) -> Credentials) -> String {
    let who = |turn: Turn| async move {
        let owner = turn.owner();
        Ok(turn.answer(format!("{} of {}", owner.principal, owner.tenant)).await?)
    };
    let server = Server::builder().agent(AgentBuilder::from_fn("first", who)).agent(AgentBuilder::from_fn("mail", who));
    let bound = server.shared_secret(known).build().unwrap().bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let manifest = format!(r#"[{{"id": "mail", "path": "{path}"}}]"#);
    let sources = Sources::new("/nowhere").manifest(manifest).gateway(bound.url());
    let agents = Directory::open(sources).await.known();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let calling = async {
        let entry = agents.find("mail").unwrap();
        let client = Client::builder().credentials(shown(entry)).build().unwrap();
        let sent = client.agent(&entry.url).await.unwrap().send_text("who am I?").await;
        drop(stop);
        sent.map_or_else(|error| format!("{:?}", error.kind()), |sent| sent.text())
    };
    tokio::join!(bound.run_until(async { drop(stopped.await) }, Duration::ZERO), calling).1
}

#[tokio::test]
async fn an_app_learns_user_and_organization_from_a_token_under_the_shared_secret_or_that_of_the_organization() {
    let shared = || SharedSecret::new(SHARED);
    let both = || shared().with_org("acme.com", OF_ORG);
    let caller = WorkspaceCaller::new(SHARED);
    let of_acme = caller.clone().with_org("acme.com", Some(OF_ORG.to_owned()));
    let of_org_alone = WorkspaceCaller::new(" ").with_org("acme.com", Some(OF_ORG.to_owned()));
    let alice = taken_for(shared(), &of_acme, "/apps/mail").await;
    assert!(alice.contains("alice@acme.com") && alice.ends_with(" of acme.com"), "{alice}");
    // Under either secret she is the same.
    assert_eq!(taken_for(both(), &of_org_alone, "/apps/mail").await, alice);
    let org_alone = SharedSecret::default().with_org("acme.com", OF_ORG);
    assert_eq!(taken_for(org_alone, &of_acme, "/apps/mail").await, alice, "refused under the first, shown the second");
    assert_eq!(taken_for(shared(), &of_org_alone, "/apps/mail").await, "Refused");
    let nobody_s = taken_for(shared(), &caller, "/apps/mail").await;
    assert!(nobody_s.contains("alice@acme.com") && !nobody_s.ends_with("acme.com"), "{nobody_s}");
}

/// A task is passed on for its owner, whom the next app knows by the same name and organization as this one.
#[tokio::test]
async fn the_owner_of_a_task_is_the_same_user_at_the_next_app() {
    let secrets = SharedSecret::new(SHARED).with_org("acme.com", OF_ORG);
    let owner = Owner { tenant: "acme.com".into(), principal: "a2a-secret#alice@acme.com".into() };
    let org_alone = SharedSecret::default().with_org("acme.com", OF_ORG);
    for (caller, known) in [
        (WorkspaceCaller::new(SHARED).with_orgs_of_owners(&secrets), SharedSecret::new(SHARED)),
        (WorkspaceCaller::new("").with_orgs_of_owners(&secrets), org_alone),
    ] {
        let shown = |entry: &DirectoryEntry| caller.credentials_for(&owner, entry).unwrap();
        assert_eq!(taken(known, "/apps/mail", shown).await, "a2a-secret#alice@acme.com of acme.com");
    }
    // Whoever is known by a token of this server alone has no organization, and keeps the name.
    let bob = Owner { tenant: "".into(), principal: "bob".into() };
    let caller = WorkspaceCaller::new(SHARED).with_orgs_of_owners(&secrets);
    let shown = |entry: &DirectoryEntry| caller.credentials_for(&bob, entry).unwrap();
    assert_eq!(taken(SharedSecret::new(SHARED), "/apps/mail", shown).await, "a2a-secret#bob of ");
}

#[tokio::test]
async fn a_token_that_is_bound_to_an_app_is_good_at_each_of_its_addresses() {
    let caller = WorkspaceCaller::new(SHARED).with_org("acme.com", None).bind_to_audience(true);
    for path in ["/apps/mail", "/mail", "/agents/mail"] {
        let taken = taken_for(SharedSecret::new(SHARED), &caller, path).await;
        assert!(taken.contains("alice@acme.com"), "{path}: {taken}");
    }
}

#[tokio::test]
async fn an_agent_outside_the_workspace_is_shown_no_token_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("remote-agents")).unwrap();
    let remote = r#"{"name": "Weather", "url": "https://w.example"}"#;
    std::fs::write(folder.path().join("remote-agents/weather.json"), remote).unwrap();
    let agents = Directory::open(Sources::new(folder.path())).await.known();
    let caller = WorkspaceCaller::new(SHARED).with_org("acme.com", Some(OF_ORG.to_owned()));
    assert!(caller.credentials("alice@acme.com", agents.find("weather").unwrap()).is_none());
    assert!(!format!("{caller:?}").contains("secret-of"), "{caller:?}");
}

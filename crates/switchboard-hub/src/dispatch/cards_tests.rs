//! Cards of a directory, fetched from a real server.

use std::net::SocketAddr;
use std::time::Duration;

use switchboard::client::Client;
use switchboard::{AgentBuilder, Bound, Server, Skill, Turn};
use tokio::time::advance;

use super::{CARDS_PAUSE, DirectoryCards};
use crate::directory::{Directory, Sources};
use crate::dispatch::{Candidate, CardIndex, Targets};

async fn company() -> Bound {
    let agent = |name: &'static str, example: &'static str| {
        AgentBuilder::from_fn(name, |turn: Turn| async move { Ok(turn.answer("done").await?) })
            .skill(Skill::new("work", "Work", "").example(example))
    };
    let server =
        Server::builder().agent(agent("analytics", "How many signups?")).agent(agent("mail", "Reply to Alice"));
    server.build().unwrap().bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap()
}

fn examples(candidates: &[Candidate]) -> Vec<(&str, usize)> {
    candidates.iter().map(|candidate| (candidate.id.as_str(), candidate.card.skills.len())).collect()
}

#[tokio::test]
async fn cards_come_from_the_agents_and_those_that_are_down_are_known_by_their_entry() {
    let bound = company().await;
    let url = bound.url().to_owned();
    let manifest = r#"[{"id": "analytics", "path": "/apps/analytics"}, {"id": "mail", "path": "/mail"},
        {"id": "baker", "path": "/b", "url": "http://127.0.0.1:1", "description": "Bread and cakes"},
        {"id": "dispatch", "path": "/dispatch"}]"#;
    let sources = Sources::new("/nowhere").manifest(manifest).gateway(&url);
    let client = Client::builder().build().unwrap();
    let cards = DirectoryCards::new(Directory::open(sources).await, client);

    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = bound.run_until(async { drop(stopped.await) }, Duration::ZERO);
    let asking = async {
        let found = cards.candidates().await;
        assert_eq!(examples(&found), [("analytics", 1), ("baker", 0), ("mail", 1)], "in the order of their names");
        let index = CardIndex::new(found.clone());
        for (prompt, expected) in [("signups", "analytics"), ("reply to Alice", "mail"), ("a cake and bread", "baker")]
        {
            assert_eq!(index.rank(prompt).choice.unwrap().agent, expected);
        }
        let again = cards.candidates().await;
        let is_same = |(one, other): (&Candidate, &Candidate)| std::sync::Arc::ptr_eq(&one.card, &other.card);
        assert!(found.iter().zip(&again).all(is_same), "cards are not fetched for every message");
        drop(stop);
    };
    tokio::join!(serving, asking);

    // The server is gone, and its cards are still known.
    tokio::time::pause();
    advance(CARDS_PAUSE).await;
    tokio::time::resume();
    assert_eq!(examples(&cards.candidates().await), [("analytics", 1), ("baker", 0), ("mail", 1)]);
}

//! The card of a relay is that of its upstream, as far as it holds through the gateway.

use std::path::Path;
use std::sync::{Arc, Mutex};

use switchboard::client::{Client, RetryPolicy};
use switchboard::model::AgentCard;
use switchboard::{AgentBuilder, LiveCard, Server, Skill, Turn};
use switchboard_hub::relay::{AcceptedCard, CardChanges, Relay, RelayHandle, RelayOptions};

use super::quick;
use crate::support::callers::soon;
use crate::support::grpc::Served;

/// An upstream whose card can be changed.
async fn upstream(live: &LiveCard) -> (Served, String) {
    let agent = AgentBuilder::from_fn("Weather", |turn: Turn| async move { Ok(turn.answer("sunny").await?) })
        .description("Knows the weather")
        .version("7")
        .streaming(false)
        .push_notifications(false)
        .skill(Skill::new("forecast", "Forecast", "Tells tomorrow's weather"));
    let served = Served::start(Server::builder().agent(agent.live_card(live))).await;
    let url = format!("http://{}", served.address);
    (served, url)
}

async fn gateway(url: &str, options: RelayOptions) -> (Served, Arc<AgentCard>, RelayHandle) {
    let relay = Relay::new(url, Client::builder(), options).unwrap();
    let handle = relay.handle();
    handle.begin().await;
    let served = Served::start(Server::builder().agent(relay.agent("relay"))).await;
    handle.begin().await;
    let card = card_at(&served).await;
    (served, card, handle)
}

async fn card_at(served: &Served) -> Arc<AgentCard> {
    let client = Client::builder().build().unwrap();
    let url = format!("http://{}", served.address);
    soon(client.discover(&url)).await.unwrap().card().clone()
}

fn skills(card: &AgentCard) -> Vec<&str> {
    card.skills.iter().map(|skill| skill.id.as_str()).collect()
}

fn kept_at(file: &Path) -> RelayOptions {
    let mut options = quick();
    options.card_file = Some(file.to_owned());
    options
}

#[tokio::test]
async fn the_card_is_the_upstreams_with_what_holds_through_the_gateway_and_follows_it() {
    let live = LiveCard::default();
    let (_upstream, url) = upstream(&live).await;
    let (gateway, card, handle) = gateway(&url, quick()).await;
    assert_eq!(
        (card.name.as_str(), card.description.as_str(), card.version.as_str()),
        ("Weather", "Knows the weather", "7")
    );
    assert_eq!(skills(&card), ["forecast"]);
    assert_eq!((card.capabilities.streaming, card.capabilities.push_notifications), (Some(true), Some(true)));
    let own = format!("http://{}", gateway.address);
    assert!(card.supported_interfaces.iter().all(|interface| interface.url.starts_with(&own)), "{card:?}");
    live.change(|card| card.skills[0].id = "warning".to_owned());
    // The client has the card for as long as HTTP allows.
    assert_eq!(skills(&handle.refresh().await.unwrap()), ["forecast"]);
    let fresh = Relay::new(&url, Client::builder(), quick()).unwrap();
    assert_eq!(skills(&fresh.handle().refresh().await.unwrap()), ["warning"]);
}

#[tokio::test]
async fn a_gateway_that_starts_while_its_upstream_is_down_shows_the_last_known_card() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cards/weather.json");
    let (served, url) = upstream(&LiveCard::default()).await;
    let (_first, card, _) = gateway(&url, kept_at(&file)).await;
    served.stop().await.unwrap();
    let (_second, restored, handle) = gateway(&url, kept_at(&file)).await;
    assert_eq!((&restored.name, skills(&restored)), (&card.name, skills(&card)));
    assert_eq!(handle.card(), None, "the upstream itself has shown none");
}

#[tokio::test]
async fn a_change_that_was_not_accepted_is_told_or_refused_until_it_is() {
    let (_upstream, url) = upstream(&LiveCard::default()).await;
    let seen = Relay::new(&url, Client::builder(), quick()).unwrap().handle().refresh().await.unwrap();
    let mut other = AgentCard::clone(&seen);
    other.skills[0].id = "history".to_owned();
    let accepted = Arc::new(Mutex::new(Arc::new(other)));
    let options = |changes| {
        let accepted = accepted.clone();
        let mut options = quick();
        options.accepted_card = Some(AcceptedCard::new(move || Some(accepted.lock().unwrap().clone())));
        options.card_changes = changes;
        options
    };
    let (_shown, card, handle) = gateway(&url, options(CardChanges::Show)).await;
    assert_eq!((skills(&card), handle.refused_card()), (vec!["forecast"], None));

    let (gateway, card, handle) = gateway(&url, options(CardChanges::Refuse)).await;
    assert_eq!(skills(&card), ["history"], "the card that was accepted is shown");
    assert_eq!(handle.refused_card().as_deref(), Some("skills gone: history; new: forecast"));
    // A client that tries again would wait for the time that the refusal names.
    let client = Client::builder().retry(RetryPolicy::never()).build().unwrap();
    let client = client.agent(&format!("http://{}", gateway.address)).await.unwrap();
    let refused = soon(client.send_text("hello")).await.unwrap_err().to_string();
    assert!(refused.contains("was not accepted yet (skills gone: history; new: forecast)"), "{refused}");

    *accepted.lock().unwrap() = seen;
    handle.refresh().await.unwrap();
    assert_eq!(soon(client.send_text("hello")).await.unwrap().text(), "sunny");
}

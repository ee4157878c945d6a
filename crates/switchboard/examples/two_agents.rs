//! Two agents, each on a server of its own: the one that is asked asks the other, over A2A. They share nothing but the protocol.

use std::future::pending;
use std::time::Duration;

use switchboard::client::Client;
use switchboard::{AgentBuilder, Bound, Server, ServerBuilder, Turn};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let translator = AgentBuilder::from_fn("Translator", |turn: Turn| async move {
        let translated = match turn.text().as_str() {
            "Good morning" => "Bom dia",
            _ => "Não sei",
        };
        turn.answer(translated).await?;
        Ok(())
    });
    let (translator, translator_url) = bind(Server::builder().agent(translator)).await?;

    // The concierge knows the address of the translator and nothing else: its card says how to call it.
    let client = Client::builder().build()?;
    let concierge = AgentBuilder::from_fn("Concierge", move |turn: Turn| {
        let (client, translator_url) = (client.clone(), translator_url.clone());
        async move {
            let translator = client.agent(&translator_url).await?;
            let translated = translator.send_text(&turn.text()).await?;
            turn.answer(format!("They say: {}", translated.text())).await?;
            Ok(())
        }
    });
    let (concierge, concierge_url) = bind(Server::builder().agent(concierge)).await?;

    let asking = async {
        let concierge = Client::builder().build()?.agent(&concierge_url).await?;
        anyhow::Ok(concierge.send_text("Good morning").await?.text())
    };
    let grace = Duration::from_secs(1);
    let answer = tokio::select! {
        answer = asking => answer?,
        () = translator.run_until(pending(), grace) => anyhow::bail!("the translator stopped"),
        () = concierge.run_until(pending(), grace) => anyhow::bail!("the concierge stopped"),
    };
    assert_eq!(answer, "They say: Bom dia");
    Ok(())
}

/// Takes a free port of this machine; says at which URL.
async fn bind(server: ServerBuilder) -> anyhow::Result<(Bound, String)> {
    let bound = server.build()?.bind(([127, 0, 0, 1], 0).into()).await?;
    let url = format!("http://{}", bound.local_addr());
    Ok((bound, url))
}

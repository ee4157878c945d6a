//! An agent that asks two others of its server, and answers with what they said. The calls are durable: a server that is killed in the middle finds
//! the tasks of the others again when it is started, and sends nothing twice.

use switchboard::{AgentBuilder, AgentError, Server, Turn};

async fn plan(turn: Turn) -> Result<(), AgentError> {
    let city = turn.text();
    // Both work at the same time, and are canceled if this task is.
    let weather = turn.call("weather", city.as_str()).await?;
    let trains = turn.call("trains", city.as_str()).await?;
    let (weather, trains) = (weather.wait().await?, trains.wait().await?);
    if !trains.is_completed() {
        return Ok(turn.fail(format!("No train: {}", trains.text())).await?);
    }
    turn.answer(format!("{city}: {}, {}", weather.text(), trains.text())).await?;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let weather = AgentBuilder::from_fn("Weather", |turn: Turn| async move { Ok(turn.answer("sunny").await?) });
    let trains = AgentBuilder::from_fn("Trains", |turn: Turn| async move {
        match turn.text().as_str() {
            "Lisbon" => Ok(turn.answer("a train at 9:04").await?),
            city => Ok(turn.reject(format!("there is no station in {city}")).await?),
        }
    });
    let planner = AgentBuilder::from_fn("Planner", plan);
    let folder = tempfile::tempdir()?;
    let server = Server::builder().agent(planner).agent(weather).agent(trains);
    let server = server.sqlite(folder.path().join("tasks.db")).build()?;

    let planner = server.local("planner").expect("it is served");
    assert_eq!(planner.send_text("Lisbon").await?.text(), "Lisbon: sunny, a train at 9:04");
    let failed = planner.send_text("Atlantis").await?;
    assert_eq!(failed.text(), "No train: there is no station in Atlantis");
    Ok(())
}

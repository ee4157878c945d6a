//! Accepting agents elsewhere from the command line.

use clap::Parser;
use switchboard::{AgentBuilder, LiveCard, Server, Skill, Turn};

use super::*;
use crate::cli::{Cli, Command};

async fn agents_in(folder: &Path, typed: &[&str]) -> Result<String, Failure> {
    let Command::Agents(command) = Cli::parse_from(["switchboard", "agents"].iter().chain(typed)).command else {
        panic!("agents was typed")
    };
    run(&command, &Environment::of(&[]), folder).await
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the server of a test is a task of its runtime")]
async fn an_agent_is_accepted_compared_accepted_again_and_forgotten() {
    let card = LiveCard::default();
    let echo = AgentBuilder::from_fn("Echo", |turn: Turn| async move { Ok(turn.answer(turn.text()).await?) })
        .skill(Skill::new("echo", "Echo", "Says it again"));
    let bound = Server::builder().agent(echo.live_card(&card)).build().unwrap();
    let bound = bound.bind(([127, 0, 0, 1], 0).into()).await.unwrap();
    let url = format!("http://{}", bound.local_addr());
    let _serving = tokio::spawn(bound.run_until(std::future::pending(), Duration::ZERO));
    let folder = tempfile::tempdir().unwrap();
    let agents = async |typed: &[&str]| agents_in(folder.path(), typed).await;

    assert_eq!(
        agents(&["show", "echo"]).await.unwrap_err().to_string(),
        "no agent \"echo\" was accepted; `switchboard agents add URL` accepts one"
    );
    let added = agents(&["add", &url]).await.unwrap();
    assert!(added.starts_with("added echo\n") && added.contains("Skills: echo"), "{added}");
    assert!(folder.path().join("switchboard-data/remote-agents/echo.json").exists());
    let again = agents(&["add", &url]).await.unwrap_err().to_string();
    assert!(again.contains("is accepted already"), "{again}");
    assert_eq!(agents(&["list"]).await.unwrap(), format!("echo  {url}  Echo"));
    assert_eq!(agents(&["test", "ECHO"]).await.unwrap(), "echo answers, and its card is as it was accepted");

    card.change(|card| card.skills[0].id = "shout".to_owned());
    let tested = agents(&["test", "echo"]).await.unwrap_err().to_string();
    assert!(tested.contains("skills gone: echo; new: shout"), "{tested}");
    assert_eq!(agents(&["refresh", "echo"]).await.unwrap(), "echo: accepted\nskills gone: echo; new: shout");
    assert_eq!(agents(&["refresh", "echo"]).await.unwrap(), "echo: nothing that matters has changed");
    let shown: serde_json::Value = serde_json::from_str(&agents(&["show", "echo", "--json"]).await.unwrap()).unwrap();
    assert_eq!((&shown["url"], &shown["card"]["skills"][0]["id"]), (&url.clone().into(), &"shout".into()));
    assert_eq!(agents(&["remove", "echo"]).await.unwrap(), "removed echo");
    assert_eq!(agents(&["list", "--json"]).await.unwrap(), "[]");
}

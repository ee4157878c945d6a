//! The workflows of section 9 of the A2A specification 0.2, each played with its own sample requests. What comes back must
//! say everything the sample answer says; ids and times are ours.

use std::path::PathBuf;

use serde_json::{Value, json};
use switchboard::{AgentBuilder, Artifact, Json, Part, Replies, Server, TaskState, Tokens, Turn};

use crate::support::edge::{Edge, echo, events, get, post, unversioned, with};

fn sample(name: &str) -> Value {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden", "v0_3"].iter().collect();
    let text = std::fs::read_to_string(folder.join(format!("spec02-{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Whether an answer says what the sample says. Its ids may be others, and so may its times; what is empty there may be
/// missing here.
fn assert_like(ours: &Value, theirs: &Value) {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            for (name, value) in theirs.iter().filter(|(_, value)| **value != json!({})) {
                let own = ours.get(name).unwrap_or_else(|| panic!("{name} is missing in {ours:?}"));
                match name.as_str() {
                    "id" | "taskId" | "contextId" | "artifactId" | "messageId" | "timestamp" => {
                        assert_eq!(own.is_string(), value.is_string(), "{name}");
                    }
                    _ => assert_like(own, value),
                }
            }
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
            ours.iter().zip(theirs).for_each(|(ours, theirs)| assert_like(ours, theirs));
        }
        _ => assert_eq!(ours, theirs),
    }
}

async fn play(edge: &Edge, request: &Value) -> Value {
    edge.ask(unversioned(post("/", request.to_string()))).await.json()
}

fn agent<F, Fut>(run: F) -> AgentBuilder
where
    F: Fn(Turn) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), switchboard::AgentError>> + Send + 'static,
{
    AgentBuilder::from_fn("Sample", run).input_modes(["text/plain", "image/png"])
}

/// 9.1: the public card announces an extended one; its address is found from the endpoint's; a credential opens it.
#[tokio::test(start_paused = true)]
async fn fetching_the_authenticated_extended_card() {
    const TOKEN: &str = "a-token-of-alice-for-tests";
    let tokens = Tokens::parse(&format!("{TOKEN} alice")).unwrap();
    let extended = echo().extended_card(|card| card.description = "For those we know".to_owned());
    let edge = Edge::new(Server::builder().agent(extended).tokens(tokens).public_url("https://example.com/a2a"));
    let public = edge.ask(unversioned(get("/.well-known/agent.json"))).await.json();
    assert_eq!(public["supportsAuthenticatedExtendedCard"], true);
    assert_eq!(public["securitySchemes"]["bearer"]["type"], "http");
    // `{url}/../agent/authenticatedExtendedCard`
    let (parent, _) = public["url"].as_str().unwrap().rsplit_once('/').unwrap();
    let path = format!("{}/agent/authenticatedExtendedCard", parent.strip_prefix("https://example.com").unwrap());
    assert_eq!(edge.ask(unversioned(get(&path))).await.status, 401);
    let card = edge.ask(with(unversioned(get(&path)), "authorization", &format!("Bearer {TOKEN}"))).await.json();
    assert_eq!((&card["description"], &card["url"]), (&json!("For those we know"), &public["url"]));
}

/// 9.2, first half: a quick answer as a task.
#[tokio::test(start_paused = true)]
async fn a_joke_as_a_task() {
    let reply = sample("9-2-task");
    let joke = reply["result"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    let edge = Edge::new(Server::builder().agent(agent(move |turn: Turn| {
        let joke = joke.clone();
        async move { Ok(turn.artifact(Artifact::new("", vec![Part::text(joke)]).with_name("joke")).await?) }
    })));
    let task = play(&edge, &sample("9-2-send")).await;
    assert_like(&task, &reply);
    let (task, said) = (&task["result"], &task["result"]["history"][0]);
    assert_eq!((&said["taskId"], &said["contextId"]), (&task["id"], &task["contextId"]), "the server added these");
    // The polling style: the same task is read until it has ended.
    let read = edge.old_rpc("tasks/get", json!({"id": task["id"]})).await.json();
    assert_eq!(&read["result"], task);
}

/// 9.2, second half: a quick answer without a task. The sample forgets the role; ours has it.
#[tokio::test(start_paused = true)]
async fn a_joke_as_a_message() {
    let reply = sample("9-2-message");
    let joke = reply["result"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let brief = agent(move |turn: Turn| {
        let joke = joke.clone();
        async move { Ok(turn.reply(vec![Part::text(joke)]).await?) }
    });
    let edge = Edge::new(Server::builder().agent(brief.traits(|traits| traits.with_replies(Replies::Message))));
    let message = play(&edge, &sample("9-2-send")).await;
    assert_like(&message, &reply);
    assert_eq!(message["result"]["role"], "agent");
}

/// 9.3: a stream of chunks. The sample request has neither `jsonrpc` nor `id`, which is refused as it stands.
#[tokio::test(start_paused = true)]
async fn a_long_paper_in_sections() {
    let edge = Edge::new(Server::builder().agent(agent(|turn: Turn| async move {
        let mut paper = turn.artifact_writer();
        paper.text("<section 1...>").await?;
        paper.text("<section 2...>").await?;
        Ok(paper.finish(vec![Part::text("<section 3...>")]).await?)
    })));
    let mut request = sample("9-3-stream");
    let refused = play(&edge, &request).await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32600), &Value::Null));
    request["jsonrpc"] = json!("2.0");
    request["id"] = json!(1);
    let stream = edge.ask(unversioned(post("/", request.to_string()))).await;
    assert_eq!((stream.status.as_u16(), stream.header("content-type")), (200, "text/event-stream"));
    let seen = events(&stream.text());
    assert_eq!(seen.len(), 5);
    for (event, number) in seen.iter().zip(1..) {
        let mut expected = sample(&format!("9-3-event-{number}"));
        if number == 1 {
            // What the sample calls `data` is `bytes` in its own schema.
            let file = &mut expected["result"]["history"][0]["parts"][1]["file"];
            let bytes = file["data"].take();
            *file = json!({"mimeType": file["mimeType"], "bytes": bytes});
        }
        assert_like(event, &expected);
    }
}

/// 9.4: a question back, and the answer to it. In the first request the message's id stands beside the message.
#[tokio::test(start_paused = true)]
async fn booking_a_flight_in_two_turns() {
    let question = sample("9-4-task-1")["result"]["status"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let done = sample("9-4-task-2");
    let booked = done["result"]["status"]["message"]["parts"][0]["text"].as_str().unwrap().to_owned();
    let itinerary = done["result"]["artifacts"][0]["parts"][0]["data"].to_string();
    let edge = Edge::new(Server::builder().agent(agent(move |turn: Turn| {
        let (question, booked) = (question.clone(), booked.clone());
        let itinerary = Json::parse(&itinerary, Default::default()).unwrap();
        async move {
            if turn.number() == 1 {
                return Ok(turn.ask(question).await?);
            }
            turn.artifact(Artifact::new("", vec![Part::json(itinerary)]).with_name("FlightItinerary.json")).await?;
            Ok(turn.complete(booked).await?)
        }
    })));
    let asked = play(&edge, &sample("9-4-send-1")).await;
    assert_like(&asked, &sample("9-4-task-1"));
    assert_eq!(asked["result"]["history"][0]["messageId"], sample("9-4-send-1")["params"]["messageId"]);
    let mut answer = sample("9-4-send-2");
    for (name, id) in [("taskId", &asked["result"]["id"]), ("contextId", &asked["result"]["contextId"])] {
        answer["params"]["message"][name] = id.clone();
    }
    assert_like(&play(&edge, &answer).await, &done);
}

/// 9.5: a webhook with the message. What it is sent later is the whole task; `scenarios/push_delivery` has that half.
#[tokio::test(start_paused = true)]
async fn a_report_with_a_webhook() {
    let edge = Edge::new(Server::builder().agent(agent(|turn: Turn| async move {
        turn.status(TaskState::Working, Vec::new()).await?;
        turn.cancelled().await;
        Ok(())
    })));
    let mut request = sample("9-5-send");
    request["params"]["message"]["messageId"] = json!("m-5");
    request["params"]["configuration"]["blocking"] = json!(false);
    let task = play(&edge, &request).await;
    let id = task["result"]["id"].clone();
    assert!(["submitted", "working"].map(Value::from).contains(&task["result"]["status"]["state"]), "{task}");
    let kept = edge.old_rpc("tasks/pushNotificationConfig/list", json!({"id": id})).await.json();
    let mut asked = request["params"]["configuration"]["pushNotificationConfig"].clone();
    assert!(asked.as_object_mut().unwrap().remove("token").is_some(), "{asked}");
    assert_like(&kept["result"][0]["pushNotificationConfig"], &asked);
}

/// 9.6: a file in, the address of a file out.
#[tokio::test(start_paused = true)]
async fn a_picture_with_faces() {
    let edge = Edge::new(Server::builder().agent(agent(|turn: Turn| async move {
        let [_, picture] = &turn.message().parts[..] else { panic!("{:?}", turn.message()) };
        assert_eq!((picture.filename(), picture.content_bytes()), (Some("input_image.png"), 21));
        let output = Part::url("https://storage.example.com/processed/task-bbb/output.png?token=xyz")
            .with_filename("output.png")
            .with_media_type("image/png");
        Ok(turn.artifact(Artifact::new("", vec![output]).with_name("processed_image_with_faces.png")).await?)
    })));
    assert_like(&play(&edge, &sample("9-6-send")).await, &sample("9-6-task"));
}

/// 9.7: a hint about the wanted form in a part's metadata.
#[tokio::test(start_paused = true)]
async fn tickets_as_json() {
    let tickets = sample("9-7-task")["result"]["artifacts"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    let edge = Edge::new(Server::builder().agent(agent(move |turn: Turn| {
        let tickets = tickets.clone();
        async move {
            let hint = turn.message().parts[0].metadata().unwrap().as_str();
            assert!(hint.contains("ticketNumber") && hint.contains("application/json"), "{hint}");
            Ok(turn.answer(tickets).await?)
        }
    })));
    assert_like(&play(&edge, &sample("9-7-send")).await, &sample("9-7-task"));
}

//! The receiver of webhooks behind axum, and our own server that posts to it.

use std::sync::{Arc, Mutex};

use axum::Router;
use switchboard::call::SendMessage;
use switchboard::client::{WebhookReceiver, WebhookUpdate};
use switchboard::model::{AuthenticationInfo, PushConfig, Update};
use switchboard::{Message, Part, ProtocolBinding, Role, Server, SigningSecrets, TaskState};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::{quick, served};
use crate::support::callers::soon;
use crate::support::edge::echo;

const SECRET: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Serves a receiver below `/hook`; gives its URL.
async fn hook(receiver: WebhookReceiver) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let app = Router::new().route_service("/hook", receiver);
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    url
}

fn send(url: &str, token: &str) -> SendMessage {
    let authentication = AuthenticationInfo { scheme: "Bearer".to_owned(), credentials: Some("b3arer".to_owned()) };
    let config = PushConfig {
        id: "hook".into(),
        task_id: "".into(),
        url: url.to_owned(),
        token: Some(token.to_owned()),
        authentication: Some(authentication),
    };
    SendMessage {
        open_as: None,
        message: Message::new(Role::User, "", vec![Part::text("chunks 2")]),
        accepted_output_modes: Vec::new(),
        push_config: Some(config),
        history_length: None,
        return_immediately: true,
        metadata: None,
    }
}

#[tokio::test]
async fn what_our_server_posts_is_verified_and_typed_in_every_version() {
    let secrets = || SigningSecrets::parse(SECRET).unwrap();
    let server = Server::builder().agent(echo()).interfaces(ProtocolBinding::ALL).outbound_allow(["127.0.0.1"]);
    let (_served, url) = served(server.sign_webhooks(secrets())).await;
    for version in ["1.0", "0.3"] {
        let (updates, mut received) = mpsc::channel(16);
        // The first post fails, and the update comes again.
        let failures = Arc::new(Mutex::new(1));
        let receiver = WebhookReceiver::builder().token("t0ken").authorization("Bearer b3arer").secrets(secrets());
        let receiver = receiver.build(move |update: WebhookUpdate| {
            let (updates, fails) = (updates.clone(), std::mem::take(&mut *failures.lock().unwrap()) > 0);
            async move {
                if fails {
                    return Err("not now".into());
                }
                Ok(updates.send(update).await?)
            }
        });
        let hook = hook(receiver.unwrap()).await;
        let agent = quick().versions([version]).build().unwrap().agent(&url).await.unwrap();
        let sent = agent.send_with(send(&hook, "t0ken")).await.unwrap().into_task().unwrap();
        let mut seqs = Vec::new();
        loop {
            let update = soon(received.recv()).await.unwrap();
            assert_eq!(update.task_id(), Some(&sent.id));
            seqs.push(update.seq.unwrap());
            let state = match &update.update {
                Update::Task(view) => view.task.state(),
                Update::Status(update) => update.status.state,
                _ => continue,
            };
            if state == TaskState::Completed {
                break;
            }
        }
        match version {
            "1.0" => assert_eq!(seqs, [1, 2, 3, 4]),
            // Whole tasks, as many as it takes.
            _ => assert!(seqs.is_sorted() && seqs.last() == Some(&4), "{seqs:?}"),
        }
    }
}

#[tokio::test]
async fn a_post_with_another_token_is_not_taken() {
    let (posted, mut posts) = mpsc::channel(16);
    let receiver = WebhookReceiver::builder().token("other").build(|_| async { panic!("it has another token") });
    let app = Router::new().route_service("/hook", receiver.unwrap()).layer(axum::middleware::map_response(
        move |answer: axum::response::Response| {
            let posted = posted.clone();
            async move {
                posted.send(answer.status()).await.unwrap();
                answer
            }
        },
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let hook = format!("http://{}/hook", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let (_served, url) = served(Server::builder().agent(echo()).outbound_allow(["127.0.0.1"])).await;
    super::agent(&url).await.send_with(send(&hook, "t0ken")).await.unwrap();
    assert_eq!(soon(posts.recv()).await.unwrap(), 401);
}

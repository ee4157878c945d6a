//! The media type of an answer follows the request's `Accept`: plain JSON for those who do not know ours.

use http::Request;
use http_body_util::Full;

use crate::support::edge::{Edge, get, message, post, rpc_body, with};

const TABLE: [(&str, &str); 12] = [
    ("", "application/a2a+json"),
    ("*/*", "application/a2a+json"),
    ("application/a2a+json", "application/a2a+json"),
    ("application/json, application/a2a+json", "application/a2a+json"),
    ("application/json, */*;q=0.1", "application/a2a+json"),
    ("Application/A2A+JSON; q=0.9", "application/a2a+json"),
    ("application/json", "application/json"),
    ("application/json;q=0.9, text/plain", "application/json"),
    ("text/html", "application/json"),
    ("text/event-stream", "application/json"),
    ("application/*", "application/a2a+json"),
    ("application/jsonl", "application/json"),
];

fn accepting(request: Request<Full<bytes::Bytes>>, accept: &str) -> Request<Full<bytes::Bytes>> {
    if accept.is_empty() { request } else { with(request, "accept", accept) }
}

#[tokio::test(start_paused = true)]
async fn http_json_answers_and_refusals_follow_accept() {
    let edge = Edge::usual();
    for (accept, expected) in TABLE {
        for (path, status) in [("/tasks", 200), ("/tasks/none", 404)] {
            let answer = edge.ask(accepting(get(path), accept)).await;
            assert_eq!((answer.status.as_u16(), answer.header("content-type")), (status, expected), "{accept}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn streams_and_json_rpc_have_one_type_whatever_is_accepted() {
    let edge = Edge::usual();
    for (accept, _) in TABLE {
        let stream = edge.ask(accepting(post("/message:stream", message("hello").to_string()), accept)).await;
        assert_eq!(stream.header("content-type"), "text/event-stream", "{accept}");
        let call = edge.ask(accepting(post("/", rpc_body("ListTasks", serde_json::json!({}))), accept)).await;
        assert_eq!(call.header("content-type"), "application/json", "{accept}");
    }
}

//! Host and Origin: where callers need no credential, only our own names and pages are let in; a page elsewhere needs to be allowed.

use expect_test::expect;
use http::Method;
use switchboard::{Cors, Server};

use crate::support::edge::{Edge, echo, get, message, post, request, with};

fn loopback() -> Edge {
    Edge::new(
        Server::builder()
            .agent(echo())
            .host_check(true)
            .allow_unauthenticated(true)
            .public_url("https://agents.example:8443"),
    )
}

#[tokio::test(start_paused = true)]
async fn only_our_own_names_are_answered_to() {
    let edge = loopback();
    for host in [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1:8080",
        "127.1.2.3",
        "[::1]",
        "[::1]:8080",
        "agents.example",
        "Agents.Example:1",
        "localhost.",
    ] {
        assert_eq!(edge.ask(with(get("/tasks"), "host", host)).await.gist(), "200", "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "0.0.0.0",
        "10.0.0.1",
        "[::2]",
        "agents.example.evil",
        "localhost@evil.example",
        "",
    ] {
        for path in ["/tasks", "/", "/healthz", "/metrics", "/.well-known/agent-card.json", "/nothing"] {
            let asked = get(path);
            let asked = if host.is_empty() { asked } else { with(asked, "host", host) };
            assert_eq!(edge.ask(asked).await.gist(), "403 PERMISSION_DENIED", "{host} {path}");
        }
    }
    expect![[r#"
        403 application/a2a+json
        {"error":{"code":403,"status":"PERMISSION_DENIED","message":"Permission denied: this server answers only to loopback names, to its public URL and to allowed hosts (Host header)","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PERMISSION_DENIED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&edge.ask(with(get("/tasks"), "host", "evil.example")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn a_name_in_the_request_target_counts_for_http_2() {
    let edge = loopback();
    assert_eq!(edge.ask(get("http://localhost:8080/tasks")).await.gist(), "200");
    assert_eq!(edge.ask(get("http://evil.example/tasks")).await.gist(), "403 PERMISSION_DENIED");
    let mixed = with(get("http://evil.example/tasks"), "host", "localhost");
    assert_eq!(edge.ask(mixed).await.gist(), "403 PERMISSION_DENIED");
}

#[tokio::test(start_paused = true)]
async fn pages_of_other_origins_are_turned_away() {
    let edge = loopback();
    let from = |origin: &str| {
        with(with(post("/message:send", message("hello").to_string()), "host", "localhost"), "origin", origin)
    };
    for origin in ["http://localhost:3000", "http://127.0.0.1", "https://[::1]:9", "https://agents.example:8443"] {
        assert_eq!(edge.ask(from(origin)).await.gist(), "200", "{origin}");
    }
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "file://",
        "localhost",
        "http://evil.example#localhost",
    ] {
        let answer = edge.ask(from(origin)).await;
        assert_eq!(answer.gist(), "403 PERMISSION_DENIED", "{origin}");
        assert_eq!(answer.header("access-control-allow-origin"), "", "{origin}");
    }
    expect![[r#"
        403 application/a2a+json
        {"error":{"code":403,"status":"PERMISSION_DENIED","message":"Permission denied: pages of this origin may not call this server (Origin header)","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"PERMISSION_DENIED","domain":"a2a-protocol.org"}]}}
    "#]].assert_eq(&edge.ask(from("https://evil.example")).await.picture());
}

#[tokio::test(start_paused = true)]
async fn a_page_that_may_call_is_told_so() {
    let cors = Cors::origins(["https://app.example/", "http://dev.example:3000"]);
    for host_check in [true, false] {
        let edge = Edge::new(Server::builder().agent(echo()).host_check(host_check).cors(cors.clone()));
        let from = |origin: &str| with(with(get("/tasks"), "host", "localhost"), "origin", origin);
        let answer = edge.ask(from("https://app.example")).await;
        assert_eq!(answer.gist(), "200");
        let names = ["access-control-allow-origin", "vary", "access-control-expose-headers"];
        let exposed = "a2a-extensions, x-a2a-extensions, a2a-output-modes, x-request-id, retry-after, etag, accept-ranges, \
                       content-range, \
                       content-disposition";
        assert_eq!(names.map(|name| answer.header(name)), ["https://app.example", "origin", exposed]);
        // Refusals can be read by the page as well.
        let refused =
            edge.ask(with(with(get("/tasks/none"), "host", "localhost"), "origin", "https://app.example")).await;
        assert_eq!(refused.header("access-control-allow-origin"), "https://app.example");

        let stranger = edge.ask(from("https://evil.example")).await;
        assert_eq!(stranger.gist(), "403 PERMISSION_DENIED");
        assert_eq!(stranger.header("access-control-allow-origin"), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_preflight_says_what_a_page_may_send() {
    let cors = Cors::origins(["https://app.example"]);
    let edge = Edge::new(Server::builder().agent(echo()).host_check(true).cors(cors));
    let from = |path: &str, origin: &str| {
        with(with(request(Method::OPTIONS, path, ""), "host", "localhost"), "origin", origin)
    };
    for path in ["/", "/message:send", "/tasks/1/pushNotificationConfigs/2"] {
        let answer = edge.ask(from(path, "https://app.example")).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "https://app.example");
        assert_eq!(answer.header("access-control-allow-methods"), "GET, POST, DELETE, OPTIONS");
        let allowed = answer.header("access-control-allow-headers");
        for name in
            ["authorization", "content-type", "a2a-version", "a2a-extensions", "idempotency-key", "last-event-id"]
        {
            assert!(allowed.split(", ").any(|one| one == name), "{name} in {allowed}");
        }
        let stranger = edge.ask(from(path, "https://evil.example")).await;
        assert_eq!((stranger.status.as_u16(), stranger.header("access-control-allow-origin")), (403, ""), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_names_no_host_comes_from_no_browser() {
    assert_eq!(Edge::usual().get("/tasks").await.gist(), "200");
}

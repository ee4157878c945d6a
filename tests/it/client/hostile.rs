//! Servers that mean harm, or are broken: the client is done within its limits, and says what was wrong.

use std::time::Duration;

use switchboard::client::Credentials;
use switchboard::outbound::AddressPolicy;
use switchboard::{CallErrorKind, TaskId, TaskState};

use super::{limits, quick};
use crate::support::callers::soon;
use crate::support::scripted::{Script, Scripted, answer, events, json};

const CARD: &str = r#"{"name":"Bad","version":"1","protocolVersion":"0.3.0","url":"","preferredTransport":"JSONRPC"}"#;

/// A server that has a card and answers calls by this script.
async fn calls(script: fn() -> Script) -> Scripted {
    Scripted::start(move |_, asked| if asked.line.starts_with("GET") { json(CARD) } else { script() }).await
}

#[tokio::test]
async fn an_endless_card_is_cut_off() {
    for announced in ["", "content-length: 99999999999\r\n"] {
        let head = format!("HTTP/1.1 200 X\r\n{announced}\r\n{{\"name\":\"");
        let server = Scripted::start(move |_, _| Script::Endless(head.clone().into_bytes(), vec![b'a'; 65_536])).await;
        let client = quick().build().unwrap();
        let error = soon(client.discover(&server.url)).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
        assert!(error.to_string().contains("is larger than 1048576 bytes"), "{error}");
    }
}

#[tokio::test]
async fn a_card_of_brackets_is_refused() {
    let bomb =
        format!(r#"{{"name":"x","capabilities":{{"extensions":[{{"uri":"u","params":{}}}]}}}}"#, "[".repeat(100_000));
    let server = Scripted::start(move |_, _| json(&bomb)).await;
    let error = soon(quick().build().unwrap().discover(&server.url)).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
}

#[tokio::test]
async fn an_endless_answer_and_an_endless_refusal_are_cut_off() {
    let server = calls(|| Script::Endless(b"HTTP/1.1 200 X\r\n\r\n".to_vec(), vec![b' '; 65_536])).await;
    let client = quick().limits(limits(|limits| limits.reply_bytes_max = 1 << 20)).build().unwrap();
    let error = soon(client.agent(&server.url).await.unwrap().task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
    // A refusal is a refusal, however long it is: its status says so.
    let server =
        calls(|| Script::Endless(b"HTTP/1.1 400 X\r\ncontent-length: 104857600\r\n\r\n".to_vec(), vec![b'x'; 65_536]))
            .await;
    let error = soon(client.agent(&server.url).await.unwrap().task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!((error.kind(), error.http_status()), (CallErrorKind::Refused, Some(400)), "{error}");
}

#[tokio::test]
async fn an_endless_line_of_a_stream_is_cut_off() {
    let server = calls(|| Script::Endless(events("data: "), vec![b'a'; 65_536])).await;
    let client = quick().limits(limits(|limits| limits.event_bytes_max = 1 << 20)).build().unwrap();
    let mut stream = client.agent(&server.url).await.unwrap().stream_text("go").await.unwrap();
    let error = soon(stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
    assert!(error.to_string().contains("an event of the stream is larger than 1048576 bytes"), "{error}");
}

#[tokio::test]
async fn a_stream_that_stalls_counts_as_lost() {
    let server = calls(|| Script::Stall(events(": hello\n\n"))).await;
    let client = quick().limits(limits(|limits| limits.stream_idle = Duration::from_millis(50))).build().unwrap();
    let mut stream = client.agent(&server.url).await.unwrap().stream_text("go").await.unwrap();
    let error = soon(stream.next()).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::TimedOut, "{error}");
    assert!(error.to_string().contains("nothing more of the answer"), "{error}");
}

/// agent-native sends its events without a Content-Type.
#[tokio::test]
async fn a_stream_that_does_not_say_what_it_is_is_read() {
    let ended =
        r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t","contextId":"c","status":{"state":"completed"}}}"#;
    for body in [format!("data: {ended}\n\n"), format!(": hello\n\ndata: {ended}\n\n"), ended.to_owned()] {
        let server = Scripted::start(move |_, asked| match asked.line.starts_with("GET") {
            true => json(CARD),
            false => answer(200, "x-nothing: said", &body),
        })
        .await;
        let mut stream = quick().build().unwrap().agent(&server.url).await.unwrap().stream_text("go").await.unwrap();
        assert!(soon(stream.next()).await.unwrap().is_ok());
        assert_eq!(stream.task().map(|task| task.state()), Some(TaskState::Completed));
    }
}

#[tokio::test]
async fn what_is_not_a2a_is_named_with_its_type() {
    for (body, expected) in [
        ("<html>hello</html>", "(text/html) is not one of A2A"),
        (r#"{"hello":1}"#, "no JSON-RPC response"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task"}}"#, "is not one of A2A: Invalid parameters"),
        (r#"{"jsonrpc":"2.0","id":1,"result":7}"#, "is not one of A2A"),
    ] {
        let server = Scripted::start(move |_, asked| match asked.line.starts_with("GET") {
            true => json(CARD),
            false => answer(200, "content-type: text/html; charset=utf-8", body),
        })
        .await;
        let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
        let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_text_of_the_agent_is_shown_without_control_characters() {
    let server = calls(|| json(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32004,"message":"\u001b[2J gone"}}"#)).await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    let error = agent.task(&TaskId::from("t")).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), error.wire_text()), (" [2J gone", Some("\u{1b}[2J gone")));
}

#[tokio::test]
async fn a_redirect_or_a_card_cannot_lead_to_a_private_address() {
    let inside = Scripted::start(|_, _| json(CARD)).await;
    let to = format!("location: {}/card", inside.url);
    let server = Scripted::start(move |_, _| answer(302, &to, "")).await;
    let client = quick().build().unwrap();
    let error = soon(client.discover(&server.url)).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAllowed, "{error}");
    // The card names an address of another origin.
    let elsewhere = CARD.replace(r#""url":"""#, &format!(r#""url":"{}/rpc""#, inside.url));
    let server = Scripted::start(move |_, _| json(&elsewhere)).await;
    let error = soon(client.agent(&server.url).await.unwrap().send_text("go")).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::NotAllowed, "{error}");
    assert!(inside.asked().is_empty());
    // Unless it is allowed; but credentials do not go there without TLS.
    let client = quick().policy(AddressPolicy::parse(["127.0.0.1"]).unwrap()).build().unwrap();
    let agent = client.agent(&server.url).await.unwrap();
    assert_eq!(soon(agent.send_text("go")).await.unwrap_err().kind(), CallErrorKind::InvalidAnswer);
    let asked = inside.asked().len();
    assert!(asked > 0);
    let error = soon(agent.with_credentials(Credentials::bearer("s3cret")).send_text("go")).await.unwrap_err();
    assert!(error.to_string().contains("credentials are not sent over http"), "{error}");
    assert_eq!(inside.asked().len(), asked);
}

#[tokio::test]
async fn a_server_that_does_not_speak_grpc_is_named() {
    for script in
        [|| Script::Cut(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n".to_vec()), || Script::Cut(Vec::new())]
    {
        let server = Scripted::start(move |_, _| script()).await;
        let target = server.url.trim_start_matches("http://");
        let interface = format!(r#"{{"url":"{target}","protocolBinding":"GRPC","protocolVersion":"1.0"}}"#);
        let card = format!(r#"{{"name":"Bad","version":"1","supportedInterfaces":[{interface}]}}"#);
        let agent = quick().build().unwrap().agent(&card).await.unwrap();
        let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
        assert!(matches!(error.kind(), CallErrorKind::InvalidAnswer | CallErrorKind::Broken), "{error:?}");
        assert!(error.to_string().contains(target), "{error}");
    }
}

#[tokio::test]
async fn an_answer_of_brackets_is_refused_whole_and_as_an_event() {
    let bomb = |open: &str, depth: usize| {
        let metadata = format!("{}1", open.repeat(depth));
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"result":{{"kind":"task","id":"t","contextId":"c","status":{{"state":"working"}},"metadata":{metadata}"#
        )
    };
    for open in ["[", r#"{"a":"#] {
        let body = bomb(open, 200_000);
        let streamed = format!("data: {body}\n\n");
        let server = Scripted::start(move |_, asked| match asked {
            asked if asked.line.starts_with("GET") => json(CARD),
            asked if asked.body.contains("message/stream") => Script::Cut(events(&streamed)),
            _ => json(&body),
        })
        .await;
        let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
        let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
        let mut stream = soon(agent.stream_text("go")).await.unwrap();
        let error = soon(stream.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error}");
    }
}

#[tokio::test]
async fn a_wide_answer_costs_no_more_than_its_bytes() {
    // A million empty objects where a list of messages belongs.
    let history = vec!["{}"; 1_000_000].join(",");
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"kind":"task","id":"t","contextId":"c","status":{{"state":"working"}},"history":[{history}]}}}}"#
    );
    let server =
        Scripted::start(move |_, asked| if asked.line.starts_with("GET") { json(CARD) } else { json(&body) }).await;
    let agent = quick().build().unwrap().agent(&server.url).await.unwrap();
    let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidAnswer);
    assert!(error.to_string().len() < 2_000, "{}", error.to_string().len());
}

#[tokio::test]
async fn endless_headers_and_endless_redirects_are_cut_off() {
    let server = calls(|| Script::Endless(b"HTTP/1.1 200 X\r\n".to_vec(), b"x-more: of the same\r\n".to_vec())).await;
    let error =
        soon(quick().build().unwrap().agent(&server.url).await.unwrap().task(&TaskId::from("t"))).await.unwrap_err();
    assert!(matches!(error.kind(), CallErrorKind::InvalidAnswer | CallErrorKind::Broken), "{error:?}");
    let server = Scripted::start(|count, _| answer(302, &format!("location: /{count}"), "")).await;
    let error = soon(quick().build().unwrap().discover(&server.url)).await.unwrap_err();
    assert_eq!((error.kind(), error.http_status()), (CallErrorKind::NoCard, Some(302)), "{error}");
    assert!(server.lines().len() <= 12, "{}", server.lines().len());
}

#[tokio::test]
async fn an_answer_that_stalls_ends_with_the_time_of_its_call() {
    for begun in
        ["", "HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n{", "HTTP/1.1 500 X\r\ncontent-length: 100\r\n\r\nx"]
    {
        let server = Scripted::start(move |_, asked| match asked.line.starts_with("GET") {
            true => json(CARD),
            false => Script::Stall(begun.as_bytes().to_vec()),
        })
        .await;
        let client = quick().limits(limits(|limits| limits.call = Duration::from_millis(100))).build().unwrap();
        let error = soon(client.agent(&server.url).await.unwrap().task(&TaskId::from("t"))).await.unwrap_err();
        let kinds = [CallErrorKind::TimedOut, CallErrorKind::Refused];
        assert!(kinds.contains(&error.kind()), "{begun:?} {error:?}");
    }
}

#[tokio::test]
async fn a_message_of_grpc_that_is_announced_too_large_is_not_waited_for() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let target = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        // Our settings; the head of an answer on stream 1 (status 200, content-type application/grpc); then a message of 4 GiB.
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let mut block = vec![0x88, 0x0f, 0x10, 16];
        block.extend_from_slice(b"application/grpc");
        let head = [&[0, 0, block.len() as u8, 1, 4, 0, 0, 0, 1][..], &block].concat();
        let message = [0, 0, 5, 0, 0, 0, 0, 0, 1, 0, 255, 255, 255, 255];
        let mut asked = [0; 1_024];
        let _ = stream.read(&mut asked).await;
        stream.write_all(&settings).await.unwrap();
        let _ = stream.read(&mut asked).await;
        stream.write_all(&[&head[..], &message].concat()).await.unwrap();
        while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {}
    });
    let interface = format!(r#"{{"url":"{target}","protocolBinding":"GRPC","protocolVersion":"1.0"}}"#);
    let card = format!(r#"{{"name":"Bad","version":"1","supportedInterfaces":[{interface}]}}"#);
    let agent = quick().build().unwrap().agent(&card).await.unwrap();
    let error = soon(agent.task(&TaskId::from("t"))).await.unwrap_err();
    assert_eq!(error.kind(), CallErrorKind::InvalidAnswer, "{error:?}");
    assert!(error.to_string().contains("a message is larger than"), "{error}");
}

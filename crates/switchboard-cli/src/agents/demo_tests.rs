//! The demo agent: what its words mean, and what comes of them. Time is paused, so an hour of slow work takes none.

use std::time::Duration;

use expect_test::expect;
use switchboard_core::model::{Message, PartContent, TaskState, Update};

use super::*;
use crate::agents::testing::{TestEngine, eventually, status, user};

#[test]
fn the_first_word_chooses() {
    for (text, command) in [
        ("hello", DemoCommand::Echo),
        ("slowly now", DemoCommand::Echo),
        ("failure is no option", DemoCommand::Echo),
        ("", DemoCommand::Guide),
        (" \n", DemoCommand::Guide),
        ("slow 3", DemoCommand::Slow { seconds: 3, what: "" }),
        ("  SLOW  3600\tbake a cake ", DemoCommand::Slow { seconds: 3_600, what: "bake a cake" }),
        ("stream 40 lines", DemoCommand::Stream { chunks: 40 }),
        ("stream 100000", DemoCommand::Stream { chunks: 100_000 }),
        ("fail", DemoCommand::Fail { reason: "Failed, as you asked" }),
        ("Fail out of tea", DemoCommand::Fail { reason: "out of tea" }),
        ("ask which colour?", DemoCommand::Ask { topic: "which colour?" }),
        ("file some text", DemoCommand::File { text: "some text" }),
        ("data\nline", DemoCommand::Data { text: "line" }),
    ] {
        assert_eq!(DemoCommand::parse(text), command, "{text:?}");
    }
}

#[test]
fn a_bad_number_is_no_number() {
    for number in ["", "x", "0", "3601", "-1", "1.5", "99999999999", "٣"] {
        let text = format!("slow {number}");
        assert_eq!(
            DemoCommand::parse(&text),
            DemoCommand::Number { word: "slow", unit: "seconds", allowed: SECONDS },
            "{text:?}"
        );
    }
    assert_eq!(
        DemoCommand::parse("stream 100001"),
        DemoCommand::Number { word: "stream", unit: "chunks", allowed: CHUNKS }
    );
}

#[test]
fn the_longest_wish_fits_its_time() {
    assert!(CHUNK_PAUSE * *CHUNKS.end() < RUN_MAX);
    assert!(Duration::from_secs(u64::from(*SECONDS.end())) < RUN_MAX);
}

#[tokio::test(start_paused = true)]
async fn text_is_echoed_in_one_artifact() {
    let task = TestEngine::of(Demo::at("", ServedAt::default())).say("  keep my\nblanks ").await;
    assert_eq!(status(&task), (TaskState::Completed, String::new()));
    assert_eq!(task.artifacts.len(), 1);
    assert_eq!(task.artifacts[0].parts, [Part::text("  keep my\nblanks ")]);
}

#[tokio::test(start_paused = true)]
async fn without_text_it_says_what_it_can_do() {
    let task = TestEngine::of(Demo::at("", ServedAt::default())).send(user(vec![Part::raw("bytes")])).await;
    expect![[r#"
        I work on text, and its first word chooses what I do:
          slow    works the given number of seconds, says so once a second, and can be canceled (try: slow 10 tidy the attic)
          stream  sends the given number of chunks of one artifact, 50 ms apart, and goes on at the next one if the server dies (try: stream 40)
          fail    fails, with your words as the reason (try: fail out of tea)
          ask     asks back and completes with your next message (try: ask which colour?)
          auth    asks for authorization and completes with your next message (try: auth the calendar)
          reject  rejects the task, with your words as the reason (try: reject too late)
          file    answers with a file (try: file)
          data    answers with JSON (try: data the quick brown fox)
        Anything else I repeat.
    "#]]
    .assert_eq(&task.artifacts[0].text());
}

#[tokio::test(start_paused = true)]
async fn a_bad_number_is_explained_and_not_a_failure() {
    let task = TestEngine::of(Demo::at("", ServedAt::default())).say("slow 0 please").await;
    assert_eq!(task.state(), TaskState::Completed);
    assert_eq!(task.artifacts[0].text(), "After \"slow\" I need a number of seconds from 1 to 3600, as in: slow 5");
}

#[tokio::test(start_paused = true)]
async fn slow_work_reports_every_second() {
    let updates = TestEngine::of(Demo::at("", ServedAt::default())).stream("slow 3 tea").await;
    let said: Vec<String> = updates
        .iter()
        .filter_map(|update| match update {
            Update::Status(status) => status.status.message.as_ref().map(|message| message.text()),
            Update::Artifact(artifact) => Some(artifact.artifact.text()),
            Update::Task(_) | Update::Message(_) => None,
        })
        .collect();
    assert_eq!(said, ["tea: 0 of 3 s", "tea: 1 of 3 s", "tea: 2 of 3 s", "tea: done in 3 s"]);
}

#[tokio::test(start_paused = true)]
async fn an_hour_of_slow_work_is_not_cut_off() {
    let engine = TestEngine::of(Demo::at("", ServedAt::default()));
    let begun = Instant::now();
    let id = engine.begin("slow 3600").await;
    tokio::time::sleep(Duration::from_secs(3_601)).await;
    let task = engine.task(&id).await;
    assert_eq!(task.artifacts[0].text(), "slow work: done in 3600 s");
    assert!(begun.elapsed() >= Duration::from_secs(3_600));
}

#[tokio::test(start_paused = true)]
async fn slow_work_and_streams_stop_when_canceled() {
    let engine = TestEngine::of(Demo::at("", ServedAt::default()));
    for text in ["slow 3600", "stream 100000"] {
        let begun = Instant::now();
        let id = engine.begin(text).await;
        eventually("it works", async || (engine.engine.runs_alive() == 1).then_some(())).await;
        assert_eq!(engine.cancel(&id).await.state(), TaskState::Canceled);
        assert!(begun.elapsed() < Duration::from_secs(1), "{text}: {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn each_chunk_is_an_event_and_together_they_are_the_text() {
    let begun = Instant::now();
    let updates = TestEngine::of(Demo::at("", ServedAt::default())).stream("stream 40").await;
    let chunks: Vec<_> = updates
        .iter()
        .filter_map(|update| match update {
            Update::Artifact(chunk) => Some((chunk.artifact.text(), chunk.append, chunk.last_chunk)),
            Update::Task(_) | Update::Message(_) | Update::Status(_) => None,
        })
        .collect();
    let expected: Vec<_> = (1..=40).map(|n| (format!("chunk {n} of 40\n"), n != 1, n == 40)).collect();
    assert_eq!(chunks, expected);
    assert!(begun.elapsed() >= Duration::from_millis(39 * 50), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn it_fails_with_the_words_given() {
    let task = TestEngine::of(Demo::at("", ServedAt::default())).say("fail out of tea").await;
    assert_eq!(status(&task), (TaskState::Failed, "out of tea".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_question_is_answered_by_the_next_message() {
    let engine = TestEngine::of(Demo::at("", ServedAt::default()));
    let task = engine.say("ask which colour?").await;
    assert_eq!(status(&task), (TaskState::InputRequired, "which colour?".to_owned()));
    let reply = Message { task_id: Some(task.id.clone()), ..user(vec![Part::text("fail blue")]) };
    let task = engine.send(reply).await;
    assert_eq!(task.state(), TaskState::Completed);
    assert_eq!(task.artifacts[0].text(), "I asked: which colour?\nYou said: fail blue");
}

/// A demo agent that knows where it is reached.
fn served() -> Demo {
    let address = Address { url: "http://127.0.0.1:8080".to_owned(), needs_token: false };
    let served_at = ServedAt::default();
    served_at.set(address);
    Demo::at("/agents/demo", served_at)
}

#[tokio::test(start_paused = true)]
async fn a_question_and_a_stream_show_the_next_line_to_paste() {
    let engine = TestEngine::of(served());
    let task = engine.say("ask which colour?").await;
    let (id, context) = (&task.id, &task.context_id);
    let line = format!(
        "echo '{{~message~:{{~messageId~:~answer-{id}~,~taskId~:~{id}~,~contextId~:~{context}~,~role~:~ROLE_USER~,\
         ~parts~:[{{~text~:~blue~}}]}}}}' | awk -v quote=%c '{{gsub(/~/,sprintf(quote,34))}}1' | \
         curl -sS http://127.0.0.1:8080/agents/demo/message:send -H 'A2A-Version: 1.0' \
         -H 'Content-Type: application/json' -d @-"
    );
    let metadata = Json::from_trusted(format!("{{\"pasteToAnswer\":\"{line}\"}}"));
    let question = Part::text("which colour?").with_metadata(metadata);
    assert_eq!(task.status.message.as_ref().unwrap().parts, [question]);
    let task = engine.say("stream 2").await;
    let line = format!(
        "If the stream breaks, put the last id you saw for 1: curl -sSN http://127.0.0.1:8080/agents/demo/tasks/{}:subscribe \
         -H 'A2A-Version: 1.0' -H 'Last-Event-ID: 1'",
        task.id
    );
    assert_eq!(task.artifacts[0].description(), Some(&*line));
}

#[tokio::test(start_paused = true)]
async fn files_and_data_come_as_such_parts() {
    let engine = TestEngine::of(Demo::at("", ServedAt::default()));
    let file = engine.say("file two words").await.artifacts[0].parts.clone();
    let wanted = Part::raw("two words").with_filename("switchboard.txt").with_media_type("text/plain");
    assert_eq!(file, [wanted]);
    let data = engine.say("data grüße \"dich\"").await.artifacts[0].parts.clone();
    let PartContent::Data(json) = &data[0].content else { panic!("{data:?}") };
    assert_eq!(json.as_str(), r#"{"characters":12,"text":"grüße \"dich\"","words":["grüße","\"dich\""]}"#);
}

#[test]
fn a_quote_is_one_line_and_not_a_long_one() {
    assert_eq!(quoted("tea for two"), "tea for two");
    assert_eq!(quoted("tea\nfor two"), "tea…");
    assert_eq!(quoted("tea\n"), "tea");
    assert_eq!(quoted(&"é".repeat(300)), format!("{}…", "é".repeat(200)));
}

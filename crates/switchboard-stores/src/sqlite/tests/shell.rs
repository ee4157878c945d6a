//! What an operator sees with a database shell.

use rusqlite::types::Value;
use switchboard_core::model::Part;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, chunk, write_parts};

use super::{make, sample};

#[tokio::test]
async fn the_view_shows_tasks_in_plain_words() {
    let mut subject = make();
    sample::write(&subject).await;
    // The chunk of the running task is filed when the store is closed.
    subject.restart();
    let connection = subject.connect();
    let mut select = connection
        .prepare(
            "SELECT id, context, agent, state, status_text, status_at, created_at, tenant, principal, messages, events,
                    artifacts, push_configs, running, attempt
               FROM a2a_tasks ORDER BY id",
        )
        .unwrap();
    let rows: Vec<String> = select
        .query_map([], |row| {
            let cells: Vec<String> = (0..15)
                .map(|column| match row.get(column).unwrap() {
                    Value::Null => "-".to_owned(),
                    Value::Integer(number) => number.to_string(),
                    Value::Text(text) => text,
                    other => format!("{other:?}"),
                })
                .collect();
            Ok(cells.join(" | "))
        })
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(
        rows,
        [
            "task-done | talk | echo | completed | done | 2023-11-14T22:13:21.000Z | 2023-11-14T22:13:20.000Z | acme \
             | ann | 1 | 6 | 2 | 0 | 0 | 1",
            "task-paused | ctx | echo | input-required | which one? | 2023-11-14T22:13:22.000Z \
             | 2023-11-14T22:13:21.000Z |  |  | 1 | 2 | 0 | 0 | 0 | 1",
            "task-pushing | ctx | echo | canceled | - | 2023-11-14T22:13:22.000Z | 2023-11-14T22:13:22.000Z |  |  | 1 \
             | 3 | 0 | 2 | 0 | 1",
            "task-running | ctx | echo | submitted | - | 2023-11-14T22:13:21.000Z | 2023-11-14T22:13:21.000Z |  |  | 1 \
             | 2 | 1 | 0 | 1 | 1",
        ]
    );
    drop(select);
    subject.store().probe().await.expect("reading by another connection does not block the store");
}

#[tokio::test]
async fn a_log_row_is_json_with_a_format_number() {
    let subject = make();
    sample::write(&subject).await;
    let record: String = subject
        .connect()
        .query_row("SELECT record FROM log ORDER BY log_no LIMIT 1 OFFSET 1", [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        record,
        r#"{"format":1,"events":[{"status":{"state":"working","at":"2023-11-14T22:13:21.000Z","message":{"id":"s","role":"agent","parts":[{"text":"half way"}]}}}]}"#
    );
}

#[tokio::test]
async fn pieces_of_a_file_say_where_they_belong() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    let large = |bytes| Part::raw(vec![1; bytes]);
    writer.append(&subject, vec![write_parts("a", vec![Part::text("abc"), large(300_000)], false)]).await;
    writer
        .append(
            &subject,
            vec![write_parts("a", vec![large(33_000)], true), write_parts("a", vec![large(34_000)], true)],
        )
        .await;
    writer.append(&subject, vec![write_parts("a", vec![large(35_000)], false), chunk("a", "x", true)]).await;
    let connection = subject.connect();
    let mut select = connection
        .prepare("SELECT version, part, start, length(bytes) FROM chunk WHERE artifact_id = 'a' ORDER BY chunk_no")
        .unwrap();
    let rows: Vec<[i64; 4]> = select
        .query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let expected = [
        [2, 1, 3, 262_144],
        [2, 1, 262_147, 37_856],
        [3, 2, 300_003, 33_000],
        [3, 3, 333_003, 34_000],
        [4, 0, 0, 35_000],
    ];
    assert_eq!(rows, expected);
    writer.check(&subject).await;
}

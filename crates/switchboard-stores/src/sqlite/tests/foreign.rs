//! A task of another owner is looked up as one that does not exist, however it is kept at the moment.

use switchboard_core::model::TaskId;
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, anyone, chunk, scope};

use super::make;

#[tokio::test]
async fn a_foreign_read_files_nothing_and_the_owners_read_does() {
    let subject = make();
    let mut writer = RecordWriter::opened(&subject, "t1").await;
    writer.append(&subject, vec![chunk("a", "one", false)]).await;
    writer.append(&subject, vec![chunk("a", "two", true)]).await;
    let waiting =
        || -> i64 { subject.connect().query_row("SELECT count(*) FROM recent", [], |row| row.get(0)).unwrap() };
    let filed = || -> i64 { subject.connect().query_row("SELECT count(*) FROM log", [], |row| row.get(0)).unwrap() };
    assert!(waiting() > 0);
    let before = filed();
    let (id, foreign) = (TaskId::from("t1"), scope("", "eve", "agent"));
    let store = subject.store();
    assert!(store.task(&foreign, &id, u64::MAX).await.unwrap().is_none());
    assert!(store.head(&foreign, &id).await.unwrap().is_none());
    assert!(store.artifact(&foreign, &id, &"a".into(), None).await.unwrap().is_none());
    assert_eq!(filed(), before, "a stranger's read had the writer file the chunks of the task");
    assert!(store.artifact(&anyone(), &id, &"a".into(), None).await.unwrap().is_some());
    assert!(filed() > before);
}

//! Whether the checker can be trusted: a short run without violence, in which it must find nothing, and then the same
//! data with one acknowledged event erased, in a copy, which it must find.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use switchboard::database;
use tokio::time::Instant;

use super::book::Book;
use super::checker::{Evidence, check};
use super::child::{Home, Serves};
use super::client::Client;
use super::dice::Dice;
use super::faults::{Faults, Kind};
use super::inspect::inspect;
use super::load::Known;
use super::performance::Plot;
use super::stage::{Script, ledger_of, perform};
use crate::failure::Failure;

const LENGTH: Duration = Duration::from_millis(1_500);
const TASKS_WAIT_MAX: Duration = Duration::from_secs(10);

/// Gives a sentence on what was erased and found.
///
/// # Errors
/// When the checker found what is not there, or did not find what is.
pub(super) async fn run(folder: &Path, mut dice: Dice) -> Result<String, Failure> {
    let original = folder.join("original");
    let script = Script { folder: original.clone(), dice: dice.fork(), length: LENGTH, plot: Plot::Peace };
    let (seen, homes) = perform(script, |_| {}).await?;
    let home = homes.front;
    let book = Book::read(&ledger_of(&original)).map_err(Failure::runtime)?;
    let faults = check(&book, &seen.evidence);
    if faults.total() > 0 {
        let said = faults.lines.join("; ");
        return Err(Failure::Runtime(format!("the self-test found faults where nothing was done: {said}")));
    }
    let (task, seq) = victim(&book, &mut dice)
        .ok_or_else(|| Failure::Runtime("the self-test saw no event of a stream".to_owned()))?;
    let copy = Home::make(&folder.join("copy"), &Serves::Agents { public: None }, home.addr, &mut dice)
        .map_err(Failure::runtime)?;
    make_copy(&home, &copy)?;
    erase(&copy.database(), &task, seq)?;
    let faults = check(&book, &look(&copy, &book).await?);
    judge(&faults, &task, seq)
}

/// An event that somebody was shown.
fn victim(book: &Book, dice: &mut Dice) -> Option<(String, u64)> {
    let followed: Vec<_> = book.tasks.iter().filter(|(_, record)| record.last_seen() > 2).collect();
    let (task, record) = followed.get(usize::try_from(dice.below(followed.len() as u64)).ok()?)?;
    Some(((*task).clone(), dice.between(2, record.last_seen() - 1)))
}

fn make_copy(of: &Home, copy: &Home) -> Result<(), Failure> {
    let database = copy.database();
    if let Some(folder) = database.parent() {
        std::fs::create_dir_all(folder).map_err(Failure::runtime)?;
    }
    database::backup(&of.database(), &database).map_err(Failure::runtime).map(drop)
}

/// Removes the commit that holds an event. This is the one place outside the store that knows how a file looks inside.
fn erase(database: &Path, task: &str, seq: u64) -> Result<(), Failure> {
    const ERASE: &str = "DELETE FROM log WHERE log_no =
        (SELECT log_no FROM log JOIN task ON log_no >> 24 = task_no
          WHERE task.id = ?1 AND visible > 0 AND last_seq >= ?2 ORDER BY log_no LIMIT 1)";
    let connection = Connection::open(database).map_err(Failure::runtime)?;
    let erased = connection.execute(ERASE, rusqlite::params![task, i64::try_from(seq).unwrap_or(i64::MAX)]);
    match erased.map_err(Failure::runtime)? {
        1 => Ok(()),
        rows => Err(Failure::Runtime(format!("the self-test should have erased one row, and erased {rows}"))),
    }
}

/// What a server on the copy says.
async fn look(copy: &Home, book: &Book) -> Result<Evidence, Failure> {
    let client = std::sync::Arc::new(Client::new(copy.addr)?);
    let mut child = copy.start().map_err(Failure::runtime)?;
    copy.ready(&mut child, &client).await.map_err(Failure::Runtime)?;
    let known = book.tasks.iter().map(|(task, record)| Known {
        task: task.clone(),
        whom: record.wish.whom(),
        hook: record.hook,
    });
    let evidence = inspect(client, known.collect(), Instant::now() + TASKS_WAIT_MAX).await;
    child.kill();
    child.buried().await;
    Ok(evidence)
}

fn judge(faults: &Faults, task: &str, seq: u64) -> Result<String, Failure> {
    let named = faults.lines.iter().any(|line| line.starts_with(Kind::Lost.key()) && line.contains(task));
    if faults.count(Kind::Lost) > 0 && named {
        return Ok(format!("event {seq} of task {task} was erased from a copy, and reported as lost"));
    }
    Err(Failure::Runtime(format!(
        "the self-test failed: event {seq} of task {task} was erased from a copy of the database, and the checker did not \
         notice; nothing it says can be trusted"
    )))
}

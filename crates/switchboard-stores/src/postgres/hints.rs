//! One connection of each process that is always open. It holds the name of the replica, so that no other process takes it, and it
//! listens for hints of the others (`LISTEN`). Hints are sent over another connection, many in one notification and never as part
//! of a commit: a transaction with a notification waits for every other one (`NOTIFY` takes a lock of the whole database).
//!
//! A hint that is lost costs time and no data, so nothing here is repeated.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use switchboard_core::model::TaskId;
use switchboard_engine::ports::{Hint, HintSink, Hints};
use tokio::sync::Notify;
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{Connector, Driver};
use super::error::{Failure, PostgresError};
use super::store::Shared;
use super::text;

/// The hints of a task always go over the same channel.
const CHANNELS: u64 = 16;
/// The longest payload; PostgreSQL has 8,000 bytes.
const PAYLOAD_BYTES_MAX: usize = 7_800;
/// Tasks whose hints wait at most; hints of more are lost.
const HINTS_WAITING_MAX: usize = 16_384;
/// The pause between two notifications, in which hints are gathered.
const GATHER: Duration = Duration::from_millis(2);
/// How long the name of a replica is waited for when its last holder has just ended.
const NAME_TRIES: u32 = 200;
const NAME_PAUSE: Duration = Duration::from_millis(50);
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);

/// Hints over LISTEN and NOTIFY.
pub struct PostgresHints {
    /// The name of this replica: its own hints come back, and are not passed on.
    name: String,
    sink: OnceLock<Arc<dyn HintSink>>,
    waiting: Mutex<HashMap<TaskId, u64>>,
    has_waiting: Notify,
}

impl Hints for PostgresHints {
    fn notify(&self, hint: Hint<'_>) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seq) = waiting.get_mut(hint.task) {
            *seq = hint.seq.max(*seq);
        } else if waiting.len() < HINTS_WAITING_MAX {
            waiting.insert(hint.task.clone(), hint.seq);
        } else {
            return;
        }
        drop(waiting);
        self.has_waiting.notify_one();
    }

    fn listen(&self, sink: Arc<dyn HintSink>) {
        // It is called once.
        let _ = self.sink.set(sink);
    }
}

impl PostgresHints {
    pub(super) fn new(name: String) -> Self {
        Self { name, sink: OnceLock::new(), waiting: Mutex::default(), has_waiting: Notify::new() }
    }

    /// Sends hints until it is dropped.
    pub(super) async fn send(&self, shared: &Shared) {
        const NOTIFY: &str =
            "select pg_notify(n.channel, n.payload) from unnest($1::text[], $2::text[]) as n(channel, payload)";
        loop {
            self.has_waiting.notified().await;
            let waiting = std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
            let (channels, payloads) = self.payloads(&shared.connector.schema, waiting);
            if let Err(error) = shared.serve(NOTIFY, &[&channels, &payloads]).await {
                tracing::debug!(?error, "hints lost");
            }
            tokio::time::sleep(GATHER).await;
        }
    }

    /// Notifications: the sender on the first line, then a task and its newest event on each.
    fn payloads(&self, schema: &str, hints: HashMap<TaskId, u64>) -> (Vec<String>, Vec<String>) {
        let mut open: HashMap<u64, String> = HashMap::new();
        let (mut channels, mut payloads) = (Vec::new(), Vec::new());
        for (task, seq) in hints {
            let number = channel_of(&task);
            let line = format!("\n{seq} {}", text::stored(task.as_str()));
            if line.contains(['\r']) || line.len() > PAYLOAD_BYTES_MAX / 2 || line[1..].contains('\n') {
                // Such ids are not made by us; their followers poll.
                continue;
            }
            let payload = open.entry(number).or_insert_with(|| self.name.clone());
            if payload.len() + line.len() > PAYLOAD_BYTES_MAX {
                channels.push(channel_name(schema, number));
                payloads.push(std::mem::replace(payload, self.name.clone()));
            }
            payload.push_str(&line);
        }
        for (number, payload) in open {
            channels.push(channel_name(schema, number));
            payloads.push(payload);
        }
        (channels, payloads)
    }

    fn received(&self, payload: &str) {
        let Some(sink) = self.sink.get() else { return };
        let mut lines = payload.split('\n');
        if lines.next() == Some(&self.name) {
            return;
        }
        for line in lines {
            let Some((seq, task)) = line.split_once(' ') else { continue };
            if let Ok(seq) = seq.parse() {
                sink.hint(Hint { task: &TaskId::from(&*text::read(task)), seq });
            }
        }
    }
}

fn channel_of(task: &TaskId) -> u64 {
    crate::checksum::xxh64(task.as_str().as_bytes(), 0) % CHANNELS
}

fn channel_name(schema: &str, number: u64) -> String {
    format!("{schema}_h{number}")
}

/// The open connection, and the name that it holds.
pub(super) struct Presence {
    name: String,
    client: Client,
    driver: Driver,
}

impl Presence {
    /// Takes the name. The process that had it before may have ended just now.
    pub(super) async fn begin(connector: &Connector, name: &str, hints: &PostgresHints) -> Result<Self, PostgresError> {
        for _ in 0..NAME_TRIES {
            let (client, driver) = connector.connect_undriven().await?;
            let mut presence = Self { name: name.to_owned(), client, driver };
            if presence.take(connector, hints).await? {
                return Ok(presence);
            }
            drop(presence);
            tokio::time::sleep(NAME_PAUSE).await;
        }
        Err(PostgresError(format!(
            "another process runs under the replica name `{name}`; each needs a name of its own"
        )))
    }

    /// Takes the name and listens; false if another connection has the name.
    async fn take(&mut self, connector: &Connector, hints: &PostgresHints) -> Result<bool, Failure> {
        let Self { name, client, driver } = self;
        let schema = &connector.schema;
        let work = async {
            connector.set_up(client).await?;
            let lock = format!("switchboard replica {schema} {name}");
            let row = client.query_one("select pg_try_advisory_lock(hashtextextended($1, 0))", &[&lock]).await?;
            if !row.try_get::<_, bool>(0)? {
                return Ok(false);
            }
            let listen: String =
                (0..CHANNELS).map(|number| format!("LISTEN \"{}\";", channel_name(schema, number))).collect();
            client.batch_execute(&listen).await?;
            Ok(true)
        };
        let mut work = pin!(work);
        tokio::select! {
            biased;
            result = &mut work => result,
            () = drive(driver, hints) => Err(Failure::connection("the connection was lost")),
        }
    }

    /// Keeps the connection open, and makes it again when it is lost.
    pub(super) async fn keep(mut self, connector: &Connector, hints: &PostgresHints) {
        loop {
            drive(&mut self.driver, hints).await;
            tracing::warn!("connection of this replica lost; hints of others come late until it is back");
            loop {
                tokio::time::sleep(RECONNECT_PAUSE).await;
                let Ok((client, driver)) = connector.connect_undriven().await else { continue };
                self = Self { name: self.name, client, driver };
                match self.take(connector, hints).await {
                    Ok(true) => break,
                    Ok(false) => {
                        tracing::error!(replica = self.name, "another process has taken the name of this replica");
                    }
                    Err(failure) => tracing::debug!(reason = failure.reason, "connection of this replica not made"),
                }
            }
            tracing::info!("connection of this replica made again");
        }
    }
}

/// Drives a connection until it ends, and passes on what it is told.
async fn drive(driver: &mut Driver, hints: &PostgresHints) {
    loop {
        match poll_fn(|cx| driver.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notification(told))) => hints.received(told.payload()),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                tracing::debug!(error = %error, "connection to PostgreSQL lost");
                return;
            }
            None => return,
        }
    }
}

//! The load generator: one thread, many keep-alive connections, every reply checked.
//!
//! Written for low CPU, so that the server is the slower side: requests are templates with a few digits changed,
//! replies are searched and not parsed, and a reply is one read where the kernel allows. In: an address and a kind of
//! [`Work`]. Out: an [`Outcome`]. To measure the server's CPU time, read it before and after [`Pool::run`].

mod check;
mod connection;
mod grpc;
mod outcome;
mod request;
mod tasks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

pub use connection::Connection;
pub use grpc::GrpcPool;
pub use outcome::Outcome;
pub use request::subscribe as subscribe_request;
pub use tasks::{HeldStreams, Stored, begin_one, begin_streams, create, hold_streams};

use check::Expected;
use outcome::Tally;
use request::Template;

/// What each connection does, over and over.
#[derive(Clone)]
pub enum Work {
    /// Blocking SendMessage; the reply is the completed task with the text in its artifact.
    Send,
    /// The same with one of these bearer tokens, in turn.
    SendAs(Arc<[String]>),
    /// The same in A2A 0.3: `message/send`.
    SendOld,
    /// SendStreamingMessage, read to the end of the stream.
    Stream,
    /// SendMessage that does not wait, with this text in front of a serial; the reply is a task that is not over.
    Begin(String),
    /// The same, with a webhook.
    BeginWithWebhook { text: String, url: String },
    /// GetTask over these tasks in turn.
    Get(Arc<[Stored]>),
}

/// When a run ends.
#[derive(Clone, Copy)]
pub enum Until {
    /// Requests begun within this time are finished and counted.
    Elapsed(Duration),
    /// Exactly so many requests.
    Requests(u64),
    /// So many per second, spread evenly over this time, as far as the server keeps up.
    Paced { per_second: f64, time: Duration },
}

/// Open connections that outlive a run, so that connecting is never part of what is measured.
pub struct Pool {
    address: SocketAddr,
    connections: Vec<Connection>,
}

impl Pool {
    pub async fn open(address: SocketAddr, count: usize) -> Result<Pool> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(Connection::open(address).await?);
        }
        Ok(Pool { address, connections })
    }

    /// Drives every connection with this work and says what came of it.
    pub async fn run(&mut self, work: &Work, until: Until) -> Outcome {
        let limit = Arc::new(Limit::new(until));
        let started = Instant::now();
        let mut drivers = JoinSet::new();
        for connection in self.connections.drain(..) {
            drivers.spawn(drive(connection, self.address, work.clone(), Arc::clone(&limit)));
        }
        let mut total = Tally::default();
        while let Some(ended) = drivers.join_next().await {
            let (connection, tally) = ended.expect("a driver returns its errors and does not panic");
            total.add(tally);
            self.connections.extend(connection);
        }
        total.finish(started.elapsed())
    }
}

/// The shared end of a run.
struct Limit {
    started: Instant,
    deadline: Option<Instant>,
    left: AtomicU64,
    per_second: Option<f64>,
    begun: AtomicU64,
}

impl Limit {
    fn new(until: Until) -> Limit {
        let (time, count, per_second) = match until {
            Until::Elapsed(time) => (Some(time), u64::MAX, None),
            Until::Requests(count) => (None, count, None),
            Until::Paced { per_second, time } => (Some(time), u64::MAX, Some(per_second)),
        };
        let started = Instant::now();
        let deadline = time.map(|time| started + time);
        Limit { started, deadline, left: AtomicU64::new(count), per_second, begun: AtomicU64::new(0) }
    }

    /// When the next request is to begin, if there is a pace to keep.
    fn next_turn(&self) -> Option<Instant> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        Some(self.started + Duration::from_secs_f64(number as f64 / self.per_second?))
    }

    fn allows_one_more(&self, now: Instant) -> bool {
        self.deadline.is_none_or(|deadline| now < deadline)
            && self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }
}

async fn drive(
    mut connection: Connection,
    address: SocketAddr,
    work: Work,
    limit: Arc<Limit>,
) -> (Option<Connection>, Tally) {
    let mut tally = Tally::default();
    let mut template = match &work {
        Work::Send | Work::SendAs(_) | Work::Get(_) => Template::send(),
        Work::SendOld => Template::send_old(),
        Work::Stream => Template::stream(request::TEXT),
        Work::Begin(text) => Template::begin(text),
        Work::BeginWithWebhook { text, url } => Template::begin_with_webhook(text, url),
    };
    let mut request = Vec::new();
    let mut begun = Instant::now();
    while limit.allows_one_more(begun) {
        if let Some(turn) = limit.next_turn() {
            if limit.deadline.is_some_and(|deadline| turn >= deadline) {
                break;
            }
            tokio::time::sleep_until(turn.into()).await;
            begun = Instant::now();
        }
        let serial = request::next_serial();
        let (bytes, expected) = match &work {
            Work::Send => (template.with(serial), Expected::Echo(serial)),
            Work::SendAs(tokens) => {
                template.with_token(serial, &tokens[serial as usize % tokens.len()], &mut request);
                (&*request, Expected::Echo(serial))
            }
            Work::SendOld => (template.with(serial), Expected::EchoOld(serial)),
            Work::Stream => (template.with(serial), Expected::Stream(serial)),
            Work::Begin(_) | Work::BeginWithWebhook { .. } => (template.with(serial), Expected::Begun),
            Work::Get(tasks) => {
                let task = &tasks[serial as usize % tasks.len()];
                (&*task.get_request, Expected::Stored { id: &task.id, text: task.text.as_deref() })
            }
        };
        let result = match connection.exchange(bytes).await {
            Ok(reply) => check::reply(&reply, &expected).map(|events| (reply.body.len(), events)),
            Err(error) => Err(format!("{error:#}")),
        };
        let ended = Instant::now();
        let failed = result.is_err();
        tally.record(ended - begun, result);
        begun = ended;
        if failed || connection.must_close() {
            match Connection::open(address).await {
                Ok(fresh) => connection = fresh,
                Err(_) => return (None, tally),
            }
        }
    }
    (Some(connection), tally)
}

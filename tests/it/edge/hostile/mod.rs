//! Requests that others have really sent, with something wrong in them, at every place there is, over real connections. Each
//! is answered on a connection that stays open, never as the server's own fault, and a refusal has the form of the place.
//!
//! What is wrong is drawn from a seed, which is printed: `SWITCHBOARD_HOSTILE_SEED=7` repeats one.

mod damage;
mod places;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use switchboard::{CorvidOptions, Server, ServerBuilder};
use tokio::net::TcpStream;

use self::damage::{damaged, damaged_bytes};
use self::places::{GRPC_METHODS, PLACES, Place};
use crate::sim::dice::Dice;
use crate::support::callers::soon;
use crate::support::edge::{Answer, echo};
use crate::support::grpc::{Served, V0_3, V1_0, framed};
use crate::support::shapes::refusal;

/// Seeds that found something.
const SEEDS_THAT_FAILED: [u64; 0] = [];

fn seeds() -> Vec<u64> {
    match std::env::var("SWITCHBOARD_HOSTILE_SEED") {
        Ok(seed) => vec![seed.parse().expect("the seed is a number")],
        Err(_) => {
            let more = if std::env::var_os("SWITCHBOARD_TEST_LONG").is_some() { 100 } else { 4 };
            SEEDS_THAT_FAILED.into_iter().chain(1..=more).collect()
        }
    }
}

fn builder() -> ServerBuilder {
    let mut corvid = CorvidOptions::default();
    corvid.sends_per_min = usize::MAX;
    Server::builder().agent(echo().compat(|compat| {
        compat.default_project = true;
        compat.corvid = corvid;
    }))
}

/// The requests among the golden files with this ending, of every dialect.
fn golden_requests(ending: &str) -> Vec<Vec<u8>> {
    fn visit(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let is_answer = ["reply", "update", "card", "error", "rest-reply", "rest-update"];
            if path.is_dir() {
                visit(&path, ending, found);
            } else if name.ends_with(ending) && !is_answer.iter().any(|answer| name.starts_with(answer)) {
                found.push(path);
            }
        }
    }
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "golden"].iter().collect();
    let mut found = Vec::new();
    visit(&folder, ending, &mut found);
    found.sort();
    found.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// One connection, on which everything is asked.
struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
}

impl Line {
    async fn to(served: &Served) -> Self {
        let stream = TcpStream::connect(served.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { sender }
    }

    async fn ask(&mut self, request: Request<Full<Bytes>>) -> Result<Answer, hyper::Error> {
        self.sender.ready().await?;
        let (parts, body) = soon(self.sender.send_request(request)).await?.into_parts();
        let body = soon(body.collect()).await?.to_bytes();
        Ok(Answer { status: parts.status, headers: parts.headers, body })
    }
}

fn request(place: &Place, version: &str, body: &[u8]) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(place.method).uri(place.path).header("host", "localhost");
    request = request.header("content-type", "application/json");
    if !version.is_empty() {
        request = request.header("a2a-version", version);
    }
    request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()
}

/// What is wrong with an answer, if anything is.
fn judge(place: &Place, version: &str, answer: &Answer) -> Result<(), String> {
    if answer.status.is_server_error() {
        return Err(format!("the server's own fault: {}", answer.status));
    }
    let text = String::from_utf8_lossy(&answer.body);
    let is_stream = answer.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
    let is_refused = !answer.status.is_success() || place.is_rpc && !is_stream && !text.contains(r#""result":"#);
    if !is_refused {
        return Ok(());
    }
    let (form, code) = refusal(answer)?;
    let forms = (place.refusals)(version);
    match (forms.contains(&form), code) {
        (_, -32603 | 500) => Err("an internal error".to_owned()),
        (true, _) => Ok(()),
        (false, _) => Err(format!("{form:?} where {forms:?} is spoken")),
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_the_form_of_its_place() {
    let goldens = golden_requests(".json");
    assert!(goldens.len() > 50, "{} golden requests", goldens.len());
    let served = Served::start(builder()).await;
    let mut line = Line::to(&served).await;
    for seed in seeds() {
        println!("seed {seed}");
        let mut dice = Dice::new(seed);
        for golden in &goldens {
            for place in PLACES {
                let version = place.versions[dice.pick(place.versions.len())];
                let other = &goldens[dice.pick(goldens.len())];
                let body = if dice.one_in(8) { golden.clone() } else { damaged(&mut dice, golden, other) };
                let asked = || {
                    format!(
                        "seed {seed}: {} {} {version:?}\n{}",
                        place.method,
                        place.path,
                        String::from_utf8_lossy(&body)
                    )
                };
                let answer = line.ask(request(place, version, &body)).await;
                let answer = answer.unwrap_or_else(|error| panic!("{error}\n{}", asked()));
                if let Err(why) = judge(place, version, &answer) {
                    panic!("{why}\n{}\n{} {}", asked(), answer.status, String::from_utf8_lossy(&answer.body));
                }
            }
        }
    }
    served.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_message_over_grpc_ends_with_a_status() {
    let goldens = golden_requests(".binpb");
    assert!(goldens.len() > 10, "{} golden requests", goldens.len());
    let served = Served::start(builder()).await;
    let clients = [
        (V1_0, served.client().await),
        (V0_3, served.client_of(V0_3).await),
        // The wrong version, an unknown one and none.
        (V1_0, served.client_of(V1_0).await.with("a2a-version", "0.3")),
        (V0_3, served.client_of(V0_3).await.with("a2a-version", "1.0")),
        (V1_0, served.client_of(V1_0).await.with("a2a-version", "9.9")),
        (V1_0, served.client_of(V1_0).await),
    ];
    for seed in seeds() {
        println!("seed {seed}");
        let mut dice = Dice::new(seed);
        for golden in &goldens {
            for method in GRPC_METHODS {
                let (service, client) = &clients[dice.pick(clients.len())];
                let message = damaged_bytes(&mut dice, golden);
                let body =
                    if dice.one_in(8) { damaged_bytes(&mut dice, &framed(&message)).into() } else { framed(&message) };
                let answer = client.raw(&format!("{service}/{method}"), body.clone()).await.whole().await;
                if let Err(refused) = answer.ending() {
                    let is_known = !refused.reason.is_empty() || [12, 13].contains(&refused.code);
                    let is_ours = refused.code == 2 || refused.reason == "INTERNAL_ERROR";
                    assert!(is_known && !is_ours, "seed {seed}: {service}/{method} {body:?}: {refused:?}");
                }
            }
        }
    }
    served.stop().await.unwrap();
}

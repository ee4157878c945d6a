//! What a call costs the one who makes it: our client, and beside it a bare hyper connection that sends the same JSON and parses the
//! answer, both against the limit server.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use switchboard::AgentClient;
use switchboard::client::{CardReference, Client};
use switchboard_test_servers::free_addr;
use tokio::net::{TcpListener, TcpStream};

use crate::figures::{median, met};
use crate::process::{self, pin_to_core};

/// The goal: our client costs at most so much of the bare call.
const RATIO_MAX: f64 = 1.3;

/// What a call costs the client.
#[derive(clap::Parser)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    /// Calls of each kind in a round, one after the other.
    #[arg(long, default_value_t = 30_000)]
    calls: u32,
    /// Rounds; in each, both kinds take their turn.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Makes calls of this kind alone, in one round, and measures nothing: for programs that count instructions.
    #[arg(long)]
    only: Option<Kind>,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Kind {
    Bare,
    Ours,
}

#[derive(clap::Subcommand)]
enum Part {
    /// The limit server: another process of this benchmark.
    #[command(hide = true)]
    Limit {
        #[arg(long)]
        listen: SocketAddr,
    },
}

/// Prints what was measured.
pub fn run(arguments: &Arguments) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &arguments.part {
        Some(Part::Limit { listen }) => {
            pin_to_core(0)?;
            runtime.block_on(async { Ok(crate::limit::serve(TcpListener::bind(listen).await?).await?) })
        }
        None => {
            pin_to_core(1)?;
            runtime.block_on(measure(arguments))
        }
    }
}

/// Killed when dropped.
struct Limit(Child);

impl Drop for Limit {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let address = free_addr();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["limit", "--listen", &address.to_string()]).stdin(Stdio::null());
    let _limit = Limit(command.spawn().context("cannot start the limit server")?);
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut bare = Bare::open(address).await?;
    let ours = agent(address).await?;
    match arguments.only {
        Some(Kind::Bare) => return call_bare(&mut bare, arguments.calls).await,
        Some(Kind::Ours) => return call_ours(&ours, arguments.calls).await,
        None => {}
    }
    let mut ratios = Vec::new();
    println!("| round | bare hyper µs/call | our client µs/call | ratio |\n|--:|--:|--:|--:|");
    for round in 0..=arguments.rounds {
        let before = cpu_us()?;
        call_bare(&mut bare, arguments.calls).await?;
        let between = cpu_us()?;
        call_ours(&ours, arguments.calls).await?;
        let after = cpu_us()?;
        let calls = f64::from(arguments.calls);
        let (bare, ours) = ((between - before) / calls, (after - between) / calls);
        // The first round warms everything up.
        if round > 0 {
            println!("| {round} | {bare:.1} | {ours:.1} | {:.2} |", ours / bare);
            ratios.push(ours / bare);
        }
    }
    let median = median(ratios);
    println!("\nmedian {median:.2}, goal ≤ {RATIO_MAX}: {}", met(median <= RATIO_MAX));
    Ok(())
}

async fn call_bare(bare: &mut Bare, calls: u32) -> Result<()> {
    for call in 0..calls {
        bare.send(call).await?;
    }
    Ok(())
}

async fn call_ours(ours: &AgentClient, calls: u32) -> Result<()> {
    for call in 0..calls {
        let text = format!("hello {call}");
        let answer = ours.send_text(&text).await?;
        ensure!(answer.text() == text, "another text came back");
    }
    Ok(())
}

fn cpu_us() -> Result<f64> {
    Ok(process::cpu_time(std::process::id())?.as_secs_f64() * 1e6)
}

/// What a program does that has no client library.
struct Bare {
    connection: SendRequest<Full<Bytes>>,
    host: String,
}

impl Bare {
    async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(Self { connection, host: address.to_string() })
    }

    async fn send(&mut self, call: u32) -> Result<()> {
        let text = format!("hello {call}");
        let message = json!({ "messageId": format!("m-{call}"), "role": "ROLE_USER", "parts": [{ "text": text }] });
        let body = json!({ "jsonrpc": "2.0", "id": call, "method": "SendMessage", "params": { "message": message } });
        let request = http::Request::post("/")
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .header("a2a-version", "1.0")
            .body(Full::new(Bytes::from(serde_json::to_vec(&body)?)))?;
        self.connection.ready().await?;
        let answer = self.connection.send_request(request).await?;
        let answer: Value = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
        let came = &answer["result"]["task"]["artifacts"][0]["parts"][0]["text"];
        ensure!(*came == text, "another text came back");
        Ok(())
    }
}

async fn agent(address: SocketAddr) -> Result<AgentClient> {
    let interface =
        json!({ "url": format!("http://{address}/"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" });
    let card = json!({ "name": "Limit", "description": "", "version": "1", "supportedInterfaces": [interface], "capabilities": {} });
    let client = Client::builder().build()?;
    Ok(client.agent_at(&CardReference::Inline(card.to_string())).await?)
}

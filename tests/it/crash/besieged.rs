//! A server under attack: many hostile clients at once, of every kind there is, with no credential, a forged one, or that of one caller,
//! and beside them an honest caller that asks at a fixed rate. Nothing is answered as the server's own fault, memory stays within
//! bounds, and every honest call is answered: what the hostile caller takes of places and budgets is its own share.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::http::{ask, message};
use super::process::{Server, free_addr, verify};
use crate::sim::dice::Dice;

/// How many hostile requests there are, and how many at once.
const HOSTILE: usize = 10_000;
const AT_ONCE: usize = 256;
/// What is not sent within this time is left out, and the test fails: the build or the machine is too slow for it.
const SIEGE_MAX: Duration = Duration::from_secs(600);
const HONEST_EVERY: Duration = Duration::from_millis(50);
const MEMORY_KIB_MAX: u64 = 512 << 10;

const MALLORY: &str = "a-token-of-mallory-for-tests";
const ALICE: &str = "a-token-of-alice-for-tests";

/// How a hostile client behaves.
const KINDS: [&str; 8] =
    ["malformed", "oversized", "slow", "unread", "replayed", "forged", "large", "unread over http2"];

/// What all clients know.
struct Siege {
    addr: SocketAddr,
    /// A task with a large answer.
    large: String,
    /// Answers with a status of 500 and more, as they came.
    faults: Mutex<Vec<String>>,
}

/// The head of a request of the hostile caller.
fn head(addr: SocketAddr, line: &str, more: &str) -> String {
    bare_head(addr, line, &format!("authorization: Bearer {MALLORY}\r\n{more}"))
}

/// The head of a request without a credential of the caller's own.
fn bare_head(addr: SocketAddr, line: &str, more: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {addr}\r\na2a-version: 1.0\r\nconnection: close\r\n{more}\r\n")
}

fn posted(addr: SocketAddr, body: &str) -> String {
    let length = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    head(addr, "POST /", &length) + body
}

fn rpc(method: &str, params: &serde_json::Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

impl Siege {
    /// What comes back, as far as it comes within some time.
    fn exchange(&self, sent: &[u8], wait: Duration) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.addr, Duration::from_secs(10)).ok()?;
        stream.set_read_timeout(Some(wait)).ok()?;
        stream.set_write_timeout(Some(Duration::from_secs(10))).ok()?;
        // A server that refuses early may close before everything is sent.
        let _ = stream.write_all(sent);
        let mut answer = vec![0; 4096];
        let length = stream.read(&mut answer).ok()?;
        Some(String::from_utf8_lossy(&answer[..length]).into_owned())
    }

    fn attack(&self, kind: &str, number: u64, dice: &mut Dice) {
        let (addr, wait) = (self.addr, Duration::from_secs(5));
        let answer = match kind {
            "malformed" => {
                let mut bytes = posted(addr, &rpc("SendMessage", &message("m", "hello"))).into_bytes();
                for _ in 0..8 {
                    let place = usize::try_from(dice.below(bytes.len() as u64)).unwrap_or_default();
                    bytes[place] = u8::try_from(dice.below(256)).unwrap_or_default();
                }
                self.exchange(&bytes, Duration::from_millis(300))
            }
            "oversized" => {
                let length = "content-type: application/json\r\ncontent-length: 100000000\r\n";
                self.exchange((head(addr, "POST /", length) + &"x".repeat(64 << 10)).as_bytes(), wait)
            }
            // A body of which the end never comes.
            "slow" => {
                let length = "content-type: application/json\r\ncontent-length: 1000001\r\n";
                let sent = head(addr, "POST /", length) + &" ".repeat(1_000_000);
                self.exchange(sent.as_bytes(), Duration::from_millis(500))
            }
            // The head of a large answer, and then nothing more.
            "unread" => {
                let sent = head(addr, &format!("GET /tasks/{}", self.large), "");
                let mut stream = TcpStream::connect(addr).ok();
                let answer = stream.as_mut().and_then(|stream| {
                    stream.set_read_timeout(Some(wait)).ok()?;
                    stream.write_all(sent.as_bytes()).ok()?;
                    let mut answer = [0; 64];
                    let length = stream.read(&mut answer).ok()?;
                    Some(String::from_utf8_lossy(&answer[..length]).into_owned())
                });
                std::thread::sleep(Duration::from_millis(300));
                answer
            }
            "replayed" => {
                let body = rpc("SendMessage", &message("the same", "again"));
                let key = format!(
                    "content-type: application/json\r\nidempotency-key: k\r\ncontent-length: {}\r\n",
                    body.len()
                );
                self.exchange((head(addr, "POST /", &key) + &body).as_bytes(), wait)
            }
            "forged" => {
                let more = "authorization: Bearer eyJhbGciOiJub25lIn0.e30.\r\nx-forwarded-for: 127.0.0.1\r\norigin: http://evil.example\r\n";
                self.exchange(bare_head(addr, &format!("GET /tasks/0{number}"), more).as_bytes(), wait)
            }
            "large" => {
                let text = format!("wait {}", "x".repeat(300 << 10));
                let body = rpc("SendMessage", &message(&format!("m-{number}"), &text));
                self.exchange(posted(addr, &body).as_bytes(), wait)
            }
            // The preface, settings that give every stream no window, and nothing that is HTTP/2 after it.
            _ => {
                let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
                sent.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
                self.exchange(&sent, Duration::from_millis(300))
            }
        };
        let status =
            answer.as_deref().and_then(|answer| answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse::<u16>().ok());
        // 503 says that the server has no room now; that is no fault.
        if status.is_some_and(|status| status >= 500 && status != 503 && status != 505) {
            self.faults.lock().unwrap().push(format!("{kind}: {}", answer.unwrap_or_default()));
        }
    }
}

/// Calls at a fixed rate, whether or not those before have been answered. Returns how long each took.
fn honest(addr: SocketAddr, is_over: &AtomicBool) -> Vec<Duration> {
    let call = |number: u32, due: Instant| {
        let text = format!("honest {number}");
        let credential = format!("Bearer {ALICE}");
        let headers = [("Idempotency-Key", text.as_str()), ("Authorization", &credential)];
        let sent = ask(addr, "SendMessage", &message(&text, &text), &headers);
        let task = sent.expect("an honest call is answered").expect("and not refused");
        assert_eq!(task["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
        due.elapsed()
    };
    let begun = Instant::now();
    std::thread::scope(|threads| {
        let mut calls = Vec::new();
        for number in 0.. {
            let due = begun + HONEST_EVERY * number;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            calls.push(threads.spawn(move || call(number, due)));
        }
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "takes every core: scripts/test runs it by itself"]
fn a_besieged_server_answers_honest_clients_within_its_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (data, addr) = (folder.path().join("data"), free_addr());
    let tokens = folder.path().join("tokens.txt");
    std::fs::write(&tokens, format!("{MALLORY} mallory\n{ALICE} alice\n")).unwrap();
    let server = Server::start_with(&data, addr, &["--tokens", tokens.to_str().unwrap()]);
    let credential = format!("Bearer {MALLORY}");
    let headers = [("Authorization", credential.as_str())];
    let sent = ask(addr, "SendMessage", &message("large", &"x".repeat(2 << 20)), &headers);
    let sent = sent.expect("it is answered").expect("it is taken");
    let large = sent["task"]["id"].as_str().unwrap().to_owned();
    let siege = Siege { addr, large, faults: Mutex::default() };
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    println!("seed {}", 7);
    let begun = Instant::now();
    let attack = |client: usize| {
        let mut dice = Dice::new(7 + client as u64);
        while begun.elapsed() < SIEGE_MAX {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= HOSTILE {
                return;
            }
            siege.attack(KINDS[number % KINDS.len()], number as u64, &mut dice);
        }
    };
    let mut took = std::thread::scope(|threads| {
        let honest = threads.spawn(|| honest(addr, &is_over));
        let hostile: Vec<_> = (0..AT_ONCE)
            .map(|client| {
                threads.spawn({
                    let attack = &attack;
                    move || attack(client)
                })
            })
            .collect();
        hostile.into_iter().for_each(|client| client.join().unwrap());
        is_over.store(true, Ordering::Relaxed);
        honest.join().unwrap()
    });
    let (peak, made) = (server.memory_peak_kib(), next.load(Ordering::Relaxed).min(HOSTILE));
    took.sort();
    let share = |of_hundred: usize| took[took.len() * of_hundred / 100];
    println!(
        "{made} hostile requests in {:?}; {} honest calls, p50 {:?}, p99 {:?}, longest {:?}; at most {} MiB",
        begun.elapsed(),
        took.len(),
        share(50),
        share(99),
        took[took.len() - 1],
        peak >> 10
    );
    let faults = siege.faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{} faults: {:#?}", faults.len(), &faults[..faults.len().min(5)]);
    assert_eq!(made, HOSTILE, "all were sent within {SIEGE_MAX:?}");
    assert!(peak < MEMORY_KIB_MAX, "{} MiB", peak >> 10);
    server.interrupt();
    verify(&data);
}

//! Just enough HTTP for a client that must notice exactly when its server dies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than anything here may take; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// Posts a JSON-RPC call and gives back its result; none if the server was gone before it had answered.
pub(super) fn call(addr: SocketAddr, method: &str, params: Value) -> Option<Value> {
    let answer = ask(addr, method, &params, &[])?;
    Some(answer.unwrap_or_else(|error| panic!("{method} {params}: {error}")))
}

/// As [`call`], where an error is an answer, too.
pub(super) fn ask(
    addr: SocketAddr,
    method: &str,
    params: &Value,
    headers: &[(&str, &str)],
) -> Option<Result<Value, Value>> {
    let (status, mut answer) = post(addr, method, params, headers)?;
    // The two that a call in order can get: done, and not now.
    assert!(matches!(status, 200 | 503), "{method}: {status}");
    let mut body = String::new();
    answer.read_to_string(&mut body).ok()?;
    let reply: Value = serde_json::from_str(&body).ok()?;
    Some(match reply.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(reply["result"].clone()),
    })
}

/// The error that a call is answered with, whatever its status.
pub(super) fn post_for_error(addr: SocketAddr, method: &str, params: &Value) -> Value {
    let (_, mut answer) = post(addr, method, params, &[]).expect("the server is up");
    let mut body = String::new();
    answer.read_to_string(&mut body).expect("the answer is read");
    let reply: Value = serde_json::from_str(&body).expect("the answer is JSON");
    reply["error"].clone()
}

/// The status and body of `GET /readyz`; none if no server listens.
pub(super) fn readiness(addr: SocketAddr) -> Option<(u16, String)> {
    let mut socket = TcpStream::connect(addr).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    socket.write_all(request.as_bytes()).and_then(|()| socket.read_to_string(&mut answer)).ok()?;
    let status = answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    Some((status, body.trim().to_owned()))
}

/// What a send carries.
pub(super) fn message(id: &str, text: &str) -> Value {
    json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]}})
}

/// One server-sent event.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) result: Value,
}

/// A stream of events; it ends when the server ends it or dies.
pub(super) struct Events(Option<BufReader<Body>>);

pub(super) fn stream(addr: SocketAddr, method: &str, params: Value, last_event_id: Option<u64>) -> Events {
    let id = last_event_id.map(|id| id.to_string());
    let headers: Vec<(&str, &str)> = id.iter().map(|id| ("Last-Event-ID", id.as_str())).collect();
    let answer = post(addr, method, &params, &headers);
    Events(answer.map(|(status, body)| {
        assert_eq!(status, 200, "{method}");
        BufReader::new(body)
    }))
}

/// As [`stream`]; none if it is refused because the caller has too many.
pub(super) fn stream_if_admitted(addr: SocketAddr, method: &str, params: &Value) -> Option<Events> {
    let (status, body) = post(addr, method, params, &[]).expect("the server is up");
    assert!(matches!(status, 200 | 429), "{method}: {status}");
    (status == 200).then(|| Events(Some(BufReader::new(body))))
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let reader = self.0.as_mut()?;
        let mut id = None;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(number) = line.strip_prefix("id: ") {
                id = number.trim().parse().ok();
            } else if let Some(data) = line.strip_prefix("data: ") {
                // A line without its end was cut off by the server's death.
                let data = data.strip_suffix('\n')?;
                let reply: Value = serde_json::from_str(data).expect("each event is whole JSON");
                assert!(reply.get("error").is_none(), "{reply}");
                return Some(Event { id: id.expect("each event is numbered"), result: reply["result"].clone() });
            }
        }
    }
}

/// As [`call`], to one agent of the server.
pub(super) fn call_agent(addr: SocketAddr, agent: &str, method: &str, params: &Value) -> Value {
    let (status, mut answer) = post_to(addr, &format!("/agents/{agent}"), method, params, &[]).expect("it is up");
    let mut body = String::new();
    answer.read_to_string(&mut body).expect("the answer is read");
    let mut reply: Value = serde_json::from_str(&body).expect("the answer is JSON");
    assert!(status == 200 && reply.get("error").is_none(), "{agent} {method}: {status} {reply}");
    reply["result"].take()
}

fn post(addr: SocketAddr, method: &str, params: &Value, headers: &[(&str, &str)]) -> Option<(u16, Body)> {
    post_to(addr, "/", method, params, headers)
}

fn post_to(
    addr: SocketAddr,
    path: &str,
    method: &str,
    params: &Value,
    headers: &[(&str, &str)],
) -> Option<(u16, Body)> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let mut socket = TcpStream::connect(addr).ok()?;
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nHost: {addr}\r\nA2A-Version: 1.0\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    write!(socket, "{head}\r\n{body}").ok()?;
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let status = line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut chunked = false;
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let header = line.trim().to_ascii_lowercase();
        chunked |= header == "transfer-encoding: chunked";
        if header.is_empty() {
            return Some((status, Body { reader, chunked, left: 0 }));
        }
    }
}

/// Fetches a path as any program would, and gives back the status and the body.
pub(super) fn fetch(addr: SocketAddr, path: &str, range: Option<&str>) -> (u16, Body) {
    let mut socket = TcpStream::connect(addr).expect("the server is up");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let range = range.map(|range| format!("Range: {range}\r\n")).unwrap_or_default();
    let head = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n{range}\r\n");
    socket.write_all(head.as_bytes()).expect("the server reads");
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).expect("the server answers");
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("an answer has a status");
    while line.trim() != "" {
        line.clear();
        reader.read_line(&mut line).expect("headers come to an end");
    }
    (status, Body { reader, chunked: false, left: 0 })
}

/// One number of `/metrics`: the first of this name, whatever its labels are.
pub(super) fn metric(addr: SocketAddr, name: &str) -> Option<u64> {
    let mut page = String::new();
    fetch(addr, "/metrics", None).1.read_to_string(&mut page).ok()?;
    let line = page.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// A body, with its chunks joined. A server that dies in the middle is an error here, an end for the caller.
pub(super) struct Body {
    reader: BufReader<TcpStream>,
    chunked: bool,
    left: usize,
}

impl Read for Body {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if !self.chunked {
            return self.reader.read(out);
        }
        if self.left == 0 {
            let mut line = String::new();
            self.reader.read_line(&mut line)?;
            if line == "\r\n" {
                line.clear();
                self.reader.read_line(&mut line)?;
            }
            self.left = usize::from_str_radix(line.trim(), 16).unwrap_or(0);
            if self.left == 0 {
                return Ok(0);
            }
        }
        let most = out.len().min(self.left);
        let read = self.reader.read(&mut out[..most])?;
        self.left -= read;
        Ok(read)
    }
}

//! Attacks on a client that fetches URLs which others name: each reaches a server inside with a client that this file composes
//! without the guard, and does not with the client of this crate. Names are answered by a real name server over UDP, which
//! changes its mind as an attacker's does.
//!
//! `127.0.0.1` stands for the inside. `127.0.0.2` and `127.0.0.3` stand for the open internet: the policy opens them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Uri};
use rustls::RootCertStore;
use switchboard_core::call::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};

use super::receiver::Receiver;
use super::{AddressPolicy, Client, Error, ErrorKind, RequestLimits, Resolve, client_with};
use crate::outbound::target::check_url;

const SECRET: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecret";
const INSIDE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OUTSIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A name server that gives these answers to the questions for any name, the last one from then on.
struct NameServer {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl NameServer {
    #[expect(clippy::disallowed_methods, reason = "the server ends with the runtime of its test")]
    async fn start(answers: Vec<Vec<Ipv4Addr>>) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut packet).await {
                let nth = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
                let _ = socket.send_to(&answered(&packet[..length], &answers[nth]), from).await;
            }
        });
        Self { address, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// An answer (RFC 1035, 4): the header and question of the query, and an address record for each address that lives for 0 s.
fn answered(query: &[u8], addresses: &[Ipv4Addr]) -> Vec<u8> {
    let mut packet = query.to_vec();
    packet[2] |= 0x80;
    packet[6..8].copy_from_slice(&u16::try_from(addresses.len()).unwrap().to_be_bytes());
    for address in addresses {
        packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        packet.extend(address.octets());
    }
    packet
}

/// Asks a name server over UDP, as the resolver of a system does.
struct Resolver(SocketAddr);

impl Resolver {
    async fn ask(&self, host: &str) -> io::Result<Vec<Ipv4Addr>> {
        let socket = UdpSocket::bind("127.0.0.1:0").await?;
        let mut query = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in host.split('.') {
            query.push(u8::try_from(label.len()).unwrap());
            query.extend(label.as_bytes());
        }
        query.extend([0, 0, 1, 0, 1]);
        socket.send_to(&query, self.0).await?;
        let mut packet = [0; 512];
        let length = socket.recv(&mut packet).await?;
        let records = packet[query.len()..length].chunks_exact(16);
        Ok(records.map(|record| Ipv4Addr::new(record[12], record[13], record[14], record[15])).collect())
    }
}

impl Resolve for Resolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(self.ask(host).await?.into_iter().map(|ip| SocketAddr::from((ip, port))).collect()) })
    }
}

/// The client of this crate, for which two addresses are the open internet.
fn guarded(names: &NameServer) -> Client {
    client_with(&["127.0.0.2", "127.0.0.3"], Resolver(names.address), RootCertStore::empty())
}

async fn get(client: &Client, url: &str, redirects_max: u8) -> Result<Bytes, Error> {
    let limits = RequestLimits { redirects_max, ..RequestLimits::default() };
    let request = Request::get(url).header("authorization", "Bearer t0ken").body(Bytes::new());
    let request = request.map_err(|_| Error::unsent(ErrorKind::InvalidRequest, "no URL".to_owned()))?;
    client.send(request, &limits).await?.into_body().bytes().await
}

/// What clients without the guard do: they dial whatever the name or the number leads to.
async fn get_unguarded(address: impl tokio::net::ToSocketAddrs, head: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{head}\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = vec![0; SECRET.len()];
    stream.read_exact(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[track_caller]
fn assert_stopped(outcome: Result<Bytes, Error>, url: &str) {
    match outcome {
        Err(error) => assert!(matches!(error.kind(), ErrorKind::Refused | ErrorKind::InvalidRequest), "{url}: {error}"),
        Ok(body) => panic!("{url} was fetched: {body:?}"),
    }
}

/// GHSA-q78c-5jjq-57g8 and its like: the text of the URL is harmless, and its name leads inside.
#[tokio::test]
async fn a_name_that_leads_inside() {
    let inside = Receiver::start(SECRET).await;
    let names = NameServer::start(vec![vec![INSIDE]]).await;
    let url = format!("http://hooks.example:{}/", inside.port);
    check_url(&url).expect("its text is that of any other URL");
    let ip = Resolver(names.address).ask("hooks.example").await.unwrap()[0];
    assert!(get_unguarded((ip, inside.port), "GET / HTTP/1.1").await.unwrap().ends_with("secret"));
    assert_eq!(inside.connections(), 1);
    assert_stopped(get(&guarded(&names), &url, 0).await, &url);
    // An answer with both refuses the name: another attempt could take the other address.
    let both = NameServer::start(vec![vec![OUTSIDE, INSIDE]]).await;
    assert_stopped(get(&guarded(&both), &url, 0).await, &url);
    assert_eq!(inside.connections(), 1);
}

/// DNS rebinding: the name leads outside when it is checked, and inside when it is dialled.
#[tokio::test]
async fn a_name_that_leads_elsewhere_after_the_check() {
    let inside = Receiver::start(SECRET).await;
    let address = format!("{OUTSIDE}:{}", inside.port);
    let outside = Receiver::on(&address, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
    let url = format!("http://hooks.example:{}/", inside.port);
    let policy = AddressPolicy::parse(["127.0.0.2"]).unwrap();

    // Checks first, and leaves it to the connection to resolve the name again.
    let names = NameServer::start(vec![vec![OUTSIDE], vec![INSIDE]]).await;
    let resolver = Resolver(names.address);
    let checked = resolver.ask("hooks.example").await.unwrap()[0];
    policy.check_addr(checked.into(), inside.port, "hooks.example").expect("it leads outside");
    let dialled = resolver.ask("hooks.example").await.unwrap()[0];
    assert!(get_unguarded((dialled, inside.port), "GET / HTTP/1.1").await.unwrap().ends_with("secret"));
    assert_eq!(inside.connections(), 1);

    // One question for each connection, and the connection goes to the address that was checked.
    let names = NameServer::start(vec![vec![OUTSIDE], vec![INSIDE]]).await;
    let client = guarded(&names);
    assert_eq!(get(&client, &url, 0).await.unwrap(), "ok");
    assert_eq!(names.asked(), 1);
    // The kept connection cannot lead elsewhere; a new one is checked anew.
    assert_eq!(get(&client, &url, 0).await.unwrap(), "ok");
    assert_stopped(get(&guarded(&names), &url, 0).await, &url);
    assert_eq!((inside.connections(), outside.connections()), (1, 1));
}

/// The server outside is what it seems, and redirects to one inside, or to one that should not get the credentials.
#[tokio::test]
async fn a_redirect_that_leads_inside_or_takes_credentials_along() {
    let inside = Receiver::start(SECRET).await;
    let names = NameServer::start(vec![vec![INSIDE]]).await;
    for location in [
        format!("http://{INSIDE}:{}/", inside.port),
        format!("http://metadata.example:{}/", inside.port),
        format!("//{INSIDE}:{}/", inside.port),
        format!("http://[::ffff:127.0.0.1]:{}/", inside.port),
        format!("http://2130706433:{}/", inside.port),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
    ] {
        let answer = format!("HTTP/1.1 302 Found\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        let outside = Receiver::on("127.0.0.2:0", answer.leak()).await.unwrap();
        let url = format!("http://127.0.0.2:{}/", outside.port);
        assert_stopped(get(&guarded(&names), &url, 3).await, &location);
        // Without being asked, no redirect is followed.
        assert_eq!(get(&guarded(&names), &url, 0).await.unwrap(), "");
    }
    assert_eq!(inside.connections(), 0);
    // A client that dials what it is told to follows the first of them inside.
    let answer =
        format!("HTTP/1.1 302 Found\r\nlocation: http://{INSIDE}:{}/\r\ncontent-length: 0\r\n\r\n", inside.port);
    let outside = Receiver::on("127.0.0.2:0", answer.leak()).await.unwrap();
    let anything = Client::builder().policy(AddressPolicy::any()).build().unwrap();
    assert_eq!(get(&anything, &format!("http://127.0.0.2:{}/", outside.port), 3).await.unwrap(), "secret");
    assert_eq!(inside.connections(), 1);

    let mut other = Receiver::on("127.0.0.3:0", SECRET).await.unwrap();
    let answer =
        format!("HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.3:{}/\r\ncontent-length: 0\r\n\r\n", other.port);
    let mut outside = Receiver::on("127.0.0.2:0", answer.leak()).await.unwrap();
    assert_eq!(get(&guarded(&names), &format!("http://127.0.0.2:{}/", outside.port), 3).await.unwrap(), "secret");
    assert!(outside.request().await.contains("authorization: Bearer t0ken"));
    let taken_along = other.request().await;
    assert!(!taken_along.contains("t0ken"), "{taken_along}");
}

/// Hosts that mean an address inside to some parser or resolver.
#[tokio::test]
async fn a_host_that_is_an_address_in_disguise() {
    let inside = Receiver::start(SECRET).await;
    let port = inside.port;
    // The resolver of the system takes these for 127.0.0.1, and so does every client that asks it.
    let mut reached = 0;
    for host in ["0x7f.1", "0x7f000001", "2130706433", "0177.1", "0177.0.0.1", "127.1", "0.0.0.0", "0"] {
        if get_unguarded((host, port), "GET / HTTP/1.1").await.is_ok_and(|answer| answer.ends_with("secret")) {
            reached += 1;
        }
    }
    let mapped: SocketAddr = format!("[::ffff:127.0.0.1]:{port}").parse().unwrap();
    if get_unguarded(mapped, "GET / HTTP/1.1").await.is_ok_and(|answer| answer.ends_with("secret")) {
        reached += 1;
    }
    assert!(reached >= 6, "{reached} of 9 reached the inside without the guard");
    let before = inside.connections();
    let client = Client::builder().build().unwrap();
    for host in [
        "127.0.0.1",
        "0x7f.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "0X7F000001",
        "2130706433",
        "0177.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "127.0.1",
        "127.000.000.001",
        "0.0.0.0",
        "0",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[2002:7f00:1::]",
        "[::1%25lo]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "168.63.129.16",
        "100.64.0.1",
        "100.127.255.254",
        "100.100.100.200",
        "192.0.0.192",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "localhost",
        "LocalHost",
    ] {
        let url = format!("http://{host}:{port}/");
        assert_stopped(get(&client, &url, 3).await, &url);
    }
    assert_eq!(inside.connections(), before);
}

/// URLs that two readers take for two hosts: a filter for the one, the dialler for the other.
#[tokio::test]
async fn a_url_that_reads_differently_to_a_filter() {
    let inside = Receiver::start(SECRET).await;
    let port = inside.port;
    // A filter that looks at how the URL begins, and a library that reads it as RFC 3986 says.
    let tricked = format!("http://hooks.example@127.0.0.1:{port}/");
    assert!(tricked.starts_with("http://hooks.example"));
    let uri: Uri = tricked.parse().unwrap();
    let (host, read_port) = (uri.host().unwrap(), uri.port_u16().unwrap());
    assert!(get_unguarded((host, read_port), "GET / HTTP/1.1").await.unwrap().ends_with("secret"));
    // Letters that IDNA maps to ASCII: what is compared before the mapping is not what is dialled after it.
    let mapped: String =
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ".chars().map(|letter| char::from_u32(letter as u32 - 'ⓐ' as u32 + 'a' as u32).unwrap()).collect();
    assert!(
        get_unguarded((mapped.as_str(), port), "GET / HTTP/1.1").await.is_ok_and(|answer| answer.ends_with("secret"))
    );
    let before = inside.connections();
    // Every name leads inside, too.
    let names = NameServer::start(vec![vec![INSIDE]]).await;
    let client = guarded(&names);
    for url in [
        tricked,
        format!("http://user:password@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}\\@hooks.example/"),
        format!("http://hooks.example\\@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}#@hooks.example/"),
        format!("http://hooks.example#@127.0.0.1:{port}/"),
        format!("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:{port}/"),
        format!("http://127。0。0。1:{port}/"),
        format!("http://１２７.0.0.1:{port}/"),
        format!("http://%6c%6f%63alhost:{port}/"),
        format!("http://127.0.0.1%2f@hooks.example:{port}/"),
        format!("http:127.0.0.1:{port}/"),
        format!("//127.0.0.1:{port}/"),
        format!("http:///127.0.0.1:{port}/"),
        format!(" http://127.0.0.1:{port}/"),
        format!("http://127.0.0.1\t:{port}/"),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1/".to_owned(),
        "jar:http://127.0.0.1!/".to_owned(),
    ] {
        assert!(check_url(&url).is_err(), "{url}");
        assert_stopped(get(&client, &url, 0).await, &url);
    }
    assert_eq!(inside.connections(), before);
}

/// a2a-inspector#175: headers of one's own in the request, and what was fetched in the error.
#[tokio::test]
async fn a_line_break_in_a_url_and_a_body_in_an_error() {
    let mut outside = Receiver::on("127.0.0.2:0", SECRET).await.unwrap();
    let path = "/a HTTP/1.1\r\nx-admin: 1\r\nhost: b";
    // Written as it is, it becomes a header.
    get_unguarded(("127.0.0.2", outside.port), &format!("GET {path}")).await.unwrap();
    assert!(outside.request().await.contains("\r\nx-admin: 1\r\n"));
    let url = format!("http://127.0.0.2:{}{path}", outside.port);
    assert!(check_url(&url).is_err() && Request::get(&url).body(()).is_err());
    let names = NameServer::start(vec![vec![OUTSIDE]]).await;
    let limits = RequestLimits { body_bytes_max: Some(3), ..RequestLimits::default() };
    let url = format!("http://127.0.0.2:{}/a%0d%0ax-admin:1", outside.port);
    let answer = guarded(&names).send(Request::get(url).body(Bytes::new()).unwrap(), &limits).await.unwrap();
    let cut = answer.into_body().bytes().await.unwrap_err();
    assert!(!cut.to_string().contains("sec"), "{cut}");
    let asked = outside.request().await;
    assert!(asked.starts_with("GET /a%0d%0ax-admin:1 HTTP/1.1\r\n") && !asked.contains("\nx-admin"), "{asked}");
}

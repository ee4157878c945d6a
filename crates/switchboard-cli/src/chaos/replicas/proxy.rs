//! The way of a server to its database, which can be cut: connections hang, with their bytes held back, or break.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::super::crew::Crew;

/// How a way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// Nothing gets through, and nothing is lost: what was on its way arrives later.
    Hangs,
    /// Connections end, and no new ones are made.
    Broken,
}

/// A way that is kept open by a crew.
pub(super) struct Way {
    state: watch::Sender<State>,
    pub(super) addr: SocketAddr,
}

impl Way {
    /// Opens a way to this host and port.
    pub(super) async fn open(to: String, crew: &mut Crew) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let (state, seen) = watch::channel(State::Open);
        let addr = listener.local_addr()?;
        crew.add(serve(listener, to, seen));
        Ok(Self { state, addr })
    }

    pub(super) fn set(&self, state: State) {
        self.state.send_replace(state);
    }
}

async fn serve(listener: TcpListener, to: String, state: watch::Receiver<State>) {
    let mut connections = Crew::new();
    loop {
        tokio::select! {
            biased;
            () = connections.someone_leaves() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => connections.add(connect(stream, to.clone(), state.clone())),
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            },
        }
    }
}

async fn connect(near: TcpStream, to: String, state: watch::Receiver<State>) {
    if *state.borrow() == State::Broken {
        return;
    }
    let Ok(far) = TcpStream::connect(&to).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let (near_read, near_write) = near.into_split();
    let (far_read, far_write) = far.into_split();
    // When one direction ends, both do.
    tokio::select! {
        () = pass(near_read, far_write, state.clone()) => {}
        () = pass(far_read, near_write, state) => {}
    }
}

/// Passes bytes on while the way is open.
async fn pass(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut state: watch::Receiver<State>) {
    let mut bytes = vec![0; 16 << 10];
    loop {
        match state.wait_for(|state| *state != State::Hangs).await.map(|state| *state) {
            Ok(State::Open) => {}
            Ok(_) | Err(_) => return,
        }
        tokio::select! {
            biased;
            _ = state.changed() => {}
            read = from.read(&mut bytes) => match read {
                Ok(count) if count > 0 && to.write_all(&bytes[..count]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}

/// Where an address of PostgreSQL leads, and the address with a place for another host and port, if a way can be put in between: a
/// single host on this machine, and nothing that names the host for TLS.
pub(super) fn divide(url: &str) -> Option<(String, [String; 2])> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_near = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
    if !is_near || tail.contains("sslmode=require") || tail.contains("host=") {
        return None;
    }
    let to = if host.contains("]:") || (!host.ends_with(']') && host.contains(':')) {
        host.to_owned()
    } else {
        format!("{host}:5432")
    };
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    Some((to, [format!("{scheme}://{user}"), tail.to_owned()]))
}

#[cfg(test)]
mod tests {
    use super::divide;

    #[test]
    fn an_address_of_this_machine_is_led_another_way() {
        let divided = |url| divide(url).map(|(to, [before, after])| format!("{to} {before}X{after}"));
        let expected = "127.0.0.1:5433 postgres://u:p@X/db?connect_timeout=3";
        assert_eq!(divided("postgres://u:p@127.0.0.1:5433/db?connect_timeout=3").as_deref(), Some(expected));
        assert_eq!(divided("postgres://localhost").as_deref(), Some("localhost:5432 postgres://X"));
        for other in
            ["postgres://u@db.example/db", "postgres://u@localhost/db?sslmode=require", "postgres:///db?host=/run", "x"]
        {
            assert_eq!(divided(other), None, "{other}");
        }
    }
}

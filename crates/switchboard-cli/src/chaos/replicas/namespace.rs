//! A network between a server and its database that can be cut as a cable can: a network namespace, in which the proxy of the link listens,
//! and a pair of virtual interfaces that leads there. While the interface is down, the kernel drops packets and tells neither side.
//!
//! This takes the rights of an administrator and the program `ip`, and is done where both are there.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use tokio::process::Command;

/// Addresses that are set aside for tests of networks (RFC 2544), so that nothing else here has them.
const NETWORK: [u8; 2] = [198, 18];

pub(super) struct Namespace {
    name: String,
    /// The interface on the side of the server.
    interface: String,
    /// Where the proxy listens.
    pub(super) addr: SocketAddr,
}

impl Namespace {
    /// Makes the network of the server with this number, counted from 1, and a port in it.
    ///
    /// # Errors
    /// When it is not permitted here, with what the system says.
    pub(super) async fn make(number: u8) -> Result<(Self, TcpListener), String> {
        let process = std::process::id();
        let (name, interface) = (format!("chaos-{process}-{number}"), format!("c{process:x}s{number}"));
        let far = format!("c{process:x}d{number}");
        // Four addresses for each network: its own, the server's, the proxy's, and that of all.
        let place = number.saturating_mul(4);
        let third = u8::try_from(process % 251).unwrap_or(0);
        let address = |last: u8| Ipv4Addr::new(NETWORK[0], NETWORK[1], third, place.saturating_add(last));
        let (near_address, far_address) = (format!("{}/30", address(1)), format!("{}/30", address(2)));
        let (near, inside) = (interface.as_str(), name.as_str());
        ip(&["netns", "add", inside]).await?;
        // From here on it is removed when it is dropped.
        let mut made = Self { name: name.clone(), interface: interface.clone(), addr: (address(2), 0).into() };
        ip(&["link", "add", near, "type", "veth", "peer", "name", &far, "netns", inside]).await?;
        ip(&["addr", "add", &near_address, "dev", near]).await?;
        ip(&["link", "set", "dev", near, "up"]).await?;
        ip(&["-n", inside, "addr", "add", &far_address, "dev", &far]).await?;
        ip(&["-n", inside, "link", "set", "dev", &far, "up"]).await?;
        let listener = listen_inside(inside, made.addr).map_err(|error| format!("no port in a namespace: {error}"))?;
        made.addr = listener.local_addr().map_err(|error| error.to_string())?;
        Ok((made, listener))
    }

    /// Takes the interface down, or up again.
    pub(super) async fn set(&self, is_up: bool) -> Result<(), String> {
        ip(&["link", "set", "dev", &self.interface, if is_up { "up" } else { "down" }]).await
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Its interfaces go with it.
        let _ = std::process::Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

async fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).kill_on_drop(true).output().await;
    let output = output.map_err(|error| format!("the program ip cannot be run: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// A port in a namespace. A socket stays in the namespace in which it was made, so only the thread that makes it goes there.
#[cfg(target_os = "linux")]
fn listen_inside(name: &str, addr: SocketAddr) -> io::Result<TcpListener> {
    use std::os::fd::AsFd as _;

    use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

    let namespace = std::fs::File::open(format!("/run/netns/{name}"))?;
    let listening = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    let listened = std::thread::scope(|scope| scope.spawn(listening).join());
    listened.unwrap_or_else(|_| Err(io::Error::other("the thread that makes the port has ended")))
}

#[cfg(not(target_os = "linux"))]
fn listen_inside(_: &str, _: SocketAddr) -> io::Result<TcpListener> {
    Err(io::ErrorKind::Unsupported.into())
}

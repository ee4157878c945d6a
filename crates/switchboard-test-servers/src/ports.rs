//! Addresses for servers that are started by name of their port, some of them again and again.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

/// Below the ports that Linux gives to whoever asks for any: one of those may be given away while its server is not up. Above those of
/// `switchboard chaos`, which chooses by itself.
const PORTS: RangeInclusive<u16> = 30_001..=32_767;

/// What this process has been given.
struct Given {
    /// A socket of UDP for each port, which no server here uses: another process cannot bind it, and looks for another port. They are freed
    /// when this process ends, however that happens.
    reserved: Vec<UdpSocket>,
    /// The next port to try.
    next: u16,
}

/// An address that nobody listens on, and that is given to nobody else as long as this process runs: not to another caller here, not to
/// another process of tests, and not to one that asks the system for any port.
///
/// # Panics
/// When no port is free.
#[must_use]
pub fn free_addr() -> SocketAddr {
    static GIVEN: Mutex<Option<Given>> = Mutex::new(None);
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    // Processes begin at different ports, so that they rarely meet.
    let first =
        || PORTS.start() + u16::try_from(std::process::id() % u32::from(PORTS.end() - PORTS.start())).unwrap_or(0);
    let given = given.get_or_insert_with(|| Given { reserved: Vec::new(), next: first() });
    for _ in PORTS {
        let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, given.next));
        given.next = if given.next == *PORTS.end() { *PORTS.start() } else { given.next + 1 };
        let Ok(reserved) = UdpSocket::bind(addr) else { continue };
        if TcpListener::bind(addr).is_ok() {
            given.reserved.push(reserved);
            return addr;
        }
    }
    panic!("none of the ports {PORTS:?} is free")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::{PORTS, free_addr};

    #[test]
    fn each_address_is_given_once_and_nobody_listens_there() {
        let mut given: Vec<_> = (0..100).map(|_| free_addr()).collect();
        assert!(given.iter().all(|addr| PORTS.contains(&addr.port()) && TcpListener::bind(addr).is_ok()));
        given.sort();
        given.dedup();
        assert_eq!(given.len(), 100);
    }
}

//! A proxy that breaks connections: each is cut after as many bytes of the answer as the test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    listener: TcpListener,
}

impl Proxy {
    /// Takes a port, so that a server can be told about it.
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self { address: listener.local_addr().unwrap(), listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Begins to pass connections on. `bytes_of` is told the number of the connection, from 0, and says after how many bytes of
    /// answers it is cut; none never.
    pub(crate) fn start(
        self,
        to: SocketAddr,
        bytes_of: impl Fn(usize) -> Option<usize> + Send + Sync + 'static,
    ) -> Arc<AtomicUsize> {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = count.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = self.listener.accept().await {
                let bytes_max = bytes_of(counter.fetch_add(1, Ordering::SeqCst));
                tokio::spawn(pass(client, to, bytes_max));
            }
        });
        count
    }
}

async fn pass(client: TcpStream, to: SocketAddr, bytes_max: Option<usize>) {
    let server = TcpStream::connect(to).await.unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async { drop(tokio::io::copy(&mut from_client, &mut to_server).await) };
    let answering = async {
        let mut left = bytes_max.unwrap_or(usize::MAX);
        let mut buffer = [0; 64];
        while left > 0 {
            let length = from_server.read(&mut buffer).await.unwrap_or(0).min(left);
            if length == 0 || to_client.write_all(&buffer[..length]).await.is_err() {
                return;
            }
            left -= length;
        }
    };
    tokio::select! {
        () = answering => {}
        () = asking => {}
    }
}

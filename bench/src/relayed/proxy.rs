//! The plain reverse proxy: hyper on both sides, one connection to the upstream for each of its own. It passes heads and bodies on as
//! they come, and knows nothing of A2A.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

pub(super) async fn serve(listen: SocketAddr, to: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (near, _) = listener.accept().await?;
        near.set_nodelay(true)?;
        tokio::spawn(async move {
            let upstream = Arc::new(Mutex::new(None));
            let service = service_fn(|request| pass(request, to, upstream.clone()));
            // A client that leaves ends its connection.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(near), service).await;
        });
    }
}

/// The connection to the upstream, once there is one.
type Upstream = Arc<Mutex<Option<SendRequest<Incoming>>>>;

async fn pass(request: Request<Incoming>, to: SocketAddr, upstream: Upstream) -> Result<Response<Incoming>> {
    let mut upstream = upstream.lock().await;
    let is_open = match upstream.as_mut() {
        Some(open) => open.ready().await.is_ok(),
        None => false,
    };
    if !is_open {
        *upstream = Some(connect(to).await?);
    }
    let connection = upstream.as_mut().context("there is a connection")?;
    Ok(connection.send_request(request).await?)
}

async fn connect(to: SocketAddr) -> Result<SendRequest<Incoming>> {
    let far = TcpStream::connect(to).await?;
    far.set_nodelay(true)?;
    let (connection, driver) = hyper::client::conn::http1::handshake(TokioIo::new(far)).await?;
    tokio::spawn(driver);
    Ok(connection)
}

//! Certificates of TLS clients: who is let in by one, and what holds for clients without.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use switchboard::model::SecurityRequirement;
use switchboard::{Server, ServerBuilder, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

use crate::support::callers::soon;
use crate::support::edge::{echo, get, message, post, with};
use crate::support::grpc::Served;
use crate::support::tls::{FIRST, Http1, Http2, Pair, SECOND, connect, connected, tls};

const AUTHORITY: &str = include_str!("../../../certificates/authority.cert.pem");
const CLIENT: Pair =
    [include_str!("../../../certificates/client.cert.pem"), include_str!("../../../certificates/client.key.pem")];
const PLAIN: Pair =
    [include_str!("../../../certificates/plain.cert.pem"), include_str!("../../../certificates/plain.key.pem")];
const CARD: &str = "/.well-known/agent-card.json";

fn builder() -> ServerBuilder {
    Server::builder().agent(echo()).tls(tls(FIRST).with_client_authority(AUTHORITY.as_bytes()).unwrap())
}

/// A client that shows a certificate.
fn showing([certificate, key]: Pair, protocol: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(FIRST[0].as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn a_certificate_proves_its_holder_on_every_request_of_a_connection() {
    let served = Served::start(builder()).await;
    let mut client = Http1::over(connect(served.address, &showing(CLIENT, "http/1.1")).await.unwrap()).await;
    let sent = client.ask(post("/message:send", message("hi").to_string())).await.json();
    let path = format!("/tasks/{}", sent["task"]["id"].as_str().unwrap());
    assert_eq!(client.ask(get(&path)).await.status, 200);
    let mut same = Http2::over(connect(served.address, &showing(CLIENT, "h2")).await.unwrap()).await;
    assert_eq!(same.ask(get(&path)).await.status, 200);
    let mut other = Http1::over(connect(served.address, &showing(PLAIN, "http/1.1")).await.unwrap()).await;
    assert_eq!(other.ask(get(&path)).await.gist(), "404 TASK_NOT_FOUND", "each has their own");
}

#[tokio::test]
async fn without_a_certificate_only_the_card_is_to_be_had() {
    let served = Served::start(builder()).await;
    let mut nobody = Http1::over(connected(served.address, FIRST, &["http/1.1"]).await).await;
    let card = nobody.ask(get(CARD)).await.json();
    assert!(card["securitySchemes"]["mtls"]["mtlsSecurityScheme"].is_object(), "{card}");
    assert_eq!(card["securityRequirements"], json!([{"schemes": {"mtls": {}}}]));
    let refused = nobody.ask(get("/tasks")).await;
    assert_eq!(refused.gist(), "401 UNAUTHENTICATED");
    assert_eq!(refused.header("www-authenticate"), "Certificate realm=\"switchboard\"");
}

#[tokio::test]
async fn a_certificate_of_another_authority_ends_the_connection() {
    let served = Served::start(builder()).await;
    // With TLS 1.3 a client learns it when it first reads.
    let read = async {
        let mut stream = connect(served.address, &showing(SECOND, "http/1.1")).await?;
        stream.write_all(b"GET /tasks HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let error = soon(read).await.expect_err("nothing is answered").to_string();
    assert!(error.contains("UnknownCA") || error.contains("alert"), "{error}");
}

#[tokio::test]
async fn a_certificate_and_a_token_can_be_required_together() {
    let tokens = Tokens::parse("a-token-of-alice-for-tests alice\n").unwrap();
    let both = SecurityRequirement { schemes: vec![("bearer".to_owned(), vec![]), ("mtls".to_owned(), vec![])] };
    let served = Served::start(builder().tokens(tokens).require(both)).await;
    let mut known = Http1::over(connect(served.address, &showing(CLIENT, "http/1.1")).await.unwrap()).await;
    let mut nobody = Http1::over(connected(served.address, FIRST, &["http/1.1"]).await).await;
    let asked = || with(get("/tasks"), "authorization", "Bearer a-token-of-alice-for-tests");
    assert_eq!(known.ask(asked()).await.status, 200);
    assert_eq!(known.ask(get("/tasks")).await.status, 401);
    assert_eq!(nobody.ask(asked()).await.status, 401);
}

#[test]
fn what_is_no_authority_is_refused() {
    for (pem, why) in [("", "is empty"), (CLIENT[1], "holds a private key and no certificate")] {
        let error = tls(FIRST).with_client_authority(pem.as_bytes()).unwrap_err();
        assert!(error.to_string().starts_with(&format!("the authority for clients {why}")), "{error}");
    }
}

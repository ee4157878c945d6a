//! Certificates: verified unless told otherwise, shown to servers that ask for one, and warned about.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use crate::support::{Cli, DemoServer, TlsServer, card, task, write};

fn certificate(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/certificates");
    folder.join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_certificate_that_is_not_trusted_is_refused_unless_told_otherwise() {
    let server = TlsServer::start(&certificate("first.cert.pem"), &certificate("first.key.pem"));
    let cli = Cli::new().with("A2ACLI_AGENT_CARD", &server.url);
    let ran = cli.run(&["send", "hello"]);
    assert_eq!((ran.code, ran.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{ran:?}");
    for transport in ["jsonrpc", "grpc"] {
        let ran = cli.run(&["send", "hello", "--insecure", "--transport", transport]).succeeded();
        assert!(ran.stderr.contains("Warning: certificates are not verified (flag --insecure)"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("CREDENTIALS"));
    }
    let ran = cli.run(&["send", "hello", "--insecure", "--bearer", "s3cret"]).succeeded();
    assert!(ran.stderr.contains("Warning: CREDENTIALS") && !ran.stderr.contains("s3cret"), "{}", ran.stderr);
    let by_variable = Cli::new().with("A2ACLI_AGENT_CARD", &server.url).with("A2ACLI_INSECURE", "true");
    assert!(by_variable.run(&["send", "hello"]).succeeded().stderr.contains("variable A2ACLI_INSECURE"));
}

/// A server with the certificate `first` that talks only to those who show the certificate `second`.
fn server_that_asks_for_a_certificate() -> ServerConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate("second.cert.pem")).unwrap()).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build().unwrap();
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_file(certificate("first.cert.pem")).unwrap()],
            PrivateKeyDer::from_pem_file(certificate("first.key.pem")).unwrap(),
        )
        .unwrap()
}

/// An agent behind it; gives its URL.
fn agent_that_asks_for_a_certificate() -> String {
    let config = server_that_asks_for_a_certificate();
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut reader = BufReader::new(StreamOwned::new(connection, stream));
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            let request: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
            let answer =
                json!({ "jsonrpc": "2.0", "id": request["id"], "result": task("TASK_STATE_COMPLETED") }).to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            let _ = reader.get_mut().write_all(format!("{head}{answer}").as_bytes());
            reader.get_mut().conn.send_close_notify();
            let _ = reader.get_mut().flush();
        }
    });
    url
}

#[test]
fn a_server_that_asks_for_a_certificate_is_shown_the_one_of_the_user() {
    let url = agent_that_asks_for_a_certificate();
    let cli = Cli::new();
    let mut card = card(&url, false);
    card["securitySchemes"] = json!({ "m": { "mtlsSecurityScheme": {} } });
    card["securityRequirements"] = json!([{ "schemes": { "m": { "list": [] } } }]);
    let card = write(&cli.folder(), "card.json", &card.to_string());
    let cli = cli.with("A2ACLI_AGENT_CARD", &card).with("A2ACLI_CA_CERT", &certificate("first.cert.pem"));
    let without = cli.run(&["task", "get", "t-1"]);
    assert_eq!((without.code, without.error_code().as_str()), (4, "A2ACLI_ERR_CREDENTIALS_MISSING"), "{without:?}");
    let (cert, key) = (certificate("second.cert.pem"), certificate("second.key.pem"));
    let ran = cli.run(&["task", "get", "t-1", "--client-cert", &cert, "--client-key", &key]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
    assert_eq!(cli.run(&["task", "get", "t-1", "--client-cert", &cert]).code, 2);
    // The server does not know this one.
    let (cert, key) = (certificate("named.cert.pem"), certificate("named.key.pem"));
    let other = cli.run(&["task", "get", "t-1", "--client-cert", &cert, "--client-key", &key]);
    assert_eq!((other.code, other.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{other:?}");
}

/// Stands before a server that speaks without TLS, over HTTP/2, and asks for the certificate in its place; gives its URL.
fn in_front_of(server: &str) -> String {
    let server = server.trim_start_matches("http://").to_owned();
    let mut config = server_that_asks_for_a_certificate();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut outside) = acceptor.accept(stream).await else { continue };
                let Ok(mut inside) = tokio::net::TcpStream::connect(&server).await else { continue };
                let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
            }
        });
    });
    url
}

#[test]
fn over_grpc_the_certificate_of_the_user_is_shown_as_well() {
    let server = DemoServer::start();
    let url = in_front_of(&server.url);
    let cli = Cli::new();
    let mut card = card(&url, true);
    card["supportedInterfaces"] = json!([{ "url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0" }]);
    let card = write(&cli.folder(), "card.json", &card.to_string());
    let cli = cli.with("A2ACLI_AGENT_CARD", &card).with("A2ACLI_CA_CERT", &certificate("first.cert.pem"));
    let without = cli.run(&["send", "hello"]);
    assert_eq!((without.code, without.error_code().as_str()), (3, "A2ACLI_ERR_UNREACHABLE"), "{without:?}");
    let (cert, key) = (certificate("second.cert.pem"), certificate("second.key.pem"));
    let ran = cli.run(&["send", "hello", "--client-cert", &cert, "--client-key", &key]).succeeded();
    assert_eq!(ran.field("State"), "TASK_STATE_COMPLETED");
}

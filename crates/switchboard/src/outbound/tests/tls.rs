//! TLS: whose certificate is good enough, and for which name.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{WantsServerCert, WebPkiClientVerifier};
use rustls::{ConfigBuilder, RootCertStore, ServerConfig, ServerConnection, WantsVerifier};
use switchboard_core::call::BoxFuture;

use super::{ErrorKind, Resolve, assert_failed, client, client_with, post};
use crate::outbound::{AddressPolicy, Client, TlsFault, Trust};

/// Self-signed for `receiver.test`, good from 2024 to 2124. It and its key guard nothing.
const CERTIFICATE: &str = "\
    3082016b30820110a003020102020101300a06082a8648ce3d04030230183116301406035504030c0d72656365697665722e7465737430\
    20170d3234303130313030303030305a180f32313234303130313030303030305a30183116301406035504030c0d72656365697665722e\
    746573743059301306072a8648ce3d020106082a8648ce3d03010703420004bc2ba3afc5458eae83f126ac91785a3be24696be33f3b862\
    a6a7afab6e97f687a0d0eea7487ec9e036bc78fa4279510107674dd3da6935f42ead8b46fb06a84da349304730180603551d110411300f\
    820d72656365697665722e74657374300c0603551d130101ff04023000301d0603551d0e041604141db0e4e880f769fa96b53248deeba4\
    905173da50300a06082a8648ce3d0403020349003046022100fa5990fd1f6b50dbbcecf5e9b92f266181b6244b093793d656ec2e2fcc39\
    be84022100d02aa84bc6d2bcee316e659c6cfecc43118ffcb41f61ccc2af1b1ba7bc5e41e0";
const KEY: &str = "\
    308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420e8d08ef6e084cabda12015576172c1b990c056\
    f7e41a516fd7ab82579beb7b2da14403420004bc2ba3afc5458eae83f126ac91785a3be24696be33f3b862a6a7afab6e97f687a0d0eea7\
    487ec9e036bc78fa4279510107674dd3da6935f42ead8b46fb06a84d";

fn bytes(hex: &str) -> Vec<u8> {
    hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// Leads every name to one place.
struct To(SocketAddr);

impl Resolve for To {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, std::io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Ok(vec![self.0]) })
    }
}

/// Takes one connection and answers one request, if the client gets that far.
fn tls_receiver() -> SocketAddr {
    receiver_with(|builder| builder.with_no_client_auth())
}

/// The same, and it demands the certificate of the client.
fn mutual_tls_receiver() -> SocketAddr {
    receiver_with(|builder| {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(trusting()), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    })
}

#[expect(clippy::disallowed_methods, reason = "the thread ends with its one connection")]
fn receiver_with(
    decide: impl FnOnce(ConfigBuilder<ServerConfig, WantsVerifier>) -> ConfigBuilder<ServerConfig, WantsServerCert>,
) -> SocketAddr {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(bytes(KEY)));
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let config = decide(builder.with_safe_default_protocol_versions().unwrap())
        .with_single_cert(vec![CertificateDer::from(bytes(CERTIFICATE))], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = rustls::Stream::new(&mut connection, &mut socket);
        if stream.read(&mut [0; 4_096]).is_ok() {
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n");
        }
    });
    address
}

fn trusting() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(bytes(CERTIFICATE))).unwrap();
    roots
}

#[tokio::test]
async fn the_certificate_is_held_against_the_name_in_the_url() {
    let trusts = |address| client_with(&["127.0.0.0/8"], To(address), trusting());
    assert_eq!(post(&trusts(tls_receiver()), "https://receiver.test/").await.unwrap(), 204);
    let other = post(&trusts(tls_receiver()), "https://other.test/").await;
    let why = "the certificate of other.test is not valid: it names another host";
    assert_failed(other, ErrorKind::Tls(TlsFault::WrongName), why);
}

#[tokio::test]
async fn a_certificate_that_vouches_for_itself_is_not_enough() {
    let address = tls_receiver();
    let outcome = post(&client(&["127.0.0.0/8"]), format!("https://{address}/")).await;
    let why = "the certificate of 127.0.0.1 is not valid: no known authority issued it";
    assert_failed(outcome, ErrorKind::Tls(TlsFault::UnknownIssuer), why);
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the thread ends with its one connection")]
async fn tls_to_a_port_that_does_not_speak_it_fails_without_quoting() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.write_all(b"220 inside.example ready\r\n");
        let _ = socket.read(&mut [0; 4_096]);
    });
    let outcome = post(&client(&["127.0.0.0/8"]), format!("https://{address}/")).await;
    assert_failed(outcome, ErrorKind::Tls(TlsFault::NotTls), "127.0.0.1 does not speak TLS");
}

/// A certificate as a file.
fn pem_file(folder: &tempfile::TempDir, certificate: &[u8]) -> std::path::PathBuf {
    pem_file_of(folder, "CERTIFICATE", certificate)
}

fn pem_file_of(folder: &tempfile::TempDir, kind: &str, content: &[u8]) -> std::path::PathBuf {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(content);
    let file = folder.path().join(format!("{kind}.pem"));
    std::fs::write(&file, format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")).unwrap();
    file
}

#[tokio::test]
async fn a_file_of_authorities_is_trusted_for_the_names_they_vouch_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = pem_file(&folder, &bytes(CERTIFICATE));
    for trust in [Trust::Authorities(file.clone()), Trust::PublicAuthoritiesAnd(file.clone())] {
        let policy = AddressPolicy::any();
        let client = Client::assemble(policy, Arc::new(To(tls_receiver())), trust.tls().unwrap());
        assert_eq!(post(&client, "https://receiver.test/").await.unwrap(), 204);
        let client = Client::builder().policy(AddressPolicy::any()).trust(trust).build().unwrap();
        let outcome = post(&client, format!("https://{}/", tls_receiver())).await;
        let why = "the certificate of 127.0.0.1 is not valid: it names another host";
        assert_failed(outcome, ErrorKind::Tls(TlsFault::WrongName), why);
    }
}

#[tokio::test]
async fn one_certificate_is_trusted_by_any_name_and_no_other_is() {
    let folder = tempfile::tempdir().unwrap();
    let pinned = |file| Client::builder().policy(AddressPolicy::any()).trust(Trust::Certificate(file)).build();
    let client = pinned(pem_file(&folder, &bytes(CERTIFICATE))).unwrap();
    assert_eq!(post(&client, format!("https://{}/", tls_receiver())).await.unwrap(), 204);

    let mut other = bytes(CERTIFICATE);
    let last = other.len() - 1;
    other[last] ^= 1;
    let outcome = post(&pinned(pem_file(&folder, &other)).unwrap(), format!("https://{}/", tls_receiver())).await;
    let why = "the certificate of 127.0.0.1 is not valid: it is not the one that is trusted";
    assert_failed(outcome, ErrorKind::Tls(TlsFault::NotPinned), why);

    let missing = folder.path().join("none.pem");
    let error = pinned(missing.clone()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: cannot be read as certificates: ", missing.display())), "{error}");
}

#[tokio::test]
async fn a_server_that_asks_for_a_certificate_is_shown_one() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (pem_file(&folder, &bytes(CERTIFICATE)), pem_file_of(&folder, "PRIVATE KEY", &bytes(KEY)));
    let client = |trust: Trust| Client::builder().policy(AddressPolicy::any()).trust(trust).build();
    let servers = Trust::Certificate(certificate.clone());
    let url = || format!("https://{}/", mutual_tls_receiver());
    let without = post(&client(servers.clone()).unwrap(), url()).await.unwrap_err();
    assert!(!matches!(without.kind(), ErrorKind::Refused), "{without}");
    let with = servers.clone().with_client_certificate(&certificate, &key);
    assert_eq!(post(&client(with.clone()).unwrap(), url()).await.unwrap(), 204);
    // Given twice, the later one counts.
    let twice = with.with_client_certificate("none.pem", "none.pem").with_client_certificate(&certificate, &key);
    assert_eq!(post(&client(twice).unwrap(), url()).await.unwrap(), 204);
    // A server that does not ask is not shown one, and is judged as before.
    let public = Trust::PublicAuthorities.with_client_certificate(&certificate, &key);
    let outcome = post(&client(public).unwrap(), format!("https://{}/", tls_receiver())).await;
    let why = "the certificate of 127.0.0.1 is not valid: no known authority issued it";
    assert_failed(outcome, ErrorKind::Tls(TlsFault::UnknownIssuer), why);

    let swapped = client(servers.clone().with_client_certificate(&key, &certificate)).unwrap_err().to_string();
    assert!(swapped.contains("holds no certificate in PEM form"), "{swapped}");
    let other = aws_lc_rs_key(&folder);
    let unfit = client(servers.with_client_certificate(&certificate, other)).unwrap_err().to_string();
    assert!(unfit.contains("cannot be used as a client certificate"), "{unfit}");
}

/// The file of a key that belongs to no certificate.
fn aws_lc_rs_key(folder: &tempfile::TempDir) -> std::path::PathBuf {
    use ::aws_lc_rs::encoding::AsDer as _;
    use ::aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
    let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
    let der: ::aws_lc_rs::encoding::EcPrivateKeyRfc5915Der<'_> = key.private_key().as_der().unwrap();
    pem_file_of(folder, "EC PRIVATE KEY", der.as_ref())
}

#[tokio::test]
async fn without_verification_every_certificate_is_believed() {
    let trust = Trust::without_verification();
    let client = Client::builder().policy(AddressPolicy::any()).trust(trust.clone()).build().unwrap();
    assert_eq!(post(&client, format!("https://{}/", tls_receiver())).await.unwrap(), 204);
    let client = Client::assemble(AddressPolicy::any(), Arc::new(To(tls_receiver())), trust.tls().unwrap());
    assert_eq!(post(&client, "https://other.test/").await.unwrap(), 204);
}

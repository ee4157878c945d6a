//! Who may connect: users, tokens, credentials by key, and TLS.

use switchboard_engine::contract::hints;
use switchboard_test_servers::Nats;

use super::super::connection::Connection;
use super::super::credentials::Credentials;
use super::super::credentials::tests::{file, operated, seed};
use super::super::options::NatsOptions;
use super::OnServer;

const CERTIFICATE: &str = include_str!("../../../../../tests/certificates/first.cert.pem");
const KEY: &str = include_str!("../../../../../tests/certificates/first.key.pem");

/// What comes of an attempt to connect.
fn attempt(options: &NatsOptions) -> Result<(), String> {
    let place = options.place("group").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Connection::make(&place, &place.servers[0])).map(drop)
}

#[test]
#[ignore = "starts NATS"]
fn a_user_with_its_password_and_no_other_may_connect() {
    let server = Nats::start_with("authorization { user: switch, password: \"b:o@rd\" }");
    let at = |login: &str| NatsOptions::new(format!("nats://{login}{}", server.host()));
    let good = at("switch:b%3Ao%40rd@");
    for bad in ["", "switch:wrong@", "wrong@"] {
        let why = attempt(&at(bad)).unwrap_err();
        assert!(why.contains("refused the user, the token or the credentials"), "{bad}: {why}");
    }
    attempt(&good).unwrap();
    hints::a_hint_reaches_the_other_and_not_its_sender(&OnServer::new(server, &good));
}

#[test]
#[ignore = "starts NATS"]
fn a_token_is_enough() {
    let server = Nats::start_with("authorization { token: s3cret }");
    attempt(&NatsOptions::new(format!("nats://s3cret@{}", server.host()))).unwrap();
    attempt(&NatsOptions::new(format!("nats://other@{}", server.host()))).unwrap_err();
}

#[test]
#[ignore = "starts NATS"]
fn a_key_signs_what_the_server_asks() {
    let key = Credentials::parse(&seed([9; 32])).unwrap().public_key();
    let server = Nats::start_with(&format!("authorization {{ users: [ {{ nkey: {key} }} ] }}"));
    attempt(&NatsOptions::new(server.url()).credentials(seed([9; 32]))).unwrap();
    attempt(&NatsOptions::new(server.url()).credentials(seed([8; 32]))).unwrap_err();
    attempt(&NatsOptions::new(server.url())).unwrap_err();
}

#[test]
#[ignore = "starts NATS"]
fn a_user_of_an_account_connects_with_its_file_of_credentials() {
    let (config, good) = operated([9; 32]);
    let server = Nats::start_with(&config);
    let options = NatsOptions::new(server.url()).credentials(&good);
    attempt(&options).unwrap();
    // The token of one user, signed for by another.
    let token = good.lines().nth(1).unwrap();
    attempt(&NatsOptions::new(server.url()).credentials(file(token, [8; 32]))).unwrap_err();
    attempt(&NatsOptions::new(server.url()).credentials(seed([9; 32]))).unwrap_err();
    hints::a_hint_reaches_the_other_and_not_its_sender(&OnServer::new(server, &options));
}

#[test]
#[ignore = "starts NATS"]
fn a_user_that_may_not_subscribe_is_told_so() {
    let config = "authorization { users: [ { user: u, password: p, permissions: { subscribe: \"other.>\" } } ] }";
    let server = Nats::start_with(config);
    let why = attempt(&NatsOptions::new(format!("nats://u:p@{}", server.host()))).unwrap_err();
    assert!(why.contains("may not subscribe to the subject of hints"), "{why}");
}

#[test]
#[ignore = "starts NATS"]
fn the_certificate_of_the_server_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, CERTIFICATE).unwrap();
    let server = Nats::start_with_tls(CERTIFICATE, KEY, "");
    let host = server.host().replace("127.0.0.1", "localhost");
    let trusting = format!("?tlsrootcert={}", authority.display());
    // A server that asks for TLS gets it, whatever the scheme.
    attempt(&NatsOptions::new(format!("tls://{host}{trusting}"))).unwrap();
    attempt(&NatsOptions::new(format!("nats://{host}{trusting}"))).unwrap();
    let why = attempt(&NatsOptions::new(format!("tls://{host}"))).unwrap_err();
    assert!(why.contains("certificate is not trusted"), "{why}");
    let why = attempt(&NatsOptions::new(format!("nats://{host}?tls=disable"))).unwrap_err();
    assert!(why.contains("requires TLS"), "{why}");
    let options = NatsOptions::new(format!("tls://{host}{trusting}"));
    hints::a_hint_reaches_the_other_and_not_its_sender(&OnServer::new(server, &options));
}

#[test]
#[ignore = "starts NATS"]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let server = Nats::start();
    let why = attempt(&NatsOptions::new(format!("tls://{}", server.host()))).unwrap_err();
    assert!(why.contains("does not support TLS"), "{why}");
}

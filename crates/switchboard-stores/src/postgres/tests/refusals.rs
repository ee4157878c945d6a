//! What is said about a database that cannot be used: what is wrong, and what to change.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use switchboard_test_servers::Postgres;

use super::super::{PostgresOptions, PostgresStore};
use super::{OnSchema, new_schema, server};

fn refusal(options: PostgresOptions) -> String {
    PostgresStore::open(options).err().expect("it cannot be used").to_string()
}

/// A database user of its own.
fn user(subject: &OnSchema, rights: &str) -> (String, PostgresOptions) {
    let name = format!("user_{}", subject.options.schema);
    subject.sql(&format!("create role {name} login {rights}"));
    (name.clone(), PostgresOptions::new(server().url_of(&name)).schema(new_schema()).readers(1))
}

/// Removes what a test leaves behind outside of its schema.
fn remove_user(subject: &OnSchema, name: &str) {
    subject.sql(&format!("drop owned by {name}; drop role {name}"));
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_that_is_not_there_is_named_so() {
    let refused = refusal(PostgresOptions::new("postgres://nobody:secret@127.0.0.1:1/none"));
    assert!(refused.contains("cannot be reached (connection refused)"), "{refused}");
    assert!(!refused.contains("secret") && !refused.contains("127.0.0.1"), "{refused}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_database_that_does_not_exist_is_named_so() {
    let url = server().url().replace("/postgres", "/absent");
    let refused = refusal(PostgresOptions::new(url.replace("postgres://", "postgresql://")));
    assert!(refused.contains("the database does not exist: create it"), "{refused}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn missing_rights_are_named() {
    let subject = OnSchema::new();
    let (name, options) = user(&subject, "");
    let refused = refusal(options);
    assert!(refused.contains("the user lacks rights: it needs USAGE and CREATE on the schema"), "{refused}");
    remove_user(&subject, &name);
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_that_takes_no_writes_is_named_so() {
    let subject = OnSchema::new();
    let (name, options) = user(&subject, "superuser");
    subject.sql(&format!("alter role {name} set default_transaction_read_only = on"));
    let refused = refusal(options);
    assert!(refused.contains("the server is read-only"), "{refused}");
    remove_user(&subject, &name);
}

#[test]
#[ignore = "starts PostgreSQL"]
fn too_few_connections_are_named_with_what_to_change() {
    let subject = OnSchema::new();
    let (name, options) = user(&subject, "connection limit 1");
    subject.sql(&format!("grant all on database postgres to {name}"));
    let refused = refusal(options);
    assert!(refused.contains("no connection left: raise max_connections"), "{refused}");
    remove_user(&subject, &name);
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_database_of_another_encoding_is_refused() {
    let name = new_schema();
    let _ = server().sql(&format!("create database {name} encoding 'LATIN1' locale 'C' template template0"));
    let refused = refusal(PostgresOptions::new(server().url().replace("/postgres", &format!("/{name}"))));
    assert!(refused.contains("ENCODING 'UTF8'"), "{refused}");
    let _ = server().sql(&format!("drop database {name}"));
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_server_without_tls_is_refused_where_tls_is_asked_for() {
    let refused = refusal(PostgresOptions::new(format!("{}?sslmode=require", server().url())));
    assert!(refused.contains("server does not support TLS"), "{refused}");
}

#[test]
fn an_address_that_cannot_be_read_is_refused_without_being_quoted() {
    for url in ["postgres://user:secret@host:port/db", "postgres://", "postgres://user:secret@host/db?unknown=1"] {
        let refused = refusal(PostgresOptions::new(url));
        assert!(refused.contains("expected postgres://"), "{url}: {refused}");
        assert!(!refused.contains("secret"), "{refused}");
    }
    let refused = refusal(PostgresOptions::new("postgres://user@host/db").schema("a; drop"));
    assert!(refused.contains("expected letters, digits and `_`"), "{refused}");
}

#[test]
#[ignore = "starts PostgreSQL"]
fn a_wrong_password_is_named_and_not_quoted() {
    let server = Postgres::start();
    let _ = server.sql("create role locked login superuser password 'right'");
    // Only this user needs a password.
    let rules = "values ('host all locked 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')";
    let file = server.sql("show hba_file");
    let _ = server.sql(&format!("copy ({rules}) to '{}'", file.trim()));
    let _ = server.sql("select pg_reload_conf()");
    let options = || PostgresOptions::new(server.url_of("locked")).schema(new_schema()).readers(1);
    // The server reads its rules again when it likes.
    let refused = std::iter::repeat_with(|| PostgresStore::open(options().password("hidden")).err()).take(200);
    let refused = refused.flatten().next().expect("the password is asked for").to_string();
    assert!(refused.contains("refused the user name or the password"), "{refused}");
    assert!(!refused.contains("hidden"), "{refused}");
    PostgresStore::open(options().password("right")).unwrap();
}

/// A server that says that it is of this version, and that a session may write.
#[expect(clippy::disallowed_methods, reason = "the thread waits for connections, and ends with the process")]
fn pretend(version: &'static str) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            // A client that leaves ends its connection.
            let _ = introduce(stream, version);
        }
    });
    format!("postgres://somebody@{address}/none")
}

fn introduce(mut stream: TcpStream, version: &str) -> std::io::Result<()> {
    let tagged = |tag: u8, body: &[u8]| {
        let mut bytes = vec![tag];
        bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        bytes.extend_from_slice(body);
        bytes
    };
    let ready = tagged(b'Z', b"I");
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut startup)?;
    let parameter = tagged(b'S', format!("server_version\0{version}\0").as_bytes());
    stream.write_all(&[tagged(b'R', &[0; 4]), parameter, ready.clone()].concat())?;
    loop {
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        let mut body = vec![0; u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4];
        stream.read_exact(&mut body)?;
        // One column of text, with the value `off`: whether a transaction may only read.
        let column = b"\0\x01transaction_read_only\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let row = b"\0\x01\0\0\0\x03off";
        stream
            .write_all(&[tagged(b'T', column), tagged(b'D', row), tagged(b'C', b"SHOW\0"), ready.clone()].concat())?;
    }
}

#[test]
fn a_server_that_is_too_old_is_refused_with_what_is_expected() {
    for version in ["13.14", "9.6.24", "13.14 (Debian 13.14-1)"] {
        let refused = refusal(PostgresOptions::new(pretend(version)));
        assert!(refused.contains(&format!("the server is version {version}; expected 14 or later")), "{refused}");
    }
}

//! What is said about a database that cannot be used: what is wrong, and what to change.

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
    assert!(refused.contains("TLS"), "{refused}");
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

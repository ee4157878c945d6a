//! The secrets of webhooks: encrypted in the file, bound to their row, readable while keys change, and all that a lost key costs.

use std::path::Path;

use rusqlite::Connection;
use switchboard_core::model::{Dialect, PushConfig};
use switchboard_engine::contract::Subject;
use switchboard_engine::contract::given::{RecordWriter, status, webhook};
use switchboard_engine::ports::store::PushChange;

use super::super::secrets::SECRETS_SEALED;
use super::super::{
    FileError, Resealed, SecretKeySource, SecretKeys, SqliteOptions, SqliteStore, reseal, rotate_secret_keys,
    secret_key_file, verify, verify_with_keys,
};
use super::{BEGIN, OnFile, faults_of, quick};

const TOKEN: &str = "a-token-that-nobody-else-may-read";
const CREDENTIALS: &str = "credentials-that-nobody-else-may-read";

/// A store whose key is in a file beside it.
fn beside() -> OnFile {
    OnFile::new(SqliteOptions { secrets: SecretKeySource::Beside, ..quick() })
}

async fn register(subject: &OnFile, task: &str, ids: &[&str]) -> RecordWriter {
    let mut writer = RecordWriter::opened(subject, task).await;
    let mut commit = writer.commit(subject, vec![status(subject, switchboard_core::model::TaskState::Working, None)]);
    for id in ids {
        let mut config = webhook(&writer, id);
        config.token = Some(TOKEN.to_owned());
        if let Some(authentication) = &mut config.authentication {
            authentication.credentials = Some(CREDENTIALS.to_owned());
        }
        commit.push.push(PushChange::Put { config, dialect: Dialect::V1_0, after_seq: 0 });
        std::sync::Arc::make_mut(&mut commit.head).push_configs += 1;
    }
    writer.write(subject, commit).await;
    writer
}

async fn configs(subject: &OnFile, writer: &RecordWriter) -> Vec<PushConfig> {
    let stored = subject.store().head(&writer.scope, &writer.head.id).await.unwrap().expect("it is there");
    subject.store().push_configs(stored.key).await.unwrap()
}

fn secrets_of(config: &PushConfig) -> (Option<&str>, Option<&str>, Option<&str>) {
    let authentication = config.authentication.as_ref();
    (
        config.token.as_deref(),
        authentication.map(|info| info.scheme.as_str()),
        authentication.and_then(|info| info.credentials.as_deref()),
    )
}

const WHOLE: (Option<&str>, Option<&str>, Option<&str>) = (Some(TOKEN), Some("Bearer"), Some(CREDENTIALS));
const LOST: (Option<&str>, Option<&str>, Option<&str>) = (None, None, None);

/// The columns of the file.
fn stored(path: &Path) -> Vec<[String; 2]> {
    let connection = Connection::open(path).unwrap();
    let mut select = connection.prepare("SELECT token, auth_credentials FROM push ORDER BY push_no").unwrap();
    let rows = select.query_map([], |row| Ok([row.get(0)?, row.get(1)?])).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// The files of the database that contain a secret in clear.
fn files_with_secrets(path: &Path) -> Vec<String> {
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|piece| piece == text.as_bytes());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap();
        if holds(&bytes, TOKEN) || holds(&bytes, CREDENTIALS) {
            found.push(file.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[tokio::test]
async fn no_file_holds_a_secret_in_clear_and_deliveries_have_them() {
    let mut subject = beside();
    assert!(!secret_key_file(&subject.path()).exists(), "a file without secrets needs no key");
    let writer = register(&subject, "t", &["a", "b"]).await;
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE, WHOLE]);
    let claimed = subject.store().claim_deliveries(9, 1).await.unwrap();
    assert_eq!(claimed.iter().map(|delivery| secrets_of(&delivery.config)).collect::<Vec<_>>(), [WHOLE, WHOLE]);
    assert_eq!(files_with_secrets(&subject.path()), [] as [String; 0]);
    let rows = stored(&subject.path());
    assert!(rows.iter().flatten().all(|secret| secret.starts_with("sealed1.")), "{rows:?}");
    // The same secret twice is not the same text twice.
    assert_ne!(rows[0][0], rows[1][0]);
    subject.restart();
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE, WHOLE]);
    subject.close();
    assert_eq!(verify(&subject.path(), BEGIN, &mut |_| {}).unwrap().webhooks_without_key, 0);
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_can_read_the_key_and_one_that_others_can_read_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let mut subject = beside();
    register(&subject, "t", &["a"]).await;
    subject.close();
    let file = secret_key_file(&subject.path());
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = SqliteStore::open(&subject.path(), subject.clock.clone(), subject.options.clone()).err().unwrap();
    assert!(matches!(refused, FileError::SecretKeys { .. }), "{refused}");
    assert!(refused.to_string().contains("chmod 600"), "{refused}");
}

#[tokio::test]
async fn a_file_from_before_is_encrypted_when_it_is_opened() {
    let mut subject = beside();
    let writer = register(&subject, "t", &["a"]).await;
    subject.close();
    std::fs::remove_file(secret_key_file(&subject.path())).unwrap();
    // As the build before this one wrote it.
    let connection = subject.connect();
    connection.execute("UPDATE push SET token = ?1, auth_credentials = ?2", [TOKEN, CREDENTIALS]).unwrap();
    connection.execute("UPDATE meta SET value = 0 WHERE name = ?1", [SECRETS_SEALED]).unwrap();
    super::super::fill::renew_checksums(&connection).unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    drop(connection);
    assert_eq!(files_with_secrets(&subject.path()), ["tasks.db"]);
    subject.restart();
    assert_eq!(files_with_secrets(&subject.path()), [] as [String; 0]);
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE]);
    subject.close();
    assert_eq!(faults_of(&subject.path()), [] as [String; 0]);
    // From then on a secret in clear is a fault, with a checksum that fits, too.
    let connection = subject.connect();
    connection.execute("UPDATE push SET token = ?1", [TOKEN]).unwrap();
    super::super::fill::renew_checksums(&connection).unwrap();
    drop(connection);
    subject.is_damaged = true;
    assert_eq!(faults_of(&subject.path()), ["task t: a secret of webhook a is not encrypted"]);
}

#[tokio::test]
async fn a_lost_key_costs_the_secrets_and_nothing_else() {
    let mut subject = beside();
    let writer = register(&subject, "t", &["a"]).await;
    subject.close();
    let key = secret_key_file(&subject.path());
    let away = key.with_extension("away");
    std::fs::rename(&key, &away).unwrap();
    let checked = verify(&subject.path(), BEGIN, &mut |fault| panic!("{fault}")).unwrap();
    assert_eq!((checked.webhooks, checked.webhooks_without_key), (1, 1));
    subject.restart();
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [LOST]);
    let claimed = subject.store().claim_deliveries(9, 1).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].config.url.as_str()), (1, "https://example.com/a"));
    writer.check(&subject).await;
    // A new key is made for new secrets.
    let later = register(&subject, "later", &["b"]).await;
    assert_eq!(configs(&subject, &later).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE]);
    subject.close();
    // With both keys, all can be read.
    let both = SecretKeys::read(&key).unwrap().unwrap().before(&SecretKeys::read(&away).unwrap().unwrap());
    let checked = verify_with_keys(&subject.path(), Some(&both), BEGIN, &mut |fault| panic!("{fault}")).unwrap();
    assert_eq!((checked.webhooks, checked.webhooks_without_key), (2, 0));
}

#[tokio::test]
async fn a_secret_that_was_moved_to_another_webhook_cannot_be_read() {
    let mut subject = beside();
    let writer = register(&subject, "t", &["a", "b"]).await;
    subject.write_as_another_build(
        "UPDATE push SET token = (SELECT token FROM push WHERE config_id = 'a') WHERE config_id = 'b';
         UPDATE push SET auth_credentials = (SELECT token FROM push WHERE config_id = 'a') WHERE config_id = 'a';",
    );
    let configs = configs(&subject, &writer).await;
    assert_eq!(secrets_of(&configs[0]), (Some(TOKEN), None, None));
    assert_eq!(secrets_of(&configs[1]), (None, Some("Bearer"), Some(CREDENTIALS)));
}

#[tokio::test]
async fn keys_are_changed_and_both_are_good_meanwhile() {
    let mut subject = beside();
    let writer = register(&subject, "t", &["a"]).await;
    let key = secret_key_file(&subject.path());
    let in_use = rotate_secret_keys(&subject.path(), &key, BEGIN).unwrap_err();
    assert!(matches!(in_use, FileError::InUse { .. }), "{in_use}");
    subject.close();
    let old = SecretKeys::read(&key).unwrap().unwrap();
    let before = stored(&subject.path());
    // The process may die after the new key was written, and before anything was encrypted with it.
    SecretKeys::generate().unwrap().before(&old).write(&key).unwrap();
    subject.restart();
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE]);
    subject.close();
    let done = rotate_secret_keys(&subject.path(), &key, BEGIN).unwrap();
    assert_eq!(done, Resealed { webhooks: 1, unread: 0 });
    let new = SecretKeys::read(&key).unwrap().unwrap();
    assert_eq!(new.count(), 1);
    assert!(!old.ids().contains(&new.ids()[0]));
    assert_ne!(stored(&subject.path()), before);
    subject.restart();
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE]);
    subject.close();
    // Given keys are changed by encrypting with the first of them. Those that cannot read a secret leave it alone.
    let other = SecretKeys::generate().unwrap();
    assert_eq!(reseal(&subject.path(), &other, BEGIN).unwrap(), Resealed { webhooks: 0, unread: 1 });
    let both = other.clone().before(&new);
    assert_eq!(reseal(&subject.path(), &both, BEGIN).unwrap(), Resealed { webhooks: 1, unread: 0 });
    subject.options.secrets = SecretKeySource::Keys(other);
    subject.restart();
    assert_eq!(configs(&subject, &writer).await.iter().map(secrets_of).collect::<Vec<_>>(), [WHOLE]);
}

#[test]
fn keys_are_read_from_text_and_never_shown() {
    let one = "swkey_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let keys = SecretKeys::parse(&format!("# mine\n{one}, {} # old\n", one.replace("AAEC", "BBEC"))).unwrap();
    assert_eq!(keys.count(), 2);
    assert!(!format!("{keys:?}").contains("AAEC"), "{keys:?}");
    for (text, expected) in [
        ("", "no key in it"),
        ("swkey_AAEC", "key 1: expected swkey_ and the base64 of 32 random bytes"),
        ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "key 1: expected swkey_"),
        (&[one; 9].join(" "), "expected at most 8 keys, got 9"),
    ] {
        let why = SecretKeys::parse(text).unwrap_err().to_string();
        assert!(why.contains(expected) && !why.contains("AAEC"), "{why}");
    }
}

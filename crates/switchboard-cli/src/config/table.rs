//! Every setting of the server, one row for each. Those of agents are in [`super::agent_table`].
//!
//! A row gives the key and the Rust type of a setting, the values it may have, its default, and what sets and explains
//! it. To add a setting, add its row here or there and use the new field where the server is put together (`serve.rs`). Then run
//! `UPDATE_EXPECT=1 cargo test -p switchboard-cli reference`, which writes it into `docs/configuration.md` and
//! `switchboard.example.toml`. Rules that compare settings with each other are in [`super::resolve`].

use std::net::SocketAddr;
use std::path::PathBuf;

use switchboard::{Dialect, Limits, ProtocolBinding, ServerLimits};

use super::agent_table::{AGENTS, COMPAT, SKILLS};
use super::choices::{Audit, Card, Dispatch, LogFormat, Synchronous};
use super::headings::{ACCESS, ADDRESS, CONFIGURATION, ISSUER, RELAY, TASKS, TELEMETRY, WEBHOOKS};
use super::layer::Layer;
use super::origin::{Errors, Given};
use super::relay::{RELAYS, upstream_url};
use super::row::Kind::{Bool, Choice, List, Number, Path, Text};
use super::row::{ANY, DAY_S, Kind, Row, Table, Value, WORDS, bytes, number, seconds, words};
use super::typed::{self, Secret, SettingValue, settings};
use super::values;

settings! {
    /// What `[server]` says.
    ServerSettings, SERVER: Table::Server;

    listen: SocketAddr = Row::new(ANY, ADDRESS, "Address and port to listen on")
        .more("Addresses that other machines can reach need tokens, or allow_unauthenticated. The variables BIND_HOST and \
               PORT stand in for SWITCHBOARD_LISTEN.")
        .flag("--listen", "ADDR").variable("SWITCHBOARD_LISTEN").default("127.0.0.1:8080");
    public_url: Option<String> = Row::new(Text(values::public_url), ADDRESS, "URL that clients use, path included")
        .more("It goes into the agent cards. One that is not on this machine needs tokens, or allow_unauthenticated.")
        .flag("--public-url", "URL").variable("SWITCHBOARD_PUBLIC_URL")
        .unset("made from the address").example("\"https://agents.example/a2a\"");
    cors_origins: Vec<String> = Row::new(List(values::origin), ADDRESS,
            "Origin of web pages that may call from a browser")
        .more("As in \"https://app.example\".")
        .flag("--cors-origin", "ORIGIN").variable("SWITCHBOARD_CORS_ORIGIN").default("");

    relays: Vec<String> = Row::new(List(upstream_url), RELAY,
            "Serve the agent at this URL, of any version and dialect, durably and with all that other agents here have")
        .more("In the file this is an `[[agent]]` with a url.")
        .flag("--relay", "URL").variable("SWITCHBOARD_RELAY").not_in_file().default("");

    data: PathBuf = Row::new(Path("folder"), TASKS, "Folder of the database")
        .flag("--data", "DIR").variable("SWITCHBOARD_DATA").default("./switchboard-data");
    memory: bool = Row::new(Bool, TASKS, "Keep tasks in memory; they are gone when the server stops")
        .flag("--memory", "BOOL").variable("SWITCHBOARD_MEMORY").default("false")
        // A layer that names a folder overrides a lower layer that says memory.
        .hidden_by("data");
    store: Option<Secret> = Row::new(Text(values::store_url), TASKS,
            "PostgreSQL in place of the folder, which several servers may share: postgres://USER@HOST:PORT/DATABASE")
        .more("The password is part of the address, or in the variable PGPASSWORD. It needs secrets_key_file or SWITCHBOARD_SECRETS_KEY \
               (docs/postgres.md).")
        .flag("--store", "URL").variable("SWITCHBOARD_STORE")
        .unset("the folder").example("\"postgres://switchboard@db.example/switchboard?sslmode=require\"")
        // A layer that names a folder overrides a lower layer that names PostgreSQL.
        .hidden_by("data");
    store_schema: String = Row::new(Text(values::schema_name), TASKS, "The schema in PostgreSQL that holds the tables")
        .flag("--store-schema", "NAME").variable("SWITCHBOARD_STORE_SCHEMA").default("switchboard");
    store_migrate: bool = Row::new(Bool, TASKS, "Whether a server that starts brings the schema in PostgreSQL up to date")
        .more("Without it, `switchboard db migrate` does so.")
        .flag("--store-migrate", "BOOL").variable("SWITCHBOARD_STORE_MIGRATE").default("true");
    store_readers: u64 = Row::new(Number { min: 1, max: 64, unit: "connections" }, TASKS,
            "How many connections to PostgreSQL serve reads; a server has five more")
        .variable("SWITCHBOARD_STORE_READERS").default("4");
    store_statement_timeout_s: u64 = Row::new(seconds(1, 3_600), TASKS,
            "The longest time that one statement may take in PostgreSQL, in seconds")
        .default("30");
    replica: Option<String> = Row::new(Text(values::replica_name), TASKS,
            "The name of this server among those that share a database")
        .more("No two may have the same. A server that starts under the name of one that died takes over its runs at once.")
        .flag("--replica", "NAME").variable("SWITCHBOARD_REPLICA")
        .unset("a name drawn at random").example("\"switchboard-0\"");
    hints: Option<Secret> = Row::new(Text(values::hints_url), TASKS,
            "NATS for the hints between servers that share a database, in place of PostgreSQL: nats://USER:PASSWORD@HOST:PORT")
        .more("Servers of a cluster are separated by commas. Without NATS nothing is lost but time (docs/postgres.md).")
        .flag("--hints", "URL").variable("SWITCHBOARD_HINTS")
        .unset("PostgreSQL").example("\"tls://nats.example\"");
    hints_subject: String = Row::new(Text(values::subject), TASKS,
            "The subject of these hints in NATS; the schema and a number follow it")
        .more("Servers that share no database should not share it.")
        .variable("SWITCHBOARD_HINTS_SUBJECT").default("switchboard");
    hints_credentials_file: Option<PathBuf> = Row::new(Path("file"), TASKS,
            "File of credentials for NATS (a JWT with its seed, or a seed alone)")
        .flag("--hints-credentials", "FILE").variable("SWITCHBOARD_HINTS_CREDENTIALS_FILE")
        .unset("what the address says").example("\"hints.creds\"")
        .hidden_by("hints_credentials");
    hints_credentials: Option<Secret> = Row::new(Kind::Secret, TASKS, "The text of such a file, in place of it")
        .variable("SWITCHBOARD_HINTS_CREDENTIALS").not_in_file()
        .unset("what the address says").hidden_by("hints_credentials_file");
    synchronous: Synchronous = Row::new(Choice(words::<Synchronous>), TASKS,
            "What a power cut may cost: nothing (full), or the commits of the last moments (normal)")
        .flag("--synchronous", "full|normal").variable("SWITCHBOARD_SYNCHRONOUS").default("full");
    grace_s: u64 = Row::new(seconds(0, 3_600), TASKS,
            "How long running work may go on after a signal to stop, in seconds")
        .flag("--grace", "SECONDS").variable("SWITCHBOARD_GRACE").default("10");
    lease_s: u32 = Row::new(seconds(1, 3_600), TASKS,
            "How long a run belongs to a server that gives no sign of life, in seconds")
        .more("The server renews the lease six times as often.")
        .default_of(|| number(Limits::default().lease_ms / 1_000));
    dispatch: Dispatch = Row::new(Choice(words::<Dispatch>), TASKS,
            "What starts the tasks of asynchronous sends: the process itself, or a request that it posts to itself")
        .more("self-fire is for hosts that give each request its own time to work (docs/production.md). In production it needs A2A_SECRET.")
        .flag("--dispatch", "direct|self-fire").variable("SWITCHBOARD_DISPATCH").default("direct");
    dispatch_url: Option<String> = Row::new(Text(values::public_url), TASKS,
            "Where these posts go, if not to the port of this process")
        .flag("--dispatch-url", "URL").variable("SWITCHBOARD_DISPATCH_URL")
        .unset("the own port").example("\"https://agents.example\"");
    queued_timeout_s: Option<u32> = Row::new(seconds(1, 365 * DAY_S), TASKS,
            "Fail a task that was not started so many seconds after it was submitted")
        .unset("no limit").example("180");
    processing_timeout_s: Option<u32> = Row::new(seconds(1, 365 * DAY_S), TASKS,
            "Fail a task whose message took so many seconds with all its attempts")
        .more("The time that a task is paused does not count.")
        .unset("no limit").example("1800");
    resume_window_s: u32 = Row::new(seconds(0, 3_650 * DAY_S), TASKS,
            "How long everything about an ended task is kept so that clients can resume, in seconds")
        .default_of(|| number(Limits::default().resume_window_s));
    retention_events_s: u32 = Row::new(seconds(0, 3_650 * DAY_S), TASKS,
            "How long the single events of an ended task are kept, in seconds; then they become one snapshot")
        .default_of(|| number(Limits::default().retention_events_s));
    retention_tasks_s: u32 = Row::new(seconds(0, 3_650 * DAY_S), TASKS, "How long an ended task is kept, in seconds")
        .default_of(|| number(Limits::default().retention_tasks_s));
    retention_tasks_max: u64 = Row::new(Number { min: 1, max: 1_000_000_000, unit: "tasks" }, TASKS,
            "How many tasks are kept; beyond it the oldest ended ones are removed, whatever their age")
        .more("With memory = true the default is 10000.")
        .default_of(|| number(Limits::default().retention_tasks_max));
    retention_tasks_batch: u64 = Row::new(Number { min: 0, max: 1_000_000, unit: "tasks" }, TASKS,
            "How many of the oldest ended tasks go at once when a new one makes more than retention_tasks_max")
        .more("0 removes just as many as are too many, once a minute. With retention_tasks_max = 1000, 100 is what \
               corvid-agents do.")
        .default_of(|| number(Limits::default().retention_tasks_batch)).example("100");

    audit: Audit = Row::new(Choice(words::<Audit>), ACCESS,
            "What the audit log holds: nothing, refusals and changes (default), or every accepted message as well (all)")
        .more("It is part of the database (docs/audit.md).")
        .flag("--audit", "off|default|all").variable("SWITCHBOARD_AUDIT").default("default");
    retention_audit_s: u32 = Row::new(seconds(0, 3_650 * DAY_S), ACCESS,
            "How long an entry of the audit log is kept, in seconds")
        .default_of(|| number(Limits::default().retention_audit_s));
    retention_audit_max: u64 = Row::new(Number { min: 1, max: 1_000_000_000, unit: "entries" }, ACCESS,
            "How many entries the audit log keeps; beyond it the oldest are removed, whatever their age")
        .default_of(|| number(Limits::default().retention_audit_max));

    tokens_file: Option<PathBuf> = Row::new(Path("file"), ACCESS, "File of tokens; only their holders may call")
        .more("Each line is TOKEN PRINCIPAL [TENANT,TENANT] [+operator]. A new file is used within a minute, or at once after \
               SIGHUP.")
        .flag("--tokens", "FILE").variable("SWITCHBOARD_TOKENS_FILE")
        .unset("no tokens").example("\"tokens.txt\"").hidden_by("tokens");
    tokens: Option<Secret> = Row::new(Kind::Secret, ACCESS, "The lines of tokens themselves, in place of a file")
        .variable("SWITCHBOARD_TOKENS").not_in_file().unset("no tokens").hidden_by("tokens_file");
    api_key_env: Option<String> = Row::new(Text(values::variable_name), ACCESS,
            "Name of the variable that holds the one key which all callers share, in place of or beside tokens")
        .more("Callers send it as a token; all of them are the principal api-key and see the same tasks. A key of fewer than \
               16 characters is taken, with a warning, only while no other machine can reach the server.")
        .flag("--api-key-env", "NAME").variable("SWITCHBOARD_API_KEY_ENV").unset("no key").example("\"A2A_API_KEY\"");
    basic: bool = Row::new(Bool, ACCESS, "Take tokens by HTTP Basic, too: the principal is the name, the token the password")
        .flag("--basic", "BOOL").variable("SWITCHBOARD_BASIC").default("false");
    api_key_header: Option<String> = Row::new(ANY, ACCESS, "Header that tokens may stand in, too")
        .flag("--api-key-header", "NAME").variable("SWITCHBOARD_API_KEY_HEADER")
        .unset("none").example("\"X-API-Key\"");
    api_key_query: Option<String> = Row::new(ANY, ACCESS, "Query parameter that tokens may stand in, too")
        .more("URLs are kept in logs and histories, so this is for clients that can do nothing else.")
        .variable("SWITCHBOARD_API_KEY_QUERY").unset("none").example("\"api_key\"");
    api_key_cookie: Option<String> = Row::new(ANY, ACCESS, "Cookie that tokens may stand in, too")
        .variable("SWITCHBOARD_API_KEY_COOKIE").unset("none").example("\"api_key\"");
    a2a_secret: Option<Secret> = Row::new(Kind::Secret, ACCESS,
            "Secret that callers of agent-native sign their tokens with (HS256)")
        .more("One of fewer than 16 characters is taken, with a warning, only while no other machine can reach the server.")
        .variable("A2A_SECRET").not_in_file().unset("no such callers");
    org_secrets_file: Option<PathBuf> = Row::new(Path("file"), ACCESS,
            "File of the secrets of organizations, for tokens that name one (org_domain)")
        .more("Each line is DOMAIN SECRET. A new file is used within a minute, or at once after SIGHUP.")
        .flag("--org-secrets", "FILE").variable("SWITCHBOARD_ORG_SECRETS_FILE")
        .unset("none").example("\"org-secrets.txt\"");
    workspace: Option<PathBuf> = Row::new(Path("folder"), ACCESS,
            "Folder of the workspace of agent-native that this server is an app of")
        .more("Agents of this server call its other apps by name, dispatch chooses among them, and the secrets of organizations are \
               passed on to them (docs/workspace.md).")
        .flag("--workspace", "DIR").variable("SWITCHBOARD_WORKSPACE").unset("none").example("\".\"");
    jwt_issuer: Option<String> = Row::new(ANY, ACCESS, "Identity provider whose tokens are accepted, as their iss names it")
        .more("Its keys are found by OpenID Connect Discovery, unless jwt_keys_url or jwt_keys_file is set. Further providers have an \
               `[[issuer]]` each.")
        .flag("--jwt-issuer", "URL").variable("SWITCHBOARD_JWT_ISSUER")
        .unset("none").example("\"https://login.example/realms/acme\"");
    jwt_audience: Vec<String> = Row::new(List(Ok), ACCESS, "Audience (aud) that its tokens for this server have")
        .flag("--jwt-audience", "NAME").variable("SWITCHBOARD_JWT_AUDIENCE").default("").example("[\"agents\"]");
    jwt_keys_url: Option<String> = Row::new(ANY, ACCESS, "Where its keys are (jwks_uri)")
        .variable("SWITCHBOARD_JWT_KEYS_URL").unset("found by discovery").example("\"https://login.example/keys\"");
    jwt_keys_file: Option<PathBuf> = Row::new(Path("file"), ACCESS, "File of its keys, a JSON Web Key set")
        .more("A new file is used within a minute, or at once after SIGHUP.")
        .variable("SWITCHBOARD_JWT_KEYS_FILE").unset("found by discovery").example("\"keys.json\"");
    jwt_algorithms: Vec<String> = Row::new(List(Ok), ACCESS, "Algorithms that are accepted; none is every asymmetric one")
        .variable("SWITCHBOARD_JWT_ALGORITHMS").default("").example("[\"RS256\"]");
    jwt_leeway_s: u32 = Row::new(seconds(0, 600), ACCESS,
            "How far the clocks of the provider and of this server may be apart, in seconds")
        .default("30");
    jwt_principal_claim: String = Row::new(ANY, ACCESS, "Claim that names the caller")
        .more("A dot leads into an object, as in realm_access.roles.")
        .variable("SWITCHBOARD_JWT_PRINCIPAL_CLAIM").default("sub");
    jwt_tenants_claim: Option<String> = Row::new(ANY, ACCESS, "Claim that holds the tenants of the caller")
        .more("A token without it is then refused.")
        .variable("SWITCHBOARD_JWT_TENANTS_CLAIM").unset("callers act for no named tenant").example("\"tid\"");
    jwt_scope_claims: Vec<String> = Row::new(List(Ok), ACCESS, "Claims that hold the scopes of the caller")
        .variable("SWITCHBOARD_JWT_SCOPE_CLAIMS").default("scope,scp").example("[\"scope\", \"realm_access.roles\"]");
    jwt_operator_scope: Option<String> = Row::new(ANY, ACCESS, "Scope that makes a caller an operator")
        .variable("SWITCHBOARD_JWT_OPERATOR_SCOPE").unset("none does").example("\"agents-operator\"");
    require: Vec<String> = Row::new(List(Ok), ACCESS,
            "Schemes that a caller must present together, as in mtls+bearer; of several entries, any one is enough")
        .more("The names are those on the cards: bearer, basic, apiKey, apiKeyQuery, apiKeyCookie, jwtBearer, oidc or jwt (or the name of an `[[issuer]]`), mtls. The \
               first one of an entry names the caller. Without entries, any one scheme is enough.")
        .flag("--require", "SCHEMES").variable("SWITCHBOARD_REQUIRE").default("").example("[\"mtls+bearer\", \"basic\"]");
    allow_unauthenticated: bool = Row::new(Bool, ACCESS,
            "Let every client call that reaches an address or a public URL beyond this machine, without a token")
        .more("All of them share all tasks; the log says so as a warning.")
        .flag("--allow-unauthenticated", "BOOL").variable("SWITCHBOARD_ALLOW_UNAUTHENTICATED").default("false");
    rules_file: Option<PathBuf> = Row::new(Path("file"), ACCESS, "File of rules about what callers may do")
        .more("Each line is allow|deny WHOM OPERATIONS AGENT[/SKILL]; the first that fits decides, and what none fits is refused \
               (docs/authorization.md). A new file is used within a minute, or at once after SIGHUP.")
        .flag("--rules", "FILE").variable("SWITCHBOARD_RULES_FILE")
        .unset("everybody who is let in may do everything").example("\"rules.txt\"");
    shared_tenant: bool = Row::new(Bool, ACCESS, "Let all callers of a tenant share their tasks, whoever they are")
        .more("Callers whose credential names no tenant are refused.")
        .flag("--shared-tenant", "BOOL").variable("SWITCHBOARD_SHARED_TENANT").default("false");
    protect_cards: bool = Row::new(Bool, ACCESS, "Show the public cards only to callers with a credential")
        .more("The specification has them readable by everybody: clients that look for a card without a credential do not find it.")
        .flag("--protect-cards", "BOOL").variable("SWITCHBOARD_PROTECT_CARDS").default("false");
    allow_plain_http: bool = Row::new(Bool, ACCESS,
            "Let the cards of a server in production name a public URL of another machine that begins with http://")
        .more("Without it such a server does not start: clients would send their tokens there unencrypted (docs/production.md).")
        .flag("--allow-plain-http", "BOOL").variable("SWITCHBOARD_ALLOW_PLAIN_HTTP").default("false");
    allowed_hosts: Vec<String> = Row::new(List(Ok), ACCESS,
            "Name of a host that the server answers to besides its own, without a port")
        .more("A server without tokens refuses requests to names that are not its own: the host of the public URL, that of the \
               certificate, the names of this machine and, if it listens beyond loopback, numeric addresses. With tokens, names are \
               checked if this is set.")
        .flag("--allowed-host", "HOST").variable("SWITCHBOARD_ALLOWED_HOST").default("").example("[\"agents.lan\"]");
    open_peers: Vec<String> = Row::new(List(Ok), ACCESS,
            "Addresses of callers that send no credentials, as in nexus=10.1.0.0/16 or corvid=192.0.2.7")
        .more("Gateways of NEXUS and agents of corvid have none. They may use the paths of their dialect and no others, and see the \
               tasks of their own address. Behind a proxy, the address is that of the proxy.")
        .flag("--open-peer", "DIALECT=RANGE").variable("SWITCHBOARD_OPEN_PEER").default("")
        .example("[\"nexus=10.1.0.0/16\"]");
    tenants: Vec<String> = Row::new(List(values::path_name), ACCESS, "Tenant that callers without a token may name")
        .flag("--tenant", "NAME").variable("SWITCHBOARD_TENANT").default("");
    outbound_allow: Vec<String> = Row::new(List(Ok), ACCESS,
            "Private address that webhooks may go to, as in 10.0.0.0/8 or 127.0.0.1:9000")
        .more("A name such as \"hooks.internal\" is allowed, too.")
        .flag("--outbound-allow", "TARGET").variable("SWITCHBOARD_OUTBOUND_ALLOW").default("");
    body_bytes_max: usize = Row::new(bytes(1 << 10, 1 << 30), ACCESS, "Size of a request body at most, in bytes")
        .flag("--body-limit", "BYTES").variable("SWITCHBOARD_BODY_LIMIT")
        .default_of(|| number(ServerLimits::default().body_bytes_max));
    // What an agent writes at once must fit into a reply. A command writes 256 KiB at once, and a control character takes six
    // bytes in JSON.
    reply_bytes_max: u64 = Row::new(bytes(2 << 20, 1 << 30), ACCESS,
            "Size of a reply at most, about, in bytes; larger artifacts are shown as links")
        .flag("--reply-limit", "BYTES").variable("SWITCHBOARD_REPLY_LIMIT")
        .default_of(|| number(Limits::default().reply_bytes_max));
    frame_bytes_max: u64 = Row::new(bytes(64 << 10, 1 << 30), ACCESS,
            "Size of one frame of a stream, or of a gRPC reply, at most, in bytes; larger artifacts and chunks are links")
        .more("Most clients give up on a frame above 4 MiB. More than reply_bytes_max has no effect.")
        .flag("--frame-limit", "BYTES").variable("SWITCHBOARD_FRAME_LIMIT")
        .default_of(|| number(Limits::default().frame_bytes_max));
    body_bytes_held_max: u64 = Row::new(bytes(1 << 20, 1 << 40), ACCESS,
            "Bytes of the bodies that are being received at most, of all callers together")
        .more("A body of up to 16 KiB is not counted, here and below. A caller is a principal, or the address of one without \
               a credential. What is too much is refused with 429.")
        .default_of(|| number(ServerLimits::default().body_bytes_held_max));
    body_bytes_held_per_caller_max: u64 = Row::new(bytes(1 << 20, 1 << 40), ACCESS, "The same for each caller")
        .default_of(|| number(ServerLimits::default().body_bytes_held_per_caller_max));
    reply_bytes_held_max: u64 = Row::new(bytes(1 << 20, 1 << 40), ACCESS,
            "Bytes of the answers that clients have not read yet at most, of all callers together")
        .default_of(|| number(ServerLimits::default().reply_bytes_held_max));
    reply_bytes_held_per_caller_max: u64 = Row::new(bytes(1 << 20, 1 << 40), ACCESS, "The same for each caller")
        .default_of(|| number(ServerLimits::default().reply_bytes_held_per_caller_max));
    streams_max: u32 = Row::new(Number { min: 1, max: 10_000_000, unit: "streams" }, ACCESS, "Streams that are open at once")
        .default_of(|| number(ServerLimits::default().streams_max));
    streams_per_caller_max: u32 = Row::new(Number { min: 1, max: 10_000_000, unit: "streams" }, ACCESS,
            "Streams that one caller has open at once")
        .default_of(|| number(ServerLimits::default().streams_per_caller_max));
    caller_requests_per_second_max: Option<u32> = Row::new(Number { min: 1, max: 1_000_000, unit: "requests" }, ACCESS,
            "Requests per second of each caller; five seconds' worth may come at once")
        .unset("no limit").example("100");
    address_requests_per_second_max: Option<u32> = Row::new(Number { min: 1, max: 1_000_000, unit: "requests" }, ACCESS,
            "Requests per second from each address, counted before it is known who calls")
        .more("Behind a proxy all requests come from its address: limit the rate there.")
        .unset("no limit").example("200");
    runs_queued_max: u64 = Row::new(Number { min: 1, max: 10_000_000, unit: "runs" }, TASKS,
            "Tasks that wait to be started at most, of all owners together; further messages are refused with 429")
        .default_of(|| number(Limits::default().runs_queued_max));
    runs_queued_per_owner_max: u64 = Row::new(Number { min: 1, max: 10_000_000, unit: "runs" }, TASKS,
            "The same for each owner")
        .default_of(|| number(Limits::default().runs_queued_per_owner_max));
    run_message_bytes_max: u64 = Row::new(bytes(1 << 20, 1 << 40), TASKS,
            "Bytes that tasks at work or waiting hold in memory at most, of all owners together")
        .default_of(|| number(Limits::default().run_message_bytes_max));
    run_message_bytes_per_owner_max: u64 = Row::new(bytes(1 << 20, 1 << 40), TASKS, "The same for each owner")
        .default_of(|| number(Limits::default().run_message_bytes_per_owner_max));
    storage_task_bytes_max: u64 = Row::new(bytes(1 << 16, 1 << 50), TASKS,
            "Bytes stored of one task at most; further messages are refused with 429, and a run that writes more fails its task")
        .more("docs/limits.md says what is counted.")
        .default_of(|| number(Limits::default().storage_task_bytes_max));
    storage_owner_bytes_max: u64 = Row::new(bytes(1 << 16, 1 << 50), TASKS, "The same for all tasks of one owner")
        .more("Tasks that are removed after retention_tasks_s make room.")
        .default_of(|| number(Limits::default().storage_owner_bytes_max));
    storage_bytes_max: u64 = Row::new(bytes(1 << 16, 1 << 50), TASKS, "The same for all tasks of all owners")
        .more("Set it below the size of the disk. With memory = true the default is 1073741824, and the oldest ended tasks are removed.")
        .default_of(|| number(Limits::default().storage_bytes_max));
    default_version: Option<Dialect> = Row::new(Choice(|| vec!["1.0".to_owned(), "0.3".to_owned()]), ACCESS,
            "What a request without A2A-Version means where its method or path does not tell")
        .more("The specification says 0.3; \"1.0\" is for closed networks.")
        .flag("--default-version", "VERSION").variable("SWITCHBOARD_DEFAULT_VERSION")
        .unset("0.3, as the specification says").example("\"1.0\"");
    card: Card = Row::new(Choice(words::<Card>), ACCESS,
            "Whose members the agent cards hold: of all versions side by side, of A2A 1.0 alone, or of one system")
        .more("\"agent-native\", \"selectools\", \"corvid\" and \"nexus\" are the systems. It matters for clients that do not say \
               which version they speak.")
        .flag("--card", "FORM").variable("SWITCHBOARD_CARD").default("all");
    interfaces: Option<Vec<ProtocolBinding>> = Row::new(List(values::binding), ACCESS,
            "Protocol binding that the agent cards name: JSONRPC, HTTP+JSON or GRPC; clients prefer the first")
        .more("Every binding is served whatever the cards name. google-adk refuses a card with GRPC on it \
               (docs/clients.md).")
        .flag("--interface", "BINDING").variable("SWITCHBOARD_INTERFACE")
        .unset("JSONRPC and HTTP+JSON; with card = \"1.0\" also GRPC").example("[\"JSONRPC\", \"HTTP+JSON\", \"GRPC\"]");

    keys_dir: Option<PathBuf> = Row::new(Path("folder"), ACCESS,
            "Folder of the keys that cards and webhook tokens are signed with, as `switchboard keys` makes them")
        .more("The public keys are served at /.well-known/jwks.json. New keys are used within a minute, or at once after \
               SIGHUP (docs/cards.md).")
        .flag("--keys-dir", "DIR").variable("SWITCHBOARD_KEYS_DIR")
        .unset("keys in the data folder").example("\"keys\"");
    sign_cards: bool = Row::new(Bool, ACCESS, "Sign the agent cards, if there is a key")
        .flag("--sign-cards", "BOOL").variable("SWITCHBOARD_SIGN_CARDS").default("true");

    webhook_attempts_max: u32 = Row::new(Number { min: 1, max: 1_000, unit: "attempts" }, WEBHOOKS,
            "Attempts at a webhook before it becomes a dead letter")
        .more("`switchboard outbox` shows dead letters.")
        .flag("--webhook-attempts", "N").variable("SWITCHBOARD_WEBHOOK_ATTEMPTS")
        .default_of(|| number(Limits::default().delivery_failures_max));
    webhook_coalesce_after: u32 = Row::new(Number { min: 0, max: 1_000_000, unit: "updates" }, WEBHOOKS,
            "Send a receiver that is further behind than so many updates the newest state instead; 0 is never")
        .flag("--webhook-coalesce", "N").variable("SWITCHBOARD_WEBHOOK_COALESCE")
        .default_of(|| number(Limits::default().delivery_coalesce_after));
    webhook_signing_secret_file: Option<PathBuf> = Row::new(Path("file"), WEBHOOKS,
            "File of secrets to sign webhooks with, each whsec_ and base64, the newest first")
        .more("Each delivery is signed with every secret, so that receivers can tell who sent it (docs/webhooks.md).")
        .flag("--webhook-signing-secret-file", "FILE").variable("SWITCHBOARD_WEBHOOK_SIGNING_SECRET_FILE")
        .unset("webhooks are not signed").example("\"signing-secrets.txt\"").hidden_by("webhook_signing_secret");
    webhook_signing_secret: Option<Secret> = Row::new(Kind::Secret, WEBHOOKS,
            "The signing secret itself, or a list of them, in place of a file")
        .more("A file or the variable is a better place for it. There is no flag, since everyone on the machine can read the \
               flags of a process.")
        .variable("SWITCHBOARD_WEBHOOK_SIGNING_SECRET")
        .unset("webhooks are not signed").example("\"whsec_…\"").hidden_by("webhook_signing_secret_file");

    webhook_https_only: Option<bool> = Row::new(Bool, WEBHOOKS, "Take webhooks at https URLs alone")
        .flag("--webhook-https-only", "BOOL").variable("SWITCHBOARD_WEBHOOK_HTTPS_ONLY")
        .unset("true in production, that is if the environment says so (NODE_ENV=production and its like)").example("true");
    webhook_challenge: bool = Row::new(Bool, WEBHOOKS,
            "Ask the receiver whether it wants webhooks before one is registered")
        .more("It is sent GET with a random validationToken in the query, and must answer 200 with its value as the body \
               (docs/webhooks.md).")
        .flag("--webhook-challenge", "BOOL").variable("SWITCHBOARD_WEBHOOK_CHALLENGE").default("false");

    secrets_key_file: Option<PathBuf> = Row::new(Path("file"), WEBHOOKS,
            "File of keys that tokens and credentials of webhooks are encrypted with in the database, the newest first")
        .more("Each is swkey_ and the base64 of 32 random bytes. `switchboard db rotate-secrets-key` changes it \
               (docs/backup.md).")
        .flag("--secrets-key-file", "FILE").variable("SWITCHBOARD_SECRETS_KEY_FILE")
        .unset("a file beside the database, which is made with the first secret").example("\"secrets-key.txt\"")
        .hidden_by("secrets_key");
    secrets_key: Option<Secret> = Row::new(Kind::Secret, WEBHOOKS, "The key itself, or a list of them, in place of a file")
        .variable("SWITCHBOARD_SECRETS_KEY").not_in_file()
        .unset("a file beside the database").hidden_by("secrets_key_file");

    otlp_endpoint: Option<String> = Row::new(Text(values::public_url), TELEMETRY,
            "URL of a collector of OpenTelemetry that is sent traces and metrics (OTLP over HTTP)")
        .more("/v1/traces and /v1/metrics are added to it (docs/tracing.md).")
        .flag("--otlp-endpoint", "URL").variable("OTEL_EXPORTER_OTLP_ENDPOINT")
        .unset("nothing is sent; the traces of calls are passed on all the same").example("\"http://127.0.0.1:4318\"");
    otlp_headers_file: Option<PathBuf> = Row::new(Path("file"), TELEMETRY,
            "File of headers for the collector, such as authorization=Bearer%20…, one on each line")
        .flag("--otlp-headers-file", "FILE").variable("SWITCHBOARD_OTLP_HEADERS_FILE")
        .unset("no headers").example("\"otlp-headers.txt\"").hidden_by("otlp_headers");
    otlp_headers: Option<Secret> = Row::new(Kind::Secret, TELEMETRY,
            "The headers themselves, separated by commas, in place of a file")
        .variable("OTEL_EXPORTER_OTLP_HEADERS").not_in_file()
        .unset("no headers").hidden_by("otlp_headers_file");
    otlp_service_name: String = Row::new(Text(values::service_name), TELEMETRY, "What the collector calls this server")
        .flag("--otlp-service-name", "NAME").variable("OTEL_SERVICE_NAME").default("switchboard");
    otlp_sample_ratio: String = Row::new(Text(values::ratio), TELEMETRY,
            "Which part of the traces that begin here is recorded, from 0 to 1")
        .more("A call that comes in a trace is recorded if its caller records it.")
        .flag("--otlp-sample-ratio", "RATIO").variable("OTEL_TRACES_SAMPLER_ARG").default("1");
    otlp_interval_s: u64 = Row::new(seconds(1, 3_600), TELEMETRY, "How often metrics are sent to the collector, in seconds")
        .flag("--otlp-interval", "SECONDS").variable("SWITCHBOARD_OTLP_INTERVAL").default("60");

    log_format: LogFormat = Row::new(Choice(words::<LogFormat>), CONFIGURATION,
            "How logs are written to standard error")
        .flag("--log-format", "text|json").variable("SWITCHBOARD_LOG_FORMAT").default("text");
    log_completed_tasks: bool = Row::new(Bool, CONFIGURATION, "Log a line for each completed task")
        .more("Tasks that end otherwise always have one.")
        .flag("--log-completed-tasks", "BOOL").variable("SWITCHBOARD_LOG_COMPLETED_TASKS").default("true");
    access_log: Option<PathBuf> = Row::new(Path("file"), CONFIGURATION,
            "File to which a line is added for each request; - is standard error")
        .more("A file that is moved away is begun anew, as rotation expects (docs/logs.md).")
        .flag("--access-log", "FILE").variable("SWITCHBOARD_ACCESS_LOG")
        .unset("no access log").example("\"access.log\"");
}

settings! {
    /// What `[tls]` says.
    TlsSettings, TLS: Table::Tls;

    cert: Option<PathBuf> = Row::new(Path("file"), ADDRESS,
            "File of the certificate, in PEM form, followed by those of its issuers; the port then speaks TLS alone")
        .more("New files are used within a minute, or at once after SIGHUP.")
        .flag("--tls-cert", "FILE").variable("SWITCHBOARD_TLS_CERT").unset("no TLS").example("\"cert.pem\"");
    key: Option<PathBuf> = Row::new(Path("file"), ADDRESS, "File of the private key of the certificate, in PEM form")
        .more("Only its owner should be able to read it.")
        .flag("--tls-key", "FILE").variable("SWITCHBOARD_TLS_KEY").unset("no TLS").example("\"key.pem\"");
    client_authority: Option<PathBuf> = Row::new(Path("file"), ADDRESS,
            "File of the authority whose client certificates prove who calls, in PEM form")
        .flag("--tls-client-authority", "FILE").variable("SWITCHBOARD_TLS_CLIENT_AUTHORITY")
        .unset("clients are not asked for certificates").example("\"clients-ca.pem\"");
}

settings! {
    /// What one `[[issuer]]` says, and what the `jwt_` settings of the server say together.
    IssuerSettings, ISSUERS: Table::Issuer;

    issuer: Option<String> = Row::new(ANY, ISSUER, "Identity provider whose tokens are accepted, as their iss names it")
        .more("Every `[[issuer]]` needs one. Its keys are found by OpenID Connect Discovery, unless keys_url or keys_file is set.")
        .unset("").example("\"https://login.example/realms/acme\"");
    name: Option<String> = Row::new(WORDS, ISSUER, "What the cards and `require` call tokens of this provider")
        .more("Each provider needs a name of its own, if there are several.")
        .unset("oidc with discovery, else jwt").example("\"acme\"");
    audience: Vec<String> = Row::new(List(Ok), ISSUER, "Audience (aud) that its tokens for this server have")
        .more("At least one is needed.").default("").example("[\"agents\"]");
    keys_url: Option<String> = Row::new(ANY, ISSUER, "Where its keys are (jwks_uri)")
        .unset("found by discovery").example("\"https://login.example/keys\"");
    keys_file: Option<PathBuf> = Row::new(Path("file"), ISSUER, "File of its keys, a JSON Web Key set")
        .more("A new file is used within a minute, or at once after SIGHUP.")
        .unset("found by discovery").example("\"keys.json\"");
    algorithms: Vec<String> = Row::new(List(Ok), ISSUER, "Algorithms that are accepted; none is every asymmetric one")
        .default("").example("[\"RS256\"]");
    leeway_s: u32 = Row::new(seconds(0, 600), ISSUER,
            "How far the clocks of the provider and of this server may be apart, in seconds").default("30");
    principal_claim: String = Row::new(ANY, ISSUER, "Claim that names the caller")
        .more("A dot leads into an object, as in realm_access.roles.").default("sub");
    tenants_claim: Option<String> = Row::new(ANY, ISSUER, "Claim that holds the tenants of the caller")
        .more("A token without it is then refused.").unset("callers act for no named tenant").example("\"tid\"");
    scope_claims: Vec<String> = Row::new(List(Ok), ISSUER, "Claims that hold the scopes of the caller")
        .default("scope,scp").example("[\"scope\", \"realm_access.roles\"]");
    operator_scope: Option<String> = Row::new(ANY, ISSUER, "Scope that makes a caller an operator")
        .unset("none does").example("\"agents-operator\"");
}

/// The rows of one table.
pub(crate) fn rows_of(table: Table) -> &'static [Row] {
    match table {
        Table::Server => SERVER,
        Table::Tls => TLS,
        Table::Issuer => ISSUERS,
        Table::Agent => AGENTS,
        Table::Compat => COMPAT,
        Table::Relay => RELAYS,
        Table::Skill => SKILLS,
    }
}

/// Every row of every table.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    [SERVER, TLS, ISSUERS, AGENTS, COMPAT, RELAYS, SKILLS].into_iter().flatten()
}

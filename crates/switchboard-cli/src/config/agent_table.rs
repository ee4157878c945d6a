//! Every setting of an agent, one row for each: those of `[[agent]]`, `[agent.compat]` and `[[agent.skill]]`. Those of `[agent.relay]` are in
//! [`super::relay`]. The rows are like those of [`super::table`].

use switchboard::{CorvidOptions, Limits, ProtocolBinding, SelectoolsOptions};

use super::choices::{Card, CompatRpc, Effects, ErrorDetails, Idempotency, KindName, Recovery};
use super::headings::{AGENT, CARD, RELAY, RUNS};
use super::layer::Layer;
use super::origin::{Errors, Given};
use super::relay::upstream_url;
use super::row::Kind::{Bool, Choice, Command, List, Number, Text};
use super::row::{ANY, DAY_S, Row, Table, Value, WORDS, bytes, number, seconds, words};
use super::typed::{self, CommandLine, SettingValue, settings};
use super::values;

const COMPAT_DIALECTS: &str = "Compat dialects";
const DISPATCH: &str = "Dispatch";
const SKILL: &str = "Skill";

settings! {
    /// What one `[[agent]]` says.
    AgentSettings, AGENTS: Table::Agent;

    name: Option<String> = Row::new(WORDS, AGENT, "Name of the agent")
        .more("Every `[[agent]]` without a url needs one. The first agent of the file is the default one: it is served at the root of the \
               URL, too.")
        .flag("--name", "NAME").variable("SWITCHBOARD_NAME").unset("Demo, the program of --exec, or the name on the card of the agent behind a relay").example("\"Shout\"");
    slug: Option<String> = Row::new(Text(values::path_name), AGENT, "The name in the URL, /agents/{slug}")
        .more("Tasks belong to it: keep it when you rename the agent.")
        .unset("made from the name").example("\"shout\"");
    description: Option<String> = Row::new(WORDS, AGENT, "What the agent says about itself")
        .flag("--description", "TEXT").variable("SWITCHBOARD_DESCRIPTION")
        .unset("one that fits the kind of agent").example("\"Says it in capitals\"");
    version: Option<String> = Row::new(WORDS, AGENT, "Version of the agent")
        .flag("--agent-version", "VERSION").variable("SWITCHBOARD_AGENT_VERSION")
        .unset("1.0.0; on the cards of selectools and corvid the version of switchboard").example("\"0.1.0\"");
    kind: Option<KindName> = Row::new(Choice(words::<KindName>), AGENT,
            "What the agent is: exec runs a command for each message, relay passes messages on to an agent elsewhere, dispatch to the one that fits, demo shows what A2A can do")
        .unset("exec if there is a command, relay if there is a url, else demo").example("\"exec\"");
    command: Option<CommandLine> = Row::new(Command, AGENT,
            "Command that answers messages: a program and its arguments, quotes respected")
        .more("In the file it may also be a list of words. The text of the message comes on standard input, and the whole \
               message is in the file that A2A_MESSAGE_FILE names. What the command prints is the answer, streamed as it is \
               printed; a program that keeps its output back needs to be told, as in python3 -u. An exit code other than 0 is \
               a failure, and the last lines of standard error go to the log.")
        .flag("--exec", "CMD").variable("SWITCHBOARD_EXEC").unset("no command").example("[\"tr\", \"a-z\", \"A-Z\"]");
    url: Option<String> = Row::new(Text(upstream_url), RELAY, "Of a relay: where the agent is that does its work, or its card")
        .more("`[agent.relay]` says how it is called (docs/relay.md).")
        .unset("no relay").example("\"https://weather.example\"");
    dispatch_to: Option<Vec<String>> = Row::new(List(Ok), DISPATCH,
            "Of an agent of kind dispatch: the agents that it chooses among, by their slugs here or their ids in the workspace")
        .more("docs/dispatch.md says how.")
        .unset("all agents of this server, of the workspace and of remote-agents").example("[\"analytics\", \"mail\"]");
    shell: bool = Row::new(Bool, AGENT, "Give the command to a shell (sh -c)")
        .flag("--exec-shell", "BOOL").variable("SWITCHBOARD_EXEC_SHELL").default("false");
    env: Vec<String> = Row::new(List(values::variable), AGENT,
            "Variable of the server that the command sees, beside PATH, HOME, LANG, TZ and TMPDIR")
        .more("What is known of the message is in variables of its own, whose names begin with A2A_.")
        .flag("--exec-env", "NAME").variable("SWITCHBOARD_EXEC_ENV").default("").example("[\"LC_ALL\"]");
    calls: bool = Row::new(Bool, AGENT, "Whether the command may call other agents of this server and of its directory")
        .more("It then finds an address and a token that is good for this run in A2A_CALL_URL and A2A_CALL_TOKEN (docs/exec.md).")
        .flag("--exec-calls", "BOOL").variable("SWITCHBOARD_EXEC_CALLS").default("true");
    processes_max: u64 = Row::new(Number { min: 1, max: 10_000, unit: "processes" }, AGENT,
            "How many processes of the command may run at once; further tasks wait")
        .default("64");

    user: Option<String> = Row::new(Text(values::user), AGENT,
            "User that the command runs as: a name, or UID:GID; the server must run as root")
        .more("The command gets no other group of the server. Its message is then below the folder for temporary files and not \
               in the data folder (docs/exec.md).")
        .flag("--exec-user", "USER").variable("SWITCHBOARD_EXEC_USER").unset("the user of the server").example("\"1001:1001\"");
    new_privileges: bool = Row::new(Bool, AGENT,
            "Whether the command may gain rights that the server does not have, by programs such as sudo")
        .flag("--exec-new-privileges", "BOOL").variable("SWITCHBOARD_EXEC_NEW_PRIVILEGES").default("false");
    memory_bytes_max: Option<u64> = Row::new(bytes(1 << 20, 1 << 50), AGENT,
            "Address space of each process of the command at most, in bytes")
        .flag("--exec-memory", "BYTES").variable("SWITCHBOARD_EXEC_MEMORY").unset("that of the server").example("1073741824");
    cpu_s_max: Option<u64> = Row::new(seconds(1, 7 * DAY_S), AGENT,
            "Processor time of each process of the command at most, in seconds")
        .flag("--exec-cpu", "SECONDS").variable("SWITCHBOARD_EXEC_CPU").unset("that of the server").example("60");

    // No longer than a week: longer work should be split.
    run_timeout_s: Option<u32> = Row::new(seconds(1, 7 * DAY_S), AGENT, "End runs that take longer, in seconds")
        .more("A command is ended with everything it started.")
        .flag("--run-timeout", "SECONDS").variable("SWITCHBOARD_RUN_TIMEOUT").for_every_agent()
        .unset("300, the demo agent 7200").example("300");
    run_timeout_s_max: Option<u32> = Row::new(seconds(1, 7 * DAY_S), RUNS,
            "The longest time that a single call may ask for instead, in seconds")
        .unset("run_timeout_s").example("900");
    recovery: Recovery = Row::new(Choice(words::<Recovery>), RUNS,
            "What happens to a run that a crash of the server interrupted: retry starts it again, fail fails its task")
        .default("retry");
    recovery_reason: Option<String> = Row::new(WORDS, RUNS, "What the client is told with recovery = \"fail\"")
        .unset("that the run was interrupted and is not started twice").example("\"The oven was switched off\"");
    attempts_max: Option<u32> = Row::new(Number { min: 1, max: 1_000, unit: "attempts" }, RUNS,
            "How often a message is tried, the first time included")
        .more("An orderly stop of the server does not count.")
        .unset_like(|| number(Limits::default().attempts_max)).example("3");
    retry_pause_s: Option<u32> = Row::new(seconds(0, DAY_S), RUNS, "The pause before the third attempt, in seconds")
        .more("The second attempt comes at once. Each later pause is twice as long as the one before it.")
        .unset_like(|| number(Limits::default().retry_backoff_ms_min / 1_000)).example("1");
    retry_pause_s_max: Option<u32> = Row::new(seconds(0, DAY_S), RUNS,
            "The longest pause between two attempts, in seconds")
        .unset_like(|| number(Limits::default().retry_backoff_ms_max / 1_000)).example("300");
    error_details: ErrorDetails = Row::new(Choice(words::<ErrorDetails>), RUNS,
            "What a client reads of an error, a panic or a failed command: a reason with an incident id, or the full text")
        .more("The log has the cause under that id. The full text may hold paths and secrets, such as standard error.")
        .flag("--error-details", "incident|full").variable("SWITCHBOARD_ERROR_DETAILS").for_every_agent()
        .default("incident");
    effects: Option<Effects> = Row::new(Choice(words::<Effects>), RUNS, "Whether the agent may do things that last")
        .more("none: it only computes an answer, so accepting a message and answering it may be one commit. some: it starts \
               only after its message is durable.")
        .flag("--effects", "none|some").variable("SWITCHBOARD_EFFECTS").hidden()
        .unset("what the kind of agent declares").example("\"some\"");
    idempotency: Option<Idempotency> = Row::new(Choice(words::<Idempotency>), RUNS,
            "How a message that is sent again is recognised, so that it is not accepted twice")
        .more("\"message-id\", \"key\" (the header Idempotency-Key) or \"off\" (the same as key: the header always counts).")
        .unset("message-id for callers with a token, key for the others").example("\"message-id\"");

    context_messages_max: usize = Row::new(Number { min: 0, max: 1_000, unit: "messages" }, RUNS,
            "How many messages of earlier tasks in the same context the agent is given")
        .more("They are the caller's own, with what they were answered; a command finds them in the file that \
               A2A_REQUEST_FILE names. 0 is none: each task stands by itself.")
        .default("0").example("20");

    provider_organization: Option<String> = Row::new(WORDS, CARD, "Who offers the agent")
        .more("It goes with provider_url.")
        .unset("no provider").example("\"Example, Inc.\"");
    provider_url: Option<String> = Row::new(Text(values::web_url), CARD, "The page of who offers the agent")
        .more("It goes with provider_organization.")
        .unset("no provider").example("\"https://example.com\"");
    icon_url: Option<String> = Row::new(Text(values::web_url), CARD, "A picture of the agent")
        .unset("none").example("\"https://example.com/shout.png\"");
    documentation_url: Option<String> = Row::new(Text(values::web_url), CARD, "The page that describes the agent")
        .unset("none").example("\"https://example.com/shout\"");
    extensions: Vec<String> = Row::new(List(values::uri), CARD, "URIs of the extensions that the agent supports")
        .default("").example("[\"https://example.com/ext/citations/v1\"]");
    extensions_required: Vec<String> = Row::new(List(values::uri), CARD,
            "URIs of the extensions without which the agent does not work")
        .more("A message of a client that does not activate them all is refused.")
        .default("").example("[\"https://example.com/ext/citations/v1\"]");
    extended_description: Option<String> = Row::new(WORDS, CARD,
            "What the agent says about itself on its extended card, which callers with a token may read")
        .more("With it, or with a skill that has extended = true, there is such a card.")
        .unset("description").example("\"Says it in capitals, also in Greek\"");
    streaming: bool = Row::new(Bool, CARD, "Whether clients may stream").default("true");
    push: bool = Row::new(Bool, CARD, "Whether clients may register webhooks").default("true");
    input_modes: Option<Vec<String>> = Row::new(List(values::media_type), CARD, "Media types that the agent takes")
        .unset("text/plain").example("[\"text/plain\"]");
    output_modes: Option<Vec<String>> = Row::new(List(values::media_type), CARD,
            "Media types that the agent answers with")
        .unset("those of the kind of agent").example("[\"text/plain\"]");
    strict_output_modes: bool = Row::new(Bool, CARD,
            "Refuse a message whose client accepts none of the media types that the agent answers with")
        .more("Otherwise the agent answers all the same, and the header A2A-Output-Modes says with what.")
        .flag("--strict-output-modes", "BOOL").variable("SWITCHBOARD_STRICT_OUTPUT_MODES").for_every_agent()
        .default("false");
    card: Option<Card> = Row::new(Choice(words::<Card>), CARD,
            "What the card of this agent holds, if not what card says for the server")
        .unset("card of the server").example("\"selectools\"");
    interfaces: Option<Vec<ProtocolBinding>> = Row::new(List(values::binding), CARD,
            "Protocol bindings that the card of this agent names, if not those that interfaces says for the server")
        .more("gRPC reaches only the first agent.")
        .unset("interfaces of the server").example("[\"HTTP+JSON\"]");
}

settings! {
    /// What one `[agent.compat]` says: how the agent treats clients of the compat dialects.
    CompatSettings, COMPAT: Table::Compat;

    dialect: Option<CompatRpc> = Row::new(Choice(words::<CompatRpc>), COMPAT_DIALECTS,
            "Answer clients that name no version in this compat dialect at /, /rpc and /a2a, too")
        .more("Without it the checks, limits and texts of a system apply on its own mount, such as \
               /agents/{slug}/dialects/selectools/a2a.")
        .unset("the dialects of A2A itself").example("\"selectools\"");
    default_dialect: Option<CompatRpc> = Row::new(Choice(words::<CompatRpc>), COMPAT_DIALECTS,
            "The dialect of requests that nothing else decides, such as tasks/get")
        .unset("that of default_version").example("\"agent-native\"");
    selectools_tasks_max: Option<usize> = Row::new(Number { min: 1, max: 1_000_000, unit: "tasks" }, COMPAT_DIALECTS,
            "How many of the newest tasks clients of selectools can read")
        .unset_like(|| number(SelectoolsOptions::default().tasks_max)).example("2000");
    selectools_body_bytes_max: Option<usize> = Row::new(bytes(1 << 10, 1 << 30), COMPAT_DIALECTS,
            "Size of a request of selectools at most, in bytes")
        .unset_like(|| number(SelectoolsOptions::default().body_bytes_max)).example("1048576");
    selectools_card_url: Option<String> = Row::new(Text(values::public_url), COMPAT_DIALECTS,
            "The url on the card for selectools")
        .unset("empty, as in the original").example("\"https://agents.example/a2a\"");
    default_project: bool = Row::new(Bool, COMPAT_DIALECTS, "Take the calls of corvid-agents, which name no agent")
        .more("Calls to /a2a/tasks/send go to the first agent with this.")
        .default("false");
    corvid_sends_per_min: Option<usize> = Row::new(Number { min: 1, max: 10_000, unit: "sends a minute" }, COMPAT_DIALECTS,
            "How many sends a minute each corvid-agent may make")
        .unset_like(|| number(CorvidOptions::default().sends_per_min)).example("5");
    corvid_depth_max: Option<u32> = Row::new(Number { min: 1, max: 10, unit: "agents" }, COMPAT_DIALECTS,
            "How often a call may have been passed on among corvid-agents")
        .unset_like(|| number(CorvidOptions::default().depth_max)).example("3");
    corvid_timeout_s: Option<u32> = Row::new(seconds(1, 600), COMPAT_DIALECTS,
            "How long a task of a corvid-agent that names no limit may take, in seconds")
        .unset_like(|| number(CorvidOptions::default().timeout_ms / 1_000)).example("300");
}

settings! {
    /// What one `[[agent.skill]]` says.
    SkillSettings, SKILLS: Table::Skill;

    id: Option<String> = Row::new(WORDS, SKILL,
            "Id of the skill; every skill needs one").unset("").example("\"shout\"");
    name: Option<String> = Row::new(ANY, SKILL, "Name of the skill").unset("its id").example("\"Shout\"");
    description: String = Row::new(ANY, SKILL, "What the skill does").default("").example("\"Says it in capitals\"");
    tags: Vec<String> = Row::new(List(Ok), SKILL, "Words to find the skill by").default("").example("[\"text\"]");
    examples: Vec<String> = Row::new(List(Ok), SKILL, "Messages to try").default("").example("[\"hello\"]");
    input_modes: Vec<String> = Row::new(List(values::media_type), SKILL,
            "Media types that the skill takes, if not those of the agent")
        .default("").example("[\"text/plain\"]");
    output_modes: Vec<String> = Row::new(List(values::media_type), SKILL,
            "Media types that the skill answers with, if not those of the agent")
        .default("").example("[\"text/plain\"]");
    extended: bool = Row::new(Bool, SKILL, "Whether the skill is only on the extended card, for callers with a token")
        .default("false");
}

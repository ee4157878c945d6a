//! Commands as agents, run for real under an engine in memory.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use rustix::process::{Pid, test_kill_process, test_kill_process_group};
use switchboard_core::model::{Message, Part, PartContent, Task, TaskState, Update};
use switchboard_engine::limits::Limits;
use switchboard_engine::runs::{ErrorDetails, RunEnd};

use super::*;
use crate::agents::testing::{TestEngine, eventually, status, user};

const SEARCH: &str = "/usr/local/bin:/usr/bin:/bin";

fn find(invocation: &Invocation) -> Result<Program, String> {
    Program::find(invocation, OsStr::new(SEARCH))
}

fn exec(program: Program) -> Exec {
    Exec {
        program,
        data: None,
        environment: variables(&[], |name| (name == "PATH").then(|| SEARCH.into())),
        run_max: Duration::from_secs(60),
        run_max_per_call: None,
        recovery: Recovery::retry(),
        processes_max: 8,
        user: None,
        confinement: Confinement { no_new_privileges: true, ..Confinement::default() },
        door: Some(CallDoor::new()),
    }
}

fn words(line: &str) -> Exec {
    exec(find(&Invocation::Words(split_words(line).unwrap())).unwrap())
}

fn shell(line: &str) -> Exec {
    exec(find(&Invocation::Shell(line.to_owned())).unwrap())
}

/// What a failed task says, its incident id as a star.
fn told(task: &Arc<Task>) -> String {
    let (state, text) = status(task);
    assert_eq!(state, TaskState::Failed, "{text}");
    let (before, id) = text.split_once("(incident ").unwrap_or_else(|| panic!("no incident in {text}"));
    assert_eq!(id.len(), 37, "{text}");
    format!("{before}(incident *)")
}

fn output(task: &Arc<Task>) -> String {
    assert_eq!(task.artifacts.len(), 1, "{task:?}");
    task.artifacts[0].text()
}

fn is_alive(pid: i32) -> bool {
    // A dead process stays in the process table until its parent waits for it.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    test_kill_process(Pid::from_raw(pid).unwrap()).is_ok() && !stat.contains(") Z ")
}

#[tokio::test]
async fn text_goes_in_and_comes_out() {
    let engine = TestEngine::of(words("tr a-z A-Z"));
    let task = engine.say("grüße, 'world' $HOME; rm -rf /").await;
    assert_eq!(status(&task), (TaskState::Completed, String::new()));
    assert_eq!(output(&task), "GRüßE, 'WORLD' $HOME; RM -RF /");
}

#[tokio::test]
async fn no_shell_reads_the_command_unless_asked_for() {
    assert_eq!(output(&TestEngine::of(words("echo $HOME | cat")).say("").await), "$HOME | cat\n");
    assert_eq!(output(&TestEngine::of(shell("echo a | tr a b")).say("").await), "b\n");
}

/// CVE-2026-42271 and its like: what a request says becomes part of a command.
#[tokio::test]
async fn no_message_chooses_or_extends_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let touch = format!("touch {}", made.display());
    let texts = [format!("; {touch}"), format!("$({touch})"), format!("`{touch}`"), format!("\n{touch}\n")];
    for text in &texts {
        // A command that is put together from the text, as a shell then reads it.
        TestEngine::of(shell(&format!("echo {text}"))).say("").await;
        assert!(made.exists(), "{text:?} runs where the text is part of the command");
        std::fs::remove_file(&made).unwrap();
        for agent in [words("cat"), shell("cat"), shell("echo \"$A2A_CONTEXT_ID\"; cat")] {
            let mut message = user(vec![Part::text(text.clone())]);
            message.context_id = Some(text.as_str().into());
            let chosen = serde_json::json!({"command": touch, "exec": ["touch", made], "skillId": touch});
            let metadata = Json::from_serialize(&chosen).unwrap();
            message.metadata = Some(metadata.clone());
            let task = TestEngine::of(agent).send_with(message, Some(metadata)).await;
            assert!(output(&task).contains(text.as_str()), "{task:?}");
            assert!(!made.exists(), "{text:?}");
        }
    }
}

#[tokio::test]
async fn no_output_is_no_artifact() {
    let task = TestEngine::of(words("true")).say("text that nobody reads").await;
    assert_eq!(status(&task), (TaskState::Completed, String::new()));
    assert_eq!(task.artifacts, []);
}

#[tokio::test]
async fn a_text_larger_than_a_pipe_may_stay_unread() {
    let task = TestEngine::of(words("echo done")).say(&"x".repeat(1 << 20)).await;
    assert_eq!(output(&task), "done\n");
}

#[tokio::test]
async fn the_environment_is_what_was_named_and_the_message() {
    let mut exec = words("env");
    let server = |name: &str| ["PATH", "LANG", "SECRET", "WANTED"].contains(&name).then(|| name.to_lowercase().into());
    exec.environment = variables(&["WANTED".to_owned(), "MISSING".to_owned()], server);
    let mut message = user(vec![Part::text("hello")]);
    message.context_id = Some("with\0zero".into());
    let task = TestEngine::of(exec).send(message).await;
    let output = output(&task);
    let mut seen: Vec<&str> = output.lines().collect();
    seen.sort_unstable();
    let task_id = format!("A2A_TASK_ID={}", task.id);
    for name in ["A2A_MESSAGE_FILE=/", "A2A_REQUEST_FILE=/"] {
        assert!(seen.iter().any(|line| line.starts_with(name)), "{seen:?}");
    }
    seen.retain(|line| !line.contains("_FILE="));
    let expected = [
        "A2A_ATTEMPT=1",
        "A2A_CONTEXT_ID=with\u{fffd}zero",
        "A2A_INTERRUPTED=false",
        "A2A_PRINCIPAL=",
        &task_id,
        "A2A_TENANT=",
        "LANG=lang",
        "PATH=path",
        "WANTED=wanted",
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_whole_message_is_in_a_private_file_that_does_not_stay() {
    let line = "stat -c %a \"$A2A_MESSAGE_FILE\" \"$(dirname \"$A2A_MESSAGE_FILE\")\"; echo $A2A_MESSAGE_FILE; cat $A2A_MESSAGE_FILE";
    let message = user(vec![Part::text("hello"), Part::raw("bytes").with_filename("a.bin")]);
    let task = TestEngine::of(shell(line)).send(message).await;
    let output = output(&task);
    let lines: Vec<&str> = output.lines().collect();
    let [file_mode, folder_mode, path, json] = lines[..] else { panic!("{output}") };
    assert_eq!((file_mode, folder_mode), ("600", "700"));
    let ids = format!(r#""messageId":"message-1","contextId":"{}","taskId":"{}""#, task.context_id, task.id);
    let parts = r#"[{"text":"hello"},{"raw":"Ynl0ZXM=","filename":"a.bin"}]"#;
    assert_eq!(json, format!(r#"{{{ids},"role":"ROLE_USER","parts":{parts}}}"#));
    assert!(!Path::new(path).parent().unwrap().exists());
}

#[tokio::test]
async fn output_is_published_while_the_command_works() {
    let gate = tempfile::tempdir().unwrap();
    let line = format!("echo one; while [ ! -e {}/go ]; do sleep 0.01; done; echo two", gate.path().display());
    let engine = TestEngine::of(shell(&line));
    let id = engine.begin("").await;
    let seen = eventually("the first line is out", async || {
        let task = engine.task(&id).await;
        task.artifacts.first().map(|artifact| artifact.text())
    });
    assert_eq!(seen.await, "one\n");
    assert_eq!(engine.task(&id).await.state(), TaskState::Working);
    std::fs::write(gate.path().join("go"), "").unwrap();
    let task =
        eventually("the task ends", async || Some(engine.task(&id).await).filter(|task| task.state().is_terminal()));
    assert_eq!(output(&task.await), "one\ntwo\n");
}

/// The chunks of a run, each with whether it appends and whether it is marked as the last.
async fn chunks_of(exec: Exec) -> Vec<(String, bool, bool)> {
    let chunk = |update: &Update| match update {
        Update::Artifact(chunk) => Some((chunk.artifact.text(), chunk.append, chunk.last_chunk)),
        Update::Task(_) | Update::Message(_) | Update::Status(_) => None,
    };
    TestEngine::of(exec).stream("").await.iter().filter_map(chunk).collect()
}

#[tokio::test]
async fn no_empty_chunk_follows_the_output_and_none_is_held_back_for_its_mark() {
    // Both lines are out long before the command ends, so neither could be known to be the last.
    let chunks = chunks_of(shell("echo one; sleep 0.2; echo two; sleep 0.2")).await;
    assert_eq!(chunks, [("one\n".to_owned(), false, false), ("two\n".to_owned(), true, false)]);
}

#[tokio::test]
async fn what_is_printed_just_before_the_end_is_marked_as_the_last_chunk() {
    assert_eq!(chunks_of(shell("echo one")).await, [("one\n".to_owned(), false, true)]);
}

#[tokio::test]
async fn data_without_text_is_the_input() {
    let data = |json: &str| Part::json(Json::from_trusted(json));
    let engine = TestEngine::of(words("cat"));
    let task = engine.send(user(vec![data(r#"{"a":1}"#), Part::raw("bytes"), data("[2]")])).await;
    assert_eq!(output(&task), "{\"a\":1}\n[2]");
    let task = engine.send(user(vec![data(r#"{"a":1}"#), Part::text("text")])).await;
    assert_eq!(output(&task), "text");
}

#[tokio::test]
async fn what_the_request_says_beside_the_message_reaches_the_command() {
    let line =
        "echo \"$A2A_SKILL,$A2A_DEPTH,$A2A_SOURCE_AGENT\"; stat -c %a \"$A2A_REQUEST_FILE\"; cat $A2A_REQUEST_FILE";
    let engine = TestEngine::of(shell(line));
    let metadata = r#"{"skill":"sum","depth":2,"sourceAgent":"planner","more":{"a":[1]}}"#;
    let task = engine.send_with(user(vec![Part::text("x")]), Some(Json::from_trusted(metadata))).await;
    assert_eq!(output(&task), format!("sum,2,planner\n600\n{{\"metadata\":{metadata}}}"));
    // The message may say it as well, in the names of other systems. What is no plain value is in the files alone.
    let mut message = user(vec![Part::text("x")]);
    message.metadata = Some(Json::from_trusted(r#"{"skillId":"s","delegationDepth":{"no":1},"callerApp":"mail"}"#));
    let task = engine.send(message).await;
    assert_eq!(output(&task), "s,,mail\n600\n{}");
    // A variable as long as a message may be would keep the command from starting.
    let metadata = format!(r#"{{"skill":"{}"}}"#, "x".repeat(200_000));
    let task = engine.send_with(user(vec![Part::text("x")]), Some(Json::from_trusted(metadata.clone()))).await;
    assert_eq!(output(&task), format!(",,\n600\n{{\"metadata\":{metadata}}}"));
}

#[tokio::test]
async fn a_character_printed_in_two_pieces_arrives_whole() {
    let task = TestEngine::of(shell(r"printf '\342\202'; sleep 0.1; printf '\254 5'")).say("").await;
    assert_eq!(task.artifacts[0].parts, [Part::text("€ 5")]);
}

#[tokio::test]
async fn bytes_that_are_no_text_arrive_as_bytes() {
    let task = TestEngine::of(shell(r"printf '\377\000\001'")).say("").await;
    let part = Part::raw(vec![0xff, 0, 1]).with_media_type("application/octet-stream");
    assert_eq!(task.artifacts[0].parts, [part]);
}

#[tokio::test]
async fn much_output_arrives_complete_and_in_order() {
    let task = TestEngine::of(words("seq 300000")).say("").await;
    let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    assert!(output(&task) == expected, "{} bytes of {}", output(&task).len(), expected.len());
    let largest = task.artifacts[0].parts.iter().map(Part::content_bytes).max().unwrap();
    assert!(largest <= 256 * 1024, "{largest}");
    assert!(task.artifacts[0].parts.iter().all(|part| matches!(part.content, PartContent::Text(_))));
}

/// A control character takes six bytes in JSON, and a chunk must fit into the smallest limit that the settings allow.
#[tokio::test]
async fn control_characters_fit_the_smallest_reply_that_can_be_set() {
    let limits = Limits { reply_bytes_max: 2 << 20, ..Limits::default() };
    let task = TestEngine::with_limits(words("head -c 600000 /dev/zero"), limits).say("").await;
    assert_eq!(status(&task), (TaskState::Completed, String::new()));
}

#[tokio::test]
async fn output_without_end_is_cut_off() {
    let limits = Limits { artifact_bytes_max: 1_000_000, ..Limits::default() };
    let engine = TestEngine::with_limits(shell("echo $$; exec yes"), limits);
    let id = engine.begin("").await;
    let task =
        eventually("the task ends", async || Some(engine.task(&id).await).filter(|task| task.state().is_terminal()))
            .await;
    let (state, text) = status(&task);
    assert_eq!(state, TaskState::Failed);
    assert!(text.starts_with("The output of the command could not be kept"), "{text}");
    let pid = task.artifacts[0].text().lines().next().unwrap().parse().unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_failed_command_tells_its_status_and_keeps_its_last_words_to_itself() {
    let engine = TestEngine::of(shell("echo partial; echo 'no such luck' >&2; exit 3"));
    let task = engine.say("").await;
    assert_eq!(told(&task), "The command exited with status 3 (incident *)");
    assert_eq!(output(&task), "partial\n");
    assert_eq!(engine.runs().ended(RunEnd::Error), 1);
}

#[tokio::test]
async fn a_failed_command_tells_its_last_words_where_the_agent_says_so() {
    let agent = shell("seq 30 >&2; echo 'no such luck' >&2; exit 3");
    let task = TestEngine::with_traits(agent, |traits| traits.with_error_details(ErrorDetails::Full)).say("").await;
    let last: Vec<String> = (12..=30).map(|number| number.to_string()).collect();
    let expected = format!("The command exited with status 3:\n{}\nno such luck", last.join("\n"));
    assert_eq!(status(&task), (TaskState::Failed, expected));
}

#[tokio::test]
async fn a_silent_failure_has_only_its_code() {
    let task = TestEngine::of(words("false")).say("").await;
    assert_eq!(told(&task), "The command exited with status 1 (incident *)");
}

#[tokio::test]
async fn a_killed_command_says_so() {
    let task = TestEngine::of(shell("kill -9 $$")).say("").await;
    assert_eq!(told(&task), "The command was ended by signal 9 (SIGKILL) (incident *)");
}

#[tokio::test]
async fn a_program_that_went_away_is_a_clear_failure() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tool");
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    let invocation = Invocation::Words(vec![path.to_str().unwrap().to_owned()]);
    assert_eq!(find(&invocation), Err(format!("{path:?} is not executable")));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    let agent = exec(find(&invocation).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(find(&invocation), Err(format!("there is no file {path:?}")));
    let engine = TestEngine::of(agent);
    assert_eq!(told(&engine.say("").await), "The command could not be started (incident *)");
    assert_eq!(engine.runs().ended(RunEnd::Error), 1);
}

#[test]
fn a_program_must_be_there_at_start() {
    let find = |words: &[&str]| find(&Invocation::Words(words.iter().map(|&word| word.to_owned()).collect()));
    assert_eq!(find(&["no-such-tool"]), Err("there is no program \"no-such-tool\" in PATH".to_owned()));
    assert_eq!(
        find(&["cat -n"]),
        Err("there is no program \"cat -n\" in PATH; a list holds the program and each argument apart".to_owned())
    );
    assert_eq!(find(&["/tmp"]), Err("there is no file \"/tmp\"".to_owned()));
    assert_eq!(find(&[]), Err("the command is empty".to_owned()));
    assert_eq!(find(&[""]), Err("the command is empty".to_owned()));
}

/// A command with a child of its own; both say their number and wait.
const FAMILY: &str = "sleep 600 & echo $$ $!; wait";

/// Begins a command that prints numbers of processes, and returns them.
async fn begin_family(engine: &TestEngine) -> (switchboard_core::model::TaskId, Vec<i32>) {
    let id = engine.begin("").await;
    let pids = eventually("the command says its numbers", async || {
        let task = engine.task(&id).await;
        let text = task.artifacts.first()?.text();
        Some(text.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<i32>>())
    });
    let pids = pids.await;
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    (id, pids)
}

async fn all_dead(pids: &[i32]) {
    eventually("they are gone", async || pids.iter().all(|pid| !is_alive(*pid)).then_some(())).await;
}

#[tokio::test]
async fn a_cancel_ends_the_command_and_its_children() {
    let engine = TestEngine::of(shell(FAMILY));
    let (id, pids) = begin_family(&engine).await;
    assert_eq!(test_kill_process_group(Pid::from_raw(pids[0]).unwrap()), Ok(()));
    assert_eq!(engine.cancel(&id).await.state(), TaskState::Canceled);
    assert!(!is_alive(pids[0]));
    all_dead(&pids).await;
}

#[tokio::test]
async fn a_cancel_lets_the_command_say_goodbye() {
    let engine = TestEngine::of(shell("trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 0.01; done"));
    let (id, _) = begin_family(&engine).await;
    let task = engine.cancel(&id).await;
    assert_eq!(task.state(), TaskState::Canceled);
    assert!(output(&task).ends_with("bye\n"), "{task:?}");
}

#[tokio::test]
async fn a_command_deaf_to_the_cancel_is_killed() {
    let engine = TestEngine::of(shell(
        "trap '' TERM; (trap '' TERM; while :; do sleep 1; done) & echo $$ $!; wait; wait; sleep 600",
    ));
    let (id, pids) = begin_family(&engine).await;
    let begun = Instant::now();
    assert_eq!(engine.cancel(&id).await.state(), TaskState::Canceled);
    assert!(begun.elapsed() >= TERM_GRACE);
    all_dead(&pids).await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let mut agent = shell(FAMILY);
    agent.run_max = Duration::from_secs(2);
    let engine = TestEngine::of(agent);
    let (id, pids) = begin_family(&engine).await;
    let task =
        eventually("the time is up", async || Some(engine.task(&id).await).filter(|task| task.state().is_terminal()));
    let expected = "Task timed out: the command did not end within 2 s".to_owned();
    assert_eq!(status(&task.await), (TaskState::Failed, expected));
    all_dead(&pids).await;
}

#[tokio::test]
async fn a_call_that_asks_for_less_time_ends_the_command_sooner() {
    let engine = TestEngine::of(shell("sleep 600"));
    let asked = Json::from_trusted(r#"{"switchboard.runTimeoutSeconds":1}"#);
    let task = engine.send_with(user(vec![Part::text("")]), Some(asked)).await;
    let expected = "Task timed out: the command did not end within 1 s".to_owned();
    assert_eq!(status(&task), (TaskState::Failed, expected));
    assert_eq!((engine.runs().ended(RunEnd::TimedOut), engine.runs().timed_out(), engine.runs().failed()), (1, 1, 0));
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_nothing_behind() {
    let engine = TestEngine::of(shell(FAMILY));
    let (_, pids) = begin_family(&engine).await;
    engine.engine.shutdown(Duration::ZERO).await;
    all_dead(&pids).await;
}

#[tokio::test]
async fn what_a_finished_command_leaves_running_is_ended() {
    let engine = TestEngine::of(shell("sleep 600 & echo $!"));
    let task = engine.say("").await;
    assert_eq!(task.state(), TaskState::Completed);
    all_dead(&[output(&task).trim().parse().unwrap()]).await;
}

/// Starts a child in a session of its own, and prints its number when it is in it.
const DAEMON: &str = "setsid sleep 600 & child=$!
    until read -r pid name state parent group session rest < /proc/$child/stat && [ $session = $child ]; do :; done
    echo $child";

#[tokio::test]
async fn a_child_with_a_session_of_its_own_ends_with_the_command() {
    let task = TestEngine::of(shell(DAEMON)).say("").await;
    assert_eq!(task.state(), TaskState::Completed);
    all_dead(&[output(&task).trim().parse().unwrap()]).await;
}

#[tokio::test]
async fn a_child_with_a_session_of_its_own_ends_when_the_task_is_canceled() {
    let engine = TestEngine::of(shell(&format!("{DAEMON}; sleep 600")));
    let id = engine.begin("").await;
    let daemon = eventually("the child has its session", async || {
        let task = engine.task(&id).await;
        task.artifacts.first().and_then(|artifact| artifact.text().trim().parse::<i32>().ok())
    })
    .await;
    assert!(is_alive(daemon));
    assert_eq!(engine.cancel(&id).await.state(), TaskState::Canceled);
    all_dead(&[daemon]).await;
}

#[tokio::test]
async fn a_command_gains_no_rights_unless_it_may() {
    let of_tests = std::fs::read_to_string("/proc/self/status").unwrap();
    for (no_new_privileges, expected) in [(true, "NoNewPrivs:\t1\n"), (false, "NoNewPrivs:\t0\n")] {
        // Those who run the tests may have given up new rights themselves.
        if !no_new_privileges && of_tests.contains("NoNewPrivs:\t1") {
            continue;
        }
        let mut agent = shell("grep NoNewPrivs /proc/self/status");
        agent.confinement.no_new_privileges = no_new_privileges;
        assert_eq!(output(&TestEngine::of(agent).say("").await), expected);
    }
}

#[tokio::test]
async fn a_command_takes_no_more_memory_or_time_than_it_may() {
    let mut agent = shell("ulimit -v; ulimit -t");
    agent.confinement.memory_bytes_max = Some(512 << 20);
    agent.confinement.cpu_s_max = Some(7);
    assert_eq!(output(&TestEngine::of(agent).say("").await), "524288\n7\n");

    let mut agent = shell("while :; do :; done");
    agent.confinement.cpu_s_max = Some(1);
    let told = told(&TestEngine::of(agent).say("").await);
    assert!(told.starts_with("The command was ended by signal"), "{told}");

    // tail holds what it has read.
    let mut agent = shell("head -c 300000000 /dev/zero | tail -c 300000000 > /dev/null");
    agent.confinement.memory_bytes_max = Some(64 << 20);
    let (state, _) = status(&TestEngine::of(agent).say("").await);
    assert_eq!(state, TaskState::Failed);
}

/// Only a server that runs as root can run commands as another user.
#[tokio::test]
async fn a_command_runs_as_the_user_that_it_is_to() {
    let mut agent = shell("id -u; id -g; id -G; cat $A2A_MESSAGE_FILE > /dev/null && stat -c %u $A2A_MESSAGE_FILE");
    agent.user = Some(User { uid: 65_534, gid: 65_533 });
    let task = TestEngine::of(agent).say("hello").await;
    match rustix::process::getuid().is_root() {
        true => assert_eq!(output(&task), "65534\n65533\n65533\n65534\n"),
        false => assert_eq!(task.state(), TaskState::Failed),
    }
}

#[tokio::test]
async fn each_turn_runs_the_command_again() {
    let engine = TestEngine::of(shell("cat; test ! -e /nonexistent"));
    let first = engine.say("one").await;
    let mut again = Message { context_id: Some(first.context_id.clone()), ..user(vec![Part::text("two")]) };
    again.message_id = "message-2".into();
    let second = engine.send(again).await;
    assert_eq!((output(&first).as_str(), output(&second).as_str()), ("one", "two"));
    assert_eq!(first.context_id, second.context_id);
}

#[tokio::test]
async fn only_so_many_run_at_once_and_a_waiting_one_can_be_canceled() {
    let mut agent = shell(FAMILY);
    agent.processes_max = 1;
    let engine = TestEngine::of(agent);
    let (first, pids) = begin_family(&engine).await;
    let waiting = engine.begin("").await;
    let next = engine.begin("").await;
    eventually("all are at work or wait", async || (engine.engine.runs_alive() == 3).then_some(())).await;
    assert_eq!(engine.cancel(&waiting).await.state(), TaskState::Canceled);
    assert_eq!(engine.task(&next).await.artifacts, []);
    engine.cancel(&first).await;
    all_dead(&pids).await;
    eventually("the next one runs", async || engine.task(&next).await.artifacts.first().map(|_| ())).await;
    assert_eq!(engine.cancel(&next).await.state(), TaskState::Canceled);
}

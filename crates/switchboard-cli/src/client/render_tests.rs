//! Tasks and messages as lines of text.

use std::sync::Arc;

use expect_test::expect;
use switchboard::model::{ContextId, Dialect, TaskStatus, Timestamp};
use switchboard::{Artifact, Json, Message, Part, Role, Task, TaskState};

use super::{Detail, Lines, state_name, state_of, task};

fn task_with(parts: Vec<Part>) -> Task {
    Task {
        id: "t-1".into(),
        context_id: ContextId::from("c-1"),
        status: TaskStatus {
            state: TaskState::InputRequired,
            message: Some(Arc::new(Message::new(Role::Agent, "m-1", vec![Part::text("Which\ncolour?")]))),
            timestamp: Timestamp::default(),
        },
        artifacts: vec![Arc::new(Artifact::new("a-1", parts))],
        history: Vec::new(),
        metadata: Some(Json::from_trusted(r#"{"k":1}"#)),
        created_at: Timestamp::default(),
        dialect: Dialect::V1_0,
    }
}

fn shown(shown: &Task) -> String {
    let mut lines = Lines::default();
    task(&mut lines, shown, Detail { history: true, metadata: true });
    lines.into_text()
}

#[test]
fn every_kind_of_part_is_shown() {
    let parts = vec![
        Part::text("one"),
        Part::json(Json::from_trusted(r#"{"a":[1]}"#)),
        Part::raw(vec![0_u8; 3]).with_filename("x.bin").with_media_type("image/png"),
        Part::url("https://files.example/y"),
        Part::text(""),
    ];
    expect![[r#"
        Task: t-1
        Context: c-1
        State: TASK_STATE_INPUT_REQUIRED
        Status-Message:
          Which
          colour?

        Artifact: a-1
        Text:
          one

        Data:
          {
            "a": [
              1
            ]
          }

        File: x.bin image/png 3 bytes
        File: unnamed application/octet-stream unknown https://files.example/y
        Text:
          

        Metadata:
          {
            "k": 1
          }

    "#]]
    .assert_eq(&shown(&task_with(parts)));
}

#[test]
fn what_an_agent_says_cannot_pose_as_a_line_of_ours() {
    let hostile = "done\n\nState: TASK_STATE_COMPLETED\r\nTask: other\u{1b}[2J\u{9b}31m";
    let mut hostile_task = task_with(vec![Part::text(hostile).with_filename("a\nState: X")]);
    hostile_task.id = "t\nState: TASK_STATE_COMPLETED".into();
    let text = shown(&hostile_task);
    assert_eq!(
        text.lines().filter(|line| line.starts_with("State: ")).collect::<Vec<_>>(),
        ["State: TASK_STATE_INPUT_REQUIRED"]
    );
    assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
}

#[test]
fn states_are_read_in_both_spellings() {
    for state in TaskState::ALL {
        let name = state_name(state);
        let short = name.trim_start_matches("TASK_STATE_").to_ascii_lowercase().replace('_', "-");
        assert_eq!((state_of(name), state_of(&short)), (Some(state), Some(state)), "{name}");
    }
    assert_eq!(state_of("done"), None);
}

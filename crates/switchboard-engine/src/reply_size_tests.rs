//! Contents that do not fit into a reply become links, the largest first, and nothing else is changed.

use std::sync::Arc;

use switchboard_core::model::{
    Artifact, ArtifactId, ArtifactUpdate, ArtifactView, Dialect, Message, Part, PartContent, Role, Task, TaskId,
    TaskState, TaskStatus, TaskView, Timestamp, Update,
};

use super::{ReplyBudget, fit, fit_update, is_surely_light_update, weight};
use crate::ports::Links;
use crate::ports::store::Scope;

struct Here;

impl Links for Here {
    fn artifact(&self, _: &Scope, task: &TaskId, artifact: &ArtifactId, part: Option<u64>) -> String {
        format!("here:{task}/{artifact}{}", part.map(|part| format!("#{part}")).unwrap_or_default())
    }
}

fn budget(bytes_max: u64) -> ReplyBudget {
    ReplyBudget { bytes_max, links: Arc::new(Here) }
}

fn scope() -> Scope {
    Scope { owner: switchboard_core::call::Owner::default(), agent: "a".into() }
}

fn view(artifacts: Vec<Artifact>, history: &[usize]) -> TaskView {
    let message = |length: &usize| Arc::new(Message::new(Role::User, "m", vec![Part::text("x".repeat(*length))]));
    let task = Task {
        id: "t".into(),
        context_id: "c".into(),
        status: TaskStatus { state: TaskState::Working, message: None, timestamp: Timestamp::default() },
        artifacts: artifacts.into_iter().map(Arc::new).collect(),
        history: history.iter().map(message).collect(),
        metadata: None,
        created_at: Timestamp::default(),
        dialect: Dialect::V1_0,
    };
    TaskView::whole(Arc::new(task))
}

fn text(id: &str, length: usize) -> Artifact {
    Artifact::new(id, vec![Part::text("x".repeat(length))])
}

fn is_linked(artifact: &Artifact) -> bool {
    matches!(&artifact.parts[..], [Part { content: PartContent::Url(_), .. }])
}

fn fitted(bytes_max: u64, view: TaskView) -> TaskView {
    let fitted = fit(&budget(bytes_max), &scope(), view);
    assert!(weight(&fitted) <= bytes_max, "{} is more than {bytes_max}", weight(&fitted));
    fitted
}

#[test]
fn what_fits_is_left_as_it_is() {
    let whole = view(vec![text("a", 1000), text("b", 2000)], &[100, 100]);
    let weighs = weight(&whole);
    assert_eq!(fitted(weighs, whole.clone()), whole);
    assert_eq!(fitted(1 << 20, whole.clone()), whole);
}

#[test]
fn the_largest_artifacts_become_links_and_keep_their_place() {
    let mut large = text("b", 20_000);
    large = large.with_name("big");
    large.parts[0].change_details(|details| details.filename = Some("b.txt".to_owned()));
    let shown = fitted(20_000, view(vec![text("a", 5_000), large, text("c", 5_000)], &[10]));
    let artifacts = &shown.task.artifacts;
    assert_eq!(artifacts.iter().map(|made| is_linked(made)).collect::<Vec<_>>(), [false, true, false]);
    let expected = Part::url("here:t/b").with_filename("b.txt").with_media_type("text/plain; charset=utf-8");
    assert_eq!((artifacts[1].name(), &artifacts[1].parts[..]), (Some("big"), &[expected][..]));
    assert_eq!(shown.history().len(), 1);
}

#[test]
fn what_grows_when_it_is_written_counts_as_written() {
    let controls = Artifact::new("a", vec![Part::text("\u{1}".repeat(5_000))]);
    assert!(is_linked(&fitted(20_000, view(vec![controls], &[])).task.artifacts[0]));
}

#[test]
fn history_is_shortened_to_its_newest_part() {
    let shown = fitted(22_500, view(vec![text("a", 9_000)], &[4_000, 4_000, 4_000]));
    assert!(!is_linked(&shown.task.artifacts[0]));
    assert_eq!(shown.history().len(), 2);
    // A caller that asks for no artifacts has more of the budget for history.
    let listed = TaskView { artifacts: ArtifactView::Omitted, ..view(vec![text("a", 90_000)], &[4_000, 4_000, 4_000]) };
    assert_eq!(fitted(20_000, listed).history().len(), 3);
    assert_eq!(fitted(4_000, view(Vec::new(), &[4_000])).history().len(), 0);
}

#[test]
fn different_parts_are_linked_one_by_one_and_small_ones_stay() {
    let parts = vec![
        Part::text("see the picture"),
        Part::raw(vec![0; 40_000]).with_media_type("image/png").with_filename("p.png"),
        Part::url("https://example.com/"),
    ];
    let shown = fitted(20_000, view(vec![Artifact::new("a", parts.clone())], &[]));
    let picture = Part::url("here:t/a#1").with_media_type("image/png").with_filename("p.png");
    assert_eq!(shown.task.artifacts[0].parts, [parts[0].clone(), picture, parts[2].clone()]);

    // Pieces of one content have one link, and so have parts that are too many to link separately.
    let pieces = Artifact::new("a", vec![Part::raw(vec![0; 5_000]); 20]);
    assert_eq!(fitted(20_000, view(vec![pieces], &[])).task.artifacts[0].parts.len(), 1);
    let mixed = (0..40).map(|n| if n % 2 == 0 { Part::raw(vec![0; 5_000]) } else { Part::text("x") }).collect();
    assert_eq!(fitted(20_000, view(vec![Artifact::new("a", mixed)], &[])).task.artifacts[0].parts.len(), 1);
}

fn written(artifact: Artifact, append: bool, last_chunk: bool) -> Update {
    let (task_id, context_id, artifact) = ("t".into(), "c".into(), artifact.into());
    Update::Artifact(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk, metadata: None })
}

fn link(update: Option<Update>) -> Option<String> {
    let Some(Update::Artifact(update)) = update else { return None };
    match &update.artifact.parts[0].content {
        PartContent::Url(url) => Some(url.clone()),
        _ => None,
    }
}

#[test]
fn a_chunk_that_does_not_fit_a_frame_is_a_link_to_that_chunk() {
    let fit = |update: &Update| fit_update(&budget(20_000), &scope(), Some(7), update);
    for (append, last_chunk, address) in
        [(false, true, "here:t/a"), (false, false, "here:t/a?update=7"), (true, true, "here:t/a?update=7")]
    {
        let update = written(text("a", 30_000), append, last_chunk);
        assert!(!is_surely_light_update(&update, 20_000));
        assert_eq!(link(fit(&update)).as_deref(), Some(address), "append {append}, last {last_chunk}");
        assert_eq!(fit(&written(text("a", 10_000), append, last_chunk)), None);
    }
    assert!(is_surely_light_update(&written(text("a", 100), true, false), 20_000));
}

#[test]
fn a_task_that_opens_a_stream_fits_a_frame() {
    let opened = Update::Task(view(vec![text("a", 30_000)], &[4_000]));
    let Some(Update::Task(shown)) = fit_update(&budget(20_000), &scope(), Some(1), &opened) else { panic!("fitted") };
    assert!(is_linked(&shown.task.artifacts[0]) && shown.history().len() == 1);
}

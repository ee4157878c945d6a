//! The directory over folders and files.

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tokio::time::{Duration, advance};

use super::{Agents, Directory, Sources};

fn write(folder: &Path, file: &str, text: &str) {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn names(agents: &Agents) -> Vec<&str> {
    agents.entries().iter().map(|entry| entry.name.as_str()).collect()
}

fn problems(agents: &Agents) -> Vec<String> {
    agents.problems().iter().map(ToString::to_string).collect()
}

/// A workspace of folders: the apps `mail` and `analytics`.
fn workspace() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "package.json", r#"{"agent-native": {"workspaceCore": "@ws/core"}}"#);
    write(folder.path(), "apps/mail/package.json", r#"{"description": "Letters"}"#);
    write(folder.path(), "apps/analytics/package.json", "{}");
    write(folder.path(), "apps/notes.txt", "no app");
    write(folder.path(), "apps/.cache/package.json", "{}");
    folder
}

fn sources(folder: &Path) -> Sources {
    Sources::new(folder).gateway("https://ws.example")
}

#[tokio::test]
async fn the_environment_comes_before_the_file_and_the_file_before_the_folders() {
    let folder = workspace();
    let inside = folder.path().join("apps/mail/src");
    fs::create_dir_all(&inside).unwrap();
    let scanned = Directory::open(sources(&inside)).await.known();
    assert_eq!(names(&scanned), ["Analytics", "Mail"], "the root is found from a folder below it");
    assert_eq!(scanned.find("mail").unwrap().description, "Letters");

    write(folder.path(), "workspace-apps.json", r#"[{"id": "second", "path": "/second"}]"#);
    assert_eq!(names(&Directory::open(sources(folder.path())).await.known()), ["Second"]);
    write(folder.path(), ".agent-native/workspace-apps.json", r#"{"apps": [{"id": "first", "path": "/first"}]}"#);
    assert_eq!(names(&Directory::open(sources(folder.path())).await.known()), ["First"]);

    let variables = |name: &str| match name {
        "AGENT_NATIVE_WORKSPACE_APPS_JSON" => Some(r#"[{"id": "zero", "path": "/zero"}]"#.to_owned()),
        "APP_URL" => Some("https://app.example/".to_owned()),
        "URL" => Some("https://never.example".to_owned()),
        "WORKSPACE_GATEWAY_URL" => Some("  ".to_owned()),
        _ => None,
    };
    let agents = Directory::open(Sources::new(folder.path()).environment(variables)).await.known();
    assert_eq!((names(&agents), agents.entries()[0].url.as_str()), (vec!["Zero"], "https://app.example/zero"));

    // A manifest that is no manifest at all leaves the word to the next source, and is reported.
    let agents = Directory::open(sources(folder.path()).manifest("{")).await.known();
    assert_eq!(names(&agents), ["First"]);
    assert!(problems(&agents)[0].starts_with("AGENT_NATIVE_WORKSPACE_APPS_JSON:1: is no list of apps"), "{agents:?}");
}

#[tokio::test]
async fn the_agent_that_dispatches_comes_first_and_this_program_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = r#"[{"id": "beta", "path": "/b"}, {"id": "Alpha", "path": "/a"}, {"id": "dispatch", "path": "/d"},
        {"id": "hub", "path": "/h", "isDispatch": true}, {"id": "own", "path": "/own"}, {"id": "secret", "path": "/s"}]"#;
    let directory = Directory::open(sources(folder.path()).manifest(manifest).own_id("OWN").hide("Secret")).await;
    let agents = directory.known();
    assert_eq!(names(&agents), ["Dispatch", "Hub", "Alpha", "Beta"]);
    assert_eq!(agents.own().unwrap().url, "https://ws.example/own");
    for name in ["own", "secret"] {
        let unknown = agents.find(name).unwrap_err().to_string();
        assert_eq!(unknown, format!("no agent is called {name:?}; there are: Dispatch, Hub, Alpha, Beta"));
    }
}

#[tokio::test]
async fn agents_are_found_by_id_or_name_in_any_case() {
    let folder = tempfile::tempdir().unwrap();
    let manifest =
        r#"[{"id": "assets", "path": "/assets", "name": "Media Library"}, {"id": "b", "path": "/b", "name": "Ärzte"}]"#;
    let agents = Directory::open(sources(folder.path()).manifest(manifest)).await.known();
    for name in ["assets", "ASSETS", "media library", " Media Library ", "image", "Images", "asset"] {
        assert_eq!(agents.find(name).unwrap().id, "assets", "{name}");
    }
    assert_eq!(agents.find("ärzte").unwrap().id, "b");
    let empty = Directory::open(Sources::new(folder.path())).await.known();
    assert_eq!(empty.find("x").unwrap_err().to_string(), "no agent is called \"x\"; the directory is empty");
    let many: Vec<String> = (0..60).map(|n| format!(r#"{{"id": "a{n:02}", "path": "/{n}"}}"#)).collect();
    let many = Directory::open(sources(folder.path()).manifest(format!("[{}]", many.join(",")))).await.known();
    let text = many.find(&"x".repeat(500)).unwrap_err().to_string();
    assert!(text.ends_with("A48, A49 and 10 more") && text.len() < 500, "{text}");
}

#[tokio::test]
async fn two_agents_of_one_name_are_reported_and_the_first_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = "[{\"id\": \"mail\", \"path\": \"/one\"},\n{\"id\": \"MAIL\", \"path\": \"/two\"},\n{\"id\": \"x\", \"name\": \"Mail\", \"path\": \"/x\"}]";
    let agents = Directory::open(sources(folder.path()).manifest(manifest)).await.known();
    assert_eq!(agents.find("mail").unwrap().url, "https://ws.example/one");
    assert_eq!(agents.entries().len(), 1);
    let rest = "the one of AGENT_NATIVE_WORKSPACE_APPS_JSON:1 is kept, and this one cannot be called until it has another id and name";
    assert_eq!(
        problems(&agents),
        [
            format!("AGENT_NATIVE_WORKSPACE_APPS_JSON:2: two agents are called \"MAIL\"; {rest}"),
            format!("AGENT_NATIVE_WORKSPACE_APPS_JSON:3: two agents are called \"Mail\"; {rest}"),
        ]
    );
}

#[tokio::test]
async fn agents_outside_the_workspace_have_files_of_their_own() {
    let folder = workspace();
    write(folder.path(), "remote-agents/weather.json", r#"{"name": "Weather", "url": "https://w.example"}"#);
    write(folder.path(), "remote-agents/broken.json", "{\n\"name\": 7}");
    write(folder.path(), "remote-agents/readme.md", "no agent");
    write(folder.path(), "agents/old.json", r#"{"id": "elder", "name": "Elder", "url": "https://e.example"}"#);
    write(folder.path(), "agents/mail.json", r#"{"name": "Mail", "url": "https://elsewhere.example"}"#);
    let agents = Directory::open(sources(folder.path())).await.known();
    assert_eq!(names(&agents), ["Analytics", "Elder", "Mail", "Weather"]);
    assert_eq!(agents.find("mail").unwrap().url, "https://ws.example/mail", "the workspace comes first");
    assert_eq!(agents.find("weather").unwrap().found_in.to_string(), "remote-agents/weather.json");
    assert!(problems(&agents)[0].starts_with("remote-agents/broken.json:2: is no agent: "), "{agents:?}");
}

#[tokio::test(start_paused = true)]
async fn what_has_changed_is_read_again_and_a_half_written_manifest_changes_nothing() {
    let folder = workspace();
    let directory = Directory::open(sources(folder.path())).await;
    assert_eq!(names(&*directory.agents().await), ["Analytics", "Mail"]);

    write(folder.path(), "apps/crm/package.json", "{}");
    assert_eq!(names(&*directory.agents().await).len(), 2, "files are not looked at for every question");
    advance(Duration::from_secs(2)).await;
    assert_eq!(names(&*directory.agents().await), ["Analytics", "Crm", "Mail"]);
    assert_eq!(names(&directory.known()).len(), 3);

    fs::remove_dir_all(folder.path().join("apps/mail")).unwrap();
    assert_eq!(names(&*directory.refresh().await), ["Analytics", "Crm"]);

    write(folder.path(), "workspace-apps.json", r#"{"apps": "#);
    assert_eq!(names(&*directory.refresh().await), ["Analytics", "Crm"]);
    write(folder.path(), "workspace-apps.json", r#"{"apps": [{"id": "solo", "path": "/solo"}]}"#);
    assert_eq!(names(&*directory.refresh().await), ["Solo"]);
    write(folder.path(), "workspace-apps.json", r#"{"apps": "#);
    assert_eq!(names(&*directory.refresh().await), ["Solo"], "the folders would say something else");
    fs::remove_file(folder.path().join("workspace-apps.json")).unwrap();
    assert_eq!(names(&*directory.refresh().await), ["Analytics", "Crm"]);

    let before = directory.known();
    write(folder.path(), "remote-agents/w.json", r#"{"name": "W", "url": "https://w.example"}"#);
    assert_eq!(names(&*directory.refresh().await), ["Analytics", "Crm", "W"]);
    assert_eq!(names(&before), ["Analytics", "Crm"], "whoever has the old list keeps it");
}

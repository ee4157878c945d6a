//! Manifests as people write them, right and wrong.

use super::{Place, by_braces, is_workspace_root, read_manifest, read_package, read_remote, strictly};

fn at(base: &str) -> Place {
    Place { base: Some(base.to_owned()), is_hosted: false }
}

/// Each entry as `id|name|url|is_dispatch`, and each problem as it is printed.
fn read(text: &str, place: &Place) -> (Vec<String>, Vec<String>) {
    let read = read_manifest("apps.json", text, place);
    let entry = |e: &super::DirectoryEntry| format!("{}|{}|{}|{}", e.id, e.name, e.url, e.is_dispatch);
    (read.entries.iter().map(entry).collect(), read.problems.iter().map(ToString::to_string).collect())
}

#[test]
fn a_list_and_an_object_with_a_list_are_manifests() {
    let apps = r#"[{"id":"mail","path":"/mail"},{"id":"dispatch","path":"/dispatch","name":"Router","unknown":1}]"#;
    let expected = vec![
        "mail|Mail|https://ws.example/mail|false".to_owned(),
        "dispatch|Router|https://ws.example/dispatch|true".to_owned(),
    ];
    for text in [apps.to_owned(), format!("{{\"apps\":{apps}}}"), format!("\u{feff}\n{apps}\n")] {
        assert_eq!(read(&text, &at("https://ws.example/")), (expected.clone(), vec![]), "{text}");
    }
}

#[test]
fn the_address_of_an_app_is_its_own_or_below_the_workspace() {
    let text = r#"[{"id":"a","path":"/apps/a/"},{"id":"b","path":"/b","url":"https://b.example/x/"},
        {"id":"c","path":"/c","url":"http://localhost:4000/c"},{"id":"d","path":"/d","port":4001}]"#;
    let (entries, problems) = read(text, &at("https://ws.example"));
    assert_eq!(problems, Vec::<String>::new());
    let urls = |entries: &[String]| entries.iter().map(|e| e.split('|').nth(2).unwrap().to_owned()).collect::<Vec<_>>();
    let own = ["https://ws.example/apps/a", "https://b.example/x", "http://localhost:4000/c", "https://ws.example/d"];
    assert_eq!(urls(&entries), own);

    let hosted = Place { is_hosted: true, ..at("https://ws.example") };
    assert_eq!(
        urls(&read(text, &hosted).0)[2],
        "https://ws.example/c",
        "an address of this machine is not used where it is hosted"
    );

    let (entries, problems) = read(text, &Place::default());
    assert_eq!(urls(&entries), ["https://b.example/x", "http://localhost:4000/c", "http://127.0.0.1:4001/d"]);
    assert_eq!(
        problems,
        [
            "apps.json:1: the app has no address; give it a url, or set WORKSPACE_GATEWAY_URL or APP_URL to that of the workspace"
        ]
    );
}

#[test]
fn the_audience_of_an_app_is_its_address_without_the_endpoint() {
    let text = r#"[{"id":"a","path":"/apps/a","url":"https://ws.example/apps/a/_agent-native/a2a"},{"id":"b","path":"/apps/b"}]"#;
    let read = read_manifest("apps.json", text, &at("https://ws.example"));
    let audiences: Vec<&str> = read.entries.iter().map(super::DirectoryEntry::audience).collect();
    assert_eq!(audiences, ["https://ws.example/apps/a", "https://ws.example/apps/b"]);
}

#[test]
fn a_wrong_entry_is_named_with_its_line_and_costs_itself_alone() {
    let text = r#"{"apps": [
  {"id": "good", "path": "/good"},
  {"id": "no path"},
  {"id": "slash",
   "path": "slash"},
  {"id": "port", "path": "/port",
   "port": "4000"},
  {"id": "user", "path": "/u", "url": "https://me:pass@u.example"},
  {"id": "file", "path": "/f", "url": "file:///etc/passwd"},
  7,
  {"id": "last", "path": "/last"}
]}"#;
    let (entries, problems) = read(text, &at("https://ws.example"));
    assert_eq!(
        entries,
        ["good|Good|https://ws.example/good|false", "last|Last|https://ws.example/last|false"].map(str::to_owned)
    );
    let expected = [
        "apps.json:3: no app: missing field `path` at line 1 column 17",
        "apps.json:4: path: \"slash\" is no path of an app; expected one such as \"/slash\"",
        "apps.json:7: no app: invalid type: string \"4000\", expected u16 at line 2 column 17",
        "apps.json:8: url: holds a user name or password; credentials do not belong into a manifest",
        "apps.json:9: url: \"file:///etc/passwd\" is no address of an agent; expected one such as \"https://agents.example/mail\"",
    ];
    assert_eq!(problems[..5], expected);
    assert!(problems[5].starts_with("apps.json:10: no app: invalid type: integer `7`"), "{}", problems[5]);
    assert!(!problems.iter().any(|problem| problem.contains("pass@")), "no credential is quoted");
}

#[test]
fn an_entry_that_is_no_json_costs_itself_alone() {
    let text = "[\n {\"id\": \"a\", \"path\": \"/a\"},\n {\"id\": \"b\", \"path\": },\n {\"id\": \"c, \"path\": \"/c\"},\n {\"id\": \"d\", \"path\": \"/d\"}\n]";
    let (entries, problems) = read(text, &at("https://ws.example"));
    let ids: Vec<&str> = entries.iter().filter_map(|entry| entry.split('|').next()).collect();
    assert_eq!(ids, ["a", "d"]);
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(problems[0].starts_with("apps.json:3: ") && problems[1].starts_with("apps.json:4: "), "{problems:?}");
}

#[test]
fn a_text_without_a_list_is_not_readable() {
    for (text, line) in [("", 1), ("hello", 1), ("{\n\"app\": []}", 2), ("{\"other\": [{}], \"x\": }", 1)] {
        let read = read_manifest("apps.json", text, &Place::default());
        assert!(!read.is_readable && read.entries.is_empty() && read.problems.len() == 1, "{text}: {read:?}");
        assert_eq!(read.problems[0].at.line, Some(line), "{text}: {}", read.problems[0]);
    }
    assert!(read_manifest("apps.json", "[]", &Place::default()).is_readable);
}

#[test]
fn packages_and_remote_agents_are_entries() {
    let package = r#"{"name": "@ws/sales-desk", "displayName": "Sales", "description": "Sells"}"#;
    let entry = read_package("apps/sales-desk/package.json", "sales-desk", package, &at("https://ws.example")).unwrap();
    assert_eq!((entry.name.as_str(), entry.url.as_str()), ("Sales", "https://ws.example/sales-desk"));
    let entry = read_package("apps/sales-desk/package.json", "sales-desk", "{}", &at("https://ws.example")).unwrap();
    assert_eq!(entry.name, "Sales Desk");
    assert_eq!(read_package("p", "x", "{\n,}", &Place::default()).unwrap_err().at.to_string(), "p:2");

    let remote = r##"{"name": "Weather", "url": "https://w.example/", "description": "Rain", "color": "#fff"}"##;
    let entry = read_remote("remote-agents/weather.json", "weather", remote, false).unwrap();
    assert_eq!((entry.id.as_str(), entry.url.as_str(), entry.is_app()), ("weather", "https://w.example", false));
    let private = r#"{"id": "x", "name": "X", "url": "http://127.0.0.1:1"}"#;
    assert!(read_remote("r", "x", private, false).is_ok());
    assert_eq!(
        read_remote("r", "x", private, true).unwrap_err().to_string(),
        "r: url: http://127.0.0.1:1 is an address of this machine, and this process is hosted"
    );

    for (text, is_root) in [
        (r#"{"agent-native": {"workspaceCore": "@ws/core"}}"#, true),
        (r#"{"agent-native": {"workspaceCore": ""}}"#, false),
        (r#"{"agent-native": {}}"#, false),
        ("[]", false),
        ("nothing", false),
    ] {
        assert_eq!(is_workspace_root(text), is_root, "{text}");
    }
}

proptest::proptest! {
    /// Of a manifest that is JSON, both ways find the same entries; of any text, neither panics.
    #[test]
    fn braces_find_what_json_finds(names in proptest::collection::vec("[^\\p{C}]{0,12}", 1..6), junk in ".{0,60}") {
        let entries: Vec<_> = names.iter().map(|name| serde_json::json!({"id": name, "sub": {"x": [name]}})).collect();
        for text in [serde_json::to_string(&entries).unwrap(), serde_json::to_string_pretty(&entries).unwrap()] {
            proptest::prop_assert_eq!(by_braces(&text).unwrap(), strictly(&text).unwrap());
            let cut = junk.len() % text.len();
            let cut = (0..=cut).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let _ = read_manifest("m", &format!("{}{junk}{}", &text[..cut], &text[cut..]), &Place::default());
        }
        let _ = read_manifest("m", &junk, &Place::default());
    }
}

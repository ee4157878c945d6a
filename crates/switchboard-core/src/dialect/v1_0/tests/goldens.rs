//! The golden files under `tests/golden/v1_0`: requests as a 1.0 client writes them (`golden_requests`) and replies as
//! they leave (`golden_replies`). `ORIGINS.md` there says where each comes from. To accept a change of a reply, run the
//! tests with `UPDATE_EXPECT=1` and read the difference.

use std::fs;
use std::path::PathBuf;

use expect_test::expect_file;

use crate::model::{AuthenticationInfo, Json, PushConfig};

pub(super) fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "golden", "v1_0"].iter().collect()
}

pub(super) fn golden(name: &str) -> String {
    let path = folder().join(format!("{name}.json"));
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(super) fn check_written(name: &str, written: &str) {
    expect_file![folder().join(format!("{name}.json"))].assert_eq(&format!("{written}\n"));
}

pub(super) fn json(text: &str) -> Json {
    Json::parse(text, Default::default()).unwrap()
}

pub(super) fn hook() -> PushConfig {
    PushConfig {
        id: "hook-1".into(),
        task_id: "task-7".into(),
        url: "https://hooks.example/tasks".to_owned(),
        token: Some("echo-me".to_owned()),
        authentication: Some(AuthenticationInfo { scheme: "Basic".to_owned(), credentials: Some("dTpw".to_owned()) }),
    }
}

#[test]
fn every_golden_file_has_a_known_origin() {
    let origins = fs::read_to_string(folder().join("ORIGINS.md")).unwrap();
    let mut listed: Vec<_> =
        origins.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).map(str::to_owned).collect();
    let mut present: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".json"))
        .collect();
    listed.sort();
    present.sort();
    assert_eq!(listed, present);
}

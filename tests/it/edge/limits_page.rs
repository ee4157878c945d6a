//! `docs/limits.md` says what the code allows: each value of its tables is the one in the code, each limit of the code has
//! a row, and each setting that is a number is named there with its default.
//!
//! A name in the second column is a field of one of the structs of limits, a link to the file of a constant, or a setting.
//! Fields are taken from the defaults themselves; constants, most of which are private, from the text of their files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::path::{Path, PathBuf};

use switchboard::{CorvidOptions, Limits, SelectoolsOptions, ServerLimits, SqliteOptions};
use switchboard_core::dialect::json::DecodeLimits;

const PAGE: &str = include_str!("../../../docs/limits.md");
const CONFIGURATION: &str = include_str!("../../../docs/configuration.md");

/// Constants that look like limits and bound nothing of their own.
const NO_LIMITS: &[(&str, &str, &str)] = &[
    ("switchboard-fuzz/src/lib.rs", "INPUT_BYTES_MAX", "the fuzz targets of the tests"),
    ("switchboard-fuzz/src/lib.rs", "INPUT_TIME_MAX", "the fuzz targets of the tests"),
    ("switchboard/src/server/builder.rs", "MEMORY_TASKS_MAX_DEFAULT", "TASKS_MAX_DEFAULT under a public name"),
    ("switchboard-cli/src/config/resolve.rs", "MEMORY_TASKS_MAX", "the same"),
    (
        "switchboard/src/server/builder.rs",
        "MEMORY_STORAGE_BYTES_MAX_DEFAULT",
        "STORAGE_BYTES_MAX_DEFAULT under a public name",
    ),
    ("switchboard-core/src/dialect/compat/corvid/call.rs", "DEPTH_MAX", "the default of corvid_depth_max"),
    ("switchboard-core/src/dialect/compat/corvid/call.rs", "TIMEOUT_MS_DEFAULT", "the default of corvid_timeout_ms"),
    ("switchboard-core/src/model/timestamp.rs", "MIN_MS", "the first moment that RFC 3339 can spell"),
    ("switchboard-core/src/model/timestamp.rs", "MAX_MS", "the last one"),
    ("switchboard-core/src/model/timestamp.rs", "MS_PER_DAY", "a unit"),
    ("switchboard-stores/src/sqlite/idempotency.rs", "MS_PER_DAY", "a unit"),
    ("switchboard-stores/src/postgres/moving/reading.rs", "MS_PER_DAY", "a unit"),
    ("switchboard-core/src/model/weight.rs", "WEIGHT_PER_BYTE_MAX", "a factor of an estimate"),
];

/// A quantity: bytes, microseconds or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Bytes(u64),
    Micros(u64),
    Count(u64),
    Off,
}

impl Value {
    /// What a number in the code means, by the name it has there.
    fn named(name: &str, number: u64) -> Self {
        let name = name.to_lowercase();
        let has = |word: &str| name.split('_').any(|it| it == word);
        match () {
            () if has("bytes") => Self::Bytes(number),
            () if has("micros") => Self::Micros(number),
            () if has("ms") => Self::Micros(number * 1_000),
            () if has("s") && !name.starts_with("lines_per_s") => Self::Micros(number * 1_000_000),
            () => Self::Count(number),
        }
    }

    /// The quantity that a cell of the page begins with.
    fn written(cell: &str) -> Option<Self> {
        if cell == "off" {
            return Some(Self::Off);
        }
        let mut words = cell.split(' ');
        let number: u64 = words.next()?.replace(',', "").parse().ok()?;
        Some(match words.next() {
            Some("bytes") => Self::Bytes(number),
            Some("KiB") => Self::Bytes(number << 10),
            Some("MiB") => Self::Bytes(number << 20),
            Some("GiB") => Self::Bytes(number << 30),
            Some("ms") => Self::Micros(number * 1_000),
            Some("s") => Self::Micros(number * 1_000_000),
            Some("min") => Self::Micros(number * 60_000_000),
            Some("h") => Self::Micros(number * 3_600_000_000),
            Some("days") => Self::Micros(number * 86_400_000_000),
            None => Self::Count(number),
            Some(unit) => panic!("{cell}: {unit} is no unit that this test knows"),
        })
    }
}

/// One row of the page.
#[derive(Debug)]
struct Row {
    /// The file of a constant, from the folder `crates`; none for a field or a setting.
    file: Option<String>,
    name: String,
    value: String,
    settings: Vec<String>,
}

fn rows() -> Vec<Row> {
    let table_rows = PAGE.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| --- "));
    let cells = table_rows.map(|line| line.split('|').map(str::trim).skip(1).collect::<Vec<_>>());
    let rows = cells.filter(|cells| cells[0] != "what is bounded").map(|cells| {
        let (name, file) = match cells[1].strip_prefix('[').and_then(|link| link.split_once("](../crates/")) {
            Some((name, file)) => (name, Some(file.trim_end_matches(')').to_owned())),
            None => (cells[1], None),
        };
        let settings = cells.get(3).into_iter().flat_map(|cell| in_code(cell)).map(str::to_owned).collect();
        Row { file, name: name.trim_matches('`').to_owned(), value: cells[2].to_owned(), settings }
    });
    rows.collect()
}

fn in_code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The numbers among the fields of a struct, as `Debug` shows them.
fn fields(prefix: &str, limits: &impl Debug) -> BTreeMap<String, Value> {
    let shown = format!("{limits:?}");
    let pairs = shown.split(['{', '}', ',']).filter_map(|field| field.trim().split_once(": "));
    let numbers = pairs.filter_map(|(name, value)| {
        let name = format!("{prefix}{name}");
        let value = match value {
            "None" => Value::Off,
            value => Value::named(&name, value.parse().ok()?),
        };
        Some((name, value))
    });
    numbers.collect()
}

fn all_fields() -> BTreeMap<String, Value> {
    let mut all = fields("", &Limits::default());
    all.extend(fields("", &ServerLimits::default()));
    for (name, value) in fields("", &DecodeLimits::default()) {
        assert_eq!(*all.entry(name).or_insert(value), value, "two limits of one name differ");
    }
    all.extend(fields("", &SqliteOptions::default()));
    all.extend(fields("selectools_", &SelectoolsOptions::default()));
    all.extend(fields("corvid_", &CorvidOptions::default()));
    all
}

/// Settings that are numbers, with their defaults if these are numbers, too.
fn settings() -> BTreeMap<String, Option<Value>> {
    let rows = CONFIGURATION.lines().filter(|line| line.starts_with("| `") && line.contains(". From "));
    let read = rows.map(|line| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let key = cells[1].trim_matches('`').to_owned();
        let default = cells[3].trim_matches('`').parse().ok().map(|number| Value::named(&key, number));
        (key, default)
    });
    read.collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates")
}

/// The type and the value of a constant, as its file has them.
fn constant<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, rest) = text.split_once(&format!("const {name}: "))?;
    let (kind, rest) = rest.split_once(" = ")?;
    Some((kind, rest.split_once(';')?.0))
}

fn constant_value(text: &str, name: &str) -> Value {
    let (_, expression) = constant(text, name).unwrap_or_else(|| panic!("there is no constant {name}"));
    let argument = |function: &str| expression.strip_prefix(function)?.strip_suffix(')');
    if let Some(seconds) = argument("Duration::from_secs(") {
        return Value::Micros(number(text, seconds) * 1_000_000);
    }
    match argument("Duration::from_millis(") {
        Some(millis) => Value::Micros(number(text, millis) * 1_000),
        None => Value::named(name, number(text, expression)),
    }
}

/// Works out what stands behind a constant: numbers, other constants of the file, and three signs.
fn number(text: &str, expression: &str) -> u64 {
    let expression = expression.trim();
    if let Some((left, right)) = expression.rsplit_once(" - ") {
        return number(text, left) - number(text, right);
    }
    if let Some(inner) = expression.strip_prefix('(') {
        return number(text, inner.strip_suffix(')').expect("one pair of brackets"));
    }
    if let Some((left, right)) = expression.split_once(" << ") {
        return number(text, left) << number(text, right);
    }
    if let Some((left, right)) = expression.split_once(" * ") {
        return number(text, left) * number(text, right);
    }
    expression.replace('_', "").parse().unwrap_or_else(|_| {
        let (_, meant) = constant(text, expression).unwrap_or_else(|| panic!("{expression} is no number"));
        number(text, meant)
    })
}

#[test]
fn each_value_on_the_page_is_the_code_s() {
    let (fields, settings) = (all_fields(), settings());
    let mut wrong = Vec::new();
    for row in rows() {
        let name = &row.name;
        let expected = match &row.file {
            Some(file) => {
                let text =
                    std::fs::read_to_string(crates().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
                Some(constant_value(&text, name))
            }
            None if fields.contains_key(name) => Some(fields[name]),
            None => *settings.get(name).unwrap_or_else(|| panic!("{name} is neither a limit nor a setting")),
        };
        if expected.is_some() && Value::written(&row.value) != expected {
            wrong.push(format!("{name} is {expected:?}, and the page says {}", row.value));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_field_of_the_limits_has_a_row() {
    let named: BTreeSet<String> = rows().into_iter().filter(|row| row.file.is_none()).map(|row| row.name).collect();
    let missing: Vec<String> = all_fields().into_keys().filter(|field| !named.contains(field)).collect();
    assert!(missing.is_empty(), "docs/limits.md has no row for {missing:#?}");
}

#[test]
fn each_setting_that_is_a_number_is_named_with_its_default() {
    let rows = rows();
    for (key, default) in settings() {
        let of_it: Vec<&Row> = rows.iter().filter(|row| row.settings.contains(&key)).collect();
        assert!(!of_it.is_empty(), "docs/limits.md does not say what {key} bounds");
        let said = of_it.iter().any(|row| Value::written(&row.value) == default);
        assert!(default.is_none() || said, "{key}: the default {default:?} is not among {of_it:#?}");
    }
    for row in rows {
        for setting in row.settings {
            let known = CONFIGURATION.contains(&format!("| `{setting}` |"));
            let known = known || CONFIGURATION.contains(&format!("| `{setting}`<br>"));
            assert!(known, "{}: there is no setting {setting}", row.name);
        }
    }
}

#[test]
fn each_constant_that_is_a_limit_has_a_row() {
    let rows: BTreeSet<(String, String)> = rows().into_iter().filter_map(|row| Some((row.file?, row.name))).collect();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(crates()).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut files);
    }
    let mut missing = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let file = path.strip_prefix(crates()).unwrap().to_str().unwrap().to_owned();
        for name in text.split("const ").skip(1).filter_map(|rest| rest.split_once(": ")).map(|(name, _)| name) {
            let is_name = name.bytes().all(|byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_'));
            let Some((kind, _)) = constant(&text, name).filter(|_| is_name) else { continue };
            let is_excepted = NO_LIMITS.iter().any(|(of, known, _)| *of == file && *known == name);
            if is_limit(name, kind) && !is_excepted && !rows.contains(&(file.clone(), name.to_owned())) {
                missing.push(format!("{file}: {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "docs/limits.md has no row for {missing:#?}");
}

fn is_limit(name: &str, kind: &str) -> bool {
    let is_number = matches!(kind, "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64");
    let is_bound = ["MAX", "MIN", "MS", "KEPT", "WAIT"].iter().any(|word| name.split('_').any(|it| it == *word));
    kind == "Duration" || is_number && is_bound
}

/// The files that ship: not the tests, the contract that stores are tested with, and the chaos that servers are tested with.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
        let ships = !matches!(name, "tests" | "contract" | "chaos" | "generated") && !name.ends_with("_tests");
        if ships && path.is_dir() {
            collect(&path, files);
        } else if ships && path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

//! The outbox as text: one line per delivery, `Label: value` for a single one.

use std::fmt::Write;

use serde_json::Value;

use crate::cli::OutboxStateName;

pub(super) fn list(deliveries: &[Value], endpoints: &[Value], state: OutboxStateName, more: bool) -> String {
    let mut out = String::new();
    for endpoint in endpoints.iter().filter(|endpoint| endpoint["state"] == "down") {
        let _ = writeln!(
            out,
            "down: {} since {}, next probe {}: {}",
            text(endpoint, "endpoint"),
            text(endpoint, "downSince"),
            text(endpoint, "nextProbeAt"),
            text(endpoint, "lastError")
        );
    }
    if deliveries.is_empty() {
        let what = match state {
            OutboxStateName::Dead => "no dead letters",
            OutboxStateName::Waiting => "nothing waits",
            OutboxStateName::UnderWay => "nothing is under way",
            OutboxStateName::All => "the outbox is empty",
        };
        out.push_str(what);
        return out;
    }
    const COLUMNS: [(&str, &str); 7] = [
        ("ID", "id"),
        ("STATE", "state"),
        ("FAILURES", "failures"),
        ("BEHIND", ""),
        ("ENDPOINT", "endpoint"),
        ("TASK", "taskId"),
        ("LAST ERROR", "lastError"),
    ];
    let rows: Vec<[String; 7]> = deliveries
        .iter()
        .map(|delivery| COLUMNS.map(|(_, name)| if name.is_empty() { behind(delivery) } else { text(delivery, name) }))
        .collect();
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).chain([COLUMNS[column].0.len()]).max())
        .map(Option::unwrap_or_default)
        .collect();
    let heads = COLUMNS.map(|(head, _)| head.to_owned());
    for row in std::iter::once(&heads).chain(&rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    if more {
        out.push_str("there are more; see --limit\n");
    }
    out.trim_end().to_owned()
}

pub(super) fn one(delivery: &Value) -> String {
    let mut out = String::new();
    for (label, name) in [
        ("Delivery", "id"),
        ("State", "state"),
        ("Endpoint", "endpoint"),
        ("Task", "taskId"),
        ("Config", "configId"),
        ("Agent", "agent"),
        ("Tenant", "tenant"),
        ("Principal", "principal"),
        ("Delivered", "deliveredSeq"),
        ("Newest", "newestSeq"),
        ("Failures", "failures"),
        ("Last attempt", "lastAttemptAt"),
        ("Last error", "lastError"),
        ("Next attempt", "nextAttemptAt"),
        ("Registered", "createdAt"),
    ] {
        let _ = writeln!(out, "{label}: {}", text(delivery, name));
    }
    let next = &delivery["next"];
    if next.is_object() {
        let _ =
            writeln!(out, "Next update: {} {} ({})", text(next, "seq"), text(next, "kind"), text(next, "deliveryId"));
    }
    out.trim_end().to_owned()
}

/// Updates that the receiver has not taken.
fn behind(delivery: &Value) -> String {
    let number = |name: &str| delivery[name].as_u64().unwrap_or(0);
    number("newestSeq").saturating_sub(number("deliveredSeq")).to_string()
}

/// A value without control characters: some come from outside.
fn text(value: &Value, name: &str) -> String {
    let text = match &value[name] {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

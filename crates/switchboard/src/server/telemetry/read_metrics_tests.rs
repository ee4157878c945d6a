//! What is read of a page of metrics.

use super::{Points, read};

const PAGE: &str = "\
# HELP switchboard_ready Whether it is ready.
# TYPE switchboard_ready gauge
switchboard_ready 1
# HELP switchboard_requests_total Requests answered, by agent.
# TYPE switchboard_requests_total counter
switchboard_requests_total{agent=\"a \\\"b\\\"\\n\\\\,}\",operation=\"GetTask\"} 3
switchboard_requests_total{agent=\"\",operation=\"SendMessage\"} 4
# HELP switchboard_empty Nothing yet.
# TYPE switchboard_empty counter
# HELP switchboard_commit_seconds Time.
# TYPE switchboard_commit_seconds histogram
switchboard_commit_seconds_bucket{le=\"0.1\"} 2
switchboard_commit_seconds_bucket{le=\"1\"} 5
switchboard_commit_seconds_bucket{le=\"+Inf\"} 6
switchboard_commit_seconds_sum 7.5
switchboard_commit_seconds_count 6
# HELP switchboard_run_seconds Time.
# TYPE switchboard_run_seconds histogram
switchboard_run_seconds_bucket{agent=\"a\",le=\"1\"} 1
switchboard_run_seconds_bucket{agent=\"a\",le=\"+Inf\"} 1
switchboard_run_seconds_sum{agent=\"a\"} 0.5
switchboard_run_seconds_count{agent=\"a\"} 1
switchboard_run_seconds_bucket{agent=\"b\",le=\"1\"} 0
switchboard_run_seconds_bucket{agent=\"b\",le=\"+Inf\"} 2
switchboard_run_seconds_sum{agent=\"b\"} 9
switchboard_run_seconds_count{agent=\"b\"} 2
nonsense without a number
";

#[test]
fn every_family_is_read_with_its_kind_and_labels() {
    let families = read(PAGE);
    let names: Vec<_> = families.iter().map(|family| (family.name, family.help)).collect();
    assert_eq!(
        names,
        [
            ("switchboard_ready", "Whether it is ready."),
            ("switchboard_requests_total", "Requests answered, by agent."),
            ("switchboard_commit_seconds", "Time."),
            ("switchboard_run_seconds", "Time."),
        ],
        "one without a series is left out"
    );
    let Points::Gauge(ready) = &families[0].points else { panic!("{families:?}") };
    assert_eq!((ready.len(), ready[0].value, ready[0].labels.len()), (1, 1.0, 0));
    let Points::Counter(requests) = &families[1].points else { panic!("{families:?}") };
    let labels: Vec<_> = requests[0].labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("agent", "a \"b\"\n\\,}"), ("operation", "GetTask")]);
    assert_eq!((requests[0].value, requests[1].value), (3.0, 4.0));
}

#[test]
fn buckets_are_told_apart() {
    let families = read(PAGE);
    let Points::Histogram(commits) = &families[2].points else { panic!("{families:?}") };
    let commit = &commits[0].value;
    assert_eq!(commit.bounds().collect::<Vec<_>>(), [0.1, 1.0]);
    assert_eq!((commit.counts(), commit.sum, commit.count), (vec![2, 3, 1], 7.5, 6));
    let Points::Histogram(runs) = &families[3].points else { panic!("{families:?}") };
    let counts: Vec<_> = runs.iter().map(|run| (run.labels[0].1.as_str(), run.value.counts())).collect();
    assert_eq!(counts, [("a", vec![1, 0]), ("b", vec![0, 2])]);
}

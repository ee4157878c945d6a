//! What arrives of lines that are logged.

use std::sync::mpsc::{Receiver, channel};

use super::{Duration, LogWriter, WAITING_BYTES_MAX};

const PATIENCE: Duration = Duration::from_secs(20);

/// A writer whose output comes out of a channel.
fn piped() -> (LogWriter, Receiver<String>) {
    let (sender, written) = channel();
    let write = move |bytes: &[u8]| {
        let _ = sender.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(())
    };
    (LogWriter::start("test", write).unwrap(), written)
}

fn all(written: &Receiver<String>) -> String {
    written.try_iter().collect()
}

#[test]
fn lines_arrive_in_order_and_a_flush_waits_for_them() {
    let (writer, written) = piped();
    let mut expected = String::new();
    for number in 0..1_000 {
        let line = format!("line {number}\n");
        writer.line(line.as_bytes(), number % 7 == 0);
        expected.push_str(&line);
    }
    writer.flush(PATIENCE);
    assert_eq!(all(&written), expected);
}

#[test]
fn an_unhurried_line_arrives_without_a_flush() {
    let (writer, written) = piped();
    writer.line(b"quiet\n", false);
    assert_eq!(written.recv_timeout(PATIENCE).unwrap(), "quiet\n");
}

#[test]
fn a_text_with_line_breaks_stays_one_line() {
    let (writer, written) = piped();
    writer.line(b"INFO cause=one\r\nERROR all is lost\n", true);
    writer.flush(PATIENCE);
    assert_eq!(all(&written), "INFO cause=one\\r\\nERROR all is lost\n");
}

#[test]
fn a_reader_that_does_not_read_costs_lines_and_no_waiting() {
    let (sender, opened) = channel::<()>();
    let (told, written) = channel();
    let write = move |bytes: &[u8]| {
        // Stands still until the test lets go.
        let _ = opened.recv_timeout(PATIENCE);
        let _ = told.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(())
    };
    let writer = LogWriter::start("test", write).unwrap();
    let line = vec![b'x'; 64 * 1024];
    let lines = 3 * WAITING_BYTES_MAX / line.len();
    for _ in 0..lines {
        writer.line(&line, true);
    }
    drop(sender);
    writer.flush(PATIENCE);
    let written = all(&written);
    let kept = written.lines().filter(|line| line.starts_with("xxx")).count();
    let lost: usize =
        written.lines().filter_map(|line| line.split_once(" lines were lost")?.0.parse::<usize>().ok()).sum();
    assert_eq!(kept + lost, lines, "{lost} are said to be lost");
    assert!(lost > 0 && written.len() <= 2 * WAITING_BYTES_MAX + 4 * line.len(), "{lost} {}", written.len());
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let writer = LogWriter::file(&path).unwrap();
    writer.line(b"one\n", true);
    writer.flush(PATIENCE);
    std::fs::rename(&path, &old).unwrap();
    writer.line(b"two\n", true);
    writer.flush(PATIENCE);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "one\n");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
    assert!(LogWriter::file(folder.path()).is_err(), "a folder is no file");
}

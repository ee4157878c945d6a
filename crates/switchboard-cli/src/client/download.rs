//! `switchboard task download`: the artifacts of a task as files. Names come from the agent and are not trusted: a file is created in
//! the folder that the user named, and nowhere else.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use switchboard::{Part, PartContent};

use super::error::ClientError;
use super::options::{CommonArgs, Flags};
use super::render::Lines;
use super::session::{Agent, CALL_MAX, Session};
use super::task_args::TaskArgs;

/// A name is not longer; the file system allows 255 bytes.
const NAME_BYTES_MAX: usize = 120;

#[derive(Args, Clone, Debug)]
pub(crate) struct DownloadArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Only this artifact
    #[arg(long, value_name = "ID")]
    artifact: Option<String>,
    /// Folder to save the files in
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Replace files of the same name
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl DownloadArgs {
    pub(crate) fn flags(&self) -> Flags {
        self.task.add_to(self.common.flags())
    }
}

/// What became of one part.
struct Saved {
    artifact: String,
    path: PathBuf,
    bytes: usize,
}

/// # Errors
/// When the task cannot be had, or a file cannot be written.
pub(crate) async fn run(session: &Session, args: &DownloadArgs) -> Result<(), ClientError> {
    let id = args.task.task(session)?;
    let downloading = async {
        let agent = session.agent().await?;
        let task = agent.client.clone().with_deadline(CALL_MAX).task(&id).await.map_err(|error| agent.error(&error))?;
        let is_wanted = |artifact: &str| args.artifact.as_deref().is_none_or(|wanted| wanted == artifact);
        let wanted: Vec<_> =
            task.artifacts.iter().filter(|artifact| is_wanted(artifact.artifact_id.as_str())).collect();
        if let (true, Some(name)) = (wanted.is_empty(), &args.artifact) {
            return Err(ClientError::usage(format!("the task has no artifact {name:?}")));
        }
        let mut all = Vec::new();
        for artifact in wanted {
            let many = artifact.parts.len() > 1;
            // The chunks of a streamed text are one text.
            let texts: Option<Vec<&str>> = artifact.parts.iter().map(Part::as_text).collect();
            if let (true, Some(texts)) = (many, texts) {
                let name = file_name(artifact.name().unwrap_or(artifact.artifact_id.as_str()), "txt");
                let name = unused(name, &all);
                all.push(save(args, artifact.artifact_id.as_str(), &name, texts.concat().as_bytes())?);
                continue;
            }
            for (at, part) in artifact.parts.iter().enumerate() {
                let number = if many { format!("-{}", at + 1) } else { String::new() };
                let own = artifact.name().unwrap_or(artifact.artifact_id.as_str());
                let fallback = format!("{own}{number}");
                let name = file_name(part.filename().unwrap_or(&fallback), ending(part));
                let name = unused(name, &all);
                let content = content(&agent, part).await?;
                all.push(save(args, artifact.artifact_id.as_str(), &name, &content)?);
            }
        }
        print(session, &id, &all)
    };
    session.bounded(Box::pin(downloading)).await
}

fn print(session: &Session, id: &switchboard::TaskId, all: &[Saved]) -> Result<(), ClientError> {
    if session.printer.is_json() {
        let saved: Vec<_> = all
            .iter()
            .map(|saved| serde_json::json!({ "artifactId": saved.artifact, "path": saved.path, "bytes": saved.bytes }))
            .collect();
        return session.printer.json(serde_json::json!({ "taskId": id.as_str(), "saved": saved }).to_string());
    }
    let mut lines = Lines::default();
    lines.field("Task", id.as_str());
    for saved in all {
        lines.field("Saved", format!("{} {} bytes", saved.path.display(), saved.bytes));
    }
    session.printer.text(lines.into_text())
}

/// The bytes of a part. A link is fetched without the agent's credentials, and only from a public address or the agent's own.
async fn content(agent: &Agent, part: &Part) -> Result<Vec<u8>, ClientError> {
    match &part.content {
        PartContent::Url(url) => {
            let fetched = agent.found.client.fetch_file(url, &agent.found.reference).await;
            fetched.map(|bytes| bytes.to_vec()).map_err(|error| agent.error(&error))
        }
        PartContent::Text(_) | PartContent::Raw(_) | PartContent::Data(_) => Ok(part.content_as_bytes().to_vec()),
    }
}

fn ending(part: &Part) -> &'static str {
    match part.content {
        PartContent::Text(_) => "txt",
        PartContent::Data(_) => "json",
        PartContent::Raw(_) | PartContent::Url(_) => "bin",
    }
}

/// A name that is a file in the folder and nothing else.
fn file_name(wanted: &str, ending: &str) -> String {
    let last = wanted.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_. ()".contains(letter);
    let mut name: String = last.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    // A leading dot would hide the file; names of dots alone are folders.
    name = name.trim().trim_start_matches('.').to_owned();
    while name.len() > NAME_BYTES_MAX {
        name.pop();
    }
    let stem = name.split('.').next().unwrap_or_default().to_ascii_uppercase();
    let is_reserved = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL")
        || (stem.len() == 4 && (stem.starts_with("COM") || stem.starts_with("LPT")));
    if name.is_empty() || is_reserved {
        name = format!("artifact_{name}");
    }
    if name.contains('.') { name } else { format!("{name}.{ending}") }
}

/// The name with a number in it if this command has saved a file of that name already.
fn unused(name: String, saved: &[Saved]) -> String {
    let is_used = |name: &str| saved.iter().any(|saved| saved.path.file_name().is_some_and(|used| used == name));
    let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, ""));
    let mut numbered = (2_u32..).map(|number| format!("{stem}-{number}.{ending}"));
    if is_used(&name) { numbered.find(|name| !is_used(name)).unwrap_or_default() } else { name }
}

/// Creates the file.
fn save(args: &DownloadArgs, artifact: &str, name: &str, content: &[u8]) -> Result<Saved, ClientError> {
    let failed = |path: &Path, error: &std::io::Error| ClientError::internal(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(&args.dir).map_err(|error| failed(&args.dir, &error))?;
    let path = args.dir.join(name);
    if args.force && path.symlink_metadata().is_ok_and(|known| known.is_file()) {
        std::fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
    }
    // A link or a file that is there is not written through.
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let error = ClientError::usage(format!("{} exists already", path.display()));
            return Err(error.with_hint("Name another folder with --dir, or replace it with --force"));
        }
        Err(error) => return Err(failed(&path, &error)),
    };
    file.write_all(content).map_err(|error| failed(&path, &error))?;
    Ok(Saved { artifact: artifact.to_owned(), path, bytes: content.len() })
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_stays_in_its_folder() {
        for (wanted, expected) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd.bin"),
            ("/abs/x.txt", "x.txt"),
            (r"C:\dir\y.txt", "y.txt"),
            ("..", "artifact_.bin"),
            (".bashrc", "bashrc.bin"),
            ("", "artifact_.bin"),
            ("nul", "artifact_nul.bin"),
            ("COM1.txt", "artifact_COM1.txt"),
            ("a\u{1b}[2Jb\n.txt", "a__2Jb_.txt"),
            ("bidi\u{202e}fdp.exe", "bidi_fdp.exe"),
        ] {
            assert_eq!(file_name(wanted, "bin"), expected, "{wanted:?}");
        }
        assert!(file_name(&"ä".repeat(500), "bin").len() < 200);
    }
}

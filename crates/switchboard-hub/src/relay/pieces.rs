//! Writes that are too large to be one: they are passed on in pieces. Pure.

use std::sync::Arc;

use switchboard::model::{Artifact, ArtifactUpdate, Part, PartContent, outweighs};

/// In JSON one byte of text takes six at most, and one of a file less.
const WEIGHT_PER_BYTE: u64 = 8;

/// The update as it is if its parts take at most so many bytes of JSON, else as several, each of at most half as much, so that there is
/// room for what else is in a frame. A text or a file that is larger becomes
/// several parts, each under the same name; data and links stay whole.
pub(super) fn pieces(update: ArtifactUpdate, bytes_max: u64) -> Vec<ArtifactUpdate> {
    if !outweighs(&update.artifact.parts, bytes_max) {
        return vec![update];
    }
    let bytes_max = bytes_max / 2;
    let piece_bytes = usize::try_from(bytes_max / WEIGHT_PER_BYTE).unwrap_or(usize::MAX).max(4);
    let parts = update.artifact.parts.iter().flat_map(|part| match outweighs(std::slice::from_ref(part), bytes_max) {
        true => split(part, piece_bytes),
        false => vec![part.clone()],
    });
    let mut groups: Vec<Vec<Part>> = Vec::new();
    for part in parts {
        let Some(group) = groups.last_mut() else {
            groups.push(vec![part]);
            continue;
        };
        group.push(part);
        if outweighs(group, bytes_max)
            && group.len() > 1
            && let Some(part) = group.pop()
        {
            groups.push(vec![part]);
        }
    }
    let last = groups.len().saturating_sub(1);
    let piece = |(number, parts): (usize, Vec<Part>)| {
        let artifact = match number {
            0 => update.artifact.copy_with_parts(parts),
            _ => Artifact::new(update.artifact.artifact_id.clone(), parts),
        };
        ArtifactUpdate {
            artifact: Arc::new(artifact),
            append: update.append || number > 0,
            last_chunk: update.last_chunk && number == last,
            ..update.clone()
        }
    };
    groups.into_iter().enumerate().map(piece).collect()
}

fn split(part: &Part, bytes_max: usize) -> Vec<Part> {
    let piece = |content| part.clone().with_content(content);
    match &part.content {
        PartContent::Text(text) => {
            let mut pieces = Vec::new();
            let mut rest = text.as_str();
            while !rest.is_empty() {
                let mut end = bytes_max.min(rest.len());
                // A letter takes four bytes at most, so this ends above zero.
                while !rest.is_char_boundary(end) {
                    end -= 1;
                }
                let (head, tail) = rest.split_at(end);
                pieces.push(piece(PartContent::Text(head.to_owned())));
                rest = tail;
            }
            pieces
        }
        PartContent::Raw(bytes) => {
            let cut = |start: usize| bytes.slice(start..bytes.len().min(start + bytes_max));
            (0..bytes.len()).step_by(bytes_max).map(|start| piece(PartContent::Raw(cut(start)))).collect()
        }
        PartContent::Url(_) | PartContent::Data(_) => vec![part.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::pieces;
    use std::sync::Arc;
    use switchboard::model::{Artifact, ArtifactUpdate, Part, PartContent, outweighs};

    fn update(parts: Vec<Part>) -> ArtifactUpdate {
        ArtifactUpdate {
            task_id: "t".into(),
            context_id: "c".into(),
            artifact: Arc::new(Artifact::new("a", parts).with_name("N")),
            append: false,
            last_chunk: true,
            metadata: None,
        }
    }

    #[test]
    fn what_fits_is_left_alone() {
        let small = update(vec![Part::text("hello")]);
        assert_eq!(pieces(small.clone(), 1_000), [small]);
    }

    #[test]
    fn pieces_fit_and_put_together_are_what_came() {
        let text = "grün \u{1}".repeat(400);
        let file = vec![7_u8; 3_000];
        let raw = Part::raw(file.clone()).with_filename("f.bin");
        let made = pieces(update(vec![Part::text(text.clone()), Part::text("short"), raw]), 1_000);
        assert!(made.len() > 2);
        for (number, piece) in made.iter().enumerate() {
            assert!(!outweighs(&piece.artifact.parts, 500));
            assert_eq!((piece.append, piece.last_chunk), (number > 0, number + 1 == made.len()));
        }
        assert_eq!(made[0].artifact.name(), Some("N"));
        let parts: Vec<_> = made.iter().flat_map(|piece| piece.artifact.parts.clone()).collect();
        let (mut texts, mut bytes) = (String::new(), Vec::new());
        for part in &parts {
            match &part.content {
                PartContent::Text(piece) => texts.push_str(piece),
                PartContent::Raw(piece) => {
                    bytes.extend_from_slice(piece);
                    assert_eq!(part.filename(), Some("f.bin"));
                }
                _ => unreachable!(),
            }
        }
        assert_eq!((texts, bytes), (format!("{text}short"), file));
    }
}

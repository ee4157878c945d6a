//! Media types as agents and clients name them ("modes"), and which of them an agent reads and writes.

use super::AgentCard;

impl AgentCard {
    /// Whether the agent or one of its skills reads this media type.
    #[must_use]
    pub fn reads(&self, media_type: &str) -> bool {
        let mut modes = self.default_input_modes.iter().chain(self.skills.iter().flat_map(|skill| &skill.input_modes));
        modes.any(|mode| modes_match(mode, media_type))
    }

    /// Whether the agent or one of its skills writes a media type that the client accepts. A client that names none
    /// accepts any.
    #[must_use]
    pub fn writes_any(&self, accepted: &[String]) -> bool {
        let mut modes =
            self.default_output_modes.iter().chain(self.skills.iter().flat_map(|skill| &skill.output_modes));
        accepted.is_empty() || modes.any(|mode| accepted.iter().any(|wanted| modes_match(mode, wanted)))
    }
}

/// Whether two media types can mean the same; either may be a range such as `text/*`. Parameters and case do not count.
/// `text` alone is what some older clients send for `text/plain`.
fn modes_match(one: &str, other: &str) -> bool {
    fn split(mode: &str) -> (&str, &str) {
        let bare = mode.split(';').next().unwrap_or_default().trim();
        bare.split_once('/').unwrap_or((bare, "*"))
    }
    let same = |a: &str, b: &str| a == "*" || b == "*" || a.eq_ignore_ascii_case(b);
    let ((kind, detail), (other_kind, other_detail)) = (split(one), split(other));
    same(kind, other_kind) && same(detail, other_detail)
}

#[cfg(test)]
mod tests {
    use super::modes_match;

    #[test]
    fn ranges_parameters_and_case_do_not_matter() {
        for (one, other, expected) in [
            ("text/plain", "text/plain", true),
            ("text/plain", "TEXT/Plain; charset=utf-8", true),
            ("text/*", "text/csv", true),
            ("*/*", "image/png", true),
            ("text/plain", "text", true),
            ("text/plain", "text/csv", false),
            ("application/json", "text/plain", false),
            ("text/plain", "", false),
        ] {
            assert_eq!(modes_match(one, other), expected, "{one} ~ {other}");
            assert_eq!(modes_match(other, one), expected, "{other} ~ {one}");
        }
    }
}

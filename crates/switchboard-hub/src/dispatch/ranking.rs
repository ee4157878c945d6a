//! Which of several agents fits a message, and why: a pure ranking over their cards.
//!
//! Every word of the message that stands on a card counts for that agent: by where it stands (the names of its skills, their
//! tags and examples, then descriptions) and by how few of the cards have it. A word that all cards have says nothing about any
//! of them. An agent is chosen only if what matches is enough, both by itself and as a share of what was said; otherwise nothing
//! fits, and that is an answer, too. There are no synonyms and no stemming but plurals: what an agent is good for must be on its
//! card, and its examples are the place for it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use switchboard::model::{AgentCard, AgentSkill};

/// What is read of a message, in characters.
const PROMPT_CHARS_MAX: usize = 4_000;
/// Different words of a message that are looked for.
const PROMPT_WORDS_MAX: usize = 200;
/// Different words of a card that are found.
const CARD_WORDS_MAX: usize = 5_000;
/// Skills of a card that are read.
const CARD_SKILLS_MAX: usize = 500;
/// Words in the reason for a choice.
const REASON_WORDS_MAX: usize = 6;
/// Agents that are named beside the chosen one.
const RUNNERS_UP_MAX: usize = 3;

/// The least that must match: a little less than one word that no other card has, in an example.
const SCORE_MIN: f64 = 0.75;
/// The least share of the words of a message that must match, weighed by how rare they are.
const SHARE_MIN: f64 = 0.2;
/// Longer messages count as if they had so many words: a long story may be about one thing.
const SHARE_WORDS_MAX: f64 = 8.0;

/// A card and the id that its agent is called by.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The id in the directory.
    pub id: String,
    /// The agent's card.
    pub card: Arc<AgentCard>,
}

/// The words of the cards of a directory, to rank messages by.
///
/// ```
/// use std::sync::Arc;
///
/// use switchboard::model::{AgentCard, AgentSkill};
/// use switchboard_hub::dispatch::{Candidate, CardIndex};
///
/// let skill = AgentSkill {
///     name: "Funnel report".to_owned(),
///     examples: vec!["How many signups did we have last week?".to_owned()],
///     ..AgentSkill::default()
/// };
/// let card = AgentCard { name: "Analytics".to_owned(), skills: vec![skill], ..AgentCard::default() };
/// let index = CardIndex::new([Candidate { id: "analytics".to_owned(), card: Arc::new(card) }]);
///
/// let ranking = index.rank("Show me the signups of March");
/// assert_eq!(ranking.choice.as_ref().unwrap().agent, "analytics");
/// assert_eq!(ranking.reason(), "\"signups\" is in an example of the skill \"Funnel report\"");
/// assert!(index.rank("What is the capital of France?").choice.is_none());
/// ```
#[derive(Debug, Default)]
pub struct CardIndex {
    agents: Vec<IndexedAgent>,
    /// How many agents have a word.
    agents_with: HashMap<String, u32>,
}

#[derive(Debug)]
struct IndexedAgent {
    id: String,
    words: HashMap<String, Place>,
}

/// Where a word stands on a card: the best of its places.
#[derive(Clone, Debug, PartialEq)]
struct Place {
    field: Field,
    /// The name of the skill; none for what is said of the agent as a whole.
    skill: Option<Arc<str>>,
}

/// The fields of a card that are read, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Name,
    Tag,
    Example,
    SkillDescription,
    Description,
}

impl Field {
    /// How much a word in this field counts.
    fn weight(self) -> f64 {
        match self {
            Self::Name | Self::Tag => 1.0,
            Self::Example => 0.9,
            Self::SkillDescription => 0.7,
            Self::Description => 0.6,
        }
    }
}

/// How well an agent fits.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fit {
    /// The id of the agent.
    pub agent: String,
    /// The skill that most of what matches belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The sum over the words that match, rounded to hundredths.
    pub score: f64,
    #[serde(skip)]
    matches: Vec<(String, Place)>,
}

/// The agents that a message fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// The best one, if it fits well enough.
    pub choice: Option<Fit>,
    /// The next ones, the best first. If nothing fits well enough, these are the nearest.
    pub runners_up: Vec<Fit>,
    why_none: Option<String>,
}

impl CardIndex {
    /// Reads the cards.
    pub fn new(candidates: impl IntoIterator<Item = Candidate>) -> Self {
        let mut index = Self::default();
        for Candidate { id, card } in candidates {
            let words = words_of_card(&id, &card);
            for word in words.keys() {
                *index.agents_with.entry(word.clone()).or_default() += 1;
            }
            index.agents.push(IndexedAgent { id, words });
        }
        index
    }

    /// How rare a word is among the cards: 1 if one agent at most has it, less the more of them do.
    fn rarity(&self, word: &str) -> f64 {
        let agents = f64::from(u32::try_from(self.agents.len()).unwrap_or(u32::MAX));
        let with = f64::from(self.agents_with.get(word).copied().unwrap_or(0).max(1));
        (agents / with).ln_1p() / agents.max(1.0).ln_1p()
    }

    /// Ranks the agents for a message.
    #[must_use]
    pub fn rank(&self, prompt: &str) -> Ranking {
        let prompt: String = prompt.chars().take(PROMPT_CHARS_MAX).collect();
        let mut said: Vec<(String, String)> = Vec::new();
        let mut seen = HashSet::new();
        for (word, as_written) in words(&prompt) {
            if said.len() < PROMPT_WORDS_MAX && seen.insert(word.clone()) {
                said.push((word, as_written));
            }
        }
        if said.is_empty() {
            return Ranking::none("the message has no word that tells agents apart", Vec::new());
        }
        let asked: f64 = said.iter().map(|(word, _)| self.rarity(word)).sum::<f64>().min(SHARE_WORDS_MAX);
        let mut fits: Vec<Fit> = self.agents.iter().filter_map(|agent| self.fit(agent, &said)).collect();
        // Of two that fit equally the order of ids decides, so that the same message goes the same way.
        fits.sort_by(|one, other| other.score.total_cmp(&one.score).then_with(|| one.agent.cmp(&other.agent)));
        let fits_well = |fit: &Fit| fit.score >= SCORE_MIN && fit.score / asked >= SHARE_MIN;
        let is_chosen = fits.first().is_some_and(fits_well);
        fits.truncate(RUNNERS_UP_MAX + usize::from(is_chosen));
        if !is_chosen {
            let why = match fits.first() {
                None => "no card has a word of the message".to_owned(),
                Some(nearest) => format!("too little matches; the nearest is {}: {}", nearest.agent, nearest.reason()),
            };
            return Ranking::none(why, fits);
        }
        let mut fits = fits.into_iter();
        Ranking { choice: fits.next(), runners_up: fits.collect(), why_none: None }
    }

    fn fit(&self, agent: &IndexedAgent, said: &[(String, String)]) -> Option<Fit> {
        let mut by_skill: BTreeMap<&str, f64> = BTreeMap::new();
        let mut matches = Vec::new();
        let mut score = 0.0;
        for (word, as_written) in said {
            let Some(place) = agent.words.get(word) else { continue };
            let worth = place.field.weight() * self.rarity(word);
            score += worth;
            if let Some(skill) = place.skill.as_deref() {
                *by_skill.entry(skill).or_default() += worth;
            }
            matches.push((worth, as_written.clone(), place.clone()));
        }
        if matches.is_empty() {
            return None;
        }
        matches.sort_by(|one, other| other.0.total_cmp(&one.0));
        matches.truncate(REASON_WORDS_MAX);
        let best = by_skill.into_iter().max_by(|one, other| one.1.total_cmp(&other.1).then_with(|| other.0.cmp(one.0)));
        Some(Fit {
            agent: agent.id.clone(),
            skill: best.map(|(skill, _)| skill.to_owned()),
            score: (score * 100.0).round() / 100.0,
            matches: matches.into_iter().map(|(_, word, place)| (word, place)).collect(),
        })
    }
}

impl Ranking {
    fn none(why: impl Into<String>, nearest: Vec<Fit>) -> Self {
        Self { choice: None, runners_up: nearest, why_none: Some(why.into()) }
    }

    /// Why this choice, for people.
    #[must_use]
    pub fn reason(&self) -> String {
        match (&self.choice, &self.why_none) {
            (Some(choice), _) => choice.reason(),
            (None, Some(why)) => why.clone(),
            (None, None) => String::new(),
        }
    }
}

impl Fit {
    /// Which words stand where.
    #[must_use]
    pub fn reason(&self) -> String {
        let mut places: Vec<(String, Vec<String>)> = Vec::new();
        for (word, place) in &self.matches {
            let (place, word) = (place.to_string(), format!("{word:?}"));
            match places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, words)) => words.push(word),
                None => places.push((place, vec![word])),
            }
        }
        let sentence = |(place, words): (String, Vec<String>)| {
            let verb = if words.len() == 1 { "is" } else { "are" };
            format!("{} {verb} in {place}", words.join(", "))
        };
        places.into_iter().map(sentence).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.field {
            Field::Name => "the name",
            Field::Tag => "a tag",
            Field::Example => "an example",
            Field::SkillDescription | Field::Description => "the description",
        };
        match &self.skill {
            Some(skill) => write!(f, "{what} of the skill {skill:?}"),
            None => write!(f, "{what} of the agent"),
        }
    }
}

/// The words of a card, each with the best place where it stands.
fn words_of_card(id: &str, card: &AgentCard) -> HashMap<String, Place> {
    let mut found: HashMap<String, Place> = HashMap::new();
    let mut add = |field: Field, skill: Option<&Arc<str>>, text: &str| {
        for (word, _) in words(text) {
            let place = Place { field, skill: skill.cloned() };
            let is_better = match found.get(&word) {
                Some(known) => field < known.field,
                None => found.len() < CARD_WORDS_MAX,
            };
            if is_better {
                found.insert(word, place);
            }
        }
    };
    add(Field::Name, None, id);
    add(Field::Name, None, &card.name);
    for skill in card.skills.iter().take(CARD_SKILLS_MAX) {
        let AgentSkill { id, name, description, tags, examples, .. } = skill;
        let of = Arc::from(if name.is_empty() { id.as_str() } else { name.as_str() });
        add(Field::Name, Some(&of), id);
        add(Field::Name, Some(&of), name);
        tags.iter().for_each(|tag| add(Field::Tag, Some(&of), tag));
        examples.iter().for_each(|example| add(Field::Example, Some(&of), example));
        add(Field::SkillDescription, Some(&of), description);
    }
    add(Field::Description, None, &card.description);
    found
}

/// The words of a text that can tell agents apart, each in the form it is compared in and as it was written.
fn words(text: &str) -> impl Iterator<Item = (String, String)> {
    let pieces = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'' && letter != '’');
    pieces.filter_map(|piece| {
        let written = piece.trim_matches(['\'', '’']);
        let lower = written.to_lowercase();
        let bare = lower.split(['\'', '’']).next().unwrap_or_default();
        let is_word = bare.chars().count() > 1 && !COMMON.contains(&bare) && !COMMON.contains(&lower.as_str());
        is_word.then(|| (singular(bare), written.to_owned()))
    })
}

/// The singular of an English plural; other words are as they are, and a wrong guess does no harm as long as it is the same on
/// both sides.
fn singular(word: &str) -> String {
    let is_long = word.len() > 3 && word.is_ascii();
    match word {
        _ if !is_long => word.to_owned(),
        _ if word.ends_with("ies") && word.len() > 4 => format!("{}y", &word[..word.len() - 3]),
        _ if ["sses", "shes", "ches", "xes"].iter().any(|end| word.ends_with(end)) => word[..word.len() - 2].to_owned(),
        _ if ["ss", "us", "is"].iter().any(|end| word.ends_with(end)) => word.to_owned(),
        _ => word.strip_suffix('s').unwrap_or(word).to_owned(),
    }
}

/// Words that stand in messages of every kind.
const COMMON: &[&str] = &[
    "about", "after", "all", "also", "am", "an", "and", "any", "are", "as", "ask", "at", "be", "been", "before", "but",
    "by", "can", "could", "did", "do", "does", "doing", "don", "done", "for", "from", "get", "give", "go", "got",
    "had", "has", "have", "he", "hello", "help", "her", "here", "hey", "hi", "him", "his", "how", "if", "in", "into",
    "is", "isn", "it", "its", "just", "know", "let", "like", "ll", "made", "make", "many", "may", "me", "might",
    "more", "most", "much", "must", "my", "need", "no", "not", "now", "of", "on", "one", "only", "or", "other", "our",
    "out", "over", "per", "please", "put", "re", "say", "see", "she", "should", "show", "so", "some", "such", "take",
    "tell", "than", "thank", "thanks", "that", "the", "their", "them", "then", "there", "these", "they", "thing",
    "things", "this", "those", "to", "too", "up", "us", "use", "ve", "very", "via", "want", "was", "way", "we", "were",
    "what", "when", "where", "which", "who", "whose", "why", "will", "with", "would", "you", "your",
];

#[cfg(test)]
#[path = "ranking_tests.rs"]
mod tests;

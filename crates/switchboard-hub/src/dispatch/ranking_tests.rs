//! Which prompt goes to which agent, and why.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use switchboard::model::{AgentCard, AgentSkill};

use super::{Candidate, CardIndex, words};

type SkillRow = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

fn card(id: &str, description: &str, skills: &[SkillRow]) -> Candidate {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let skill = |(name, description, tags, examples): &SkillRow| AgentSkill {
        id: name.to_lowercase().replace(' ', "-"),
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        tags: texts(tags),
        examples: texts(examples),
        ..AgentSkill::default()
    };
    let name = format!("{}{}", id[..1].to_uppercase(), &id[1..]);
    let skills = skills.iter().map(skill).collect();
    let card = AgentCard { name, description: description.to_owned(), skills, ..AgentCard::default() };
    Candidate { id: id.to_owned(), card: Arc::new(card) }
}

/// The apps of a small company.
fn company() -> Vec<Candidate> {
    vec![
        card(
            "analytics",
            "Answers questions about how the product is used",
            &[
                (
                    "Run query",
                    "Counts users, sessions and events in the warehouse and draws charts of them",
                    &["metrics", "dashboard", "sql"],
                    &[
                        "How many signups did we have last week?",
                        "What is our weekly retention?",
                        "Plot revenue by month",
                    ],
                ),
                (
                    "Funnel",
                    "Where people drop out between visit and purchase",
                    &["conversion"],
                    &["Why did trial conversion fall?"],
                ),
            ],
        ),
        card(
            "mail",
            "Reads and writes the mailbox of the user",
            &[
                (
                    "Compose",
                    "Drafts and sends letters to people",
                    &["email", "inbox", "reply"],
                    &["Reply to Alice that Tuesday works", "Forward the invoice to accounting"],
                ),
                ("Triage", "Sorts unread messages", &["unread", "archive"], &["Archive all newsletters"]),
            ],
        ),
        card(
            "calendar",
            "Keeps appointments",
            &[(
                "Schedule",
                "Finds free time and books rooms",
                &["meeting", "appointment"],
                &["Move my dentist appointment to Friday", "When is everybody free tomorrow?"],
            )],
        ),
        card(
            "slides",
            "Makes presentations",
            &[(
                "Deck",
                "Designs pages with pictures from an outline",
                &["presentation", "pitch"],
                &["Turn these notes into ten slides"],
            )],
        ),
        card(
            "support",
            "Looks after tickets of customers",
            &[(
                "Tickets",
                "Answers complaints and gives refunds",
                &["customer", "refund"],
                &["A customer cannot log in since the update", "Give the customer their money back"],
            )],
        ),
    ]
}

/// Twenty prompts and where they must go.
const PROMPTS: [(&str, Option<&str>); 20] = [
    // These share no word with the names of the skills of their target.
    ("signups", Some("analytics")),
    ("reply to Alice", Some("mail")),
    ("What was our revenue in March?", Some("analytics")),
    ("Is retention getting better?", Some("analytics")),
    ("Please forward this invoice to the bookkeeper", Some("mail")),
    ("Are there any unread emails from the bank?", Some("mail")),
    ("move the dentist to next Monday", Some("calendar")),
    ("I need a meeting with Bob tomorrow", Some("calendar")),
    ("a pitch for our investors", Some("slides")),
    ("one of our customers wants a refund", Some("support")),
    // These name a skill or the agent.
    ("run a query over the events table", Some("analytics")),
    ("draw me the funnel of the new trial", Some("analytics")),
    ("compose a letter to my landlord", Some("mail")),
    ("schedule a call with the team", Some("calendar")),
    ("make a deck about the second quarter", Some("slides")),
    ("close the tickets about login", Some("support")),
    // These fit nothing.
    ("What is the capital of France?", None),
    ("Write a haiku about the sea", None),
    ("How do I boil an egg for exactly six minutes without burning the pan?", None),
    ("hello, can you help me?", None),
];

#[test]
fn twenty_prompts_go_where_they_should() {
    let index = CardIndex::new(company());
    for (prompt, expected) in PROMPTS {
        let ranking = index.rank(prompt);
        let chosen = ranking.choice.as_ref().map(|fit| fit.agent.as_str());
        assert_eq!(chosen, expected, "{prompt}: {} {:?}", ranking.reason(), ranking.runners_up);
    }
}

#[test]
fn half_of_the_prompts_share_no_word_with_the_names_of_skills_and_four_fit_nothing() {
    let of_names = |id: &str| -> HashSet<String> {
        let cards = company();
        let card = &cards.iter().find(|candidate| candidate.id == id).unwrap().card;
        card.skills.iter().flat_map(|skill| words(&skill.name).map(|(word, _)| word).collect::<Vec<_>>()).collect()
    };
    let strange = |(prompt, target): &&(&str, Option<&str>)| {
        target.is_some_and(|id| words(prompt).all(|(word, _)| !of_names(id).contains(&word)))
    };
    assert_eq!(PROMPTS.iter().filter(strange).count(), 10);
    assert_eq!(PROMPTS.iter().filter(|(_, target)| target.is_none()).count(), 4);
}

#[test]
fn a_choice_is_explained_and_names_the_next_ones() {
    let index = CardIndex::new(company());
    let ranking = index.rank("How many signups, and what was the revenue of customers?");
    let choice = ranking.choice.as_ref().unwrap();
    assert_eq!((choice.agent.as_str(), choice.skill.as_deref()), ("analytics", Some("Run query")));
    assert_eq!(ranking.reason(), "\"signups\", \"revenue\" are in an example of the skill \"Run query\"");
    let next = &ranking.runners_up[0];
    assert_eq!((next.agent.as_str(), next.skill.as_deref()), ("support", Some("Tickets")));
    assert_eq!(next.reason(), "\"customers\" is in a tag of the skill \"Tickets\"");
    assert!(choice.score > next.score);

    let none = index.rank("a tomorrow that never comes, said the poet, and the world kept turning on its old axis");
    assert!(none.choice.is_none());
    assert!(
        none.reason().starts_with("too little matches; the nearest is calendar: \"tomorrow\""),
        "{}",
        none.reason()
    );
    assert_eq!(index.rank("").reason(), "the message has no word that tells agents apart");
    assert_eq!(index.rank("zebra").reason(), "no card has a word of the message");
    assert_eq!(CardIndex::default().rank("zebra").reason(), "no card has a word of the message");
}

#[test]
fn a_word_that_every_card_has_decides_nothing() {
    let both = |id: &str, example: &str| {
        card(id, "An agent of the example company", &[("Work", "", &[], &[])]).with_example(example)
    };
    let index = CardIndex::new([both("one", "bake bread"), both("two", "paint walls"), both("three", "fix pipes")]);
    assert_eq!(index.rank("the example company").choice, None);
    assert_eq!(index.rank("example bread").choice.unwrap().agent, "one");
}

impl Candidate {
    fn with_example(mut self, example: &str) -> Self {
        let mut card = (*self.card).clone();
        card.skills[0].examples.push(example.to_owned());
        self.card = Arc::new(card);
        self
    }
}

#[test]
fn one_agent_alone_is_chosen_only_if_it_fits() {
    let index = CardIndex::new(company().into_iter().take(1));
    assert_eq!(index.rank("signups please").choice.unwrap().agent, "analytics");
    assert_eq!(index.rank("reply to Alice").choice, None);
}

proptest! {
    #[test]
    fn every_text_is_ranked_in_the_same_way_twice(prompt in "(signup|reply|deck|zebra|tomorrow|the|[a-z]{1,6}|\\PC{0,3}| ){0,40}") {
        let index = CardIndex::new(company());
        let first = index.rank(&prompt);
        prop_assert_eq!(&first, &CardIndex::new(company().into_iter().rev()).rank(&prompt));
        prop_assert!(first.runners_up.len() <= 3);
        let best = first.choice.as_ref().map_or(f64::INFINITY, |fit| fit.score);
        prop_assert!(first.runners_up.iter().all(|fit| fit.score <= best && fit.score > 0.0));
    }

    /// A text that repeats itself says no more than once.
    #[test]
    fn repeating_oneself_changes_nothing(times in 1_usize..20) {
        let index = CardIndex::new(company());
        prop_assert_eq!(index.rank(&"signups of the bank ".repeat(times)), index.rank("signups of the bank"));
    }
}

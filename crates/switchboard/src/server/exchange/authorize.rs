//! What a caller may do: rules by principal, tenant and scope about agents, skills and operations. A call is checked once, after it
//! was decoded (its operation and skill are known then) and before the agent sees it, for every binding and dialect;
//! downloads are checked where they are served. A server without rules checks nothing.
//!
//! Whose tasks a caller sees is not decided here: that is the owner, which every read names. [`Access`] holds the rules, and the two
//! settings beside them, from the builder to the server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use switchboard_core::call::{Caller, Request, SendMessage};
use switchboard_core::error::ProtocolError;
use switchboard_core::model::{AgentCard, Json};
use switchboard_engine::ports::audit::AuditEvent;

use crate::reloaded::{ListError, ListOfLines, ReloadedList, reloads_by_itself};
use crate::server::authentication::Identity;
use crate::server::serve_error::ServeError;
use crate::server::uri::check_name;

/// Rules about what callers may do, in place of letting everybody who is let in do everything.
///
/// One per line: `allow` or `deny`, whom it is about, the operations, and the agent, or the agent and a skill of it. The first line that
/// fits decides, and what no line fits is refused. `#` at the beginning of a word begins a comment.
///
/// Whom: `*`, `authenticated`, `anonymous`, `principal:NAME`, `tenant:NAME` or `scope:NAME`; of several with commas, all
/// must be so. Operations: `*`, `send`, `read`, `cancel`, `push`, `extended-card`, or names such as `ListTasks`, with
/// commas. Agent: its slug or `*`; `AGENT/SKILL` is about sends for that skill alone, and `AGENT/-` about those that name none.
///
/// Clones share one list: what [`Rules::reload`] changes holds for every server it was given to, from the next request on.
///
/// ```
/// let rules = "allow  scope:agents:use  send,read,cancel  *\n\
///              deny   *                 extended-card     researcher   # not even for operators\n\
///              allow  principal:alice   *                 *";
/// assert_eq!(switchboard::Rules::parse(rules).unwrap().len(), 3);
/// assert_eq!(switchboard::Rules::parse("allow alice * *").unwrap_err().line, 1);
/// ```
#[derive(Clone)]
pub struct Rules(Arc<ReloadedList<RuleList>>);

/// The rules in the order in which they are tried.
struct RuleList(Vec<Rule>);

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    allows: bool,
    /// All of them must be so; none is everybody.
    whom: Vec<Whom>,
    /// A bit for each operation, in the order of [`OPERATIONS`].
    operations: u16,
    /// None is every agent.
    agent: Option<String>,
    skill: SkillRule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Whom {
    Authenticated,
    Anonymous,
    Principal(String),
    Tenant(String),
    Scope(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum SkillRule {
    /// Whatever a call says about skills.
    Any,
    /// Sends that name no skill.
    Unnamed,
    /// Sends for this skill.
    Named(String),
}

/// The operations by their names in the specification; a bit of a rule is the place here.
const OPERATIONS: [&str; 11] = [
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "SubscribeToTask",
    "CancelTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
];
const SENDS: u16 = 0b11;
/// Names for several operations at once.
const GROUPS: [(&str, u16); 6] = [
    ("*", 0b111_1111_1111),
    ("send", SENDS),
    ("read", 0b1_1100),
    ("cancel", 0b10_0000),
    ("push", 0b11_1100_0000),
    ("extended-card", 0b100_0000_0000),
];
/// What a download is: a read of its task.
const DOWNLOAD: u16 = 0b100;

const LINE: &str =
    "expected allow|deny WHOM OPERATIONS AGENT[/SKILL], as in: allow scope:agents:use send,read researcher";
/// How many rules there may be.
const RULES_MAX: usize = 10_000;

/// Whom a call is from, as rules see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) identity: &'a Identity,
    /// The tenant that the call acts for.
    pub(crate) tenant: &'a str,
}

impl Whom {
    fn is(&self, subject: &Subject<'_>) -> bool {
        let identity = subject.identity;
        match self {
            Self::Authenticated => identity.authenticated,
            Self::Anonymous => !identity.authenticated,
            Self::Principal(name) => identity.principal.as_str() == name,
            Self::Tenant(name) => subject.tenant == name,
            Self::Scope(name) => identity.scopes.contains(name),
        }
    }
}

impl Rule {
    fn fits(&self, subject: &Subject<'_>, agent: &str, operation: u16, skill: Option<&str>) -> bool {
        let fits_skill = match &self.skill {
            SkillRule::Any => true,
            SkillRule::Unnamed => operation & SENDS != 0 && skill.is_none(),
            SkillRule::Named(named) => operation & SENDS != 0 && skill == Some(named),
        };
        self.operations & operation != 0
            && fits_skill
            && self.agent.as_deref().is_none_or(|named| named == agent)
            && self.whom.iter().all(|whom| whom.is(subject))
    }
}

reloads_by_itself!(Rules);

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// When a line is not a rule; the error names it.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        Ok(Self(Arc::new(ReloadedList::given(RuleList::parse(text)?))))
    }

    /// Reads rules from a file. A server looks every minute whether it has changed, and then uses the new rules. If they are not good,
    /// or there are none, the server goes on with those it has and says so in the log.
    ///
    /// # Errors
    /// When the file cannot be read, holds no rule, or for the reasons of [`Rules::parse`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ListError> {
        Ok(Self(Arc::new(ReloadedList::open(path.as_ref())?)))
    }

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read(RuleList::len)
    }

    /// Whether there are none, so that everything is refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a call is allowed.
    pub(crate) fn check(&self, subject: &Subject<'_>, agent: &str, request: &Request) -> Result<(), ProtocolError> {
        let operation = bit_of(request);
        let skill = match request {
            Request::SendMessage(send) | Request::SendStreamingMessage(send) => skill_of(send),
            _ => None,
        };
        refuse_unless(self.0.read(|rules| rules.decide(subject, agent, operation, skill.as_deref())))
    }

    /// Whether a download is allowed.
    pub(crate) fn check_download(&self, subject: &Subject<'_>, agent: &str) -> Result<(), ProtocolError> {
        refuse_unless(self.0.read(|rules| rules.decide(subject, agent, DOWNLOAD, None)))
    }

    /// The card with the skills that the caller may ask for.
    pub(crate) fn shown(&self, subject: &Subject<'_>, agent: &str, mut card: Arc<AgentCard>) -> Arc<AgentCard> {
        self.0.read(|rules| {
            let may_ask = |skill: &str| rules.decide(subject, agent, SENDS, Some(skill));
            if card.skills.iter().any(|skill| !may_ask(&skill.id)) {
                Arc::make_mut(&mut card).skills.retain(|skill| may_ask(&skill.id));
            }
        });
        card
    }
}

impl RuleList {
    /// The first rule that fits decides.
    fn decide(&self, subject: &Subject<'_>, agent: &str, operation: u16, skill: Option<&str>) -> bool {
        self.0.iter().find(|rule| rule.fits(subject, agent, operation, skill)).is_some_and(|rule| rule.allows)
    }
}

/// The refusal is the same whatever it is about, so that it does not tell which agents, skills or tasks there are.
fn refuse_unless(allowed: bool) -> Result<(), ProtocolError> {
    match allowed {
        true => Ok(()),
        false => Err(ProtocolError::PermissionDenied { reason: "you may not do this here".to_owned() }),
    }
}

fn bit_of(request: &Request) -> u16 {
    let name = request.operation();
    OPERATIONS.iter().position(|operation| *operation == name).map_or(0, |place| 1 << place)
}

/// The skill that a send asks for: in its metadata, or else in that of its message.
fn skill_of(send: &SendMessage) -> Option<String> {
    let named = |metadata: Option<&Json>| {
        let members: serde_json::Map<String, serde_json::Value> = serde_json::from_str(metadata?.as_str()).ok()?;
        let skill = members.get("skill").or_else(|| members.get("skillId"))?.as_str()?;
        Some(skill.to_owned())
    };
    named(send.metadata.as_ref()).or_else(|| named(send.message.metadata.as_ref()))
}

impl ListOfLines for RuleList {
    const WHAT: &'static str = "rules";
    const EVENT: AuditEvent = AuditEvent::Rules;
    const NONE_IN_FILE: &'static str = "no rule in it; expected allow|deny WHOM OPERATIONS AGENT[/SKILL], as in: allow scope:agents:use send,read researcher";

    fn parse(text: &str) -> Result<Self, ListError> {
        let mut rules = Vec::new();
        for (index, line) in text.lines().enumerate() {
            // Within a word it is part of a principal, which carries its issuer in front of it.
            let words: Vec<&str> = line.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
            if words.is_empty() {
                continue;
            }
            let rule = parse_line(&words).map_err(|reason| ListError { line: index + 1, reason })?;
            if rules.len() == RULES_MAX {
                let reason = format!("there are more than {RULES_MAX} rules");
                return Err(ListError { line: index + 1, reason });
            }
            rules.push(rule);
        }
        Ok(Self(rules))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn succeed(&mut self, _: &Self) -> Result<(), ListError> {
        Ok(())
    }
}

fn parse_line(words: &[&str]) -> Result<Rule, String> {
    let [decision, whom, operations, agent] = words else { return Err(LINE.to_owned()) };
    let allows = match *decision {
        "allow" => true,
        "deny" => false,
        other => return Err(format!("{other:.60?} is neither allow nor deny; {LINE}")),
    };
    let whom = match *whom {
        "*" => Vec::new(),
        some => some.split(',').map(parse_whom).collect::<Result<_, _>>()?,
    };
    let mut bits = 0;
    for name in operations.split(',') {
        let group = GROUPS.iter().find(|(group, _)| *group == name).map(|(_, bits)| *bits);
        let one = || OPERATIONS.iter().position(|operation| *operation == name).map(|place| 1 << place);
        bits |= group.or_else(one).ok_or_else(|| {
            format!("{name:.60?} is no operation; expected *, send, read, cancel, push, extended-card or a name such as ListTasks")
        })?;
    }
    let (agent, skill) = match agent.split_once('/') {
        None => (*agent, SkillRule::Any),
        Some((agent, "-")) => (agent, SkillRule::Unnamed),
        Some((_, "")) => return Err("a skill is missing behind the slash".to_owned()),
        Some((agent, skill)) => (agent, SkillRule::Named(skill.to_owned())),
    };
    if skill != SkillRule::Any && bits & !SENDS != 0 {
        return Err("only sends are for a skill; name the operation send".to_owned());
    }
    let agent = match agent {
        "*" => None,
        named => {
            check_name("agent slug", named)?;
            Some(named.to_owned())
        }
    };
    Ok(Rule { allows, whom, operations: bits, agent, skill })
}

fn parse_whom(word: &str) -> Result<Whom, String> {
    let named = |name: &str| match name.is_empty() {
        true => Err(format!("a name is missing behind {word:.60?}")),
        false => Ok(name.to_owned()),
    };
    match (word, word.split_once(':')) {
        ("authenticated", _) => Ok(Whom::Authenticated),
        ("anonymous", _) => Ok(Whom::Anonymous),
        (_, Some(("principal", name))) => named(name).map(Whom::Principal),
        (_, Some(("tenant", name))) => named(name).map(Whom::Tenant),
        (_, Some(("scope", name))) => named(name).map(Whom::Scope),
        _ => Err(format!(
            "{word:.60?} is nobody; expected *, authenticated, anonymous, principal:NAME, tenant:NAME or scope:NAME"
        )),
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules", self.len())
    }
}

/// A call of a caller whom rules are about, with what is needed to show it an extended card.
pub(crate) struct CardReader {
    rules: Rules,
    identity: Identity,
    tenant: String,
}

impl CardReader {
    pub(crate) fn new(rules: &Rules, identity: &Identity, caller: &Caller) -> Self {
        let tenant = caller.owner.tenant.as_str().to_owned();
        Self { rules: rules.clone(), identity: identity.clone(), tenant }
    }

    pub(crate) fn shown(&self, agent: &str, card: Arc<AgentCard>) -> Arc<AgentCard> {
        self.rules.shown(&Subject { identity: &self.identity, tenant: &self.tenant }, agent, card)
    }
}

/// The settings of [`ServerBuilder`](crate::ServerBuilder) that say what callers may do and see once they are let in.
#[derive(Clone, Default)]
pub(crate) struct Access {
    /// None if every caller who is let in may do everything.
    pub(crate) rules: Option<Rules>,
    /// Whether tasks belong to tenants, and not to principals within them.
    pub(crate) shared_tenant: bool,
    /// Whether the public cards are for callers that are known.
    pub(crate) protect_cards: bool,
}

impl Access {
    /// Checks the settings of a server, which is open if it knows no callers.
    pub(crate) fn check(&self, is_open: bool) -> Result<(), ServeError> {
        match is_open && self.protect_cards {
            false => Ok(()),
            true => Err(ServeError::new(
                "the cards are to be shown to known callers only, and this server knows no callers; give out tokens \
                 (ServerBuilder::tokens)",
            )),
        }
    }
}

#[cfg(test)]
#[path = "authorize_tests.rs"]
mod tests;

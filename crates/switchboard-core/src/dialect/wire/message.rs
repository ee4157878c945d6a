//! A message.

use std::fmt::Arguments;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dialect::json::{Check, LazyMember, List, NameOrNumber, Obj, Raw, Text, excerpt};
use crate::model::{self, Role};

use super::items::{FromModel, Items};
use super::part::{Parts, read_parts};
use super::spelling::{PartForm, Spelling};

#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    kind: Option<LazyMember<'a, Text<'a>>>,
    #[serde(borrow, alias = "message_id")]
    pub(super) message_id: Option<Text<'a>>,
    #[serde(borrow, alias = "context_id")]
    pub(super) context_id: Option<Text<'a>>,
    #[serde(borrow, alias = "task_id")]
    task_id: Option<Text<'a>>,
    #[serde(borrow)]
    role: Option<NameOrNumber<'a>>,
    #[serde(borrow)]
    parts: Option<Parts<'a>>,
    /// What 0.3 over HTTP calls the parts.
    #[serde(borrow)]
    content: Option<LazyMember<'a, Parts<'a>>>,
    #[serde(borrow)]
    metadata: Option<Raw<'a>>,
    #[serde(borrow)]
    extensions: Option<List<Text<'a>>>,
    #[serde(borrow, alias = "reference_task_ids")]
    reference_task_ids: Option<List<Text<'a>>>,
}

impl model::Message {
    /// All that the message says, as bytes: equal messages have equal ones, and others have others. It is the message in the
    /// JSON of 1.0, and stays that: repeats of a send are recognised by its digest, also after an upgrade.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        super::write_message(self, &super::V1_0, &mut out);
        out
    }
}

/// A list of texts, unless it is empty.
pub(super) fn texts_of<'a>(texts: impl ExactSizeIterator<Item = &'a str>) -> Option<List<Text<'a>>> {
    (texts.len() > 0).then(|| texts.map(Text::from).collect())
}

impl<'a> FromModel<'a, Arc<model::Message>> for Obj<Message<'a>> {
    #[inline]
    fn of(message: &'a Arc<model::Message>, spelling: &'a Spelling) -> Self {
        Obj(Message::of(message, spelling))
    }
}

impl<'a> Message<'a> {
    pub(super) fn of(message: &'a model::Message, spelling: &'a Spelling) -> Self {
        let parts = Some(Items::of(&message.parts, spelling));
        let (parts, content) = match spelling.parts {
            PartForm::Nested => (None, parts.map(LazyMember::Own)),
            PartForm::Flat | PartForm::Kind => (parts, None),
        };
        Self {
            kind: (!spelling.wraps).then_some(LazyMember::Own(Text::from("message"))),
            message_id: Some(Text::from(message.message_id.as_str())),
            context_id: message.context_id.as_ref().map(|id| Text::from(id.as_str())),
            task_id: message.task_id.as_ref().map(|id| Text::from(id.as_str())),
            role: Some(NameOrNumber::Name(spelling.role(message.role).into())),
            parts,
            content,
            metadata: message.metadata.as_ref().map(Raw::from),
            extensions: texts_of(message.extensions.iter().map(String::as_str)),
            reference_task_ids: match spelling.has_references {
                true => texts_of(message.reference_task_ids.iter().map(|id| id.as_str())),
                false => None,
            },
        }
    }

    /// Reads the message that stands at `at`.
    pub(super) fn read(self, check: &mut Check<'_>, at: Arguments<'_>, spelling: &Spelling) -> model::Message {
        let kind = self.kind.filter(|_| !spelling.wraps);
        let kind = kind.and_then(|kind| kind.read(check, format_args!("{at}.kind")));
        if let Some(Text(kind)) = kind.as_ref().filter(|kind| kind.0 != "message") {
            let description = format!("is {}; a message is of kind message", excerpt(kind, 64));
            check.violation(format_args!("{at}.kind"), description);
        }
        let role = self.role.as_ref().and_then(|sent| spelling.read_role(sent)).unwrap_or_else(|| {
            check.violation(format_args!("{at}.role"), no_role(self.role.as_ref(), spelling));
            Role::User
        });
        let message_id = match spelling.requires_message_id {
            true => check.required_id(format_args!("{at}.messageId"), self.message_id),
            false => check.id(format_args!("{at}.messageId"), self.message_id).unwrap_or_default(),
        };
        let references = self.reference_task_ids.filter(|_| spelling.has_references);
        model::Message {
            message_id,
            context_id: check.id(format_args!("{at}.contextId"), self.context_id),
            task_id: check.id(format_args!("{at}.taskId"), self.task_id),
            role,
            parts: match spelling.parts {
                PartForm::Flat | PartForm::Kind => read_parts(check, format_args!("{at}.parts"), self.parts, spelling),
                PartForm::Nested if self.content.is_none() && self.parts.is_some() => {
                    let description = "is what HTTP+JSON of A2A 0.3 calls the parts of a message, and each is \
                                       {\"text\":…}, {\"file\":…} or {\"data\":…} without a kind";
                    check.violation(format_args!("{at}.content"), description);
                    Vec::new()
                }
                PartForm::Nested => {
                    let is_sent = self.content.is_some();
                    let content = self.content.and_then(|content| content.read(check, format_args!("{at}.content")));
                    match content.is_none() && is_sent {
                        // Its violation has been reported already.
                        true => Vec::new(),
                        false => read_parts(check, format_args!("{at}.content"), content, spelling),
                    }
                }
            },
            metadata: check.object(format_args!("{at}.metadata"), self.metadata),
            extensions: check.lines(format_args!("{at}.extensions"), self.extensions),
            reference_task_ids: check.ids(format_args!("{at}.referenceTaskIds"), references),
        }
    }
}

#[cold]
fn no_role(sent: Option<&NameOrNumber<'_>>, spelling: &Spelling) -> String {
    let [user, agent] = spelling.roles;
    match sent {
        Some(NameOrNumber::Name(name)) if name.starts_with("ROLE_") && !user.starts_with("ROLE_") => {
            format!("{} is how A2A 1.0 spells it; in 0.3 it is {user} or {agent}", excerpt(name, 64))
        }
        Some(sent) => format!("{sent} is neither {user} nor {agent}"),
        None => format!("is required: {user} or {agent}"),
    }
}

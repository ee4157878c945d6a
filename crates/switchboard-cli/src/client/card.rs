//! `switchboard card get`: what an agent says about itself.

use clap::{Args, Subcommand};
use switchboard::client::{DiscoveredCard, SignatureStatus};
use switchboard::model::AgentCard;

use super::error::{ClientError, Code};
use super::options::CommonArgs;
use super::render::{self, Lines};
use super::session::Session;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum CardCommand {
    /// Show the card of an agent
    Get(CardGetArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CardGetArgs {
    /// Check the card against the specification, and fail if it breaks it
    #[arg(long)]
    validate: bool,
    /// Show the card that only authenticated callers may read
    #[arg(long)]
    extended: bool,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// # Errors
/// When there is no card, or it breaks the specification and that was asked for.
pub(crate) async fn get(session: &Session, args: &CardGetArgs) -> Result<(), ClientError> {
    let getting = async {
        let found = session.find().await?;
        if args.validate {
            validate(&found.card)?;
            session.printer.note("The card is as the specification wants it");
        }
        if args.extended {
            let agent = session.agent_of(found).await?;
            check_extended(&agent.card)?;
            let card = agent.client.extended_card().await.map_err(|error| agent.error(&error))?;
            let verdict = shown_signature(agent.found.client.extended_signature_status(&card).await);
            return show(session, &card, render::card_of(&card), &verdict);
        }
        let verdict = shown_signature(found.client.signature_status(&found.card).await);
        show(session, found.card.card(), render::card_json(&found.card), &verdict)
    };
    session.bounded(Box::pin(getting)).await
}

/// What is known about the signature of a card.
fn shown_signature(status: SignatureStatus) -> String {
    match status {
        SignatureStatus::Verified { key_id, .. } => format!("verified with key {key_id}"),
        SignatureStatus::Unverifiable { reason } => format!("unverifiable: {reason}"),
        SignatureStatus::Absent => "absent".to_owned(),
        _ => "unverifiable".to_owned(),
    }
}

fn show(session: &Session, card: &AgentCard, json: Vec<u8>, verdict: &str) -> Result<(), ClientError> {
    if session.printer.is_json() {
        session.printer.json(json)?;
        // There is no member for it in a card.
        session.printer.note(format!("Signature: {verdict}"));
        return Ok(());
    }
    let mut lines = Lines::default();
    render::card(&mut lines, card, verdict);
    session.printer.text(lines.into_text())
}

fn validate(card: &DiscoveredCard) -> Result<(), ClientError> {
    let Err(violations) = card.validate() else { return Ok(()) };
    let listed: Vec<String> = violations.iter().map(|wrong| format!("{} {}", wrong.field, wrong.description)).collect();
    Err(ClientError::new(Code::CardInvalid, format!("the card breaks the specification: {}", listed.join("; ")))
        .with_hint("Mend these members on the agent's side"))
}

/// The extended card is asked for only where the public one declares how to prove who asks.
fn check_extended(card: &AgentCard) -> Result<(), ClientError> {
    if card.capabilities.extended_agent_card != Some(true) {
        return Err(ClientError::protocol(
            "UnsupportedOperationError",
            "the card says that the agent has no extended card",
        ));
    }
    if card.security_schemes.is_empty() {
        let message = "the card declares no security scheme, so there is no way to ask for the extended card";
        return Err(ClientError::new(Code::CredentialsMissing, message));
    }
    Ok(())
}

//! `switchboard outbox`: deliveries to webhooks, for operators. Asks a running server as an operator, or
//! opens the database itself while no server does; either way the same questions and answers.

mod picture;
mod reach;

use std::path::Path;

use serde_json::{Value, json};

use crate::cli::{ChangeArgs, ListArgs, OutboxCommand, ShowArgs};
use crate::config::Environment;
use crate::failure::Failure;
use reach::Reach;

pub(crate) use reach::fetch;

/// What one page asks for; the server gives no more anyway.
const PAGE_SIZE: usize = 100;

/// Does what is asked and gives back what to say.
///
/// # Errors
/// When nothing can be reached, or what is reached refuses.
pub(crate) async fn run(command: &OutboxCommand, environment: &Environment, folder: &Path) -> Result<String, Failure> {
    let place = match command {
        OutboxCommand::List(args) => &args.place,
        OutboxCommand::Show(args) => &args.place,
        OutboxCommand::Redrive(args) => &args.place,
        OutboxCommand::Purge(args) => &args.place,
    };
    if let OutboxCommand::Redrive(args) | OutboxCommand::Purge(args) = command {
        check(args, matches!(command, OutboxCommand::Purge(_)))?;
    }
    let reach = Reach::find(place, environment, folder).await?;
    match command {
        OutboxCommand::List(args) => list(&reach, args).await,
        OutboxCommand::Show(args) => show(&reach, args).await,
        OutboxCommand::Redrive(args) => change(&reach, args, "redrive").await,
        OutboxCommand::Purge(args) => change(&reach, args, "purge").await,
    }
}

/// Everything is only meant if it is said, and dropping wants a second word.
fn check(args: &ChangeArgs, drops: bool) -> Result<(), Failure> {
    let many = args.all || args.endpoint.is_some();
    if many != args.ids.is_empty() {
        return Err(Failure::Usage("name deliveries by id, or say --all or --endpoint URL".to_owned()));
    }
    if drops && !args.yes {
        let what = "this would drop for ever what they still had to deliver; say --yes to do it";
        return Err(Failure::Usage(what.to_owned()));
    }
    Ok(())
}

async fn list(reach: &Reach, args: &ListArgs) -> Result<String, Failure> {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut deliveries: Vec<Value> = Vec::new();
    let mut token = String::new();
    loop {
        let page_size = limit.saturating_sub(deliveries.len()).clamp(1, PAGE_SIZE);
        let mut query = format!("/api/outbox?state={}&pageSize={page_size}&pageToken={token}", args.state.word());
        if let Some(endpoint) = &args.endpoint {
            query.push_str(&format!("&endpoint={}", encoded(endpoint)));
        }
        let page = reach.get(&query).await?;
        deliveries.extend(page["deliveries"].as_array().into_iter().flatten().cloned());
        token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() || deliveries.len() >= limit {
            break;
        }
    }
    deliveries.truncate(limit);
    let endpoints = reach.get("/api/outbox/endpoints").await?["endpoints"].clone();
    if args.json {
        let more = !token.is_empty();
        return Ok(json!({"deliveries": deliveries, "endpoints": endpoints, "more": more}).to_string());
    }
    Ok(picture::list(&deliveries, endpoints.as_array().map_or(&[], Vec::as_slice), args.state, !token.is_empty()))
}

async fn show(reach: &Reach, args: &ShowArgs) -> Result<String, Failure> {
    let delivery = reach.get(&format!("/api/outbox/{}", encoded(&args.id))).await?;
    Ok(if args.json { delivery.to_string() } else { picture::one(&delivery) })
}

async fn change(reach: &Reach, args: &ChangeArgs, verb: &str) -> Result<String, Failure> {
    let mut changed = 0;
    for id in &args.ids {
        reach.post(&format!("/api/outbox/{}:{verb}", encoded(id)), &Value::Null).await?;
        changed += 1;
    }
    if args.ids.is_empty() {
        let mut body = match &args.endpoint {
            Some(endpoint) => json!({"endpoint": endpoint}),
            None => json!({"all": true}),
        };
        loop {
            let page = reach.post(&format!("/api/outbox:{verb}"), &body).await?;
            changed += page["changed"].as_u64().unwrap_or(0);
            match page["nextPageToken"].as_str() {
                None | Some("") => break,
                Some(token) => body["pageToken"] = json!(token),
            }
        }
    }
    if args.json {
        return Ok(json!({"changed": changed}).to_string());
    }
    let done = if verb == "purge" { "dropped" } else { "due again" };
    let rest = match reach {
        Reach::Folder(_) if verb == "redrive" => "; they go out when the server starts",
        Reach::Folder(_) | Reach::Server(_) => "",
    };
    Ok(format!(
        "{changed} {}{rest}",
        if changed == 1 { format!("delivery {done}") } else { format!("deliveries {done}") }
    ))
}

/// A text as part of a URL.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests;

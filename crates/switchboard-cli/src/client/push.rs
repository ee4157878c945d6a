//! `switchboard task push-config`: the webhooks of a task.

use clap::{Args, Subcommand};
use switchboard::model::{AuthenticationInfo, ConfigId, PushConfig};
use switchboard::{CallError, TaskId};
use switchboard_core::call::{PushConfigPage, Reply};

use super::error::ClientError;
use super::follow::encoded;
use super::listen::{self, ListenArgs};
use super::options::{CommonArgs, Flags};
use super::render::{self, Lines};
use super::session::{Agent, CALL_MAX, Session};
use super::task_args::TaskArgs;

/// So many pages of webhooks are read.
const PAGES_MAX: usize = 100;

#[derive(Subcommand, Clone, Debug)]
pub(crate) enum PushConfigCommand {
    /// Have updates of a task posted to a webhook
    Create(CreateArgs),
    /// Show one webhook of a task
    Get(OneArgs),
    /// List the webhooks of a task
    List(ListConfigsArgs),
    /// Remove a webhook of a task
    Delete(OneArgs),
    /// Receive the updates of a task here, at a webhook that is removed at the end
    Listen(ListenArgs),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct CreateArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Where updates are posted
    #[arg(long, value_name = "URL")]
    url: String,
    /// Id of the webhook [default: the agent chooses one]
    #[arg(long = "id", value_name = "ID")]
    config_id: Option<String>,
    /// Token that the agent sends with each update [default: A2ACLI_PUSH_TOKEN]
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Scheme of the Authorization header that the agent sends, as in Bearer
    #[arg(long, value_name = "SCHEME")]
    auth_scheme: Option<String>,
    /// Credentials in that header [default: A2ACLI_AUTH_CREDENTIALS]
    #[arg(long, value_name = "SECRET")]
    auth_credentials: Option<String>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct OneArgs {
    /// The task
    #[arg(value_name = "TASK_ID")]
    task: String,
    /// The webhook, as `list` names it
    #[arg(value_name = "CONFIG_ID")]
    config_id: String,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ListConfigsArgs {
    #[command(flatten)]
    task: TaskArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

impl PushConfigCommand {
    pub(crate) fn common(&self) -> &CommonArgs {
        match self {
            Self::Create(args) => &args.common,
            Self::Get(args) | Self::Delete(args) => &args.common,
            Self::List(args) => &args.common,
            Self::Listen(args) => &args.common,
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        let flags = self.common().flags();
        match self {
            Self::Create(args) => args
                .task
                .add_to(flags)
                .text("push-token", args.token.as_ref())
                .text("auth-credentials", args.auth_credentials.as_ref()),
            Self::List(args) => args.task.add_to(flags),
            Self::Listen(args) => args.flags(),
            Self::Get(_) | Self::Delete(_) => flags,
        }
    }
}

/// # Errors
/// When the agent has no webhooks, or refuses.
pub(crate) async fn run(session: &Session, command: &PushConfigCommand) -> Result<(), ClientError> {
    let running = async {
        let agent = session.agent().await?;
        agent.check_push()?;
        let client = agent.client.clone().with_deadline(CALL_MAX);
        let failed = |error: CallError| agent.error(&error);
        match command {
            PushConfigCommand::Create(args) => {
                let config = client.set_push_config(config(session, args)?).await.map_err(failed)?;
                show(session, &config)
            }
            PushConfigCommand::Get(args) => {
                let id = ConfigId::from(args.config_id.as_str());
                let config = client.push_config(&args.task.as_str().into(), &id).await.map_err(failed)?;
                show(session, &config)
            }
            PushConfigCommand::Delete(args) => {
                let id = ConfigId::from(args.config_id.as_str());
                client.delete_push_config(&args.task.as_str().into(), &id).await.map_err(failed)?;
                if session.printer.is_json() {
                    return session.printer.json("{}");
                }
                let mut lines = Lines::default();
                lines.field("Task", &args.task).field("Deleted", &args.config_id);
                session.printer.text(lines.into_text())
            }
            PushConfigCommand::Listen(args) => listen::run(session, &agent, args).await,
            PushConfigCommand::List(args) => list(session, &agent, &args.task.task(session)?).await,
        }
    };
    session.bounded(Box::pin(running)).await
}

fn config(session: &Session, args: &CreateArgs) -> Result<PushConfig, ClientError> {
    let credentials = session.settings.text("auth-credentials").map(str::to_owned);
    let authentication = match (&args.auth_scheme, credentials) {
        (Some(scheme), credentials) => Some(AuthenticationInfo { scheme: scheme.clone(), credentials }),
        (None, Some(_)) => {
            return Err(ClientError::usage("--auth-credentials needs --auth-scheme, as in --auth-scheme Bearer"));
        }
        (None, None) => None,
    };
    Ok(PushConfig {
        id: args.config_id.as_deref().unwrap_or_default().into(),
        task_id: args.task.task(session)?,
        url: args.url.clone(),
        token: session.settings.text("push-token").map(str::to_owned),
        authentication,
    })
}

async fn list(session: &Session, agent: &Agent, task: &TaskId) -> Result<(), ClientError> {
    let client = agent.client.clone().with_deadline(CALL_MAX);
    let mut all = PushConfigPage { configs: Vec::new(), next_page_token: String::new() };
    for _ in 0..PAGES_MAX {
        let token = Some(all.next_page_token.as_str()).filter(|token| !token.is_empty());
        let mut page = client.push_configs(task, token).await.map_err(|error| agent.error(&error))?;
        all.configs.append(&mut page.configs);
        all.next_page_token = page.next_page_token;
        if all.next_page_token.is_empty() {
            break;
        }
    }
    if session.printer.is_json() && session.printer.is_live {
        for config in all.configs {
            session.printer.json(encoded(&Reply::PushConfig(config)))?;
        }
        return Ok(());
    }
    if session.printer.is_json() {
        return session.printer.json(encoded(&Reply::PushConfigs(all)));
    }
    let mut lines = Lines::default();
    lines.field("Task", task.as_str());
    for config in &all.configs {
        lines.blank();
        render::push_config(&mut lines, config);
    }
    session.printer.text(lines.into_text())
}

fn show(session: &Session, config: &PushConfig) -> Result<(), ClientError> {
    if session.printer.is_json() {
        return session.printer.json(encoded(&Reply::PushConfig(config.clone())));
    }
    let mut lines = Lines::default();
    render::push_config(&mut lines, config);
    session.printer.text(lines.into_text())
}

//! The options that the client commands share. What is not said on the command line comes from the environment and from files
//! (`settings`), so every option can be absent here.

use clap::Args;

/// Which agent is called, how, and as whom.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CommonArgs {
    /// The agent: a host, the URL of its card, the path of a file with its card, or catalog:NAME
    #[arg(short = 'a', long, value_name = "REF", help_heading = "Agent")]
    agent_card: Option<String>,
    /// Version of the protocol to use; below 1.0 only if asked for: 1.0, 0.3, 0.2 or auto
    #[arg(long, value_name = "VERSION", help_heading = "Agent")]
    a2a_version: Option<String>,
    /// Preferred binding: jsonrpc, http+json or grpc; repeatable, best first
    #[arg(long, value_name = "BINDING", help_heading = "Agent")]
    transport: Vec<String>,
    /// URI of a protocol extension that you support; repeatable
    #[arg(long, value_name = "URI", help_heading = "Agent")]
    extension: Vec<String>,

    /// Format of what is printed: text or json
    #[arg(short = 'o', long, value_name = "FORMAT", help_heading = "Output")]
    pub(super) output: Option<String>,
    /// Print each event as it comes; with -o json, one JSON document per line
    #[arg(long, help_heading = "Output")]
    pub(super) stream: bool,
    /// Print all parts and metadata that were exchanged
    #[arg(long, help_heading = "Output")]
    verbose: bool,
    /// Print on standard error what is sent and received, and how long it takes; secrets are left out
    #[arg(long, help_heading = "Output")]
    debug: bool,

    /// Bearer token. A flag is seen in the process table and the shell's history: A2ACLI_BEARER is safer
    #[arg(long, value_name = "TOKEN", help_heading = "Credentials")]
    bearer: Option<String>,
    /// API key, sent where the card asks for it. A flag is seen in the process table and the shell's history: A2ACLI_API_KEY is safer
    #[arg(long, value_name = "KEY", help_heading = "Credentials")]
    api_key: Option<String>,
    /// Certificate to show to the server, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    client_cert: Option<String>,
    /// Private key of that certificate, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "Credentials")]
    client_key: Option<String>,

    /// File with public keys (PEM or a JSON Web Key set) that verify the signature of the card; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    card_key: Vec<String>,
    /// Header (or metadata of gRPC) to send with every call, as NAME:VALUE; repeatable
    #[arg(long, value_name = "NAME:VALUE", help_heading = "Connection")]
    svc_param: Vec<String>,
    /// Certificates to trust beside the well-known ones, in PEM form
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    ca_cert: Option<String>,
    /// Do not verify the server's certificate
    #[arg(long, help_heading = "Connection")]
    insecure: bool,
    /// How long the whole command may wait, as in 30s or 5m [default: no limit]
    #[arg(long, value_name = "DURATION", help_heading = "Connection")]
    timeout: Option<String>,
    /// Read settings from this file in place of the nearest .env
    #[arg(long, value_name = "FILE", help_heading = "Connection")]
    pub(super) config: Option<String>,
}

/// How a command waits for a task.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct WaitArgs {
    /// Wait until the task has ended or asks for something
    #[arg(long, visible_alias = "watch", help_heading = "Waiting")]
    wait: bool,
    /// How long to wait between two looks at the task, as in 500ms or 2s
    #[arg(long, value_name = "DURATION", help_heading = "Waiting")]
    poll_interval: Option<String>,
}

/// What was said on the command line, by the name of the option.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flags {
    values: Vec<(&'static str, Vec<String>)>,
}

impl Flags {
    pub(crate) fn text(mut self, name: &'static str, value: Option<&String>) -> Self {
        self.values.extend(value.map(|value| (name, vec![value.clone()])));
        self
    }

    pub(crate) fn switch(mut self, name: &'static str, is_on: bool) -> Self {
        self.values.extend(is_on.then(|| (name, vec!["true".to_owned()])));
        self
    }

    pub(crate) fn list(mut self, name: &'static str, values: &[String]) -> Self {
        self.values.extend((!values.is_empty()).then(|| (name, values.to_vec())));
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&[String]> {
        self.values.iter().find(|(known, _)| *known == name).map(|(_, values)| values.as_slice())
    }
}

impl CommonArgs {
    pub(crate) fn flags(&self) -> Flags {
        Flags::default()
            .text("agent-card", self.agent_card.as_ref())
            .text("a2a-version", self.a2a_version.as_ref())
            .list("transport", &self.transport)
            .list("extension", &self.extension)
            .text("output", self.output.as_ref())
            .switch("verbose", self.verbose)
            .switch("debug", self.debug)
            .text("bearer", self.bearer.as_ref())
            .text("api-key", self.api_key.as_ref())
            .text("client-cert", self.client_cert.as_ref())
            .text("client-key", self.client_key.as_ref())
            .list("card-key", &self.card_key)
            .list("svc-param", &self.svc_param)
            .text("ca-cert", self.ca_cert.as_ref())
            .switch("insecure", self.insecure)
            .text("timeout", self.timeout.as_ref())
    }

    /// The agent where the command also takes it as an argument without a name.
    pub(crate) fn or_agent(mut self, positional: Option<&String>) -> Self {
        self.agent_card = self.agent_card.or_else(|| positional.cloned());
        self
    }
}

impl WaitArgs {
    pub(crate) fn add_to(&self, flags: Flags) -> Flags {
        flags.switch("wait", self.wait).text("poll-interval", self.poll_interval.as_ref())
    }
}

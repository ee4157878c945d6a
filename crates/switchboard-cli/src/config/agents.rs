//! The agents of a configuration: those of the file, or else one demo agent. Flags and variables about "the agent" are
//! about the default one, which is the first; `--exec` makes it run a command.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use super::choices::KindName;
use super::layer::AgentLayer;
use super::{AccentConfig, AgentConfig, Command, ConfigError, Given, Kind, Layer, Origin, SkillConfig, values};
use crate::agents::demo::GUIDE;
use crate::agents::exec::{Invocation, Program, shell_doubt, split_words};

/// A week: longer work should be split.
const RUN_TIMEOUT_S_MAX: u64 = 7 * 86_400;

/// Enough to keep a machine busy, and not enough to bring it down.
const PROCESSES_MAX_DEFAULT: u64 = 64;
const PROCESSES_MAX: u64 = 10_000;

/// Each takes some memory.
const SELECTOOLS_TASKS_MAX: u64 = 1_000_000;
const SELECTOOLS_BODY_BYTES_MIN: u64 = 1 << 10;
const SELECTOOLS_BODY_BYTES_MAX: u64 = 1 << 30;

/// Each source that is heard of takes as many times of its own.
const CORVID_SENDS_PER_MIN_MAX: u64 = 10_000;
/// Requests name no greater depth, and no longer time.
const CORVID_DEPTH_MAX: u64 = 10;
const CORVID_TIMEOUT_S_MAX: u64 = 600;

/// Takes the settings of the default agent out of the layers.
pub(super) fn settle_agents(
    settings: &mut Layer,
    mut agents: Vec<AgentLayer>,
    search: &OsStr,
) -> Result<Vec<AgentConfig>, ConfigError> {
    if agents.is_empty() {
        agents.push(AgentLayer::unnamed());
    }
    if let Some(shell) = settings.exec_shell.as_ref().filter(|shell| shell.value && settings.exec.is_none()) {
        return Err(shell.from.error("there is no --exec to go with it"));
    }
    if let Some(default) = agents.first_mut() {
        default.take_overrides(settings);
    }
    let run_timeout = settings.run_timeout_s.take();
    let mut settled = Vec::with_capacity(agents.len());
    let mut slugs = BTreeMap::new();
    for mut agent in agents {
        agent.run_timeout_s = run_timeout.clone().or(agent.run_timeout_s);
        let named = agent.slug.as_ref().unwrap_or(&agent.name).from.clone();
        let agent = agent.settle(search)?;
        if let Some(other) = slugs.insert(agent.slug.clone(), agent.name.clone()) {
            let slug = &agent.slug;
            return Err(
                named.error(format_args!("the slug {slug:?} is taken by the agent {other:?}; set another slug"))
            );
        }
        settled.push(agent);
    }
    Ok(settled)
}

impl AgentLayer {
    /// The agent of a configuration that names none.
    fn unnamed() -> Self {
        Self {
            name: Given::new(String::new(), Origin::Default),
            slug: None,
            description: None,
            version: None,
            kind: None,
            command: None,
            shell: None,
            env: None,
            processes_max: None,
            effects: None,
            idempotency: None,
            recovery: None,
            recovery_reason: None,
            attempts_max: None,
            retry_pause_s: None,
            retry_pause_s_max: None,
            run_timeout_s: None,
            run_timeout_s_max: None,
            streaming: None,
            push: None,
            input_modes: None,
            output_modes: None,
            card: None,
            dialect: None,
            default_dialect: None,
            selectools_tasks_max: None,
            selectools_body_bytes_max: None,
            selectools_card_url: None,
            default_project: None,
            corvid_sends_per_min: None,
            corvid_depth_max: None,
            corvid_timeout_s: None,
            skills: Vec::new(),
        }
    }

    fn take_overrides(&mut self, settings: &mut Layer) {
        let Layer { name, description, agent_version, exec, exec_shell, effects, .. } = settings;
        if let Some(name) = name.take() {
            self.name = name;
        }
        self.description = description.take().or(self.description.take());
        self.version = agent_version.take().or(self.version.take());
        self.effects = effects.take().or(self.effects.take());
        if let Some(exec) = exec.take() {
            self.kind = Some(Given::new(KindName::Exec, exec.from.clone()));
            self.shell = Some(exec_shell.take().unwrap_or(Given::new(false, exec.from.clone())));
            self.command = Some(Given::new(Command::Line(exec.value), exec.from));
        }
    }

    /// The command of an agent that runs one. Without a kind, a command says enough.
    fn command_of(&mut self) -> Result<Option<Given<Command>>, ConfigError> {
        let is_exec = self.kind.as_ref().map_or(self.command.is_some(), |kind| kind.value == KindName::Exec);
        match (is_exec, self.command.take()) {
            (true, Some(command)) => Ok(Some(command)),
            (true, None) => {
                let from = self.kind.as_ref().map_or(&self.name.from, |kind| &kind.from);
                Err(from.error("an agent of kind \"exec\" needs a command"))
            }
            (false, command) => {
                let stray = command.map(|given| given.from);
                let stray = stray.or(self.shell.take().map(|given| given.from));
                let stray = stray.or(self.env.take().map(|given| given.from));
                let stray = stray.or(self.processes_max.take().map(|given| given.from));
                stray.map_or(Ok(None), |from| Err(from.error("only agents of kind \"exec\" have this")))
            }
        }
    }

    /// How the agent deals with the accents of single systems.
    fn settle_accent(&mut self) -> Result<AccentConfig, ConfigError> {
        let tasks = |number| values::within(number, 1, SELECTOOLS_TASKS_MAX, "tasks");
        let bytes = |number| values::within(number, SELECTOOLS_BODY_BYTES_MIN, SELECTOOLS_BODY_BYTES_MAX, "bytes");
        let number = |given: Given<u64>, check: fn(u64) -> Result<u64, String>| {
            given.try_map(check).map(|given| usize::try_from(given.value).unwrap_or(usize::MAX))
        };
        let sends = |number| values::within(number, 1, CORVID_SENDS_PER_MIN_MAX, "sends a minute");
        let depth = |number| values::within(number, 1, CORVID_DEPTH_MAX, "agents");
        let seconds = |number| values::within(number, 1, CORVID_TIMEOUT_S_MAX, "seconds");
        let small = |given: Given<u64>, check: fn(u64) -> Result<u64, String>| {
            given.try_map(check).map(|given| u32::try_from(given.value).unwrap_or(u32::MAX))
        };
        Ok(AccentConfig {
            card: self.card.take().map(|given| given.value),
            dialect: self.dialect.take().map(|given| given.value),
            default_dialect: self.default_dialect.take().map(|given| given.value),
            selectools_tasks_max: self.selectools_tasks_max.take().map(|given| number(given, tasks)).transpose()?,
            selectools_body_bytes_max: {
                self.selectools_body_bytes_max.take().map(|given| number(given, bytes)).transpose()?
            },
            selectools_card_url: {
                let url = self.selectools_card_url.take().map(|given| given.try_map(values::public_url));
                url.transpose()?.map(|given| given.value)
            },
            default_project: self.default_project.take().is_some_and(|given| given.value),
            corvid_sends_per_min: self.corvid_sends_per_min.take().map(|given| number(given, sends)).transpose()?,
            corvid_depth_max: self.corvid_depth_max.take().map(|given| small(given, depth)).transpose()?,
            corvid_timeout_s: self.corvid_timeout_s.take().map(|given| small(given, seconds)).transpose()?,
        })
    }

    fn settle(mut self, search: &OsStr) -> Result<AgentConfig, ConfigError> {
        let recovery = self.settle_recovery()?;
        let accent = self.settle_accent()?;
        let kind = match self.command_of()? {
            Some(command) => settle_exec(command, self.shell, self.env, self.processes_max, search)?,
            None => Kind::Demo,
        };
        let traits = Manner::of(&kind);
        let name = match self.name.from {
            Origin::Default => Given::new(traits.name, Origin::Default),
            _ => self.name.try_map(values::words)?,
        };
        let slug = match self.slug {
            Some(slug) => slug.try_map(values::path_name)?.value,
            None => {
                let slug = values::path_name(values::slug_of(&name.value));
                slug.map_err(|why| name.from.error(format_args!("{why}; set a slug for this agent")))?
            }
        };
        let described = |given: Option<Given<String>>, otherwise: String| match given {
            Some(given) => Ok(given.try_map(values::words)?.value),
            None => Ok(otherwise),
        };
        let skills = check_skills(self.skills)?;
        let timeout = |seconds| values::within(seconds, 1, RUN_TIMEOUT_S_MAX, "seconds");
        let run_timeout = self.run_timeout_s.map(|given| given.try_map(timeout)).transpose()?;
        let run_timeout_max = self.run_timeout_s_max.map(|given| given.try_map(timeout)).transpose()?;
        Ok(AgentConfig {
            name: name.value,
            slug,
            description: described(self.description, traits.description)?,
            version: described(self.version, env!("CARGO_PKG_VERSION").to_owned())?,
            effects: self.effects.map(|given| given.value),
            idempotency: self.idempotency.map(|given| given.value),
            recovery,
            run_timeout: run_timeout.map(|given| Duration::from_secs(given.value)),
            run_timeout_max: run_timeout_max.map(|given| Duration::from_secs(given.value)),
            streaming: self.streaming.is_none_or(|given| given.value),
            push: self.push.is_none_or(|given| given.value),
            input_modes: modes(self.input_modes, traits.input_modes)?,
            output_modes: modes(self.output_modes, traits.output_modes)?,
            skills: if skills.is_empty() { traits.skills } else { skills },
            accent,
            kind,
        })
    }
}

fn settle_exec(
    command: Given<Command>,
    shell: Option<Given<bool>>,
    env: Option<Given<Vec<String>>>,
    processes_max: Option<Given<u64>>,
    search: &OsStr,
) -> Result<Kind, ConfigError> {
    let shell = shell.is_some_and(|shell| shell.value);
    let from = command.from.clone();
    let doubt = match &command.value {
        Command::Line(line) if !shell => shell_doubt(line),
        Command::Line(_) | Command::Words(_) => None,
    };
    let invocation = command.try_map(|command| match (command, shell) {
        (Command::Line(line), true) => Ok(Invocation::Shell(line)),
        (Command::Line(line), false) => {
            split_words(&line).map(Invocation::Words).map_err(|why| format!("{line:?} {why}"))
        }
        (Command::Words(words), false) => Ok(Invocation::Words(words)),
        (Command::Words(_), true) => Err("a shell takes the command as one string, not as a list".to_owned()),
    });
    let invocation = invocation?.value;
    let found = Program::find(&invocation, search).map_err(|why| from.error(why))?;
    let program = Program { doubt, ..found };
    let env = match env {
        None => Vec::new(),
        Some(Given { value, from }) => {
            value.iter().try_for_each(|name| values::variable(name)).map_err(|why| from.error(why))?;
            value
        }
    };
    let processes_max = match processes_max {
        None => PROCESSES_MAX_DEFAULT,
        Some(given) => given.try_map(|number| values::within(number, 1, PROCESSES_MAX, "processes"))?.value,
    };
    Ok(Kind::Exec { invocation, program, env, processes_max })
}

fn modes(given: Option<Given<Vec<String>>>, otherwise: Vec<String>) -> Result<Vec<String>, ConfigError> {
    let Some(Given { value, from }) = given else { return Ok(otherwise) };
    if value.is_empty() {
        return Err(from.error("expected at least one media type"));
    }
    value.iter().try_for_each(|mode| values::media_type(mode)).map_err(|why| from.error(why))?;
    Ok(value)
}

fn check_skills(skills: Vec<Given<SkillConfig>>) -> Result<Vec<SkillConfig>, ConfigError> {
    let mut checked: Vec<SkillConfig> = Vec::with_capacity(skills.len());
    for Given { value: skill, from } in skills {
        if skill.id.trim().is_empty() {
            return Err(from.error("expected some text, got none"));
        }
        if checked.iter().any(|other| other.id == skill.id) {
            return Err(from.error(format_args!("the id {:?} is taken by another skill of this agent", skill.id)));
        }
        let modes = skill.input_modes.iter().chain(&skill.output_modes);
        modes.map(String::as_str).try_for_each(values::media_type).map_err(|why| from.error(why))?;
        checked.push(skill);
    }
    Ok(checked)
}

/// What an agent says about itself when the configuration says nothing.
struct Manner {
    name: String,
    description: String,
    input_modes: Vec<String>,
    output_modes: Vec<String>,
    skills: Vec<SkillConfig>,
}

impl Manner {
    fn of(kind: &Kind) -> Self {
        let plain = || vec!["text/plain".to_owned()];
        match kind {
            Kind::Demo => Self {
                name: "Demo".to_owned(),
                description:
                    "Shows what A2A can do: echoes, works slowly, streams, fails, asks back, sends files and data"
                        .to_owned(),
                input_modes: plain(),
                output_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
                skills: demo_skills(),
            },
            Kind::Exec { invocation, program, .. } => {
                // No more than the name of the program: what follows may hold secrets.
                let file = match invocation {
                    Invocation::Words(_) => Path::new(&program.given).file_stem().and_then(OsStr::to_str),
                    Invocation::Shell(_) => None,
                };
                let description =
                    "Runs a command on the text of each message and answers with what it prints".to_owned();
                let skill = SkillConfig {
                    id: "run".to_owned(),
                    name: "Run".to_owned(),
                    description: description.clone(),
                    tags: vec!["command".to_owned()],
                    examples: Vec::new(),
                    input_modes: Vec::new(),
                    output_modes: Vec::new(),
                };
                Self {
                    name: file.unwrap_or("Command").to_owned(),
                    description,
                    input_modes: plain(),
                    output_modes: vec!["text/plain".to_owned(), "application/octet-stream".to_owned()],
                    skills: vec![skill],
                }
            }
        }
    }
}

fn demo_skills() -> Vec<SkillConfig> {
    let skills = GUIDE.iter().map(|ability| SkillConfig {
        id: ability.word.to_owned(),
        name: ability.name.to_owned(),
        description: format!("{}{}", ability.does[..1].to_uppercase(), &ability.does[1..]),
        tags: vec!["demo".to_owned()],
        examples: vec![ability.example.to_owned()],
        input_modes: Vec::new(),
        output_modes: if ability.word == "data" { vec!["application/json".to_owned()] } else { Vec::new() },
    });
    skills.collect()
}

//! The agents of a configuration: those of the file and those of `--relay`, or else one demo agent. Flags and variables about an
//! agent are about the default one, which is the first; `--exec` makes it run a command. Those about relays are about the ones of
//! `--relay`, if there are any.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use super::agent_table::SkillSettings;
use super::agent_table::{AgentSettings, CompatSettings};
use super::choices::{KindName, Recovery};
use super::environment::Environment;
use super::file::{AgentTable, RepeatedTable};
use super::layer::Layer;
use super::origin::{ConfigError, Errors, Given, Origin};
use super::relay::RelayConfig;
use super::relay::{self, RelaySettings};
use super::row::{Table, Value};
use super::typed::CommandLine;
use super::{AgentConfig, Kind, RecoveryConfig, values};
use crate::agents::demo::GUIDE;
use crate::agents::exec::{Invocation, Program, shell_doubt, split_words};

const COMMAND: (Table, &str) = (Table::Agent, "command");
const SHELL: (Table, &str) = (Table::Agent, "shell");

/// What settings of agents name: where commands are looked for, variables, and the folder that files are relative to.
pub(super) struct Surroundings<'a> {
    pub(super) search: &'a OsStr,
    pub(super) environment: &'a Environment,
    pub(super) folder: &'a Path,
}

/// `above` is what flags and environment say, `relays` the upstreams that they name.
pub(super) fn resolve_agents(
    above: &Layer,
    tables: Vec<AgentTable>,
    relays: &Given<Vec<String>>,
    surroundings: &Surroundings<'_>,
    errors: &mut Errors,
) -> Vec<AgentConfig> {
    let mut tables = tables;
    let in_file = tables.len();
    if in_file == 0 && (relays.is_empty() || above.has(COMMAND)) {
        tables.push(AgentTable { values: Layer::default(), skills: Vec::new(), from: Origin::Default });
    }
    let (about_relays, about_others) = above.split(Table::Relay);
    let above = if relays.is_empty() { above } else { &about_others };
    refuse_shared_credential(relays, &about_relays, errors);
    tables.extend(relays.iter().map(|url| relay_table(url, &relays.from, &about_relays)));
    let mut settled: Vec<AgentConfig> = Vec::with_capacity(tables.len());
    let mut slugs: BTreeMap<String, String> = BTreeMap::new();
    for (index, table) in tables.into_iter().enumerate() {
        let is_nameless =
            index < in_file && !table.values.has((Table::Agent, "name")) && !table.values.has((Table::Agent, "url"));
        if is_nameless && !errors.is_doubtful(&[(Table::Agent, "name")]) {
            errors.add(table.from.error("every agent needs a name; add name = \"…\""));
        }
        let mut layer = if index == 0 {
            default_agent(above, table.values, errors)
        } else {
            above.for_every_agent().over(table.values)
        };
        let relay_from = layer.first_of(Table::Relay).cloned();
        let compat = CompatSettings::read(&mut layer, errors);
        let relay = RelaySettings::read(&mut layer, errors);
        let Some((settings, compat)) = AgentSettings::read(&mut layer, errors).zip(compat) else { continue };
        let Some(relay) = relay else { continue };
        let named = if settings.slug.is_some() { settings.slug.from.clone() } else { settings.name.from.clone() };
        let Some(agent) = resolve_agent(settings, compat, (relay, relay_from), table.skills, surroundings, errors)
        else {
            continue;
        };
        if let Some(other) = slugs.insert(agent.slug.clone(), agent.name.clone()) {
            let slug = &agent.slug;
            errors
                .add(named.error(format_args!("the slug {slug:?} is taken by the agent {other:?}; set another slug")));
        }
        settled.push(agent);
    }
    settled
}

/// One agent of `--relay`, as if the file had it.
fn relay_table(url: &str, from: &Origin, about_relays: &Layer) -> AgentTable {
    let mut values = about_relays.clone();
    values.set((Table::Agent, "kind"), Given::new(Value::Text("relay".to_owned()), from.clone()));
    values.set((Table::Agent, "url"), Given::new(Value::Text(url.to_owned()), from.clone()));
    AgentTable { values, skills: Vec::new(), from: from.clone() }
}

/// A credential is for one upstream.
fn refuse_shared_credential(relays: &Given<Vec<String>>, about_relays: &Layer, errors: &mut Errors) {
    let given = ["credential_env", "credential_file"].into_iter().find(|key| about_relays.has((Table::Relay, key)));
    if let (Some(_), 2..) = (given, relays.len())
        && let Some(from) = about_relays.first_of(Table::Relay)
    {
        let why = "there are several relays, and each would be shown this credential; give each an [[agent]] in a file";
        errors.add(from.error(why));
    }
}

/// What holds for the default agent. A command from a flag or a variable makes it one that runs a command, and
/// overrides what the file says about its kind and its shell.
fn default_agent(above: &Layer, mut table: Layer, errors: &mut Errors) -> Layer {
    let mut above = above.clone();
    match above.take(COMMAND) {
        Some(command) => {
            let kind = Given::new(Value::Text("exec".to_owned()), command.from.clone());
            table.set((Table::Agent, "kind"), kind);
            if !above.has(SHELL) {
                above.set(SHELL, Given::new(Value::Bool(false), command.from.clone()));
            }
            above.set(COMMAND, command);
        }
        None => {
            if let Some(shell) = above.take(SHELL).filter(|shell| shell.value == Value::Bool(true))
                && !errors.is_doubtful(&[COMMAND])
            {
                errors.add_about(SHELL, shell.from.error("there is no --exec to go with it"));
            }
        }
    }
    above.over(table)
}

/// None if something about the agent is wrong.
fn resolve_agent(
    mut settings: AgentSettings,
    compat: CompatSettings,
    relay: (RelaySettings, Option<Origin>),
    skills: Vec<RepeatedTable>,
    surroundings: &Surroundings<'_>,
    errors: &mut Errors,
) -> Option<AgentConfig> {
    let recovery = errors.keep(recovery(&settings));
    let kind = errors.keep(kind_of(&mut settings, relay, surroundings));
    let skills = resolve_skills(skills, errors);
    if matches!(kind, Some(Kind::Relay(_))) {
        refuse_extended_card(&settings, &skills, errors);
    }
    for modes in [&settings.input_modes, &settings.output_modes] {
        if modes.as_ref().is_some_and(Vec::is_empty) {
            errors.add(modes.from.error("expected at least one media type"));
        }
    }
    let (organization, url) = (&settings.provider_organization, &settings.provider_url);
    match (organization.is_some(), url.is_some()) {
        (true, false) => errors.add(organization.from.error("a provider has a page, too; add provider_url")),
        (false, true) => errors.add(url.from.error("a provider has a name, too; add provider_organization")),
        (true, true) | (false, false) => {}
    }
    let (recovery, kind) = (recovery?, kind?);
    let manner = KindDefaults::of(&kind);
    let name = settings.name.value.get_or_insert(manner.name).clone();
    let slug = match settings.slug.value.take() {
        Some(slug) => slug,
        None => {
            let slug = values::path_name(values::slug_of(&name));
            let slug = slug.map_err(|why| settings.name.from.error(format_args!("{why}; set a slug for this agent")));
            errors.keep(slug)?
        }
    };
    settings.slug.value = Some(slug.clone());
    settings.description.value.get_or_insert(manner.description);
    settings.input_modes.value.get_or_insert(manner.input_modes);
    settings.output_modes.value.get_or_insert(manner.output_modes);
    let skills = if skills.is_empty() { manner.skills } else { skills };
    Some(AgentConfig { name, slug, settings, compat, recovery, kind, skills })
}

/// What the agent is. Without a kind, a command says enough.
fn kind_of(
    settings: &mut AgentSettings,
    (relay, relay_from): (RelaySettings, Option<Origin>),
    surroundings: &Surroundings<'_>,
) -> Result<Kind, ConfigError> {
    let Surroundings { search, environment, folder } = *surroundings;
    let kind = settings.kind.unwrap_or(match (settings.command.is_some(), settings.url.is_some()) {
        (true, _) => KindName::Exec,
        (false, true) => KindName::Relay,
        (false, false) => KindName::Demo,
    });
    let (is_exec, from) = (kind == KindName::Exec, settings.kind.from.clone());
    settings.kind.value = Some(kind);
    let stray = settings.url.is_some().then_some(&settings.url.from).or(relay_from.as_ref());
    if let Some(stray) = stray.filter(|_| kind != KindName::Relay) {
        return Err(stray.error("only agents of kind \"relay\" have this"));
    }
    if settings.dispatch_to.is_given() && kind != KindName::Dispatch {
        return Err(settings.dispatch_to.from.error("only agents of kind \"dispatch\" have this"));
    }
    if settings.dispatch_to.as_ref().is_some_and(Vec::is_empty) {
        return Err(settings.dispatch_to.from.error("expected at least one agent; leave it out for all"));
    }
    match (is_exec, settings.command.value.take()) {
        (true, Some(command)) => {
            let doubt = match &command {
                CommandLine::Line(line) if !*settings.shell => shell_doubt(line),
                CommandLine::Line(_) | CommandLine::Words(_) => None,
            };
            let invocation = invocation(command, *settings.shell).map_err(|why| settings.command.from.error(why))?;
            let found = Program::find(&invocation, search).map_err(|why| settings.command.from.error(why))?;
            let program = Program { doubt, ..found };
            // What --print-config shows is what runs: the words, not the line that was split into them.
            settings.command.value = Some(match &invocation {
                Invocation::Words(words) => CommandLine::Words(words.clone()),
                Invocation::Shell(line) => CommandLine::Line(line.clone()),
            });
            Ok(Kind::Exec { invocation, program })
        }
        (true, None) => Err(from.error("an agent of kind \"exec\" needs a command")),
        (false, command) => {
            let AgentSettings { shell, env, calls, processes_max, .. } = settings;
            let AgentSettings { user, new_privileges, memory_bytes_max, cpu_s_max, .. } = settings;
            let stray = command.map(|_| &settings.command.from);
            let stray = stray.or(shell.is_given().then_some(&shell.from));
            let stray = stray.or(env.is_given().then_some(&env.from));
            let stray = stray.or(calls.is_given().then_some(&calls.from));
            let stray = stray.or(processes_max.is_given().then_some(&processes_max.from));
            let stray = stray.or(user.is_given().then_some(&user.from));
            let stray = stray.or(new_privileges.is_given().then_some(&new_privileges.from));
            let stray = stray.or(memory_bytes_max.is_given().then_some(&memory_bytes_max.from));
            let stray = stray.or(cpu_s_max.is_given().then_some(&cpu_s_max.from));
            if let Some(from) = stray {
                return Err(from.error("only agents of kind \"exec\" have this"));
            }
            if kind == KindName::Demo {
                return Ok(Kind::Demo);
            }
            if settings.effects.is_some() {
                let why = "messages are passed on, and have effects elsewhere; leave this out";
                return Err(settings.effects.from.error(why));
            }
            if kind == KindName::Dispatch {
                return Ok(Kind::Dispatch);
            }
            match settings.url.value.clone() {
                Some(url) => {
                    RelayConfig::new(url, relay, environment, folder).map(|relay| Kind::Relay(Box::new(relay)))
                }
                None => Err(from.error("an agent of kind \"relay\" needs a url")),
            }
        }
    }
}

/// The extended card of an agent is made when the server starts, and that of a relay follows its upstream.
fn refuse_extended_card(settings: &AgentSettings, skills: &[SkillSettings], errors: &mut Errors) {
    let description = &settings.extended_description;
    let skill = skills.iter().map(|skill| &skill.extended).find(|extended| ***extended);
    let from = description.is_some().then_some(&description.from).or(skill.map(|extended| &extended.from));
    if let Some(from) = from {
        errors.add(from.error("a relay has no extended card"));
    }
}

fn invocation(command: CommandLine, shell: bool) -> Result<Invocation, String> {
    match (command, shell) {
        (CommandLine::Line(line), true) => Ok(Invocation::Shell(line)),
        (CommandLine::Line(line), false) => {
            split_words(&line).map(Invocation::Words).map_err(|why| format!("{line:?} {why}"))
        }
        (CommandLine::Words(words), false) => Ok(Invocation::Words(words)),
        (CommandLine::Words(_), true) => Err("a shell takes the command as one string, not as a list".to_owned()),
    }
}

fn resolve_skills(tables: Vec<RepeatedTable>, errors: &mut Errors) -> Vec<SkillSettings> {
    let mut skills: Vec<SkillSettings> = Vec::with_capacity(tables.len());
    for RepeatedTable { mut values, from } in tables {
        let has_no_id = !values.has((Table::Skill, "id"));
        if has_no_id && !errors.is_doubtful(&[(Table::Skill, "id")]) {
            errors.add(from.error("every skill needs an id; add id = \"…\""));
        }
        let Some(mut skill) = SkillSettings::read(&mut values, errors) else { continue };
        if skill.id.is_some() && skills.iter().any(|other| other.id.value == skill.id.value) {
            let id = skill.id.value.as_deref().unwrap_or_default();
            errors.add(skill.id.from.error(format_args!("the id {id:?} is taken by another skill of this agent")));
        }
        skill.name.value = skill.name.value.or_else(|| skill.id.value.clone());
        skills.push(skill);
    }
    skills
}

/// What an agent of a kind says about itself when the configuration says nothing.
struct KindDefaults {
    name: String,
    description: String,
    input_modes: Vec<String>,
    output_modes: Vec<String>,
    skills: Vec<SkillSettings>,
}

impl KindDefaults {
    fn of(kind: &Kind) -> Self {
        let plain = || vec!["text/plain".to_owned()];
        match kind {
            Kind::Demo => Self {
                name: "Demo".to_owned(),
                description:
                    "Shows what A2A can do: echoes, works slowly, streams, fails, rejects, asks back, sends files and data"
                        .to_owned(),
                input_modes: plain(),
                output_modes: vec!["text/plain".to_owned(), "application/json".to_owned()],
                skills: demo_skills(),
            },
            Kind::Relay(relay) => Self {
                name: relay::name_of(&relay.url),
                description: "An agent elsewhere, which has not shown its card yet".to_owned(),
                input_modes: vec!["*/*".to_owned()],
                output_modes: vec!["*/*".to_owned()],
                skills: Vec::new(),
            },
            Kind::Dispatch => {
                let description = "Passes each message on to the agent here that fits it".to_owned();
                let skill = built_in_skill("dispatch", "Dispatch", &description, "dispatch");
                Self {
                    name: "Dispatch".to_owned(),
                    description,
                    input_modes: vec!["*/*".to_owned()],
                    output_modes: vec!["*/*".to_owned()],
                    skills: vec![skill],
                }
            }
            Kind::Exec { invocation, program, .. } => {
                // No more than the name of the program: what follows may hold secrets.
                let file = match invocation {
                    Invocation::Words(_) => Path::new(&program.given).file_stem().and_then(OsStr::to_str),
                    Invocation::Shell(_) => None,
                };
                let description =
                    "Runs a command on the text of each message and answers with what it prints".to_owned();
                let skill = built_in_skill("run", "Run", &description, "command");
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

fn demo_skills() -> Vec<SkillSettings> {
    let skills = GUIDE.iter().map(|ability| {
        let description = format!("{}{}", ability.does[..1].to_uppercase(), &ability.does[1..]);
        let mut skill = built_in_skill(ability.word, ability.name, &description, "demo");
        skill.examples.value.push(ability.example.to_owned());
        if ability.word == "data" {
            skill.output_modes.value.push("application/json".to_owned());
        }
        skill
    });
    skills.collect()
}

fn built_in_skill(id: &str, name: &str, description: &str, tag: &str) -> SkillSettings {
    SkillSettings {
        id: Some(id.to_owned()).into(),
        name: Some(name.to_owned()).into(),
        description: description.to_owned().into(),
        tags: vec![tag.to_owned()].into(),
        examples: Vec::new().into(),
        input_modes: Vec::new().into(),
        output_modes: Vec::new().into(),
        extended: false.into(),
    }
}

/// Brings the settings about recovery together, and refuses those that have no effect.
fn recovery(settings: &AgentSettings) -> Result<RecoveryConfig, ConfigError> {
    let AgentSettings { attempts_max, retry_pause_s, retry_pause_s_max, recovery_reason, .. } = settings;
    match *settings.recovery {
        Recovery::Retry => {
            refuse_stray(recovery_reason, "fail")?;
            if let (Some(least), Some(most)) = (retry_pause_s.value, retry_pause_s_max.value)
                && most < least
            {
                let from = &retry_pause_s_max.from;
                return Err(from.error(format_args!("expected at least retry_pause_s, {least}, got {most}")));
            }
            Ok(RecoveryConfig::Retry {
                attempts_max: attempts_max.value,
                pause_s: retry_pause_s.value,
                pause_s_max: retry_pause_s_max.value,
            })
        }
        Recovery::Fail => {
            for stray in [attempts_max, retry_pause_s, retry_pause_s_max] {
                refuse_stray(stray, "retry")?;
            }
            Ok(RecoveryConfig::Fail { reason: recovery_reason.value.clone() })
        }
    }
}

fn refuse_stray<T>(setting: &Given<Option<T>>, recovery: &str) -> Result<(), ConfigError> {
    match setting.value {
        Some(_) => Err(setting.from.error(format_args!("this goes with recovery = {recovery:?}"))),
        None => Ok(()),
    }
}

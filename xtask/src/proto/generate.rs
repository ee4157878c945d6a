//! Generates the code with a compiler written in Rust, so that `protoc` is not needed.

use std::fmt::Write as _;

use anyhow::{Context as _, bail, ensure};
use protox::prost_reflect::prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

use super::{Messages, PACKAGES, Package, SHARED};
use crate::folders::root;

/// Free-form JSON stays as it is on the wire until a dialect reads it.
const VERBATIM: &str = "crate::dialect::protobuf::Verbatim";
/// Where the messages of [`SHARED`] are.
const SHARED_MODULE: &str = "crate::dialect::protobuf::card::generated";

/// Writes the code of every package.
pub(crate) fn write() -> anyhow::Result<bool> {
    for package in PACKAGES {
        let path = root().join(package.out);
        std::fs::write(&path, package.code()?).with_context(|| path.display().to_string())?;
        println!("wrote {}", package.out);
    }
    Ok(true)
}

/// Whether the code in the tree is what the files in `proto/` make.
pub(crate) fn check() -> anyhow::Result<bool> {
    let mut is_well = true;
    for package in PACKAGES {
        let path = root().join(package.out);
        let found = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        if found != package.code()? {
            println!("{} is not what proto/{} makes: run the chore `proto`", package.out, package.file);
            is_well = false;
        }
    }
    Ok(is_well)
}

impl Package {
    fn code(&self) -> anyhow::Result<String> {
        let mut files = compile(self.file)?;
        let mut config = prost_build::Config::new();
        config
            .bytes(["."])
            .btree_map(["."])
            .disable_comments(["."])
            .extern_path(".google.protobuf.Struct", VERBATIM)
            .extern_path(".google.protobuf.Value", VERBATIM);
        let own = files.iter_mut().find(|file| file.name() == self.file).context("a file is among its own")?;
        let mut numbers = String::new();
        match self.messages {
            Messages::Shared => {
                own.message_type.retain(|message| is_shared(message.name()));
                own.enum_type.clear();
            }
            Messages::Own => {
                for (name, _) in SHARED {
                    let in_own = name_in(own.package(), name);
                    if !in_own.is_empty() {
                        ensure_same(own, in_own, name)?;
                        config.extern_path(format!(".{}.{in_own}", own.package()), format!("{SHARED_MODULE}::{name}"));
                    }
                }
                for message in own.message_type.iter().filter(|message| !is_shared(message.name())) {
                    numbers_of(message, &mut numbers)?;
                }
            }
            Messages::All => {}
        }
        let module = |package: &str| prost_build::Module::from_protobuf_package_name(package);
        let place = module(own.package());
        // What is imported goes along: the generator looks into it.
        let requests = files.into_iter().map(|file| (module(file.package()), file));
        let mut made = config.generate(requests.collect())?;
        let Some(code) = made.remove(&place) else { bail!("{} makes no code", self.file) };
        // The generator's own first line says less.
        let code = code.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        let code = format!("{code}{numbers}");
        let source = std::fs::read_to_string(self.source())?;
        Ok(self.head(&source, &code) + &code)
    }
}

fn compile(file: &str) -> anyhow::Result<Vec<FileDescriptorProto>> {
    Ok(protox::compile([file], [root().join("proto")]).context("proto/ does not compile")?.file)
}

/// Whether a message of either version is one of [`SHARED`].
fn is_shared(name: &str) -> bool {
    SHARED.iter().any(|(in_1_0, in_0_3)| name == *in_1_0 || name == *in_0_3)
}

/// What a shared message is called in a package; empty if it is not there.
fn name_in(package: &str, in_1_0: &'static str) -> &'static str {
    let in_0_3 = SHARED.iter().find(|(name, _)| *name == in_1_0).map_or("", |(_, in_0_3)| in_0_3);
    if package == "a2a.v1" { in_0_3 } else { in_1_0 }
}

/// Says if a field of a shared message is not the same in 1.0, but for its name.
fn ensure_same(own: &FileDescriptorProto, in_own: &str, in_1_0: &str) -> anyhow::Result<()> {
    let newest = compile("lf/a2a/v1/a2a.proto")?;
    let newest = newest.iter().find(|file| file.package() == "lf.a2a.v1").context("1.0 is its own package")?;
    let message = |file: &FileDescriptorProto, name: &str| -> anyhow::Result<DescriptorProto> {
        let found = file.message_type.iter().find(|message| message.name() == name).cloned();
        found.with_context(|| format!("{} has no message {name}", file.name()))
    };
    let (old, new) = (message(own, in_own)?, message(newest, in_1_0)?);
    let form = |field: &FieldDescriptorProto| {
        // The name of a type without its package; entries of maps are the same type under the name of their field.
        let type_name = field.type_name().rsplit('.').next().unwrap_or_default().to_owned();
        let type_name = if type_name == "Security" { "SecurityRequirement".to_owned() } else { type_name };
        (field.number(), field.r#type(), field.label(), type_name, field.proto3_optional())
    };
    for field in &old.field {
        let is_same = new.field.iter().any(|new| form(new) == form(field));
        ensure!(is_same, "{in_own}.{} is not the same in 1.0: take {in_1_0} out of SHARED", field.name());
    }
    Ok(())
}

/// The numbers of the fields of a message, as constants.
fn numbers_of(message: &DescriptorProto, out: &mut String) -> anyhow::Result<()> {
    if message.field.is_empty() {
        return Ok(());
    }
    writeln!(out, "impl {} {{", message.name())?;
    for field in &message.field {
        writeln!(out, "    pub const {}: u32 = {};", field.name().to_ascii_uppercase(), field.number())?;
    }
    writeln!(out, "}}")?;
    Ok(())
}

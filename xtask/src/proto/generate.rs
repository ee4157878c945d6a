//! Makes the code, by a compiler written in Rust, so that nobody needs `protoc`.

use anyhow::{Context as _, bail};

use super::{PACKAGES, Package};
use crate::places::root;

/// Free-form JSON stays as it is on the wire until a dialect reads it.
const VERBATIM: &str = "crate::dialect::protobuf::Verbatim";

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
        let files = protox::compile([self.file], [root().join("proto")]).context("proto/ does not compile")?;
        let mut config = prost_build::Config::new();
        config
            .bytes(["."])
            .btree_map(["."])
            .disable_comments(["."])
            .extern_path(".google.protobuf.Struct", VERBATIM)
            .extern_path(".google.protobuf.Value", VERBATIM);
        let module = |package: &str| prost_build::Module::from_protobuf_package_name(package);
        let own = files.file.iter().find(|file| file.name() == self.file).map(|file| module(file.package()));
        // What is imported goes along: the generator looks into it.
        let requests = files.file.into_iter().map(|file| (module(file.package()), file));
        let mut made = config.generate(requests.collect())?;
        let Some(code) = own.and_then(|own| made.remove(&own)) else { bail!("{} makes no code", self.file) };
        // The generator's own first line says less.
        let code = code.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
        let source = std::fs::read_to_string(self.source())?;
        Ok(self.head(&source, code) + code)
    }
}

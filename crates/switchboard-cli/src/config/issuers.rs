//! The identity providers whose tokens are accepted: the one of the `jwt_` settings, and one for each `[[issuer]]` of the file.

use std::path::Path;
use std::time::Duration;

use switchboard::Issuer;

use super::file::RepeatedTable;
use super::origin::{ConfigError, Errors, Given, Origin};
use super::row::Table;
use super::table::{IssuerSettings, ServerSettings};

/// A provider, and what was set about it.
#[derive(Clone, Debug)]
pub(crate) struct KnownIssuer {
    pub(crate) issuer: Issuer,
    /// None if the settings of the server are about it.
    pub(crate) settings: Option<IssuerSettings>,
}

/// All providers, that of the settings of the server first.
pub(super) fn resolve_issuers(
    server: &ServerSettings,
    tables: Vec<RepeatedTable>,
    folder: &Path,
    errors: &mut Errors,
) -> Vec<KnownIssuer> {
    let mut known = Vec::new();
    let mut names: Vec<String> = Vec::new();
    if server.jwt_issuer.is_some() {
        let settings = of_server(server);
        names.push(name_of(&settings));
        let why = "needs jwt_audience (--jwt-audience), or tokens of the provider for other servers would be good here";
        let issuer = errors.keep(issuer(&settings, why, folder));
        known.extend(issuer.map(|issuer| KnownIssuer { issuer, settings: None }));
    }
    for RepeatedTable { mut values, from } in tables {
        if !values.has((Table::Issuer, "issuer")) && !errors.is_doubtful(&[(Table::Issuer, "issuer")]) {
            errors.add(from.error("every issuer has a name that its tokens carry; add issuer = \"https://…\""));
        }
        let Some(settings) = IssuerSettings::read(&mut values, errors).filter(|read| read.issuer.is_some()) else {
            continue;
        };
        let name = name_of(&settings);
        if names.contains(&name) {
            let why = format!("tokens of another issuer are called {name:?} already; set another name for this one");
            errors.add(if settings.name.is_some() { settings.name.from.error(why) } else { from.error(why) });
            continue;
        }
        names.push(name);
        let why =
            "needs an audience, or tokens of the provider for other servers would be good here; add audience = [\"…\"]";
        let issuer = errors.keep(issuer(&settings, why, folder));
        known.extend(issuer.map(|issuer| KnownIssuer { issuer, settings: Some(settings) }));
    }
    known
}

/// What the cards call tokens of the provider.
fn name_of(settings: &IssuerSettings) -> String {
    let has_keys = settings.keys_url.is_some() || settings.keys_file.is_some();
    settings.name.value.clone().unwrap_or_else(|| if has_keys { "jwt" } else { "oidc" }.to_owned())
}

/// What the settings of the server say about a provider.
fn of_server(server: &ServerSettings) -> IssuerSettings {
    IssuerSettings {
        issuer: server.jwt_issuer.clone(),
        name: Given::new(None, Origin::Default),
        audience: server.jwt_audience.clone(),
        keys_url: server.jwt_keys_url.clone(),
        keys_file: server.jwt_keys_file.clone(),
        algorithms: server.jwt_algorithms.clone(),
        leeway_s: server.jwt_leeway_s.clone(),
        principal_claim: server.jwt_principal_claim.clone(),
        tenants_claim: server.jwt_tenants_claim.clone(),
        scope_claims: server.jwt_scope_claims.clone(),
        operator_scope: server.jwt_operator_scope.clone(),
    }
}

fn issuer(settings: &IssuerSettings, without_audience: &str, folder: &Path) -> Result<Issuer, ConfigError> {
    let name = settings.issuer.value.as_deref().unwrap_or_default();
    let Some((first, others)) = settings.audience.split_first() else {
        return Err(settings.issuer.from.error(without_audience));
    };
    let mut issuer = Issuer::new(name, first).leeway(Duration::from_secs(u64::from(*settings.leeway_s)));
    issuer = others.iter().fold(issuer, Issuer::and_audience);
    if let Some(url) = &settings.keys_url.value {
        issuer = issuer.keys_at(url);
    }
    if let Some(path) = &settings.keys_file.value {
        let refuse = |error| settings.keys_file.from.error(format_args!("{} {error}", path.display()));
        issuer = issuer.keys_in_file(folder.join(path)).map_err(refuse)?;
    }
    issuer = issuer
        .principal_claim(&*settings.principal_claim.value)
        .scope_claims(settings.scope_claims.value.clone())
        .algorithms(settings.algorithms.value.clone());
    if let Some(name) = &settings.name.value {
        issuer = issuer.named(name);
    }
    if let Some(claim) = &settings.tenants_claim.value {
        issuer = issuer.tenants_claim(claim);
    }
    if let Some(scope) = &settings.operator_scope.value {
        issuer = issuer.operator_scope(scope);
    }
    Ok(issuer)
}

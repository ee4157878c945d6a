//! The numbers of scopes and of new records, which a process remembers or takes in blocks, so that a commit need not ask for them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use switchboard_engine::ports::store::{Scope, StoreError};

use super::database::Database;
use super::error::corrupt;
use super::rows::get;
use super::text;

/// How many scopes are remembered. With more, all are forgotten and asked for again.
const SCOPES_MAX: usize = 65_536;

/// The increment of the sequence `task_block`.
const TASK_BLOCK: i64 = 1_000;

#[derive(Clone, Copy)]
pub(super) struct ScopeNumbers {
    pub(super) scope_no: i64,
    pub(super) agent_no: i32,
    pub(super) owner_no: i64,
}

#[derive(Default)]
pub(super) struct Scopes {
    known: Mutex<HashMap<Scope, ScopeNumbers>>,
    free: tokio::sync::Mutex<Range<i64>>,
}

impl Scopes {
    fn known(&self, scope: &Scope) -> Option<ScopeNumbers> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(scope).copied()
    }

    fn remember(&self, scope: &Scope, numbers: ScopeNumbers) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= SCOPES_MAX {
            known.clear();
        }
        known.insert(scope.clone(), numbers);
    }

    /// The numbers of a scope; none if it has no tasks.
    pub(super) async fn find(&self, database: &Database, scope: &Scope) -> Result<Option<ScopeNumbers>, StoreError> {
        const FIND: &str =
            "select scope_no, agent_no, owner_no from scope where tenant = $1 and principal = $2 and agent = $3";
        if let Some(known) = self.known(scope) {
            return Ok(Some(known));
        }
        let [tenant, principal, agent] = names(scope).map(text::stored);
        let rows = database.read(FIND, &[&&*tenant, &&*principal, &&*agent]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let numbers = ScopeNumbers { scope_no: get(row, 0)?, agent_no: get(row, 1)?, owner_no: get(row, 2)? };
        self.remember(scope, numbers);
        Ok(Some(numbers))
    }

    /// The numbers of a scope, which is made if it is new.
    pub(super) async fn make(&self, database: &Database, scope: &Scope) -> Result<ScopeNumbers, StoreError> {
        const AGENT: &str = "insert into agent (name) values ($1) on conflict (name) do nothing";
        const OWNER: &str =
            "insert into owner (tenant, principal) values ($1, $2) on conflict (tenant, principal) do nothing";
        const SCOPE: &str = "insert into scope (tenant, principal, agent, agent_no, owner_no)
                             select $1::text, $2::text, $3::text, agent_no, owner_no from agent, owner
                              where agent.name = $3::text and owner.tenant = $1::text and owner.principal = $2::text
                             on conflict (tenant, principal, agent) do nothing";
        if let Some(known) = self.find(database, scope).await? {
            return Ok(known);
        }
        let [tenant, principal, agent] = names(scope).map(text::stored);
        database.serve(AGENT, &[&&*agent]).await?;
        database.serve(OWNER, &[&&*tenant, &&*principal]).await?;
        database.serve(SCOPE, &[&&*tenant, &&*principal, &&*agent]).await?;
        self.find(database, scope).await?.ok_or_else(|| corrupt("a scope that was just made is missing"))
    }

    /// A number for a new record.
    pub(super) async fn next_task_no(&self, database: &Database) -> Result<i64, StoreError> {
        const BLOCK: &str = "select nextval('task_block')";
        let mut free = self.free.lock().await;
        if let Some(next) = free.next() {
            return Ok(next);
        }
        let rows = database.serve(BLOCK, &[]).await?;
        let first: i64 = get(rows.first().ok_or_else(|| corrupt("a sequence has no next number"))?, 0)?;
        *free = first + 1..first + TASK_BLOCK;
        Ok(first)
    }
}

fn names(scope: &Scope) -> [&str; 3] {
    [scope.owner.tenant.as_str(), scope.owner.principal.as_str(), scope.agent.as_str()]
}

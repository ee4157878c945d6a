//! Work on a file that no server has open.

pub(super) mod assign_owner;
pub(super) mod audit_file;
pub(super) mod backup;
pub(super) mod compact;
pub(super) mod reseal;
pub(super) mod reset;

//! Names of resources: `tasks/{id}` and `tasks/{id}/pushNotificationConfigs/{id}`.

use std::fmt::Arguments;

use crate::dialect::json::Check;
use crate::dialect::protobuf::text;
use crate::model::{ConfigId, TaskId};

/// Reads the name of a task.
pub(super) fn read_task(check: &mut Check<'_>, field: Arguments<'_>, name: &str) -> TaskId {
    let id = name.strip_prefix("tasks/").filter(|id| !id.is_empty() && !id.contains('/'));
    if id.is_none() {
        check.violation(field, "must be tasks/{id}");
    }
    id.map_or_else(TaskId::default, |id| check.required_id(field, text(id)))
}

/// Reads the name of a push config.
pub(super) fn read_push_config(check: &mut Check<'_>, field: Arguments<'_>, name: &str) -> (TaskId, ConfigId) {
    let ids = name.strip_prefix("tasks/").and_then(|rest| rest.split_once("/pushNotificationConfigs/"));
    match ids.filter(|(task, config)| [task, config].iter().all(|id| !id.is_empty() && !id.contains('/'))) {
        Some((task, config)) => (check.required_id(field, text(task)), check.required_id(field, text(config))),
        None => {
            check.violation(field, "must be tasks/{id}/pushNotificationConfigs/{id}");
            (TaskId::default(), ConfigId::default())
        }
    }
}

pub(super) fn task_name(task: &TaskId) -> String {
    format!("tasks/{task}")
}

pub(super) fn push_config_name(task: &TaskId, config: &ConfigId) -> String {
    format!("tasks/{task}/pushNotificationConfigs/{config}")
}

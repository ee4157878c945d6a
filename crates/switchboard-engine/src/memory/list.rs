//! Lists the tasks of one scope, newest status first, with a cursor that later commits do not shift.

use std::ops::Bound;

use switchboard_core::model::{Measure, Timestamp};

use super::tables::{Record, Tables};
use crate::ports::store::{ListCursor, ListPage, ListQuery, Scope, TaskKey};

impl Tables {
    pub(super) fn list(&self, scope: &Scope, query: &ListQuery) -> ListPage {
        let mut page = ListPage { tasks: Vec::new(), next: None, total: 0 };
        let Some(listed) = self.listed.get(scope) else { return page };
        let since = query.status_since.unwrap_or(Timestamp::from_ms(i64::MIN));
        let oldest = Bound::Included((since, TaskKey(i64::MIN)));
        let newest = query.after.map_or(Bound::Unbounded, |after| Bound::Excluded((after.status_at, after.key)));
        let matches = |key: &TaskKey| self.records.get(key).filter(|record| record.matches(query));

        page.total = match (&query.context_id, query.state) {
            (None, None) if query.status_since.is_none() => listed.len() as u64,
            _ => listed.range((oldest, Bound::Unbounded)).filter(|(_, key)| matches(key).is_some()).count() as u64,
        };
        let before_oldest = query.after.is_some_and(|after| (after.status_at, after.key) <= (since, TaskKey(i64::MIN)));
        if before_oldest || query.page_size == 0 {
            return page;
        }
        let range = listed.range((oldest, newest)).rev();
        let mut found = range.filter_map(|(at, key)| Some((*at, *key, matches(key)?)));
        let mut left = query.bytes_max;
        for (status_at, key, record) in found.by_ref().take(query.page_size) {
            let stored = match query.artifacts {
                true => record.stored_within(key, query.bytes_max),
                false => record.stored(key),
            };
            let bytes = Measure::ABOUT.task(&stored.folded.task, query.artifacts);
            if bytes > left && !page.tasks.is_empty() {
                return page;
            }
            left = left.saturating_sub(bytes);
            page.tasks.push(stored);
            page.next = Some(ListCursor { status_at, key });
        }
        if found.next().is_none() {
            page.next = None;
        }
        page
    }
}

impl Record {
    fn matches(&self, query: &ListQuery) -> bool {
        query.context_id.as_ref().is_none_or(|context| *context == self.head.context_id)
            && query.state.is_none_or(|state| state == self.head.state)
    }
}

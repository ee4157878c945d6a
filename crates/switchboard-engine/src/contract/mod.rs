//! The store contract: what every store must do, as named behaviours. A store crate implements [`Subject`] and writes
//! `switchboard_engine::store_contract!(make);`, which gives one test per behaviour; so two stores that pass behave the
//! same to the engine.
//!
//! A store that several processes share also implements [`SharedSubject`], which gives two handles on the same data, and
//! writes `switchboard_engine::shared_store_contract!(make);`.
//!
//! Behaviours write through a [`given::RecordWriter`], which computes what the store must return afterwards: the stored
//! task always equals the fold of the stored log.

pub mod accepted_tasks;
pub mod accepts;
pub mod artifacts;
pub mod audit;
pub mod calls;
pub mod clocks;
pub mod given;
pub mod hints;
pub mod leases;
pub mod lists;
pub mod logs;
pub mod outbox;
pub mod records;
pub mod retention;
pub mod sharing;
pub mod storage;
pub mod webhooks;

use std::future::Future;
use std::time::Duration;

use crate::memory::ManualClock;
use crate::ports::Store;

/// A store under test, on a clock that the test moves.
pub trait Subject: Send + Sync {
    fn store(&self) -> &dyn Store;
    fn clock(&self) -> &ManualClock;
    /// Simulates a restart of the process: everything durable is still there, and the holders of leases are dead.
    fn restart(&mut self);
}

/// A store that several processes share. Each has a handle of its own that shares only the data with the others.
pub trait SharedSubject: Subject {
    /// Another handle on the data of [`Subject::store`].
    fn second(&self) -> &dyn Store;
}

/// The limit for one behaviour, longer than any takes on a busy machine.
const BEHAVIOUR_SECONDS_MAX: u64 = 300;

/// Fails the test of a store that never answers; the test would hang otherwise.
///
/// # Panics
/// When the behaviour has not ended in time.
pub async fn within_limit(behaviour: impl Future<Output = ()>) {
    let ended = tokio::time::timeout(Duration::from_secs(BEHAVIOUR_SECONDS_MAX), behaviour).await;
    assert!(ended.is_ok(), "not ended within {BEHAVIOUR_SECONDS_MAX} s: something was never answered");
}

/// One test per behaviour. `make` gives a fresh, empty [`Subject`]. Attributes before it, such as `#[ignore]`, are those of each test.
#[macro_export]
macro_rules! store_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::store_contract! { @each [$(#[$meta])*] $make:
            records: a_new_task_is_read_back_whole,
            records: an_id_that_is_taken_is_a_conflict,
            records: a_commit_on_an_old_version_is_a_conflict_and_changes_nothing,
            records: a_commit_to_a_record_that_is_not_there_is_a_conflict,
            records: a_fence_that_was_replaced_is_refused_inside_the_commit,
            records: a_foreign_task_is_a_missing_task,
            records: a_record_that_is_not_born_has_a_head_but_is_not_listed,
            records: a_direct_reply_closes_the_record_and_is_kept,
            records: many_turns_fold_to_the_same_task_with_and_without_the_hint,
            records: progress_that_leaves_no_trace_is_not_needed_to_read_the_task,
            records: the_last_checkpoint_is_read_back,
            records: a_question_moves_to_history_when_the_task_goes_on,
            records: a_history_without_room_is_shortened_to_its_newest_messages,
            records: contents_of_every_kind_and_size_come_back_byte_for_byte,
            records: odd_texts_and_numbers_come_back_as_they_were,
            records: everything_is_there_after_a_restart,
            records: a_commit_without_events_is_a_step_of_the_version,
            logs: a_reader_gets_what_is_above_its_cursor,
            logs: commits_without_visible_events_are_passed_over,
            logs: pages_join_up_without_gap_or_repeat,
            logs: a_cursor_at_the_end_gets_an_empty_page,
            logs: an_event_costs_the_same_early_and_late,
            artifacts: an_artifact_comes_back_whole_and_in_ranges,
            artifacts: a_part_can_be_had_alone,
            artifacts: only_the_owner_finds_an_artifact,
            artifacts: a_reader_sees_the_artifact_as_it_was_when_it_came,
            artifacts: what_there_is_no_room_for_is_outlined,
            artifacts: a_page_that_has_no_room_ends_early,
            lists: a_scope_lists_its_own_tasks_newest_status_first,
            lists: filters_by_context_state_and_time_combine,
            lists: pages_join_up_and_the_total_counts_all,
            lists: tasks_of_the_same_millisecond_are_each_listed_once,
            lists: a_task_that_moves_between_pages_shifts_nothing,
            lists: a_list_without_artifacts_has_the_rest,
            lists: the_total_follows_every_change,
            retention: tasks_are_counted_by_state,
            accepts: a_used_key_is_a_duplicate_and_says_of_what,
            accepts: a_refused_duplicate_changes_nothing,
            accepts: a_key_is_free_again_after_its_window,
            accepts: a_key_far_in_the_future_is_found,
            accepts: commits_that_come_together_are_judged_one_by_one,
            accepted_tasks: a_task_is_shown_as_it_stood_when_a_message_was_accepted,
            accepted_tasks: what_is_too_large_now_was_outlined_then,
            accepted_tasks: a_compacted_task_no_longer_knows_how_it_stood,
            webhooks: a_config_is_read_back_and_replaced_and_deleted,
            webhooks: a_commit_makes_a_webhook_due_and_a_delivery_settles_it,
            webhooks: a_cursor_starts_after_what_it_is_told,
            webhooks: a_claimed_delivery_is_hidden_until_its_claim_runs_out,
            webhooks: events_during_a_delivery_make_it_due_again,
            webhooks: a_failed_delivery_waits_and_counts,
            webhooks: a_parked_delivery_waits_for_nobody,
            webhooks: a_late_outcome_for_a_replaced_config_is_ignored,
            webhooks: a_late_outcome_of_a_lost_claim_tells_only_what_was_taken,
            webhooks: a_claim_that_ran_out_and_that_nobody_took_still_settles,
            webhooks: deliveries_come_in_the_order_they_fell_due,
            webhooks: the_backlog_of_one_owner_does_not_hide_the_delivery_of_another,
            webhooks: owners_share_a_claim_whatever_agents_they_use,
            webhooks: owners_take_turns_if_there_are_more_than_a_claim_takes,
            webhooks: owners_whose_deliveries_wait_do_not_hide_those_that_are_due,
            webhooks: a_delivery_under_way_is_due_again_after_a_restart,
            outbox: the_outbox_shows_what_waits_is_under_way_or_was_given_up_on,
            outbox: outbox_pages_join_up,
            outbox: a_redriven_delivery_is_due_and_counts_anew,
            outbox: a_purged_delivery_drops_its_backlog_and_keeps_its_webhook,
            outbox: what_waits_is_counted_up_to_a_limit,
            outbox: a_postponed_delivery_has_not_failed,
            outbox: many_deliveries_are_settled_at_once,
            leases: a_lease_taken_in_a_commit_holds_until_it_runs_out,
            leases: a_run_that_begins_without_a_lease_is_due_at_once,
            leases: a_claim_raises_fence_and_attempt_and_is_in_the_log,
            leases: a_run_that_ended_cannot_be_claimed,
            leases: a_cancel_that_was_asked_for_is_found_while_its_run_is_at_work,
            leases: a_renewed_lease_holds_longer_even_if_it_had_run_out,
            leases: a_lease_that_was_claimed_is_lost_to_its_holder,
            leases: a_released_run_is_claimed_when_it_is_due,
            leases: leases_of_a_process_that_is_gone_are_void_at_once,
            leases: a_released_run_keeps_its_due_time_over_a_restart,
            leases: a_run_that_waits_and_is_canceled_is_due_at_once,
            leases: a_run_given_back_in_order_has_not_been_tried_once_more,
            leases: a_run_that_has_not_begun_was_not_interrupted,
            leases: a_run_whose_holder_came_back_after_it_was_listed_is_not_claimed,
            leases: a_run_that_began_after_it_was_listed_is_not_claimed_as_one_that_had_not,
            leases: runs_of_agents_that_are_not_asked_for_are_not_listed,
            leases: a_commit_of_the_run_leaves_its_lease_alone,
            leases: a_claim_takes_no_more_than_it_was_asked_for,
            clocks: a_lease_lasts_as_long_as_it_would_have_when_the_clock_is_set_back,
            clocks: a_pause_lasts_as_long_as_it_would_have_when_the_clock_is_set_back,
            clocks: a_delivery_waits_as_long_as_it_would_have_when_the_clock_is_set_back,
            clocks: a_claim_of_a_delivery_is_known_after_the_clock_was_set_back,
            clocks: a_key_is_known_while_ages_do_not_count,
            retention: active_and_paused_tasks_are_never_pruned,
            retention: a_closed_task_goes_when_its_time_is_over,
            retention: a_direct_reply_goes_after_its_own_window,
            retention: the_oldest_closed_tasks_go_first_when_there_are_too_many,
            retention: a_compacted_log_is_pruned_for_old_cursors_and_the_task_is_whole,
            retention: an_unfinished_delivery_keeps_the_task_and_its_log,
            retention: a_large_task_goes_completely,
            retention: at_most_so_many_go_at_once,
            retention: keys_whose_window_has_passed_are_forgotten,
            audit: entries_are_chained_in_the_order_in_which_they_came,
            audit: the_entry_of_a_commit_is_written_if_the_commit_is,
            audit: the_chain_goes_on_after_a_restart,
            audit: old_entries_are_forgotten_and_the_rest_is_verifiable,
            audit: the_oldest_of_too_many_entries_are_forgotten,
        }
    };
    (@each $attributes:tt $make:path: $($module:ident: $behaviour:ident,)*) => {
        $($crate::store_contract! { @one $attributes $make, $module, $behaviour })*
    };
    (@one [$(#[$meta:meta])*] $make:path, $module:ident, $behaviour:ident) => {
        #[tokio::test]
        $(#[$meta])*
        async fn $behaviour() {
            let mut subject = $make();
            $crate::contract::within_limit($crate::contract::$module::$behaviour(&mut subject)).await;
        }
    };
}

/// One test per behaviour of a store that counts what it stores. `make` gives a fresh, empty [`Subject`].
#[macro_export]
macro_rules! storage_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::store_contract! { @each [$(#[$meta])*] $make:
            storage: stored_bytes_follow_every_change,
            storage: each_limit_refuses_a_message_and_is_named,
            storage: an_owner_at_its_limit_touches_no_other,
            storage: the_end_of_a_turn_always_fits,
            storage: a_chunk_counts_once_however_it_is_stored,
            storage: a_send_writes_no_row_for_the_count,
        }
    };
}

/// One test per behaviour of a store that keeps calls. `make` gives a fresh, empty [`Subject`].
#[macro_export]
macro_rules! calls_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::store_contract! { @each [$(#[$meta])*] $make:
            calls: a_call_is_recorded_once_and_read_back_whole,
            calls: every_field_of_a_call_is_kept,
            calls: a_call_without_a_time_is_never_due,
            calls: a_call_of_a_run_is_looked_at_when_its_process_is_gone,
            calls: a_continuation_is_claimed_by_one_and_counts_attempts,
            calls: what_is_delivered_is_recorded_first_and_ends_once,
            calls: a_continuation_waits_as_long_as_before_when_the_clock_is_set_back,
            calls: calls_go_with_their_task,
        }
    };
}

/// The same for one that counts calls in its stored bytes.
#[macro_export]
macro_rules! counted_calls_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::store_contract! { @each [$(#[$meta])*] $make:
            calls: calls_count_in_the_stored_bytes,
        }
    };
}

/// One test per behaviour of a store that several processes share. `make` gives a fresh, empty [`SharedSubject`].
#[macro_export]
macro_rules! shared_store_contract {
    ($(#[$meta:meta])* $make:path) => {
        $crate::store_contract! { @each [$(#[$meta])*] $make:
            sharing: each_handle_reads_what_the_other_wrote,
            sharing: who_waited_for_a_version_is_not_told_an_earlier_one,
            sharing: of_two_commits_on_the_same_version_one_is_a_conflict,
            sharing: of_two_that_open_the_same_id_one_is_a_conflict,
            sharing: a_run_that_both_see_is_claimed_by_one,
            sharing: a_lease_renewed_through_one_handle_is_not_claimed_through_the_other,
            sharing: a_run_released_through_one_handle_is_claimed_through_the_other,
            sharing: a_run_taken_over_is_fenced_off_and_lost_to_the_first_handle,
            sharing: a_run_that_begins_through_one_handle_is_interrupted_for_the_other,
            sharing: a_cancel_asked_for_through_one_handle_is_found_through_the_other,
            sharing: a_key_used_through_one_handle_is_a_duplicate_through_the_other,
            sharing: a_delivery_is_claimed_through_one_handle_only,
            sharing: each_handle_lists_the_runs_of_its_own_agents,
        }
    };
}

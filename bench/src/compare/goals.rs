//! What we set out to reach, as ratios to the limit server in the same run.

use super::cells::Cell;

/// Above this many µs of CPU per send for the limit server, the machine is too slow or too busy for the run to count.
pub(super) const LIMIT_SEND_US_MAX: f64 = 18.0;

/// How much more than an earlier binary a server may cost.
const CHANGE_MAX: f64 = 1.03;

const IDLE_STREAM_KIB_MAX: f64 = 24.0;

/// How much more memory the most stored tasks may take than the fewest.
const STORED_GROWTH_KIB_MAX: u64 = 32 * 1024;

pub(super) enum Goal {
    CpuAtMost(f64),
    RateAtLeast(f64),
    /// Not to the limit, but to the same server's send in 1.0.
    SendsAtMost(f64),
}

impl Goal {
    /// None where nothing was promised: the limit itself, and variants, which are there for comparison.
    pub(super) fn of(target: &str, cell: Cell) -> Option<Goal> {
        match (target, cell) {
            ("memory", Cell::Send) => Some(Goal::CpuAtMost(2.0)),
            ("sqlite", Cell::Send) => Some(Goal::CpuAtMost(3.5)),
            ("memory" | "sqlite", Cell::SendOld) => Some(Goal::SendsAtMost(1.15)),
            ("memory" | "sqlite", Cell::SendGrpc) => Some(Goal::SendsAtMost(1.3)),
            ("memory" | "sqlite", Cell::Get) => Some(Goal::CpuAtMost(1.8)),
            ("memory", Cell::Stream) => Some(Goal::RateAtLeast(0.5)),
            ("sqlite", Cell::Stream) => Some(Goal::RateAtLeast(0.25)),
            _ => None,
        }
    }

    pub(super) fn judge(&self, cpu_ratio: f64, rate_ratio: f64, sends: f64) -> String {
        match *self {
            Goal::CpuAtMost(most) => format!("CPU ≤ {most}x: {}", word(cpu_ratio <= most)),
            Goal::SendsAtMost(most) => format!("{sends:.2} of a send, ≤ {most}: {}", word(sends <= most)),
            Goal::RateAtLeast(least) => format!("rate ≥ {least}x: {}", word(rate_ratio >= least)),
        }
    }
}

pub(super) fn judge_change(ratio: f64) -> String {
    format!("≤ {CHANGE_MAX}: {}", word(ratio <= CHANGE_MAX))
}

pub(super) fn judge_idle_stream(target: &str, kib_each: f64) -> String {
    match target {
        "memory" | "sqlite" => format!("≤ {IDLE_STREAM_KIB_MAX} KiB: {}", word(kib_each <= IDLE_STREAM_KIB_MAX)),
        _ => String::new(),
    }
}

pub(super) fn judge_stored_growth(growth_kib: u64) -> String {
    format!("at most {} MiB more: {}", STORED_GROWTH_KIB_MAX / 1024, word(growth_kib <= STORED_GROWTH_KIB_MAX))
}

fn word(met: bool) -> &'static str {
    if met { "met" } else { "**missed**" }
}

//! Everything measured, and the tables made of it.

use std::fmt::Write as _;

use serde::Serialize;

use super::cells::{Cell, Sample};
use super::goals::{self, Goal};
use super::memory::{Idle, Stored};
use super::target::BEFORE;

#[derive(Serialize)]
pub(super) struct Report {
    rounds: usize,
    seconds: f64,
    connections: usize,
    pub(super) cells: Vec<Sample>,
    pub(super) idle: Vec<Idle>,
    pub(super) stored: Vec<Stored>,
}

/// The median of some rounds, and how far they lie apart.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 };
        Some(Spread { median, least, most })
    }
}

/// Of values by round.
fn median_ratio(own: &[(usize, f64)], base: &[(usize, f64)]) -> Option<f64> {
    let of_round = |round| base.iter().find(|(other, _)| *other == round).map(|(_, value)| *value);
    let ratios = own.iter().filter_map(|(round, value)| Some(value / of_round(*round)?));
    Spread::of(ratios).map(|spread| spread.median)
}

impl Report {
    pub(super) fn new(rounds: usize, seconds: f64, connections: usize) -> Report {
        Report { rounds, seconds, connections, cells: Vec::new(), idle: Vec::new(), stored: Vec::new() }
    }

    pub(super) fn is_void(&self) -> bool {
        self.spread("limit", Cell::Send, |sample| sample.cpu_us)
            .is_none_or(|spread| spread.median > goals::LIMIT_SEND_US_MAX)
    }

    pub(super) fn to_markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_cells(&mut text);
        let _ = self.write_changes(&mut text);
        let _ = self.write_idle(&mut text);
        let _ = self.write_stored(&mut text);
        if self.is_void() {
            let _ = writeln!(
                text,
                "\n**This run is void**: the limit server took more than {} µs of CPU per send.",
                goals::LIMIT_SEND_US_MAX
            );
        }
        text
    }

    fn write_cells(&self, text: &mut String) -> std::fmt::Result {
        writeln!(
            text,
            "{} rounds of {} s, {} connections; medians, in brackets the least and the most. Ratios are medians of the \
             rounds' own ratios.\n",
            self.rounds, self.seconds, self.connections
        )?;
        writeln!(
            text,
            "| | server | CPU µs/request | CPU to limit | requests/s | rate to limit | p50 ms | p99 ms | RSS MiB | reply bytes | core | errors | goal |"
        )?;
        writeln!(text, "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")?;
        for cell in Cell::ALL {
            for target in self.targets() {
                self.write_cell(text, target, cell)?;
            }
        }
        Ok(())
    }

    fn write_cell(&self, text: &mut String, target: &str, cell: Cell) -> std::fmt::Result {
        let median = |value: fn(&Sample) -> f64| self.spread(target, cell, value).map_or(0.0, |spread| spread.median);
        let to_limit = |value| self.ratio((target, cell), ("limit", cell.at_the_limit()), value);
        let Some(cpu) = self.spread(target, cell, |sample| sample.cpu_us) else { return Ok(()) };
        let cpu_ratio = to_limit(|sample| sample.cpu_us);
        let rate_ratio = to_limit(|sample| sample.outcome.per_second);
        writeln!(
            text,
            "| {} | {target} | {:.1} ({:.1}–{:.1}) | {cpu_ratio:.2} | {:.0} | {rate_ratio:.2} | {:.2} | {:.2} | {:.0} | {:.0} | {:.0} % | {} | {} |",
            cell.name(),
            cpu.median,
            cpu.least,
            cpu.most,
            median(|sample| sample.outcome.per_second),
            median(|sample| sample.outcome.p50_ms),
            median(|sample| sample.outcome.p99_ms),
            median(|sample| sample.memory.rss_kib as f64) / 1024.0,
            median(|sample| sample.outcome.reply_bytes),
            median(|sample| sample.server_share) * 100.0,
            self.samples(target, cell).map(|sample| sample.outcome.errors).sum::<u64>(),
            match Goal::of(target, cell) {
                Some(goal) => goal.judge(
                    cpu_ratio,
                    rate_ratio,
                    self.ratio((target, cell), (target, Cell::Send), |sample| sample.cpu_us),
                ),
                None => self.beside_sqlite(target, cell),
            },
        )
    }

    /// What a variant costs beside the durable server with default settings.
    fn beside_sqlite(&self, target: &str, cell: Cell) -> String {
        let is_variant = !matches!(target, "limit" | "memory" | "sqlite") && !target.ends_with(BEFORE);
        match (is_variant, self.samples("sqlite", cell).next()) {
            (true, Some(_)) => {
                format!("CPU {:.3} of sqlite", self.ratio((target, cell), ("sqlite", cell), |sample| sample.cpu_us))
            }
            (true, None) | (false, _) => String::new(),
        }
    }

    /// Each server beside its earlier self.
    fn write_changes(&self, text: &mut String) -> std::fmt::Result {
        let targets = self.targets();
        let pairs = targets.iter().filter_map(|now| {
            let before = format!("{now}{BEFORE}");
            targets.contains(&&*before).then_some((*now, before))
        });
        for (place, (now, before)) in pairs.enumerate() {
            if place == 0 {
                writeln!(text, "\n| | server | CPU µs before | CPU µs now | now to before | goal |")?;
                writeln!(text, "|---|---|--:|--:|--:|---|")?;
            }
            for cell in Cell::ALL {
                let cpu = |target: &str| self.spread(target, cell, |sample| sample.cpu_us);
                let (Some(old), Some(new)) = (cpu(&before), cpu(now)) else { continue };
                let ratio = self.ratio((now, cell), (&before, cell), |sample| sample.cpu_us);
                let (name, judged) = (cell.name(), goals::judge_change(ratio));
                writeln!(text, "| {name} | {now} | {:.1} | {:.1} | {ratio:.3} | {judged} |", old.median, new.median)?;
            }
        }
        Ok(())
    }

    /// The median of the ratios of each round: the two take turns in a round, so what slows one slows the other.
    fn ratio(&self, own: (&str, Cell), base: (&str, Cell), value: fn(&Sample) -> f64) -> f64 {
        let of_round = |(target, cell)| self.samples(target, cell).map(move |sample| (sample.round, value(sample)));
        let (own, base): (Vec<_>, Vec<_>) = (of_round(own).collect(), of_round(base).collect());
        median_ratio(&own, &base).unwrap_or(f64::NAN)
    }

    fn write_idle(&self, text: &mut String) -> std::fmt::Result {
        if self.idle.is_empty() {
            return Ok(());
        }
        writeln!(text, "\n| idle streams | streams | KiB each | RSS before MiB | RSS with them MiB | goal |")?;
        writeln!(text, "|---|--:|--:|--:|--:|---|")?;
        for target in self.targets() {
            let of_target = || self.idle.iter().filter(|idle| idle.target == target);
            let median =
                |value: fn(&Idle) -> f64| Spread::of(of_target().map(value)).map_or(0.0, |spread| spread.median);
            let each = median(|idle| idle.kib_each);
            writeln!(
                text,
                "| {target} | {:.0} | {each:.1} | {:.1} | {:.1} | {} |",
                median(|idle| idle.streams as f64),
                median(|idle| idle.before.rss_kib as f64) / 1024.0,
                median(|idle| idle.after.rss_kib as f64) / 1024.0,
                goals::judge_idle_stream(target, each),
            )?;
        }
        Ok(())
    }

    fn write_stored(&self, text: &mut String) -> std::fmt::Result {
        let Some(first) = self.stored.first() else { return Ok(()) };
        writeln!(text, "\n| stored tasks | RSS MiB | anonymous MiB | made per second | goal |")?;
        writeln!(text, "|--:|--:|--:|--:|---|")?;
        for stored in &self.stored {
            let growth_kib = stored.memory.rss_kib.saturating_sub(first.memory.rss_kib);
            writeln!(
                text,
                "| {} | {:.1} | {:.1} | {:.0} | {} |",
                stored.tasks,
                stored.memory.rss_kib as f64 / 1024.0,
                stored.memory.anon_kib as f64 / 1024.0,
                stored.per_second,
                goals::judge_stored_growth(growth_kib),
            )?;
        }
        Ok(())
    }

    /// The servers in the order of the first round.
    fn targets(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for sample in &self.cells {
            if !names.contains(&&*sample.target) {
                names.push(&*sample.target);
            }
        }
        names
    }

    fn samples(&self, target: &str, cell: Cell) -> impl Iterator<Item = &Sample> {
        self.cells.iter().filter(move |sample| sample.target == target && sample.cell == cell)
    }

    fn spread(&self, target: &str, cell: Cell, value: fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples(target, cell).map(value))
    }
}

#[cfg(test)]
mod tests {
    use super::median_ratio;

    #[test]
    fn ratios_are_taken_within_a_round() {
        // The machine was half as fast in the second round, which changes nothing.
        let (own, base) = ([(0, 20.0), (1, 38.0), (2, 24.0)], [(2, 10.0), (0, 10.0), (1, 20.0)]);
        assert_eq!(median_ratio(&own, &base), Some(2.0));
        assert_eq!(median_ratio(&own, &base[..1]), Some(2.4));
        assert_eq!(median_ratio(&own, &[]), None);
    }
}

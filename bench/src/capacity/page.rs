//! The tables of docs/scale.md. `UPDATE_EXPECT=1 cargo test -p bench page_of_scale` writes them again.

use std::fmt::Write as _;

use super::constants::{ALL, Constant};
use super::{Cell, Costs, Machines};

const NOT_MEASURED: &str = "not measured";
/// How long runs take in the tables, in seconds.
const RUN_SECONDS: [f64; 3] = [1.0, 10.0, 300.0];
const DATABASE_CORES: [f64; 3] = [4.0, 16.0, 64.0];
const SERVER_CORES: f64 = 4.0;
const LOADS: [f64; 4] = [1e3, 1e4, 1e5, 1e6];

/// Everything that is generated on the page.
pub(super) fn tables() -> String {
    let mut page = String::new();
    constants(&mut page);
    let costs = Costs::measured();
    cells(&mut page, costs.as_ref());
    loads(&mut page, costs.as_ref());
    page
}

fn constants(page: &mut String) {
    page.push_str("| constant | value | command |\n| --- | --: | --- |\n");
    for Constant { name, value, unit, command } in ALL {
        let value = value.map_or_else(|| NOT_MEASURED.to_owned(), |value| format!("{value} {unit}"));
        let command = if command.starts_with("cargo") { format!("`{command}`") } else { command.to_owned() };
        let _ = writeln!(page, "| {name} | {value} | {command} |");
    }
}

fn cells(page: &mut String, costs: Option<&Costs>) {
    page.push_str(
        "\n| cores of PostgreSQL | a run takes | sends/s | runs under way | servers of 4 cores | connections |\n",
    );
    page.push_str("| --: | --: | --: | --: | --: | --: |\n");
    for database_cores in DATABASE_CORES {
        for run_seconds in RUN_SECONDS {
            let machines = Machines { database_cores, server_cores: SERVER_CORES };
            let cell = costs.map(|costs| Cell::most(costs, machines, run_seconds));
            let shown = |part: fn(&Cell) -> f64| cell.as_ref().map_or_else(|| "–".to_owned(), |cell| whole(part(cell)));
            let _ = writeln!(
                page,
                "| {database_cores} | {run_seconds} s | {} | {} | {} | {} |",
                shown(|cell| cell.sends_per_second),
                shown(|cell| cell.runs),
                shown(|cell| cell.servers),
                shown(|cell| cell.connections)
            );
        }
    }
    if costs.is_none() {
        page.push_str("\nNot calculated: a constant above is not measured.\n");
    }
}

fn loads(page: &mut String, costs: Option<&Costs>) {
    let Some(costs) = costs else { return };
    let cell = Cell::most(costs, Machines { database_cores: 16.0, server_cores: SERVER_CORES }, 10.0);
    page.push_str("\n| sends/s, runs of 10 s | cells of 16 cores for PostgreSQL | servers of 4 cores in all |\n");
    page.push_str("| --: | --: | --: |\n");
    for load in LOADS {
        let cells = cell.cells_for(load);
        let _ = writeln!(page, "| {} | {} | {} |", whole(load), whole(cells), whole(cells * cell.servers));
    }
}

/// A whole number with commas, of which two digits mean something.
fn whole(value: f64) -> String {
    let scale = 10f64.powf((value.max(1.0).log10().floor() - 1.0).max(0.0));
    let digits = format!("{:.0}", (value / scale).round() * scale);
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::{tables, whole};

    const PAGE: &str = include_str!("../../../docs/scale.md");
    const BEGIN: &str = "<!-- begin of the tables, written by: UPDATE_EXPECT=1 cargo test -p bench page_of_scale -->\n";
    const END: &str = "<!-- end of the tables -->\n";

    #[test]
    fn the_page_of_scale_has_the_tables_of_the_model() {
        let (before, rest) = PAGE.split_once(BEGIN).expect("the page says where the tables begin");
        let (_, after) = rest.split_once(END).expect("the page says where the tables end");
        expect_file!["../../../docs/scale.md"].assert_eq(&format!("{before}{BEGIN}\n{}\n{END}{after}", tables()));
    }

    #[test]
    fn numbers_are_shown_as_exactly_as_they_are_known() {
        assert_eq!(
            [0.0, 7.4, 16.0, 1_234.0, 98_765.0, 1e6].map(whole),
            ["0", "7", "16", "1,200", "99,000", "1,000,000"]
        );
    }
}

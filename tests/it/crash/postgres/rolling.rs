//! Three servers are deployed again, one after the other, ten times, while clients send and follow. A client that retries refused
//! connections and 503 sees no failed request, and no attempt is counted.

use super::super::process::binary;
use super::load::Three;
use super::{Cluster, begin};
use crate::support::limit::Limit;

const DEPLOYS: usize = 10 * 3;
/// So many answers are waited for between two deploys.
const ANSWERS_BETWEEN: usize = 10;

#[test]
#[ignore = "starts PostgreSQL"]
fn three_servers_are_deployed_ten_times_without_a_failed_request() {
    let _limit = Limit::new();
    let cluster = Cluster::new();
    let mut three = Three::start(&cluster, &binary());
    let long = begin(three.server(0), "long", "stream 400");
    let ids = three.under_load(|three, load| {
        for deploy in 0..DEPLOYS {
            if load.failed() > 0 {
                break;
            }
            load.go_on(ANSWERS_BETWEEN);
            three.replace(deploy % 3, &binary());
        }
    });
    three.check(&ids, &long);
    println!("{} sends were answered over {DEPLOYS} deploys", ids.len());
}

//! Hints make followers at other servers quick; without any, they lose nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{Cluster, begin, check_followed, follow, get};

#[test]
#[ignore = "starts PostgreSQL"]
fn followers_lose_nothing_while_all_hints_are_lost() {
    let cluster = Cluster::new();
    let [first, second] = cluster.start(["first", "second"]);
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Closes the connections that listen, again and again. A server makes its connection again after half a second.
        scope.spawn(|| {
            let listening = format!(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity where pid <> pg_backend_pid() and query like '%LISTEN \"{}_h%'",
                cluster.schema
            );
            while !ended.load(Ordering::Relaxed) {
                let _ = cluster.postgres.sql(&listening);
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let id = begin(&first, "m-1", "stream 60");
        let seen: Vec<_> = follow(&second, &id, 0).collect();
        ended.store(true, Ordering::Relaxed);
        check_followed(&seen, &get(&second, &id));
    });
}

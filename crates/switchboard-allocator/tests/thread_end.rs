//! What a thread kept is not lost with it. The only test of its process, because it looks at the memory of all of it.

#![cfg(target_os = "linux")]

use std::thread;

#[global_allocator]
static ALLOCATOR: switchboard_allocator::Allocator = switchboard_allocator::Allocator;

#[test]
fn a_thread_that_ends_gives_its_blocks_back() {
    let before = resident_kib();
    for _ in 0..1000 {
        // A cache keeps all of these blocks, 96 KiB: nearly 100 MiB would be lost in the end.
        thread::scope(|scope| {
            scope.spawn(|| {
                for size in [1024, 2048, 4096] {
                    drop((0..32 * 1024 / size).map(|_| vec![1_u8; size]).collect::<Vec<_>>());
                }
            });
        });
    }
    let after = resident_kib();
    assert!(after < before + 16 * 1024, "{before} KiB before, {after} after");
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("the status of this process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident memory");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

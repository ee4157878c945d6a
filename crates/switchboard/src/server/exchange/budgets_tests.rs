//! Who counts as one caller, and how many requests each may send.

use std::net::IpAddr;
use std::time::Duration;

use switchboard_engine::ports::Share;
use tokio::time::Instant;

use super::{Holder, RATES_MAX, Rate};

fn holder(address: &str) -> Holder {
    Holder::of_address(address.parse::<IpAddr>().unwrap())
}

#[test]
fn the_addresses_of_one_customer_count_as_one() {
    assert_eq!(holder("::ffff:192.0.2.1"), holder("192.0.2.1"));
    assert_ne!(holder("192.0.2.2"), holder("192.0.2.1"));
    assert_eq!(holder("2001:db8:1:2::1"), holder("2001:db8:1:2:ffff::9"));
    assert_ne!(holder("2001:db8:1:3::1"), holder("2001:db8:1:2::1"));
}

#[tokio::test(start_paused = true)]
async fn a_bucket_gives_a_burst_and_then_its_rate() {
    let (rate, start) = (Rate::new(2, Share::default()), Instant::now());
    let admits = |name: &str, ms: u64| rate.admit(&holder(name), "of yours", start + Duration::from_millis(ms)).is_ok();
    assert!((0..10).all(|_| admits("192.0.2.1", 0)), "five seconds' worth may come at once");
    assert!(!admits("192.0.2.1", 0));
    assert!(admits("192.0.2.2", 0), "another address has a bucket of its own");
    assert!(!admits("192.0.2.1", 400));
    assert!(admits("192.0.2.1", 500));
    assert!(!admits("192.0.2.1", 600));
    assert_eq!(rate.refused.load(std::sync::atomic::Ordering::Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn servers_that_share_a_store_share_the_rate() {
    let share = Share::default();
    let (rate, start) = (Rate::new(2, share.clone()), Instant::now());
    let admitted = |until_ms: u64| {
        let times = (0..=until_ms).step_by(10);
        times
            .filter(|ms| rate.admit(&holder("192.0.2.1"), "of yours", start + Duration::from_millis(*ms)).is_ok())
            .count()
    };
    share.set_processes(4);
    // A burst of five seconds, and then a request in two seconds.
    assert_eq!(admitted(8_000), 2 + 4);
    share.set_processes(100);
    assert!(rate.admit(&holder("192.0.2.2"), "of yours", start).is_ok(), "one request is always admitted");
}

#[tokio::test(start_paused = true)]
async fn the_table_of_rates_is_bounded() {
    let (rate, now) = (Rate::new(1, Share::default()), Instant::now());
    for number in 0..(RATES_MAX as u32 * 2) {
        let address = IpAddr::from(number.to_be_bytes());
        rate.admit(&Holder::of_address(address), "of yours", now).unwrap();
    }
    let kept: usize = rate.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
    assert!(kept <= RATES_MAX, "{kept} are kept");
}

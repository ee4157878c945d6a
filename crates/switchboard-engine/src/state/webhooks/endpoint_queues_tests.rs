//! Deliveries to endpoints that are slow, busy or down, and to the others beside them.

use std::time::Duration;

use super::{
    CallResult, Disposition, EndpointHealth, EndpointQueues, HOLD_MS_MAX, Rules, SICK_KEPT_MS, WebhookEndpoint,
};
use switchboard_core::call::Owner;
use switchboard_core::model::Timestamp;

const RULES: Rules = Rules { failures_max: 3, probe_ms_min: 1_000, probe_ms_max: 60_000 };
const DAY_MS: i64 = 86_400_000;

fn queues(slots: usize) -> EndpointQueues<u32> {
    EndpointQueues::new(slots, RULES, DAY_MS)
}

fn owner(name: &str) -> Owner {
    Owner { tenant: "".into(), principal: name.into() }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_ms(1_000_000 + ms)
}

fn endpoint(name: &str) -> WebhookEndpoint {
    WebhookEndpoint::of(&format!("https://{name}.example/"))
}

fn answered() -> CallResult {
    CallResult { answered: true, ..CallResult::default() }
}

fn failed() -> CallResult {
    CallResult { failed: Some("no answer".to_owned()), ..CallResult::default() }
}

fn end(queues: &mut EndpointQueues<u32>, name: &str, probe: bool, call_result: CallResult, ms: i64) {
    queues.finished(&endpoint(name), &owner("a"), probe, call_result, Duration::from_millis(10), at(ms), 0);
}

/// Offers this many deliveries and returns how many started, how many wait, and how many were held.
fn offer_many(queues: &mut EndpointQueues<u32>, name: &str, count: u32, ms: i64) -> (usize, usize, usize) {
    let mut sums = (0, 0, 0);
    for item in 0..count {
        match queues.offer(&endpoint(name), &owner("a"), item, at(ms)) {
            Some(Disposition::Start { .. }) => sums.0 += 1,
            None => sums.1 += 1,
            Some(Disposition::Hold { .. }) => sums.2 += 1,
            Some(Disposition::GiveUp { .. }) => panic!("nothing was down for a day"),
        }
    }
    sums
}

/// Opens the circuit of an endpoint at this time.
fn break_down(queues: &mut EndpointQueues<u32>, name: &str, ms: i64) {
    for _ in 0..3 {
        assert!(matches!(
            queues.offer(&endpoint(name), &owner("a"), 0, at(ms)),
            Some(Disposition::Start { probe: false, .. })
        ));
        end(queues, name, false, failed(), ms);
    }
}

#[test]
fn however_many_endpoints_are_slow_the_next_one_has_a_place() {
    let mut queues = queues(128);
    assert_eq!(offer_many(&mut queues, "slow-0", 1_000, 0), (32, 32, 936));
    for number in 1..20 {
        let (started, ..) = offer_many(&mut queues, &format!("slow-{number}"), 1_000, 0);
        assert!(started >= 2, "endpoint {number} got {started}");
    }
    assert!(queues.has_free_slot());
    assert_eq!(offer_many(&mut queues, "healthy", 1, 0).0, 1);
}

#[test]
fn the_endpoints_of_one_owner_leave_room_for_the_others() {
    let mut queues = queues(1_024);
    let offered = |queues: &mut EndpointQueues<u32>, name: &str, who: &str| {
        matches!(queues.offer(&endpoint(name), &owner(who), 0, at(0)), Some(Disposition::Start { .. }))
    };
    let started = (0..1_400).filter(|number| offered(&mut queues, &format!("silent-{number}"), "a")).count();
    assert_eq!(started, 768, "three quarters of the slots");
    for who in ["b", "c", "d"] {
        assert!(offered(&mut queues, &format!("of-{who}"), who), "{who} is served at once");
    }
    let of_b = (0..100).filter(|number| offered(&mut queues, &format!("b-{number}"), "b")).count();
    assert_eq!(of_b, 15, "and with few deliveries under way alone");
    queues.finished(&endpoint("of-b"), &owner("b"), false, answered(), Duration::from_millis(1), at(1), 0);
    assert!(offered(&mut queues, "b-next", "b"));
}

#[test]
fn the_more_owners_there_are_the_less_each_takes() {
    let mut queues = queues(1_024);
    let mut started = |who: &str| {
        let offer = |number: &usize| {
            let endpoint = endpoint(&format!("{who}-{number}"));
            matches!(queues.offer(&endpoint, &owner(who), 0, at(0)), Some(Disposition::Start { .. }))
        };
        (0..1_400).filter(offer).count()
    };
    assert_eq!(started("a"), 768);
    let others: Vec<usize> = (0..40).map(|number| started(&format!("other {number}"))).collect();
    assert_eq!(others, [[16; 12].as_slice(), &[4; 12], &[1; 16]].concat(), "forty more find a place");
}

#[test]
fn owners_take_turns_when_places_become_free() {
    let mut queues = queues(8);
    let offer =
        |queues: &mut EndpointQueues<u32>, name: &str, who: &str| queues.offer(&endpoint(name), &owner(who), 0, at(0));
    for (name, who) in [("a-1", "a"), ("a-2", "a"), ("a-3", "a"), ("a-4", "a"), ("a-5", "a"), ("a-6", "a"), ("b", "b")]
    {
        assert!(matches!(offer(&mut queues, name, who), Some(Disposition::Start { .. })), "{name}");
    }
    assert!(matches!(offer(&mut queues, "c", "c"), Some(Disposition::Start { .. })));
    // Everything is taken. Four may wait, and one owner does not take all of these places.
    assert_eq!((offer(&mut queues, "a-7", "a"), offer(&mut queues, "a-8", "a")), (None, None));
    assert!(matches!(offer(&mut queues, "a-9", "a"), Some(Disposition::Hold { .. })));
    assert_eq!(offer(&mut queues, "z", "b"), None);
    end(&mut queues, "a-1", false, answered(), 1);
    end(&mut queues, "a-2", false, answered(), 1);
    assert_eq!(queues.advance(at(1)), [], "two are for owners that have none");
    // The order of the names decides nothing: b has fewer under way.
    end(&mut queues, "a-3", false, answered(), 1);
    assert_eq!(queues.advance(at(1)), [(endpoint("z"), Disposition::Start { item: 0, probe: false })]);
    end(&mut queues, "a-4", false, answered(), 1);
    assert_eq!(queues.advance(at(1)), [(endpoint("a-7"), Disposition::Start { item: 0, probe: false })]);
}

#[test]
fn a_delivery_that_its_owner_has_no_place_for_is_not_offered_again_at_once() {
    let mut queues = queues(1_024);
    let offer = |queues: &mut EndpointQueues<u32>, number: u32, ms| {
        queues.offer(&endpoint(&format!("silent-{number}")), &owner("a"), number, at(ms))
    };
    for number in 0..768 {
        assert!(matches!(offer(&mut queues, number, 0), Some(Disposition::Start { .. })));
    }
    let mut dues = Vec::new();
    for number in 1_000..3_000 {
        if let Some(Disposition::Hold { due, .. }) = offer(&mut queues, number, 0) {
            dues.push(due.ms_since(at(0)));
        }
    }
    assert_eq!(dues.len(), 1_744, "the others wait here");
    assert!(dues.iter().all(|due| (250..=60_251).contains(due)), "{:?}", dues.iter().max());
    dues.dedup();
    assert_eq!(dues.len(), 1_744, "one by one");
    // It is known by now that its receivers take ten seconds.
    queues.finished(&endpoint("silent-1"), &owner("a"), false, failed(), Duration::from_secs(10), at(10_000), 0);
    offer(&mut queues, 4_000, 10_000);
    let Some(Disposition::Hold { due, .. }) = offer(&mut queues, 4_001, 10_000) else { panic!("it is held") };
    assert!(due.ms_since(at(10_000)) >= 10_000, "{due:?}");
}

#[test]
fn who_waits_starts_in_order_as_soon_as_there_is_room() {
    let mut queues = queues(8);
    assert_eq!(offer_many(&mut queues, "busy", 4, 0), (2, 2, 0));
    assert!(queues.advance(at(0)).is_empty());
    end(&mut queues, "busy", false, answered(), 5);
    let started =
        |moved: Vec<(WebhookEndpoint, Disposition<u32>)>| moved.into_iter().map(|(_, place)| place).collect::<Vec<_>>();
    assert_eq!(started(queues.advance(at(5))), [Disposition::Start { item: 2, probe: false }]);
    end(&mut queues, "busy", false, answered(), 6);
    assert_eq!(started(queues.advance(at(6))), [Disposition::Start { item: 3, probe: false }]);
    assert!(queues.advance(at(7)).is_empty());
}

#[test]
fn a_delivery_to_an_endpoint_that_is_down_waits_for_the_probe_and_one_probe_goes() {
    let mut queues = queues(8);
    break_down(&mut queues, "sick", 0);
    let Some(Disposition::Hold { due, .. }) = queues.offer(&endpoint("sick"), &owner("a"), 1, at(0)) else {
        panic!("it is down")
    };
    assert!((500..=1_100).contains(&due.ms_since(at(0))), "{due:?}");
    assert_eq!(offer_many(&mut queues, "healthy", 1, 0), (1, 0, 0), "other endpoints are not affected");
    assert_eq!(queues.offer(&endpoint("sick"), &owner("a"), 7, due), Some(Disposition::Start { item: 7, probe: true }));
    assert!(
        matches!(queues.offer(&endpoint("sick"), &owner("a"), 8, due), Some(Disposition::Hold { .. })),
        "one at a time"
    );
    queues.finished(&endpoint("sick"), &owner("a"), true, answered(), Duration::from_millis(1), due, 0);
    assert_eq!(
        queues.offer(&endpoint("sick"), &owner("a"), 8, due),
        Some(Disposition::Start { item: 8, probe: false })
    );
}

#[test]
fn who_waits_for_an_endpoint_that_goes_down_is_put_back() {
    let mut queues = queues(16);
    assert_eq!(offer_many(&mut queues, "sick", 8, 0), (4, 4, 0));
    for _ in 0..3 {
        end(&mut queues, "sick", false, failed(), 0);
    }
    let moved = queues.advance(at(0));
    assert_eq!(moved.len(), 4);
    assert!(moved.iter().all(|(_, place)| matches!(place, Disposition::Hold { .. })), "{moved:?}");
    assert_eq!(queues.report(10)[0].waiting, 0);
}

#[test]
fn those_held_come_up_again_one_after_the_other_within_bounds() {
    let mut queues = queues(8);
    break_down(&mut queues, "sick", 0);
    let mut dues: Vec<i64> = Vec::new();
    for item in 0..100_000 {
        let Some(Disposition::Hold { due, .. }) = queues.offer(&endpoint("sick"), &owner("a"), item, at(0)) else {
            panic!("it is down")
        };
        dues.push(due.ms_since(at(0)));
    }
    assert!(dues.iter().all(|due| (500..=1_001 + HOLD_MS_MAX).contains(due)));
    dues.sort_unstable();
    let busiest = dues.chunk_by(|a, b| a == b).map(<[i64]>::len).max();
    assert!(busiest <= Some(3), "{busiest:?} at the same millisecond");
}

#[test]
fn an_endpoint_that_is_down_for_too_long_is_given_up_on() {
    let mut queues = queues(8);
    break_down(&mut queues, "sick", 0);
    end(&mut queues, "sick", true, failed(), DAY_MS);
    assert!(matches!(queues.offer(&endpoint("sick"), &owner("a"), 1, at(DAY_MS)), Some(Disposition::Hold { .. })));
    let later = DAY_MS + 1;
    assert_eq!(
        queues.offer(&endpoint("sick"), &owner("a"), 1, at(later)),
        Some(Disposition::GiveUp { item: 1, down_since: at(0) })
    );
}

#[test]
fn an_operator_can_have_a_probe_now() {
    let mut queues = queues(8);
    break_down(&mut queues, "sick", 0);
    queues.probe_now(Some(&endpoint("other")), at(1));
    assert!(matches!(queues.offer(&endpoint("sick"), &owner("a"), 1, at(1)), Some(Disposition::Hold { .. })));
    queues.probe_now(Some(&endpoint("sick")), at(1));
    assert_eq!(
        queues.offer(&endpoint("sick"), &owner("a"), 1, at(1)),
        Some(Disposition::Start { item: 1, probe: true })
    );
}

#[test]
fn only_what_is_worth_it_is_remembered() {
    let mut queues = queues(8);
    offer_many(&mut queues, "healthy", 1, 0);
    break_down(&mut queues, "sick", 0);
    queues.tidy(at(0));
    let names =
        |queues: &EndpointQueues<u32>| queues.report(10).into_iter().map(|health| health.endpoint).collect::<Vec<_>>();
    assert_eq!(names(&queues), [endpoint("sick"), endpoint("healthy")]);
    end(&mut queues, "healthy", false, answered(), 1);
    queues.tidy(at(1));
    assert_eq!(names(&queues), [endpoint("sick")]);
    queues.tidy(at(SICK_KEPT_MS + 10_000));
    assert_eq!(names(&queues), []);
}

#[test]
fn the_report_says_what_an_operator_asks() {
    let mut queues = queues(8);
    break_down(&mut queues, "sick", 0);
    let expected = EndpointHealth {
        endpoint: endpoint("sick"),
        open: true,
        failures: 3,
        down_since: Some(at(0)),
        next_probe_at: Some(at(500)),
        last_error: Some("no answer".to_owned()),
        under_way: 0,
        waiting: 0,
    };
    assert_eq!(queues.report(10), [expected]);
    assert_eq!(queues.open_circuits(), 1);
}

#[test]
fn one_place_has_one_name_and_no_secret() {
    for (url, expected) in [
        ("https://hooks.example/in?key=secret", "https://hooks.example:443"),
        ("HTTPS://Hooks.Example:443/other", "https://hooks.example:443"),
        ("http://hooks.example", "http://hooks.example:80"),
        ("http://hooks.example:8080?x", "http://hooks.example:8080"),
        ("http://[::1]/in", "http://[::1]:80"),
        ("http://[::1]:9000/in", "http://[::1]:9000"),
        ("https://user:secret@hooks.example/", "https://hooks.example:443"),
        ("no url at all/secret", "https://no url at all:443"),
    ] {
        assert_eq!(WebhookEndpoint::of(url).as_str(), expected, "{url}");
    }
}

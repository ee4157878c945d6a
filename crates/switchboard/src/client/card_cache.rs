//! Cards that were fetched, for as long as HTTP allows to keep them (RFC 9111). The rules are pure: the moment is an argument.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderName, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};
use switchboard_core::model::AgentCard;
use tokio::time::Instant;

use super::discovered_card::DiscoveredCard;

/// How long a card is used where its server says nothing about it.
const KEPT_DEFAULT: Duration = Duration::from_secs(300);
/// The longest time that a server can ask for.
const KEPT_MAX: Duration = Duration::from_secs(86_400);
/// How long a card that must be asked about again is kept for the answer "not modified".
const STALE_KEPT: Duration = Duration::from_secs(3_600);

/// By what a server recognises the card that it sent before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Validators {
    pub(super) etag: Option<HeaderValue>,
    pub(super) last_modified: Option<HeaderValue>,
}

/// What an answer says about keeping it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Keeping {
    /// None forbids to keep it; zero means to ask each time.
    pub(super) fresh_for: Option<Duration>,
    pub(super) validators: Validators,
}

impl Keeping {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let validators =
            Validators { etag: headers.get(ETAG).cloned(), last_modified: headers.get(LAST_MODIFIED).cloned() };
        Self { fresh_for: fresh_for(headers), validators }
    }
}

fn fresh_for(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter().filter_map(|line| line.to_str().ok());
    let words: Vec<String> =
        lines.flat_map(|line| line.split(',')).map(|word| word.trim().to_ascii_lowercase()).collect();
    let has = |word: &str| words.iter().any(|known| known == word);
    if has("no-store") {
        return None;
    }
    if has("no-cache") {
        return Some(Duration::ZERO);
    }
    let seconds = |text: &str| text.trim_matches('"').parse().ok().map(Duration::from_secs);
    let age = text(headers, AGE).and_then(seconds).unwrap_or_default();
    let date = |name: HeaderName| httpdate::parse_http_date(text(headers, name)?).ok();
    let max_age = words.iter().find_map(|word| seconds(word.strip_prefix("max-age=")?));
    let expires = || match (text(headers, EXPIRES), date(EXPIRES), date(DATE)) {
        (Some(_), Some(end), Some(sent)) => Some(end.duration_since(sent).unwrap_or_default()),
        // A date that is none, such as 0, is one that has passed.
        (Some(_), None, _) => Some(Duration::ZERO),
        _ => None,
    };
    let said = max_age.or_else(expires).map(|said| said.saturating_sub(age));
    Some(said.unwrap_or(KEPT_DEFAULT).min(KEPT_MAX))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

struct Entry {
    card: Arc<DiscoveredCard>,
    fresh_until: Instant,
    validators: Validators,
    /// The card that the agent shows to callers that it knows, once it was asked for. It takes the place of the public one until the
    /// version of that changes.
    extended: Option<Arc<AgentCard>>,
}

/// What the cache knows of a card.
pub(super) enum Known {
    Fresh(Arc<DiscoveredCard>),
    /// To be asked about again.
    Stale(Arc<DiscoveredCard>, Validators),
    Nothing,
}

/// The cards of one client, by the reference that they were found with.
pub(super) struct CardCache {
    entries: Mutex<HashMap<String, Entry>>,
    entries_max: usize,
}

impl CardCache {
    pub(super) fn new(entries_max: usize) -> Self {
        Self { entries: Mutex::default(), entries_max }
    }

    pub(super) fn get(&self, key: &str, now: Instant) -> Known {
        match self.lock().get(key) {
            Some(entry) if now < entry.fresh_until => Known::Fresh(entry.card.clone()),
            Some(entry) if entry.is_of_use(now) => Known::Stale(entry.card.clone(), entry.validators.clone()),
            Some(_) | None => Known::Nothing,
        }
    }

    /// Keeps a card, and forgets those that are no longer of use.
    pub(super) fn put(&self, key: &str, card: Arc<DiscoveredCard>, keeping: Keeping, now: Instant) {
        let mut entries = self.lock();
        entries.retain(|_, entry| now < entry.fresh_until || entry.is_of_use(now));
        let before = entries.remove(key);
        let Some(fresh_for) = keeping.fresh_for else { return };
        if self.entries_max == 0 {
            return;
        }
        while entries.len() >= self.entries_max {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.fresh_until).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| entries.remove(&oldest));
        }
        let is_same = |before: &Entry| before.card.card().version == card.card().version;
        let extended = before.filter(is_same).and_then(|before| before.extended);
        let entry = Entry { card, fresh_until: now + fresh_for, validators: keeping.validators, extended };
        entries.insert(key.to_owned(), entry);
    }

    /// Keeps the extended card of an agent, if its public one is kept and has this version.
    pub(super) fn extend(&self, key: &str, version: &str, extended: Arc<AgentCard>) {
        if let Some(entry) = self.lock().get_mut(key).filter(|entry| entry.card.card().version == version) {
            entry.extended = Some(extended);
        }
    }

    /// The extended card that belongs to a public one.
    pub(super) fn extended(&self, key: &str, version: &str) -> Option<Arc<AgentCard>> {
        let entries = self.lock();
        entries.get(key).filter(|entry| entry.card.card().version == version)?.extended.clone()
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    /// Whether a card that is no longer fresh can be asked about.
    fn is_of_use(&self, now: Instant) -> bool {
        self.validators != Validators::default() && now < self.fresh_until + STALE_KEPT
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, HeaderName, HeaderValue};
    use tokio::time::Instant;

    use super::{CardCache, DiscoveredCard, Keeping, Known, fresh_for};

    fn said(lines: &[(&str, &str)]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        }
        fresh_for(&headers).as_ref().map(Duration::as_secs)
    }

    #[test]
    fn a_card_is_kept_as_long_as_its_answer_says() {
        let date = ("date", "Sun, 06 Nov 1994 12:00:00 GMT");
        for (lines, expected) in [
            (&[][..], Some(300)),
            (&[("cache-control", "public, max-age=60")], Some(60)),
            (&[("cache-control", "public"), ("cache-control", "Max-Age=60")], Some(60)),
            (&[("cache-control", "max-age=60"), ("age", "45")], Some(15)),
            (&[("cache-control", "max-age=60"), ("age", "90")], Some(0)),
            (&[("cache-control", "max-age=60, no-store")], None),
            (&[("cache-control", "no-cache, max-age=60")], Some(0)),
            (&[("cache-control", "max-age=99999999")], Some(86_400)),
            (&[("cache-control", "max-age=soon")], Some(300)),
            (&[date, ("expires", "Sun, 06 Nov 1994 12:02:00 GMT")], Some(120)),
            (&[date, ("expires", "Sun, 06 Nov 1994 11:00:00 GMT")], Some(0)),
            (&[date, ("expires", "0")], Some(0)),
            (&[date, ("expires", "Sun, 06 Nov 1994 12:02:00 GMT"), ("cache-control", "max-age=5")], Some(5)),
        ] {
            assert_eq!(said(lines), expected, "{lines:?}");
        }
    }

    #[test]
    fn a_card_is_fresh_for_five_minutes_and_forgotten_when_the_next_one_comes() {
        let cache = CardCache::new(10);
        let card = DiscoveredCard::read(Bytes::from_static(b"{}"), None, &Default::default()).unwrap();
        let card = std::sync::Arc::new(card);
        let (start, minute) = (Instant::now(), Duration::from_secs(60));
        let usual = Keeping::of(&HeaderMap::new());
        cache.put("a", card.clone(), usual.clone(), start);
        assert!(matches!(cache.get("a", start + 2 * minute), Known::Fresh(_)));
        assert!(matches!(cache.get("a", start + 6 * minute), Known::Nothing));
        cache.put("b", card.clone(), usual, start + 6 * minute);
        assert_eq!(cache.len(), 1, "what is no longer of use goes when another comes");
        // One that can be asked about is kept for longer.
        let mut headers = HeaderMap::new();
        headers.insert("etag", HeaderValue::from_static("\"e\""));
        cache.put("c", card, Keeping::of(&headers), start);
        assert!(matches!(cache.get("c", start + 6 * minute), Known::Stale(..)));
        assert!(matches!(cache.get("c", start + 66 * minute), Known::Nothing));
    }

    #[test]
    fn an_extended_card_stays_until_the_version_of_the_public_one_changes() {
        let cache = CardCache::new(10);
        let card = |version: &str| {
            let json = Bytes::from(format!(r#"{{"name":"a","version":"{version}"}}"#));
            std::sync::Arc::new(DiscoveredCard::read(json, None, &Default::default()).unwrap())
        };
        let now = Instant::now();
        let put = |version: &str| cache.put("a", card(version), Keeping::of(&HeaderMap::new()), now);
        let extended = card("e").card().clone();
        cache.extend("a", "1", extended.clone());
        assert_eq!(cache.extended("a", "1"), None, "there is no public card");
        put("1");
        cache.extend("a", "2", extended.clone());
        assert_eq!(cache.extended("a", "1"), None, "it is of another version");
        cache.extend("a", "1", extended.clone());
        put("1");
        assert_eq!((cache.extended("a", "1"), cache.extended("a", "2")), (Some(extended), None));
        put("2");
        assert_eq!((cache.extended("a", "1"), cache.extended("a", "2")), (None, None));
    }
}

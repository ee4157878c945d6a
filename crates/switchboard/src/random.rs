//! Ids for messages, and the chance in pauses between attempts. The engine has its own source, which a simulation replaces; a
//! client-only build has no engine.

use std::cell::RefCell;
use std::sync::Arc;

const POOL_BYTES: usize = 512;

struct Pool {
    bytes: [u8; POOL_BYTES],
    used: usize,
}

thread_local! {
    // One system call fetches the random bytes for 32 ids. Each byte is used once.
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], used: POOL_BYTES }) };
}

/// Random bytes for what must be unlike others and need not be secret.
pub(crate) fn draw<const BYTES: usize>() -> [u8; BYTES] {
    POOL.with_borrow_mut(|pool| {
        if pool.used + BYTES > POOL_BYTES {
            fill(&mut pool.bytes);
            pool.used = 0;
        }
        let mut drawn = [0; BYTES];
        drawn.copy_from_slice(&pool.bytes[pool.used..pool.used + BYTES]);
        pool.used += BYTES;
        drawn
    })
}

/// A random UUID (version 4).
pub(crate) fn uuid() -> Arc<str> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = draw::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let mut text = [b'-'; 36];
    let mut at = 0;
    for (index, byte) in bytes.into_iter().enumerate() {
        at += usize::from(matches!(index, 4 | 6 | 8 | 10));
        text[at] = DIGITS[usize::from(byte >> 4)];
        text[at + 1] = DIGITS[usize::from(byte & 15)];
        at += 2;
    }
    std::str::from_utf8(&text).expect("digits are ASCII").into()
}

/// A random text of 256 bits, which nobody can guess.
pub(crate) fn secret() -> String {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    fill(&mut bytes);
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

/// A random number.
#[cfg(feature = "client")]
pub(crate) fn number() -> u32 {
    u32::from_ne_bytes(draw())
}

#[expect(clippy::disallowed_methods, reason = "the one place of this crate that draws randomness")]
fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the system has a source of randomness");
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn ids_are_random_uuids() {
        let (one, other) = (uuid(), uuid());
        let all: std::collections::HashSet<_> = (0..200).map(|_| uuid()).collect();
        assert_eq!((all.len(), one == other), (200, false));
        let places: Vec<usize> = one.match_indices('-').map(|(at, _)| at).collect();
        assert_eq!((one.len(), places, one.as_bytes()[14]), (36, vec![8, 13, 18, 23], b'4'));
        assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
    }
}

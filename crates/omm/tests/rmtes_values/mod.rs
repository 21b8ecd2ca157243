//! RMTES values one after the other on one cached string, and what must hold whatever they are.

#![allow(dead_code, reason = "each user takes some of it")]

use tapeline_omm::rwf::{Rmtes, RmtesCache};

/// Any bytes: the first is how long the string may become; then values, each behind its length.
pub(crate) fn any(bytes: &[u8]) {
    let Some((room, mut rest)) = bytes.split_first() else { return };
    let mut room = vec![b'.'; usize::from(*room)];
    let most = room.len();
    let mut cache = RmtesCache::new(&mut room);
    while let Some((len, behind)) = rest.split_first() {
        let (value, behind) = behind.split_at(behind.len().min(usize::from(*len)));
        rest = behind;
        apply(Rmtes(value), &mut cache, most);
    }
}

fn apply(value: Rmtes<'_>, cache: &mut RmtesCache<'_>, most: usize) {
    show(value);
    let before = cache.bytes().to_vec();
    let is_whole = value.apply(cache);
    assert!(cache.len() <= most, "{} bytes in room for {most}", cache.len());
    if value.is_partial() {
        // It names places, and shortens nothing.
        assert!(cache.len() >= before.len());
    } else {
        assert_eq!(cache.bytes(), &value.0[..value.0.len().min(most)]);
        assert_eq!(is_whole, value.0.len() <= most);
    }
    show(Rmtes(cache.bytes()));
}

/// What is shown on a terminal obeys nobody, and is not much longer than what came.
fn show(value: Rmtes<'_>) {
    let shown = value.to_string();
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
    // A byte becomes a character of three bytes at the most: `�`.
    assert!(shown.len() <= 3 * value.0.len());
    assert!(value.to_text().len() <= 3 * value.0.len());
}

//! Suggestions for misspelled words.

/// Returns the known word at most two typing errors away from `unknown`, or the first known word that continues `unknown` after a dot.
#[must_use]
pub fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|key| (distance(unknown, key), *key)).min().filter(|(far, _)| *far <= 2);
    let longer = || {
        known.iter().filter(|key| key.strip_prefix(unknown).is_some_and(|rest| rest.starts_with('.'))).min()
    };
    near.map(|(_, key)| key).or_else(|| longer().copied())
}

/// The Levenshtein distance, over bytes; words are short.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_errors_are_forgiven() {
        assert_eq!(nearest("AAPLE", &["MSFT", "AAPL", "APLE"]), Some("AAPL"));
        assert_eq!(nearest("pulish", &["publish"]), Some("publish"));
        assert_eq!(nearest("IBM", &["AAPL", "MSFT"]), None);
        assert_eq!(nearest("IBM", &["AAPL.NBBO", "IBM.XNAS", "IBM.NBBO"]), Some("IBM.NBBO"));
        assert_eq!(nearest("IBM", &[]), None);
    }
}

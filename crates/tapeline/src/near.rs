//! What a user may have meant.

/// Says on standard error which of the symbols that were asked for are not there, with one that is written nearly so.
pub(crate) fn note_unknown(asked: &[String], known: &[&str]) {
    for said in unknown(asked, known) {
        anstream::eprintln!("note: {said}");
    }
}

/// For each of the symbols that were asked for and are not there, a word that it is not, with one that is written nearly so.
pub(crate) fn unknown(asked: &[String], known: &[&str]) -> impl Iterator<Item = String> {
    let unknown = asked.iter().filter(|symbol| !symbol.is_empty() && !known.contains(&symbol.as_str()));
    unknown.map(|symbol| match nearest(symbol, known) {
        Some(near) => format!("nothing is called {symbol}; there is {near}"),
        None => format!("nothing is called {symbol}"),
    })
}

/// The known word that is at most two typing errors away, or the first that goes on with a dot behind the unknown one.
pub(crate) fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let near = known.iter().map(|key| (distance(unknown, key), *key)).min().filter(|(far, _)| *far <= 2);
    let longer = || {
        known.iter().filter(|key| key.strip_prefix(unknown).is_some_and(|rest| rest.starts_with('.'))).min()
    };
    near.map(|(_, key)| key).or_else(|| longer().copied())
}

/// Levenshtein's distance, over bytes; words are short.
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

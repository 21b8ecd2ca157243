//! What a user may have meant.

pub use tapeline_client::nearest;

/// Says on standard error which of the symbols that were asked for are not there, with one that is written nearly so.
pub fn note_unknown(asked: &[String], known: &[&str]) {
    for said in unknown(asked, known) {
        anstream::eprintln!("note: {said}");
    }
}

/// For each of the symbols that were asked for and are not there, a word that it is not, with one that is written nearly so.
pub fn unknown(asked: &[String], known: &[&str]) -> impl Iterator<Item = String> {
    let unknown = asked.iter().filter(|symbol| !symbol.is_empty() && !known.contains(&symbol.as_str()));
    unknown.map(|symbol| match nearest(symbol, known) {
        Some(near) => format!("nothing is called {symbol}; there is {near}"),
        None => format!("nothing is called {symbol}"),
    })
}

//! Suggestions for misspelt names.

pub use tapeline_client::nearest;

use crate::log;

/// Prints the requested symbols that do not exist on standard error, each with a similar existing one.
pub fn note_unknown(asked: &[String], known: &[&str]) {
    for said in unknown(asked, known) {
        log::note(said);
    }
}

/// A message for each requested symbol that does not exist, with a similar existing one.
pub fn unknown(asked: &[String], known: &[&str]) -> impl Iterator<Item = String> {
    let unknown = asked.iter().filter(|symbol| !symbol.is_empty() && !known.contains(&symbol.as_str()));
    unknown.map(|symbol| match nearest(symbol, known) {
        Some(near) => format!("nothing is called {symbol}; there is {near}"),
        None => format!("nothing is called {symbol}"),
    })
}

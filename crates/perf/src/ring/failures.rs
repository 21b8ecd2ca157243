//! Ring errors as shown to the user.

use tapeline_console::failure::Hinted;
use tapeline_ring::{Error, Name, list};

/// Adds the cause and a hint to a ring error; if there is no such ring, the hint lists the existing rings.
pub fn with_hint(error: Error) -> anyhow::Error {
    let hint = match &error {
        Error::NotFound { .. } => Some(existing()),
        other => other.hint(),
    };
    let what = match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    match hint {
        Some(hint) => Hinted::new(what, hint).into(),
        None => anyhow::anyhow!(what),
    }
}

fn existing() -> String {
    let names: Vec<String> =
        list().unwrap_or_default().into_iter().map(|entry| entry.name.to_string()).collect();
    if names.is_empty() {
        "there are no rings; start the publisher first, or wait for it with `ring sub --wait-for-ring SECONDS`"
            .to_owned()
    } else {
        format!("existing rings: {}", names.join(", "))
    }
}

/// Parses a ring's name given as an argument.
pub fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })
}

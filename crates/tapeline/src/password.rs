//! Reads a password, so that it is on no command line (which every user of the machine can read) and in no log.

use std::path::Path;

use anyhow::Context;
use tapeline_console::failure::Hinted;
use tapeline_feed::soupbintcp::Password;

/// The environment variable that is read when no file is named.
pub(crate) const VARIABLE: &str = "TAPELINE_SOUP_PASSWORD";

/// Maximum password length in a login, in characters.
const LONGEST: usize = 10;

/// The password in the first line of `file`, or in the environment.
///
/// # Errors
/// There is no password in either place, or it does not fit a login. The error does not show the password.
pub(crate) fn read(file: Option<&Path>) -> anyhow::Result<Password> {
    let (text, place) = match file {
        Some(path) => {
            let place = path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {place}"))?;
            (text.lines().next().unwrap_or_default().to_owned(), place)
        }
        None => {
            let hint = format!("write it into a file of yours alone and name that, or set {VARIABLE}");
            let text = std::env::var(VARIABLE).map_err(|_| Hinted::new("there is no password", hint))?;
            (text, VARIABLE.to_owned())
        }
    };
    if text.is_empty() || text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let what = format!("the password in {place} cannot be in a login");
        let hint = format!("SoupBinTCP carries 1 to {LONGEST} characters of ASCII, without spaces");
        return Err(Hinted::new(what, hint).into());
    }
    Ok(Password::new(&text))
}

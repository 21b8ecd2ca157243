//! `tapeline plant passwd` and `tapeline plant token`: lines for the file of users.

use std::io::{IsTerminal, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use tapeline_console::{FilePath, Hinted};
use tapeline_hub::access::Secret;
use tapeline_node::access::secrets::{hash_of_password, hash_of_token, new_token};
use tapeline_node::access::users::{is_empty, is_name};

/// A user, and the file with the user's line.
#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    /// Name of the user
    user: String,
    /// The users file, created if missing: `users` in [hub.access]
    #[arg(long, value_name = "FILE")]
    users: FilePath,
}

/// Maximum length of a password, in bytes.
const LONGEST: usize = 1024;

impl UserArgs {
    /// Sets the user's password, typed at the terminal or read from standard input.
    pub(crate) fn set_password(&self) -> anyhow::Result<ExitCode> {
        is_user(&self.user)?;
        let password = ask(&self.user)?;
        let hash = hash_of_password(password.bytes())?;
        let before = read(&self.users)?;
        write(&self.users, &with_password(&before, &self.user, &hash))?;
        anstream::eprintln!("{} has a new password in {}", self.user, self.users.display());
        Ok(ExitCode::SUCCESS)
    }

    /// Creates a token for the user and prints it; only its hash is stored.
    pub(crate) fn create_token(&self) -> anyhow::Result<ExitCode> {
        is_user(&self.user)?;
        let token = new_token()?;
        let mut text = read(&self.users)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("{} {}\n", self.user, hash_of_token(token.as_bytes())));
        write(&self.users, &text)?;
        tapeline_console::output::print(&token)?;
        let Self { user, users } = self;
        anstream::eprintln!("{user} has one more token in {}: it is shown only once", users.display());
        Ok(ExitCode::SUCCESS)
    }
}

fn is_user(name: &str) -> anyhow::Result<()> {
    let hint = "a name without white space, '#', ',' and '='";
    is_name(name).map_err(|what| Hinted::new(what, hint).into())
}

/// Reads a password: twice from a terminal, or once from a pipe. Never from the command line, which other users can
/// read.
fn ask(user: &str) -> anyhow::Result<Secret> {
    let password = if std::io::stdin().is_terminal() {
        let prompt =
            |text: String| rpassword::prompt_password(text).context("cannot read from this terminal");
        let (first, second) =
            (prompt(format!("Password of {user}: "))?, prompt("Repeat the password: ".to_owned())?);
        let (first, second) = (Secret::new(first.as_bytes()), Secret::new(second.as_bytes()));
        if first.bytes() != second.bytes() {
            return Err(Hinted::new("the two passwords differ", "nothing was changed").into());
        }
        first
    } else {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(LONGEST as u64 + 3)
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Secret::new(line.strip_suffix(b"\r").unwrap_or(line))
    };
    let length = password.bytes().len();
    if !(1..=LONGEST).contains(&length) {
        let what = format!("this password has {length} bytes; 1 to {LONGEST} are expected");
        return Err(Hinted::new(what, "nothing was changed").into());
    }
    Ok(password)
}

/// The text with the user's password: replaces the user's line, or adds one.
fn with_password(text: &str, user: &str, hash: &str) -> String {
    let is_it = |line: &str| {
        let mut words = line.split_whitespace();
        !is_empty(line)
            && words.next() == Some(user)
            && words.next().is_some_and(|word| word.starts_with('$'))
    };
    let mut is_there = false;
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            if is_there || !is_it(line) {
                return line.to_owned();
            }
            is_there = true;
            let options = line.split_whitespace().skip(2).map(|option| format!(" {option}"));
            format!("{user} {hash}{}", options.collect::<String>())
        })
        .collect();
    if !is_there {
        lines.push(format!("{user} {hash}"));
    }
    lines.join("\n") + "\n"
}

/// The content of the file; empty if there is none.
fn read(path: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Replaces the file completely or not at all: a hub may be about to read it. Only its owner may read it, unless
/// the old file had other permissions.
fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    let mode = std::fs::metadata(path).map_or(0o600, |old| old.permissions().mode() & 0o777);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    let put = || {
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    };
    put().map_err(|error| {
        let _ = std::fs::remove_file(&new);
        let what = format!("cannot write {}: {error}", path.display());
        Hinted::new(what, "a new file is written next to it first: its folder must be writable").into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_changed_in_place_and_keeps_its_options() {
        let text = "# us\nalice $old groups=desk max_items=3\nalice sha256:12\nalicia $hers";
        let text = with_password(text, "alice", "$new");
        assert_eq!(text, "# us\nalice $new groups=desk max_items=3\nalice sha256:12\nalicia $hers\n");
        let text = with_password(&text, "bob", "$his");
        assert!(text.ends_with("alicia $hers\nbob $his\n"));
        assert_eq!(with_password("", "bob", "$his"), "bob $his\n");
    }

    #[test]
    fn a_file_is_replaced_and_its_mode_kept() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        write(&path, "one\n").unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, "two\n").unwrap();
        assert_eq!((mode(), read(&path).unwrap().as_str()), (0o640, "two\n"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("none/users"), "").is_err());
        assert_eq!(read(&folder.path().join("none")).unwrap(), "");
    }
}

//! The errors of this crate.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error in a file, a name, a server or a session.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file, as the caller named it.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file exceeds the size limit of its kind.
    #[error("{} has {size} bytes; {what} has {most} at most", path.display())]
    TooLarge {
        /// The file, as the caller named it.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// The kind of file.
        what: &'static str,
        /// The limit in bytes.
        most: u64,
    },
    /// A line of a file is wrong.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The fault, and what was expected.
        what: String,
        /// Advice to the user; may be empty.
        hint: String,
    },
    /// The name of a server resolves to no address.
    #[error("cannot find the server {server}: {cause}")]
    Resolve {
        /// The server, as HOST:PORT.
        server: String,
        /// The reason.
        cause: io::Error,
    },
    /// This machine has no such interface, or the interface has no IPv4 address.
    #[error("{0}")]
    Interface(String),
    /// A certificate or its key cannot be used.
    #[error("cannot use {what}")]
    Certificate {
        /// The files.
        what: String,
        /// The reason.
        source: tapeline_wire::Error,
    },
    /// An encrypted server has no certificate.
    #[error("an encrypted server needs a certificate and a key")]
    NoCertificate,
    /// A value does not fit in any message.
    #[error(transparent)]
    Refused(#[from] tapeline_omm::Refused),
    /// A value is malformed.
    #[error(transparent)]
    Malformed(#[from] tapeline_omm::Malformed),
    /// An item cannot be requested.
    #[error(transparent)]
    NotOpened(#[from] tapeline_omm::role::consumer::NotOpened),
    /// An item cannot be published.
    #[error(transparent)]
    NotAdded(#[from] tapeline_omm::role::ni_provider::NotAdded),
    /// The session is over for good: the login was refused or closed, or the limit of connection attempts is reached.
    #[error("the session is over: {0}")]
    Ended(String),
    /// The system refuses a thread, or cannot wake one.
    #[error("the system refuses a thread")]
    Thread(#[source] io::Error),
    /// A publisher was closed before everything was sent.
    #[error("{} were not sent: {why}", match items.as_slice() {
        [] => "messages".to_owned(),
        [item] => format!("the last values of {item:?}"),
        [item, ..] => format!("the last values of {} items, such as {item:?},", items.len()),
    })]
    NotSent {
        /// The items whose newest values were not handed to the connection; empty if all were, but part of the bytes is still in this process.
        items: Vec<String>,
        /// The reason.
        why: String,
    },
    /// The system refuses a connection, or its certificates cannot be read.
    #[error(transparent)]
    Wire(#[from] tapeline_wire::Error),
}

impl Error {
    /// Returns advice to the user, if there is any.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Line { hint, .. } => Some(hint.clone()).filter(|hint| !hint.is_empty()),
            Self::Resolve { .. } => {
                Some("write it as HOST:PORT, such as localhost:14002 or [::1]:14002".to_owned())
            }
            Self::NoCertificate => Some("name them as ServerCert and ServerPrivateKey".to_owned()),
            Self::Wire(error) | Self::Certificate { source: error, .. } => error.hint(),
            Self::Read { .. }
            | Self::TooLarge { .. }
            | Self::Interface(_)
            | Self::Refused(_)
            | Self::Malformed(_)
            | Self::NotOpened(_)
            | Self::NotAdded(_)
            | Self::Ended(_)
            | Self::Thread(_)
            | Self::NotSent { .. } => None,
        }
    }
}

/// Writes the error, its causes and the advice as text: a program whose `main` returns the error ends with that.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.to_string();
        let mut next = self.source();
        while let Some(cause) = next {
            next = cause.source();
            let cause = cause.to_string();
            // Some errors name their cause themselves.
            if !text.contains(&cause) {
                text += ": ";
                text += &cause;
            }
        }
        f.write_str(&text)?;
        self.hint().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_main_that_ends_with_an_error_shows_causes_and_advice() {
        let not_found = || io::Error::from(io::ErrorKind::NotFound);
        let read = Error::Read { path: "a.xml".into(), source: not_found() };
        assert_eq!(format!("{read:?}"), "cannot read a.xml: entity not found");
        let resolve = Error::Resolve { server: "nowhere".to_owned(), cause: not_found() };
        assert_eq!(
            format!("{resolve:?}"),
            "cannot find the server nowhere: entity not found\n\
             hint: write it as HOST:PORT, such as localhost:14002 or [::1]:14002"
        );
    }
}

//! What can go wrong before a connection is made.

use std::io;
use std::path::PathBuf;

/// A file, a name or a server that is not as it should be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file, as the caller named it.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is larger than any file of its kind.
    #[error("{} has {size} bytes; {what} has {most} at most", path.display())]
    TooLarge {
        /// The file, as the caller named it.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
        /// Which kind of file it is.
        what: &'static str,
        /// The largest size, in bytes.
        most: u64,
    },
    /// A line of a file is wrong.
    #[error("{file}:{line}: {what}")]
    Line {
        /// The file, as the caller named it.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong, and what was expected.
        what: String,
        /// What to do about it; may be empty.
        hint: String,
    },
    /// A server's name leads to no address.
    #[error("cannot find the server {server}: {cause}")]
    Resolve {
        /// The server, as HOST:PORT.
        server: String,
        /// Why.
        cause: io::Error,
    },
    /// This machine has no such interface, or the interface no address of IPv4.
    #[error("{0}")]
    Interface(String),
    /// A certificate, or its key, cannot be used.
    #[error("cannot use {what}")]
    Certificate {
        /// The files.
        what: String,
        /// Why.
        source: tapeline_wire::Error,
    },
    /// A server that encrypts has no certificate.
    #[error("an encrypted server needs a certificate and a key")]
    NoCertificate,
    /// No message can hold what was given.
    #[error(transparent)]
    Refused(#[from] tapeline_omm::Refused),
    /// Values that are malformed.
    #[error(transparent)]
    Malformed(#[from] tapeline_omm::Malformed),
    /// An item cannot be asked for.
    #[error(transparent)]
    NotOpened(#[from] tapeline_omm::role::consumer::NotOpened),
    /// An item cannot be published.
    #[error(transparent)]
    NotAdded(#[from] tapeline_omm::role::ni_provider::NotAdded),
    /// The session is over for good: the login was refused or closed, or no connection could be had as often as was to be tried.
    #[error("the session is over: {0}")]
    Ended(String),
    /// The system refuses a connection, or its certificates cannot be had.
    #[error(transparent)]
    Wire(#[from] tapeline_wire::Error),
}

impl Error {
    /// What the user can do about it.
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
            | Self::Ended(_) => None,
        }
    }
}

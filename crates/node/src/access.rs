//! Who may connect: the access configuration, the file of users, passwords and tokens, and the thread that
//! checks them.

pub mod secrets;
pub mod users;
pub(crate) mod worker;

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use tapeline_hub::Access;

pub(crate) use self::secrets::MOST_MEMORY_KIB;

/// Who may connect to a hub, and where that is recorded.
#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// Users and rules.
    pub access: Arc<Access>,
    /// Where logins, denials and ends of sessions are recorded.
    pub audit: AuditTo,
    /// The reader of changed users and rules while the hub runs; `None` if they are not read again.
    pub reload: Option<Arc<dyn Reload>>,
    /// The file of users, if there is one.
    pub users: Option<PathBuf>,
}

/// Where the audit goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AuditTo {
    /// Events with a text for people.
    #[default]
    Talk,
    /// Events whose text is a line of JSON.
    Stderr,
    /// Lines of JSON at the end of this file.
    File(PathBuf),
}

/// Reads users and rules again while a hub runs, at an operator's request.
pub trait Reload: Debug + Send + Sync {
    /// The hub starts: from here on an operator may request a reload.
    ///
    /// # Errors
    /// The system refuses.
    fn begin(&self) -> std::io::Result<()>;

    /// Returns `true` if an operator has requested a reload since the last call.
    fn is_requested(&self) -> bool;

    /// Reads users and rules, on a thread of its own, and reports the result to the operator; `None` if they
    /// are faulty, so that the hub retains the current ones.
    fn read(&self) -> Option<AccessConfig>;
}

//! The configuration of a tickerplant.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tapeline_hub::access::{Pattern, Users};
use tapeline_tickerplant::{Rights, Schema};

pub use super::log::LogConfig;

/// The configuration of a tickerplant.
#[derive(Debug)]
pub struct TickerplantConfig {
    /// Address of the TCP listener, port 0 for a free port; `None` without one.
    pub address: Option<SocketAddr>,
    /// Name of the Unix-domain socket; with `@` in front it is in the abstract namespace.
    pub unix: Option<PathBuf>,
    /// Interval of publishing; `None` publishes at once.
    pub publish_every: Option<Duration>,
    /// Poll continuously instead of sleeping.
    pub spins: bool,
    /// Maximum bytes queued for a subscriber.
    pub queue_bytes: usize,
    /// The longest message accepted.
    pub most_message: usize,
    /// Maximum memory of incoming messages in bytes, on all connections.
    pub incoming_bytes: usize,
    /// Maximum number of connections.
    pub max_connections: usize,
    /// Time zone in which days begin at midnight.
    pub timezone: String,
    /// Folder and name of the logs; `None` without a log.
    pub log: Option<LogConfig>,
    /// The tables.
    pub tables: Vec<Schema>,
    /// Who may connect; `None` admits every client.
    pub access: Option<Access>,
}

/// Who may connect, and with which rights.
#[derive(Debug)]
pub struct Access {
    /// All users.
    pub users: Users,
    /// The first rule that applies to a user decides; without any rule, every user has all rights.
    pub rules: Vec<Rule>,
}

/// The rights of some users: of all users, if neither users nor groups are named.
#[derive(Debug)]
pub struct Rule {
    /// Patterns of user names.
    pub users: Vec<Pattern>,
    /// Names of groups.
    pub groups: Vec<String>,
    /// The rights of these users.
    pub rights: Rights,
}

impl Access {
    /// Returns the rights of an authenticated user: those of the first rule that applies. Without any rule
    /// every user has all rights; with rules, a user to whom none applies may not connect.
    pub fn rights(&self, user: &str, tables: usize) -> Option<Rights> {
        let user = self.users.find(user)?;
        if self.rules.is_empty() {
            return Some(Rights::all(tables));
        }
        let is_about = |rule: &&Rule| {
            rule.users.is_empty() && rule.groups.is_empty()
                || rule.users.iter().any(|pattern| pattern.matches(user.name.as_bytes()))
                || rule.groups.iter().any(|group| user.groups.iter().any(|its| **its == **group))
        };
        self.rules.iter().find(is_about).map(|rule| rule.rights.clone())
    }
}

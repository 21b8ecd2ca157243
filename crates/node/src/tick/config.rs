//! What a tickerplant is configured to be.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tapeline_hub::access::{Pattern, Users};
use tapeline_tickerplant::{Rights, Schema};

pub use super::log::LogConfig;

/// What a tickerplant is to be.
#[derive(Debug)]
pub struct TickerplantConfig {
    /// Where it listens over TCP, port 0 for a free one; nowhere if there is none.
    pub address: Option<SocketAddr>,
    /// The name of its Unix-domain socket; one with `@` in front is in the abstract namespace.
    pub unix: Option<PathBuf>,
    /// Publish so often in place of at once.
    pub publish_every: Option<Duration>,
    /// Look for messages without sleeping.
    pub spins: bool,
    /// Bytes that may wait for a subscriber.
    pub queue_bytes: usize,
    /// The longest message that is taken.
    pub most_message: usize,
    /// Bytes of memory for messages that arrive, on all connections.
    pub incoming_bytes: usize,
    /// Connections at most.
    pub max_connections: usize,
    /// Where its days begin at midnight.
    pub timezone: String,
    /// Where its logs go, if it keeps any.
    pub log: Option<LogConfig>,
    /// Its tables.
    pub tables: Vec<Schema>,
    /// Who may in; everybody, if nothing is said.
    pub access: Option<Access>,
}

/// Who may in, and what they may do.
#[derive(Debug)]
pub struct Access {
    /// The users that there are.
    pub users: Users,
    /// The first rule about a user decides; without any rule all users may do all.
    pub rules: Vec<Rule>,
}

/// What some users may do: all of them, where neither users nor groups are named.
#[derive(Debug)]
pub struct Rule {
    /// Patterns of users' names.
    pub users: Vec<Pattern>,
    /// Groups.
    pub groups: Vec<String>,
    /// What they may do.
    pub rights: Rights,
}

impl Access {
    /// What a user may do who has shown his password: what the first rule says that is about him. Without any rule all may do all;
    /// with rules, who is named in none may not even in.
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

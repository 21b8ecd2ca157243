//! Logins, and access to items.
//!
//! [`Access`] is the operator's configuration, as data that can be replaced while the hub runs. Passwords and tokens are not verified here, because
//! verification is slow by design: the hub emits a [`Check`] and accepts a [`Verdict`].

mod back_off;
mod check;
mod gate;
mod pattern;
mod rights;
mod rules;

use std::net::SocketAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

pub use back_off::BackOff;
pub use check::{Check, CheckNumber, Checks, Proof, Secret, TokenHash, Verdict};
pub(crate) use gate::{Admission, Gate, Outcome, name_of};
pub use pattern::Pattern;
pub(crate) use rights::{NOT_ENTITLED, Pass, Pending};
pub use rules::{Action, Code, Coded, Rule};
pub(crate) use rules::{Codes, Decision, OPEN, Wanted, all_or_any, decide};

/// The credentials that a client must send with its login.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoginPolicy {
    /// None: every client is accepted under the name that it gives.
    #[default]
    Open,
    /// A password, in the attribute `Password` of the login.
    Password,
    /// A token, in the attribute `AuthenticationToken`, or as a name of type 3.
    Token,
}

/// A user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct User {
    /// The user name, as in the login and in rules.
    pub name: Box<str>,
    /// The hash of the password in PHC format; empty for a user who can log in with a token only.
    pub password_hash: Arc<str>,
    /// The hashes of the user's tokens.
    pub tokens: Vec<TokenHash>,
    /// The user's groups: see [`Rule::groups`].
    pub groups: Vec<Box<str>>,
    /// Maximum number of simultaneous connections; `None` for [`Access::max_connections`].
    pub max_connections: Option<usize>,
    /// Maximum number of open items on all connections together; `None` for [`Access::max_streams`].
    pub max_streams: Option<usize>,
}

impl User {
    /// Returns a user in no group, without a password or token.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}

/// The set of users.
#[derive(Debug, Clone, Default)]
pub struct Users {
    users: Vec<User>,
    by_name: HashMap<Box<str>, usize, RandomState>,
    tokens: Arc<[TokenHash]>,
    /// The owner of each token.
    owners: Vec<usize>,
    /// Users with passwords; an unknown name is compared with one of them.
    with_password: Vec<usize>,
}

impl Users {
    /// Creates the set of these users. If two have the same name, the last one counts.
    #[must_use]
    pub fn new(users: Vec<User>) -> Self {
        let by_name = users.iter().zip(0..).map(|(user, at)| (user.name.clone(), at)).collect();
        let owned = users.iter().zip(0..);
        let owned = owned.flat_map(|(user, at)| user.tokens.iter().map(move |token| (*token, at)));
        let (tokens, owners): (Vec<_>, Vec<_>) = owned.unzip();
        let has_password = |at: &usize| users.get(*at).is_some_and(|user| !user.password_hash.is_empty());
        let with_password = (0..users.len()).filter(has_password).collect();
        Self { by_name, tokens: tokens.into(), owners, with_password, users }
    }

    /// Returns the user of this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&User> {
        self.users.get(*self.by_name.get(name)?)
    }

    /// Returns `true` if any user is in this group.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.users.iter().any(|user| user.groups.iter().any(|other| **other == *group))
    }

    /// Returns the number of users.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Returns `true` if there are no users.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// Returns the hash to compare with the password of a user, and `true` if there is such a user with a password. For any other name the hash is
    /// that of another user, always the same for one name, so that the response time reveals nothing.
    #[must_use]
    pub fn password_hash(&self, name: &str) -> (Arc<str>, bool) {
        if let Some(user) = self.find(name).filter(|user| !user.password_hash.is_empty()) {
            return (user.password_hash.clone(), true);
        }
        let hash = std::hash::BuildHasher::hash_one(self.by_name.hasher(), name);
        let other = usize::try_from(hash % self.with_password.len().max(1) as u64).unwrap_or_default();
        let other = self.with_password.get(other).and_then(|at| self.users.get(*at));
        (other.map_or_else(|| DECOY.into(), |user| user.password_hash.clone()), false)
    }
}

/// A hash of the usual cost for unknown names, if no user has a password.
const DECOY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The operator's configuration of logins and of access to items.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The credentials that a login requires.
    pub login: LoginPolicy,
    /// `true` to accept passwords and tokens from other machines over connections without TLS.
    pub plain_secrets: bool,
    /// The users; with an open login only their groups and limits apply.
    pub users: Users,
    /// The rules for access to items. The first rule that matches decides; without a match access is denied. No rules permit everything.
    pub rules: Vec<Rule>,
    /// Permission codes for items without permission data; the first entry that matches applies.
    pub codes: Vec<Coded>,
    /// Maximum number of simultaneous connections of one user; `None` for no limit but the hub's.
    pub max_connections: Option<usize>,
    /// Maximum number of open items on all connections of one user together.
    pub max_streams: Option<usize>,
}

impl Access {
    /// Returns `true` if every user may see everything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns `true` if a rule depends on permission codes.
    pub(crate) fn uses_codes(&self) -> bool {
        self.rules.iter().any(|rule| !rule.codes.is_empty())
    }

    /// Returns the codes of an item with this permission data; `None` stands for an item without an image so far.
    pub(crate) fn codes_of<'a>(
        &'a self,
        service: &str,
        name: &[u8],
        permission: Option<&'a [u8]>,
    ) -> Codes<'a> {
        let fits = |coded: &&Coded| {
            all_or_any(&coded.services, service.as_bytes()) && all_or_any(&coded.items, name)
        };
        match (self.codes.iter().find(fits), permission) {
            (Some(coded), None | Some([])) => Codes::Listed(&coded.codes),
            (_, Some(data)) => Codes::Data(data),
            (None, None) => Codes::NotYet,
        }
    }

    /// Returns the maximum number of connections of a user.
    fn connections_of(&self, user: &str) -> Option<usize> {
        self.users.find(user).and_then(|user| user.max_connections).or(self.max_connections)
    }
}

/// The client's end of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    /// The address; `None` if unknown.
    pub address: Option<SocketAddr>,
    /// `true` if the connection is encrypted.
    pub is_encrypted: bool,
    /// `true` if the connection uses JSON, which cannot name an item's group: the state of a group is sent item by item.
    pub is_json: bool,
}

impl Peer {
    /// Returns `true` if no other machine can read a password on this connection.
    fn is_private(&self) -> bool {
        self.is_encrypted || self.address.is_some_and(|address| address.ip().to_canonical().is_loopback())
    }
}

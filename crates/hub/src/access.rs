//! Who may in, and who may see what.
//!
//! [`Access`] is what an operator has set, as data that can be replaced while the hub runs. Whether a password or a token is
//! right is not found out here: it takes long, on purpose. A [`Check`] goes out and a [`Verdict`] comes back.

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

/// What a client has to show to be let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoginPolicy {
    /// Nothing: everybody is who they say they are.
    #[default]
    Open,
    /// A password, in the attribute `Password` of the login.
    Password,
    /// A token, in the attribute `AuthenticationToken`, or as a name of type 3.
    Token,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name, as it is in a login and in rules.
    pub name: Box<str>,
    /// What a password is held against, in PHC's format; empty for one that can log in with a token only.
    pub password_hash: Arc<str>,
    /// What a token is held against.
    pub tokens: Vec<TokenHash>,
    /// Groups that the user is in: see [`Rule::groups`].
    pub groups: Vec<Box<str>>,
    /// Connections at a time, where it is not [`Access::max_connections`].
    pub max_connections: Option<usize>,
    /// Open items on all connections together, where it is not [`Access::max_streams`].
    pub max_streams: Option<usize>,
}

impl User {
    /// In no group, and with nothing that could be shown.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            password_hash: "".into(),
            tokens: Vec::new(),
            groups: Vec::new(),
            max_connections: None,
            max_streams: None,
        }
    }
}

/// The users that there are.
#[derive(Debug, Clone, Default)]
pub struct Users {
    users: Vec<User>,
    by_name: HashMap<Box<str>, usize, RandomState>,
    tokens: Arc<[TokenHash]>,
    /// Whose each of them is.
    owners: Vec<usize>,
    /// Those who have passwords: who is not there is held against one of them.
    with_password: Vec<usize>,
}

impl Users {
    /// These. Of two with one name, the last counts.
    #[must_use]
    pub fn new(users: Vec<User>) -> Self {
        let by_name = users.iter().zip(0..).map(|(user, at)| (user.name.clone(), at)).collect();
        let (tokens, owners): (Vec<_>, Vec<_>) = users
            .iter()
            .zip(0..)
            .flat_map(|(user, at)| user.tokens.iter().map(move |token| (*token, at)))
            .unzip();
        let has_password = |at: &usize| users.get(*at).is_some_and(|user| !user.password_hash.is_empty());
        let with_password = (0..users.len()).filter(has_password).collect();
        Self { by_name, tokens: tokens.into(), owners, with_password, users }
    }

    /// One of them.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&User> {
        self.users.get(*self.by_name.get(name)?)
    }

    /// Whether one of them is in this group.
    #[must_use]
    pub fn has_group(&self, group: &str) -> bool {
        self.users.iter().any(|user| user.groups.iter().any(|other| **other == *group))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.users.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.users.is_empty()
    }

    /// What the password of somebody of this name is held against, and whether there is such a user with a password. For
    /// others it is the hash of some user, always the same one for a name: how long the answer takes says nothing.
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

/// Nobody's hash, where no user has one: of the usual cost.
const DECOY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// What an operator has set of who may in, and who may see what.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// What is to be shown at login.
    pub login: LoginPolicy,
    /// Take passwords and tokens over connections without TLS from other machines, too.
    pub plain_secrets: bool,
    /// The users; with an open login only their groups and limits count.
    pub users: Users,
    /// Who may see what, if anything is said: the first rule that fits decides, and who fits none may not.
    pub rules: Vec<Rule>,
    /// Codes of items that have no permission data: the first that fits.
    pub codes: Vec<Coded>,
    /// Connections of one user at a time; `None` for as many as the hub takes.
    pub max_connections: Option<usize>,
    /// Open items on all connections of one user together.
    pub max_streams: Option<usize>,
}

impl Access {
    /// Whether anybody may see everything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether a rule asks for permission codes.
    pub(crate) fn uses_codes(&self) -> bool {
        self.rules.iter().any(|rule| !rule.codes.is_empty())
    }

    /// What is known of the codes of an item with this permission data; `None` where no image has come.
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

    /// How many connections a user may have.
    fn connections_of(&self, user: &str) -> Option<usize> {
        self.users.find(user).and_then(|user| user.max_connections).or(self.max_connections)
    }
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Peer {
    /// Where it is; `None` where that is not known.
    pub address: Option<SocketAddr>,
    /// Nobody on the way can read what is sent.
    pub is_encrypted: bool,
    /// It speaks JSON, which has no word for an item's group: the state of a group is told item by item.
    pub is_json: bool,
}

impl Peer {
    /// Whether a password on this connection can be read by nobody but this machine.
    fn is_private(&self) -> bool {
        self.is_encrypted || self.address.is_some_and(|address| address.ip().to_canonical().is_loopback())
    }
}

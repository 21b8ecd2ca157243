//! The rights of a session.

use std::sync::Arc;

use tapeline_omm::rwf::StateCode;

use super::rules::OPEN;
use super::{Access, CheckNumber, Decision, Outcome, Peer, TokenHash, Wanted, decide};
use crate::session::Refusal;

/// A session's login state.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) peer: Peer,
    /// The login under check.
    pub(crate) pending: Option<Pending>,
    /// The result of the check, for the next step of the session.
    pub(crate) outcome: Option<Outcome>,
    /// The rights of the user who is logged in.
    pub(crate) rights: Option<Rights>,
}

/// A login that waits for its check.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: CheckNumber,
    /// The request without its credentials.
    pub(crate) request: Vec<u8>,
    /// `true` if it renews a login.
    pub(crate) is_reissue: bool,
}

#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) access: Arc<Access>,
    pub(crate) token: Option<TokenHash>,
    /// Indices of the rules that apply to the user.
    rules: Vec<u32>,
    /// Maximum number of open items on all connections together.
    pub(crate) max_streams: Option<usize>,
}

/// The refusal of an item without access.
pub(crate) const NOT_ENTITLED: Refusal =
    Refusal::closed(StateCode::NOT_ENTITLED, "This user is not entitled to this item");

impl Rights {
    pub(crate) fn of(access: Arc<Access>, user: &str, token: Option<TokenHash>) -> Self {
        let known = access.users.find(user);
        let groups = known.map_or(&[][..], |user| &user.groups);
        let about = access.rules.iter().zip(0..).filter(|(rule, _)| rule.is_about(user, groups));
        Self {
            token,
            rules: about.map(|(_, place)| place).collect(),
            max_streams: known.and_then(|user| user.max_streams).or(access.max_streams),
            access,
        }
    }

    /// Returns the decision on an item. Without any rules everything is permitted.
    pub(crate) fn decide(&self, wanted: &Wanted<'_>) -> Decision {
        if self.access.is_open() {
            return Decision::Decided(OPEN);
        }
        decide(self.rules.iter().filter_map(|place| self.access.rules.get(*place as usize)), wanted)
    }
}

//! What a session is let in with.

use std::sync::Arc;

use tapeline_omm::rwf::StateCode;

use super::rules::OPEN;
use super::{Access, CheckNumber, Decision, Outcome, Peer, TokenHash, Wanted, decide};
use crate::session::Refusal;

/// A session's part in who may what.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) peer: Peer,
    /// The login that is being checked.
    pub(crate) pending: Option<Pending>,
    /// What came out, to be acted on at the session's next turn.
    pub(crate) outcome: Option<Outcome>,
    /// Who is logged in, and with what.
    pub(crate) rights: Option<Rights>,
}

/// A login that waits for its check.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) number: CheckNumber,
    /// The request, without what was to be checked.
    pub(crate) request: Vec<u8>,
    /// It renews a login.
    pub(crate) is_reissue: bool,
}

/// What a user may.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) access: Arc<Access>,
    /// The token that was shown.
    pub(crate) token: Option<TokenHash>,
    /// The rules that are about the user, by their places.
    rules: Vec<u32>,
    /// Open items on all connections together.
    pub(crate) max_streams: Option<usize>,
}

/// Of who asks for an item that is not theirs to see.
pub(crate) const NOT_ENTITLED: Refusal = Refusal {
    code: StateCode::NOT_ENTITLED,
    text: "This user is not entitled to this item",
    may_recover: false,
};

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

    /// What may be done with an item. Without any rule that is everything.
    pub(crate) fn decide(&self, wanted: &Wanted<'_>) -> Decision {
        if self.access.is_open() {
            return Decision::Decided(OPEN);
        }
        decide(self.rules.iter().filter_map(|place| self.access.rules.get(*place as usize)), wanted)
    }
}

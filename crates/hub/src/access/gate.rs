//! The handling of logins: checks, delays, limits and results.

use std::net::IpAddr;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use tapeline_nanos::Nanos;
use tapeline_omm::domain::{LoginRequest, login};
use tapeline_omm::rwf::StateCode;

use super::back_off::BackOff;
use super::check::{Check, CheckNumber, Checks, Proof, Secret, Verdict};
use super::rights::Rights;
use super::{Access, LoginPolicy, Pass, TokenHash};
use crate::SessionId;
use crate::event::AccessCounters;
use crate::session::Refusal;

/// Maximum size of a password or token in bytes: limits the memory that a client can use.
const LONGEST_SECRET: usize = 4096;

/// The immediate answer to a login.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Accepted.
    Granted,
    /// The credentials are being checked.
    Pending(CheckNumber),
    /// Refused.
    Refused(Refusal),
}

/// The result of a checked login.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The user; for a refused login, the user of the attempt.
    pub(crate) user: String,
    /// The matching token, or the reason for the refusal.
    pub(crate) result: Result<Option<TokenHash>, Refusal>,
}

/// A queued or running check.
#[derive(Debug)]
struct Attempt {
    /// The session that waits for it; `None` if the session is closed.
    session: Option<SessionId>,
    user: String,
    address: Option<IpAddr>,
    /// The configuration of the check.
    access: Arc<Access>,
    /// `true` if the user exists.
    is_known: bool,
    is_reissue: bool,
}

/// The logins of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    access: Arc<Access>,
    /// `true` if an item's permission data can affect access to it.
    pub(crate) uses_codes: bool,
    pub(crate) counters: AccessCounters,
    checks: Checks,
    attempts: HashMap<CheckNumber, Attempt, RandomState>,
    next: u64,
    /// Maximum number of simultaneous checks, not counting renewed logins.
    most: usize,
    back_off: BackOff,
    /// The sessions of each user with a login.
    sessions: HashMap<Box<str>, Vec<SessionId>, RandomState>,
}

impl Gate {
    pub(crate) fn new(access: Arc<Access>, most: usize) -> Self {
        Self { uses_codes: access.uses_codes(), access, most, ..Self::default() }
    }

    /// Replaces the configuration.
    pub(crate) fn set(&mut self, access: Arc<Access>) {
        self.uses_codes = access.uses_codes();
        self.access = access;
    }

    /// Returns `true` if this is the present configuration.
    pub(crate) fn is_current(&self, access: &Arc<Access>) -> bool {
        Arc::ptr_eq(&self.access, access)
    }

    /// Handles a login or its renewal.
    pub(crate) fn ask(
        &mut self,
        now: Nanos,
        session: SessionId,
        pass: &Pass,
        request: &LoginRequest<'_>,
        is_reissue: bool,
    ) -> Admission {
        if pass.pending.is_some() {
            return Admission::Refused(TWICE);
        }
        let (user, secret, missing) = match self.access.login {
            LoginPolicy::Open => return Admission::Granted,
            LoginPolicy::Password => (name_of(request), request.attributes.password, NO_PASSWORD),
            // The name in a login with a token identifies no user.
            LoginPolicy::Token => (&b""[..], token_of(request), NO_TOKEN),
        };
        // The credentials of the session were checked at login: at a renewal only a new token is checked, not a password.
        if is_reissue && (self.access.login == LoginPolicy::Password || secret.is_none()) {
            return Admission::Granted;
        }
        let Some(secret) = secret.filter(|secret| !secret.is_empty()) else {
            return Admission::Refused(missing);
        };
        if !pass.peer.is_private() && !self.access.plain_secrets {
            return Admission::Refused(PLAIN);
        }
        let user = String::from_utf8_lossy(user).into_owned();
        let address = pass.peer.address.map(|address| address.ip().to_canonical());
        if !is_reissue {
            if self.back_off.holds(now, &user, address) {
                return Admission::Refused(WAIT);
            }
            // One address may have fewer queued checks than the remaining capacity, so an address with many logins leaves capacity for others.
            if self.checks.of(address) >= self.most.saturating_sub(self.attempts.len()) {
                return Admission::Refused(BUSY);
            }
        }
        if secret.len() > LONGEST_SECRET {
            self.back_off.failed(now, &user, address);
            return Admission::Refused(wrong(&self.access));
        }
        let secret = Secret::new(secret);
        let (proof, is_known) = match self.access.login {
            LoginPolicy::Token => {
                (Proof::Token { token: secret, hashes: self.access.users.tokens.clone() }, true)
            }
            _ => {
                let (hash, is_known) = self.access.users.password_hash(&user);
                (Proof::Password { password: secret, hash }, is_known)
            }
        };
        self.counters.checks += 1;
        let number = CheckNumber(self.next);
        self.next += 1;
        let access = self.access.clone();
        let attempt = Attempt { session: Some(session), user, address, access, is_known, is_reissue };
        self.attempts.insert(number, attempt);
        self.checks.push(address, Check { number, proof });
        Admission::Pending(number)
    }

    pub(crate) fn next_check(&mut self) -> Option<Check> {
        self.checks.next()
    }

    /// Handles the verdict of a check; returns the session with its result.
    pub(crate) fn checked(
        &mut self,
        now: Nanos,
        number: CheckNumber,
        verdict: Verdict,
    ) -> Option<(SessionId, Outcome)> {
        let attempt = self.attempts.remove(&number)?;
        let Attempt { session, mut user, address, access, is_known, is_reissue } = attempt;
        let users = &access.users;
        let right = match verdict {
            Verdict::Right(place) if access.login == LoginPolicy::Token => {
                users.tokens.get(place).map(|token| Some(*token)).zip(users.owners.get(place).copied())
            }
            Verdict::Right(_) if is_known => users.by_name.get(user.as_str()).map(|owner| (None, *owner)),
            _ => None,
        };
        let result = match right.and_then(|(token, owner)| Some((token, users.users.get(owner)?))) {
            None => {
                if !is_reissue {
                    self.back_off.failed(now, &user, address);
                }
                Err(wrong(&access))
            }
            Some((token, shown)) => {
                user = shown.name.to_string();
                self.back_off.succeeded(now, &user, address);
                let (at, now) = (&shown.password_hash, self.access.users.find(&user));
                let still = match token {
                    Some(token) => now.is_some_and(|now| now.tokens.contains(&token)),
                    None => now.is_some_and(|now| now.password_hash == *at),
                };
                // The users were replaced meanwhile.
                if still { Ok(token) } else { Err(BUSY) }
            }
        };
        Some((session?, Outcome { user, result }))
    }

    /// Admits a session; returns its rights, or the reason for a refusal.
    pub(crate) fn enter(
        &mut self,
        session: SessionId,
        user: &str,
        token: Option<TokenHash>,
    ) -> Result<Rights, Refusal> {
        let most = self.access.connections_of(user);
        let sessions = self.sessions.entry_ref(user).or_default();
        if most.is_some_and(|most| sessions.len() >= most) {
            if sessions.is_empty() {
                self.sessions.remove(user);
            }
            return Err(TOO_MANY_CONNECTIONS);
        }
        sessions.push(session);
        Ok(Rights::of(self.access.clone(), user, token))
    }

    /// Returns a session's rights under the present configuration, or the reason why it has none.
    pub(crate) fn renew(&self, user: &str, token: Option<TokenHash>) -> Result<Rights, Refusal> {
        let known = self.access.users.find(user);
        let is_in = match self.access.login {
            LoginPolicy::Open => true,
            LoginPolicy::Password => known.is_some_and(|known| !known.password_hash.is_empty()),
            LoginPolicy::Token => {
                known.zip(token).is_some_and(|(known, token)| known.tokens.contains(&token))
            }
        };
        if is_in { Ok(Rights::of(self.access.clone(), user, token)) } else { Err(REVOKED) }
    }

    pub(crate) fn sessions_of(&self, user: &str) -> &[SessionId] {
        self.sessions.get(user).map_or(&[], |sessions| sessions)
    }

    /// Withdraws a check that no session waits for. A running check continues, and its failure counts.
    pub(crate) fn withdraw(&mut self, number: CheckNumber) {
        if self.checks.forget(number) {
            self.attempts.remove(&number);
        } else if let Some(attempt) = self.attempts.get_mut(&number) {
            attempt.session = None;
        }
    }

    /// Handles the end of a session.
    pub(crate) fn leave(&mut self, session: SessionId, user: &str, pass: &Pass) {
        if let Some(pending) = &pass.pending {
            self.withdraw(pending.number);
        }
        if pass.rights.is_some() {
            self.forget(session, user);
        }
    }

    /// Removes a session from its user's sessions.
    pub(crate) fn forget(&mut self, session: SessionId, user: &str) {
        if let Some(sessions) = self.sessions.get_mut(user) {
            sessions.retain(|other| *other != session);
            if sessions.is_empty() {
                self.sessions.remove(user);
            }
        }
    }
}

/// Returns the name in a login for logs; empty if it is a token or a cookie.
pub(crate) fn name_of<'a>(request: &LoginRequest<'a>) -> &'a [u8] {
    match request.name_type {
        login::USER_TOKEN | login::USER_COOKIE | login::USER_AUTHENTICATION_TOKEN => b"",
        _ => request.user,
    }
}

fn token_of<'a>(request: &LoginRequest<'a>) -> Option<&'a [u8]> {
    let named = (request.name_type == login::USER_TOKEN).then_some(request.user);
    request.attributes.authentication_token.or(named)
}

/// The refusal does not reveal whether the user exists.
fn wrong(access: &Access) -> Refusal {
    if access.login == LoginPolicy::Token { WRONG_TOKEN } else { WRONG_PASSWORD }
}

const fn refused(text: &'static str) -> Refusal {
    Refusal::closed(StateCode::NOT_ENTITLED, text)
}

const WRONG_PASSWORD: Refusal = refused("The name or the password is wrong");
const WRONG_TOKEN: Refusal = refused("The token is wrong");
const NO_PASSWORD: Refusal = refused("A password is needed to log in here");
const NO_TOKEN: Refusal = refused("A token is needed to log in here");
const PLAIN: Refusal =
    refused("Passwords and tokens are taken over TLS only: this one could be read on its way, change it");
const REVOKED: Refusal = refused("This user may not be logged in any more");
const WAIT: Refusal =
    Refusal::recover(StateCode::NOT_ENTITLED, "Too many logins have failed: try again in a minute");
const BUSY: Refusal =
    Refusal::recover(StateCode::NO_RESOURCES, "Too many log in at once: try again in a moment");
const TWICE: Refusal = Refusal::closed(StateCode::USAGE_ERROR, "The login before this one is being checked");
const TOO_MANY_CONNECTIONS: Refusal =
    Refusal::closed(StateCode::DACS_MAX_LOGINS_REACHED, "This user has as many connections as may be");

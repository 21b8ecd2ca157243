//! How a kdb+ client logs in: its greeting, and the check of its password on a thread of its own.

use tapeline_hub::access::{CheckNumber, Proof, Secret};
use tapeline_hub::{Check, Verdict};
use tapeline_kdb::Capability;
use tapeline_tickerplant::{Rights, SessionId};
use tapeline_wire::streams::StreamId;

use super::{Server, Stage};
use crate::access::worker::{Done, Job};

impl Server {
    /// Reads a client's greeting. Returns whether the client is logged in.
    pub(super) fn greet(&mut self, id: StreamId) -> bool {
        let Some(client) = self.clients.get_mut(&id) else { return false };
        let hello = match client.frames.hello() {
            Ok(Some(hello)) => hello,
            Ok(None) => return false,
            Err(fault) => {
                self.turn_away(id, &fault.to_string());
                return false;
            }
        };
        let capability = hello.capability;
        let Some(access) = &self.config.access else {
            self.welcome(id, capability, Rights::all(self.config.tables.len()));
            return true;
        };
        let user = String::from_utf8_lossy(hello.user).into_owned();
        let address = self.streams.peer_address(id).map(|address| address.ip());
        if self.back_off.holds(self.clock.now(), &user, address) {
            let why =
                format!("\"{}\" or its address has failed too often, and has to wait", user.escape_debug());
            self.turn_away(id, &why);
            return false;
        }
        // An unknown user is checked against another hash, so that the check takes as long.
        let (hash, is_user) = access.users.password_hash(&user);
        let proof = Proof::Password { password: Secret::new(hello.password), hash };
        self.last_check += 1;
        let number = CheckNumber(self.last_check);
        self.checks.push(address, Check { number, proof });
        self.waiting += 1;
        client.stage = Stage::Checking { number, user, is_user, capability };
        false
    }

    /// Answers a greeting with one byte: the capability common to both ends.
    fn welcome(&mut self, id: StreamId, capability: Capability, rights: Rights) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        client.stage = Stage::In;
        let common = capability.common(Capability::OURS);
        self.streams.send(id, &[common.0]);
        let is_far = self.streams.peer_address(id).is_some_and(|address| !address.ip().is_loopback());
        self.plant.open(SessionId(id.0), rights, is_far && common.unpacks());
    }

    /// Takes the result of the password thread and gives it the next check.
    pub(super) fn check_passwords(&mut self) -> crate::Result<bool> {
        let Some(worker) = &mut self.passwords else { return Ok(false) };
        let done = worker.done()?;
        if !worker.is_busy
            && let Some(check) = self.checks.next()
        {
            worker.begin(Job::Check(check));
        }
        let Some(Done::Checked(number, verdict)) = done else { return Ok(false) };
        self.waiting = self.waiting.saturating_sub(1);
        self.checked(number, verdict);
        Ok(true)
    }

    /// A password was checked.
    fn checked(&mut self, number: CheckNumber, verdict: Verdict) {
        // The client may have disconnected.
        let found = self.clients.iter().find_map(|(id, client)| match &client.stage {
            Stage::Checking { number: its, user, is_user, capability } if *its == number => {
                Some((*id, user, *is_user, *capability))
            }
            _ => None,
        });
        let Some((id, user, is_user, capability)) = found else { return };
        let is_right = is_user && verdict == Verdict::Right(0);
        let address = self.streams.peer_address(id).map(|address| address.ip());
        let now = self.clock.now();
        if is_right {
            self.back_off.succeeded(now, user, address);
        } else {
            self.back_off.failed(now, user, address);
        }
        let tables = self.config.tables.len();
        let rights =
            self.config.access.as_ref().filter(|_| is_right).and_then(|access| access.rights(user, tables));
        match rights {
            Some(rights) => {
                self.welcome(id, capability, rights);
                // What the client has sent meanwhile was not read.
                self.streams.look_again(id);
            }
            None => {
                let why =
                    format!("\"{}\" is not a user with this password, or has no rights", user.escape_debug());
                self.turn_away(id, &why);
            }
        }
    }
}

//! `[feed.recovery]`: the servers that retransmit messages that are missing on every line.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_feed::Framing;
use tapeline_feed::soupbintcp::{Password, Username};
use tapeline_node::config::{RecoveryConfig, RecoveryKind as Kind};
use toml::Spanned;

use super::Source;
use crate::password;

/// Maximum number of servers of one feed.
const MAX_SERVERS: usize = 8;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRecovery {
    kind: Option<Spanned<String>>,
    servers: Spanned<Vec<Spanned<String>>>,
    timeout: Option<Spanned<String>>,
    tries: Option<Spanned<u32>>,
    time: Option<Spanned<String>>,
    requests_per_second: Option<Spanned<u64>>,
    max_hole: Option<Spanned<u64>>,
    user: Option<Spanned<String>>,
    password_file: Option<Spanned<PathBuf>>,
}

impl Source<'_> {
    /// Checks a feed's recovery; `framing` is the framing of its lines, if it has lines.
    pub(super) fn recovery(
        &self,
        raw: RawRecovery,
        framing: Option<Framing>,
    ) -> anyhow::Result<RecoveryConfig> {
        let span = raw.servers.span();
        if framing != Some(Framing::MoldUdp64) {
            let hint =
                "leave [feed.recovery] out: this protocol's lines have no numbers that a server here knows";
            return Err(self.wrong(span, "only feeds in MoldUDP64 can be recovered", hint));
        }
        let servers = raw.servers.into_inner();
        if !(1..=MAX_SERVERS).contains(&servers.len()) {
            let what = format!("{} servers; 1 to {MAX_SERVERS} are expected", servers.len());
            return Err(self.wrong(span, what, "such as servers = [\"10.0.0.5:26479\", \"10.0.0.6:26479\"]"));
        }
        let address = |server: &Spanned<String>| {
            server.get_ref().parse().map_err(|_| {
                let what = format!("server \"{}\" is not an IPv4 address with a port", server.get_ref());
                self.wrong(server.span(), what, "such as \"10.0.0.5:26479\"")
            })
        };
        let servers = servers.iter().map(address).collect::<anyhow::Result<Vec<_>>>()?;
        let login = self.one_of(
            "kind",
            &raw.kind,
            [("moldudp64", false), ("soupbintcp", true)],
            "the servers' protocol; \"moldudp64\" if left out",
        )?;
        let kind = match (&raw.user, login) {
            (Some(user), false) => {
                let hint = "only kind = \"soupbintcp\" has logins";
                return Err(self.wrong(user.span(), "MoldUDP64 has no login", hint));
            }
            (None, false) => Kind::MoldUdp64,
            (None, true) => Kind::SoupBinTcp { username: Username::new(""), password: Password::new("") },
            (Some(user), true) => Kind::SoupBinTcp {
                username: arguments::soup_user(user.get_ref())
                    .map(|name| Username::new(&name))
                    .map_err(|error| self.wrong(user.span(), error, "such as user = \"user01\""))?,
                password: password::read(
                    raw.password_file.as_ref().map(|file| self.beside(file.get_ref())).as_deref(),
                )?,
            },
        };
        let some = |given, hint: &str| self.time(given, arguments::some_duration, hint);
        let timeout = some(&raw.timeout, "timeout = \"250ms\" is the default");
        let time = some(&raw.time, "time = \"5s\" is the default");
        Ok(RecoveryConfig {
            kind,
            servers,
            timeout: timeout.unwrap_or(Duration::from_millis(250)),
            tries: raw.tries.map_or(4, Spanned::into_inner).max(1),
            time: time.unwrap_or(Duration::from_secs(5)),
            requests_per_second: raw.requests_per_second.map_or(1_000, Spanned::into_inner).max(1),
            max_hole: raw.max_hole.map_or(20_000, Spanned::into_inner),
        })
    }
}

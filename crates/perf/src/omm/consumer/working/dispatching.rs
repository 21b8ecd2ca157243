//! The two halves of a consumer's thread with API dispatch: one receives and performs the role's timed work, the
//! other requests items, posts and sends.

use std::time::Duration;

use tapeline_wire::rssl::Reactor;

use super::super::super::dispatching::{self, Dispatched};
use super::{Stage, Working, now};

/// What the two halves share.
struct Halves<'a, 'w> {
    working: &'a mut Working<'w>,
    reactor: &'a mut Reactor,
}

/// Runs a connection's work with an additional dispatching thread on this core, or on any.
pub(super) fn run(
    working: &mut Working<'_>,
    reactor: &mut Reactor,
    core: Option<usize>,
) -> anyhow::Result<()> {
    let number = working.thread;
    dispatching::run(&mut Halves { working, reactor }, number, core)?;
    working.log_out(reactor)
}

impl Dispatched for Halves<'_, '_> {
    fn reactor(&mut self) -> &mut Reactor {
        self.reactor
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        let Self { working, reactor } = self;
        let now = now();
        working.receive(reactor, now)?;
        working.disconnect(reactor);
        working.connect(reactor, now)?;
        working.tick_roles(reactor, now);
        Ok(match working.stage {
            Stage::Waiting => working.servers.iter().any(|server| server.consumer.is_ready()),
            Stage::Startup => working.taking.has_all(),
            Stage::Steady(_) => false,
            Stage::Over => true,
        })
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        let Self { working, reactor } = self;
        if working.is_over() {
            return Ok(None);
        }
        let now = now();
        working.look_for_service(now);
        working.ask(now)?;
        let next = working.tick(reactor, now)?;
        working.say_standing();
        working.count_requests();
        working.taking.say_unknown();
        working.taking.link.settle();
        Ok(Some(working.wait(next)))
    }
}

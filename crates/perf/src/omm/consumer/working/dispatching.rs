//! The two halves of a consumer's thread with API dispatch: one receives and performs the role's timed work, the
//! other requests items, posts and sends.

use std::time::Duration;

use tapeline_wire::rssl::Reactor;

use super::super::super::dispatching::{self, Dispatched};
use super::super::taking::Taking;
use super::{Stage, Working, now};

struct Halves<'a> {
    working: &'a mut Working,
    taking: &'a mut Taking,
}

/// Runs a connection's work with an additional dispatching thread on this core, or on any.
pub(super) fn run(working: &mut Working, taking: &mut Taking, core: Option<usize>) -> anyhow::Result<()> {
    let number = working.thread;
    dispatching::run(&mut Halves { working, taking }, number, core)?;
    working.log_out(taking)
}

impl Dispatched for Halves<'_> {
    fn reactor(&mut self) -> &mut Reactor {
        &mut self.working.reactor
    }

    fn take(&mut self) -> anyhow::Result<bool> {
        let Self { working, taking } = self;
        let now = now();
        working.receive(now, taking)?;
        working.disconnect(taking);
        working.connect(now, taking)?;
        working.tick_roles(now, taking);
        Ok(match working.stage {
            Stage::Waiting => working.servers.iter().any(|server| server.consumer.is_ready()),
            Stage::Startup => taking.has_all(),
            Stage::Steady(_) => false,
            Stage::Over => true,
        })
    }

    fn perform(&mut self) -> anyhow::Result<Option<Duration>> {
        let Self { working, taking } = self;
        if working.is_over(taking) {
            return Ok(None);
        }
        let now = now();
        working.look_for_service(now, taking);
        working.ask(now, taking)?;
        let next = working.tick(now, taking)?;
        working.say_standing(taking);
        working.count_requests(taking);
        taking.say_unknown();
        taking.link.settle();
        Ok(Some(working.wait(next)))
    }
}

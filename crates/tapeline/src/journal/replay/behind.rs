//! Ticks that the live ring no longer has, out of the journal.

use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_node::journal_follower::{Expect, JournalFollower};
use tapeline_ring::Subscriber;

use super::{NAP, Onto};
use crate::journal::hinted;

/// Records that are taken before the ring has its turn: one of the usual size holds twenty times as many ticks.
const AT_A_TIME: usize = 4_096;

/// How far the journal went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetched {
    /// As far as it was to.
    All,
    /// Not as far, and it has more.
    Part,
    /// Not as far, and it has no more for now.
    End,
}

impl Onto<'_> {
    /// Publishes what stands between the last tick and one that the ring has, up to `up_to`, if the journal has that at once: `false` if not.
    pub(super) fn fill(&mut self, reader: &mut Reader<Directory>, up_to: u64) -> anyhow::Result<bool> {
        // What came from the ring since is in the journal too.
        self.go_behind(reader)?;
        Ok(self.fetch(reader, up_to)? == Fetched::All)
    }

    /// Publishes out of the journal until the ring, which is passed over meanwhile, can go on: it holds up nobody, however long the journal
    /// takes, or the plant is without one.
    pub(super) fn catch_up(
        &mut self,
        reader: &mut Reader<Directory>,
        live: &mut Subscriber,
        beside: &mut JournalFollower,
    ) -> anyhow::Result<()> {
        while self.goes_on()? {
            beside.pass(live)?;
            match self.fetch(reader, beside.up_to())? {
                Fetched::All => return Ok(()),
                Fetched::Part => continue,
                Fetched::End => {}
            }
            let last = self.done.last.unwrap_or_default();
            match beside.look(live, last)? {
                Expect::Nothing => return Ok(()),
                Expect::More => {
                    anyhow::ensure!(beside.has_ended() || live.publisher_alive()?, "the plant has died");
                    self.ring.flush();
                    self.stop.sleep(NAP);
                }
                Expect::End => {
                    if last < beside.newest() {
                        self.miss(last + 1, beside.newest());
                    }
                    return Ok(());
                }
            }
        }
        self.done.is_interrupted = true;
        Ok(())
    }

    /// Publishes what the journal has, up to a sequence. Of a hole no more is missing than up to there: the ring may have the rest.
    fn fetch(&mut self, reader: &mut Reader<Directory>, up_to: u64) -> anyhow::Result<Fetched> {
        for _ in 0..AT_A_TIME {
            if self.done.last >= Some(up_to) {
                return Ok(Fetched::All);
            }
            if self.stop.requested() {
                break;
            }
            match reader.next().map_err(broken)? {
                Next::Record(record) => self.record(&record)?,
                Next::Missing { from, to } if to <= up_to => self.miss(from, to),
                Next::Missing { from, .. } => {
                    self.miss(from, up_to);
                    reader.seek(From::Seq(up_to + 1)).map_err(broken)?;
                }
                Next::End => return Ok(Fetched::End),
            }
        }
        Ok(Fetched::Part)
    }
}

fn broken(error: tapeline_journal::Error) -> anyhow::Error {
    hinted("the journal cannot be read on", error)
}

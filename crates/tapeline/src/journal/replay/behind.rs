//! Reads ticks that the live ring no longer has from the journal.

use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_node::journal_follower::{Expect, JournalFollower};
use tapeline_ring::Subscriber;

use super::{NAP, Onto};
use crate::journal::broken;

/// Records taken before the ring is read again: a ring of the usual size has twenty times as many ticks.
const AT_A_TIME: usize = 4_096;

/// How far the journal was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetched {
    /// Up to the requested sequence.
    All,
    /// Not up to it, but the journal has more.
    Part,
    /// Not up to it, and the journal has no more for now.
    End,
}

impl Onto<'_> {
    /// Publishes the ticks after the last one up to `up_to`, if the journal has them now; `false` if not.
    pub(super) fn fill(&mut self, reader: &mut Reader<Directory>, up_to: u64) -> anyhow::Result<bool> {
        // The journal also contains what came from the ring since.
        self.go_behind(reader)?;
        Ok(self.fetch(reader, up_to)? == Fetched::All)
    }

    /// Publishes from the journal until the ring can continue. The ring is skipped meanwhile, so that this reader
    /// blocks nobody, however slow the journal is, and even if the plant has none.
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
                    if last < beside.newest {
                        self.miss(last + 1, beside.newest);
                    }
                    return Ok(());
                }
            }
        }
        self.done.is_interrupted = true;
        Ok(())
    }

    /// Publishes from the journal up to a sequence. A gap counts as missing only up to that sequence: the ring may
    /// have the rest.
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

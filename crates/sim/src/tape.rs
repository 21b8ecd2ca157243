//! The simulated ring: everything that the plant has published, and the hub's read position.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tapeline_measure::Nanos;
use tapeline_node::image_server::{ImageReader, ImageServer};
use tapeline_node::ticks::{Lost, Next, Position, Ticks};
use tapeline_plant::tick::Tick;
use tapeline_plant::{Publish, Refused, Time};
use tapeline_ring::SubscriberId;

/// Limit of ticks that a reader can view ahead.
const AHEAD: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Clock(Rc<Cell<u64>>);

impl Clock {
    pub(crate) fn at(now: u64) -> Self {
        Self(Rc::new(Cell::new(now)))
    }

    pub(crate) fn set(&self, now: u64) {
        self.0.set(now);
    }
}

impl Time for Clock {
    fn now(&self) -> Nanos {
        Nanos(self.0.get())
    }
}

/// A gated ring: the plant takes no datagram while too many ticks are unread. With a stall limit, a reader that
/// has kept the ring full for that time loses its place and continues at the oldest tick that is still in the
/// ring; without a limit nothing is lost.
///
/// The production ring holds the plant back in the middle of a datagram's messages. Here it is held back between
/// datagrams, because no second thread could free capacity meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Tape(Rc<RefCell<Reel>>);

#[derive(Debug, Default)]
struct Reel {
    frames: Vec<Rc<[u8]>>,
    /// Number of ticks that the hub has read or lost.
    read: usize,
    room: usize,
    /// 0 means no limit.
    stall_limit_ns: u64,
    /// The time since which the ring has been full.
    full_since: Option<u64>,
    /// The reader has lost its place and has not noticed it yet.
    is_evicted: bool,
    /// Number of ticks that the reader has lost.
    lost: usize,
    /// Positions of the ticks taken since the last [call](Tape::take_log), each with the ticks lost by then.
    log: Vec<(usize, usize)>,
    /// The process of the hub has ended.
    has_no_hub: bool,
    /// Number of ticks contained in the stored images, if images are stored.
    imaged: Option<usize>,
    /// Whether there is a journal, and the number of ticks that it has taken.
    has_journal: bool,
    kept: usize,
}

impl Tape {
    /// A ring with capacity for `room` unread ticks, and a stall limit (0 means none).
    pub(crate) fn new(room: usize, stall_limit_ns: u64) -> Self {
        Self(Rc::new(RefCell::new(Reel { room, stall_limit_ns, ..Reel::default() })))
    }

    /// Whether the plant may publish.
    pub(crate) fn has_room(&self, now: u64) -> bool {
        let mut reel = self.0.borrow_mut();
        if reel.imaged.is_some_and(|imaged| reel.frames.len() - imaged >= reel.room) {
            return false;
        }
        if reel.has_journal && reel.frames.len() - reel.kept >= reel.room {
            // The journal is exempt from the stall limit.
            return false;
        }
        if reel.is_evicted || reel.has_no_hub || reel.frames.len() - reel.read < reel.room {
            reel.full_since = None;
            return true;
        }
        let since = *reel.full_since.get_or_insert(now);
        reel.is_evicted = reel.stall_limit_ns > 0 && now >= since + reel.stall_limit_ns;
        reel.is_evicted
    }

    /// Up to `most` ticks from `place` on, for the journal.
    pub(crate) fn frames_from(&self, place: usize, most: usize) -> Vec<Rc<[u8]>> {
        self.0.borrow().frames.iter().skip(place).take(most).cloned().collect()
    }

    /// Sets the number of ticks that the journal has taken.
    pub(crate) fn keep(&self, taken: usize) {
        let mut reel = self.0.borrow_mut();
        (reel.has_journal, reel.kept) = (true, taken);
    }

    pub(crate) fn published(&self) -> usize {
        self.0.borrow().frames.len()
    }

    /// Number of ticks that the hub has read or lost.
    pub(crate) fn read(&self) -> usize {
        self.0.borrow().read
    }

    /// Number of ticks that the hub has lost.
    pub(crate) fn lost(&self) -> usize {
        self.0.borrow().lost
    }

    /// Positions of the ticks taken since the last call, each with the number of ticks lost by then.
    pub(crate) fn take_log(&self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.0.borrow_mut().log)
    }

    pub(crate) fn frame(&self, place: usize) -> Rc<[u8]> {
        Rc::clone(&self.0.borrow().frames[place])
    }

    /// The hub's process ends.
    pub(crate) fn leave(&self) {
        let mut reel = self.0.borrow_mut();
        (reel.has_no_hub, reel.is_evicted) = (true, false);
    }

    /// Another hub joins, at the oldest tick that is still there.
    pub(crate) fn join(&self) {
        let mut reel = self.0.borrow_mut();
        reel.has_no_hub = false;
        reel.read = reel.frames.len().saturating_sub(reel.room);
        (reel.lost, reel.full_since) = (0, None);
        reel.log.clear();
    }

    /// The read position of the image store.
    pub(crate) fn imager(&self) -> Imager {
        self.0.borrow_mut().imaged = Some(0);
        Imager { tape: self.clone(), taken: Rc::default() }
    }
}

impl Publish for Tape {
    fn publish(&mut self, len: usize, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<(), Refused> {
        // A ring's buffer contains arbitrary old data.
        let mut frame = vec![0xEE; len];
        let used = fill(&mut frame);
        if used > len {
            return Err(Refused::TooLong { len: used, max: len });
        }
        frame.truncate(used);
        self.0.borrow_mut().frames.push(frame.into());
        Ok(())
    }
}

/// The hub's read position on the tape.
#[derive(Debug)]
pub(crate) struct Reader {
    tape: Tape,
    /// The last tick taken.
    taken: Rc<[u8]>,
    images: Option<Pictures>,
}

/// The image store, as the hub accesses it.
pub(crate) type Pictures = Rc<RefCell<ImageServer<Imager>>>;

impl Reader {
    pub(crate) fn of(tape: Tape, images: Option<Pictures>) -> Self {
        Self { tape, taken: Rc::default(), images }
    }
}

/// The read position of the image store, which is never lost.
#[derive(Debug)]
pub(crate) struct Imager {
    tape: Tape,
    taken: Rc<[u8]>,
}

impl Ticks for Imager {
    fn next(&mut self) -> tapeline_node::Result<Next<'_>> {
        let mut reel = self.tape.0.borrow_mut();
        let at = reel.imaged.unwrap_or_default();
        let Some(frame) = reel.frames.get(at) else { return Ok(Next::Nothing) };
        self.taken = Rc::clone(frame);
        reel.imaged = Some(at + 1);
        Ok(Next::Tick(Tick::parse(&self.taken).expect("the plant publishes ticks")))
    }
}

impl Ticks for Reader {
    fn next(&mut self) -> tapeline_node::Result<Next<'_>> {
        let mut reel = self.tape.0.borrow_mut();
        if reel.is_evicted {
            let limit = Duration::from_nanos(reel.stall_limit_ns);
            return Ok(Next::Lost(Lost::new(reel.read as u64, limit)));
        }
        let Some(frame) = reel.frames.get(reel.read) else { return Ok(Next::Nothing) };
        self.taken = Rc::clone(frame);
        reel.read += 1;
        let (at, lost) = (reel.read - 1, reel.lost);
        reel.log.push((at, lost));
        Ok(Next::Tick(Tick::parse(&self.taken).expect("the plant publishes ticks")))
    }
}

impl Position for Reader {
    fn ahead<T>(&mut self, mut view: impl FnMut(&[u8]) -> T) -> impl Iterator<Item = T> {
        let reel = self.tape.0.borrow();
        let ahead: Vec<T> = match reel.is_evicted {
            true => Vec::new(),
            false => reel.frames.iter().skip(reel.read).take(AHEAD).map(|frame| view(frame)).collect(),
        };
        ahead.into_iter()
    }

    fn has_next(&self) -> bool {
        let reel = self.tape.0.borrow();
        reel.read < reel.frames.len() && !reel.is_evicted
    }

    fn epoch(&self) -> u32 {
        // A restarted plant has a new tape and a new hub.
        1
    }

    fn seat(&self) -> Option<SubscriberId> {
        None
    }

    fn ring(&self) -> String {
        "simulated".to_owned()
    }

    fn rejoin(&mut self, _reader: &str) -> tapeline_node::Result<bool> {
        let mut reel = self.tape.0.borrow_mut();
        reel.is_evicted = false;
        let oldest = reel.frames.len().saturating_sub(reel.room).max(reel.read);
        let passed = oldest - std::mem::replace(&mut reel.read, oldest);
        reel.lost += passed;
        Ok(true)
    }

    fn images(&self) -> tapeline_node::Result<Option<ImageReader>> {
        self.images.as_ref().map(|images| images.borrow_mut().ask()).transpose()
    }
}

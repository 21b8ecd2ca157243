//! Images for readers that join late: `images` in `[plant]`. One more reader of the ring folds every tick,
//! and sends its images to clients of a socket next to the ring.
//!
//! ```text
//!  magic (8)   then, again and again: length (4), tick     then: 0 (4)
//! ```
//! Each tick carries what a reader present from the start would know: the state of each feed and of each
//! provider's service, then each item's image as a refresh, with the sequence number of the last tick in it.
//! A reader joins the ring before it asks, buffers the ticks that arrive meanwhile, and skips those that an
//! image already contains. So nothing has to pause: the images may be of different moments.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use tapeline_measure::{Clock, Nanos};
use tapeline_omm::Dictionary;
use tapeline_omm::domain::{Directory, directory};
use tapeline_omm::rwf::{DataState, Domain, Header, MapAction, MessageView};
use tapeline_plant::ItemId;
use tapeline_plant::cache::Limits;
use tapeline_plant::tick::{self, Flags, Kind, Tick};
use tapeline_ring::{Name, SubscriberId, Wait};
use tapeline_wire::local::{self, LocalListener};

use crate::Error;
use crate::error::Context;
use crate::events::Events;
use crate::readers::images::Images;
use crate::readers::reader::{self, Reader};
use crate::stat::file;
use crate::ticks::{Next, OnRing, Ticks};

/// The first bytes of the answer; another layout has another last digit.
const MAGIC: &[u8; 8] = b"tapeimg1";
/// The longest tick: the largest image that the hub's clients can be sent, with its framing.
const LONGEST: usize = 17 << 20;
/// Bytes prepared at a time.
const READY: usize = 256 << 10;
/// The maximum size of a directory entry.
const MOST_DIRECTORY: usize = 64 << 10;
/// Ticks taken between two looks at the socket.
const BATCH: usize = 64;
/// The longest sleep while the ring is quiet: while a reader is being answered, and otherwise.
const SHORT_SLEEP: Duration = Duration::from_micros(200);
const LONG_SLEEP: Duration = Duration::from_millis(10);
/// A reader that takes nothing for this long is disconnected.
const PATIENCE_NS: i64 = 5_000_000_000;
/// How often the server checks that the plant is alive.
const HOUSEKEEPING_NS: i64 = 1_000_000_000;

/// The settings of the image server.
#[derive(Debug)]
pub struct ImageServerConfig {
    /// Maximum bytes of all images together.
    pub bytes: usize,
    /// Largest item number with an image; ticks of items with larger numbers are ignored.
    pub max_items: usize,
    /// The services of the feeds and of the providers.
    pub services: Vec<u16>,
    /// The dictionary for partial text in images.
    pub dictionary: Arc<Dictionary>,
}

/// Returns the path of the socket that serves a ring's images.
pub(crate) fn path(ring: &Name) -> PathBuf {
    file::path(ring).with_extension("images")
}

/// The image server on its thread.
#[derive(Debug)]
pub(crate) struct RunningImageServer {
    reader: Reader<()>,
    listener: SyncSender<LocalListener>,
}

impl RunningImageServer {
    /// Starts the thread, which waits for the ring. Call before this thread is pinned.
    pub(crate) fn start(config: ImageServerConfig, events: &Events) -> crate::Result<Self> {
        let (listener, bound) = sync_channel(1);
        let reader = Reader::start("images", events, move |ring, subscriber, _| {
            let Ok(listener) = bound.recv() else { return Ok(()) };
            let ticks = OnRing { ring, subscriber };
            ImageServer { listener: Some(listener), ..ImageServer::new(&config, ticks) }.run()
        })?;
        Ok(Self { reader, listener })
    }

    /// The ring exists, and with it the name belongs to this plant. Returns when readers can connect: a hub that loses
    /// its position on the first ticks must not find a plant without images. The returned place on the ring must be
    /// [exempt](tapeline_ring::Publisher) from the stall limit: the thread could not continue without its position.
    pub(crate) fn join(&mut self, ring: &Name) -> crate::Result<SubscriberId> {
        let seat = self.reader.join(ring)?;
        let path = path(ring);
        let listener = LocalListener::bind(&path)
            .with_context(|| format!("cannot serve images at {}", path.display()))?;
        // If the thread has ended, its end is reported with the plant's.
        let _ = self.listener.send(listener);
        Ok(seat)
    }

    /// The ring has ended: waits until the thread has ended.
    pub(crate) fn end(self) -> crate::Result<()> {
        drop(self.listener);
        self.reader.end()
    }
}

/// Stores the images of all items and sends them to readers, one reader at a time. It never blocks: a plant
/// drives it on a thread, a simulation in its own environment.
#[derive(Debug)]
pub struct ImageServer<T> {
    ticks: T,
    listener: Option<LocalListener>,
    /// Readers that wait for their turn.
    waiting: VecDeque<UnixStream>,
    kept: KeptState,
    asking: Option<Asking>,
}

/// What the ticks so far have said.
#[derive(Debug)]
pub(crate) struct KeptState {
    images: Images,
    /// For each feed, the last status of the feed as a whole.
    feeds: Vec<Option<Vec<u8>>>,
    /// The directory of providers' services, and for each service the header of its last tick.
    directory: Directory,
    services: Vec<tick::Header>,
}

/// The reader being answered.
#[derive(Debug)]
struct Asking {
    stream: UnixStream,
    ready: Vec<u8>,
    /// Bytes of `ready` that were sent.
    sent: usize,
    next: usize,
    /// The number of items when the reader asked; the reader sees later items on the ring.
    end: usize,
    /// When the reader last took bytes.
    took: Nanos,
}

impl<T: Ticks> ImageServer<T> {
    /// Creates a server that reads these ticks, without a socket path: use [`ask`](Self::ask).
    #[must_use]
    pub fn new(config: &ImageServerConfig, ticks: T) -> Self {
        Self { ticks, listener: None, waiting: VecDeque::new(), kept: new_kept(config), asking: None }
    }

    /// Asks for the images from within the process.
    ///
    /// # Errors
    /// The system refuses a pair of sockets.
    pub fn ask(&mut self) -> crate::Result<ImageReader> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        self.waiting.push_back(ours);
        Ok(ImageReader::over(theirs))
    }

    /// Takes ticks and answers. Returns the number of ticks, or `None` once the ring has ended.
    ///
    /// # Errors
    /// The ring contains something that is not a tick, or the position on it is lost.
    pub fn turn(&mut self, now: Nanos) -> crate::Result<Option<usize>> {
        let mut taken = 0;
        while taken < BATCH {
            match self.ticks.next()? {
                Next::Tick(tick) => {
                    self.kept.take(&tick);
                    taken += 1;
                }
                Next::Nothing => break,
                Next::End => return Ok(None),
                Next::Lost(lost) => return Err(lost.of("the thread that keeps the images")),
            }
        }
        self.answer(now);
        Ok(Some(taken))
    }

    /// Sends to the current reader as much as it takes; readers are answered one after the other.
    fn answer(&mut self, now: Nanos) {
        if self.asking.is_none()
            && let Some(stream) = self.next_reader()
        {
            let mut ready = MAGIC.to_vec();
            for frame in self.kept.feeds.iter().flatten() {
                put(&mut ready, |out| out.extend_from_slice(frame));
            }
            for header in &self.kept.services {
                with_service(&self.kept.directory, header, &mut |tick| {
                    put(&mut ready, |out| tick.write(out));
                });
            }
            let end = self.kept.images.len();
            self.asking = Some(Asking { stream, ready, sent: 0, next: 0, end, took: now });
        }
        let (Some(asking), images) = (&mut self.asking, &mut self.kept.images) else { return };
        while asking.ready.len() < READY && asking.next <= asking.end {
            if asking.next == asking.end {
                put(&mut asking.ready, |_| ());
            } else if let Some(image) = images.give(asking.next).map(<[u8]>::to_vec)
                && let Some(place) = images.place(asking.next)
            {
                let header = tick::Header { kind: Kind::Refresh, ..place.last };
                let tick = Tick { header, name: &place.name, body: &image, source: &[] };
                put(&mut asking.ready, |out| tick.write(out));
            }
            asking.next += 1;
        }
        match asking.stream.write(&asking.ready[asking.sent..]) {
            Ok(count) => {
                asking.sent += count;
                asking.took = now;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            // The reader has disconnected.
            Err(_) => asking.took = Nanos(0),
        }
        if asking.sent == asking.ready.len() {
            asking.ready.clear();
            asking.sent = 0;
        }
        let is_done = asking.ready.is_empty() && asking.next > asking.end;
        if is_done || now.since(asking.took) >= PATIENCE_NS {
            self.asking = None;
        }
    }

    fn next_reader(&mut self) -> Option<UnixStream> {
        let arrived = || self.listener.as_ref().and_then(|listener| listener.accept().ok().flatten());
        self.waiting.pop_front().or_else(arrived)
    }
}

impl ImageServer<OnRing> {
    fn run(mut self) -> crate::Result<()> {
        let clock = Clock::calibrate();
        let (mut housekept, mut is_alive) = (clock.now(), true);
        loop {
            let now = clock.now();
            let Some(taken) = self.turn(now)? else { return Ok(()) };
            if now.since(housekept) >= HOUSEKEEPING_NS {
                housekept = now;
                is_alive = self.ticks.subscriber.publisher_alive()?;
            } else if taken == 0 {
                // A publisher releases the ring when it ends it: the remaining ticks are read first, then the
                // end.
                crate::error::ensure!(is_alive, "the plant has died");
            }
            if self.asking.is_none() && reader::may_pause(&self.ticks.subscriber, taken) {
                std::thread::sleep(reader::PAUSE);
            } else if taken == 0 {
                let sleep = if self.asking.is_some() { SHORT_SLEEP } else { LONG_SLEEP };
                self.ticks.subscriber.wait(Wait::Park, sleep);
            }
        }
    }
}

/// Creates the state before the first tick.
pub(crate) fn new_kept(config: &ImageServerConfig) -> KeptState {
    let limits =
        Limits { items: config.max_items.saturating_mul(2), bytes: config.bytes, ..Limits::default() };
    let services = config.services.iter().copied();
    let images = Images::new(limits, config.max_items, services, &config.dictionary);
    KeptState { images, feeds: Vec::new(), directory: Directory::new(), services: Vec::new() }
}

impl KeptState {
    /// Takes the next tick.
    pub(crate) fn take(&mut self, tick: &Tick<'_>) {
        let Ok(message) = MessageView::parse(tick.body) else { return };
        if tick.header.item != ItemId(0) {
            self.images.fold(message.domain(), tick);
            if tick.header.flags.contains(Flags::LAST) {
                self.images.forget(tick.header.item);
            }
            return;
        }
        if tick.header.kind != Kind::Status {
            return;
        }
        if message.domain() != Domain::SOURCE {
            // Only a status with a state: a reader that knows nothing else of the feed takes its state from
            // there.
            if state_of(&message).is_none_or(|state| state == DataState::NO_CHANGE) {
                return;
            }
            let channel = usize::from(tick.header.channel);
            if self.feeds.len() <= channel {
                self.feeds.resize(channel + 1, None);
            }
            let frame = self.feeds[channel].get_or_insert_default();
            frame.clear();
            return tick.write(frame);
        }
        let is_update = matches!(message.header(), Ok(Header::Update(_) | Header::Refresh(_)));
        let entries = is_update.then(|| directory::services(message.payload()).ok()).flatten();
        for entry in entries.into_iter().flatten().flatten() {
            self.directory.apply(&entry);
        }
        match self.services.iter_mut().find(|known| known.service == tick.header.service) {
            Some(known) => *known = tick.header,
            None => self.services.push(tick.header),
        }
    }
}

impl KeptState {
    /// Passes on everything at this moment: the state of each feed and service, then each item's image as a refresh.
    pub(crate) fn each(&mut self, mut each: impl FnMut(&Tick<'_>)) {
        for frame in self.feeds.iter().flatten() {
            if let Ok(tick) = Tick::parse(frame) {
                each(&tick);
            }
        }
        for header in &self.services {
            with_service(&self.directory, header, &mut each);
        }
        for at in 0..self.images.len() {
            let Some(image) = self.images.give(at).map(<[u8]>::to_vec) else { continue };
            if let Some(place) = self.images.place(at) {
                let header = tick::Header { kind: Kind::Refresh, ..place.last };
                each(&Tick { header, name: &place.name, body: &image, source: &[] });
            }
        }
    }
}

fn state_of(message: &MessageView<'_>) -> Option<DataState> {
    let Ok(Header::Status(header)) = message.header() else { return None };
    header.state.map(|state| state.data)
}

/// Appends a tick with its length in front.
pub(crate) fn put(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    // The cast cannot truncate: `LONGEST` is far below `u32::MAX`.
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

/// Passes on the current directory entry of a provider's service.
fn with_service(directory: &Directory, header: &tick::Header, then: &mut impl FnMut(&Tick<'_>)) {
    let Some(entry) = directory.service(header.service) else { return };
    let mut entry = entry.clone();
    entry.action = MapAction::ADD;
    let mut room = vec![0; MOST_DIRECTORY];
    let Ok(len) = directory::encode_update(0, directory::filter::ALL, [&entry], &mut room) else { return };
    then(&Tick { header: *header, name: "", body: &room[..len], source: &[] });
}

/// The images of a plant as they arrive, for a hub that starts late or continues after a gap.
#[derive(Debug)]
pub struct ImageReader {
    stream: UnixStream,
    came: Vec<u8>,
    /// Bytes of `came` that were taken.
    at: usize,
    has_begun: bool,
}

/// The next part of the answer.
pub(crate) enum Came<'a> {
    Tick(Tick<'a>),
    Nothing,
    /// The end of the images.
    End,
}

impl ImageReader {
    /// Asks for the images of a ring; `None` if no process serves them.
    ///
    /// # Errors
    /// A process of another user serves the socket, or the connection fails.
    pub(crate) fn of(ring: &Name) -> crate::Result<Option<Self>> {
        let path = path(ring);
        match local::connect(&path) {
            Ok(stream) => Ok(Some(Self::over(stream))),
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) =>
            {
                Ok(None)
            }
            Err(error) => {
                let hint = "run the hub as the user who runs the plant";
                let what = format!("cannot ask for the images at {}", path.display());
                Err(Error::hinted(what, hint).because(error))
            }
        }
    }

    fn over(stream: UnixStream) -> Self {
        Self { stream, came: Vec::new(), at: 0, has_begun: false }
    }

    /// Returns the next image or state.
    ///
    /// # Errors
    /// The answer ends early, or its version differs.
    pub(crate) fn next(&mut self) -> crate::Result<Came<'_>> {
        if self.length().is_none_or(|length| self.came.len() - self.at < 4 + length) && !self.read()? {
            return Ok(Came::Nothing);
        }
        if !self.has_begun {
            let Some(magic) = self.came.get(..MAGIC.len()) else { return Ok(Came::Nothing) };
            crate::error::ensure!(magic == MAGIC, "the plant's images are of another version");
            (self.at, self.has_begun) = (MAGIC.len(), true);
        }
        let Some(length) = self.length() else { return Ok(Came::Nothing) };
        crate::error::ensure!(
            length <= LONGEST,
            "an image of {length} bytes; {LONGEST} at most are expected"
        );
        if length == 0 {
            return Ok(Came::End);
        }
        let begin = self.at + 4;
        let Some(frame) = self.came.get(begin..begin + length) else { return Ok(Came::Nothing) };
        self.at = begin + length;
        Ok(Came::Tick(Tick::parse(frame).context("the plant sent something that is not an image")?))
    }

    /// The length of the next tick, if it has arrived.
    fn length(&self) -> Option<usize> {
        let length = self.has_begun.then(|| self.came.get(self.at..)?.first_chunk()).flatten()?;
        Some(u32::from_le_bytes(*length) as usize)
    }

    /// Reads more bytes. Returns whether any arrived.
    fn read(&mut self) -> crate::Result<bool> {
        self.came.drain(..self.at);
        self.at = 0;
        let before = self.came.len();
        self.came.resize(before + READY, 0);
        let count = self.stream.read(&mut self.came[before..]);
        self.came.truncate(before + *count.as_ref().unwrap_or(&0));
        match count {
            Ok(0) => crate::error::bail!("the plant ended before all its images were read"),
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(false)
            }
            Err(error) => Err(error).context("cannot read the plant's images"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use tapeline_omm::State;
    use tapeline_omm::rwf::StatusHeader;
    use tapeline_plant::Seq;

    use super::*;
    use crate::ticks;

    /// Ticks that arrive one by one.
    struct Row(VecDeque<Vec<u8>>, Vec<u8>);

    impl Ticks for Row {
        fn next(&mut self) -> crate::Result<Next<'_>> {
            let Some(frame) = self.0.pop_front() else { return Ok(Next::Nothing) };
            self.1 = frame;
            Ok(Next::Tick(Tick::parse(&self.1)?))
        }
    }

    fn status(seq: u64, data: DataState) -> Vec<u8> {
        let mut body = [0; 64];
        let state = Some(State { data, ..State::OPEN_OK });
        let len = StatusHeader { state, ..StatusHeader::new(Domain::MARKET_PRICE, 0) }.encode(&mut body);
        let header = tick::Header { kind: Kind::Status, ..ticks::header(0, seq) };
        let mut frame = Vec::new();
        Tick { header, name: "", body: &body[..len.unwrap()], source: &[] }.write(&mut frame);
        frame
    }

    /// A late hub knows only this of a feed: a suspect feed must not look healthy to it.
    #[test]
    fn what_is_given_of_a_feed_is_the_last_that_says_its_state() {
        let row = [status(1, DataState::OK), status(2, DataState::SUSPECT), status(3, DataState::NO_CHANGE)];
        let config = ImageServerConfig {
            bytes: 1 << 20,
            max_items: 10,
            services: vec![1],
            dictionary: Arc::new(Dictionary::builtin().clone()),
        };
        let mut server = ImageServer::new(&config, Row(row.into(), Vec::new()));
        let mut images = server.ask().unwrap();
        let mut given = Vec::new();
        loop {
            server.turn(Nanos(1)).unwrap();
            match images.next().unwrap() {
                Came::Tick(tick) => given.push(tick.header.seq),
                Came::Nothing => {}
                Came::End => break,
            }
        }
        assert_eq!(given, [Seq(2)]);
    }
}

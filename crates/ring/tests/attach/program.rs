//! A ring and an attacker who writes any values into its segment, as a program in a few bytes.
//!
//! Any bytes are a program. Its steps write into the header, the control lines and the frames, join, read, publish,
//! inspect and remove, in any order, so that the segment changes before and while others have it mapped. Every
//! program must satisfy:
//!
//! * nothing panics, hangs or reads outside the mapping (every byte of every frame is read);
//! * no frame is longer than the ring's longest, and each starts at the subscriber's position;
//! * a ring that a publisher agrees to continue in the end works: the frames that it publishes arrive.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::Hasher;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tapeline_ring::{
    Broadcast, Discipline, Error, Framing, Gated, Name, Options, Policy, Poll, Position, PublisherOf,
    Refused, Start, Subscriber, SubscriberOf, Wait, broadcast, inspect, remove,
};

/// Bytes of the header that its checksum covers (`layout.rs`).
const SUMMED: usize = 152;
/// Bytes of the control lines (`lines.rs`).
pub(crate) const PUBLISHER_LINES: usize = 4096;
const SUBSCRIBER_LINES: usize = 20480;
/// The most steps of a program.
const STEPS: usize = 200;
/// The most tries to publish: a publisher checks for dead subscribers every 100 µs.
const TRIES: usize = 1_000_000;

/// The result of a program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Frames that were read from a segment that others had written to.
    pub(crate) frames: u64,
    /// Segments that a publisher refused to continue at the end.
    pub(crate) refused: u64,
    /// Segments that worked at the end.
    pub(crate) worked: u64,
}

/// The remaining bytes of a program. Past the end it reads zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// A word as an attacker who knows the layout of a ring would choose it.
    fn word(&mut self, near: u64) -> u64 {
        let kind = self.byte();
        match kind % 8 {
            0 => u64::from(self.byte()),
            1 => u64::from(self.short()),
            // A frame's header.
            2 => u64::from(self.short()) | 1 << 32 | u64::from(kind >> 3) << 40,
            // Near the publisher's position.
            3 => near.wrapping_add((i64::from(self.byte() as i8) * 8) as u64),
            4 => (1u64 << 62).wrapping_add((i64::from(self.byte() as i8) * 8) as u64),
            5 => !u64::from(self.byte()),
            6 => 1 << (self.byte() % 64),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}

/// Either policy of one end.
enum Publishing {
    Gated(PublisherOf<Gated>),
    Broadcast(PublisherOf<Broadcast>),
}

enum Subscribing {
    Gated(Subscriber),
    Broadcast(broadcast::Subscriber),
}

struct Scene {
    name: Name,
    file: File,
    page: usize,
    options: Options,
    policy: Policy,
    publisher: Option<Publishing>,
    subscribers: Vec<Subscribing>,
    outcome: Outcome,
}

/// Runs a program to its end.
pub(crate) fn run(program: &[u8]) -> Outcome {
    let mut bytes = Bytes(program);
    let mut scene = Scene::new(&mut bytes);
    for _ in 0..STEPS {
        if bytes.0.is_empty() {
            break;
        }
        scene.step(&mut bytes);
    }
    scene.settle();
    scene.outcome
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.name.path());
    }
}

impl Scene {
    /// A ring with some frames, whose publisher is gone.
    fn new(bytes: &mut Bytes<'_>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = Name::new(&format!("test-attach-{}-{count}", std::process::id())).unwrap();
        let page = rustix::param::page_size();
        let kind = bytes.byte();
        let framing = if kind & 1 == 0 { Framing::Packed } else { Framing::Lines };
        let policy = if kind & 2 == 0 { Policy::Gated } else { Policy::Broadcast };
        // As short as possible, so that a subscriber that blocks the ring is evicted at once.
        let stall_limit = Duration::from_nanos(u64::from(kind & 6 == 4));
        let options =
            Options { capacity: 4096.max(page), framing, stall_limit, keep: true, ..Options::default() };
        let frames = bytes.byte();
        let mut publisher = match policy {
            Policy::Broadcast => Publishing::Broadcast(PublisherOf::open(&name, &options).unwrap()),
            _ => Publishing::Gated(PublisherOf::open(&name, &options).unwrap()),
        };
        for number in 0..frames {
            publish(&mut publisher, &vec![number; usize::from(number) * 3]);
        }
        drop(publisher);
        let file = File::options().read(true).write(true).open(name.path()).unwrap();
        let (publisher, subscribers, outcome) = (None, Vec::new(), Outcome::default());
        Self { name, file, page, options, policy, publisher, subscribers, outcome }
    }

    /// Overwrites the word at `at`, as far as it lies in the file: a truncated part stays truncated.
    fn write(&self, at: usize, word: u64) {
        let left = (self.file.metadata().unwrap().len() as usize).saturating_sub(at).min(8);
        self.file.write_all_at(&word.to_le_bytes()[..left], at as u64).unwrap();
    }

    /// The position in the publisher's cursor.
    fn near(&self) -> u64 {
        let mut word = [0; 8];
        let _ = self.file.read_at(&mut word, self.page as u64);
        u64::from_le_bytes(word)
    }

    /// Stores the correct checksum in the header (FNV-1a, as in `layout.rs`).
    fn sum(&self) {
        let mut header = [0; SUMMED];
        if self.file.read_exact_at(&mut header, 0).is_ok() {
            let sum = header.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
            });
            self.write(SUMMED, sum);
        }
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let near = self.near();
        let step = bytes.byte();
        // The upper half of a step selects the variant.
        let choice = usize::from(step >> 4);
        match step % 16 {
            0 => {
                let at = usize::from(bytes.byte()) % SUMMED;
                self.write(at, bytes.word(near));
                if choice > 0 {
                    self.sum();
                }
            }
            // The most important words: those at the start of the lines of the cursor, the gate, the status and the
            // tally.
            1 => {
                let place = usize::from(bytes.byte());
                self.write(self.page + place % 4 * 128 + place / 4 % 16 * 4, bytes.word(near));
            }
            2 => self.write(self.page + usize::from(bytes.short()) % PUBLISHER_LINES, bytes.word(near)),
            // The bits, and the first slots.
            3 => self.write(self.page + PUBLISHER_LINES + usize::from(bytes.byte()) * 8, bytes.word(near)),
            4 => self.write(
                self.page + PUBLISHER_LINES + usize::from(bytes.short()) % SUBSCRIBER_LINES,
                bytes.word(near),
            ),
            5 => {
                let data = self.page + PUBLISHER_LINES + SUBSCRIBER_LINES.next_multiple_of(self.page);
                let at = usize::from(bytes.short()) % self.options.capacity;
                // Usually at a position where a header can be.
                let at = if choice < 12 { at & !7 } else { at };
                self.write(data + at, bytes.word(near));
            }
            6 | 7 => {
                self.join(if choice.is_multiple_of(2) { Start::Newest } else { Start::Oldest }, choice >= 14);
            }
            8 | 9 => self.read(choice, 1 + usize::from(bytes.byte())),
            10 => self.continue_it(choice >= 14),
            11 => self.publish(choice, bytes),
            12 => {
                let _ = inspect(&self.name).map(|snapshot| format!("{snapshot:?}"));
            }
            13 => match choice {
                0..8 => drop(self.publisher.take()),
                _ if self.subscribers.is_empty() => {}
                _ => drop(self.subscribers.remove(choice % self.subscribers.len())),
            },
            14 => self.ask(choice),
            _ => self.cut_or_remove(choice, bytes),
        }
    }

    fn join(&mut self, start: Start, other: bool) {
        if self.subscribers.len() >= 4 {
            return;
        }
        let is_broadcast = (self.policy == Policy::Broadcast) != other;
        let joined = if is_broadcast {
            SubscriberOf::join(&self.name, start).map(Subscribing::Broadcast)
        } else {
            SubscriberOf::join(&self.name, start).map(Subscribing::Gated)
        };
        self.subscribers.extend(joined.map_err(|error| is_told(&error)).ok());
    }

    fn read(&mut self, which: usize, frames: usize) {
        let count = self.subscribers.len().max(1);
        let Some(subscriber) = self.subscribers.get_mut(which % count) else { return };
        for _ in 0..frames {
            if !read(subscriber) {
                break;
            }
            self.outcome.frames += 1;
        }
    }

    /// Continues the ring, if it has no publisher.
    fn continue_it(&mut self, other: bool) {
        let options = match inspect(&self.name) {
            // As the header is now.
            Ok(found) => Options {
                capacity: found.capacity,
                max_frame: found.max_frame,
                framing: found.framing,
                stall_limit: found.stall_limit,
                ..self.options
            },
            Err(_) => self.options,
        };
        // A missing ring is created again: not larger than the one before.
        let options = if self.name.path().exists() { options } else { self.options };
        let is_broadcast = (self.policy == Policy::Broadcast) != other;
        let opened = if is_broadcast {
            PublisherOf::open(&self.name, &options).map(Publishing::Broadcast)
        } else {
            PublisherOf::open(&self.name, &options).map(Publishing::Gated)
        };
        match opened {
            Ok(publisher) => self.publisher = Some(publisher),
            Err(error) => is_told(&error),
        }
    }

    fn publish(&mut self, choice: usize, bytes: &mut Bytes<'_>) {
        match &mut self.publisher {
            Some(Publishing::Gated(publisher)) => write(publisher, choice, bytes),
            Some(Publishing::Broadcast(publisher)) => write(publisher, choice, bytes),
            None => {}
        }
    }

    fn ask(&mut self, choice: usize) {
        match &mut self.publisher {
            Some(Publishing::Gated(publisher)) => look(publisher),
            Some(Publishing::Broadcast(publisher)) => look(publisher),
            None => {}
        }
        let count = self.subscribers.len().max(1);
        match self.subscribers.get_mut(choice % count) {
            Some(Subscribing::Gated(subscriber)) => ask(subscriber, choice),
            Some(Subscribing::Broadcast(subscriber)) => ask(subscriber, choice),
            None => {}
        }
    }

    fn cut_or_remove(&mut self, choice: usize, bytes: &mut Bytes<'_>) {
        if choice < 8 {
            let _ = remove(&self.name, choice.is_multiple_of(2)).map_err(|error| is_told(&error));
            if let Ok(file) = File::options().read(true).write(true).open(self.name.path()) {
                self.file = file;
            }
        } else if self.publisher.is_none() && self.subscribers.is_empty() {
            // A file that is truncated while it is mapped ends in SIGBUS: a limit that the design states.
            let _ = self.file.set_len(u64::from(bytes.short()) * 2);
        }
    }

    /// All leave and no one writes any more. A ring that a publisher then continues must work.
    fn settle(&mut self) {
        self.publisher = None;
        self.subscribers.clear();
        let Ok(found) = inspect(&self.name) else {
            self.outcome.refused += 1;
            return;
        };
        self.policy = found.policy;
        self.continue_it(false);
        let worked = match &mut self.publisher {
            None => {
                self.outcome.refused += 1;
                return;
            }
            Some(Publishing::Gated(publisher)) => {
                let mut subscriber =
                    Subscriber::join(&self.name, Start::Newest).expect("a ring can be joined");
                works(publisher, |frame, position| match subscriber.next() {
                    Poll::Frame(found) => assert_eq!((found.bytes(), found.position()), (frame, position)),
                    other => panic!("{other:?}, expected {} bytes at {position}", frame.len()),
                })
            }
            Some(Publishing::Broadcast(publisher)) => {
                let mut subscriber =
                    broadcast::Subscriber::join(&self.name, Start::Newest).expect("a ring can be joined");
                works(publisher, |frame, position| match subscriber.next() {
                    broadcast::BroadcastPoll::Frame(found) => {
                        assert_eq!((found.bytes(), found.position()), (frame, position));
                    }
                    other => panic!("{other:?}, expected {} bytes at {position}", frame.len()),
                })
            }
        };
        self.outcome.worked += worked;
    }
}

/// Every error has a text, and its hint does not fail.
fn is_told(error: &Error) {
    assert!(!error.to_string().is_empty());
    let _ = error.hint();
}

/// Publishes around the ring, and passes each frame to `arrives`.
fn works<D: Discipline>(publisher: &mut PublisherOf<D>, mut arrives: impl FnMut(&[u8], Position)) -> u64 {
    let longest = publisher.max_frame();
    for number in 0..40u8 {
        let frame = vec![number; longest * usize::from(number % 5) / 4];
        let mut tries = 0;
        let position = loop {
            match publisher.publish(&frame) {
                Ok(position) => break position,
                Err(Refused::Full) => tries += 1,
                Err(Refused::TooLong) => panic!("{} bytes are too long, {longest} are not", frame.len()),
            }
            assert!(tries < TRIES, "nobody is there, and the ring stays full");
            std::hint::spin_loop();
        };
        arrives(&frame, position);
    }
    1
}

fn publish(publisher: &mut Publishing, bytes: &[u8]) {
    let _ = match publisher {
        Publishing::Gated(publisher) => publisher.publish(bytes),
        Publishing::Broadcast(publisher) => publisher.publish(bytes),
    };
}

/// Publishes in one of the available ways.
fn write<D: Discipline>(publisher: &mut PublisherOf<D>, choice: usize, bytes: &mut Bytes<'_>) {
    let before = publisher.position();
    // Sometimes one byte more than the longest frame.
    let len = usize::from(bytes.short()) % (publisher.max_frame() + 2);
    match choice {
        0..4 => {
            let _ = publisher.publish(&vec![0xa5; len]);
        }
        4..8 => {
            if let Ok(mut claim) = publisher.claim(len) {
                claim.fill(0xff);
                let _ = claim.commit_prefix(usize::from(bytes.byte()));
            }
        }
        8..10 => {
            if let Ok(mut claim) = publisher.claim(len) {
                claim.fill(0xee);
            }
        }
        10..14 => {
            let mut batch = publisher.claim_batch();
            for _ in 0..bytes.byte() % 8 {
                if let Ok(room) = batch.claim(len % 300) {
                    room.fill(0x11);
                }
            }
            if choice < 13 {
                batch.commit();
            }
        }
        _ => {
            for _ in 0..bytes.byte() {
                let _ = publisher.publish(&vec![0x5a; len % 200]);
            }
        }
    }
    assert!(publisher.position() >= before);
}

fn look<D: Discipline>(publisher: &mut PublisherOf<D>) {
    publisher.set_note([publisher.frames(); 8]);
    publisher.flush();
    let _ = (publisher.backlog_bytes(), publisher.subscribers(), publisher.evicted(), publisher.reclaimed());
}

fn ask<D: Discipline>(subscriber: &mut SubscriberOf<D>, choice: usize) {
    let _ = (subscriber.note(), subscriber.lag_bytes(), subscriber.epoch(), subscriber.is_evicted());
    let _ = (subscriber.publisher_alive(), subscriber.is_named(), subscriber.stall_limit());
    let ways = [Wait::Spin, Wait::Pause, Wait::Yield, Wait::Park, Wait::Adaptive];
    subscriber.wait(ways[choice % ways.len()], Duration::ZERO);
    if choice.is_multiple_of(3) {
        subscriber.release();
    }
}

/// Reads every byte of one frame; returns whether there was one.
fn read(subscriber: &mut Subscribing) -> bool {
    let mut hasher = DefaultHasher::new();
    match subscriber {
        Subscribing::Gated(subscriber) => {
            let (longest, before) = (subscriber.max_frame(), subscriber.position());
            let Poll::Frame(frame) = subscriber.next() else { return false };
            assert!(frame.len() <= longest && frame.position() == before);
            hasher.write(frame.bytes());
        }
        Subscribing::Broadcast(subscriber) => {
            let (longest, before) = (subscriber.max_frame(), subscriber.position());
            match subscriber.next() {
                broadcast::BroadcastPoll::Frame(frame) => {
                    assert!(frame.len() <= longest && frame.position() == before);
                    hasher.write(frame.bytes());
                }
                broadcast::BroadcastPoll::Lost { .. } => {}
                _ => return false,
            }
        }
    }
    std::hint::black_box(hasher.finish());
    true
}

//! The tortured processes: a publisher, and subscribers that check every bit.

use std::collections::VecDeque;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, set_parent_process_death_signal};
use tapeline_ring::{
    Broadcast, Discipline, Error, Frame, Gated, Name, Options, Policy, Poll, PublisherOf, Refused, Start,
    Subscriber, SubscriberOf, Wait, broadcast,
};

use crate::script::{Act, Dice, Script, mix};
use crate::shape::{Shape, shapes};

/// Frames that a publisher must publish after the order to come to the end.
const LAST_FRAMES: u64 = 500;
/// The longest wait for a frame, so that orders are noticed.
const PATIENCE: Duration = Duration::from_millis(20);

/// Prefix of a player's output, which distinguishes it from that of the test harness.
pub(crate) const SAYS: &str = "says: ";

fn say(what: &str) {
    println!("{SAYS}{what}");
}

/// A player's part, from the environment.
struct Part {
    name: Name,
    shape: Shape,
    script: Script,
    /// Random numbers of this player alone.
    dice: Dice,
    /// Set by the first line of standard input: come to the end.
    told: Arc<AtomicBool>,
    /// A subscriber that does nothing but read.
    is_steady: bool,
}

/// Plays the role in the environment, if there is one.
pub(crate) fn play() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let number = |what| std::env::var(what).ok().and_then(|text| text.parse::<u64>().ok()).unwrap();
    // The parent kills its players; they must not survive when the parent itself is killed.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    let told = Arc::new(AtomicBool::new(false));
    let hears = Arc::clone(&told);
    let waits = std::thread::current();
    std::thread::spawn(move || {
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            std::process::exit(0);
        }
        hears.store(true, Ordering::Relaxed);
        waits.unpark();
    });
    let shape = shapes()[number("SHAPE") as usize];
    let part = Part {
        name: Name::new(&std::env::var("RING").unwrap()).unwrap(),
        shape,
        script: shape.script(number("SEED")),
        dice: Dice::new(mix(number("SEED") ^ mix(number("LIFE")))),
        told,
        is_steady: false,
    };
    match (role.as_str(), shape.policy) {
        ("publisher", Policy::Gated) => publish::<Gated>(part),
        ("publisher", Policy::Broadcast) => publish::<Broadcast>(part),
        ("subscriber", Policy::Gated) => subscribe::<Gated>(part),
        ("subscriber", Policy::Broadcast) => subscribe::<Broadcast>(part),
        ("reader", _) => subscribe::<Gated>(Part { is_steady: true, ..part }),
        ("gate", _) => gate(&part),
        other => panic!("no role {other:?}"),
    }
}

/// The result of a look at a ring of either policy.
enum Look<'a> {
    Frame(Frame<'a>),
    Lost(u64),
    Empty,
    Ended,
    Evicted,
}

/// The differences between the policies.
trait Player: Discipline {
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_>;
}

impl Player for Gated {
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_> {
        match subscriber.next() {
            Poll::Frame(frame) => Look::Frame(frame),
            Poll::Empty => Look::Empty,
            Poll::Ended => Look::Ended,
            Poll::Evicted { .. } => Look::Evicted,
            other => panic!("{other:?}"),
        }
    }
}

impl Player for Broadcast {
    fn look(subscriber: &mut SubscriberOf<Self>) -> Look<'_> {
        match subscriber.next() {
            broadcast::BroadcastPoll::Frame(frame) => Look::Frame(frame),
            broadcast::BroadcastPoll::Lost { frames, .. } => Look::Lost(frames),
            broadcast::BroadcastPoll::Empty => Look::Empty,
            broadcast::BroadcastPoll::Ended => Look::Ended,
            other => panic!("{other:?}"),
        }
    }
}

/// The content of a publisher's note. It is written before each act, so that the finder of a dead publisher knows
/// exactly which frames may be there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Note {
    /// Whether it is written before each act, or only once.
    pub(crate) is_exact: bool,
    /// Frames committed.
    pub(crate) frames: u64,
    /// Frames of the next act.
    pub(crate) act: u64,
    /// The longest block by a full ring, in ns.
    pub(crate) blocked_ns: u64,
}

impl Note {
    fn words(self) -> [u64; 8] {
        [u64::from(self.is_exact), self.frames, self.act, self.blocked_ns, 0, 0, 0, 0]
    }

    pub(crate) fn of(words: [u64; 8]) -> Self {
        Self { is_exact: words[0] != 0, frames: words[1], act: words[2], blocked_ns: words[3] }
    }
}

/// Continues the script where the ring's last publisher was.
fn publish<D: Player>(mut part: Part) {
    let Part { script, ref told, ref mut dice, .. } = part;
    let wake_on_commit = !dice.one_in(4);
    let options = Options { wake_on_commit, ..part.shape.options() };
    let mut publisher = PublisherOf::<D>::open(&part.name, &options).unwrap();
    say(&format!("publishes {} {}", publisher.epoch(), publisher.frames()));
    let mut note = Note { is_exact: dice.one_in(2), frames: publisher.frames(), ..Note::default() };
    publisher.set_note(note.words());
    let mut bytes = vec![0; publisher.max_frame()];
    // A publisher that keeps the ring full, or one for which subscribers wait: now and then, or at each frame.
    let pauses = [u64::MAX, 64, 1][dice.below(3) as usize];
    let mut last = None;
    loop {
        if dice.one_in(pauses) {
            std::thread::park_timeout(Duration::from_micros(dice.below(200)));
        }
        let number = publisher.frames();
        if last.is_none() && told.load(Ordering::Relaxed) {
            last = Some(number + LAST_FRAMES);
        }
        // A batch is there as a whole or not at all, even if the publisher dies.
        let act = script.act_at(number).expect("a publisher is followed at the start of an act");
        if last.is_some_and(|last| number >= last) {
            break;
        }
        if note.is_exact {
            (note.frames, note.act) = (number, act.frames());
            publisher.set_note(note.words());
        }
        if dice.one_in(16) {
            abort(&mut publisher, dice);
        }
        let mut since = None;
        while try_act(&mut publisher, &script, number, act, &mut bytes, dice).is_err() {
            assert_eq!(part.shape.policy, Policy::Gated, "a broadcast ring is never full");
            since.get_or_insert_with(Instant::now);
            std::thread::yield_now();
        }
        if let Some(since) = since {
            note.blocked_ns = note.blocked_ns.max(since.elapsed().as_nanos() as u64);
        }
        assert_eq!(publisher.frames(), number + act.frames());
        if !wake_on_commit && dice.one_in(16) {
            publisher.flush();
        }
    }
    let (frames, blocked_ns) = (publisher.frames(), note.blocked_ns);
    publisher.close().unwrap();
    say(&format!("ended {frames} {blocked_ns}"));
}

/// Joins when ordered, and does not read.
fn gate(part: &Part) {
    say("waits");
    while !part.told.load(Ordering::Relaxed) {
        std::thread::park();
    }
    let _subscriber = Subscriber::join(&part.name, Start::Newest).unwrap();
    say("joined");
    loop {
        std::thread::park();
    }
}

/// Does one act, or nothing if the ring is full.
pub(crate) fn try_act<D: Discipline>(
    publisher: &mut PublisherOf<D>,
    script: &Script,
    number: u64,
    act: Act,
    bytes: &mut [u8],
    dice: &mut Dice,
) -> Result<(), Refused> {
    let len = script.len(number);
    match act {
        Act::Publish => {
            script.write(number, &mut bytes[..len]);
            publisher.publish(&bytes[..len])?;
        }
        Act::Fill => {
            let mut claim = publisher.claim(len)?;
            script.write(number, &mut claim);
            claim.commit();
        }
        Act::Shorten(more) => {
            let claimed = (len + more).min(publisher.max_frame());
            let mut claim = publisher.claim(claimed)?;
            Script::mislead(&mut claim, dice);
            script.write(number, &mut claim[..len]);
            claim.commit_prefix(len)?;
        }
        Act::Hide => {
            let mut claim = publisher.claim(len)?;
            script.write(number, &mut claim);
            claim.hide_prefix(len)?;
            publisher.show();
        }
        Act::Batch(frames) => {
            let mut batch = publisher.claim_batch();
            for number in number..number + frames {
                script.write(number, batch.claim(script.len(number))?);
            }
            batch.commit();
        }
    }
    Ok(())
}

/// Claims, writes bytes that no reader may see, and aborts.
fn abort<D: Discipline>(publisher: &mut PublisherOf<D>, dice: &mut Dice) {
    if dice.one_in(2) {
        let len = dice.below(publisher.max_frame() as u64 + 1) as usize;
        if let Ok(mut claim) = publisher.claim(len) {
            Script::mislead(&mut claim, dice);
        }
    } else {
        let mut batch = publisher.claim_batch();
        for _ in 0..dice.below(6) {
            match batch.claim(dice.below(300) as usize) {
                Ok(room) => Script::mislead(room, dice),
                Err(_) => break,
            }
        }
    }
}

/// A subscriber's place in the script.
struct Place {
    /// The next frame's number.
    next: Option<u64>,
    /// Frames that came before the first numbered one.
    unplaced: VecDeque<Vec<u8>>,
    epoch: u32,
    /// Lost frames reported to a broadcast subscriber.
    lost: u64,
}

impl Place {
    /// Checks the next frame, and those before it as soon as their number is known.
    fn take(&mut self, script: &Script, bytes: &[u8], epoch: u32) -> Result<(), String> {
        let number = match self.next {
            Some(number) => number,
            None => {
                let Some(number) = script.number_of(bytes) else {
                    if self.unplaced.len() > 100 {
                        return Err("none of 100 frames holds its number".to_owned());
                    }
                    self.unplaced.push_back(bytes.to_vec());
                    return Ok(());
                };
                let first = number.wrapping_sub(self.unplaced.len() as u64);
                for (frame, number) in self.unplaced.drain(..).zip(first..) {
                    script.check(number, &frame)?;
                }
                number
            }
        };
        script.check(number, bytes)?;
        self.next = Some(number + 1);
        // A test has few epochs: they do not wrap.
        if epoch < self.epoch {
            return Err(format!("frame {number} is of epoch {epoch}, after one of epoch {}", self.epoch));
        }
        self.epoch = epoch;
        Ok(())
    }

    /// Skips frames that a broadcast subscriber lost.
    fn lose(&mut self, frames: u64) {
        self.unplaced.clear();
        self.lost += frames;
        self.next = self.next.map(|next| next + frames);
    }
}

/// Joins, checks every frame, leaves and joins again at random; at the end reports up to where it saw everything.
fn subscribe<D: Player>(mut part: Part) {
    loop {
        let start = if part.dice.one_in(2) { Start::Oldest } else { Start::Newest };
        let subscriber = match SubscriberOf::<D>::join(&part.name, start) {
            Ok(subscriber) => subscriber,
            // Evicted just before the end.
            Err(Error::NotFound { .. }) => {
                say("lost 0");
                return say("saw nothing");
            }
            Err(error) => panic!("{error}"),
        };
        say("joined");
        if read(subscriber, &mut part) == Left::ForGood {
            return;
        }
    }
}

#[derive(PartialEq, Eq)]
enum Left {
    ForGood,
    ToComeBack,
}

fn read<D: Player>(mut subscriber: SubscriberOf<D>, part: &mut Part) -> Left {
    let Part { script, ref told, ref mut dice, is_steady, .. } = *part;
    let mut place = Place { next: None, unplaced: VecDeque::new(), epoch: 0, lost: 0 };
    let ways = [Wait::Spin, Wait::Pause, Wait::Yield, Wait::Park, Wait::Adaptive];
    let wait = if is_steady { Wait::Park } else { ways[dice.below(ways.len() as u64) as usize] };
    let mut copy = vec![0; subscriber.max_frame()];
    let mut stays = false;
    loop {
        if !stays && told.load(Ordering::Relaxed) {
            stays = true;
            say("stays");
        }
        let checked = match D::look(&mut subscriber) {
            Look::Frame(frame) if dice.one_in(4) => {
                let len = frame.copy_to(&mut copy);
                place.take(&script, &copy[..len], frame.epoch())
            }
            Look::Frame(frame) => {
                if !is_steady && dice.one_in(4_000) {
                    // Slow for a while, with the frame borrowed.
                    (0..dice.below(100_000)).for_each(|_| std::hint::spin_loop());
                }
                place.take(&script, &frame, frame.epoch())
            }
            Look::Lost(frames) => {
                place.lose(frames);
                Ok(())
            }
            Look::Empty => {
                subscriber.wait(wait, PATIENCE);
                continue;
            }
            Look::Ended => {
                say(&format!("lost {}", place.lost));
                say(&format!("saw {}", place.next.map_or("nothing".to_owned(), |next| next.to_string())));
                return Left::ForGood;
            }
            Look::Evicted => {
                assert!(subscriber.is_evicted() && !part.shape.stall_limit.is_zero());
                say("evicted");
                return Left::ToComeBack;
            }
        };
        if let Err(why) = checked {
            panic!("before position {}: {why}", subscriber.position());
        }
        if !is_steady && dice.one_in(4_000) {
            subscriber.release();
        }
        if !is_steady && !stays && dice.one_in(4_000) {
            return Left::ToComeBack;
        }
    }
}

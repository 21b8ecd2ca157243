//! The source of a feed's datagrams: sockets that the plant's own thread reads, or a receiving thread with a
//! pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use tapeline_feed::line::Line;
use tapeline_measure::{Nanos, monotonic_ns};
use tapeline_plant::Refused;
use tapeline_wire::pool::{self, Intake, Outlet, PoolCounters, PoolSettings, QueuePoll};
use tapeline_wire::udp::{Batch, UdpReceiver, wait_any};

use crate::error::Context;
use crate::events::Events;

/// Datagrams taken from one line before the next line has its turn.
const BATCH_SLOTS: usize = 64;
/// The longest datagram accepted without truncation; exchanges stay below an Ethernet frame.
const SLOT_BYTES: usize = pool::SLOT_BYTES;
/// The longest sleep while nothing arrives, so that gaps are declared and signals are noticed.
pub(crate) const LONGEST_SLEEP: Duration = Duration::from_millis(5);
/// How long the receiving thread sleeps while the plant holds all of its slots.
const NO_SLOTS_SLEEP: Duration = Duration::from_micros(50);

/// A feed's sockets, and the thread that reads them.
pub(crate) enum Source {
    /// The plant's thread.
    Inline { receivers: Vec<UdpReceiver>, batch: Batch },
    /// A thread of its own.
    Thread(Behind),
    /// No thread any more.
    Ended { receivers: Vec<UdpReceiver>, counters: Option<PoolCounters> },
}

/// The plant's side of a receiving thread.
pub(crate) struct Behind {
    outlet: Outlet,
    thread: JoinHandle<(Vec<UdpReceiver>, PoolCounters)>,
    told: Arc<Told>,
}

/// State shared by the receiving thread and the plant's.
#[derive(Debug, Default)]
struct Told {
    stop: AtomicBool,
    /// The number of datagrams delivered when every line was last read to its end.
    read_up_to: AtomicU64,
    kernel_drops: AtomicU64,
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) line: Line,
    pub(crate) bytes: &'a [u8],
    /// The kernel's timestamp.
    pub(crate) received: Option<Nanos>,
    pub(crate) truncated: bool,
    /// How many more datagrams are already available.
    pub(crate) left: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct InputTurn {
    pub(crate) taken: usize,
    /// Whether every line was read to its end: only then is a message missing on one not unread on another.
    pub(crate) all_read: bool,
}

/// Socket errors while the plant runs, for example when an interface disappears: the other lines continue,
/// and the error is reported at most once a second.
#[derive(Debug)]
pub(crate) struct Complaints {
    count: u64,
    said_ns: Option<u64>,
    events: Events,
}

impl Complaints {
    pub(crate) fn to(events: &Events) -> Self {
        Self { count: 0, said_ns: None, events: events.clone() }
    }

    fn say(&mut self, error: &tapeline_wire::Error) {
        self.count += 1;
        let now = monotonic_ns();
        if self.said_ns.is_none_or(|said| now - said >= 1_000_000_000) {
            self.said_ns = Some(now);
            self.events.warning(format_args!("{error} ({} times so far)", self.count));
        }
    }
}

impl Source {
    /// Sockets that the plant's thread reads itself.
    pub(crate) fn inline(receivers: Vec<UdpReceiver>) -> Self {
        Self::Inline { receivers, batch: Batch::new(BATCH_SLOTS, SLOT_BYTES) }
    }

    /// Sockets that a new thread reads into a pool, with `spin` without sleeping. The calling thread takes
    /// the datagrams; when there are some, it is woken from [`thread::park_timeout`].
    pub(crate) fn thread(
        receivers: Vec<UdpReceiver>,
        settings: &PoolSettings,
        spin: bool,
        name: &str,
        events: &Events,
    ) -> crate::Result<Self> {
        let (intake, outlet) = pool::open(&PoolSettings { batch: BATCH_SLOTS, ..*settings })?;
        let told = Arc::new(Told::default());
        let receiving = Receiving {
            receivers,
            intake,
            told: Arc::clone(&told),
            taker: thread::current(),
            spin,
            complaints: Complaints::to(events),
        };
        let thread = thread::Builder::new()
            .name(format!("receive {name}"))
            .spawn(move || receiving.run())
            .context("cannot start a receiving thread")?;
        Ok(Self::Thread(Behind { outlet, thread, told }))
    }

    /// Takes the datagrams that have arrived, up to a batch for each line.
    #[inline]
    pub(crate) fn turn(
        &mut self,
        complaints: &mut Complaints,
        mut each: impl FnMut(Arrived<'_>) -> Result<(), Refused>,
    ) -> Result<InputTurn, Refused> {
        match self {
            Self::Inline { receivers, batch } => {
                let mut turn = InputTurn { taken: 0, all_read: true };
                for (receiver, number) in receivers.iter_mut().zip(0..) {
                    let Some(line) = Line::new(number) else { continue };
                    let got = match receiver.receive(batch) {
                        Ok(got) => got,
                        Err(error) => {
                            complaints.say(&error);
                            continue;
                        }
                    };
                    turn.taken += got;
                    turn.all_read &= got < BATCH_SLOTS;
                    for (datagram, left) in batch.iter().zip((0..got).rev()) {
                        let (bytes, received) = (datagram.bytes, datagram.received);
                        each(Arrived { line, bytes, received, truncated: datagram.truncated, left })?;
                    }
                }
                Ok(turn)
            }
            Self::Thread(behind) => behind.turn(each),
            Self::Ended { .. } => Ok(InputTurn { taken: 0, all_read: true }),
        }
    }

    /// Datagrams that the kernel dropped.
    pub(crate) fn kernel_drops(&mut self) -> u64 {
        match self {
            Self::Inline { receivers, .. } | Self::Ended { receivers, .. } => {
                receivers.iter_mut().map(UdpReceiver::ask_kernel_drops).sum()
            }
            // Relaxed: a statistic.
            Self::Thread(behind) => behind.told.kernel_drops.load(Ordering::Relaxed),
        }
    }

    /// The sockets, if the plant's thread reads them itself.
    pub(crate) fn receivers(&self) -> &[UdpReceiver] {
        match self {
            Self::Inline { receivers, .. } => receivers,
            Self::Thread(_) | Self::Ended { .. } => &[],
        }
    }

    /// Whether a receiving thread reads the sockets.
    pub(crate) const fn is_thread(&self) -> bool {
        matches!(self, Self::Thread(_))
    }

    /// Ends the receiving thread, if there is one. Returns the sockets and the pool's counters.
    pub(crate) fn end(&mut self) -> (&mut [UdpReceiver], Option<PoolCounters>) {
        let none = Self::Ended { receivers: Vec::new(), counters: None };
        *self = match std::mem::replace(self, none) {
            Self::Thread(Behind { outlet, thread, told }) => {
                told.stop.store(true, Ordering::Relaxed);
                drop(outlet);
                let (receivers, counters) =
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Self::Ended { receivers, counters: Some(counters) }
            }
            Self::Inline { receivers, .. } => Self::Ended { receivers, counters: None },
            ended @ Self::Ended { .. } => ended,
        };
        match self {
            Self::Ended { receivers, counters } => (receivers, *counters),
            Self::Inline { .. } | Self::Thread(_) => (&mut [], None),
        }
    }
}

impl Behind {
    #[inline]
    fn turn(
        &mut self,
        mut each: impl FnMut(Arrived<'_>) -> Result<(), Refused>,
    ) -> Result<InputTurn, Refused> {
        // Read before the pool: later deliveries can only make the two numbers differ.
        // Acquire pairs with the receiving thread's release: everything delivered by then is visible.
        let read_up_to = self.told.read_up_to.load(Ordering::Acquire);
        let QueuePoll::Ready(datagrams) = self.outlet.take() else {
            return Ok(InputTurn { taken: 0, all_read: self.outlet.taken() == read_up_to });
        };
        let taken = datagrams.len();
        for (datagram, left) in datagrams.iter().zip((0..taken).rev()) {
            let Some(line) = Line::new(datagram.line().into()) else { continue };
            let truncated = datagram.is_truncated();
            each(Arrived { line, bytes: datagram.bytes(), received: datagram.received(), truncated, left })?;
        }
        drop(datagrams);
        Ok(InputTurn { taken, all_read: self.outlet.taken() == read_up_to })
    }
}

/// A running receiving thread.
struct Receiving {
    receivers: Vec<UdpReceiver>,
    intake: Intake,
    told: Arc<Told>,
    taker: Thread,
    spin: bool,
    complaints: Complaints,
}

impl Receiving {
    fn run(mut self) -> (Vec<UdpReceiver>, PoolCounters) {
        let mut delivered = 0;
        while !self.told.stop.load(Ordering::Relaxed) {
            let (mut came, mut all_read, mut exhausted) = (0, true, false);
            for (receiver, number) in self.receivers.iter_mut().zip(0..) {
                match self.intake.receive(receiver, number) {
                    Ok(received) => {
                        let count = received.count + received.dropped;
                        came += count;
                        // A batch can be short because of a lack of slots.
                        all_read &= count == 0 && !received.exhausted;
                        exhausted |= received.exhausted;
                    }
                    Err(error) => self.complaints.say(&error),
                }
            }
            let Ok(now_delivered) = self.intake.deliver() else { break };
            delivered += now_delivered as u64;
            if all_read {
                // Release pairs with the taker's acquire: everything delivered is visible.
                self.told.read_up_to.store(delivered, Ordering::Release);
            }
            if came > 0 {
                let drops = self.receivers.iter().map(UdpReceiver::kernel_drops).sum();
                self.told.kernel_drops.store(drops, Ordering::Relaxed);
                // Costs one atomic swap while the taker is awake.
                self.taker.unpark();
            } else if exhausted {
                thread::sleep(NO_SLOTS_SLEEP);
            } else if !self.spin {
                wait_any(&self.receivers, LONGEST_SLEEP);
            }
        }
        (self.receivers, self.intake.counters())
    }
}

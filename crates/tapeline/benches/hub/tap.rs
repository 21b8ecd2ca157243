//! Between the hub and one client: what the client does alone, while the hub waits.
//!
//! It passes on what both say until the client has its images. Then it keeps what the hub sends to itself. And at last it sends
//! the client what it kept, over and over: a hub that costs nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context;
use tapeline_measure::pin;

/// How long a direction is waited for before it is the other one's turn.
const TURN: Duration = Duration::from_millis(1);
/// Bytes that are read at a time, and bytes that are kept at most: some hundred thousand updates, more than the caches hold.
const PIECE: usize = 256 << 10;
const KEPT: usize = 16 << 20;

const PASSING: u8 = 0;
const KEEPING: u8 = 1;
const REPEATING: u8 = 2;
const OVER: u8 = 3;

/// A tap at work.
pub(crate) struct Tap {
    /// Where the client connects.
    pub(crate) address: SocketAddr,
    doing: Arc<AtomicU8>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Tap {
    /// For one client of this hub. Its thread is where the caller's is until it takes the hub's place, then on `far`.
    pub(crate) fn begin(hub: SocketAddr, far: Option<usize>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let doing = Arc::new(AtomicU8::new(PASSING));
        let told = Arc::clone(&doing);
        let thread = std::thread::Builder::new().name("tap".to_owned()).spawn(move || {
            let (client, _) = listener.accept()?;
            let hub = TcpStream::connect(hub)?;
            for stream in [&client, &hub] {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TURN))?;
            }
            Pipe { client, hub, piece: vec![0; PIECE], doing: told }.run(far)
        })?;
        Ok(Self { address, doing, thread })
    }

    /// From now on what the hub sends goes no further. Nothing of it may be under way: the client gets whole messages.
    pub(crate) fn keep(&self) {
        self.doing.store(KEEPING, Ordering::Relaxed);
    }

    /// From now on the client gets what was kept.
    pub(crate) fn repeat(&self) {
        self.doing.store(REPEATING, Ordering::Relaxed);
    }

    /// The end of both connections, once the client has read what it was sent.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        self.doing.store(OVER, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the tap has panicked"))?
    }
}

struct Pipe {
    client: TcpStream,
    hub: TcpStream,
    piece: Vec<u8>,
    doing: Arc<AtomicU8>,
}

impl Pipe {
    fn run(mut self, far: Option<usize>) -> anyhow::Result<()> {
        let doing = Arc::clone(&self.doing);
        let is = |what| doing.load(Ordering::Relaxed) == what;
        let mut kept = Vec::with_capacity(KEPT);
        while is(PASSING) || is(KEEPING) {
            if is(PASSING)
                && let Some(count) = read(&mut self.client, &mut self.piece)?
            {
                self.hub.write_all(&self.piece[..count])?;
            }
            while let Some(count) = read(&mut self.hub, &mut self.piece)? {
                // Asked behind the read: whatever the hub sends after the word goes no further, also where it never pauses.
                if is(PASSING) {
                    self.client.write_all(&self.piece[..count])?;
                } else {
                    let room = KEPT - kept.len();
                    kept.extend_from_slice(&self.piece[..count.min(room)]);
                }
            }
        }
        far.map_or(Ok(()), pin)?;
        let whole = whole_frames(&kept);
        anyhow::ensure!(!whole.is_empty() || !is(REPEATING), "the hub has sent nothing to keep");
        // What is too much for the client waits here, and looks now and then whether it is over.
        self.client.set_write_timeout(Some(Duration::from_millis(100)))?;
        let mut rest = whole;
        while is(REPEATING) {
            match self.client.write(&rest[..rest.len().min(PIECE)]) {
                Ok(count) => rest = &rest[count..],
                Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(fault) => return Err(fault).context("the tap's client has gone"),
            }
            if rest.is_empty() {
                rest = whole;
            }
        }
        Ok(())
    }
}

/// What is there now, or comes within a [`TURN`]; `None` if that is nothing.
fn read(stream: &mut TcpStream, piece: &mut [u8]) -> anyhow::Result<Option<usize>> {
    match stream.read(piece) {
        Ok(0) => anyhow::bail!("a connection through the tap has ended"),
        Ok(count) => Ok(Some(count)),
        Err(fault) if matches!(fault.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(None),
        Err(fault) => Err(fault.into()),
    }
}

/// The frames at the front of `bytes`, each behind its length (RSSL): without a last one that is cut off.
fn whole_frames(bytes: &[u8]) -> &[u8] {
    let mut at = 0;
    while let Some([high, low]) = bytes.get(at..at + 2) {
        let next = at + usize::from(u16::from_be_bytes([*high, *low]));
        if next == at || next > bytes.len() {
            break;
        }
        at = next;
    }
    &bytes[..at]
}

//! Two plants of the binary with a bridge between them, and this process as a reader of the one below.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tapeline_measure::{Clock, Recorder};
use tapeline_node::ticks::{self, Next};
use tapeline_perf::path::{Ending, Hop, Meter, PathReport};
use tapeline_plant::Note;
use tapeline_plant::tick::{Flags, Tick};
use tapeline_ring::{Name, Start, Subscriber, Wait};
use tempfile::TempDir;

use crate::lossy::Lossy;
use crate::process::PlantProcess;
use crate::{Carrier, LOST_OF, Turn, WARM_UP};

/// How long a plant below may take until it follows.
const JOINING: Duration = Duration::from_secs(2);
/// How often its next ring is looked for meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// Writes the messages of a simulated exchange at this rate.
pub(crate) fn day(folder: &Path, rate: u64, seconds: u64) -> anyhow::Result<PathBuf> {
    let day = folder.join(format!("day-{rate}.itch"));
    let output = Command::new(env!("CARGO_BIN_EXE_tapeline"))
        .args(["feed", "simulate", "--symbols", "500", "--rate", &rate.to_string()])
        .args(["--duration", &format!("{seconds}s"), "--write"])
        .arg(&day)
        .output()?;
    ensure!(output.status.success(), "the day was not written: {}", String::from_utf8_lossy(&output.stderr));
    Ok(day)
}

/// A plant, and its ring.
pub(crate) struct Plant {
    process: PlantProcess,
    pub(crate) ring: Name,
}

impl Plant {
    pub(crate) fn begin(folder: &Path, name: &str, text: &str) -> anyhow::Result<Self> {
        let ring = format!("bench-bridge-{name}-{}", std::process::id());
        let config = folder.join(format!("{name}.toml"));
        std::fs::write(&config, format!("[plant]\nring = \"{ring}\"\nring_size = \"64MiB\"\n{text}"))?;
        let command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        let process = PlantProcess::begin(command, &config, &folder.join(format!("{name}.said")))?;
        Ok(Self { process, ring: Name::new(&ring)? })
    }

    /// Waits for the plant's end, and returns what it says then.
    pub(crate) fn finish(&mut self) -> anyhow::Result<Value> {
        let said = self.process.line()?;
        self.process.child.wait()?;
        Ok(said)
    }

    /// Returns the clock of the plant's time stamps.
    pub(crate) fn clock(&self) -> anyhow::Result<Clock> {
        // A reader that does not read would stop the plant.
        let note = Subscriber::join(&self.ring, Start::Newest)?.note().and_then(Note::from_words);
        Ok(Clock::with(note.context("the plant has no clock")?.calibration))
    }

    /// Ends the plant before its feed's session. One that is killed leaves files in shared memory.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.process.child), Signal::TERM)?;
        self.process.child.wait()?;
        Ok(())
    }
}

/// An address that is free for UDP and TCP.
pub(crate) fn unbound() -> anyhow::Result<SocketAddrV4> {
    for _ in 0..100 {
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port));
        }
    }
    bail!("no port is free for UDP and TCP")
}

/// The plants, in the order in which they end.
pub(crate) struct Plants {
    above: Plant,
    below: Option<Plant>,
    /// Lines that lose datagrams.
    _lossy: Vec<Lossy>,
    /// The folder of media drivers.
    _drivers: Option<TempDir>,
}

/// The tables of a bridge: those of the plant above, and of the plant below.
struct Bridge {
    above: String,
    below: String,
    lossy: Vec<Lossy>,
    drivers: Option<TempDir>,
}

/// A folder for media drivers: in memory, as Aeron's own.
#[cfg(feature = "aeron")]
pub(crate) fn drivers() -> std::io::Result<TempDir> {
    tempfile::tempdir_in("/dev/shm")
}

fn bridge(carrier: Carrier, folder: &Path) -> anyhow::Result<Bridge> {
    let server = unbound()?;
    let mut above = format!("[bridge]\nplant = \"UP\"\nport = {}\n", server.port());
    let mut below = format!("[[upstream]]\nplant = \"UP\"\nserver = \"{server}\"\nstale_after = \"0s\"\n");
    let mut lossy = Vec::new();
    #[cfg_attr(not(feature = "aeron"), expect(unused_mut, reason = "nobody else has drivers"))]
    let mut drivers = None;
    let mut line = |keys: [String; 2]| {
        above.push_str(&format!("[[bridge.line]]\n{}\n", keys[0]));
        below.push_str(&format!("[[upstream.line]]\n{}\n", keys[1]));
    };
    match carrier {
        Carrier::Datagrams => {
            for _ in 0..2 {
                let key = format!("address = \"{}\"", unbound()?);
                line([key.clone(), key]);
            }
        }
        Carrier::LossyLine | Carrier::LossyLines => {
            // The second line loses other datagrams than the first.
            let begun = [0, LOST_OF / 2];
            for begun in &begun[..if carrier == Carrier::LossyLine { 1 } else { 2 }] {
                let to = unbound()?;
                let through = Lossy::begin(to, LOST_OF, *begun)?;
                line([format!("address = \"{}\"", through.address), format!("address = \"{to}\"")]);
                lossy.push(through);
            }
        }
        Carrier::Tcp | Carrier::Tls => {
            if carrier == Carrier::Tls {
                let made = rcgen::generate_simple_self_signed(vec!["bench".to_owned()])?;
                std::fs::write(folder.join("cert.pem"), made.cert.pem())?;
                std::fs::write(folder.join("key.pem"), made.signing_key.serialize_pem())?;
                above.push_str("cert = \"cert.pem\"\nkey = \"key.pem\"\n");
                below.push_str("tls = true\nca = \"cert.pem\"\nserver_name = \"bench\"\n");
            }
            let key = format!("tcp = \"{}\"", unbound()?);
            above.push_str(&format!("[[bridge.line]]\n{key}\n"));
            below.push_str(&format!("[[upstream.line]]\n{key}\n"));
        }
        #[cfg(feature = "aeron")]
        Carrier::Aeron => {
            let key = format!("aeron = \"aeron:udp?endpoint={}\"", unbound()?);
            line([key.clone(), key]);
            let folder = drivers.insert(self::drivers()?);
            for (tables, name) in [(&mut above, "aeron-above"), (&mut below, "aeron-below")] {
                let folder = folder.path().join(name);
                tables.push_str(&format!("[aeron]\nfolder = \"{}\"\nembedded = true\n", folder.display()));
            }
        }
        _ => {}
    }
    Ok(Bridge { above, below, lossy, drivers })
}

impl Plants {
    /// Starts the plants: the feed begins at once.
    pub(crate) fn begin(carrier: Carrier, folder: &Path, day: &Path) -> anyhow::Result<Self> {
        let feed = feed(day);
        if carrier == Carrier::Ring {
            let above = Plant::begin(folder, "above", &feed)?;
            return Ok(Self { above, below: None, _lossy: Vec::new(), _drivers: None });
        }
        let bridge = bridge(carrier, folder)?;
        // At once: a plant below joins before millions of ticks are gone.
        let (above, below) = std::thread::scope(|scope| {
            let above = scope.spawn(|| Plant::begin(folder, "above", &format!("{feed}{}", bridge.above)));
            let below = Plant::begin(folder, "below", &bridge.below);
            (above.join().expect("a thread has panicked"), below)
        });
        let (above, below) = (above?, below?);
        Ok(Self { above, below: Some(below), _lossy: bridge.lossy, _drivers: bridge.drivers })
    }

    /// Reads the last ring to its end.
    pub(crate) fn measure(mut self) -> anyhow::Result<Turn> {
        let clock = self.above.clock()?;
        let ring = self.below.as_ref().map_or(&self.above.ring, |below| &below.ring);
        let begun = Instant::now();
        let report = loop {
            match read(ring, clock) {
                Err(error)
                    if !matches!(error.downcast_ref(), Some(tapeline_ring::Error::NotFound { .. })) =>
                {
                    return Err(error);
                }
                Ok(report) if report.end == Ending::SessionOver => break Some(report),
                // The feed does not wait for the plant below, which finds itself too far behind at first, and begins another ring. One that does
                // not keep up does so again and again.
                _ if begun.elapsed() < JOINING => std::thread::sleep(LOOK),
                _ => break None,
            }
        };
        let mut last = Value::Null;
        // The plant above answers for a while after its end. One that is killed leaves files in shared memory.
        for plant in self.below.iter_mut().chain([&mut self.above]) {
            let said = plant.finish()?;
            if last.is_null() {
                last = said;
            }
        }
        let recovered = last["upstream"]["recovered"].as_u64().unwrap_or(0);
        let latency = report.as_ref().map_or_else(|| Ok(Recorder::new()), received)?;
        let (rate_hz, lost) = report.map_or((0.0, 0), |report| (report.rate_hz(), report.lost));
        Ok(Turn { latency, rate_hz, lost, recovered })
    }
}

/// The tables of a plant that takes a day's messages.
pub(crate) fn feed(day: &Path) -> String {
    format!(
        "publish = \"every-message\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\n\
         date = \"2020-01-02\"\nfile = \"{}\"\nstale_after = \"0s\"\n",
        day.display()
    )
}

/// From a tick being written above to it being read. A plant below that does not keep up may have nothing after the warm-up.
pub(crate) fn received(report: &PathReport) -> anyhow::Result<Recorder> {
    let found = report.latencies()?.into_iter().find(|(hop, _)| *hop == Hop::SequencedToReceived);
    Ok(found.map_or_else(Recorder::new, |(_, latency)| latency))
}

/// Measures the ticks of a ring to the end of the feed's session, or to its own.
pub(crate) fn read(ring: &Name, clock: Clock) -> anyhow::Result<PathReport> {
    let mut meter = Meter::new(WARM_UP, false);
    let is_over = each_tick(ring, |tick| {
        meter.tick(tick, clock.now());
        !tick.header.flags.contains(Flags::END_OF_SESSION)
    })?;
    let end = if is_over { Ending::SessionOver } else { Ending::PlantEnded };
    Ok(meter.report("bench".to_owned(), end, 0, clock.error_ns()))
}

/// Passes on the ticks of a ring until `each` wants no more, or to the ring's end; returns `true` in the first case.
pub(crate) fn each_tick(ring: &Name, mut each: impl FnMut(&Tick<'_>) -> bool) -> anyhow::Result<bool> {
    let mut subscriber = Subscriber::join_as(ring, Start::Newest, "bench")?;
    loop {
        match ticks::next(&mut subscriber)? {
            Next::Tick(tick) if !each(&tick) => return Ok(true),
            Next::Tick(_) => {}
            Next::Nothing => _ = subscriber.wait(Wait::Park, Duration::from_millis(50)),
            Next::End => return Ok(false),
            Next::Lost(lost) => return Err(lost.of("this reader").into()),
        }
    }
}

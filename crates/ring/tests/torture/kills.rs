//! A thousand subscribers, one after the other, each killed while it blocks the full ring.

use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tapeline_ring::{Publisher, inspect};

use crate::players::try_act;
use crate::script::Dice;
use crate::shape::shapes;
use crate::stage::Stage;

const KILLS: usize = 1_000;
/// For this many kills the publisher does not try to continue at once, but watches the dead subscriber's lock.
const WATCHED: usize = 200;
/// Processes that are started together, so that none that starts takes the processor that is needed at a death.
const TOGETHER: usize = 50;

/// Nanoseconds between two moments of a death.
#[derive(Default)]
struct Spans(Vec<u64>);

impl Spans {
    fn add(&mut self, from: Instant, to: Instant) {
        // Two threads saw the two moments, in any order.
        self.0.push(to.saturating_duration_since(from).as_nanos() as u64);
    }

    fn print(mut self, what: &str) {
        self.0.sort_unstable();
        let at = |share: f64| self.0[((self.0.len() - 1) as f64 * share) as usize] as f64 / 1e3;
        let (p50, p90, p99, most) = (at(0.5), at(0.9), at(0.99), at(1.0));
        let long = self.0.iter().filter(|ns| **ns > 1_000_000).count();
        println!(
            "kills: {what:42} p50 {p50:8.1}  p90 {p90:8.1}  p99 {p99:8.1}  max {most:8.1} µs; {long} of {} over 1 ms",
            self.0.len()
        );
    }
}

/// The publisher's core, and the cores of all others, so that the times are those of the ring and not of a wait for
/// a processor.
struct Cores {
    publishers: CpuSet,
    others: CpuSet,
}

impl Cores {
    /// The publisher gets the last core that this process may use; with only one core, all share it.
    fn of_this_process() -> Self {
        let mut others = sched_getaffinity(None).unwrap();
        let mut publishers = others;
        if others.count() > 1
            && let Some(last) = (0..CpuSet::MAX_CPU).rev().find(|core| others.is_set(*core))
        {
            publishers = CpuSet::new();
            publishers.set(last);
            others.unset(last);
        }
        Self { publishers, others }
    }

    /// Runs `start`'s process on other cores than the publisher, which is this thread.
    fn elsewhere<T>(&self, start: impl FnOnce() -> T) -> T {
        sched_setaffinity(None, &self.others).unwrap();
        let started = start();
        sched_setaffinity(None, &self.publishers).unwrap();
        started
    }
}

/// The publisher continues every time, and the subscriber that reads all the time loses nothing.
pub(crate) fn torture(seed: u64) {
    // Gated, without a stall limit, small.
    let (script, options) = (shapes()[0].script(seed), shapes()[0].options());
    let mut stage = Stage::new(0, seed);
    let mut publisher = Publisher::open(&stage.name.0, &options).unwrap();
    let mut dice = Dice::new(seed);
    let cores = Cores::of_this_process();
    let reader = cores.elsewhere(|| stage.start("reader"));
    stage.said(reader, "joined");
    let mut waiting: Vec<u64> = Vec::new();
    let mut bytes = vec![0; publisher.max_frame()];
    let mut publish = |publisher: &mut Publisher| {
        let number = publisher.frames();
        let act = script.act_at(number).unwrap();
        try_act(publisher, &script, number, act, &mut bytes, &mut dice).is_ok()
    };
    let [mut lock, mut wait, mut from_kill, mut from_wait] = [(); 4].map(|()| Spans::default());
    for kill in 0..KILLS {
        if waiting.is_empty() {
            cores.elsewhere(|| waiting.extend((0..TOGETHER).map(|_| stage.start("gate"))));
            for gate in &waiting {
                stage.said(*gate, "waits");
            }
        }
        let gate = waiting.pop().unwrap();
        stage.tell(gate);
        stage.said(gate, "joined");
        // Full only because of the subscriber that does not read: full also after the reader has read everything.
        let mut has_read = false;
        while publish(&mut publisher) || !has_read {
            publisher.flush();
            let ring = inspect(&stage.name.0).unwrap();
            // The reader joined first.
            has_read = ring.subscribers[0].lag_bytes == 0;
        }
        let is_watched = kill % (KILLS / WATCHED) == 0;
        let gate = stage.condemn(gate);
        let (killed, waited, went_on) = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                sched_setaffinity(None, &cores.others).unwrap();
                let killed = Instant::now();
                gate.kill();
                (killed, Instant::now())
            });
            while is_watched && inspect(&stage.name.0).unwrap().subscribers.iter().all(|s| s.alive) {}
            let unlocked = Instant::now();
            // On few processors, the dying process needs this one too.
            while !publish(&mut publisher) {
                std::thread::yield_now();
            }
            let went_on = if is_watched { unlocked } else { Instant::now() };
            let (killed, waited) = killer.join().unwrap();
            (killed, waited, went_on)
        });
        if is_watched {
            lock.add(killed, went_on);
        } else {
            wait.add(killed, waited);
            from_kill.add(killed, went_on);
            from_wait.add(waited, went_on);
        }
        assert_eq!(publisher.reclaimed(), kill as u64 + 1);
    }
    let frames = publisher.frames();
    publisher.close().unwrap();
    assert_eq!(stage.said(reader, "saw"), frames.to_string(), "nothing is lost to the others");
    println!("kills: {KILLS} subscribers killed while each held the ring full, {frames} frames");
    lock.print("kill(2) to the lock's release, as polled");
    wait.print("kill(2) to the return of waitpid(2)");
    from_kill.print("kill(2) to the publisher's next frame");
    from_wait.print("waitpid(2) to the publisher's next frame");
}

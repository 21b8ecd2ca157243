//! Runs with simulated threads: counts and results.

use std::fs;
use std::sync::{Arc, Mutex};

use tapeline_console::arguments::Core;
use tapeline_console::output::Format;
use tapeline_console::paths::FilePath;
use tempfile::TempDir;

use super::*;
use crate::omm::tally::{Counts, Kind, Timed};

/// A folder for a run's files.
struct Place {
    folder: TempDir,
    threads: ThreadArgs,
    results: ResultArgs,
    stats_file: String,
    summary_file: std::path::PathBuf,
}

/// A console that can be read afterwards.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Place {
    fn new(threads: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        Self {
            threads: ThreadArgs { threads: vec![Core(None); threads], main_thread: Core(None) },
            results: ResultArgs {
                latency_file: Some(path("Latency")),
                write_stats_interval: 1,
                no_display_stats: false,
                run_folder: Some(FilePath::of(folder.path().join("run"))),
                jitter_time: Duration::ZERO,
                format: Format::Table,
                log: tapeline_console::LogArgs::default(),
            },
            stats_file: path("Stats"),
            summary_file: folder.path().join("Summary.out"),
            folder,
        }
    }

    fn run(&self, tool: Tool, limit: Limit) -> RunSettings<'_> {
        RunSettings {
            tool,
            inputs: vec![("Steady State Time", "1".to_owned()), ("Latency Generic Msg Rate", "0".to_owned())],
            threads: &self.threads,
            results: &self.results,
            summary_file: &self.summary_file,
            stats_file: &self.stats_file,
            limit,
            is_timed: true,
            images: vec![100; self.threads.threads.len()],
            rates: Rates::default(),
            tick_rate: 1_000,
            unit: Unit::Micros,
        }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn record(&self) -> serde_json::Value {
        serde_json::from_str(&self.text("run/run.json")).unwrap()
    }

    fn why(&self) -> String {
        self.record()["why"].as_str().unwrap().to_owned()
    }
}

fn limit(seconds: u64) -> Limit {
    Limit::SteadyState { time: Duration::from_secs(seconds), delay: Duration::ZERO }
}

/// Requests and images, then the steady state. All times are fictitious.
fn start_up(link: &mut Link) {
    link.say(Word::Milestone(Milestone::Ready));
    link.say(Word::Milestone(Milestone::FirstRequest(Nanos(1_000_000_000))));
    link.tally.counts.requests = 100;
    link.tally.counts.images = 100;
    link.tally.counts.updates = 50;
    link.tally.time(timed(Kind::Update, 300_000, 0));
    link.say(Word::Milestone(Milestone::AllImages(Nanos(1_250_000_000))));
    link.begin(RunPhase::Steady);
}

/// A message that was sent `late_ns` after its due time and took `took_ns`.
fn timed(kind: Kind, took_ns: u64, late_ns: u64) -> Timed {
    let sent = tapeline_measure::monotonic_ns();
    Timed { kind, sent, due: Some(sent - late_ns), received: sent + took_ns }
}

/// Waits for the end as a working thread does, and ends.
fn until_over(mut link: Link) {
    while !link.is_over() {
        link.settle();
        thread::yield_now();
    }
    link.end(Ok(()));
}

fn steady(mut link: Link) {
    for ns in 0..1_000 {
        link.tally.counts.updates += 1;
        link.tally.time(timed(Kind::Update, 20_000 + 10 * ns, 0));
    }
    until_over(link);
}

/// A consumer's thread.
fn consume(_: usize, mut link: Link) {
    start_up(&mut link);
    steady(link);
}

fn measure(
    run: &RunSettings<'_>,
    work: impl Fn(usize, Link) + Clone + Send + 'static,
) -> (anyhow::Result<Verdict>, String) {
    let screen = Screen::default();
    let result = collect(run, &Clock::calibrate(), Vec::new(), &|| false, Box::new(screen.clone()), work);
    let shown = String::from_utf8(screen.0.lock().unwrap().clone()).unwrap();
    let verdict = result.map(|Outcome { verdict, is_cut }| {
        assert!(!is_cut, "nobody ended it");
        verdict
    });
    (verdict, shown)
}

/// A run that its user ends at once.
fn interrupted(
    run: &RunSettings<'_>,
    work: impl Fn(usize, Link) + Clone + Send + 'static,
) -> anyhow::Result<Outcome> {
    collect(run, &Clock::calibrate(), Vec::new(), &|| true, Box::new(std::io::sink()), work)
}

const COSTS: [&str; 7] =
    ["CPU/Memory", "CPU Usage", "Memory Usage", "CPU:", "run folder", "Sampling", "rate:"];

/// The lines that do not depend on the machine and its clock.
fn steady_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !COSTS.iter().any(|cost| line.contains(cost)));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_run_that_never_posted_though_it_was_asked_to_does_not_pass() {
    let place = Place::new(1);
    let run = RunSettings {
        rates: Rates { posts: 100, ..Rates::default() },
        ..place.run(Tool::Consumer, limit(1))
    };
    let (verdict, shown) = measure(&run, consume);
    assert_eq!(verdict.unwrap(), Verdict::GeneratorLimited, "{shown}");
    assert!(shown.contains("none of the 100 posts/s that were asked for was sent"), "{shown}");
}

#[test]
fn a_consumer_s_run_leaves_the_guide_s_files_and_a_run_folder() {
    let place = Place::new(1);
    let (verdict, shown) = measure(&place.run(Tool::Consumer, limit(1)), consume);
    assert_eq!(verdict.unwrap(), Verdict::Pass);
    let summary = place.text("Summary.out");
    let results = "
--- OVERALL SUMMARY ---

Startup State Statistics:
  Latency avg (usec): 300.0
  Latency std dev (usec): 0.0
  Latency max (usec): 300.0
  Latency min (usec): 300.0

Steady State Statistics:
  Latency avg (usec): 25.0
  Latency std dev (usec): 2.9
  Latency max (usec): 30.0
  Latency min (usec): 20.0

Overall Statistics:
  Latency avg (usec): 25.3
  Latency std dev (usec): 9.2
  Latency max (usec): 300.0
  Latency min (usec): 20.0
  No GenMsg latency information was received.

Test Statistics:
  Requests sent: 100
  Refreshes received: 100
  Updates received: 1050
  Image retrieval time (sec): 0.250

--- DISTRIBUTIONS ---

percentile   service   response
----------   -------   --------
min          20.0 µs    20.0 µs
";
    let inputs = "--- TEST INPUTS ---\n\n       Steady State Time: 1\nLatency Generic Msg Rate: 0\n";
    assert!(steady_lines(&summary).starts_with(&format!("{inputs}{results}")), "{summary}");
    assert!(summary.contains("\n  Avg image rate: 400\n"), "{summary}");
    assert!(summary.contains("\nPASS: 1,150 messages, latency steady (20.0 µs"), "{summary}");
    // The console shows the interval between inputs and results.
    let intervals = shown.strip_prefix(inputs).unwrap();
    let line = intervals.lines().next().unwrap();
    assert!(line.starts_with("001: Images:    100, Posts:      0, UpdRate:     1050, CPU: "), "{line}");
    assert!(line.contains("%, Mem: ") && line.ends_with("MB"), "{line}");
    let rest = "
  Latency(usec): Avg:  25.3 StdDev:   9.2 Max:   300 Min:    20, Msgs: 1001
  - Image retrieval time for 100 images: 0.250s (400 images/s)

--- OVERALL SUMMARY ---
";
    assert!(intervals[line.len()..].starts_with(rest), "{shown}");

    let statistics = place.text("Stats1.csv");
    let rows: Vec<Vec<&str>> = statistics.lines().map(|line| line.split(", ").collect()).collect();
    assert_eq!((rows[0].len(), rows[1].len()), (36, 36), "{statistics}");
    let theirs = ["1001", "25.3", "9.2", "300.0", "20.0", "100", "1050", "0", "0.0"];
    assert_eq!(rows[1][1..10], theirs);
    let ours = ["25.0", "29.0", "29.9", "", "", "25.0", "29.0", "29.9", "", "", "1001", "1001", "PASS"];
    assert_eq!(rows[1][23..], ours, "a percentile needs ten samples beyond it");

    let latencies = place.text("Latency1.csv");
    assert_eq!(latencies.lines().count(), 1_002);
    let columns = latencies.lines().next().unwrap();
    let expected = "Message type, Send time, Receive time, Latency (usec), Due time, Response (usec)";
    assert_eq!(columns, expected);
    for row in latencies.lines().skip(1) {
        let cells: Vec<&str> = row.split(", ").collect();
        let [kind, sent, received, latency, due, response] = cells[..] else { panic!("{row}") };
        let number = |text: &str| text.parse::<i64>().unwrap();
        assert_eq!((kind, due, response), ("Upd", sent, latency));
        assert_eq!(number(received) - number(sent), number(latency));
    }

    let record = place.record();
    assert_eq!((&record["kind"], &record["verdict"]), (&"omm-consumer".into(), &"PASS".into()));
    assert_eq!(record["settings"]["inputs"]["Steady State Time"], "1");
    assert_eq!(record["throughput"]["messages"], 1_000);
    assert_eq!(record["counts"]["stamped_updates"], 1_001, "those that were received");
    assert_eq!(record["hops"][0]["name"], "service");
    assert_eq!(record["hops"][1]["name"], "response");
    assert_eq!(record["hops"][1]["samples"], 1_000);
    assert_eq!(record["phases"][0]["service"]["samples"], 1);
    assert_eq!(record["phases"][1]["messages"], 1_000);
    assert_eq!(record["timeline"][0]["messages"], 1_050);
    assert!(place.text("run/stats-1.csv").starts_with("start_s,count,"));
    assert!(place.text("run/latency.hlog").contains("Tag=response,"));
    assert!(place.text("run/summary.txt").contains("--- OVERALL SUMMARY ---"));
}

#[test]
fn without_all_images_in_time_there_is_no_steady_state() {
    let place = Place::new(2);
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit(1)), |number, mut link| {
        link.say(Word::Milestone(Milestone::Ready));
        link.say(Word::Milestone(Milestone::FirstRequest(Nanos(1))));
        link.tally.counts.images = [100, 70][number];
        if number == 0 {
            link.say(Word::Milestone(Milestone::AllImages(Nanos(2))));
            link.begin(RunPhase::Steady);
        }
        until_over(link);
    });
    let error = verdict.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("did not reach steady state: 170 of 200 images after 1."), "{said}");
    let hint = tapeline_console::failure::hints(&error).join(" ");
    assert!(hint.contains("--steady-state-time"), "{hint}");
    let summary = place.text("Summary.out");
    assert!(summary.contains("Steady state was not reached during this test."), "{summary}");
    assert!(summary.contains("OVERLOAD: did not reach steady state: 170 of 200"), "{summary}");
    for part in ["--- CLIENT 1 SUMMARY ---", "--- CLIENT 2 SUMMARY ---"] {
        assert!(summary.contains(part), "{summary}");
    }
    assert_eq!(place.record()["verdict"], "OVERLOAD");
}

#[test]
fn a_failing_thread_ends_the_run_for_all() {
    type Fail = (fn(Link), &'static str);
    let fails: [Fail; 4] = [
        (|link| link.end(Err(anyhow!("no such host"))), "connection 2 failed: no such host"),
        (|_| panic!("off by {}", 1), "connection 2 failed: its thread panicked: off by 1"),
        (|_| (), "connection 2 failed: its thread ended without a word"),
        (
            |link| {
                link.say(Word::Milestone(Milestone::Lost("closed by the peer".to_owned())));
                link.end(Ok(()));
            },
            "connection 2 was lost: closed by the peer",
        ),
    ];
    for (how, what) in fails {
        let place = Place::new(2);
        let lost = what.contains("lost");
        let (verdict, _) = measure(
            &place.run(Tool::Consumer, limit(if lost { 1 } else { 3_600 })),
            move |number, mut link| {
                start_up(&mut link);
                if number == 1 {
                    return how(link);
                }
                until_over(link);
            },
        );
        assert_eq!(format!("{:#}", verdict.unwrap_err()), what);
        assert_eq!(place.record()["verdict"], "NO-RESULT", "nothing says that latency grew");
        assert!(place.text("Summary.out").contains(what), "{}", place.text("Summary.out"));
    }
}

#[test]
fn times_before_the_delay_is_over_do_not_count_for_the_steady_state() {
    let place = Place::new(1);
    let limit = Limit::SteadyState { time: Duration::from_secs(1), delay: Duration::from_millis(100) };
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit), |_, mut link| {
        start_up(&mut link);
        link.tally.counts.updates = 1;
        link.tally.time(timed(Kind::Update, 900_000, 0));
        // The first requested tally is the one after the delay.
        let before = &raw const *link.tally;
        while std::ptr::eq(before, &raw const *link.tally) {
            link.settle();
            thread::yield_now();
        }
        steady(link);
    });
    verdict.unwrap();
    let record = place.record();
    assert_eq!(record["hops"][0]["samples"], 1_000);
    assert_eq!(record["hops"][0]["latency_ns"]["max"], 29_990);
    assert_eq!(record["phases"][1]["messages"], 1_001, "messages count all the same");
    let summary = place.text("Summary.out");
    assert!(summary.contains("Latency max (usec): 900.0"), "over all it counts: {summary}");
}

#[test]
fn a_stall_of_the_sender_shows_in_response_time_and_verdict() {
    let place = Place::new(1);
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit(1)), |_, mut link| {
        start_up(&mut link);
        for late in (0..5).rev() {
            link.tally.time(timed(Kind::Update, 20_000, 1_000_000 * late + 200_000));
        }
        steady(link);
    });
    assert_eq!(verdict.unwrap(), Verdict::Pass);
    let why = place.why();
    let expected = "; 4 messages with a time began later than a slice (1.0 ms) after they were due, the worst 4.2 ms late; \
                    worst response time 4.2 ms";
    assert!(why.ends_with(expected), "{why}");
    let record = place.record();
    assert_eq!(record["hops"][0]["latency_ns"]["max"], 29_990, "service time knows nothing of it");
    assert_eq!(record["hops"][1]["latency_ns"]["max"], 4_220_000);
}

#[test]
fn a_foreign_sender_s_messages_have_service_times_only() {
    let place = Place::new(1);
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit(1)), |_, mut link| {
        start_up(&mut link);
        link.tally.time(Timed { due: None, ..timed(Kind::Update, 20_000, 0) });
        until_over(link);
    });
    verdict.unwrap();
    let record = place.record();
    assert_eq!(record["hops"].as_array().unwrap().len(), 1);
    assert!(record["why"].as_str().unwrap().contains("service time only"), "{}", record["why"]);
    assert!(place.text("Latency1.csv").lines().last().unwrap().ends_with(", 20, , "));
}

#[test]
fn snapshots_end_when_all_are_there() {
    let place = Place::new(1);
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit(3_600)), |_, mut link| {
        start_up(&mut link);
        link.say(Word::Milestone(Milestone::Done(Nanos(1_250_000_000))));
        until_over(link);
    });
    assert_eq!(verdict.unwrap(), Verdict::Pass);
}

#[test]
fn a_user_can_end_any_run_and_cuts_one_short_that_has_a_time() {
    for is_timed in [false, true] {
        let place = Place::new(1);
        let run = place.run(Tool::Provider, Limit::RunTime(Duration::from_secs(3_600)));
        let outcome = interrupted(&RunSettings { is_timed, ..run }, |_, mut link| {
            link.tally.counts.updates = 7;
            until_over(link);
        });
        let Outcome { verdict, is_cut } = outcome.unwrap();
        assert_eq!((verdict, is_cut), (Verdict::Pass, is_timed));
        assert!(place.text("Summary.out").contains("CPU/Memory samples: 1"));
        let why = place.why();
        assert_eq!(why.contains("; ended by the user after "), is_timed, "{why}");
        assert_eq!(why.ends_with(" s of 3600 s"), is_timed, "{why}");
    }
}

#[test]
fn who_ends_a_consumer_before_all_images_has_no_result_and_no_error() {
    let place = Place::new(1);
    let outcome = interrupted(&place.run(Tool::Consumer, limit(3_600)), |_, mut link| {
        link.say(Word::Milestone(Milestone::Ready));
        link.tally.counts.images = 70;
        until_over(link);
    });
    let Outcome { verdict, is_cut } = outcome.unwrap();
    assert_eq!((verdict, is_cut), (Verdict::NoResult, true), "nothing says that anybody fell behind");
    let why = place.why();
    let said = "did not reach steady state: 70 of 100 images when it was stopped after";
    assert!(why.starts_with(said), "{why}");
}

#[test]
fn times_of_another_clock_or_unit_are_no_result() {
    // Nanoseconds mistaken for microseconds, and messages sent before the run began.
    const HOUR_NS: u64 = 3_600_000_000_000;
    let sent: [fn(u64) -> u64; 2] = [|now| now.wrapping_mul(1_000), |now| now.wrapping_sub(2 * HOUR_NS)];
    for sent in sent {
        let place = Place::new(1);
        let (verdict, _) = measure(&place.run(Tool::Consumer, limit(1)), move |_, mut link| {
            start_up(&mut link);
            for _ in 0..3 {
                let received = tapeline_measure::monotonic_ns();
                link.tally.counts.updates += 1;
                link.tally.time(Timed { kind: Kind::Update, sent: sent(received), due: None, received });
            }
            until_over(link);
        });
        assert_eq!(verdict.unwrap(), Verdict::NoResult);
        let why = place.why();
        let expected = "the times of messages do not fit this clock: 3 of 3 latencies are below nothing or longer than the run; \
                        has the other end --nano-time, or another machine's clock?";
        assert_eq!(why, expected);
    }
}

/// The main thread's collector without a running loop, and the link of its working thread.
fn by_hand<'a>(run: &'a RunSettings<'a>) -> (Collector<'a>, Link, Receiver<(usize, Word)>) {
    let terms = Terms::default();
    let Links { mut threads, handles, is_over, said } = Links::new(1, terms);
    let output = Output::open(run, Box::new(std::io::sink())).unwrap();
    let collector = Collector::new(run, terms, handles, is_over, output).unwrap();
    (collector, threads.pop().unwrap(), said)
}

#[test]
fn intervals_that_are_answered_late_are_written_and_hold_none_back() {
    let mut place = Place::new(1);
    place.results.write_stats_interval = 5;
    let run = place.run(Tool::Consumer, limit(3_600));
    let (mut collector, mut link, said) = by_hand(&run);
    // The thread stalls over the end of one interval, and later over the ends of two; otherwise it answers in time.
    let stalls: [std::ops::RangeInclusive<u64>; 10] =
        [1..=1, 2..=2, 3..=7, 8..=8, 9..=9, 10..=10, 11..=22, 23..=23, 24..=24, 25..=25];
    for seconds in stalls {
        for second in seconds.clone() {
            assert_eq!(collector.second, second);
            collector.end_second().unwrap();
        }
        link.tally.counts.updates += 100 * (1 + seconds.end() - seconds.start());
        // Once per request: at most two requests are outstanding.
        (0..2).for_each(|_| link.settle());
        while let Ok((number, word)) = said.try_recv() {
            collector.hear(number, word).unwrap();
        }
    }
    assert!(collector.moments.is_empty() && collector.threads[0].ended.is_empty());
    let rows = place.text("Stats1.csv");
    let rates: Vec<&str> = rows.lines().skip(1).map(|row| row.split(", ").nth(7).unwrap()).collect();
    // The first row has the messages up to second 7, the second row those after it; the third row covers ten seconds.
    assert_eq!(rates, ["140", "60", "120", "60"], "{rows}");
}

#[test]
fn providers_have_their_own_lines_and_columns() {
    for (tool, columns, lines) in [
        (Tool::Provider, 28, &["Image requests received: 3", "Updates sent: 4000", "Posts received: 2"][..]),
        (Tool::NiProvider, 18, &["Images sent: 5", "Updates sent: 4000"]),
    ] {
        let place = Place::new(2);
        let mut run = place.run(tool, Limit::RunTime(Duration::from_secs(1)));
        run.rates.updates = 2_000;
        let (verdict, shown) = measure(&run, |number, mut link| {
            if number == 0 {
                link.tally.counts = Counts {
                    requests: 3,
                    images: 5,
                    updates: 4_000,
                    posts: 2,
                    reflected_posts: 2,
                    generics_sent: 1_000,
                    ..Default::default()
                };
            }
            link.tally.slice(5_000_000);
            until_over(link);
        });
        assert_eq!(verdict.unwrap(), Verdict::Pass);
        let summary = place.text("Summary.out");
        for line in lines.iter().chain(&["--- THREAD 2 SUMMARY ---", "2 slices began later than a slice"]) {
            assert!(summary.contains(line), "{line}: {summary}");
        }
        let statistics = place.text("Stats2.csv");
        assert!(statistics.lines().all(|line| line.split(", ").count() == columns), "{statistics}");
        assert!(shown.contains("001: Thread 1:\n  UpdRate:     4000, CPU: "), "{shown}");
        let images = match tool {
            Tool::Provider => "  - Received 3 item requests (total: 3), sent 5 images (total: 5)\n",
            _ => "  - Sent 5 images (total: 5)\n",
        };
        assert!(shown.contains(images), "{shown}");
        // Count, plot and rate are all of messages sent at a rate.
        let record = place.record();
        assert_eq!(record["throughput"]["messages"], 5_000);
        assert_eq!(record["timeline"][0]["messages"], 5_000);
    }
}

#[test]
fn what_cannot_be_written_is_said_before_the_run() {
    type Change = fn(&mut Place);
    let changes: [(Change, &str, &str); 3] = [
        (
            |place| place.summary_file = place.folder.path().join("absent/Summary.out"),
            "absent/Summary.out",
            "--summary-file",
        ),
        (|place| place.summary_file = "/dev/full".into(), "cannot write /dev/full", ""),
        (
            |place| place.results.latency_file = Some(place.stats_file.clone()),
            "--stats-file and --latency-file",
            "",
        ),
    ];
    for (change, what, hint) in changes {
        let mut place = Place::new(1);
        change(&mut place);
        let never = |_: usize, _: Link| unreachable!("the run must not begin");
        let error = measure(&place.run(Tool::Consumer, limit(1)), never).0.unwrap_err();
        assert!(error.to_string().contains(what), "{error:#}");
        assert!(tapeline_console::failure::hints(&error).join(" ").contains(hint), "{error:#}");
    }
}

#[test]
fn as_json_the_record_is_all_that_is_printed() {
    let mut place = Place::new(1);
    place.results.format = Format::Json;
    let (verdict, shown) = measure(&place.run(Tool::Consumer, limit(1)), consume);
    verdict.unwrap();
    let printed: serde_json::Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(printed, place.record());
}

#[test]
fn a_machine_that_is_noisier_than_the_result_is_said_to_be() {
    let place = Place::new(1);
    let clock = Clock::calibrate();
    let noise = Jitter::measure(cores()[0], Duration::from_millis(1), Jitter::THRESHOLD_NS, &clock, || false);
    let run = place.run(Tool::Consumer, limit(1));
    let verdict =
        collect(&run, &clock, vec![noise.unwrap()], &|| false, Box::new(std::io::sink()), |_, mut link| {
            start_up(&mut link);
            for _ in 0..1_000 {
                // Any floor is above half of it.
                link.tally.time(timed(Kind::Update, 1, 0));
            }
            until_over(link);
        });
    let record = place.record();
    let floor = record["jitter_floor_p99_ns"].as_u64().unwrap();
    // A core that lost less than 1 % of such a short time has no floor.
    let expected = if floor > 0 { Verdict::Noisy } else { Verdict::Pass };
    assert_eq!(verdict.unwrap().verdict, expected, "{floor}");
    assert!(record["jitter"][0]["core"].is_u64());
}

#[test]
fn threads_are_bound_to_their_cores_and_only_to_such_as_there_are() {
    let bound = || rustix::thread::sched_getaffinity(None).unwrap().count() == 1;
    let core = Core(cores().first().copied());
    let mut place = Place::new(1);
    place.threads = ThreadArgs { threads: vec![core], main_thread: core };
    let (verdict, _) = measure(&place.run(Tool::Consumer, limit(1)), move |_, mut link| {
        if !bound() {
            return link.end(Err(anyhow!("free to run anywhere")));
        }
        start_up(&mut link);
        steady(link);
    });
    verdict.unwrap();
    assert!(bound(), "the main thread");

    let absent = Core(Some(8_191));
    for (threads, main_thread, option) in
        [(absent, Core(None), "(--threads)"), (Core(None), absent, "(--main-thread)")]
    {
        let mut place = Place::new(1);
        place.threads = ThreadArgs { threads: vec![threads], main_thread };
        let (verdict, _) = measure(&place.run(Tool::Consumer, limit(3_600)), |_, link| {
            until_over(link);
        });
        let error = format!("{:#}", verdict.unwrap_err());
        assert!(error.contains(option) && error.contains("8191"), "{error}");
    }
}

#[test]
fn intervals_are_shown_and_written_as_often_as_is_asked_for() {
    let mut place = Place::new(1);
    place.results.write_stats_interval = 2;
    place.results.no_display_stats = true;
    let (verdict, shown) = measure(&place.run(Tool::Consumer, limit(3)), consume);
    verdict.unwrap();
    assert!(!shown.contains("Images: ") && shown.contains("OVERALL SUMMARY"), "{shown}");
    let statistics = place.text("Stats1.csv");
    assert_eq!(statistics.lines().nth(1).unwrap().split(", ").nth(7), Some("525"), "a second: {statistics}");
    assert!(place.record()["timeline"].as_array().unwrap().len() >= 3, "the record has every second");
}

//! Tapeline's performance tools and LSEG's library count and time in the same way: each gets every message that the
//! other sends, and the times in the messages mean the same to both.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::{Place, free_port};
use crate::way::WAYS;

const ITEMS: &str = "100";
const ITEM_COUNT: u64 = 100;
const UPDATES: u64 = 20_000;
/// Time limit for a tool to listen, or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs both directions in turn; returns the results as lines.
pub(crate) fn agree(place: &Place) -> Result<String, String> {
    let folder = place.logs().join("perf");
    let _ = std::fs::remove_dir_all(&folder);
    let mut found = vec![to_library(place, &folder)?, from_library(place, &folder)?];
    for mode in ["LOGIN_BASED", "SERVICE_BASED"] {
        found.push(to_library_by_standby(place, &folder.join(mode), mode)?);
    }
    Ok(found.join("\n"))
}

/// A consumer on EMA (Java) with warm standby, and two of Tapeline's providers. The active one, which sends no
/// updates, is killed; the other sends nothing before, and everything that it sends arrives.
fn to_library_by_standby(place: &Place, folder: &Path, mode: &str) -> Result<String, String> {
    let [first_port, second_port] = [free_port(), free_port()];
    let ports = [first_port, second_port].map(|port| port.to_string());
    let quiet =
        ["--port", &ports[0], "--update-rate", "0", "--latency-update-rate", "0", "--run-time", "600"];
    let mut first = Tool::start(&folder.join("first"), "provider", &quiet)?;
    let busy =
        ["--port", &ports[1], "--update-rate", "10000", "--run-time", "40", "--write-stats-interval", "1"];
    let mut second = Tool::start(&folder.join("second"), "provider", &busy)?;
    first.listens(first_port)?;
    second.listens(second_port)?;
    let mut command = only(&place.java_client("EmaTimedConsumer", WAYS[0], first_port), &["--server"]);
    command.args(["--standby", &format!("localhost:{second_port}"), "--standby-mode", mode]);
    command.args(["--items", ITEMS, "--dictionary", &place.dictionary()]);
    let mut library = place.start(command, "EmaTimedConsumer.log");
    library.wait_for("images")?;
    let begun = Instant::now();
    while second.column("ProvStats1.csv", "Requests received").unwrap_or(0).to_string() != ITEMS {
        if begun.elapsed() > PATIENCE {
            return Err(format!("EMA's consumer did not ask the server that stands by: {}", second.said()));
        }
        std::thread::yield_now();
    }
    let before =
        second.column("ProvStats1.csv", "Updates sent")? + second.column("ProvStats1.csv", "Images sent")?;
    drop(first);
    let told = library.wait_for("end")?;
    let second = second.end()?;
    let sent = second.figure("Overall Statistics", "Updates sent")? as u64;
    let images = second.column("ProvStats1.csv", "Images sent")?;
    if before != 0 || images.to_string() != ITEMS || sent == 0 || told["updates"].as_u64() != Some(sent) {
        return Err(format!(
            "{mode}: a provider that stood by sent {before} messages before it was wanted, then {images} images and {sent} \
             updates; EMA's consumer got: {told}"
        ));
    }
    Ok(format!(
        "Two of Tapeline's providers, EMA's consumer (Java) with warm standby, {mode}: the active one was killed, the other sent \
         {images} images and {sent} updates, and all of them got there"
    ))
}

/// Tapeline's provider and a consumer on EMA (Java): all updates arrive. Then with Tapeline's consumer as well, for
/// its times.
fn to_library(place: &Place, folder: &Path) -> Result<String, String> {
    let (sent, told, _) = published(place, &folder.join("alone"), false)?;
    let (got, timed) = (told["updates"].as_u64(), told["timed"].as_u64().unwrap_or(0));
    if got != Some(sent) || sent == 0 {
        return Err(format!("Tapeline's provider sent {sent} updates; EMA's consumer got others: {told}"));
    }
    if timed == 0 || told["least_us"].as_i64().is_none_or(|least| least < 0) {
        return Err(format!("times before they were sent: {told}"));
    }
    let (_, told, beside) = published(place, &folder.join("both"), true)?;
    let (theirs, ours) = (Took::of_library(&told)?, beside.ok_or("Tapeline's consumer was not there")?);
    ours.agrees(&theirs)?;
    Ok(format!(
        "Tapeline's provider sent {sent} updates, EMA's consumer (Java) got as many, {timed} with a time; with both consumers at \
         once: {theirs} in Java, {ours} in Tapeline's"
    ))
}

/// A consumer's update latencies, in µs.
struct Took {
    mean: f64,
    least: f64,
}

impl Took {
    /// Both consumers' times of one sender are on one clock, which each reads within a µs. Any other difference is
    /// caused by the consumers. The minimum of thousands of samples is free of that, so it reveals a wrong unit. The
    /// mean is not: a JVM that still compiles, or a machine without a free core, delays hundreds of updates by part
    /// of a second each. The mean reveals another clock, and times that do not belong to these updates.
    const LEAST_APART: f64 = 1_000.0;
    const MEANS_APART: f64 = 1_000_000.0;
    const TIMES: f64 = 10.0;

    fn of_library(told: &Value) -> Result<Self, String> {
        let figure = |name: &str| told[name].as_f64().ok_or(format!("nothing is said of {name}: {told}"));
        Ok(Self { mean: figure("mean_us")?, least: figure("least_us")? })
    }

    fn of_ours(said: &Said, heading: &str) -> Result<Self, String> {
        let figure = |name: &str| said.figure(heading, name);
        Ok(Self { mean: figure("Latency avg (usec)")?, least: figure("Latency min (usec)")? })
    }

    fn agrees(&self, theirs: &Self) -> Result<(), String> {
        let (low, high) = (self.mean.min(theirs.mean), self.mean.max(theirs.mean));
        let is_near = (self.least - theirs.least).abs() <= Self::LEAST_APART
            && high <= low * Self::TIMES + Self::MEANS_APART
            && self.least.min(theirs.least) >= 0.0;
        match is_near {
            true => Ok(()),
            false => Err(format!("the times of one sender: {theirs} in Java, {self} in Tapeline's")),
        }
    }
}

impl std::fmt::Display for Took {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "mean latency {} µs, least {} µs", self.mean, self.least)
    }
}

/// Runs Tapeline's provider; returns the number of updates sent, the totals of EMA's consumer, and the latencies of
/// Tapeline's consumer, if there was one.
fn published(place: &Place, folder: &Path, has_both: bool) -> Result<(u64, Value, Option<Took>), String> {
    let port = free_port();
    let port_text = port.to_string();
    let options =
        ["--port", &port_text, "--update-rate", "10000", "--latency-update-rate", "1000", "--run-time", "10"];
    let mut provider = Tool::start(&folder.join("provider"), "provider", &options)?;
    provider.listens(port)?;
    let mut command = only(&place.java_client("EmaTimedConsumer", WAYS[0], port), &["--server"]);
    command.args(["--items", ITEMS, "--dictionary", &place.dictionary()]);
    let mut library = place.start(command, "EmaTimedConsumer.log");
    library.wait_for("images")?;
    let mut took = None;
    if has_both {
        let server = format!("127.0.0.1:{port}");
        let options = ["--server", &server, "--item-count", ITEMS, "--steady-state-time", "4"];
        let ours = Tool::start(&folder.join("consumer"), "consumer", &options)?.end()?;
        took = Some(Took::of_ours(&ours, "Steady State Statistics")?);
    }
    let told = library.wait_for("end")?;
    Ok((provider.end()?.figure("Overall Statistics", "Updates sent")? as u64, told, took))
}

/// A provider on EMA (Java) with Tapeline's consumer and EMA's: each gets half of the updates, to the last one.
fn from_library(place: &Place, folder: &Path) -> Result<String, String> {
    let port = free_port();
    let (streams, updates) = ((2 * ITEM_COUNT).to_string(), (2 * UPDATES).to_string());
    let mut command =
        only(&place.java_server("EmaTimedProvider", WAYS[0], port), &["--port", "--dictionary"]);
    // It starts when this many streams are open, and updates them in turn.
    command.args(["--items", &streams, "--updates", &updates]);
    let mut library = place.start(command, "EmaTimedProvider.log");
    library.wait_for("listening")?;
    let mut command = only(&place.java_client("EmaTimedConsumer", WAYS[0], port), &["--server"]);
    command.args(["--items", ITEMS, "--dictionary", &place.dictionary()]);
    let mut beside = place.start(command, "EmaTimedConsumer.log");
    beside.wait_for("images")?;
    let server = format!("127.0.0.1:{port}");
    let options = ["--server", &server, "--item-count", ITEMS, "--steady-state-time", "15"];
    let ours = Tool::start(&folder.join("consumer"), "consumer", &options)?.end()?;
    let got = ours.figure("Test Statistics", "Updates received")? as u64;
    let timed = ours.column("ConsStats1.csv", "Latency updates")?;
    let took = Took::of_ours(&ours, "Overall Statistics")?;
    if got != UPDATES || timed != UPDATES {
        return Err(format!("EMA's provider sent {UPDATES}: {got} came, {timed} with a time; {took}"));
    }
    // EMA's consumer ends with its server.
    drop(library);
    let told = beside.wait_for("end")?;
    let theirs = Took::of_library(&told)?;
    if [&told["updates"], &told["timed"]] != [UPDATES, UPDATES] {
        return Err(format!("EMA's provider sent {UPDATES}; EMA's consumer got others: {told}"));
    }
    took.agrees(&theirs)?;
    Ok(format!(
        "EMA's provider (Java): Tapeline's consumer and EMA's got {got} updates each, all with a time; {theirs} in Java, {took} in \
         Tapeline's"
    ))
}

/// The same program with only these options.
fn only(command: &Command, wanted: &[&str]) -> Command {
    let words: Vec<_> = command.get_args().map(|word| word.to_str().unwrap().to_owned()).collect();
    let class = words.iter().position(|word| word.starts_with("tapeline.interop.")).unwrap();
    let mut kept = Command::new(command.get_program());
    kept.args(&words[..=class]);
    for pair in words[class + 1..].chunks(2).filter(|pair| wanted.contains(&pair[0].as_str())) {
        kept.args(pair);
    }
    kept
}

/// A running tool of Tapeline's in its own folder.
struct Tool {
    child: Child,
    folder: PathBuf,
}

impl Tool {
    fn start(folder: &Path, role: &str, options: &[&str]) -> Result<Self, String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let said = std::fs::File::create(folder.join("said")).map_err(|error| error.to_string())?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapeline"));
        command.current_dir(folder).args(["omm", role]).args(options).args(["--run-folder", "run"]);
        let child = command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said).spawn();
        Ok(Self { child: child.map_err(|error| error.to_string())?, folder: folder.to_owned() })
    }

    fn listens(&mut self, port: u16) -> Result<(), String> {
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if begun.elapsed() > PATIENCE || self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return Err(format!("it does not listen: {}", self.said()));
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    /// The sum of a column of a statistics file, so far.
    fn column(&self, file: &str, name: &str) -> Result<u64, String> {
        column(&self.folder, file, name)
    }

    /// Its output, after its end.
    fn end(mut self) -> Result<Said, String> {
        self.child.wait().map_err(|error| error.to_string())?;
        Ok(Said { text: self.said(), folder: self.folder.clone() })
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Said {
    text: String,
    folder: PathBuf,
}

impl Said {
    /// The figure after a name, under a heading of the summary.
    fn figure(&self, heading: &str, name: &str) -> Result<f64, String> {
        let section = self.text.rsplit_once(heading).map_or("", |(_, section)| section);
        let found = section.lines().find_map(|line| {
            line.trim().strip_prefix(name)?.trim_start_matches(':').split_whitespace().next()?.parse().ok()
        });
        found.ok_or_else(|| format!("nothing is said of {name} under {heading}: {}", self.text))
    }

    /// The sum of a column of a statistics file.
    fn column(&self, file: &str, name: &str) -> Result<u64, String> {
        column(&self.folder, file, name)
    }
}

/// The sum of a column of a statistics file in a tool's folder.
fn column(folder: &Path, file: &str, name: &str) -> Result<u64, String> {
    let text = std::fs::read_to_string(folder.join(file)).map_err(|error| format!("{file}: {error}"))?;
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let at = head.split(',').position(|column| column.trim() == name).ok_or(format!("no {name}: {head}"))?;
    Ok(lines.filter_map(|line| line.split(',').nth(at)?.trim().parse::<u64>().ok()).sum())
}

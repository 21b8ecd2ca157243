//! A plant under load with clients, whose journal's disk stops accepting writes: each documented behaviour.
//!
//! A limit on the size of files simulates a full disk: it fails the same system calls, needs no privileges, and can be
//! lifted. For a read-only disk the plant has its own mount namespace, and the journal's folder is bind-mounted over
//! itself read-only: an open file can still be written to its end, and the kernel refuses the next file, as on a failed
//! disk. A kernel limit on the plant's write rate simulates a slow disk.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that cannot go on should stop, one that cannot run says so"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::thread::JoinHandle;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};

use crate::stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];

/// A fault of the disk.
#[derive(Clone, Copy)]
enum Trouble {
    Full,
    ReadOnly,
    Slow,
}

impl Trouble {
    /// Whether a test can cause this fault on this machine.
    fn can_be(self) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let (can_be, what) = match self {
            Self::Full => return true,
            Self::ReadOnly => {
                let mut command = Command::new("unshare");
                command.args(OWN_MOUNTS).args(["mount", "--bind"]).args([folder.path(); 2]);
                let can_be = command.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
                (can_be, "a user may not have mounts of its own here (unshare)")
            }
            Self::Slow => {
                let brake = Brake::new("try", folder.path());
                (
                    brake.is_some_and(|brake| brake.set(true)),
                    "no disk can be slowed down here (cgroup v1's blkio)",
                )
            }
        };
        if !can_be {
            eprintln!("skipped: {what}");
        }
        can_be
    }

    /// Texts that the plant prints for this fault.
    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Full => &["File too large", "hint: a limit on the size of files"],
            Self::ReadOnly => &["Read-only file system", "hint: the disk is read-only"],
            Self::Slow => &[],
        }
    }
}

/// Runs a program in a mount namespace, with only the right to mount there.
const OWN_MOUNTS: [&str; 4] = ["--user", "--map-root-user", "--mount", "--"];

/// Slows a disk down for a process: a control group, removed on drop.
struct Brake {
    group: PathBuf,
    device: String,
}

impl Brake {
    /// For the disk of this folder; `None` without the controller or the permission.
    fn new(name: &str, folder: &Path) -> Option<Self> {
        let device = folder.metadata().unwrap().dev();
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let name = format!("tapeline-test-{}-{name}", std::process::id());
        let group = Path::new("/sys/fs/cgroup/blkio").join(name);
        std::fs::create_dir(&group).ok().map(|()| Self { group, device })
    }

    /// Limits writes to 128 KiB a second, or removes the limit; returns whether the kernel accepted it.
    fn set(&self, is_on: bool) -> bool {
        let rate = if is_on { 128 << 10 } else { 0 };
        let file = self.group.join("blkio.throttle.write_bps_device");
        std::fs::write(file, format!("{} {rate}", self.device)).is_ok()
    }

    fn take(&self, process: u32) {
        std::fs::write(self.group.join("cgroup.procs"), process.to_string()).unwrap();
    }
}

impl Drop for Brake {
    fn drop(&mut self) {
        self.set(false);
        let _ = std::fs::remove_dir(&self.group);
    }
}

/// A plant with a hub, its page, a synced journal and a day of 10,000 messages a second, played at the recorded pace.
struct Market {
    trouble: Trouble,
    place: Place,
    plant: Running,
    hub: String,
    web: String,
    /// The text on standard error, after the end.
    talk: Option<JoinHandle<String>>,
    /// Dropped after the plant.
    brake: Option<Brake>,
}

impl Market {
    fn open(trouble: Trouble, on_failure: &str) -> Self {
        let place = Place::new(0);
        let folder = place.folder.path();
        let day = folder.join("day.itch");
        let write = ["feed", "simulate", "--symbols", "3", "--rate", "10k", "--duration", "60s", "--write"];
        let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let config = folder.join("plant.toml");
        let text = format!(
            "[plant]\nring = \"{}\"\npublish = \"every-message\"\n[[feed]]\nname = \"file\"\n\
             protocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\nfile = \"{}\"\n[hub]\nport = 0\nunknown = \"wait\"\n\
             slow = \"cut\"\nslow_bytes = \"64MiB\"\n[hub.web]\nport = 0\n[journal]\nfolder = \"{}\"\n\
             durability = \"synced\"\non_failure = \"{on_failure}\"\nsegment_size = \"64KiB\"\n",
            place.ring,
            day.display(),
            folder.join("journal").display()
        );
        std::fs::write(&config, text).unwrap();
        let arguments = ["plant", "--config", config.to_str().unwrap(), "--format", "json"];
        let mut command = match trouble {
            Trouble::Full | Trouble::Slow => tapeline(&arguments),
            Trouble::ReadOnly => {
                let mut command = Command::new("unshare");
                command.args(OWN_MOUNTS).arg(env!("CARGO_BIN_EXE_tapeline")).args(arguments);
                command
            }
        };
        let (mut plant, talk) = Running::talking(&mut command);
        let talk = Some(listen(talk));
        let ready = plant.says();
        let brake = matches!(trouble, Trouble::Slow).then(|| Brake::new("plant", folder).unwrap());
        if let Some(brake) = &brake {
            brake.take(plant.child.id());
        }
        let address = |key: &str| ready[key].as_str().unwrap().to_owned();
        Self { hub: address("hub"), web: address("web"), trouble, place, plant, talk, brake }
    }

    /// Stops the plant; returns its report and its text on standard error.
    fn end(&mut self) -> (Value, String) {
        self.plant.ask_to_end();
        let report = self.plant.may_say();
        let status = self.plant.child.wait().unwrap();
        let said = self.talk.take().unwrap().join().unwrap();
        assert!(status.success(), "{said}");
        (report.unwrap(), said)
    }

    fn journal(&self) -> String {
        self.place.folder.path().join("journal").to_str().unwrap().to_owned()
    }

    /// Begins or ends the fault.
    fn set(&self, is_there: bool) {
        match self.trouble {
            Trouble::Full => {
                let maximum = getrlimit(Resource::Fsize).maximum;
                let current = if is_there { Some(1) } else { maximum };
                let pid = Pid::from_child(&self.plant.child);
                prlimit(Some(pid), Resource::Fsize, Rlimit { current, maximum }).unwrap();
            }
            Trouble::ReadOnly => {
                // Remounted read-only in another place: a file that is open for writing would prevent a remount.
                let script = if is_there {
                    "mkdir \"$1\" && mount --bind \"$0\" \"$1\" && mount -o remount,bind,ro \"$1\" && mount --bind \"$1\" \"$0\""
                } else {
                    // Lazy, since files in it may be open.
                    "umount --lazy \"$0\""
                };
                let aside = self.place.folder.path().join("aside");
                let target = self.plant.child.id().to_string();
                let mut command = Command::new("nsenter");
                command.args(["--target", &target, "--user", "--mount", "--preserve-credentials"]);
                command.args(["sh", "-c", script, &self.journal()]).arg(aside);
                assert!(command.status().unwrap().success());
            }
            Trouble::Slow => assert!(self.brake.as_ref().unwrap().set(is_there)),
        }
    }

    /// Reads the counters until `is_so` returns true for them.
    fn wait_until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let counters: Value = serde_json::from_str(&self.page("/stat.json")).unwrap();
            if is_so(&counters) {
                return counters;
            }
            std::thread::yield_now();
        }
    }

    /// The body of the page server's answer.
    fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.web).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.web).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// The journal's check in `/health`.
    fn health(&self) -> Value {
        let health: Value = serde_json::from_str(&self.page("/health")).unwrap();
        let mut checks = health["checks"].as_array().unwrap().iter();
        checks.find(|check| check["check"] == "journal").unwrap().clone()
    }

    /// A client of the hub: all its messages, after its end.
    fn client(&self) -> JoinHandle<Vec<Value>> {
        let fixed = ["omm", "watch", "--server", &self.hub, "--service", "TAPELINE", "--format", "json"];
        let mut client =
            Running::start(&[&fixed[..], &["--attempts", "1", "--until-closed"], &STOCKS].concat());
        std::thread::spawn(move || std::iter::from_fn(|| client.may_say()).collect())
    }

    /// A subscriber that takes all ticks from the journal.
    fn subscriber(&self) -> JoinHandle<Vec<Value>> {
        let (ring, journal) = (&self.place.ring, self.journal());
        let fixed =
            ["plant", "watch", "--ring", ring, "--format", "json", "--from-sequence", "1", "--journal"];
        let mut subscriber = Running::start(&[&fixed[..], &[&journal]].concat());
        std::thread::spawn(move || std::iter::from_fn(|| subscriber.may_say()).collect())
    }

    fn verify(&self) -> Value {
        let output = tapeline(&["journal", "verify", &self.journal(), "--format", "json"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn listen(talk: ChildStderr) -> JoinHandle<String> {
    std::thread::spawn(move || {
        BufReader::new(talk).lines().map_while(Result::ok).collect::<Vec<_>>().join("\n")
    })
}

fn updates(lines: &[Value], kind: &str, item: &str) -> Vec<Value> {
    let of = lines.iter().filter(|line| line[kind] == "update" && line["item"] == item);
    of.map(|line| line["fields"].clone()).collect()
}

/// Clients get nothing that is not in the journal; the plant ends with an error message.
fn ends(trouble: Trouble) {
    let mut market = Market::open(trouble, "stop");
    let (client, subscriber) = (market.client(), market.subscriber());
    market.wait_until(|now| now["hub"]["totals"]["updates"].as_u64() > Some(500));
    market.set(true);
    assert_eq!(market.plant.child.wait().unwrap().code(), Some(1));
    let said = market.talk.take().unwrap().join().unwrap();
    for words in trouble.words().iter().chain(&["the plant stops"]) {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (given, kept) = (client.join().unwrap(), subscriber.join().unwrap());
    let last = kept.last().unwrap()["seq"].as_u64().unwrap();
    assert!(said.contains(&format!("ticks from {} on are missing", last + 1)), "{last}: {said}");
    for stock in STOCKS {
        let (given, kept) = (updates(&given, "event", stock), updates(&kept, "kind", stock));
        assert!(given.len() > 100, "{stock}: {}", given.len());
        assert!(kept.windows(given.len()).any(|kept| kept == given), "{stock}: more than the journal has");
    }
}

/// The plant continues, reports it everywhere, and writes its journal again when it can; missing ticks are counted.
fn goes_on(trouble: Trouble) {
    let mut market = Market::open(trouble, "continue");
    let client = market.client();
    let before = market.wait_until(|now| now["hub"]["totals"]["updates"].as_u64() > Some(500));
    assert_eq!((&before["journal"]["state"], &before["journal"]["missing"]), (&json!("keeping"), &json!(0)));
    assert_eq!(market.health()["ok"], true);

    market.set(true);
    let without = market.wait_until(|now| now["journal"]["state"] == "without");
    let health = market.health();
    assert!(health["ok"] == false && health["says"].as_str().unwrap().contains("without, up to"), "{health}");
    let metrics = market.page("/metrics");
    assert!(metrics.contains("tapeline_journal_state{state=\"without\"} 1"), "{metrics}");
    // Clients are not affected.
    let sent = |now: &Value| now["hub"]["totals"]["updates"].as_u64().unwrap();
    market.wait_until(|now| sent(now) > sent(&without) + 5_000);

    market.set(false);
    let again = market.wait_until(|now| now["journal"]["state"] == "keeping");
    assert_eq!(market.health()["ok"], true);
    let kept = |now: &Value| now["journal"]["kept"].as_u64().unwrap();
    market.wait_until(|now| kept(now) > kept(&again));
    let (report, said) = market.end();
    let always = ["the plant continues WITHOUT a journal", "the journal is written again"];
    for words in trouble.words().iter().chain(&always) {
        assert!(said.contains(words), "{words}: {said}");
    }

    let (ticks, missing) =
        (report["ticks"].as_u64().unwrap(), report["journal"]["missing"].as_u64().unwrap());
    assert!(missing > 5_000, "{report}");
    assert_eq!(report["journal"]["ticks"], json!(ticks - missing), "{report}");
    assert_eq!((&report["hub"]["ticks"], &report["hub"]["cut"]), (&json!(ticks), &json!(0)), "{report}");
    let given = client.join().unwrap().iter().filter(|line| line["event"] == "update").count() as u64;
    assert_eq!(json!(given), report["hub"]["updates"], "{report}");
    // The journal itself shows the same gap.
    let found = market.verify();
    assert_eq!((&found["ticks"], &found["missing"]), (&json!(ticks - missing), &json!(missing)), "{found}");
    assert_eq!(found["last"]["sequence"], json!(ticks), "{found}");
}

#[test]
fn a_plant_that_may_not_go_on_without_its_journal_ends_when_the_disk_is_full() {
    ends(Trouble::Full);
}

#[test]
fn and_when_the_disk_is_read_only() {
    if Trouble::ReadOnly.can_be() {
        ends(Trouble::ReadOnly);
    }
}

#[test]
fn a_plant_that_may_go_on_without_its_journal_says_so_until_the_disk_has_room_again() {
    goes_on(Trouble::Full);
}

#[test]
fn and_until_the_disk_is_no_longer_read_only() {
    if Trouble::ReadOnly.can_be() {
        goes_on(Trouble::ReadOnly);
    }
}

/// The plant waits, and so do its clients: they get nothing that is not on disk, and nothing is lost.
#[test]
fn a_plant_waits_for_a_slow_disk_and_loses_nothing() {
    if std::env::var_os("SLOW_DISK").is_none() {
        eprintln!("skipped: others' syncs on the same file system may wait for it; `make slow-disk` runs it");
        return;
    }
    if !Trouble::Slow.can_be() {
        return;
    }
    let mut market = Market::open(Trouble::Slow, "stop");
    let client = market.client();
    let number = |of: &Value| of.as_u64().unwrap();
    market.wait_until(|now| now["hub"]["totals"]["updates"].as_u64() > Some(500));
    market.set(true);
    let behind = market.wait_until(|now| number(&now["ticks"]) > number(&now["journal"]["kept"]) + 5_000);
    assert_eq!((&behind["journal"]["state"], &behind["journal"]["missing"]), (&json!("keeping"), &json!(0)));
    assert!(behind["hub"]["totals"]["updates"].as_u64() <= behind["journal"]["kept"].as_u64(), "{behind}");
    assert_eq!(market.health()["ok"], true);
    market.set(false);
    market.wait_until(|now| number(&now["journal"]["kept"]) > number(&behind["ticks"]));
    let (report, _) = market.end();
    let ticks = &report["ticks"];
    let kept = &report["journal"];
    assert_eq!((&kept["ticks"], &kept["missing"], &kept["last"]), (ticks, &json!(0), ticks), "{report}");
    assert_eq!((&report["hub"]["ticks"], &report["hub"]["cut"]), (ticks, &json!(0)), "{report}");
    let given = client.join().unwrap().iter().filter(|line| line["event"] == "update").count();
    assert_eq!(json!(given), report["hub"]["updates"], "{report}");
}

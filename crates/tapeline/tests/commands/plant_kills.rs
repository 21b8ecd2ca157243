//! A whole plant that is killed at any moment under load, and restarted. Everything that its hub sent is in its
//! journal, the sequence has no gap, and a subscriber that continues from its last sequence sees each tick once.
//! Every acknowledged row of a kdb+ client is in the journal too.
//!
//! `PLANT_KILLS` sets the number of kills, 5 by default (`make journal-kills`: 200).

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop; it says what it did"
)]

use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use kdb_client::{Client, zone};
use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_journal::{Directory, From, Next, Reader};
use tapeline_kdb::{MessageKind, Type, Value as Answer};
use tapeline_omm::rwf::MessageView;
use tapeline_omm::{FieldList, fid};
use tapeline_plant::tick::{Flags, Tick};

use crate::kdb_client;
use crate::stage;

/// The busiest stocks of the simulated exchange are always the same.
const STOCKS: [&str; 3] = ["TAPE", "SENA", "RIMU"];
/// Messages a second: each run plays the day from the beginning, and none reaches its end.
const RATE: &str = "10k";
const DAY: &str = "60s";
/// Maximum number of ticks of a run before it is killed.
const MOST_TICKS: u64 = 3_000;

/// An item's image or update, with its fields.
fn said_of(line: &Value, kind: &str, item: &str) -> Option<(String, Value)> {
    let kind = line[kind].as_str().filter(|kind| matches!(*kind, "refresh" | "update"))?;
    (line["item"] == item).then(|| (kind.to_owned(), line["fields"].clone()))
}

/// A hub client that has the stocks open: all its messages, after the disconnect.
fn client(server: &str) -> JoinHandle<Vec<Value>> {
    let fixed = ["omm", "watch", "--server", server, "--service", "TAPELINE", "--format", "json"];
    let mut client = Running::start(&[&fixed[..], &["--attempts", "1", "--until-closed"], &STOCKS].concat());
    std::thread::spawn(move || {
        let mut given = Vec::new();
        while let Some(line) = client.may_say() {
            given.push(line);
        }
        given
    })
}

/// A subscriber of all ticks of a plant, from this sequence on.
fn subscriber(place: &Place, journal: &Path, from: u64) -> Running {
    let (journal, from) = (journal.to_str().unwrap(), from.to_string());
    let fixed = ["plant", "watch", "--ring", &place.ring, "--format", "json"];
    Running::start(&[&fixed[..], &["--journal", journal, "--from-sequence", &from]].concat())
}

/// Reads the journal after `last`, checks that it has no gap, and returns its last sequence.
fn journal_goes_to(journal: &Path, last: u64) -> u64 {
    journal_has(journal, last, |_| {})
}

/// Like [`journal_goes_to`], and passes each tick to `look`.
fn journal_has(journal: &Path, last: u64, mut look: impl FnMut(&Tick<'_>)) -> u64 {
    let mut reader = Reader::open(Directory::open(journal).unwrap()).unwrap();
    reader.seek(From::Seq(last + 1)).unwrap();
    let mut end = last;
    loop {
        match reader.next().unwrap() {
            Next::Record(record) => {
                assert_eq!(record.seq, end + 1);
                end = record.seq;
                look(&Tick::parse(record.body).unwrap());
            }
            Next::Missing { from, to } => panic!("{from} to {to} are missing"),
            Next::End => return end,
        }
    }
}

#[test]
fn a_killed_plant_loses_nothing_that_it_gave_out_and_nobody_sees_a_tick_twice() {
    let kills = std::env::var("PLANT_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let place = Place::new(0);
    let folder = place.folder.path();
    let (journal, day) = (folder.join("journal"), folder.join("day.itch"));
    let write = ["feed", "simulate", "--symbols", "3", "--rate", RATE, "--duration", DAY, "--write"];
    let output = tapeline(&[&write[..], &[day.to_str().unwrap()]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config = folder.join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\npublish = \"every-message\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\n\
         date = \"2020-01-02\"\nfile = \"{}\"\n[hub]\nport = 0\nunknown = \"wait\"\nslow = \"cut\"\n\
         slow_bytes = \"64MiB\"\n[journal]\nfolder = \"{}\"\ndurability = \"synced\"\nsegment_size = \"256KiB\"\n",
        place.ring,
        day.display(),
        journal.display()
    );
    std::fs::write(&config, text).unwrap();

    let mut dice = 0x9E37_79B9_u64;
    let (mut last, mut acknowledged) = (0, 0);
    // Their rings are not removed: each plant continues the previous plant's ring.
    let mut killed = Vec::new();
    for kill in 1..=kills {
        let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        let ready = plant.says();
        assert_eq!(ready["ready"], json!(place.ring), "kill {kill}");
        let client = client(ready["hub"].as_str().unwrap());
        let mut subscriber = subscriber(&place, &journal, last + 1);
        // Killed after some tick, independent of the hub's and the journal's progress.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let ticks = 1 + (dice >> 33) % MOST_TICKS;
        let mut seen: Vec<Value> = (0..ticks).map(|_| subscriber.says()).collect();
        plant.child.kill().unwrap();
        plant.child.wait().unwrap();
        killed.push(plant);
        while let Some(line) = subscriber.may_say() {
            seen.push(line);
        }
        // The sequence continues from the previous run, each tick once.
        for (line, expected) in seen.iter().zip(last + 1..) {
            assert_eq!(line["seq"], json!(expected), "kill {kill}");
        }
        let end = journal_goes_to(&journal, last);
        assert_eq!(end, last + seen.len() as u64, "kill {kill}: the subscriber saw all that is there");
        last = end;
        let given = client.join().unwrap();
        for stock in STOCKS {
            let kept: Vec<_> = seen.iter().filter_map(|line| said_of(line, "kind", stock)).collect();
            let given: Vec<_> = given.iter().filter_map(|line| said_of(line, "event", stock)).collect();
            // First an image, of any tick; then every later update.
            let updates = given.get(1..).unwrap_or_default();
            assert!(
                updates.is_empty() || kept.windows(updates.len()).any(|kept| kept == updates),
                "kill {kill}: {stock}: {} updates, not all of them in the journal",
                updates.len()
            );
            acknowledged += updates.len();
        }
    }
    println!("{kills} kills, {last} ticks, {acknowledged} of them given to a client of the hub");
    assert!(kills < 20 || acknowledged > 0);
}

/// Rows of each update: several times the capacity of half of the ring.
const ROWS: i64 = 2_000;

/// Publishes rows with ascending sizes, each update after the answer to the previous one. Signals each answer to
/// `told`, and returns the number of acknowledged rows after the disconnect.
fn publish(address: &str, told: SyncSender<()>) -> JoinHandle<i64> {
    let mut client = Client::tcp(address);
    std::thread::spawn(move || {
        let mut rows = 0;
        loop {
            let sent = client.try_say(MessageKind::Sync, |out| {
                out.list(3)?;
                out.symbol(b".u.upd")?;
                out.symbol(b"trade")?;
                out.list(2)?;
                out.symbols((0..ROWS).map(|_| &b"A"[..]))?;
                out.column(Type::LONG, (rows..rows + ROWS).collect::<Vec<_>>())
            });
            let answer = sent.ok().and_then(|()| client.try_next());
            let Some(answer) = answer else { return rows };
            assert_eq!(answer, Answer::null());
            rows += ROWS;
            let _ = told.send(());
        }
    })
}

#[test]
fn a_killed_plant_has_every_row_that_it_acknowledged() {
    let kills = std::env::var("PLANT_KILLS").map_or(5, |kills| kills.parse().unwrap());
    let place = Place::new(0);
    let journal = place.folder.path().join("journal");
    let config = place.folder.path().join("plant.toml");
    let text = format!(
        "[plant]\nring = \"{}\"\nring_size = \"64KiB\"\n[kdb]\nport = 0\ntimezone = \"{}\"\n[[kdb.table]]\nname = \"trade\"\n\
         columns = [\"time timespan\", \"sym symbol\", \"size long TRDVOL_1\"]\n[journal]\nfolder = \"{}\"\n\
         durability = \"synced\"\n",
        place.ring,
        zone(),
        journal.display()
    );
    std::fs::write(&config, text).unwrap();
    let (mut dice, mut last, mut all) = (0x9E37_79B9_u64, 0, 0);
    // Their rings are not removed, as above.
    let mut killed = Vec::new();
    for kill in 1..=kills {
        let mut plant = Running::start(&["plant", "--config", config.to_str().unwrap(), "--format", "json"]);
        let ready = plant.says();
        let (told, answered) = sync_channel(0);
        let publisher = publish(ready["kdb"]["address"].as_str().unwrap(), told);
        // Killed immediately after some answer.
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (0..1 + (dice >> 33) % 8).for_each(|_| answered.recv().unwrap());
        plant.child.kill().unwrap();
        plant.child.wait().unwrap();
        killed.push(plant);
        drop(answered);
        let acknowledged = publisher.join().unwrap();
        let mut found = 0;
        last = journal_has(&journal, last, |tick| {
            if tick.header.flags.contains(Flags::SOURCE) {
                let message = MessageView::parse(tick.body).unwrap();
                let fields = FieldList::parse(message.payload()).unwrap();
                let size = fields.find(fid::TRDVOL_1).unwrap().unwrap().real().unwrap().unwrap();
                assert_eq!(size.to_f64(), found as f64, "kill {kill}");
                found += 1;
            }
        });
        assert!(found >= acknowledged, "kill {kill}: {found} rows, of {acknowledged} that were acknowledged");
        all += acknowledged;
    }
    println!("{kills} kills, {last} ticks, {all} rows acknowledged");
}

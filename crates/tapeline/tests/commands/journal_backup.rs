//! Backups of a journal: while a plant writes it, killed, on a full disk, and restored.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use stage::{Place, Running, tapeline};
use tapeline_journal::{Directory, Settings, Writer};
use tapeline_measure::Nanos;

use crate::stage;

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Writes a journal of records with these sequences, in small files.
fn keep(folder: &Path, seqs: impl IntoIterator<Item = u64>) {
    let settings = Settings { segment_bytes: Settings::LEAST_SEGMENT_BYTES, ..Settings::default() };
    let (mut writer, _) = Writer::open(Directory::create(folder).unwrap(), settings).unwrap();
    for seq in seqs {
        assert!(writer.append(seq, Nanos(seq * 1_000), format!("tick {seq:0100}").as_bytes()).is_kept());
    }
    assert!(writer.finish().is_kept());
}

fn backup(from: &Path, to: &Path) -> Output {
    tapeline(&["journal", "backup", text(from), text(to), "--format", "json"]).output().unwrap()
}

/// The report of a run, which must have this status.
fn report(output: &Output, status: i32) -> Value {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What `journal verify` says of a journal, which must be sound.
fn verified(folder: &Path) -> Value {
    report(&tapeline(&["journal", "verify", text(folder), "--format", "json"]).output().unwrap(), 0)
}

/// A plant with a simulated exchange and a journal in small files.
fn plant(place: &Place, journal: &Path) -> Running {
    let config = place.config("simulate = \"10k\"");
    let table = format!("[journal]\nfolder = \"{}\"\nsegment_size = \"64KiB\"\n", text(journal));
    std::fs::write(&config, std::fs::read_to_string(&config).unwrap() + &table).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    plant.says();
    plant
}

/// The last sequence of a journal that is written, once it is later than `last`.
fn later(journal: &Path, last: u64) -> u64 {
    loop {
        let found = verified(journal)["last"]["sequence"].as_u64().unwrap_or(0);
        if found > last {
            return found;
        }
    }
}

#[test]
fn a_journal_is_backed_up_while_a_plant_writes_it_and_a_plant_goes_on_from_the_copy() {
    let place = Place::new(2);
    let folder = place.folder.path();
    let [journal, copy, restored] = ["journal", "copy", "restored"].map(|name| folder.join(name));
    let mut first_plant = plant(&place, &journal);
    later(&journal, 2_000);
    let first = report(&backup(&journal, &copy), 0);
    let last = first["last"].as_u64().unwrap();
    assert_eq!((&first["first"], &first["ticks"], &first["missing"]), (&json!(1), &json!(last), &json!(0)));
    let found = verified(&copy);
    assert_eq!(
        (&found["end"], &found["missing"], &found["ticks"]),
        (&json!("closed"), &json!(0), &json!(last))
    );
    // Only what is new.
    later(&journal, last + 1_000);
    let second = report(&backup(&journal, &copy), 0);
    let end = second["last"].as_u64().unwrap();
    assert_eq!(second["first"], json!(last + 1));
    assert_eq!((&second["ticks"], &verified(&copy)["ticks"]), (&json!(end - last), &json!(end)));
    // The machine is lost, and another plant goes on from the copy.
    first_plant.child.kill().unwrap();
    first_plant.child.wait().unwrap();
    drop(first_plant);
    assert_eq!(report(&backup(&copy, &restored), 0)["last"], json!(end));
    let second_plant = plant(&place, &restored);
    later(&restored, end + 1_000);
    let busy = backup(&copy, &restored);
    assert_eq!(busy.status.code(), Some(1));
    assert!(said(&busy).contains("a journal has one writer"), "{}", said(&busy));
    second_plant.ask_to_end();
    let mut second_plant = second_plant;
    second_plant.says();
    second_plant.child.wait().unwrap();
    let found = verified(&restored);
    assert_eq!((&found["first"]["sequence"], &found["missing"]), (&json!(1), &json!(0)), "{found}");
    // The lost plant had numbered other ticks.
    let other = backup(&journal, &restored);
    assert_eq!(other.status.code(), Some(1));
    assert!(said(&other).contains("give a new folder"), "{}", said(&other));
}

#[test]
fn a_backup_that_was_killed_is_told_apart_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let [journal, copy] = ["journal", "copy"].map(|name| folder.path().join(name));
    keep(&journal, 1..=200_000);
    let killed = || {
        let _ = std::fs::remove_dir_all(&copy);
        let mut command = tapeline(&["journal", "backup", text(&journal), text(&copy)]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while std::fs::read_dir(&copy).map_or(0, Iterator::count) < 20 && child.try_wait().unwrap().is_none()
        {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        verified(&copy)
    };
    // It may have been quicker than this test.
    let half = std::iter::repeat_with(killed).take(50).find(|found| found["end"] == "not closed").unwrap();
    let ticks = half["ticks"].as_u64().unwrap();
    assert!(ticks < 200_000, "{half}");
    let output = backup(&journal, &copy);
    let rest = report(&output, 0);
    assert_eq!(rest["first"], json!(ticks + 1));
    let note = format!("note: the last backup was not finished: this one goes on behind tick {ticks}");
    assert!(said(&output).contains(&note), "{}", said(&output));
    let found = verified(&copy);
    assert_eq!((&found["ticks"], &found["end"]), (&json!(200_000), &json!("closed")));
    // Nothing is new.
    let output = backup(&journal, &copy);
    assert_eq!((&report(&output, 0)["ticks"], said(&output).as_str()), (&json!(0), ""));
}

#[test]
fn what_is_missing_and_what_retention_deleted_is_so_in_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let [journal, copy] = ["journal", "copy"].map(|name| folder.path().join(name));
    keep(&journal, (1..=2_000).chain(2_051..=3_000));
    let first = journal.join("00000000000000000001.journal");
    std::fs::remove_file(first).unwrap();
    std::fs::remove_file(journal.join("bounds")).unwrap();
    std::fs::write(journal.join("bridge-epochs"), "A-5 1\n").unwrap();
    let output = backup(&journal, &copy);
    let copied = report(&output, 3);
    assert_eq!(copied["missing"], json!(50));
    assert!(said(&output).contains("ticks 2001 to 2050 are missing"), "{}", said(&output));
    let (ours, found) = (verified(&journal), verified(&copy));
    for member in ["ticks", "bytes", "first", "last", "missing", "holes"] {
        assert_eq!(found[member], ours[member], "{member}");
    }
    assert_eq!(std::fs::read_to_string(copy.join("bridge-epochs")).unwrap(), "A-5 1\n");
    // Damage: the copy has what comes before it, and the next run goes on when the file is mended.
    keep(&journal, 3_001..=4_000);
    let file = journal.join("00000000000000003001.journal");
    let sound = std::fs::read(&file).unwrap();
    let mut damaged = sound.clone();
    damaged[10_000] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let output = backup(&journal, &copy);
    assert_eq!(output.status.code(), Some(1));
    let text = said(&output);
    assert!(
        text.contains("is not finished") && text.contains("00000000000000003001.journal, byte"),
        "{text}"
    );
    std::fs::write(&file, sound).unwrap();
    assert_eq!(report(&backup(&journal, &copy), 0)["last"], json!(4_000));
    assert_eq!(verified(&copy)["ticks"], verified(&journal)["ticks"]);
    // A folder without a journal.
    let output = backup(folder.path(), &folder.path().join("none"));
    assert!(output.status.code() == Some(1) && said(&output).contains("nothing to copy"), "{output:?}");
    assert!(!folder.path().join("none").exists());
}

/// A disk of its own for the copy, which is too small at first.
#[test]
fn a_full_disk_ends_a_backup_and_the_next_one_continues() {
    let folder = tempfile::tempdir().unwrap();
    let journal = folder.path().join("journal");
    keep(&journal, 1..=20_000);
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=1m none \"$2\" || { echo skipped; exit; }
        \"$3\" journal backup \"$1\" \"$2/copy\" --format json; echo \"status $?\"
        mount -o remount,size=64m \"$2\" && \"$3\" journal backup \"$1\" \"$2/copy\" --format json; echo \"status $?\"
        \"$3\" journal verify \"$2/copy\" --format json; echo \"status $?\"";
    let mut command = Command::new("unshare");
    command.args([
        "--user",
        "--map-root-user",
        "--mount",
        "--",
        "sh",
        "-c",
        script,
        "sh",
        text(&journal),
        text(&disk),
    ]);
    let output = command.arg(env!("CARGO_BIN_EXE_tapeline")).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), said(&output));
    if out.contains("skipped") || err.contains("unshare") {
        println!("skipped: a user may not have mounts of its own here (unshare): {err}");
        return;
    }
    let parts: Vec<&str> = out.split("status ").collect();
    assert!(
        parts[1].starts_with('1') && parts[2].starts_with('0') && parts[3].starts_with('0'),
        "{out} {err}"
    );
    assert!(
        err.contains("is not finished") && err.contains("No space left") && err.contains("free space"),
        "{err}"
    );
    let rest: Value = serde_json::from_str(parts[1].split_once('\n').unwrap().1).unwrap();
    let first = rest["first"].as_u64().unwrap();
    assert!(
        (2..20_000).contains(&first) && err.contains(&format!("behind tick {}", first - 1)),
        "{out} {err}"
    );
    let found: Value = serde_json::from_str(parts[2].split_once('\n').unwrap().1).unwrap();
    assert_eq!((&found["ticks"], &found["end"]), (&json!(20_000), &json!("closed")));
}

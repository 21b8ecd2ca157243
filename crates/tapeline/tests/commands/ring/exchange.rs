//! Messages across a ring, and the commands that show, list and remove rings.

use std::io::{BufRead, BufReader};

use tapeline_ring::{Options, Publisher, Start, Subscriber, inspect};

use crate::ring::{OwnName, Running, json, ring, start, subscribers, text, until};

#[test]
fn messages_cross_and_are_measured() {
    let name = OwnName::new();
    let publisher = start(&[
        "pub",
        "--name",
        name.as_str(),
        "--rate",
        "50k",
        "--messages",
        "10k",
        "--subscribers",
        "2",
        "--format",
        "json",
    ]);
    until(|| inspect(&name.0).is_ok());
    let readers = [
        start(&["sub", "--name", name.as_str(), "--format", "json"]),
        start(&["sub", "--name", name.as_str(), "--wait", "park", "--stats", "latency,throughput,interval"]),
    ];
    let sent = json(&publisher.end());
    assert_eq!((sent["messages"].as_u64(), sent["message_size"].as_u64()), (Some(10_000), Some(32)));
    assert_eq!(sent["lateness"]["samples"].as_u64(), Some(10_000));
    let [first, second] = readers.map(Running::end);
    let got = json(&first);
    assert_eq!(
        (got["messages"].as_u64(), got["lost"].as_u64(), got["foreign"].as_u64()),
        (Some(10_000), Some(0), Some(0))
    );
    for column in ["response", "service"] {
        assert_eq!(got[column]["samples"].as_u64(), Some(10_000), "{got}");
        assert_eq!(got[column]["negatives"].as_u64(), Some(0), "one time line: {got}");
    }
    assert!(got["verdict"].is_string() && got["verdict"] != "LOSSY", "{got}");
    let table = text(&second.stdout);
    for line in [
        "verdict ",
        "throughput ",
        "received     10,000 messages",
        "lost         0",
        "percentile   due→received   sent→received",
    ] {
        assert!(table.contains(line), "no {line:?} in\n{table}");
    }
    assert!(!name.0.path().exists(), "nothing is left behind");
}

#[test]
fn the_spellings_of_older_tools_are_taken() {
    let name = OwnName::new();
    let publisher = start(&[
        "pub",
        "--name",
        name.as_str(),
        "--message_size",
        "100",
        "--queue_size",
        "102400",
        "--messages",
        "1000",
        "--subscribers",
        "1",
    ]);
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str(), "--stats", "latency,throughput"]);
    let sent = publisher.end();
    assert!(text(&sent.stderr).contains("--queue-size 102400 is rounded up to 131072"), "{sent:?}");
    assert!(text(&sent.stdout).contains("sent         1,000 messages of 100 bytes"), "{sent:?}");
    let read = text(&reader.end().stdout);
    // Without a schedule there are no due times.
    assert!(read.contains("sent→received") && !read.contains("due→received"), "{read}");
}

#[test]
fn frames_are_printed_and_counted() {
    let name = OwnName::new();
    let options = Options { keep: true, ..Options::default() };
    let mut publisher = Publisher::open(&name.0, &options).unwrap();
    for frame in [&b"\x00\xff"[..], b"", b"tape"] {
        publisher.publish(frame).unwrap();
    }
    publisher.close().unwrap();
    let raw = ring(&["sub", "--name", name.as_str(), "--from", "oldest", "--raw"]);
    assert_eq!(text(&raw.stdout), "0 2 00ff\n16 0 \n24 4 74617065\n");
    let count = ring(&["sub", "--name", name.as_str(), "--from", "oldest", "--count"]);
    assert_eq!(text(&count.stdout), "3\n");
    let two = ring(&["sub", "--name", name.as_str(), "--from", "oldest", "--count", "--messages", "2"]);
    assert_eq!(text(&two.stdout), "2\n");
    let summary = ring(&["sub", "--name", name.as_str(), "--from", "oldest"]);
    assert!(text(&summary.stdout).contains("other        3 frames"), "{summary:?}");
    assert!(!text(&summary.stdout).contains("verdict"), "{summary:?}");
}

#[test]
fn a_missing_ring_is_told_with_those_there_are() {
    let (there, missing) = (OwnName::new(), OwnName::new());
    let _publisher = Publisher::open(&there.0, &Options::default()).unwrap();
    for arguments in
        [&["sub", "--name", missing.as_str()][..], &["stat", missing.as_str()], &["rm", missing.as_str()]]
    {
        let output = ring(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.starts_with("error: there is no ring at /dev/shm/tapeline-test-command-"), "{error}");
        assert!(error.contains("hint: existing rings: ") && error.contains(there.as_str()), "{error}");
    }
    let bad = ring(&["sub", "--name", "a/b"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("use 1 to 64 of the characters"), "{bad:?}");
}

#[test]
fn a_ring_can_be_waited_for() {
    let name = OwnName::new();
    let reader = start(&["sub", "--name", name.as_str(), "--wait-for-ring", "10m", "--count"]);
    let mut publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    until(|| subscribers(&name) == 1);
    publisher.publish(b"at last").unwrap();
    publisher.close().unwrap();
    assert_eq!(text(&reader.end().stdout), "1\n");
}

#[test]
fn a_second_publisher_is_refused() {
    let name = OwnName::new();
    let _publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    let output = ring(&["pub", "--name", name.as_str(), "--messages", "1"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(error.contains(&format!("has a live publisher, process {}", std::process::id())), "{error}");
    assert!(error.contains("hint: "), "{error}");
}

#[test]
fn sizes_that_cannot_be_are_explained() {
    let name = OwnName::new();
    for (arguments, hint) in [
        (&["--message-size", "16"][..], "--no-stamps"),
        (&["--message-size", "2KiB", "--queue-size", "4KiB"], "larger --queue-size"),
        (&["--queue-size", "512GiB"], "/dev/shm"),
    ] {
        let output = ring(&[&["pub", "--name", name.as_str(), "--messages", "1"], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let error = text(&output.stderr);
        assert!(error.contains("hint: ") && error.contains(hint), "{error}");
        assert!(!name.0.path().exists(), "nothing is left behind");
    }
    let small =
        ring(&["pub", "--name", name.as_str(), "--message-size", "8", "--no-stamps", "--messages", "5"]);
    assert!(small.status.success(), "{small:?}");
}

#[test]
fn signals_end_both_sides_in_order() {
    let name = OwnName::new();
    let publisher = start(&["pub", "--name", name.as_str(), "--rate", "1k"]);
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str()]);
    until(|| subscribers(&name) == 1 && inspect(&name.0).is_ok_and(|ring| ring.publisher.frames > 20));
    reader.signal(rustix::process::Signal::INT);
    let read = reader.end();
    assert!(read.status.success() && text(&read.stdout).contains("lost         0"), "{read:?}");
    assert_eq!(subscribers(&name), 0);
    publisher.signal(rustix::process::Signal::TERM);
    let sent = publisher.end();
    assert!(sent.status.success() && text(&sent.stdout).contains("due→sent"), "{sent:?}");
    assert!(!name.0.path().exists());
}

/// A reader that is slower than its publisher reads everything after the publisher has ended and the ring's name is
/// gone.
#[test]
fn what_an_ended_publisher_left_is_read_to_the_end() {
    const FRAMES: usize = 20_000;
    let name = OwnName::new();
    let mut publisher =
        Publisher::open(&name.0, &Options { capacity: 1 << 22, ..Options::default() }).unwrap();
    let mut reader = start(&["sub", "--name", name.as_str(), "--raw"]);
    until(|| subscribers(&name) == 1);
    for _ in 0..FRAMES {
        publisher.publish(&[7; 100]).unwrap();
    }
    publisher.close().unwrap();
    // The reader's output pipe is full, so it blocks. After a second it checks for its publisher, whatever is left to
    // read.
    let filled = std::time::Instant::now();
    until(|| filled.elapsed().as_millis() > 1_100);
    let lines = BufReader::new(reader.0.stdout.take().unwrap()).lines().count();
    assert_eq!(lines, FRAMES);
    assert!(reader.0.wait().unwrap().success());
}

/// Without a publisher and a name, no further message can arrive.
#[test]
fn a_reader_of_a_dead_and_removed_ring_ends() {
    let name = OwnName::new();
    let mut publisher = start(&["pub", "--name", name.as_str(), "--rate", "1k"]);
    until(|| inspect(&name.0).is_ok());
    let reader = start(&["sub", "--name", name.as_str(), "--format", "json"]);
    until(|| subscribers(&name) == 1 && inspect(&name.0).is_ok_and(|ring| ring.publisher.frames > 10));
    publisher.0.kill().unwrap();
    publisher.0.wait().unwrap();
    assert!(ring(&["rm", name.as_str()]).status.success());
    assert_eq!(json(&reader.end())["lost"].as_u64(), Some(0));
}

/// A publisher that waits for capacity handles signals too.
#[test]
fn a_publisher_held_back_ends_on_a_signal() {
    let name = OwnName::new();
    let publisher = start(&["pub", "--name", name.as_str(), "--queue-size", "4KiB", "--subscribers", "1"]);
    until(|| inspect(&name.0).is_ok());
    let mut slow = Subscriber::join(&name.0, Start::Newest).unwrap();
    until(|| inspect(&name.0).is_ok_and(|ring| ring.publisher.full > 0 || ring.publisher.frames > 80));
    publisher.signal(rustix::process::Signal::INT);
    let sent = publisher.end();
    assert!(sent.status.success(), "{sent:?}");
    let mut frames = 0;
    while slow.next().frame().is_some() {
        frames += 1;
    }
    assert!(frames > 80, "what was published can be read");
}

#[test]
fn a_ring_is_listed_shown_and_removed() {
    let name = OwnName::new();
    let mut publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    let _reader = Subscriber::join_as(&name.0, Start::Newest, "desk 7").unwrap();
    publisher.publish(&[1; 1000]).unwrap();
    let pid = std::process::id().to_string();

    let list = text(&ring(&["ls"]).stdout);
    let row = list.lines().find(|line| line.starts_with(name.as_str())).unwrap();
    let cells: Vec<&str> = row.split("   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(
        cells,
        [name.as_str(), "live", pid.as_str(), "1", "1", "1 MiB", "gated", "packed", "1", "1008 B", "0"]
    );

    let stat = text(&ring(&["stat", name.as_str()]).stdout);
    assert!(stat.contains(&format!("publisher    process {pid}, alive, epoch 1")), "{stat}");
    assert!(stat.contains("desk 7") && stat.contains("1008 B"), "{stat}");
    let stat = json(&ring(&["stat", name.as_str(), "--format", "json"]));
    assert_eq!(stat["subscribers"][0]["lag_bytes"].as_u64(), Some(1008));
    assert_eq!(stat["mode"], "0600");

    let refused = ring(&["rm", name.as_str()]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("live publisher") && text(&refused.stderr).contains("--force"),
        "{refused:?}"
    );
    let removed = ring(&["rm", "--force", "--names", name.as_str()]);
    assert!(removed.status.success(), "{removed:?}");
    assert!(text(&removed.stderr).contains("which 1 still have open"), "{removed:?}");
    assert!(!name.0.path().exists());
}

#[test]
fn watching_prints_rates_and_ends_with_the_ring() {
    let name = OwnName::new();
    let mut publisher = Publisher::open(&name.0, &Options::default()).unwrap();
    let mut watch = start(&["stat", name.as_str(), "--watch", "--interval", "5ms", "--format", "json"]);
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines();
    let first: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(first.get("frames_per_second").is_none());
    publisher.publish(b"x").unwrap();
    let second: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(second["frames_per_second"].is_f64(), "{second}");
    publisher.close().unwrap();
    // Until the output and the process end.
    assert!(lines.all(|line| line.unwrap().starts_with('{')));
    assert!(watch.0.wait().unwrap().success());
}

#[test]
fn help_shows_examples() {
    for command in [
        &["--help"][..],
        &["pub", "--help"],
        &["sub", "--help"],
        &["ls", "--help"],
        &["rm", "--help"],
        &["stat", "--help"],
    ] {
        let output = ring(command);
        assert!(
            output.status.success() && text(&output.stdout).contains("Examples:"),
            "{command:?}: {output:?}"
        );
    }
}

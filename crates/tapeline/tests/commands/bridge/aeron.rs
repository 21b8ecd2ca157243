//! Bridges over Aeron, with real media drivers in the plants: `make bridge-aeron`.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tapeline_plant::Seq;

use super::{JOURNAL, Scene, TO_THE_END, free_port, number, wait_for};
use crate::stage::{Running, tapeline};

/// The table of a plant with the media driver, and of one that uses that driver.
const DRIVER: &str = "[aeron]\nfolder = \"driver\"\nembedded = true\n";
const CLIENT: &str = "[aeron]\nfolder = \"driver\"\n";
const FROM_THE_FIRST: &str = "start = \"epoch\"\nstale_after = \"0s\"\n";

impl Scene {
    /// Starts a plant above with one line over Aeron.
    fn above_aeron(&self, driver: &str, channel: &str, arguments: &[&str]) -> Running {
        let text = format!(
            "[plant]\nring = \"{}-above\"\n[[feed]]\nname = \"file\"\nprotocol = \"itch50-moldudp64\"\ndate = \"2020-01-02\"\n\
             file = \"day.itch\"\nstale_after = \"0s\"\n{JOURNAL}{driver}[bridge]\nplant = \"UP\"\nport = {}\n\
             [[bridge.line]]\naeron = \"{channel}\"\nstream = 7\n",
            self.name,
            self.server.port()
        );
        self.plant("above", &text, arguments).0
    }

    /// Starts a plant below with one line over Aeron.
    fn below_aeron(&self, name: &str, driver: &str, channel: &str, arguments: &[&str]) -> Running {
        self.plant(name, &self.text_below_aeron(name, driver, channel), arguments).0
    }

    fn text_below_aeron(&self, name: &str, driver: &str, channel: &str) -> String {
        format!(
            "[plant]\nring = \"{}-{name}\"\n[journal]\nfolder = \"{name}\"\n{driver}[[upstream]]\nplant = \"UP\"\nserver = \"{}\"\n\
             {FROM_THE_FIRST}[[upstream.line]]\naeron = \"{channel}\"\nstream = 7\n",
            self.name, self.server
        )
    }

    /// Reads a plant's counters until one of them is as wanted.
    fn stat_until(&self, name: &str, is_it: impl Fn(&Value) -> bool) {
        let ring = format!("{}-{name}", self.name);
        let mut counters = Running::start(&["stat", &ring, "--every", "50ms", "--format", "json"]);
        while !is_it(&counters.says()) {}
    }
}

#[test]
#[cfg_attr(not(feature = "aeron"), ignore = "this build has no Aeron: make bridge-aeron")]
fn two_plants_below_have_a_hundred_thousand_ticks_also_the_one_that_starts_late() {
    let scene = Scene::new("aeron");
    scene.day_at("50k", "6s");
    let channel = format!("aeron:udp?endpoint=239.255.14.9:{}|interface=127.0.0.1|ttl=0", free_port());
    let mut above = scene.above_aeron(DRIVER, &channel, TO_THE_END);
    let mut early = scene.below_aeron("early", CLIENT, &channel, TO_THE_END);
    let mut ring = scene.reader("above");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(40_000));
    drop(ring);
    let mut late = scene.below_aeron("late", CLIENT, &channel, TO_THE_END);
    let (above, early, late) = (above.says(), early.says(), late.says());
    let kept = scene.journal("above");
    assert!(kept.count > 100_000, "{kept:?}");
    for (name, report) in [("early", &early), ("late", &late)] {
        assert_eq!(scene.journal(name), kept, "{report}");
        let upstream = &report["upstream"];
        assert_eq!((&upstream["missing"], &upstream["strangers"]), (&json!(0), &json!({})), "{report}");
        // Most of them came over Aeron.
        assert!(number(&upstream["ticks"]) > 10_000, "{report}");
    }
    assert_eq!(above["bridge"]["back_pressured"], json!(0), "{above}");
}

#[test]
#[cfg_attr(not(feature = "aeron"), ignore = "this build has no Aeron: make bridge-aeron")]
fn a_killed_media_driver_is_told_and_the_ticks_come_when_there_is_another() {
    let scene = Scene::new("aeron-killed");
    scene.day("12s");
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let mut below = scene.below_aeron("below", DRIVER, &channel, &[]);
    let mut above = scene.above_aeron(CLIENT, &channel, TO_THE_END);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(5_000));
    drop(ring);
    // The driver dies with its plant, and so does what the plant above had connected to.
    below.child.kill().unwrap();
    below.child.wait().unwrap();
    scene.stat_until("above", |plant| plant["bridge"]["drivers_lost"] == 1);
    let mut below = scene.below_aeron("below", DRIVER, &channel, TO_THE_END);
    let (above, below) = (above.says(), below.says());
    assert_eq!(scene.journal("below"), scene.journal("above"), "{above}\n{below}");
    // The plant above has not waited for any of this, and ticks came over Aeron again.
    assert!(number(&above["bridge"]["unsent"]) > 0, "{above}");
    assert!(number(&below["upstream"]["ticks"]) > 1_000, "{above}\n{below}");
}

#[test]
#[cfg_attr(not(feature = "aeron"), ignore = "this build has no Aeron: make bridge-aeron")]
fn what_the_driver_sends_again_is_shown_at_both_ends() {
    let scene = Scene::new("aeron-lossy");
    scene.day_at("20k", "6s");
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}", free_port());
    let of_the_other_host = DRIVER.replace("driver", "driver-below");
    // The driver below loses one data frame of 20.
    let mut command = tapeline(&[]);
    command
        .env("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", "loss")
        .env("AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS", "rate=0.05|recv-msg-mask=2");
    let below = scene.text_below_aeron("below", &of_the_other_host, &channel);
    let mut below = scene.plant_of(command, "below", &below, TO_THE_END).0;
    let mut above = scene.above_aeron(DRIVER, &channel, TO_THE_END);
    scene.stat_until("above", |plant| plant["bridge"]["aeron"]["naks"].as_u64() > Some(0));
    scene.stat_until("above", |plant| plant["bridge"]["aeron"]["window_bytes"].as_u64() > Some(0));
    scene.stat_until("below", |plant| plant["upstream"]["aeron"]["naks"].as_u64() > Some(0));
    let ring = format!("{}-below", scene.name);
    let shown = tapeline(&["stat", &ring]).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("; Aeron: ") && shown.contains(" NAKs, "), "{shown}");
    let (above, below) = (above.says(), below.says());
    assert_eq!(scene.journal("below"), scene.journal("above"), "{above}\n{below}");
}

#[test]
#[cfg_attr(not(feature = "aeron"), ignore = "this build has no Aeron: make bridge-aeron")]
fn a_plant_below_that_stops_reading_stops_neither_the_plant_above_nor_the_ticks() {
    let scene = Scene::new("aeron-slow");
    scene.day("6s");
    let channel = format!("aeron:udp?endpoint=127.0.0.1:{}|term-length=64k|fc=min", free_port());
    let mut above = scene.above_aeron(DRIVER, &channel, TO_THE_END);
    let mut below = scene.below_aeron("below", CLIENT, &channel, TO_THE_END);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(5_000));
    drop(ring);
    let process = Pid::from_child(&below.child);
    kill_process(process, Signal::STOP).unwrap();
    scene.stat_until("above", |plant| number(&plant["bridge"]["back_pressured"]) > 0);
    kill_process(process, Signal::CONT).unwrap();
    let (above, below) = (above.says(), below.says());
    let kept = scene.journal("above");
    assert_eq!(scene.journal("below"), kept, "{above}\n{below}");
    assert_eq!(above["bridge"]["ticks"], json!(kept.count), "{above}");
    let upstream = &below["upstream"];
    assert!(number(&upstream["recovered"]) + number(&upstream["caught_up"]) > 0, "{below}");
}

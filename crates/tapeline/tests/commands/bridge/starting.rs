//! Plants below that start late, start again, or are told of the wrong plant.

use std::net::{Ipv4Addr, UdpSocket};

use serde_json::{Value, json};
use tapeline_feed::moldudp64::heartbeat;
use tapeline_plant::Seq;
use tapeline_plant::bridge::{BridgeSession, Epoch};
use tapeline_plant::tick::Flags;

use super::{JOURNAL, Kept, Scene, TO_THE_END, unbound, wait_for};
use crate::stage::{Running, tapeline};

const HUB: &str = "[hub]\nport = 0\n";

/// The first image of an item that a client of a hub gets.
fn image(hub: &Value, item: &str) -> Value {
    let server = hub.as_str().unwrap();
    let fixed = ["omm", "watch", "--server", server, "--service", "TAPELINE", "--format", "json", item];
    let mut client = Running::start(&fixed);
    loop {
        let line = client.says();
        if line["event"] == "refresh" && line["item"] == item {
            return line["fields"].clone();
        }
    }
}

#[test]
fn clients_of_a_plant_that_starts_late_get_the_images_of_the_plant_above() {
    let scene = Scene::new("images");
    scene.day("300ms");
    let line = unbound();
    let (_above, ready) = scene.above_ready(&[line], &format!("{JOURNAL}{HUB}"), &[]);
    let mut ring = scene.reader("above");
    wait_for(&mut ring, |tick| tick.header.flags.contains(Flags::END_OF_SESSION));
    let expected = image(&ready["hub"], "TAPE");
    assert!(expected.as_object().unwrap().len() > 3, "{expected}");
    let (mut below, ready) = scene.below_ready("below", &[line], "stale_after = \"0s\"", HUB, &[]);
    assert_eq!(image(&ready["hub"], "TAPE"), expected);

    let ring = format!("{}-below", scene.name);
    let mut counters = Running::start(&["stat", &ring, "--every", "50ms", "--format", "json"]);
    let is_live =
        |counters: &Value| counters["feeds"][0]["state"] == "live" && counters["upstream"]["behind"] == 0;
    while !is_live(&counters.says()) {}

    // Another plant on this line, and this one in an epoch before: neither changes anything.
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for (plant, epoch) in [("UP", 1), ("DN", 1)] {
        let session = BridgeSession { plant: plant.parse().unwrap(), epoch: Epoch(epoch) };
        stranger.send_to(&heartbeat(session.to_mold(), 5), line).unwrap();
    }
    below.ask_to_end();
    let report = below.says();
    assert_eq!(report["upstream"]["strangers"], json!({ "older-epoch": 1, "other-plant": 1 }), "{report}");
    assert_eq!(report["ticks"], json!(0), "images are outside the sequence");
}

#[test]
fn a_plant_that_starts_again_goes_on_behind_its_journal() {
    let scene = Scene::new("again");
    scene.day("2s");
    let line = unbound();
    let mut above = scene.above(&[line], JOURNAL, &[]);
    let more = "start = \"epoch\"\nstale_after = \"0s\"";
    let mut below = scene.below("below", &[line], more, &[]);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(1_000));
    drop(ring);
    below.ask_to_end();
    let first = below.says();
    let mut below = scene.below("below", &[line], more, TO_THE_END);
    scene.wait_for_the_day("below");
    above.ask_to_end();
    let (above, second) = (above.says(), below.says());
    let kept = scene.journal("above");
    assert_eq!(scene.journal("below"), kept, "{above}\n{first}\n{second}");
    assert_eq!(first["ticks"].as_u64().unwrap() + second["ticks"].as_u64().unwrap(), kept.count);
}

#[test]
fn a_plant_above_without_a_journal_begins_anew_and_so_do_those_below() {
    let scene = Scene::new("anew");
    // Long enough for the plant below to begin again on a busy machine.
    scene.day("8s");
    let line = unbound();
    // The plant below is there before the day begins, however busy the machine is, and waits for answers to its re-requests: whoever leaves the lines
    // of a plant without a journal begins anew.
    let keys = "stale_after = \"0s\"\nrecovery_time = \"60s\"";
    let mut below = scene.below("below", &[line], keys, &[]);
    let mut first = scene.above(&[line], "", &[]);
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.seq > Seq(500));
    drop(ring);
    first.child.kill().unwrap();
    first.child.wait().unwrap();
    let mut above = scene.above(&[line], "", &[]);
    let ended = below.says();
    let session = ended["upstream"]["session"].as_str().unwrap();
    assert!(ended["refused"].as_str().unwrap().contains("no ticks that follow"), "{ended}");
    assert_eq!(below.says()["ready"], json!(format!("{}-below", scene.name)));
    let mut ring = scene.reader("below");
    wait_for(&mut ring, |tick| tick.header.flags.contains(Flags::END_OF_SESSION));
    below.ask_to_end();
    let report = below.says();
    assert_ne!(report["upstream"]["session"].as_str().unwrap(), session, "{report}");
    let aside = Kept::of(&scene.path(&format!("below-{session}")));
    assert_eq!(ended["journal"]["last"], json!(aside.last));
    above.ask_to_end();
    assert_eq!(scene.journal("below").last, above.says()["bridge"]["ticks"].as_u64().unwrap());
}

#[test]
fn a_server_of_another_plant_is_told_at_once() {
    let scene = Scene::new("other");
    scene.day("100ms");
    let line = unbound();
    let _above = scene.above(&[line], "", &[]);
    let text = format!(
        "[plant]\nring = \"{}-below\"\n[[upstream]]\nplant = \"DN\"\nserver = \"{}\"\n[[upstream.line]]\naddress = \"{line}\"\n",
        scene.name, scene.server
    );
    let config = scene.path("below.toml");
    std::fs::write(&config, text).unwrap();
    let output = tapeline(&["plant", "--config", config.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("the catch-up server is that of plant UP, not of DN"), "{said}");
}

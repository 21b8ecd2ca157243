//! A plant's ticks over ZeroMQ, to a subscriber of an independent implementation.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver};

use serde_json::{Map, Value, json};
use stage::{Place, Running, tapeline};
use zeromq::{Socket, SocketRecv, SubSocket};

use crate::stage;

/// One message: its topic, header and body.
pub(crate) type Message = (String, Header, Value);

/// The header's fields, from their documented offsets.
#[derive(Debug)]
pub(crate) struct Header {
    kind: u8,
    is_image: bool,
    number: u64,
    seq: u64,
}

impl Header {
    fn parse(bytes: &[u8]) -> Self {
        assert_eq!((bytes.len(), bytes[0]), (64, 1));
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        Self { kind: bytes[1], is_image: bytes[2] & 0x80 != 0, number: number(8), seq: number(16) }
    }
}

/// Subscribes to everything, in its own thread.
pub(crate) fn subscribe(address: &str) -> Receiver<Message> {
    let (tell, told) = mpsc::channel();
    let address = format!("tcp://{address}");
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut socket = SubSocket::new();
            socket.connect(&address).await.unwrap();
            socket.subscribe("").await.unwrap();
            while let Ok(message) = socket.recv().await {
                let parts = message.into_vec();
                let [topic, header, body] = &parts[..] else { panic!("{} parts", parts.len()) };
                let topic = String::from_utf8(topic.to_vec()).unwrap();
                let message = (topic, Header::parse(header), serde_json::from_slice(body).unwrap());
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
    });
    told
}

/// The ticks of each item that the plant published, in order.
fn published(watch: &mut Running) -> BTreeMap<String, Vec<Map<String, Value>>> {
    let mut streams: BTreeMap<String, Vec<Map<String, Value>>> = BTreeMap::new();
    while let Some(said) = watch.may_say() {
        if let (Some(item), Some("refresh" | "update")) = (said["item"].as_str(), said["kind"].as_str()) {
            let fields = said["fields"].as_object().cloned().unwrap_or_default();
            streams.entry(item.to_owned()).or_default().push(fields);
        }
    }
    streams
}

#[test]
fn what_is_published_arrives_numbered_and_whole_and_late_comers_get_images() {
    let place = Place::new(1);
    let config = place.config("");
    let mut text = std::fs::read_to_string(&config).unwrap();
    text.push_str("[hub]\nport = 0\n[hub.zeromq]\nport = 0\nbody = \"json\"\nimages_every = \"10ms\"\n");
    std::fs::write(&config, text).unwrap();
    let mut plant = Running::start(&["plant", "--config", &config, "--format", "json"]);
    let ready = plant.says();
    let address = ready["zeromq"].as_str().unwrap().to_owned();
    let fixed = ["plant", "watch", "--ring", &place.ring, "--from", "oldest", "--until-end-of-session"];
    let mut watch = Running::start(&[&fixed[..], &["--format", "json"]].concat());
    let early = subscribe(&address);
    let file = place.folder.path().join("day.itch");
    let write = ["feed", "simulate", "--symbols", "3", "--messages", "6k", "--write"];
    assert!(tapeline(&[&write[..], &[file.to_str().unwrap()]].concat()).output().unwrap().status.success());
    place.replay(&file, 0);
    let published = published(&mut watch);
    assert_eq!(published.len(), 3);

    // The early subscriber may have joined after the first messages; from there on it has all of them, up to the last.
    let (mut last, mut ticks) = (BTreeMap::new(), 0);
    let is_done = |last: &BTreeMap<String, u64>| {
        published.iter().all(|(item, all)| last.get(&format!("TAPELINE/{item}")) == Some(&(all.len() as u64)))
    };
    let mut sequence = 0;
    while !is_done(&last) {
        let (topic, header, body) = early.recv().unwrap();
        let Some((_, item)) = topic.split_once('/') else {
            // Status of the feed as a whole, and its messages that belong to no item.
            assert_eq!(topic, "TAPELINE#0");
            assert_eq!(header.kind == 3, body["Type"] == "Status", "{header:?} {body}");
            continue;
        };
        if header.is_image {
            assert!(last.get(&topic).is_none_or(|last| *last == header.number), "{topic} {header:?}");
            continue;
        }
        assert!(header.seq > sequence, "{topic} {header:?} behind {sequence}");
        sequence = header.seq;
        if let Some(before) = last.insert(topic.clone(), header.number) {
            assert_eq!(header.number, before + 1, "{topic}");
        }
        let expected = &published[item][header.number as usize - 1];
        let fields = body["Fields"].as_object().cloned().unwrap_or_default();
        assert_eq!(
            fields.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{topic} {header:?}"
        );
        assert_eq!(
            (fields.get("BID"), fields.get("TRDPRC_1")),
            (expected.get("BID"), expected.get("TRDPRC_1"))
        );
        ticks += 1;
    }
    assert!(ticks > 0);

    // The late subscriber gets the current image of each item.
    let late = subscribe(&address);
    let mut images = BTreeMap::new();
    while images.len() < published.len() {
        let (topic, header, body) = late.recv().unwrap();
        if let Some((_, item)) = topic.split_once('/') {
            assert!(header.is_image && header.kind == 2, "{topic} {header:?}");
            assert_eq!(header.number, published[item].len() as u64, "{topic}");
            images.insert(item.to_owned(), body["Fields"].as_object().cloned().unwrap());
        }
    }
    for (item, all) in &published {
        let mut whole = Map::new();
        all.iter().for_each(|fields| whole.extend(fields.clone()));
        let [image, whole] = [&images[item], &whole]
            .map(|fields| [fields.get("BID"), fields.get("ACVOL_1")].map(Option::<&Value>::cloned));
        assert_eq!(image, whole, "{item}");
    }
    plant.ask_to_end();
    let report = plant.says();
    let zeromq = &report["zeromq"];
    assert_eq!(
        (&zeromq["subscribers"], &zeromq["dropped"], &zeromq["unusable"]),
        (&json!(2), &json!(0), &json!(0))
    );
    assert_eq!(zeromq["ticks"], report["ticks"]);
}

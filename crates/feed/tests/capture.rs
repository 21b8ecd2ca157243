//! Captures as they come: real files against what an independent parser found in them, and files built here in every
//! form that the formats allow, whole, cut and damaged.

use crate::shared_data;

use std::fs::File;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use shared_data::shared;
use tapeline_feed::capture::{self, Capture, Error, FileFraming, ItchFile, Recording, Skip};

/// What a capture held.
#[derive(Debug, Default, PartialEq)]
struct Found {
    packets: u64,
    first_ns: u64,
    last_ns: u64,
    destinations: Vec<String>,
    largest: usize,
    payloads: Vec<Vec<u8>>,
    times: Vec<u64>,
    trailing: u64,
    cut_at: Option<u64>,
    skipped: Vec<(Skip, u64)>,
}

fn datagrams(recording: Recording<'_>) -> Capture<'_> {
    match recording {
        Recording::Datagrams(capture) => capture,
        _ => panic!("taken for a file of messages or records"),
    }
}

fn messages(recording: Recording<'_>) -> ItchFile<'_> {
    match recording {
        Recording::Messages(file) => file,
        _ => panic!("taken for a capture of packets or a file of records"),
    }
}

fn read(mut capture: Capture<'_>) -> Result<Found, Error> {
    let mut found = Found::default();
    while let Some(datagram) = capture.next()? {
        if found.times.is_empty() {
            found.first_ns = datagram.time.0;
        }
        found.last_ns = datagram.time.0;
        found.largest = found.largest.max(datagram.payload.len());
        let destination = datagram.destination.to_string();
        if !found.destinations.contains(&destination) {
            found.destinations.push(destination);
        }
        found.times.push(datagram.time.0);
        found.payloads.push(datagram.payload.to_vec());
    }
    let counts = capture.counts();
    assert_eq!(counts.datagrams, found.payloads.len() as u64);
    found.packets = counts.packets;
    found.trailing = counts.trailing_bytes;
    found.cut_at = counts.cut_at.map(|place| place.offset);
    found.skipped = counts.skipped().collect();
    Ok(found)
}

fn read_bytes(bytes: &[u8]) -> Result<Found, Error> {
    read(datagrams(capture::open(bytes)?))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An Ethernet frame with an IPv4 UDP datagram.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![1, 0, 0x5E, 0x7F, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend((28 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 16, 17, 0, 0, 10, 1, 1, 1, 239, 255, 0, 1]);
    frame.extend([0x46, 0x50, 0x67, 0x6D]);
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

/// Numbers in the byte order of a file.
#[derive(Clone, Copy)]
struct Order {
    big: bool,
}

impl Order {
    fn u16(self, n: u16) -> [u8; 2] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn u32(self, n: u32) -> [u8; 4] {
        if self.big { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn pcap(self, nanoseconds: bool, link: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let mut file = self.u32(if nanoseconds { 0xA1B2_3C4D } else { 0xA1B2_C3D4 }).to_vec();
        file.extend(self.u16(2));
        file.extend(self.u16(4));
        for word in [0, 0, 65_535, link] {
            file.extend(self.u32(word));
        }
        for (time_ns, packet) in packets {
            let fraction = time_ns % 1_000_000_000 / if nanoseconds { 1 } else { 1_000 };
            let length = packet.len() as u32;
            for word in [(time_ns / 1_000_000_000) as u32, fraction as u32, length, length] {
                file.extend(self.u32(word));
            }
            file.extend(packet);
        }
        file
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let padded = body.len().next_multiple_of(4);
        let length = self.u32(12 + padded as u32);
        let mut block = [self.u32(kind), length].concat();
        block.extend(body);
        block.resize(8 + padded, 0);
        block.extend(length);
        block
    }

    fn section(self) -> Vec<u8> {
        let mut body = self.u32(0x1A2B_3C4D).to_vec();
        body.extend(self.u16(1));
        body.extend(self.u16(0));
        body.extend([0xFF; 8]);
        self.block(0x0A0D_0D0A, &body)
    }

    /// `resolution` as in if_tsresol, `offset` as in if_tsoffset.
    fn interface(self, link: u16, snap: u32, resolution: Option<u8>, offset: Option<i64>) -> Vec<u8> {
        let mut body = [self.u16(link), self.u16(0)].concat();
        body.extend(self.u32(snap));
        if let Some(resolution) = resolution {
            body.extend([self.u16(9), self.u16(1)].concat());
            body.extend([resolution, 0, 0, 0]);
        }
        if let Some(offset) = offset {
            body.extend([self.u16(14), self.u16(8)].concat());
            body.extend(if self.big { offset.to_be_bytes() } else { offset.to_le_bytes() });
        }
        body.extend([0; 4]);
        self.block(1, &body)
    }

    fn packet(self, interface: u32, ticks: u64, original: usize, data: &[u8]) -> Vec<u8> {
        let words = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original as u32];
        let mut body = words.map(|word| self.u32(word)).concat();
        body.extend(data);
        self.block(6, &body)
    }

    fn simple_packet(self, data: &[u8]) -> Vec<u8> {
        let mut body = self.u32(data.len() as u32).to_vec();
        body.extend(data);
        self.block(3, &body)
    }
}

const LITTLE: Order = Order { big: false };
const BIG: Order = Order { big: true };

/// A second of 2020-01-30, with all nine digits.
const TIME_NS: u64 = 1_580_371_634_909_934_345;

#[test]
fn real_captures_hold_what_was_found_in_them() {
    // Packets, first and last time, destination, largest payload (theirs and 40 bytes of transport header): from
    // `expected.json` beside each file.
    #[rustfmt::skip]
    let files = [
        ("moldudp64-derived/aapl5000-clean.pcap", 3_294, None, "233.54.12.111:26477", None),
        ("moldudp64-derived/aapl5000-A.pcap", 3_271, None, "233.54.12.111:26477", None),
        ("moldudp64-derived/aapl5000-B.pcap", 3_240, None, "233.86.230.111:26478", None),
        ("iex-tops-20180103-pcapng/example1.pcapng", 2,
            Some((1_514_983_023_518_791_000, 1_514_983_024_499_887_000)), "233.215.21.3:10377", Some(1_429 + 40)),
        ("iex-tops-20170710/tops16-part1.pcap.gz", 6_500,
            Some((1_499_697_138_433_824_000, 1_499_697_401_606_116_000)), "224.67.0.199:16642", Some(1_419 + 40)),
        ("iex-deep-20170425/DEEP10.pcap.gz", 121_314,
            Some((1_493_132_598_746_881_000, 1_493_149_909_897_850_000)), "224.2.3.10:16648", Some(1_430 + 40)),
    ];
    for (path, packets, times, destination, largest) in files {
        // Those two were cut from longer captures, in the middle of a packet.
        let trailing = match path.rsplit('/').next() {
            Some("example1.pcapng") => 1_486,
            Some("DEEP10.pcap.gz") => 476,
            _ => 0,
        };
        let Some(path) = shared(&format!("data/{path}")) else { return };
        let found = read(datagrams(capture::open(File::open(&path).unwrap()).unwrap())).unwrap();
        assert_eq!(found.packets, packets, "{path:?}");
        assert_eq!(found.payloads.len() as u64, packets, "{path:?}");
        assert_eq!(found.destinations, [destination], "{path:?}");
        assert_eq!((found.trailing, found.skipped.len()), (trailing, 0), "{path:?}");
        if let Some(times) = times {
            assert_eq!((found.first_ns, found.last_ns), times, "{path:?}");
        }
        if let Some(largest) = largest {
            assert_eq!(found.largest, largest, "{path:?}");
        }
    }
}

#[test]
fn a_gzipped_capture_is_the_same_capture() {
    let Some(path) = shared("data/moldudp64-derived/aapl5000-A.pcap") else { return };
    let plain = std::fs::read(path).unwrap();
    let expected = read_bytes(&plain).unwrap();
    assert_eq!(read_bytes(&gzip(&plain)).unwrap(), expected);
    // Members one after another are one stream (RFC 1952, 2.2).
    let (a, b) = plain.split_at(100_001);
    assert_eq!(read_bytes(&[gzip(a), gzip(b)].concat()).unwrap(), expected);
}

#[test]
fn both_byte_orders_and_both_resolutions_of_pcap_are_read() {
    let packets = [(TIME_NS, frame(b"one")), (TIME_NS + 1_000_000_001, frame(b"two"))];
    for order in [LITTLE, BIG] {
        for nanoseconds in [true, false] {
            let found = read_bytes(&order.pcap(nanoseconds, 1, &packets)).unwrap();
            let cut = |time| if nanoseconds { time } else { time / 1_000 * 1_000 };
            assert_eq!(found.times, [cut(TIME_NS), cut(TIME_NS + 1_000_000_001)]);
            assert_eq!(found.payloads, [b"one", b"two"]);
            assert_eq!(found.destinations, ["239.255.0.1:26477"]);
        }
    }
}

#[test]
fn pcapng_sections_and_interfaces_keep_their_own_rules() {
    let mut file = LITTLE.section();
    file.extend(LITTLE.interface(1, 0, None, None));
    file.extend(LITTLE.interface(101, 0, Some(9), Some(1_000_000_000)));
    file.extend(LITTLE.packet(0, TIME_NS / 1_000, 45, &frame(b"one")));
    file.extend(LITTLE.packet(1, TIME_NS - 1_000_000_000_000_000_000, 31, &frame(b"two")[14..]));
    // Nobody described interface 2; a name resolution block is none of our business; an old packet block.
    file.extend(LITTLE.packet(2, 0, 45, &frame(b"???")));
    file.extend(LITTLE.block(4, &[0; 40]));
    file.extend(LITTLE.block(2, &[0; 64]));
    // A block of half a mebibyte is stepped over.
    file.extend(LITTLE.block(0x0BAD, &vec![7; 512 * 1024]));
    file.extend(LITTLE.simple_packet(&frame(b"six")));
    file.extend(BIG.section());
    // 2^-20 seconds, counted from an hour later.
    file.extend(BIG.interface(1, 0, Some(0x80 | 20), Some(3_600)));
    file.extend(BIG.packet(0, (5 << 20) + (1 << 19), 46, &frame(b"four")));
    file.extend(BIG.packet(0, 0, 1_000, &frame(b"cut")[..40]));

    let found = read_bytes(&file).unwrap();
    let names: Vec<_> = found.payloads.iter().map(|payload| String::from_utf8_lossy(payload)).collect();
    assert_eq!(names, ["one", "two", "six", "four"]);
    assert_eq!(found.times, [TIME_NS / 1_000 * 1_000, TIME_NS, TIME_NS, 3_605_500_000_000]);
    assert_eq!(found.skipped, [(Skip::Cut, 1), (Skip::Block, 2)]);
    assert_eq!(found.packets, 7);
}

#[test]
fn what_is_no_datagram_is_counted_with_its_reason() {
    let mut arp = frame(b"");
    arp[13] = 6;
    let mut tcp = frame(b"tcp");
    tcp[23] = 6;
    let mut fragment = frame(b"fragment");
    fragment[20] = 0x20;
    let packets = [arp, tcp, fragment, frame(b"kept")].map(|packet| (TIME_NS, packet));
    let found = read_bytes(&LITTLE.pcap(true, 1, &packets)).unwrap();
    assert_eq!(found.skipped, [(Skip::NotIp, 1), (Skip::NotUdp, 1), (Skip::Fragment, 1)]);
    assert_eq!(found.payloads, [b"kept"]);

    let found = read_bytes(&LITTLE.pcap(true, 147, &packets)).unwrap();
    assert_eq!(found.skipped, [(Skip::LinkType, 4)]);
}

#[test]
fn a_cut_file_gives_what_is_whole_and_says_what_is_left() {
    let packets: Vec<_> = (0..3).map(|k| (TIME_NS + k, frame(&[k as u8; 20]))).collect();
    let pcap = LITTLE.pcap(true, 1, &packets);
    let record = 16 + frame(&[0; 20]).len();
    for length in 24..pcap.len() {
        let found = read_bytes(&pcap[..length]).unwrap();
        assert_eq!(found.payloads.len(), (length - 24) / record, "{length}");
        assert_eq!(found.trailing, ((length - 24) % record) as u64, "{length}");
        let whole = length as u64 - found.trailing;
        assert_eq!(found.cut_at, (found.trailing > 0).then_some(whole), "{length}");
    }
    for length in 4..24 {
        assert!(matches!(read_bytes(&pcap[..length]), Err(Error::Format { .. })), "{length}");
    }

    let mut ng = LITTLE.section();
    ng.extend(LITTLE.interface(1, 0, None, None));
    let head = ng.len();
    ng.extend(LITTLE.packet(0, 1, 62, &frame(&[1; 20])));
    let body = ng.len() - head;
    ng.extend(LITTLE.packet(0, 1, 62, &frame(&[2; 20])));
    for length in head..ng.len() {
        let found = read_bytes(&ng[..length]).unwrap();
        assert_eq!(found.payloads.len(), (length - head) / body, "{length}");
        assert_eq!(found.trailing, ((length - head) % body) as u64, "{length}");
        let whole = length as u64 - found.trailing;
        assert_eq!(found.cut_at, (found.trailing > 0).then_some(whole), "{length}");
    }

    let packed = gzip(&pcap);
    let error = read_bytes(&packed[..packed.len() - 10]).unwrap_err().to_string();
    assert!(error.starts_with("reading failed at byte "), "{error}");
    assert!(error.ends_with("of the decompressed capture"), "{error}");
}

#[test]
fn contradictions_are_errors_with_a_place() {
    let packets = [(TIME_NS, frame(b"one")), (TIME_NS, frame(b"two"))];
    let mut pcap = LITTLE.pcap(true, 1, &packets);
    let second = 24 + 16 + frame(b"one").len();
    pcap[second + 8..second + 12].copy_from_slice(&(capture::LARGEST_PACKET as u32 + 1).to_le_bytes());
    let error = read_bytes(&pcap).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("byte {second}: expected a packet record of at most 262,144 bytes")
    );

    let section = LITTLE.section();
    let at = section.len();
    for (damage, expected) in [
        (LITTLE.block(6, &[0; 8])[..8].to_vec(), ""),
        (
            [LITTLE.u32(6), LITTLE.u32(11), LITTLE.u32(0)].concat(),
            "a pcapng block length of at least 12 bytes",
        ),
        (
            [LITTLE.u32(6), LITTLE.u32(13), LITTLE.u32(0)].concat(),
            "a pcapng block length of at least 12 bytes",
        ),
        ([LITTLE.u32(6), LITTLE.u32(12), LITTLE.u32(16)].concat(), "the block's length again at its end"),
        (LITTLE.block(6, &[0; 8]), "a well-formed pcapng block"),
        (LITTLE.interface(1, 0, Some(20), None), "a time resolution that fits 64 bits"),
        ([LITTLE.u32(0x0A0D_0D0A), LITTLE.u32(28), [9; 4]].concat(), "the byte-order magic"),
    ] {
        let result = read_bytes(&[section.clone(), damage].concat());
        match expected {
            "" => assert_eq!(result.unwrap().trailing, 8),
            _ => {
                let error = result.unwrap_err().to_string();
                assert!(error.starts_with(&format!("byte {at}: expected {expected}")), "{error}");
            }
        }
    }
}

#[test]
fn what_is_no_capture_is_refused_with_what_it_begins_with() {
    for (bytes, start) in [
        (&b""[..], "nothing"),
        (b"PK\x03\x04", "50 4b 03 04"),
        (b"\0\0Zebra", "00 00 5a 65 62 72 61"),
        (b"\x00\x0b\x53........", "00 0b 53 2e 2e 2e 2e 2e"),
    ] {
        let error = capture::open(bytes).unwrap_err().to_string();
        assert!(error.starts_with(&format!("not a capture: it begins with {start};")), "{error}");
    }
    assert!(matches!(capture::open(&gzip(b"text")[..]), Err(Error::Unknown { .. })));
}

#[test]
fn damage_anywhere_is_survived() {
    let mut ng = BIG.section();
    ng.extend(BIG.interface(1, 96, Some(6), Some(-1)));
    ng.extend(BIG.packet(0, 1, 62, &frame(&[1; 20])));
    ng.extend(BIG.simple_packet(&frame(&[2; 20])));
    let files = [ng, LITTLE.pcap(true, 1, &[(TIME_NS, frame(&[3; 20])), (TIME_NS, frame(&[4; 20]))])];
    for file in files {
        for at in 0..file.len() {
            for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
                let mut damaged = file.clone();
                damaged[at] = value;
                // An error or fewer datagrams, never more and never a panic.
                if let Ok(Recording::Datagrams(capture)) = capture::open(&damaged[..])
                    && let Ok(found) = read(capture)
                {
                    assert!(found.packets <= 2);
                }
            }
        }
    }
}

#[test]
fn files_of_messages_are_recognised_and_counted() {
    for (path, expected, trailing) in [
        ("itch50-aapl-20200130/aapl-first5000.itch", 5_000, 0),
        ("itch50-synthetic-ritch/ritch-framed.itch", 12_012, 0),
        ("itch50-head-nasdaq/nasdaq-head-4096.itch", 101, 15),
    ] {
        let Some(path) = shared(&format!("data/{path}")) else { return };
        let mut file = messages(capture::open(File::open(&path).unwrap()).unwrap());
        while file.next().unwrap().is_some() {}
        assert_eq!((file.messages(), file.trailing_bytes()), (expected, trailing), "{path:?}");
        assert_eq!(file.framing(), FileFraming::Length);
        assert_eq!(file.bytes_consumed() + trailing, std::fs::metadata(&path).unwrap().len());
        assert!(!file.end_marker());
    }
}

#[test]
fn zero_prefixes_give_the_same_messages_as_lengths() {
    let (Some(zeros), Some(framed)) = (
        shared("data/itch50-synthetic-ritch/ex20101224.TEST_ITCH_50.gz"),
        shared("data/itch50-synthetic-ritch/ritch-framed.itch"),
    ) else {
        return;
    };
    let mut zeros = messages(capture::open(File::open(zeros).unwrap()).unwrap());
    let mut framed = messages(capture::open(File::open(framed).unwrap()).unwrap());
    assert_eq!(zeros.framing(), FileFraming::Type);
    loop {
        let (a, b) = (zeros.next().unwrap(), framed.next().unwrap());
        assert_eq!(a, b);
        if a.is_none() {
            break;
        }
    }
    assert_eq!((zeros.messages(), zeros.trailing_bytes()), (12_012, 0));
}

#[test]
fn an_end_marker_ends_a_file_of_messages() {
    let event = |code| [&[0, 12][..], b"S\0\0\0\0\0\0\0\0\0\x07", &[code]].concat();
    let bytes = [event(b'O'), event(b'C'), vec![0, 0], b"more".to_vec()].concat();
    let mut file = messages(capture::open(&bytes[..]).unwrap());
    assert_eq!(file.next().unwrap(), Some(&event(b'O')[2..]));
    assert_eq!(file.next().unwrap(), Some(&event(b'C')[2..]));
    assert_eq!(file.next().unwrap(), None);
    assert!(file.end_marker());
    assert_eq!((file.trailing_bytes(), file.bytes_consumed()), (4, 30));
    assert_eq!(file.cut_at(), None, "what is behind the marker is no message that was cut");

    let mut file = messages(capture::open(&bytes[..26]).unwrap());
    while file.next().unwrap().is_some() {}
    assert_eq!((file.trailing_bytes(), file.cut_at().map(|place| place.offset)), (12, Some(14)));
}

#[test]
fn an_unknown_type_behind_zero_prefixes_is_an_error_with_a_place() {
    let event = b"\0\0S\0\0\0\0\0\0\0\0\0\x07O";
    let bytes = [&event[..], event, b"\0\0?"].concat();
    let mut file = messages(capture::open(&bytes[..]).unwrap());
    assert!(file.next().unwrap().is_some() && file.next().unwrap().is_some());
    let error = file.next().unwrap_err().to_string();
    assert_eq!(
        error,
        "byte 28: expected two zero bytes and a known type of message, since the file gives no lengths"
    );
}

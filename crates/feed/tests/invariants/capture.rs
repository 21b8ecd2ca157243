//! Captures: pcap, pcapng, files of messages and of records, plain and compressed.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4};

use flate2::Compression;
use flate2::write::GzEncoder;
use tapeline_feed::capture::{self, LARGEST_PACKET, Packer, Packing, PcapWriter, Recording};
use tapeline_feed::moldudp64::{MoldPacket, MoldSession, parse};
use tapeline_nanos::Nanos;

/// Datagrams and messages that are looked at: a few kilobytes of gzip can hold millions.
const MOST: usize = 2_000;

/// A file is read the same however its bytes come, and all that it has is counted.
pub(crate) fn file(bytes: &[u8]) {
    let (at_once, in_crumbs) = (outcome(bytes), outcome(Crumbs(bytes)));
    let zstandard =
        bytes.starts_with(&[0x28, 0xB5, 0x2F, 0xFD]) || bytes.first().is_some_and(|byte| byte >> 4 == 5);
    let gzipped = bytes.starts_with(&[0x1F, 0x8B]) || zstandard;
    if gzipped && at_once.end.contains("reading failed") {
        // Where the compression is damaged, the decompressor keeps to itself what it had done of the last piece.
        assert!(at_once.taken <= in_crumbs.taken);
    } else {
        assert_eq!(at_once, in_crumbs);
    }
    // Uncompressed, nothing can be made of less.
    assert!(gzipped || at_once.bytes <= bytes.len() as u64);
}

/// What a file amounts to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    taken: usize,
    bytes: u64,
    /// A sum over times and contents.
    sum: u64,
    end: String,
}

fn outcome(stream: impl Read + Send) -> Outcome {
    let mut outcome = Outcome::default();
    let sum = |outcome: &mut Outcome, bytes: &[u8], time: Nanos| {
        outcome.taken += 1;
        outcome.bytes += bytes.len() as u64;
        let sum = bytes.iter().fold(outcome.sum ^ time.0, |sum, byte| sum.rotate_left(5) ^ u64::from(*byte));
        outcome.sum = sum.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    };
    match capture::open(stream) {
        Err(error) => outcome.end = error.to_string(),
        Ok(Recording::Datagrams(mut capture)) => {
            while outcome.taken < MOST {
                match capture.next() {
                    Ok(Some(datagram)) => {
                        assert!(datagram.payload.len() <= LARGEST_PACKET);
                        sum(&mut outcome, datagram.payload, datagram.time);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        outcome.end = error.to_string();
                        break;
                    }
                }
            }
            let counts = capture.counts();
            let skipped: u64 = counts.skipped().map(|(_, count)| count).sum();
            assert_eq!(counts.packets, counts.datagrams + skipped);
            assert_eq!((counts.datagrams, counts.payload_bytes), (outcome.taken as u64, outcome.bytes));
            outcome.end += &format!(" {counts:?}");
        }
        Ok(Recording::Messages(messages)) => {
            let mut packer = Packer::new(messages, MoldSession::new("FUZZ"), Packing::FULL);
            let mut next = 1;
            while outcome.taken < MOST {
                match packer.next() {
                    Ok(Some(packed)) => {
                        let Ok(MoldPacket::Data(data)) = parse(packed.payload) else { panic!("no packet") };
                        assert_eq!((data.sequence(), data.count()), (next, packed.messages));
                        next = data.end();
                        for (_, message) in data.messages() {
                            sum(&mut outcome, message, packed.time);
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        outcome.end = error.to_string();
                        break;
                    }
                }
            }
            outcome.end += &format!(" {}", packer.file().trailing_bytes());
        }
        Ok(Recording::Records(mut file)) => {
            while outcome.taken < MOST {
                match file.next() {
                    Ok(Some(record)) => sum(&mut outcome, record, Nanos(0)),
                    Ok(None) => break,
                    Err(error) => {
                        outcome.end = error.to_string();
                        break;
                    }
                }
            }
            assert_eq!(file.records(), outcome.taken as u64);
        }
    }
    outcome
}

/// Gives its bytes a few at a time.
struct Crumbs<'a>(&'a [u8]);

impl Read for Crumbs<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = 1 + self.0.len() % 7;
        let room = into.len().min(most);
        self.0.read(&mut into[..room])
    }
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}

/// Inputs to begin with.
pub(crate) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let address = |port| SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), port);
    let mut writer = PcapWriter::new(Vec::new()).unwrap();
    for (ns, payload) in [(1, &b"one"[..]), (2_000_000_000, b"another"), (3_000_000_001, b"")] {
        writer.write(Nanos(ns), address(1), address(2), payload).unwrap();
    }
    let pcap = writer.finish().unwrap();
    // Section, interface (Ethernet), one packet: the first of the file above, from its frame on.
    let frame = &pcap[24 + 16..24 + 16 + 14 + 20 + 8 + 3];
    let length = (frame.len() as u32).to_le_bytes();
    let padding = vec![0; frame.len().next_multiple_of(4) - frame.len()];
    let packet = [&[0; 12][..], &length, &length, frame, &padding].concat();
    let section = [&[0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..], &[0xFF; 8]].concat();
    let pcapng =
        [block(0x0A0D_0D0A, &section), block(1, &[1, 0, 0, 0, 0, 0, 4, 0]), block(6, &packet)].concat();
    let messages = super::itch::seeds().swap_remove(0).1;
    let gzip = |bytes: &[u8]| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let records = super::dbn::file_seeds();
    let record = |wanted| records.iter().find(|(name, _)| *name == wanted).unwrap().1.clone();
    vec![
        ("pcap.gz", gzip(&pcap)),
        ("pcap.zst", zstd::bulk::compress(&pcap, 1).unwrap()),
        ("records.zst", record("frames")),
        ("metadata", record("version-3")),
        ("messages.gz", gzip(&messages[..400])),
        ("messages", messages),
        ("pcap", pcap),
        ("pcapng", pcapng),
        ("records", super::dbn::seeds().swap_remove(1).1),
    ]
}

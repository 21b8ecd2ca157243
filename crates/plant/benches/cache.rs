//! What the cache costs: million messages a second on one core, and bytes for each item.
//!
//! ```text
//! cargo bench -p tapeline-plant --bench cache -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/FIELDS/INPUT] [--rounds N]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `decode` | header, then every value by the type that the dictionary gives it: what any reader of the update does |
//! | `update` | finds the item, folds the update into its image of 70 fields; of `orders`, into one entry of a map of a hundred |
//! | `refresh` | makes the image anew |
//! | `image` | writes the image as a refresh |
//!
//! `same` is one message over and over, `varied` goes through 1,024 whose values differ in length; `slot` is `varied` by one who
//! knows where the item is, as the hub does; `items` is `varied` over
//! 100,000 items, whose images no cache of the processor holds. The harness says what the options and the figures are.
//! The first line says what 100,000 images of LSEG's `MsgData.xml` take (70 fields, and the three that its tools track
//! times with), by the cache's own account and by what the process has more of.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

#[path = "../../omm/benches/harness/mod.rs"]
mod harness;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../omm/tests/shared_data/mod.rs"]
mod shared_data;

use std::fmt::Write as _;
use std::sync::Arc;

use harness::{Bench, VARIED};
use tapeline_measure::Usage;
use tapeline_omm::rwf::{
    DataType, Domain, MapAction, MapEncoder, MapHead, MessageView, RefreshHeader, Rmtes, State, UpdateType,
    flags, update_header,
};
use tapeline_omm::{Date, Dictionary, Fid, FieldList, FieldListEncoder, Real, Time, Value};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Cache, ItemKey, Limits, Slot};

/// Items of the large cache.
const ITEMS: usize = 100_000;
const FIELDS: usize = 70;
const CHANGED: usize = 13;
/// Entries of the map.
const ORDERS: usize = 100;

/// Types in the proportions of a price record: mostly numbers, some enumerations, times and short texts.
const TYPES: [DataType; CHANGED] = [
    DataType::TIME,
    DataType::UINT,
    DataType::ENUM,
    DataType::RMTES_STRING,
    DataType::REAL,
    DataType::REAL,
    DataType::REAL,
    DataType::REAL,
    DataType::REAL,
    DataType::RMTES_STRING,
    DataType::ENUM,
    DataType::DATE,
    DataType::ENUM,
];

/// A small generator of even spread (xorshift), so that every run sees the same messages.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Ids spread over the dictionary as those of a price record are.
fn fid_of(place: usize) -> Fid {
    Fid((place * place % 4_000 + place) as i16 + 1)
}

fn value(data_type: DataType, random: &mut Random) -> Value<'static> {
    let texts: [&[u8]; 4] = [b"-", b"NAS", b"BOS", b"Apple Inc"];
    let bits = random.next();
    match data_type {
        DataType::TIME => Value::Time(Time::from_ns_of_day(bits % 86_400_000 * 1_000_000)),
        DataType::UINT => Value::UInt(bits >> 38 >> (bits % 4 * 8)),
        DataType::ENUM => Value::Enum((bits % 300) as u16),
        DataType::DATE => Value::Date(Date::from_unix_days((bits % 20_000) as i64).unwrap()),
        DataType::RMTES_STRING => Value::Rmtes(Rmtes(texts[(bits % 4) as usize])),
        // Prices move by little: their length changes now and then, that of sizes oftener.
        _ if bits.is_multiple_of(2) => Value::Real(Real::decimal((bits >> 40 >> (bits % 12)) as i64, 4)),
        _ => Value::Real(Real::integer((bits >> 44 >> (bits % 16)) as i64)),
    }
}

fn dictionary() -> Dictionary {
    let mut text = String::new();
    for place in 0..FIELDS {
        let name = match TYPES[place % TYPES.len()] {
            DataType::UINT => "UINT64",
            DataType::REAL => "REAL64",
            other => other.name().unwrap(),
        };
        writeln!(text, "F{place} \"F {place}\" {} NULL NONE 8 {name} 8", fid_of(place)).unwrap();
    }
    Dictionary::parse(&text).unwrap()
}

/// A list of the fields at these places of the record.
fn list(places: impl Iterator<Item = usize>, random: &mut Random) -> Vec<u8> {
    let mut out = vec![0; 4_096];
    let mut list = FieldListEncoder::new(&mut out).unwrap();
    for place in places {
        list.value(fid_of(place), &value(TYPES[place % TYPES.len()], random)).unwrap();
    }
    let len = list.finish();
    out.truncate(len);
    out
}

/// Places all over the record, one of each type of [`TYPES`].
fn changed() -> impl Iterator<Item = usize> {
    (0..CHANGED).map(|place| place + place % 5 * CHANGED)
}

fn refresh(container: DataType, payload: &[u8]) -> Vec<u8> {
    let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 5, State::OPEN_OK, container);
    header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE | flags::refresh::SOLICITED;
    let mut out = vec![0; 256];
    let len = header.encode(&mut out).unwrap();
    out.truncate(len);
    out.extend_from_slice(payload);
    out
}

fn update(container: DataType, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 16];
    let len = update_header(&mut out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, container).unwrap();
    out.truncate(len);
    out.extend_from_slice(payload);
    out
}

fn key(name: &str) -> ItemKey<'_> {
    ItemKey { service: 1, domain: Domain::MARKET_PRICE, name: name.as_bytes() }
}

fn average(messages: &[Vec<u8>]) -> f64 {
    messages.iter().map(Vec::len).sum::<usize>() as f64 / messages.len() as f64
}

#[inline(never)]
fn decode(message: &[u8], dictionary: &Dictionary) -> u64 {
    let message = MessageView::parse(message).unwrap();
    let list = FieldList::parse(message.payload()).unwrap();
    list.iter().map(Result::unwrap).fold(0, |sum: u64, field| {
        let value = match field.value(dictionary.data_type(field.fid).unwrap()).unwrap() {
            Value::Real(value) => value.mantissa as u64 ^ u64::from(value.hint.0),
            Value::UInt(value) => value,
            Value::Enum(value) => u64::from(value),
            Value::Time(value) => u64::from(value.second) ^ u64::from(value.minute) << 8,
            Value::Date(value) => u64::from(value.day),
            Value::Rmtes(value) => value.0.len() as u64,
            _ => 1,
        };
        sum.wrapping_mul(31).wrapping_add(value)
    })
}

#[inline(never)]
fn apply(cache: &mut Cache, key: &ItemKey<'_>, seq: usize, message: &[u8]) -> u64 {
    u64::from(cache.apply(key, Seq(seq as u64), message).is_ok())
}

fn main() {
    let mut bench = Bench::new("cache");
    let random = &mut Random(0x5EED_1234_5678_9ABC);
    let dictionary = Arc::new(dictionary());
    let images: Vec<_> =
        (0..VARIED).map(|_| refresh(DataType::FIELD_LIST, &list(0..FIELDS, random))).collect();
    let updates: Vec<_> =
        (0..VARIED).map(|_| update(DataType::FIELD_LIST, &list(changed(), random))).collect();
    let names: Vec<String> = (0..ITEMS).map(|n| format!("RDT{n}")).collect();
    // Tools that count instructions take long for 100,000 images, and count the same for fewer.
    let items = if std::env::args().any(|argument| argument == "--rounds") { 1_000 } else { ITEMS };
    let new = || {
        let mut cache = Cache::new(Limits::default());
        cache.set_dictionary(1, &dictionary);
        cache
    };

    if items == ITEMS {
        // Before anything else, so that what the process has more of is this.
        memory(&names);
    }
    let mut cache = new();
    for name in &names[..items] {
        apply(&mut cache, &key(name), 0, &images[0]);
        // Until images seldom grow any more, as after a while in a market.
        for update in &updates[..8] {
            apply(&mut cache, &key(name), 0, update);
        }
    }
    let one = key(&names[77]);
    bench.add(("decode", CHANGED, "same"), updates[0].len() as f64, |_| decode(&updates[0], &dictionary));
    bench.add(("update", CHANGED, "same"), updates[0].len() as f64, |n| {
        apply(&mut cache, &one, n, &updates[0])
    });
    bench
        .add(("decode", CHANGED, "varied"), average(&updates), |n| decode(&updates[n % VARIED], &dictionary));
    bench.add(("update", CHANGED, "varied"), average(&updates), |n| {
        apply(&mut cache, &one, n, &updates[n % VARIED])
    });
    let mut slot = Slot::default();
    bench.add(("update", CHANGED, "slot"), average(&updates), |n| {
        u64::from(cache.apply_at(&mut slot, &one, Seq(n as u64), &updates[n % VARIED]).is_ok())
    });
    bench.add(("update", CHANGED, "items"), average(&updates), |n| {
        // A prime: all items in an order that no prefetcher knows.
        let name = &names[n.wrapping_mul(7_919) % items];
        apply(&mut cache, &key(name), n, &updates[n % VARIED])
    });
    bench.add(("refresh", FIELDS, "varied"), average(&images), |n| {
        apply(&mut cache, &one, n, &images[n % VARIED])
    });
    let mut out = vec![0; 2_048];
    bench.add(("image", FIELDS, "same"), images[0].len() as f64, |n| {
        let mut parts = cache.image(&one).unwrap().parts(AnswerParameters::to(n as i32));
        parts.write(&mut out).unwrap().unwrap() as u64
    });
    bench.add(("image", FIELDS, "items"), images[0].len() as f64, |n| {
        let name = &names[n.wrapping_mul(7_919) % items];
        let mut parts = cache.image(&key(name)).unwrap().parts(AnswerParameters::to(n as i32));
        parts.write(&mut out).unwrap().unwrap() as u64
    });
    orders(&mut bench, &mut cache, random);
    bench.print();
}

/// A map of orders, of which each update changes one.
fn orders(bench: &mut Bench, cache: &mut Cache, random: &mut Random) {
    let book = ItemKey { service: 1, domain: Domain::MARKET_BY_ORDER, name: b"BOOK" };
    let mut out = vec![0; 32_768];
    let mut map = |entries: &[usize], action, fields: &[usize], random: &mut Random| {
        let head = MapHead::new(DataType::BUFFER, DataType::FIELD_LIST);
        let mut map = MapEncoder::new(&mut out, &head).unwrap();
        for order in entries {
            let data = list(fields.iter().copied(), random);
            map.entry_in_place(action, format!("ORD{order:07}").as_bytes(), None, |room| {
                room[..data.len()].copy_from_slice(&data);
                Ok(data.len())
            })
            .unwrap();
        }
        let len = map.finish();
        out[..len].to_vec()
    };
    let all: Vec<_> = (0..ORDERS).collect();
    let image = refresh(DataType::MAP, &map(&all, MapAction::ADD, &[0, 1, 2, 4, 5, 3], random));
    let changes: Vec<_> = (0..VARIED)
        .map(|n| update(DataType::MAP, &map(&[n * 37 % ORDERS], MapAction::UPDATE, &[0, 4, 5], random)))
        .collect();
    apply(cache, &book, 0, &image);
    bench.add(("update", 3, "orders"), average(&changes), |n| apply(cache, &book, n, &changes[n % VARIED]));
}

/// What the images of LSEG's tools take.
fn memory(names: &[String]) {
    let Some(file) = shared_data::shared("data/refinitiv/perftools/MsgData.xml") else { return };
    let text = std::fs::read_to_string(file).unwrap();
    let image = refresh(DataType::FIELD_LIST, &msg_data(&text));
    let before = Usage::now().unwrap().resident_bytes;
    let mut cache = Cache::new(Limits::default());
    for (n, name) in names.iter().enumerate() {
        apply(&mut cache, &key(name), n, &image);
    }
    let held = cache.memory();
    let resident = Usage::now().unwrap().resident_bytes.saturating_sub(before);
    let each = |bytes: f64| bytes / names.len() as f64;
    println!(
        "{} images of {} bytes: {:.0} bytes each by its own account, {:.0} of the process ({} shape)",
        held.items,
        image.len(),
        each(held.bytes as f64),
        each(resident as f64),
        held.shapes,
    );
}

/// The fields of the first refresh of a message file, and the three in which times are tracked.
fn msg_data(text: &str) -> Vec<u8> {
    let mut out = vec![0; 8_192];
    let mut list = FieldListEncoder::new(&mut out).unwrap();
    let (refresh, _) = text.split_once("</refreshMsg>").unwrap();
    for entry in refresh.split("<fieldEntry ").skip(1) {
        let of = |name: &str| entry.split_once(name).unwrap().1.split('"').nth(1).unwrap();
        let (fid, data) = (Fid(of("fieldId").parse().unwrap()), of("data=").trim());
        let numbers: Vec<u16> = data.split(['/', ':']).filter_map(|part| part.parse().ok()).collect();
        match of("dataType") {
            _ if data.is_empty() => list.blank(fid),
            "RSSL_DT_UINT" => list.uint(fid, data.parse().unwrap()),
            "RSSL_DT_ENUM" => list.enumeration(fid, data.parse().unwrap()),
            "RSSL_DT_REAL" => {
                let places = data.split_once('.').map_or(0, |(_, behind)| behind.len());
                list.real(fid, Real::decimal(data.replace('.', "").parse().unwrap(), places as u8))
            }
            "RSSL_DT_DATE" => {
                let (month, day) = (numbers[0] as u8, numbers[1] as u8);
                list.date(fid, Date { year: numbers[2], month, day })
            }
            "RSSL_DT_TIME" => {
                let second_of_day =
                    (u64::from(numbers[0]) * 60 + u64::from(numbers[1])) * 60 + u64::from(numbers[2]);
                list.time(fid, Time::from_ns_of_day(second_of_day * 1_000_000_000))
            }
            _ => list.rmtes(fid, data.as_bytes()),
        }
        .unwrap();
    }
    for fid in 3_902..3_905 {
        // Microseconds.
        list.uint(Fid(fid), 1_234_567_890_123).unwrap();
    }
    assert_eq!(list.len(), 73);
    let len = list.finish();
    out.truncate(len);
    out
}

//! How fast updates are written and read: million messages a second on one core, whole messages with their header.
//!
//! ```text
//! cargo bench -p tapeline-omm --bench field_list -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/FIELDS/INPUT] [--rounds N]
//! ```
//!
//! | what | does |
//! |---|---|
//! | `walk` | header, then every field's id and bytes |
//! | `decode` | the same, looks up each type in the dictionary and reads every value |
//! | `find` | header, then the last field alone |
//! | `encode` | header and every field from its value |
//! | `quote` | header and five fields by their own methods, as a feed handler writes them |
//!
//! `same` is one message over and over, `varied` goes through 1,024 of them whose values differ in length, as they do
//! in a market. The harness says what the options and the figures are.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod harness;

use std::fmt::Write as _;
use std::hint::black_box;

use harness::{Bench, VARIED};
use tapeline_omm::rwf::{DataType, Domain, MessageView, Rmtes, UpdateType, update_header};
use tapeline_omm::{Dictionary, Fid, FieldList, FieldListEncoder, Full, Real, Time, Value, fid};

/// Types in the proportions of a price record: mostly numbers, some enumerations, times and short texts.
const TYPES: [DataType; 13] = [
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
const SIZES: [usize; 3] = [13, 23, 70];

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

type Fields = Vec<(Fid, Value<'static>)>;

/// Ids spread over the dictionary as those of a price record are.
fn fid_of(place: usize) -> Fid {
    Fid((place * place % 4_000 + place) as i16 + 1)
}

fn fields(count: usize, random: &mut Random) -> Fields {
    let texts: [&[u8]; 4] = [b"-", b"NAS", b"BOS", b"Apple Inc"];
    let value = |data_type, random: &mut Random| {
        let bits = random.next();
        match data_type {
            DataType::TIME => Value::Time(Time::from_ns_of_day(match bits % 3 {
                0 => bits % 86_400 * 1_000_000_000,
                1 => bits % 86_400_000 * 1_000_000,
                _ => bits % 86_400_000_000_000,
            })),
            DataType::UINT => Value::UInt(bits >> 38 >> (bits % 4 * 8)),
            DataType::ENUM => Value::Enum((bits % 300) as u16),
            DataType::DATE => {
                Value::Date(tapeline_omm::Date::from_unix_days((bits % 20_000) as i64).unwrap())
            }
            DataType::RMTES_STRING => Value::Rmtes(Rmtes(texts[(bits % 4) as usize])),
            _ if bits.is_multiple_of(2) => Value::Real(Real::decimal((bits >> 40 >> (bits % 12)) as i64, 4)),
            _ => Value::Real(Real::integer((bits >> 44 >> (bits % 16)) as i64)),
        }
    };
    (0..count).map(|place| (fid_of(place), value(TYPES[place % TYPES.len()], random))).collect()
}

fn dictionary() -> Dictionary {
    let mut text = String::new();
    for place in 0..SIZES[2] {
        let name = match TYPES[place % TYPES.len()] {
            DataType::UINT => "UINT64",
            DataType::REAL => "REAL64",
            other => other.name().unwrap(),
        };
        writeln!(text, "F{place} \"F {place}\" {} NULL NONE 8 {name} 8", fid_of(place)).unwrap();
    }
    Dictionary::parse(&text).unwrap()
}

#[inline(never)]
fn encode(fields: &Fields, out: &mut [u8]) -> Result<usize, Full> {
    let header = update_header(out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST)?;
    let mut list = FieldListEncoder::new(&mut out[header..])?;
    for (fid, value) in fields {
        match *value {
            Value::Real(value) => list.real(*fid, value),
            Value::UInt(value) => list.uint(*fid, value),
            Value::Enum(value) => list.enumeration(*fid, value),
            Value::Time(value) => list.time(*fid, value),
            Value::Date(value) => list.date(*fid, value),
            Value::Rmtes(value) => list.rmtes(*fid, value.0),
            _ => list.value(*fid, value),
        }?;
    }
    Ok(header + list.finish())
}

/// Five fields as a feed handler writes them, without values in between.
fn encode_quote(place: usize, out: &mut [u8]) -> Result<usize, Full> {
    let price = 1_000_000 + place as i64 * 37;
    let header = update_header(out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST)?;
    let mut list = FieldListEncoder::new(&mut out[header..])?;
    list.real(fid::BID, Real::decimal(price, 4))?;
    list.real(fid::BIDSIZE, Real::integer(100 + place as i64))?;
    list.real(fid::ASK, Real::decimal(price + 100, 4))?;
    list.real(fid::ASKSIZE, Real::integer(200 + place as i64))?;
    list.time(fid::QUOTIM_NS, Time::from_ns_of_day(36_000_000_000_000 + place as u64 * 1_001))?;
    Ok(header + list.finish())
}

/// Folds a value into a number that depends on all of it.
#[inline]
fn fold(value: &Value<'_>) -> u64 {
    match *value {
        Value::Real(value) => value.mantissa as u64 ^ u64::from(value.hint.0),
        Value::UInt(value) => value,
        Value::Enum(value) => u64::from(value),
        Value::Time(time) => {
            u64::from(time.hour)
                ^ u64::from(time.minute) << 8
                ^ u64::from(time.second) << 16
                ^ u64::from(time.millisecond) << 24
                ^ u64::from(time.microsecond) << 34
                ^ u64::from(time.nanosecond) << 44
        }
        Value::Date(date) => u64::from(date.day) ^ u64::from(date.month) << 8 ^ u64::from(date.year) << 16,
        Value::Rmtes(text) => text.0.len() as u64 ^ u64::from(text.0.first().copied().unwrap_or(0)),
        _ => 1,
    }
}

#[inline(never)]
fn walk(message: &[u8]) -> u64 {
    let message = MessageView::parse(message).unwrap();
    let mut sum = 0_u64;
    for field in FieldList::parse(message.payload()).unwrap().iter() {
        let field = field.unwrap();
        sum = sum.wrapping_add(field.fid.0 as u64 ^ field.data.len() as u64);
    }
    sum
}

#[inline(never)]
fn decode(message: &[u8], dictionary: &Dictionary) -> u64 {
    let message = MessageView::parse(message).unwrap();
    let mut sum = message.stream_id() as u64;
    for field in FieldList::parse(message.payload()).unwrap().iter() {
        let field = field.unwrap();
        let data_type = dictionary.data_type(field.fid).unwrap();
        sum = sum.wrapping_mul(31).wrapping_add(fold(&field.value(data_type).unwrap()));
    }
    sum
}

#[inline(never)]
fn find(message: &[u8], fid: Fid) -> u64 {
    let message = MessageView::parse(message).unwrap();
    let field = FieldList::parse(message.payload()).unwrap().find(fid).unwrap().unwrap();
    field.data.len() as u64 ^ u64::from(field.data.first().copied().unwrap_or(0))
}

fn main() {
    let mut bench = Bench::new("field_list");
    let dictionary = dictionary();
    for count in SIZES {
        for (input, messages) in [("same", 1), ("varied", VARIED)] {
            let mut random = Random(0x9E37_79B9_7F4A_7C15);
            let values: Vec<Fields> = (0..messages).map(|_| fields(count, &mut random)).collect();
            let encoded: Vec<Vec<u8>> = values
                .iter()
                .map(|fields| {
                    let mut out = vec![0; 4_096];
                    let len = encode(fields, &mut out).unwrap();
                    out.truncate(len);
                    out
                })
                .collect();
            let bytes = encoded.iter().map(Vec::len).sum::<usize>() as f64 / messages as f64;
            let pick = |place: usize| place & (messages - 1);
            let last = fid_of(count - 1);
            bench.add(("walk", count, input), bytes, |place| walk(&encoded[pick(place)]));
            bench.add(("decode", count, input), bytes, |place| decode(&encoded[pick(place)], &dictionary));
            bench.add(("find", count, input), bytes, |place| find(&encoded[pick(place)], last));
            let mut out = vec![0; 4_096];
            bench.add(("encode", count, input), bytes, |place| {
                let len = encode(black_box(&values[pick(place)]), &mut out).unwrap();
                len as u64 ^ u64::from(black_box(&out)[len - 1])
            });
        }
    }
    let mut out = vec![0; 256];
    let len = encode_quote(1, &mut out).unwrap();
    bench.add(("quote", 5, "varied"), len as f64, |place| {
        let len = encode_quote(black_box(place), &mut out).unwrap();
        len as u64 ^ u64::from(black_box(&out)[len - 1])
    });
    bench.print();
}

//! How fast whole messages of other shapes than price updates are written and read: million messages a second on one
//! core, with their header.
//!
//! ```text
//! cargo bench -p tapeline-omm --bench messages -- [--core N] [--seconds S] [--repeats N] [--json]
//!     [--case WHAT/FIELDS/INPUT] [--rounds N]
//! ```
//!
//! | input | is |
//! |---|---|
//! | `every` | 16 fields, one of each primitive type |
//! | `orders` | market by order: a map of eight orders of six fields each |
//!
//! `decode` reads header, keys and every value by the type that the dictionary gives it, `encode` writes them. The
//! harness says what the options and the figures are.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

mod harness;

use std::fmt::Write as _;
use std::hint::black_box;

use harness::{Bench, VARIED};
use tapeline_omm::rwf::{
    Array, DataType, Domain, Map, MapAction, MapEncoder, MapHead, MessageView, Rmtes, UpdateType,
    update_header,
};
use tapeline_omm::{
    DateTime, Dictionary, Fid, FieldList, FieldListEncoder, Full, Qos, Real, Refused, State, Time, Value, fid,
};

fn main() {
    let mut bench = Bench::new("messages");
    every_primitive(&mut bench);
    orders(&mut bench);
    bench.print();
}

/// Folds a value into a number that depends on it.
fn fold(value: &Value<'_>) -> u64 {
    match *value {
        Value::Int(value) => value as u64,
        Value::Float(value) => u64::from(value.to_bits()),
        Value::Double(value) => value.to_bits(),
        Value::DateTime(value) => fold(&Value::Date(value.date)) ^ fold(&Value::Time(value.time)),
        Value::Qos(qos) => u64::from(qos.timeliness.0) ^ u64::from(qos.rate.0) << 8,
        Value::State(state) => {
            u64::from(state.stream.0) ^ u64::from(state.code.0) << 8 ^ state.text.len() as u64
        }
        Value::Array(array) => {
            array.values().fold(0, |sum, item| sum ^ item.map_or(0, |item| fold(&item)).wrapping_mul(31))
        }
        Value::Buffer(bytes) | Value::Ascii(bytes) | Value::Utf8(bytes) => bytes.len() as u64,
        Value::UInt(value) => value,
        Value::Real(value) => value.mantissa as u64 ^ u64::from(value.hint.0),
        Value::Enum(value) => u64::from(value),
        Value::Time(value) => value.ns_of_day().unwrap_or(1),
        Value::Date(date) => u64::from(date.day) ^ u64::from(date.month) << 8 ^ u64::from(date.year) << 16,
        Value::Rmtes(text) => text.0.len() as u64,
        _ => 1,
    }
}

fn fields_of(list: &[u8], dictionary: &Dictionary, sum: u64) -> u64 {
    let fields = FieldList::parse(list).unwrap();
    fields.iter().map(Result::unwrap).fold(sum, |sum, field| {
        let data_type = dictionary.data_type(field.fid).unwrap();
        sum.wrapping_mul(31).wrapping_add(fold(&field.value(data_type).unwrap()))
    })
}

#[inline(never)]
fn decode(message: &[u8], dictionary: &Dictionary) -> u64 {
    let message = MessageView::parse(message).unwrap();
    fields_of(message.payload(), dictionary, message.stream_id() as u64)
}

#[inline(never)]
fn encode(fields: &[(Fid, Value<'_>)], out: &mut [u8]) -> Result<usize, Full> {
    let header = update_header(out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST)?;
    let mut list = FieldListEncoder::new(&mut out[header..])?;
    fields.iter().try_for_each(|(fid, value)| list.value(*fid, value))?;
    Ok(header + list.finish())
}

/// One field of each primitive type.
fn every_primitive(bench: &mut Bench) {
    // Three UINTs of two bytes.
    let array = Array::decode(&[4, 2, 0, 3, 0, 1, 0, 2, 0, 3]).unwrap().unwrap();
    let now = DateTime::from_unix_ns(1_795_000_000_123_456_789);
    let values = [
        Value::Int(-1_234_567),
        Value::UInt(89),
        Value::Float(1.5),
        Value::Double(-2.25),
        Value::Real(Real::decimal(1_234_500, 4)),
        Value::Date(now.date),
        Value::Time(now.time),
        Value::DateTime(now),
        Value::Qos(Qos::REALTIME_TICK),
        Value::State(State { text: b"All is well", ..State::OPEN_OK }),
        Value::Enum(843),
        Value::Array(array),
        Value::Buffer(&[0x55; 24]),
        Value::Ascii(b"AAPL.O"),
        Value::Utf8("Nestl\u{E9}".as_bytes()),
        Value::Rmtes(Rmtes(b"APPLE INC")),
    ];
    let fields: Vec<_> = (1..).map(Fid).zip(values).collect();
    let mut text = String::new();
    for (fid, value) in &fields {
        let name = value.data_type().unwrap().name().unwrap();
        writeln!(text, "F{fid} \"F {fid}\" {fid} NULL NONE 8 {name} 8").unwrap();
    }
    let dictionary = Dictionary::parse(&text).unwrap();
    let mut out = vec![0; 1_024];
    let len = encode(&fields, &mut out).unwrap();
    let message = out[..len].to_vec();
    let bytes = len as f64;
    bench.add(("decode", 16, "every"), bytes, |_| decode(black_box(&message), &dictionary));
    bench.add(("encode", 16, "every"), bytes, |_| {
        let len = encode(black_box(&fields), &mut out).unwrap();
        len as u64 ^ u64::from(black_box(&out)[len - 1])
    });
}

/// Eight orders, as a book's updates have them.
const ORDERS: usize = 8;

fn encode_orders(place: usize, out: &mut [u8]) -> Result<usize, Refused> {
    let header = update_header(out, Domain::MARKET_BY_ORDER, 5, UpdateType::QUOTE, DataType::MAP)?;
    let head =
        MapHead { key_fid: Some(fid::ORDER_ID), ..MapHead::new(DataType::BUFFER, DataType::FIELD_LIST) };
    let mut map = MapEncoder::new(&mut out[header..], &head)?;
    for order in 0..ORDERS as i64 {
        let key = (place as u64 * 7_919 + order as u64).to_be_bytes();
        map.entry_in_place(MapAction::ADD, &key, None, |room| {
            let mut list = FieldListEncoder::new(room)?;
            list.real(fid::ORDER_PRC, Real::decimal(1_000_000 + order * 37, 4))?;
            list.enumeration(fid::ORDER_SIDE, (order % 2 + 1) as u16)?;
            list.real(fid::ORDER_SIZE, Real::integer(100 * order + place as i64))?;
            list.time(fid::QUOTIM_NS, Time::from_ns_of_day(36_000_000_000_000 + place as u64 * 1_001))?;
            list.rmtes(fid::MMID, b"NSDQ")?;
            list.real(fid::ACVOL_1, Real::integer(place as i64 * 113))?;
            Ok(list.finish())
        })?;
    }
    Ok(header + map.finish())
}

#[inline(never)]
fn decode_orders(message: &[u8], dictionary: &Dictionary) -> u64 {
    let message = MessageView::parse(message).unwrap();
    let mut sum = message.stream_id() as u64;
    for entry in Map::parse(message.payload()).unwrap() {
        let entry = entry.unwrap();
        sum = sum.wrapping_mul(31) ^ u64::from(entry.action.0) ^ entry.key.len() as u64;
        sum = fields_of(entry.data, dictionary, sum);
    }
    sum
}

fn orders(bench: &mut Bench) {
    let mut out = vec![0; 4_096];
    let messages: Vec<_> = (0..VARIED)
        .map(|place| {
            let len = encode_orders(place, &mut out).unwrap();
            out[..len].to_vec()
        })
        .collect();
    let bytes = messages.iter().map(Vec::len).sum::<usize>() as f64 / VARIED as f64;
    let dictionary = Dictionary::builtin();
    let case = |what| (what, 6 * ORDERS, "orders");
    bench.add(case("decode"), bytes, |place| decode_orders(&messages[place & (VARIED - 1)], dictionary));
    bench.add(case("encode"), bytes, |place| {
        let len = encode_orders(black_box(place & (VARIED - 1)), &mut out).unwrap();
        len as u64 ^ u64::from(black_box(&out)[len - 1])
    });
}

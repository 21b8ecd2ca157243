//! Our side: the same tasks as the other program's, by the calls that an application makes.

use std::hint::black_box;

use anyhow::{Context, bail, ensure};
use tapeline_measure::{Clock, ticks};
use tapeline_omm::rwf::{DataType, Domain, MessageView, UpdateType, update_header};
use tapeline_omm::{Dictionary, Fid, FieldList, FieldListEncoder, Malformed, Value};

use crate::messages::Messages;

/// Messages between two readings of the clock.
const BATCH: usize = 10_000;

pub(crate) struct Ours<'a> {
    fields: &'a [(Fid, Value<'static>)],
    dictionary: &'a Dictionary,
    message: Vec<u8>,
    out: Vec<u8>,
}

impl<'a> Ours<'a> {
    pub(crate) fn new(messages: &'a Messages, count: usize) -> anyhow::Result<Self> {
        let fields = messages.of(count)?;
        let mut out = vec![0; 4_096];
        let len = encode(fields, &mut out).context("encoding")?;
        let ours = Self { fields, dictionary: &messages.dictionary, message: out[..len].to_vec(), out };
        ours.check()?;
        Ok(ours)
    }

    /// What is read is what was written.
    fn check(&self) -> anyhow::Result<()> {
        let message = MessageView::parse(&self.message)?;
        let list = FieldList::parse(message.payload())?;
        ensure!(list.len() == self.fields.len());
        for (field, (fid, value)) in list.iter().zip(self.fields) {
            let field = field?;
            ensure!(field.fid == *fid && self.dictionary.data_type(*fid).is_some(), "field {fid}");
            let data_type = value.data_type().unwrap_or(DataType::BUFFER);
            ensure!(field.value(data_type)? == *value, "field {fid}");
        }
        Ok(())
    }

    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }

    pub(crate) fn bytes(&self) -> usize {
        self.message.len()
    }

    /// Million messages a second.
    pub(crate) fn rate(&mut self, task: &str, seconds: f64, clock: &Clock) -> anyhow::Result<f64> {
        let limit_ns = (seconds * 1e9) as i64;
        let (start, mut done) = (ticks(), 0_usize);
        loop {
            self.work(task, BATCH)?;
            done += BATCH;
            let spent_ns = clock.ns_between(start, ticks());
            if spent_ns >= limit_ns {
                return Ok(done as f64 * 1e3 / spent_ns as f64);
            }
        }
    }

    fn work(&mut self, task: &str, times: usize) -> anyhow::Result<()> {
        let message = &self.message[..];
        let mut sum = 0.0;
        for _ in 0..times {
            match task {
                "walk" => walk(black_box(message), &mut sum)?,
                "decode" => decode::<false>(black_box(message), self.dictionary, &mut sum)?,
                "convert" => decode::<true>(black_box(message), self.dictionary, &mut sum)?,
                "find" => {
                    let last = self.fields.last().context("no fields")?.0;
                    find(black_box(message), last, &mut sum)?;
                }
                "encode" => {
                    let len = encode(black_box(self.fields), &mut self.out)?;
                    sum += len as f64;
                    black_box(&self.out);
                }
                other => bail!("{other} is not a task"),
            }
        }
        black_box(sum);
        Ok(())
    }
}

/// One task so many times.
pub(crate) fn count(messages: &Messages, case: &str, times: usize) -> anyhow::Result<()> {
    let (task, fields) = case.split_once('/').context("--count TASK/FIELDS TIMES")?;
    Ours::new(messages, fields.parse()?)?.work(task, times)
}

#[inline(never)]
fn encode(fields: &[(Fid, Value<'_>)], out: &mut [u8]) -> Result<usize, tapeline_omm::Full> {
    let header = update_header(out, Domain::MARKET_PRICE, 5, UpdateType::UNSPECIFIED, DataType::FIELD_LIST)?;
    let mut list = FieldListEncoder::new(&mut out[header..])?;
    for (fid, value) in fields {
        list.value(*fid, value)?;
    }
    Ok(header + list.finish())
}

#[inline(never)]
fn walk(message: &[u8], sum: &mut f64) -> Result<(), Malformed> {
    let message = MessageView::parse(message)?;
    for field in FieldList::parse(message.payload())?.iter() {
        *sum += f64::from(field?.fid.0);
    }
    Ok(())
}

#[inline(never)]
fn find(message: &[u8], fid: Fid, sum: &mut f64) -> Result<(), Malformed> {
    let message = MessageView::parse(message)?;
    if let Some(field) = FieldList::parse(message.payload())?.find(fid)? {
        *sum += field.data.len() as f64;
    }
    Ok(())
}

/// The type of each field from the dictionary, and each value; sums what the other program sums of it. To convert is to
/// take REALs as floating point numbers, ENUMs as their texts and TIMEs as microseconds.
#[inline(never)]
fn decode<const CONVERT: bool>(
    message: &[u8],
    dictionary: &Dictionary,
    sum: &mut f64,
) -> Result<(), Malformed> {
    let message = MessageView::parse(message)?;
    for field in FieldList::parse(message.payload())?.iter() {
        let field = field?;
        let data_type = dictionary.data_type(field.fid).ok_or(Malformed::new(0, "field without a type"))?;
        match field.value(data_type)? {
            Value::Int(value) => *sum += value as f64,
            Value::UInt(value) => *sum += value as f64,
            Value::Real(value) if CONVERT => *sum += value.to_f64(),
            Value::Real(value) => *sum += value.mantissa as f64,
            Value::Enum(value) if CONVERT => {
                *sum += dictionary.display(field.fid, value).map_or(0, str::len) as f64;
            }
            Value::Enum(value) => *sum += f64::from(value),
            Value::Date(date) => *sum += f64::from(date.day),
            Value::Time(time) if CONVERT => *sum += time.ns_of_day().unwrap_or(0) as f64 / 1e3,
            Value::Time(time) => *sum += f64::from(time.second),
            Value::Rmtes(text) => *sum += text.0.len() as f64,
            Value::Ascii(bytes) | Value::Utf8(bytes) | Value::Buffer(bytes) => *sum += bytes.len() as f64,
            _ => {}
        }
    }
    Ok(())
}

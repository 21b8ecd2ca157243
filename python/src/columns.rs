//! Columns of a table: ticks and OMM messages become rows of an Arrow record batch.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Float64Type, Int8Type, Int32Type, Int64Type, Time64NanosecondType,
    TimestampNanosecondType, UInt16Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int8Array, Int32Array, PrimitiveArray, RecordBatch,
    StringArray,
};
use arrow_buffer::{ArrowNativeType, BooleanBufferBuilder, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use foldhash::fast::RandomState;
use tapeline_nanos::Nanos;
use tapeline_omm::rwf::{self, Container, MapAction, MessageView, Value};
use tapeline_omm::{Dictionary, Fid, FieldList};

use crate::error::Error;

/// The most bytes of text in a column of one batch: Arrow's offsets have 32 bits.
const MOST_TEXT: usize = 1 << 30;

/// What a row says beside its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowHead<'a> {
    /// The tick's sequence; 0 if there is none.
    pub(crate) sequence: u64,
    /// The item's name.
    pub(crate) item: &'a str,
    /// A number of the item that is usually the same for the same name: names are found by it without hashing.
    pub(crate) number: u32,
    pub(crate) service: u16,
    pub(crate) kind: &'static str,
    /// Times, ns since 1970 UTC; 0 if there is none.
    pub(crate) event_time: Nanos,
    pub(crate) received_time: Nanos,
    pub(crate) published_time: Nanos,
    pub(crate) state: &'static str,
    pub(crate) text: Option<&'a str>,
    pub(crate) suspect: bool,
    /// How many sequences are missing before this row.
    pub(crate) missing: u64,
}

/// What a column shows that is not a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Sequence,
    Item,
    Service,
    Kind,
    EventTime,
    ReceivedTime,
    PublishedTime,
    State,
    Text,
    Suspect,
    Missing,
    Action,
    Key,
    Body,
}

impl Fact {
    const NAMED: [(&'static str, Self); 14] = [
        ("sequence", Self::Sequence),
        ("item", Self::Item),
        ("service", Self::Service),
        ("kind", Self::Kind),
        ("event_time", Self::EventTime),
        ("received_time", Self::ReceivedTime),
        ("published_time", Self::PublishedTime),
        ("state", Self::State),
        ("text", Self::Text),
        ("suspect", Self::Suspect),
        ("missing", Self::Missing),
        ("action", Self::Action),
        ("key", Self::Key),
        ("body", Self::Body),
    ];
}

/// The columns of ticks, unless others are asked for.
pub(crate) const TICK_COLUMNS: [&str; 14] = [
    "sequence",
    "item",
    "kind",
    "event_time",
    "received_time",
    "published_time",
    "state",
    "suspect",
    "BID",
    "BIDSIZE",
    "ASK",
    "ASKSIZE",
    "TRDPRC_1",
    "TRDVOL_1",
];

/// The columns of a consumer's messages, unless others are asked for.
pub(crate) const MESSAGE_COLUMNS: [&str; 11] = [
    "item",
    "kind",
    "received_time",
    "state",
    "text",
    "BID",
    "BIDSIZE",
    "ASK",
    "ASKSIZE",
    "TRDPRC_1",
    "TRDVOL_1",
];

/// Values of a fixed size, and which of them are there.
#[derive(Debug)]
struct Cells<T> {
    values: Vec<T>,
    present: BooleanBufferBuilder,
    absent: usize,
}

impl<T: ArrowNativeType> Cells<T> {
    fn new() -> Self {
        Self { values: Vec::new(), present: BooleanBufferBuilder::new(0), absent: 0 }
    }

    #[inline]
    fn push(&mut self, value: Option<T>) {
        self.values.push(value.unwrap_or_default());
        self.present.append(value.is_some());
        self.absent += usize::from(value.is_none());
    }

    fn drop_last(&mut self) {
        let last = self.values.len().saturating_sub(1);
        self.absent -= usize::from(self.present.len() > last && !self.present.get_bit(last));
        self.values.truncate(last);
        self.present.truncate(last);
    }

    fn nulls(&mut self) -> Option<NullBuffer> {
        let present = self.present.finish();
        let has_nulls = std::mem::take(&mut self.absent) > 0;
        has_nulls.then(|| NullBuffer::new(present))
    }

    /// Takes the values out as an array of this type.
    fn take<A: ArrowPrimitiveType<Native = T>>(&mut self) -> PrimitiveArray<A> {
        let next = Vec::with_capacity(self.values.len());
        let values = std::mem::replace(&mut self.values, next);
        PrimitiveArray::new(ScalarBuffer::from(values), self.nulls())
    }
}

/// Texts or bytes.
#[derive(Debug)]
struct Bytes {
    bytes: Vec<u8>,
    ends: Vec<i32>,
    present: BooleanBufferBuilder,
    absent: usize,
}

impl Bytes {
    fn new() -> Self {
        Self { bytes: Vec::new(), ends: vec![0], present: BooleanBufferBuilder::new(0), absent: 0 }
    }

    fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        // `Columns::is_full` keeps the bytes of a batch far below 2 GiB.
        self.ends.push(self.bytes.len() as i32);
        self.present.append(value.is_some());
        self.absent += usize::from(value.is_none());
    }

    fn drop_last(&mut self) {
        let last = self.ends.len().saturating_sub(2);
        self.absent -= usize::from(self.present.len() > last && !self.present.get_bit(last));
        self.ends.truncate(last + 1);
        self.bytes.truncate(self.ends[last] as usize);
        self.present.truncate(last);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<NullBuffer>) {
        let next = Vec::with_capacity(self.ends.len());
        let ends = std::mem::replace(&mut self.ends, next);
        self.ends.push(0);
        let next = Vec::with_capacity(self.bytes.len());
        let bytes = Buffer::from_vec(std::mem::replace(&mut self.bytes, next));
        let present = self.present.finish();
        let has_nulls = std::mem::take(&mut self.absent) > 0;
        (OffsetBuffer::new(ScalarBuffer::from(ends)), bytes, has_nulls.then(|| NullBuffer::new(present)))
    }

    fn text(&mut self) -> ArrayRef {
        let (ends, bytes, nulls) = self.take();
        Arc::new(StringArray::new(ends, bytes, nulls))
    }
}

/// Words of the program, such as the kinds of ticks.
#[derive(Debug)]
struct Words {
    keys: Vec<i8>,
    words: Vec<&'static str>,
    array: Option<ArrayRef>,
}

impl Words {
    fn new() -> Self {
        Self { keys: Vec::new(), words: Vec::new(), array: None }
    }

    fn push(&mut self, word: &'static str) {
        // There are a handful of words: those of a state or of a kind.
        let known = self.words.iter().position(|known| std::ptr::eq(*known, word) || *known == word);
        let key = known.unwrap_or_else(|| {
            self.words.push(word);
            self.array = None;
            self.words.len() - 1
        });
        self.keys.push(key as i8);
    }

    fn take(&mut self) -> ArrayRef {
        let words = &self.words;
        let array = self.array.get_or_insert_with(|| Arc::new(StringArray::from_iter_values(words)));
        let next = Vec::with_capacity(self.keys.len());
        let keys = Int8Array::from(std::mem::replace(&mut self.keys, next));
        Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::clone(array)))
    }
}

/// The names of items: a dictionary that all batches share, and that grows with new names.
#[derive(Debug)]
struct Names {
    keys: Vec<i32>,
    names: Bytes,
    known: HashMap<Box<str>, i32, RandomState>,
    /// By the low bits of an item's number: the key of the name that was last seen with it, plus one.
    recent: Box<[i32]>,
    array: Option<ArrayRef>,
}

const RECENT: usize = 1 << 16;

impl Names {
    fn new() -> Self {
        Self {
            keys: Vec::new(),
            names: Bytes::new(),
            known: HashMap::default(),
            recent: vec![0; RECENT].into(),
            array: None,
        }
    }

    fn name(&self, key: usize) -> &[u8] {
        let ends = &self.names.ends;
        let (from, to) = (ends[key] as usize, ends[key + 1] as usize);
        &self.names.bytes[from..to]
    }

    #[inline]
    fn push(&mut self, number: u32, name: &str) {
        let slot = number as usize % RECENT;
        let recent = self.recent[slot];
        if recent > 0 && self.name(recent as usize - 1) == name.as_bytes() {
            self.keys.push(recent - 1);
            return;
        }
        let key = match self.known.get(name) {
            Some(key) => *key,
            None => {
                let key = self.known.len() as i32;
                self.known.insert(name.into(), key);
                self.names.push(Some(name.as_bytes()));
                self.array = None;
                key
            }
        };
        self.recent[slot] = key + 1;
        self.keys.push(key);
    }

    fn take(&mut self) -> ArrayRef {
        let names = &self.names;
        let array = self.array.get_or_insert_with(|| {
            let ends = OffsetBuffer::new(ScalarBuffer::from(names.ends.clone()));
            Arc::new(StringArray::new(ends, Buffer::from_slice_ref(&names.bytes), None))
        });
        let next = Vec::with_capacity(self.keys.len());
        let keys = Int32Array::from(std::mem::replace(&mut self.keys, next));
        Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(array)))
    }
}

#[derive(Debug)]
enum FactCells {
    Whole(Cells<u64>),
    Short(Cells<u16>),
    Time(Cells<i64>),
    Flag(BooleanBufferBuilder),
    Words(Words),
    Names(Names),
    Text(Bytes),
    Binary(Bytes),
}

impl FactCells {
    fn of(fact: Fact) -> Self {
        match fact {
            Fact::Sequence | Fact::Missing => Self::Whole(Cells::new()),
            Fact::Service => Self::Short(Cells::new()),
            Fact::EventTime | Fact::ReceivedTime | Fact::PublishedTime => Self::Time(Cells::new()),
            Fact::Suspect => Self::Flag(BooleanBufferBuilder::new(0)),
            Fact::Kind | Fact::State => Self::Words(Words::new()),
            Fact::Item => Self::Names(Names::new()),
            Fact::Text | Fact::Key => Self::Text(Bytes::new()),
            Fact::Action => Self::Text(Bytes::new()),
            Fact::Body => Self::Binary(Bytes::new()),
        }
    }

    fn data_type(&self) -> DataType {
        let dictionary = |keys| DataType::Dictionary(Box::new(keys), Box::new(DataType::Utf8));
        match self {
            Self::Whole(_) => DataType::UInt64,
            Self::Short(_) => DataType::UInt16,
            Self::Time(_) => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            Self::Flag(_) => DataType::Boolean,
            Self::Words(_) => dictionary(DataType::Int8),
            Self::Names(_) => dictionary(DataType::Int32),
            Self::Text(_) => DataType::Utf8,
            Self::Binary(_) => DataType::Binary,
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Whole(cells) => Arc::new(cells.take::<UInt64Type>()),
            Self::Short(cells) => Arc::new(cells.take::<UInt16Type>()),
            Self::Time(cells) => Arc::new(cells.take::<TimestampNanosecondType>().with_timezone("UTC")),
            Self::Flag(flags) => Arc::new(BooleanArray::new(flags.finish(), None)),
            Self::Words(words) => words.take(),
            Self::Names(names) => names.take(),
            Self::Text(texts) => texts.text(),
            Self::Binary(bytes) => {
                let (ends, bytes, nulls) = bytes.take();
                Arc::new(BinaryArray::new(ends, bytes, nulls))
            }
        }
    }
}

/// The cells of a field, by the type that the dictionary gives it.
#[derive(Debug)]
enum FieldCells {
    Number(Cells<f64>),
    Int(Cells<i64>),
    UInt(Cells<u64>),
    Day(Cells<i32>),
    TimeOfDay(Cells<i64>),
    /// Texts, the display text of an enumeration, and every other type as readable text.
    Text(Bytes),
}

impl FieldCells {
    fn of(data_type: rwf::DataType) -> Self {
        match data_type {
            rwf::DataType::REAL | rwf::DataType::DOUBLE | rwf::DataType::FLOAT => Self::Number(Cells::new()),
            rwf::DataType::INT => Self::Int(Cells::new()),
            rwf::DataType::UINT => Self::UInt(Cells::new()),
            rwf::DataType::DATE => Self::Day(Cells::new()),
            rwf::DataType::TIME => Self::TimeOfDay(Cells::new()),
            _ => Self::Text(Bytes::new()),
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Number(_) => DataType::Float64,
            Self::Int(_) => DataType::Int64,
            Self::UInt(_) => DataType::UInt64,
            Self::Day(_) => DataType::Date32,
            Self::TimeOfDay(_) => DataType::Time64(TimeUnit::Nanosecond),
            Self::Text(_) => DataType::Utf8,
        }
    }

    /// Adds nothing: the message does not have the field.
    #[inline]
    fn push_absent(&mut self) {
        match self {
            Self::Number(cells) => cells.push(None),
            Self::Int(cells) | Self::TimeOfDay(cells) => cells.push(None),
            Self::UInt(cells) => cells.push(None),
            Self::Day(cells) => cells.push(None),
            Self::Text(texts) => texts.push(None),
        }
    }

    /// Adds a blank value: not a number, or an empty text, which unlike null say that the field was made blank. Other types
    /// have no such value.
    fn push_blank(&mut self) {
        match self {
            Self::Number(cells) => cells.push(Some(f64::NAN)),
            Self::Text(texts) => texts.push(Some(&[])),
            _ => self.push_absent(),
        }
    }

    /// Adds a value. It was decoded as the column's type.
    #[inline]
    fn push(&mut self, value: Value<'_>, fid: Fid, dictionary: &Dictionary, text: &mut String) {
        match (self, value) {
            (Self::Number(cells), value) => cells.push(match value {
                Value::Real(real) => Some(real.to_f64()),
                Value::Double(number) => Some(number),
                Value::Float(number) => Some(f64::from(number)),
                _ => None,
            }),
            (Self::Int(cells), Value::Int(number)) => cells.push(Some(number)),
            (Self::Int(cells), _) => cells.push(None),
            (Self::UInt(cells), Value::UInt(number)) => cells.push(Some(number)),
            (Self::UInt(cells), _) => cells.push(None),
            (Self::Day(cells), Value::Date(date)) => cells.push(unix_day(date)),
            (Self::Day(cells), _) => cells.push(None),
            // The ns of a day have 47 bits.
            (Self::TimeOfDay(cells), Value::Time(time)) => cells.push(time.ns_of_day().map(u64::cast_signed)),
            (Self::TimeOfDay(cells), _) => cells.push(None),
            (Self::Text(texts), value) => {
                text.clear();
                match value {
                    Value::Enum(number) => match dictionary.display(fid, number) {
                        Some(display) => text.push_str(display.trim_end()),
                        None => write_to(text, &number),
                    },
                    other => write_to(text, &other),
                }
                texts.push(Some(text.as_bytes()));
            }
        }
    }

    /// Removes the value that was added last.
    fn drop_last(&mut self) {
        match self {
            Self::Number(cells) => cells.drop_last(),
            Self::Int(cells) | Self::TimeOfDay(cells) => cells.drop_last(),
            Self::UInt(cells) => cells.drop_last(),
            Self::Day(cells) => cells.drop_last(),
            Self::Text(texts) => texts.drop_last(),
        }
    }

    fn take(&mut self) -> ArrayRef {
        match self {
            Self::Number(cells) => Arc::new(cells.take::<Float64Type>()),
            Self::Int(cells) => Arc::new(cells.take::<Int64Type>()),
            Self::UInt(cells) => Arc::new(cells.take::<UInt64Type>()),
            Self::Day(cells) => Arc::new(cells.take::<Date32Type>()),
            Self::TimeOfDay(cells) => Arc::new(cells.take::<Time64NanosecondType>()),
            Self::Text(texts) => texts.text(),
        }
    }
}

fn write_to(text: &mut String, shown: &impl std::fmt::Display) {
    use std::fmt::Write;
    // Writing to a string does not fail.
    let _ = write!(text, "{shown}");
}

/// Days since 1970-01-01; `None` if a part of the date is unknown or there is no such day.
fn unix_day(date: rwf::Date) -> Option<i32> {
    if date.year == 0 || !(1..=12).contains(&date.month) || !(1..=31).contains(&date.day) {
        return None;
    }
    // Years begin in March here, so that a leap day is the last of its year.
    let (year, month) = (i32::from(date.year), i32::from(date.month));
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i32::from(date.day) - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[derive(Debug)]
struct FieldColumn {
    fid: Fid,
    data_type: rwf::DataType,
    cells: FieldCells,
    /// The row, counted from 1, that was filled last.
    filled: usize,
}

/// Gathers rows, and makes record batches of them.
#[derive(Debug)]
pub(crate) struct Columns {
    schema: SchemaRef,
    facts: Vec<(Fact, FactCells)>,
    fields: Vec<FieldColumn>,
    /// The order of the columns: facts first in their own order, and fields behind them by their index.
    order: Vec<usize>,
    /// The column of each field id, plus one; 0 if it has none.
    by_fid: Box<[u8]>,
    rows: usize,
    /// Bytes of texts and bodies in the batch, about.
    bytes: usize,
    dictionary: Arc<Dictionary>,
    /// A blank value is null: rows say what is, not what changed.
    blank_is_null: bool,
    text: String,
}

/// Where an entry of a map is shown.
struct Entry<'a> {
    action: &'static str,
    key: &'a str,
}

impl Columns {
    /// Creates columns by their names: facts such as `sequence`, and fields of the dictionary such as `BID`.
    ///
    /// # Errors
    /// There is no column of this name, or it is named twice.
    pub(crate) fn new(names: &[String], dictionary: Arc<Dictionary>) -> Result<Self, Error> {
        let (mut facts, mut fields, mut order, mut columns) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut by_fid = vec![0; 1 << 16].into_boxed_slice();
        for (at, name) in names.iter().enumerate() {
            if names[..at].contains(name) {
                return Err(Error::argument(
                    format!("the column {name:?} is named twice"),
                    "name each column once",
                ));
            }
            if let Some((_, fact)) = Fact::NAMED.iter().find(|(known, _)| known == name) {
                let cells = FactCells::of(*fact);
                let nullable = !matches!(fact, Fact::Sequence | Fact::Item | Fact::Kind | Fact::Suspect);
                columns.push(Field::new(name, cells.data_type(), nullable));
                order.push(facts.len());
                facts.push((*fact, cells));
            } else if let Some(field) = dictionary.field_named(name) {
                if fields.len() == usize::from(u8::MAX) {
                    return Err(Error::argument(
                        "there are more than 255 fields".to_owned(),
                        "ask for fewer fields",
                    ));
                }
                let cells = FieldCells::of(field.data_type);
                columns.push(Field::new(name, cells.data_type(), true));
                // Behind all facts, whose number is not known yet.
                order.push(usize::MAX - fields.len());
                fields.push(FieldColumn { fid: field.fid, data_type: field.data_type, cells, filled: 0 });
                by_fid[usize::from(field.fid.0.cast_unsigned())] = fields.len() as u8;
            } else {
                return Err(unknown(name, &dictionary));
            }
        }
        for place in &mut order {
            if *place > usize::MAX / 2 {
                *place = facts.len() + (usize::MAX - *place);
            }
        }
        let schema = Arc::new(Schema::new(columns));
        Ok(Self {
            schema,
            facts,
            fields,
            order,
            by_fid,
            rows: 0,
            bytes: 0,
            dictionary,
            blank_is_null: false,
            text: String::new(),
        })
    }

    /// Shows blank values as null, for rows that say what is.
    pub(crate) fn with_blank_as_null(self) -> Self {
        Self { blank_is_null: true, ..self }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    pub(crate) const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns `true` if the batch has no capacity for another message.
    pub(crate) const fn is_full(&self, most_rows: usize) -> bool {
        self.rows >= most_rows || self.bytes >= MOST_TEXT
    }

    /// Adds the rows of a message: one, or one for each entry of a map such as MarketByOrder.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub(crate) fn add(&mut self, head: &RowHead<'_>, body: &[u8]) -> Result<(), String> {
        if self.fields.is_empty()
            && !self.facts.iter().any(|(fact, _)| matches!(fact, Fact::Action | Fact::Key))
        {
            self.facts_of(head, None, body);
            return Ok(());
        }
        let message = MessageView::parse(body).map_err(|fault| fault.to_string())?;
        self.add_opened(head, &message, body)
    }

    /// Adds the rows of a message that was parsed already. The column `body` is empty.
    ///
    /// # Errors
    /// What is wrong with the message.
    pub(crate) fn add_message(
        &mut self,
        head: &RowHead<'_>,
        message: &MessageView<'_>,
    ) -> Result<(), String> {
        self.add_opened(head, message, &[])
    }

    /// Adds a row with the fields of a list.
    ///
    /// # Errors
    /// What is wrong with the list.
    pub(crate) fn add_list(&mut self, head: &RowHead<'_>, list: &FieldList<'_>) -> Result<(), String> {
        self.facts_of(head, None, &[]);
        self.fields_of(list)
    }

    fn add_opened(
        &mut self,
        head: &RowHead<'_>,
        message: &MessageView<'_>,
        body: &[u8],
    ) -> Result<(), String> {
        match message.open().map_err(|fault| fault.to_string())? {
            Container::FieldList(list) => {
                self.facts_of(head, None, body);
                self.fields_of(&list)
            }
            Container::Map(map) if map.head().container == rwf::DataType::FIELD_LIST => {
                self.map(head, &map, body).map_err(|fault| fault.to_string())?
            }
            _ => {
                self.facts_of(head, None, body);
                self.no_fields()
            }
        }
    }

    /// Adds a row without fields.
    pub(crate) fn add_without_fields(&mut self, head: &RowHead<'_>) {
        self.facts_of(head, None, &[]);
        let _ = self.no_fields();
    }

    fn map(
        &mut self,
        head: &RowHead<'_>,
        map: &rwf::Map<'_>,
        body: &[u8],
    ) -> Result<Result<(), String>, tapeline_omm::Malformed> {
        let sets = map.sets()?;
        let mut rows = 0;
        let mut key = String::new();
        for entry in map.iter() {
            let entry = entry?;
            key.clear();
            match entry.key_value(map.head().key_type)? {
                Value::Buffer(bytes) => key.push_str(&String::from_utf8_lossy(bytes)),
                other => write_to(&mut key, &other),
            }
            let action = match entry.action {
                MapAction::ADD => "add",
                MapAction::UPDATE => "update",
                MapAction::DELETE => "delete",
                _ => "other",
            };
            // A deleted entry has no data.
            let data = if entry.action == MapAction::DELETE { &[][..] } else { entry.data };
            let container = map.open(data, &sets)?;
            self.facts_of(head, Some(&Entry { action, key: &key }), body);
            rows += 1;
            let added = match container {
                Container::FieldList(list) => self.fields_of(&list),
                _ => self.no_fields(),
            };
            if self.bytes >= 2 * MOST_TEXT - (1 << 20) {
                return Ok(Err("the entries of one message have more text than a batch holds".to_owned()));
            }
            if added.is_err() {
                return Ok(added);
            }
        }
        if let Some(summary) = map.head().summary
            && let Container::FieldList(list) = map.open(summary, &sets)?
        {
            self.facts_of(head, Some(&Entry { action: "summary", key: "" }), body);
            return Ok(self.fields_of(&list));
        }
        if rows == 0 {
            // An empty book is news too.
            self.facts_of(head, None, body);
            return Ok(self.no_fields());
        }
        Ok(Ok(()))
    }

    fn facts_of(&mut self, head: &RowHead<'_>, entry: Option<&Entry<'_>>, body: &[u8]) {
        let time = |time: Nanos| (time.0 != 0).then_some(time.0.cast_signed());
        for (fact, cells) in &mut self.facts {
            match (fact, cells) {
                (Fact::Sequence, FactCells::Whole(cells)) => cells.push(Some(head.sequence)),
                (Fact::Missing, FactCells::Whole(cells)) => cells.push(Some(head.missing)),
                (Fact::Service, FactCells::Short(cells)) => cells.push(Some(head.service)),
                (Fact::EventTime, FactCells::Time(cells)) => cells.push(time(head.event_time)),
                (Fact::ReceivedTime, FactCells::Time(cells)) => cells.push(time(head.received_time)),
                (Fact::PublishedTime, FactCells::Time(cells)) => cells.push(time(head.published_time)),
                (Fact::Suspect, FactCells::Flag(flags)) => flags.append(head.suspect),
                (Fact::Kind, FactCells::Words(words)) => words.push(head.kind),
                (Fact::State, FactCells::Words(words)) => words.push(head.state),
                (Fact::Item, FactCells::Names(names)) => names.push(head.number, head.item),
                (Fact::Text, FactCells::Text(texts)) => {
                    self.bytes += head.text.map_or(0, str::len);
                    texts.push(head.text.map(str::as_bytes));
                }
                (Fact::Action, FactCells::Text(texts)) => {
                    texts.push(entry.map(|entry| entry.action.as_bytes()))
                }
                (Fact::Key, FactCells::Text(texts)) => {
                    self.bytes += entry.map_or(0, |entry| entry.key.len());
                    texts.push(entry.map(|entry| entry.key.as_bytes()));
                }
                (Fact::Body, FactCells::Binary(bytes)) => {
                    self.bytes += body.len();
                    bytes.push(Some(body));
                }
                // Cells are made for their fact.
                _ => {}
            }
        }
        self.rows += 1;
    }

    /// Adds the cells of a row from a list of fields. A field that is there twice has its last value.
    fn fields_of(&mut self, list: &FieldList<'_>) -> Result<(), String> {
        let Self { fields, by_fid, dictionary, text, bytes, rows, blank_is_null, .. } = self;
        let mut fault = None;
        for field in list.iter() {
            let field = match field {
                Ok(field) => field,
                Err(malformed) => {
                    fault = Some(malformed.to_string());
                    break;
                }
            };
            let column = usize::from(by_fid[usize::from(field.fid.0.cast_unsigned())]);
            let Some(column) = column.checked_sub(1).and_then(|at| fields.get_mut(at)) else { continue };
            if column.filled == *rows {
                column.cells.drop_last();
            }
            column.filled = *rows;
            *bytes += field.data.len();
            let value = field.value(column.data_type).unwrap_or_else(|malformed| {
                fault.get_or_insert_with(|| format!("field {}: {malformed}", field.fid.0));
                Value::Blank
            });
            match value {
                Value::Blank if *blank_is_null => column.cells.push_absent(),
                Value::Blank => column.cells.push_blank(),
                value => column.cells.push(value, column.fid, dictionary, text),
            }
        }
        for column in fields {
            if column.filled != *rows {
                column.filled = *rows;
                column.cells.push_absent();
            }
        }
        fault.map_or(Ok(()), Err)
    }

    fn no_fields(&mut self) -> Result<(), String> {
        self.fields_of(&FieldList::parse(&[]).map_err(|fault| fault.to_string())?)
    }

    /// Takes the rows as a batch; the next one begins.
    ///
    /// # Errors
    /// Arrow refuses the columns, which is a fault of this program.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, Error> {
        (self.rows, self.bytes) = (0, 0);
        self.fields.iter_mut().for_each(|column| column.filled = 0);
        let facts = self.facts.iter_mut().map(|(_, cells)| cells.take());
        let arrays: Vec<ArrayRef> =
            facts.chain(self.fields.iter_mut().map(|field| field.cells.take())).collect();
        let columns = self.order.iter().map(|at| Arc::clone(&arrays[*at])).collect();
        RecordBatch::try_new(self.schema(), columns).map_err(|error| Error::fault(error.to_string()))
    }
}

/// The error for a column that is not known, with the nearest name as advice.
pub(crate) fn unknown(name: &str, dictionary: &Dictionary) -> Error {
    let names = Fact::NAMED.iter().map(|(known, _)| *known);
    let upper = name.to_uppercase();
    let fields = dictionary.fields().map(|field| &*field.name);
    let near = if dictionary.field_named(&upper).is_some() {
        Some(upper.as_str())
    } else {
        tapeline_client::nearest(name, &names.chain(fields).collect::<Vec<_>>())
    };
    let hint = match near {
        Some(near) => format!("did you mean {near:?}?"),
        None => "fields have the names of the dictionary, such as BID; the others are sequence, item, kind …"
            .to_owned(),
    };
    Error::argument(format!("there is no column {name:?}"), &hint)
}

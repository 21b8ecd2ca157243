//! Converts ticks to rows.

use std::fmt::{Display, Write};

use tapeline_omm::rwf::{
    Container, DataType, Domain, FieldList, Header, Map, MapAction, MessageView, NamedValue, Value, flags,
};
use tapeline_omm::{Dictionary, Real, fid};
use tapeline_plant::RowKind;
use tapeline_plant::tick::{Flags, Tick};

use crate::Error;
use crate::batch::{Batch, Row};
use crate::best::{Best, Bests};
use crate::details::{AGGRESSORS, Auction, Broken, put, shown, word};
use crate::message::{Fault, double, ns_of_day, real};
use crate::table::Table;

/// The destination of rows.
pub trait Sink {
    /// Returns `true` if the sink takes rows of this table.
    fn wants(&self, table: Table) -> bool;

    /// Returns a batch of this table with space for another row. Write a full batch first.
    ///
    /// # Errors
    /// It cannot be written.
    fn batch(&mut self, table: Table) -> Result<&mut Batch, Error>;
}

/// Splits ticks into rows.
#[derive(Debug, Default)]
pub struct Rows {
    bests: Bests,
    /// The buffer for a value as text.
    text: String,
}

impl Rows {
    /// Adds the rows of a tick to the sink, in the order of [`Table::ALL`].
    ///
    /// # Errors
    /// The tick's message is malformed, a column cannot represent a number, or the sink fails. Rows of this tick that
    /// were already added are not removed.
    pub fn add(&mut self, tick: &Tick<'_>, to: &mut impl Sink) -> Result<(), Error> {
        self.take_apart(tick, to).map_err(|fault| fault.at(tick.header.seq.0))
    }

    /// Clears the quotes carried on, because ticks are missing at this point.
    pub fn forget(&mut self) {
        self.bests.forget_all();
    }

    fn take_apart(&mut self, tick: &Tick<'_>, to: &mut impl Sink) -> Result<(), Fault> {
        let message = MessageView::parse(tick.body)?;
        let header = message.header()?;
        if to.wants(Table::Ticks) {
            tick_row(to.batch(Table::Ticks)?, tick, &message, &header);
        }
        let clears =
            matches!(&header, Header::Refresh(refresh) if refresh.flags.has(flags::refresh::CLEAR_CACHE));
        match message.open()? {
            Container::NoData => {}
            Container::FieldList(list) => self.fields(tick, &list, clears, to)?,
            Container::Map(map) if map.head().container == DataType::FIELD_LIST => {
                self.map(tick, message.domain(), &map, to)?;
            }
            other => self.whole(tick, None, &other, to)?,
        }
        if tick.header.flags.contains(Flags::LAST) {
            self.bests.forget(tick.header.service, tick.name);
        }
        Ok(())
    }

    /// Adds the rows of an item's fields: trades, quotes, auctions, and other fields.
    fn fields(
        &mut self,
        tick: &Tick<'_>,
        list: &FieldList<'_>,
        clears: bool,
        to: &mut impl Sink,
    ) -> Result<(), Fault> {
        let Self { bests, text } = self;
        // Without the table of quotes nothing is carried on.
        let mut alone = Best::default();
        let best = match to.wants(Table::Quotes) {
            true => bests.of(tick.header.service, tick.name)?,
            false => &mut alone,
        };
        if clears {
            *best = Best::default();
        }
        let news = RowKind::of(&tick.header, list)?;
        let mut trade = if news.trade { Trade::of(list)? } else { None };
        let mut broken = news.broken.then(Broken::default);
        let mut auction = news.auction.then(Auction::default);
        for field in list.render(Dictionary::builtin()) {
            let field = field?;
            // The other fields of a quote are carried on even if they arrive without bid and ask.
            let has_column = trade.as_mut().is_some_and(|trade| trade.take(&field))
                || broken.as_mut().is_some_and(|broken| broken.take(&field))
                || auction.as_mut().is_some_and(|auction| auction.take(&field))
                || best.take(&field) && news.quote;
            if !has_column {
                field_row(tick, None, &field, text, to)?;
            }
        }
        if let Some(trade) = trade.filter(|_| to.wants(Table::Trades)) {
            let mut row = begin_timed(to.batch(Table::Trades)?, tick);
            row.text(Some("trade"))
                .text(trade.id.as_deref())
                .text(trade.side)
                .text(trade.conditions.as_deref());
            row.real(trade.price)?.real(trade.size)?.real(trade.volume)?.real(trade.trades)?;
            row.whole(trade.time_ns).text(Some(tick.header.quality().name()));
        }
        if let Some(broken) = broken.filter(|_| to.wants(Table::Trades)) {
            let mut row = begin_timed(to.batch(Table::Trades)?, tick);
            row.text(Some("break")).text(broken.id.as_deref()).text(None::<&str>).text(None::<&str>);
            row.real(broken.price)?.real(broken.size)?.real(broken.volume)?.real(broken.trades)?;
            row.whole(broken.time_ns).text(Some(tick.header.quality().name()));
        }
        if news.quote && to.wants(Table::Quotes) {
            let mut row = begin_timed(to.batch(Table::Quotes)?, tick);
            row.real(best.bid)?.real(best.bid_size)?.real(best.ask)?.real(best.ask_size)?;
            row.text(best.bid_source.as_deref()).text(best.ask_source.as_deref());
            row.whole(best.time_ns).text(Some(tick.header.quality().name()));
        }
        if let Some(auction) = auction.filter(|_| to.wants(Table::Auctions)) {
            let mut row = begin_timed(to.batch(Table::Auctions)?, tick);
            row.text(auction.kind.as_deref())
                .text(auction.side)
                .real(auction.paired)?
                .real(auction.imbalance)?;
            row.real(auction.reference)?.real(auction.near)?.real(auction.far)?.text(auction.variation);
            row.whole(auction.due_ns).real(auction.extensions)?;
            row.whole(auction.time_ns).text(Some(tick.header.quality().name()));
        }
        Ok(())
    }

    /// Adds the rows of a map: its summary and its entries, including orders.
    fn map(
        &mut self,
        tick: &Tick<'_>,
        domain: Domain,
        map: &Map<'_>,
        to: &mut impl Sink,
    ) -> Result<(), Fault> {
        let head = map.head();
        let sets = map.sets()?;
        if let Some(summary) = head.summary
            && let Container::FieldList(list) = map.open(summary, &sets)?
        {
            let entry = Entry { action: "summary", key: None };
            for field in list.render(Dictionary::builtin()) {
                field_row(tick, Some(&entry), &field?, &mut self.text, to)?;
            }
        }
        let mut key = String::new();
        for entry in map.iter() {
            let entry = entry?;
            key.clear();
            match entry.key_value(head.key_type)? {
                Value::Buffer(bytes) => key.push_str(&String::from_utf8_lossy(bytes)),
                other => write_to(&mut key, &other),
            }
            let action = match entry.action {
                MapAction::ADD => "add",
                MapAction::UPDATE => "update",
                MapAction::DELETE => "delete",
                _ => "other",
            };
            // A deleted entry has no data: use an empty list of fields.
            let data = if entry.action == MapAction::DELETE { &[][..] } else { entry.data };
            let Container::FieldList(list) = map.open(data, &sets)? else { continue };
            let entry = Entry { action, key: Some(&key) };
            if domain == Domain::MARKET_BY_ORDER {
                self.order(tick, &entry, &list, to)?;
                continue;
            }
            let mut is_empty = true;
            for field in list.render(Dictionary::builtin()) {
                field_row(tick, Some(&entry), &field?, &mut self.text, to)?;
                is_empty = false;
            }
            if is_empty && to.wants(Table::Fields) {
                let mut row = begin(to.batch(Table::Fields)?, tick);
                row.text(Some(entry.action)).text(entry.key).whole(None);
                row.text(None::<&str>).text(None::<&str>).text(None::<&str>).double(None);
            }
        }
        Ok(())
    }

    /// Adds the row of an order.
    fn order(
        &mut self,
        tick: &Tick<'_>,
        entry: &Entry<'_>,
        list: &FieldList<'_>,
        to: &mut impl Sink,
    ) -> Result<(), Fault> {
        let mut order = Order::default();
        for field in list.render(Dictionary::builtin()) {
            let field = field?;
            if !order.take(&field) {
                field_row(tick, Some(entry), &field, &mut self.text, to)?;
            }
        }
        if to.wants(Table::Orders) {
            let mut row = begin_timed(to.batch(Table::Orders)?, tick);
            row.text(Some(entry.action)).text(entry.key).text(order.side.as_deref());
            row.real(order.price)?.real(order.size)?.text(order.participant.as_deref());
            row.whole(order.priority_ns).whole(order.change_ns).text(Some(tick.header.quality().name()));
        }
        Ok(())
    }

    /// Adds a container without columns as a row with its outline.
    fn whole(
        &mut self,
        tick: &Tick<'_>,
        field: Option<&NamedValue<'_, '_>>,
        container: &Container<'_>,
        to: &mut impl Sink,
    ) -> Result<(), Fault> {
        if to.wants(Table::Fields) {
            let text = read(&mut self.text, &container.outline(Dictionary::builtin()));
            let mut row = begin(to.batch(Table::Fields)?, tick);
            row.text(None::<&str>).text(None::<&str>);
            row.whole(field.map(|field| i64::from(field.fid.0))).text(field.and_then(NamedValue::name));
            row.text(Some(container.data_type().to_string())).text(Some(text)).double(None);
        }
        Ok(())
    }
}

/// Begins a row with the columns that identify the tick.
fn begin<'b>(batch: &'b mut Batch, tick: &Tick<'_>) -> Row<'b> {
    let mut row = batch.row();
    row.time(tick.header.sequenced).text((!tick.name.is_empty()).then_some(tick.name));
    row.count(tick.header.seq.0).whole(i64::from(tick.header.service));
    row
}

/// Begins a row that has the times of the event and of its arrival too.
fn begin_timed<'b>(batch: &'b mut Batch, tick: &Tick<'_>) -> Row<'b> {
    let mut row = begin(batch, tick);
    row.time(tick.header.event).time(tick.header.wire);
    row
}

fn tick_row(batch: &mut Batch, tick: &Tick<'_>, message: &MessageView<'_>, header: &Header<'_>) {
    let fixed = &tick.header;
    let has = |flag| fixed.flags.contains(flag);
    let text = header.state().map(|state| String::from_utf8_lossy(state.text));
    let mut row = begin(batch, tick);
    row.whole(i64::from(fixed.channel)).whole(i64::from(fixed.item.0)).text(Some(fixed.kind.name()));
    row.text(Some(message.domain().to_string())).count(fixed.feed_seq);
    row.time(fixed.event).time(fixed.wire).time(fixed.decoded).text(Some(fixed.state.name()));
    row.text(Some(fixed.quality().name())).flag(has(Flags::GAP)).flag(has(Flags::RESET));
    row.flag(has(Flags::END_OF_SESSION)).flag(has(Flags::LAST));
    row.text(text.as_deref().filter(|text| !text.is_empty())).count(tick.body.len() as u64);
    row.text((!tick.source.is_empty()).then_some(tick.source));
}

/// The action and the key of a map's entry.
struct Entry<'a> {
    action: &'a str,
    key: Option<&'a str>,
}

fn field_row(
    tick: &Tick<'_>,
    entry: Option<&Entry<'_>>,
    field: &NamedValue<'_, '_>,
    text: &mut String,
    to: &mut impl Sink,
) -> Result<(), Fault> {
    if !to.wants(Table::Fields) {
        return Ok(());
    }
    let container = field.value.open()?;
    let text = match (&field.value, &container) {
        (Value::Blank, _) => None,
        (_, Some(container)) => Some(read(text, &container.outline(Dictionary::builtin()))),
        _ => Some(read(text, field)),
    };
    let data_type = field.value.data_type().or(field.definition.map(|definition| definition.data_type));
    let mut row = begin(to.batch(Table::Fields)?, tick);
    row.text(entry.map(|entry| entry.action)).text(entry.and_then(|entry| entry.key));
    row.whole(i64::from(field.fid.0)).text(field.name()).text(data_type.map(|kind| kind.to_string()));
    row.text(text).double(double(&field.value));
    Ok(())
}

/// Formats a value in `text`.
fn read<'t>(text: &'t mut String, shown: &impl Display) -> &'t str {
    text.clear();
    write_to(text, shown);
    text
}

fn write_to(text: &mut String, shown: &impl Display) {
    // Writing to a string does not fail.
    let _ = write!(text, "{shown}");
}

/// The last trade of a tick.
#[derive(Default)]
struct Trade {
    price: Option<Real>,
    size: Option<Real>,
    volume: Option<Real>,
    trades: Option<Real>,
    time_ns: Option<i64>,
    id: Option<String>,
    side: Option<&'static str>,
    conditions: Option<String>,
}

impl Trade {
    /// Creates the trade with the first valid price of the list; `None` if there is none.
    fn of(list: &FieldList<'_>) -> Result<Option<Self>, Fault> {
        for field in list.render(Dictionary::builtin()) {
            let field = field?;
            if let (fid::TRDPRC_1, Some(price @ Some(_))) = (field.fid, real(&field.value)) {
                return Ok(Some(Self { price, ..Self::default() }));
            }
        }
        Ok(None)
    }

    /// Stores a field, if it belongs to a trade.
    fn take(&mut self, field: &NamedValue<'_, '_>) -> bool {
        let value = &field.value;
        match field.fid {
            fid::TRDPRC_1 => real(value) == Some(self.price),
            fid::TRDVOL_1 => put(&mut self.size, real(value)),
            fid::ACVOL_1 => put(&mut self.volume, real(value)),
            fid::NUM_MOVES => put(&mut self.trades, real(value)),
            fid::TRADE_ID => put(&mut self.id, Some(shown(field))),
            fid::COND_N => put(&mut self.conditions, Some(shown(field))),
            fid::AGGRS_SID1 => put(&mut self.side, word(&AGGRESSORS, value)),
            fid::SALTIM_NS => put(&mut self.time_ns, ns_of_day(value)),
            _ => false,
        }
    }
}

/// The fields of an order.
#[derive(Default)]
struct Order {
    side: Option<String>,
    price: Option<Real>,
    size: Option<Real>,
    participant: Option<String>,
    priority_ns: Option<i64>,
    change_ns: Option<i64>,
}

impl Order {
    /// Stores a field, if it belongs to an order.
    fn take(&mut self, field: &NamedValue<'_, '_>) -> bool {
        let value = &field.value;
        match field.fid {
            fid::ORDER_SIDE => put(&mut self.side, Some(shown(field).map(|side| side.to_lowercase()))),
            fid::MMID => put(&mut self.participant, Some(shown(field))),
            fid::ORDER_PRC => put(&mut self.price, real(value)),
            fid::ORDER_SIZE => put(&mut self.size, real(value)),
            fid::PR_TIM_NS => put(&mut self.priority_ns, ns_of_day(value)),
            fid::OR_TIM_NS => put(&mut self.change_ns, ns_of_day(value)),
            _ => false,
        }
    }
}

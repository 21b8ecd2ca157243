//! Sessions, subscriptions, publication and days.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use tapeline_kdb::{
    Atom, Encoder, LEAST_PACKED, LogWriter, Message, MessageKind, Refused, Type, Update, Value, View, pack,
};

use crate::answers::{self, Wrong};
use crate::batch::{Batch, KeptRows, Passing, append};
use crate::query::{Query, Variable};
use crate::{Local, Schema};

/// A session: one client's connection. The number of a closed session is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Returns `true` if a message calls `upd`, as feeds do, judging by its first value alone. Where rows are [passed
/// on](Settings::passes_on), any other message must wait until its sender's earlier rows were added: the end of a day
/// applies to all of them.
#[must_use]
pub fn is_update(message: &Message<'_>) -> bool {
    // A list whose first value is a symbol, or a vector of symbols. Both begin with type, attribute and count.
    let name = match message.body {
        [0, _, _, _, _, _, kind, name @ ..] if Type(*kind as i8) == Type::SYMBOL.atom() => name,
        [kind, _, _, _, _, _, name @ ..] if Type(*kind as i8) == Type::SYMBOL => name,
        _ => return false,
    };
    name.starts_with(b".u.upd\0") || name.starts_with(b"upd\0")
}

/// The destination of messages: connections in a server, queues in a test.
pub trait Outlets {
    /// Sends a whole message to this session. The implementation decides how to handle a session that does not read.
    fn send(&mut self, to: SessionId, message: &[u8]);

    /// Takes the rows that a session has sent, if [`Settings::passes_on`] is set.
    ///
    /// # Errors
    /// The reason why the rows cannot be taken; the publisher gets it as an error.
    fn pass_on(&mut self, _rows: &mut Passing<'_>) -> Result<(), &'static str> {
        Err("nobody takes rows")
    }
}

/// Settings of a tickerplant.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The tables, each with a unique name.
    pub tables: Vec<Schema>,
    /// Publish on [`Tickerplant::publish_all`], as `tick.q -t` does, and not with each update. Default `false`.
    pub is_timed: bool,
    /// Pass the rows that sessions send to [`Outlets::pass_on`], and publish only rows added with [`Tickerplant::add`].
    /// Default `false`.
    pub passes_on: bool,
    /// Maximum number of symbols that a subscriber may choose for one table; default 100,000. A request for more gets an
    /// error.
    pub most_symbols: usize,
    /// Maximum bytes of rows of one table that wait to be published together; default 64 MiB. Beyond it they are published
    /// at once.
    pub most_batch_bytes: usize,
}

impl Settings {
    /// Creates settings that publish these tables with each update.
    #[must_use]
    pub const fn new(tables: Vec<Schema>) -> Self {
        Self { tables, is_timed: false, passes_on: false, most_symbols: 100_000, most_batch_bytes: 64 << 20 }
    }
}

/// The rights of a session, by the tables' indexes in [`Settings::tables`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    /// For each table, `true` if the session may publish to it.
    pub publish: Vec<bool>,
    /// For each table, `true` if the session may subscribe to it.
    pub subscribe: Vec<bool>,
    /// `true` if the session may end the day.
    pub end_day: bool,
}

impl Rights {
    /// Creates all rights for `tables` tables.
    #[must_use]
    pub fn all(tables: usize) -> Self {
        Self { publish: vec![true; tables], subscribe: vec![true; tables], end_day: true }
    }
}

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Updates accepted.
    pub updates: u64,
    /// Rows of the accepted updates.
    pub rows: u64,
    /// Messages sent to subscribers, counted once per subscriber.
    pub sent: u64,
    /// Calls and queries carried out. Synchronous ones got an answer.
    pub answered: u64,
    /// Calls and queries refused. Asynchronous publishers get no error.
    pub refused: u64,
    /// Bytes encoded for answers, including answers that turned out too long.
    pub answer_bytes: u64,
}

#[derive(Debug)]
struct Session {
    rights: Rights,
    /// Long messages to this session are compressed.
    packs: bool,
}

/// The answer to a successful call.
enum Answer {
    /// An empty answer.
    Null,
    /// The answer in the tickerplant's buffer.
    InMessage,
}

/// The symbols that a subscriber has chosen.
type Chosen = HashSet<Box<[u8]>, RandomState>;

#[derive(Debug)]
struct Subscription {
    session: SessionId,
    /// The chosen symbols; `None` means all.
    symbols: Option<Chosen>,
}

#[derive(Debug)]
struct Table {
    schema: Schema,
    batch: Batch,
    subscriptions: Vec<Subscription>,
    /// The rows for one subscriber of symbols.
    picked: Batch,
}

#[derive(Debug)]
struct Log {
    path: Box<str>,
    writer: LogWriter,
    /// Bytes that are not written yet.
    unwritten: Vec<u8>,
    /// Messages whose rows were published.
    published: u64,
}

/// A tickerplant. See the [crate](crate).
#[derive(Debug)]
pub struct Tickerplant {
    tables: Vec<Table>,
    by_name: HashMap<Box<[u8]>, usize, RandomState>,
    /// Without the tables.
    settings: Settings,
    sessions: Vec<Option<Session>>,
    date: i32,
    log: Option<Log>,
    day_is_to_end: bool,
    counters: Counters,
    /// A message to subscribers or an answer, plain and compressed.
    message: Vec<u8>,
    packed: Packed,
    /// The compressed message for one subscriber of symbols.
    packed_alone: Packed,
    /// For each row, `true` if the subscriber wants it.
    chosen: Vec<bool>,
}

impl Tickerplant {
    /// Creates a tickerplant on this day, without sessions and without a log.
    #[must_use]
    pub fn new(mut settings: Settings, date: i32) -> Self {
        let tables = std::mem::take(&mut settings.tables);
        let by_name =
            tables.iter().zip(0..).map(|(schema, at)| (schema.name().as_bytes().into(), at)).collect();
        let table = |schema: Schema| {
            let columns = schema.columns().len();
            let (batch, picked) = (Batch::new(columns), Batch::new(columns));
            Table { schema, batch, subscriptions: Vec::new(), picked }
        };
        Self {
            tables: tables.into_iter().map(table).collect(),
            by_name,
            settings,
            sessions: Vec::new(),
            date,
            log: None,
            day_is_to_end: false,
            counters: Counters::default(),
            message: Vec::new(),
            packed: Packed::default(),
            packed_alone: Packed::default(),
            chosen: Vec::new(),
        }
    }

    /// Opens a session under an unused number; `packs` compresses long messages to it.
    pub fn open(&mut self, session: SessionId, rights: Rights, packs: bool) {
        let at = session.0 as usize;
        if self.sessions.len() <= at {
            self.sessions.resize_with(at + 1, || None);
        }
        self.sessions[at] = Some(Session { rights, packs });
    }

    /// Closes a session.
    pub fn close(&mut self, session: SessionId) {
        if let Some(place) = self.sessions.get_mut(session.0 as usize) {
            *place = None;
        }
        self.tables.iter_mut().for_each(|table| table.unsubscribe(session));
    }

    /// Starts logging the day to this log; `writer` carries the count of its earlier messages and bytes.
    pub fn log_to(&mut self, path: &str, writer: LogWriter) {
        let published = writer.messages();
        self.log = Some(Log { path: path.into(), writer, unwritten: Vec::new(), published });
    }

    /// Returns the bytes to append to the log before anything sent since goes out; then call
    /// [`has_logged`](Self::has_logged).
    #[must_use]
    pub fn unlogged(&self) -> &[u8] {
        self.log.as_ref().map_or(&[], |log| &log.unwritten)
    }

    /// Confirms that the [`unlogged`](Self::unlogged) bytes were appended.
    pub fn has_logged(&mut self) {
        if let Some(log) = &mut self.log {
            log.unwritten.clear();
        }
    }

    /// Returns the number of messages in the log: `.u.j`. 0 if there is no log.
    #[must_use]
    pub fn log_messages(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.writer.messages())
    }

    /// Returns `true` if the day is over, by the clock or by a client's call.
    #[must_use]
    pub const fn is_day_over(&self, now: Local) -> bool {
        self.day_is_to_end || now.date() > self.date
    }

    /// Returns the tickerplant's current day, in days since 2000.
    #[must_use]
    pub const fn date(&self) -> i32 {
        self.date
    }

    /// Ends the day: publishes the waiting rows and notifies subscribers. The next day has no log until
    /// [`log_to`](Self::log_to) sets one. Append the [`unlogged`](Self::unlogged) bytes to the old log before this
    /// call.
    pub fn end_day(&mut self, now: Local, out: &mut impl Outlets) {
        self.publish_all(out);
        self.message.clear();
        let date = self.date;
        append(&mut self.message, 64, |room| {
            let mut message = Encoder::message(room, MessageKind::Async)?;
            message.list(2)?;
            message.symbol(b".u.end")?;
            message.atom(&Atom::<&[u8]>::Date(date))?;
            message.finish()
        });
        for session in (0..self.sessions.len() as u32).map(SessionId) {
            if self.tables.iter().any(|table| table.has(session)) {
                out.send(session, &self.message);
            }
        }
        debug_assert!(self.unlogged().is_empty(), "the log lacks what was published");
        // Days without a run are skipped.
        self.date = now.date().max(self.date + 1);
        self.day_is_to_end = false;
        self.log = None;
    }

    /// Returns the counts since the start.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns `true` if rows wait to be published.
    #[must_use]
    pub fn has_rows(&self) -> bool {
        self.tables.iter().any(|table| table.batch.rows() > 0)
    }

    /// Publishes the waiting rows.
    pub fn publish_all(&mut self, out: &mut impl Outlets) {
        for table in 0..self.tables.len() {
            // Rows that were added and are not published as an update yet.
            self.log_table(table, false);
            self.publish(table, out);
        }
        self.has_published();
    }

    /// Records that all logged messages are published.
    fn has_published(&mut self) {
        if let Some(log) = &mut self.log {
            log.published = log.writer.messages();
        }
    }

    /// Processes a message from an open session and answers it.
    pub fn receive(&mut self, from: SessionId, message: &Message<'_>, now: Local, out: &mut impl Outlets) {
        // A tickerplant sends no requests, so it expects no response.
        if message.kind == MessageKind::Response {
            return;
        }
        let answered = self.obey(from, message, now, out);
        match &answered {
            Ok(_) => self.counters.answered += 1,
            Err(_) => self.counters.refused += 1,
        }
        if message.kind == MessageKind::Sync {
            match answered {
                Ok(Answer::InMessage) => {}
                Ok(Answer::Null) => self.counters.answer_bytes += answers::null(&mut self.message),
                Err(wrong) => self.counters.answer_bytes += answers::error(&mut self.message, &wrong),
            }
            self.send_message(from, out);
        }
    }

    /// Executes the call of a message.
    fn obey(
        &mut self,
        from: SessionId,
        message: &Message<'_>,
        now: Local,
        out: &mut impl Outlets,
    ) -> Result<Answer, Wrong> {
        let view = message.view().map_err(Wrong::Malformed)?;
        // q sends a call whose items are all names as a vector of symbols, not as a list.
        let (function, arguments) = match &view {
            View::List(list) => {
                let mut values = list.iter();
                (values.next().and_then(|value| value.name()), [values.next(), values.next(), values.next()])
            }
            View::Vector(vector) if vector.kind() == Type::SYMBOL => {
                let mut names = vector.symbols().into_iter().flatten();
                let function = names.next();
                let mut argument = || names.next().map(|name| View::Atom(Atom::Symbol(name)));
                (function, [argument(), argument(), argument()])
            }
            other => {
                let name = other.name().ok_or(Wrong::Unknown)?;
                // An empty query: the answer confirms that the session's earlier messages were processed.
                if matches!(name.trim_ascii(), b"" | b"::") {
                    return Ok(Answer::Null);
                }
                return self.ask(from, &Query::parse(name).ok_or(Wrong::Unknown)?, message.kind);
            }
        };
        match function.ok_or(Wrong::Unknown)? {
            b".u.upd" | b"upd" => {
                let update = Update::of(&view).map_err(Wrong::NoUpdate)?;
                self.update(from, &update, now, out)?;
                Ok(Answer::Null)
            }
            b".u.sub" => {
                let [Some(table), Some(symbols), None] = arguments else { return Err(Wrong::SubArguments) };
                let table = table.name().ok_or(Wrong::SubArguments)?;
                let symbols = symbols_of(&symbols).ok_or(Wrong::SubArguments)?;
                self.ask(from, &Query::Subscribe { table, symbols }, message.kind)
            }
            b".u.endofday" => self.ask(from, &Query::EndDay, message.kind),
            _ => Err(Wrong::Unknown),
        }
    }

    fn rights(&self, session: SessionId) -> Option<&Rights> {
        self.sessions.get(session.0 as usize)?.as_ref().map(|session| &session.rights)
    }

    /// Returns the index of a table for which this session has the right `may`.
    fn table(&self, from: SessionId, name: &[u8], may: impl Fn(&Rights) -> &[bool]) -> Result<usize, Wrong> {
        let Some(at) = self.by_name.get(name).copied() else { return Err(Wrong::no_table(name)) };
        let is_allowed = self.rights(from).is_some_and(|rights| may(rights).get(at) == Some(&true));
        if is_allowed { Ok(at) } else { Err(Wrong::NoRight("this table is for others")) }
    }

    fn update(
        &mut self,
        from: SessionId,
        update: &Update<'_>,
        now: Local,
        out: &mut impl Outlets,
    ) -> Result<(), Wrong> {
        let at = self.table(from, update.table, |rights| &rights.publish)?;
        let Table { schema, batch, picked, .. } = &mut self.tables[at];
        if self.settings.passes_on {
            picked.clear();
            picked.take(schema, &update.rows, now)?;
            return out.pass_on(&mut Passing::new(at, schema, picked)).map_err(Wrong::NotTaken);
        }
        batch.take(schema, &update.rows, now)?;
        self.publish_update(at, update.rows.is_row(), update.rows.len(), out);
        self.settle(out);
        Ok(())
    }

    /// Adds the rows of an update that does not come from a session, as [`add_row`](Self::add_row) adds one.
    ///
    /// # Errors
    /// There is no such table, or it has other columns: then none of them is added.
    pub fn add(&mut self, update: &Update<'_>, now: Local) -> Result<(), Wrong> {
        let Some(at) = self.by_name.get(update.table) else { return Err(Wrong::no_table(update.table)) };
        let Table { schema, batch, .. } = &mut self.tables[*at];
        batch.take(schema, &update.rows, now)
    }

    /// Adds rows that were [kept](Passing::keep), as [`add_row`](Self::add_row) adds one.
    pub fn add_kept(&mut self, rows: &KeptRows) {
        if let Some(table) = self.tables.get_mut(rows.table) {
            table.batch.append(&rows.batch);
        }
    }

    /// Adds a row that does not come from a session: `write` appends the cell of each column, as [`Encoder::cells`]
    /// encodes them. [`publish_added`](Self::publish_added) publishes the added rows. Returns `false` if there is no
    /// such table or the cells do not match it.
    pub fn add_row(&mut self, table: usize, write: impl FnMut(usize, &mut Vec<u8>)) -> bool {
        let Some(Table { schema, batch, .. }) = self.tables.get_mut(table) else { return false };
        batch.take_row(schema, write)
    }

    /// Makes the added rows one update of each table: logs it, and publishes it unless publication is timed.
    pub fn publish_added(&mut self, out: &mut impl Outlets) {
        for table in 0..self.tables.len() {
            let rows = self.tables[table].batch.unlogged();
            if rows > 0 {
                self.publish_update(table, false, rows, out);
            }
        }
        self.settle(out);
    }

    /// Logs an update of `rows` rows, and publishes it unless publication is timed.
    fn publish_update(&mut self, table: usize, is_row: bool, rows: usize, out: &mut impl Outlets) {
        self.log_table(table, is_row);
        self.counters.updates += 1;
        self.counters.rows += rows as u64;
        if !self.settings.is_timed {
            self.publish(table, out);
        }
    }

    /// Encodes a table's unlogged rows for the log, if there is one.
    fn log_table(&mut self, table: usize, is_row: bool) {
        let Table { schema, batch, .. } = &mut self.tables[table];
        match &mut self.log {
            Some(Log { writer, unwritten, .. }) if batch.unlogged() > 0 => {
                batch.write_entry(schema, writer, unwritten, is_row);
            }
            _ => batch.has_logged(),
        }
    }

    /// Updates the count of published messages; with a timer, publishes all rows if a table exceeds its limit.
    fn settle(&mut self, out: &mut impl Outlets) {
        if !self.settings.is_timed {
            self.has_published();
        } else if self.tables.iter().any(|table| table.batch.bytes() > self.settings.most_batch_bytes) {
            // All tables, because the count of published messages covers all tables.
            self.publish_all(out);
        }
    }

    /// Publishes the waiting rows of a table.
    fn publish(&mut self, table: usize, out: &mut impl Outlets) {
        let Self { tables, message, packed, packed_alone, chosen, sessions, counters, .. } = self;
        let Table { schema, batch, subscriptions, picked } = &mut tables[table];
        if batch.rows() == 0 {
            return;
        }
        message.clear();
        packed.is_tried = false;
        for subscription in subscriptions.iter() {
            let session = subscription.session;
            let packs = packs(sessions, session);
            if let Some(wanted) = &subscription.symbols {
                chosen.clear();
                chosen.extend(batch.symbols().map(|symbol| wanted.contains(symbol)));
                let count = chosen.iter().filter(|chosen| **chosen).count();
                if count == 0 {
                    continue;
                }
                if count < batch.rows() {
                    // Written after the message for all subscribers, which stays in the buffer.
                    batch.pick(schema, chosen, picked);
                    let whole = message.len();
                    picked.write_message(schema, message);
                    packed_alone.is_tried = false;
                    send(session, &message[whole..], packs, packed_alone, out);
                    message.truncate(whole);
                    counters.sent += 1;
                    continue;
                }
            }
            if message.is_empty() {
                batch.write_message(schema, message);
            }
            send(session, message, packs, packed, out);
            counters.sent += 1;
        }
        batch.clear();
    }

    /// Sends `self.message`.
    fn send_message(&mut self, to: SessionId, out: &mut impl Outlets) {
        self.packed.is_tried = false;
        send(to, &self.message, packs(&self.sessions, to), &mut self.packed, out);
    }

    /// Executes a query. Encodes an answer only for a synchronous query: an answer may have 4 MiB.
    fn ask(&mut self, from: SessionId, query: &Query<'_>, kind: MessageKind) -> Result<Answer, Wrong> {
        self.may_ask(from, query)?;
        self.act_on(from, query);
        if kind != MessageKind::Sync {
            return Ok(Answer::Null);
        }
        let mut message = std::mem::take(&mut self.message);
        self.counters.answer_bytes += answers::answer(&mut message, |out| self.write(from, query, out));
        self.message = message;
        Ok(Answer::InMessage)
    }

    /// Returns the tables of a subscription.
    fn meant(&self, from: SessionId, table: &[u8]) -> Result<Vec<usize>, Wrong> {
        if !table.is_empty() {
            return Ok(vec![self.table(from, table, |rights| &rights.subscribe)?]);
        }
        let rights = self.rights(from);
        let may = |at: &usize| rights.is_some_and(|rights| rights.subscribe.get(*at) == Some(&true));
        let meant: Vec<_> = (0..self.tables.len()).filter(may).collect();
        if meant.is_empty() { Err(Wrong::NoRight("all tables are for others")) } else { Ok(meant) }
    }

    /// Checks that all parts of a query are permitted, before any of them is executed.
    fn may_ask(&self, from: SessionId, query: &Query<'_>) -> Result<(), Wrong> {
        match query {
            Query::All(queries) => queries.iter().try_for_each(|query| self.may_ask(from, query)),
            Query::Read(Variable::Date | Variable::Tables) => Ok(()),
            // These reveal what others publish and subscribe to: only for sessions that may subscribe to a table.
            Query::Read(_) => self.meant(from, b"").map(|_| ()),
            Query::EndDay if self.rights(from).is_some_and(|rights| rights.end_day) => Ok(()),
            Query::EndDay => Err(Wrong::NoRight("ending the day is for others")),
            Query::Subscribe { symbols: Some(symbols), .. } if symbols.len() > self.settings.most_symbols => {
                Err(Wrong::Symbols { most: self.settings.most_symbols, found: symbols.len() })
            }
            Query::Subscribe { table, .. } => self.meant(from, table).map(|_| ()),
        }
    }

    /// Executes the actions of a query, without the answer.
    fn act_on(&mut self, from: SessionId, query: &Query<'_>) {
        match query {
            Query::All(queries) => queries.iter().for_each(|query| self.act_on(from, query)),
            Query::Read(_) => {}
            Query::EndDay => self.day_is_to_end = true,
            Query::Subscribe { table, symbols } => {
                let boxed = |symbols: &Vec<&[u8]>| symbols.iter().map(|symbol| Box::from(*symbol)).collect();
                for at in self.meant(from, table).unwrap_or_default() {
                    let symbols = symbols.as_ref().map(boxed);
                    // As in `tick.q`, a new subscription replaces an old one.
                    self.tables[at].unsubscribe(from);
                    self.tables[at].subscriptions.push(Subscription { session: from, symbols });
                }
            }
        }
    }

    fn write(&self, from: SessionId, query: &Query<'_>, out: &mut Encoder<'_>) -> Result<(), Refused> {
        match query {
            Query::All(queries) => {
                out.list(queries.len())?;
                queries.iter().try_for_each(|query| self.write(from, query, out))
            }
            Query::Subscribe { table, .. } => {
                let meant = self.meant(from, table).unwrap_or_default();
                if table.is_empty() {
                    out.list(meant.len())?;
                }
                meant.into_iter().try_for_each(|at| answers::subscribed(out, &self.tables[at].schema))
            }
            Query::Read(variable) => self.write_variable(from, *variable, out),
            Query::EndDay => out.value(&Value::null()),
        }
    }

    fn write_variable(
        &self,
        from: SessionId,
        variable: Variable,
        out: &mut Encoder<'_>,
    ) -> Result<(), Refused> {
        let name = |at: &usize| self.tables[*at].schema.name().as_bytes();
        // The tables to which this session may subscribe.
        let visible = self.meant(from, b"").unwrap_or_default();
        let log = self.log.as_ref();
        match variable {
            Variable::Published => answers::count(out, log.map(|log| log.published)),
            Variable::Logged => answers::count(out, log.map(|log| log.writer.messages())),
            Variable::Log => match log {
                // In q, a file name begins with a colon.
                Some(log) => out.symbol(format!(":{}", log.path).as_bytes()),
                None => out.symbol(b""),
            },
            Variable::Date => out.atom(&Atom::<&[u8]>::Date(self.date)),
            Variable::Tables => {
                let publishes = |at: &usize| {
                    self.rights(from).is_some_and(|rights| rights.publish.get(*at) == Some(&true))
                };
                let known = (0..self.tables.len()).filter(|at| visible.contains(at) || publishes(at));
                out.symbols(known.collect::<Vec<_>>().iter().map(name))
            }
            Variable::Subscriptions => {
                out.dict(false)?;
                out.symbols(visible.iter().map(name))?;
                out.list(visible.len())?;
                visible.iter().try_for_each(|at| {
                    let table = &self.tables[*at];
                    out.list(table.subscriptions.len())?;
                    table.subscriptions.iter().try_for_each(|subscription| {
                        out.list(2)?;
                        out.atom(&Atom::<&[u8]>::Int(subscription.session.0 as i32))?;
                        match &subscription.symbols {
                            None => out.symbol(b""),
                            Some(symbols) => out.symbols(symbols.iter().map(|symbol| &symbol[..])),
                        }
                    })
                })
            }
        }
    }
}

impl Table {
    fn has(&self, session: SessionId) -> bool {
        self.subscriptions.iter().any(|subscription| subscription.session == session)
    }

    fn unsubscribe(&mut self, session: SessionId) {
        self.subscriptions.retain(|subscription| subscription.session != session);
    }
}

/// A compressed message, compressed once for all sessions.
#[derive(Debug, Default)]
struct Packed {
    is_tried: bool,
    /// The length; `None` if the message is sent uncompressed.
    len: Option<usize>,
    bytes: Vec<u8>,
}

/// Returns `true` if long messages to a session are compressed.
fn packs(sessions: &[Option<Session>], session: SessionId) -> bool {
    sessions.get(session.0 as usize).and_then(Option::as_ref).is_some_and(|session| session.packs)
}

/// Sends a message, compressed if the session uses compression and the message shrinks enough.
fn send(to: SessionId, message: &[u8], packs: bool, packed: &mut Packed, out: &mut impl Outlets) {
    if packs && message.len() > LEAST_PACKED {
        if !std::mem::replace(&mut packed.is_tried, true) {
            packed.bytes.resize(message.len().max(packed.bytes.len()), 0);
            packed.len = pack(message, &mut packed.bytes);
        }
        if let Some(len) = packed.len {
            return out.send(to, &packed.bytes[..len]);
        }
    }
    out.send(to, message);
}

/// Returns the symbols of an argument: all for an empty symbol, one symbol, or a list of symbols.
fn symbols_of<'a>(view: &View<'a>) -> Option<Option<Vec<&'a [u8]>>> {
    match view {
        View::Vector(vector) if vector.kind() == Type::SYMBOL => Some(Some(vector.symbols()?.collect())),
        other => other.name().map(|name| (!name.is_empty()).then(|| vec![name])),
    }
}

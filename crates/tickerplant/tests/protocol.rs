//! The protocol of `tick.q` and `u.q`, call by call.
use crate::support;

use support::{FEED, NOW, OTHER, RDB, Sent, ask, message, plant, rows, say, schema, upd, value, values};
use tapeline_kdb::{Atom, Attribute, Log, LogWriter, Message, MessageKind, Order, Type, Update, Value, View};
use tapeline_tickerplant::{
    KeptRows, Local, Outlets, Passing, Rights, SessionId, Settings, Tickerplant, Wrong,
};

fn symbols(names: &[&str]) -> Value {
    let items = names.iter().map(|name| Atom::Symbol(name.as_bytes().into())).collect();
    Value::Vector { kind: Type::SYMBOL, attribute: Attribute::NONE, items }
}

fn long(number: i64) -> Value {
    Value::Atom(Atom::Long(number))
}

/// Subscribes a session as Python clients do: with a list of a string and names.
fn sub(plant: &mut Tickerplant, from: SessionId, table: &str, names: &[&str]) -> Value {
    let call = message(MessageKind::Sync, |out| {
        out.list(3)?;
        out.string(b".u.sub")?;
        out.symbol(table.as_bytes())?;
        match names {
            [name] => out.symbol(name.as_bytes()),
            names => out.symbols(names.iter().map(|name| name.as_bytes())),
        }
    });
    let mut answers = say(plant, from, &call);
    assert_eq!(answers.len(), 1);
    answers.remove(0).1
}

fn error(value: &Value) -> String {
    let Value::Error(text) = value else { panic!("no error: {value:?}") };
    String::from_utf8(text.to_vec()).unwrap()
}

#[test]
fn a_subscriber_is_told_the_columns_and_gets_rows() {
    let mut plant = plant(false);
    let Value::List(told) = sub(&mut plant, RDB, "trade", &[""]) else { panic!() };
    assert_eq!(told[0], Value::symbol("trade"));
    let Value::Table { columns, .. } = &told[1] else { panic!() };
    let Value::Vector { kind, attribute, items } = &columns[1] else { panic!() };
    assert_eq!((*kind, *attribute, items.len()), (Type::SYMBOL, Attribute::GROUPED, 0));

    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 1.5, "x")]));
    let [(RDB, update)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(rows(update, "trade"), [("A".to_owned(), 1.5)]);
    let many = [("A", 1.0, "x"), ("B", 2.0, "yy"), ("A", 3.0, "")];
    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &many));
    let [(RDB, update)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(rows(update, "trade").len(), 3);
    // The rows have the time of the update, and unchanged notes.
    let Value::List(parts) = update else { panic!() };
    let Value::Table { columns, .. } = &parts[2] else { panic!() };
    let times = vec![Atom::Timespan(3_600_000_000_000); 3];
    assert_eq!(columns[0], Value::Vector { kind: Type::TIMESPAN, attribute: Attribute::NONE, items: times });
    assert_eq!(columns[3], Value::List(["x", "yy", ""].map(Value::string).into()));
    // A table without subscribers: nothing is sent.
    assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Async, "quote", &[("A", 1.5, "")])), []);
    let counters = plant.counters();
    assert_eq!((counters.updates, counters.rows, counters.sent), (3, 5, 2));
}

/// An answer may have megabytes and its query eighteen bytes: no answer is encoded for an asynchronous query.
#[test]
fn nothing_is_made_for_who_does_not_wait() {
    let mut plant = plant(false);
    sub(&mut plant, RDB, "trade", &["A", "B"]);
    let before = plant.counters();
    for text in [".u.w", "(.u.w;.u.w)", ".u.sub[`quote;`A]"] {
        let query = message(MessageKind::Async, |out| out.string(text.as_bytes()));
        assert_eq!(say(&mut plant, RDB, &query), []);
    }
    let counters = plant.counters();
    assert_eq!((counters.answered - before.answered, counters.answer_bytes), (3, before.answer_bytes));
    // The query is executed all the same.
    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "quote", &[("A", 1.5, "")]));
    assert_eq!(sent.len(), 1);
    ask(&mut plant, RDB, ".u.w");
    assert!(plant.counters().answer_bytes > before.answer_bytes);
}

#[test]
fn subscribers_of_symbols_get_their_rows() {
    let mut plant = plant(false);
    sub(&mut plant, RDB, "trade", &["A", "C"]);
    sub(&mut plant, OTHER, "trade", &["B"]);
    let many = [("A", 1.0, "one"), ("B", 2.0, "two"), ("C", 3.0, ""), ("D", 4.0, "four")];
    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &many));
    let [(RDB, first), (OTHER, second)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(rows(first, "trade"), [("A".to_owned(), 1.0), ("C".to_owned(), 3.0)]);
    assert_eq!(rows(second, "trade"), [("B".to_owned(), 2.0)]);
    let Value::List(parts) = first else { panic!() };
    let Value::Table { columns, .. } = &parts[2] else { panic!() };
    assert_eq!(columns[3], Value::List(["one", ""].map(Value::string).into()));
    // A new subscription replaces the old one, and a closed session has none.
    sub(&mut plant, RDB, "trade", &["D"]);
    plant.close(OTHER);
    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &many));
    let [(RDB, first)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(rows(first, "trade"), [("D".to_owned(), 4.0)]);
}

#[test]
fn r_q_is_told_what_to_replay() {
    let mut plant = plant(false);
    let mut header = [0; 8];
    let (writer, _) = LogWriter::begin(&mut header).unwrap();
    plant.log_to("/logs/sym2026.11.22", writer);
    for row in 0..3 {
        say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", f64::from(row), "x")]));
    }
    say(&mut plant, FEED, &upd(MessageKind::Async, "quote", &[("A", 1.0, "x"), ("B", 2.0, "")]));
    let Value::List(answer) = ask(&mut plant, RDB, "(.u.sub[`;`];`.u `i`L)") else { panic!() };
    assert_eq!(answer[1], Value::List(vec![long(4), Value::symbol(":/logs/sym2026.11.22")]));
    let Value::List(tables) = &answer[0] else { panic!() };
    assert_eq!(tables.len(), 2);
    // The log contains exactly the updates from before the subscription.
    let mut file = header.to_vec();
    file.extend_from_slice(plant.unlogged());
    let log: Vec<Value> =
        Log::parse(&file, Order::Little).unwrap().map(|entry| entry.value.to_value()).collect();
    assert_eq!(log.len(), 4);
    let Value::List(row) = &log[2] else { panic!() };
    let cells = [
        Value::Atom(Atom::Timespan(3_600_000_000_000)),
        Value::symbol("A"),
        Value::Atom(Atom::Float(2.0)),
        Value::string("x"),
    ];
    assert_eq!(row[2], Value::List(cells.into()), "a row is logged as its cells");
    plant.has_logged();
    assert_eq!(plant.unlogged().len(), 0);
    assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 9.0, "")])).len(), 1);
    assert_eq!(ask(&mut plant, RDB, ".u.i"), long(5));
    assert_eq!(ask(&mut plant, RDB, ".u.t"), symbols(&["trade", "quote"]));
    assert_eq!(ask(&mut plant, RDB, ".u.d"), Value::Atom(Atom::Date(NOW.date())));
    let Value::Dict { keys, values, .. } = ask(&mut plant, RDB, ".u.w") else { panic!() };
    assert_eq!(*keys, symbols(&["trade", "quote"]));
    let all = Value::List(vec![Value::List(vec![Value::Atom(Atom::Int(1)), Value::symbol("")])]);
    assert_eq!(*values, Value::List(vec![all.clone(), all]));
}

#[test]
fn without_a_log_there_is_nothing_to_replay() {
    let mut plant = plant(false);
    let answer = ask(&mut plant, RDB, "(.u.sub[`trade;`A];`.u `i`L)");
    let Value::List(answer) = answer else { panic!() };
    assert_eq!(answer[1], Value::List(vec![long(i64::MIN), Value::symbol("")]));
}

#[test]
fn timed_publication_counts_what_was_published() {
    let mut plant = plant(true);
    let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
    plant.log_to("log", writer);
    sub(&mut plant, RDB, "trade", &[""]);
    for _ in 0..2 {
        assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 1.0, "")])), []);
    }
    assert!(plant.has_rows());
    let Value::List(counts) = ask(&mut plant, OTHER, "(.u.i;.u.j)") else { panic!() };
    assert_eq!(counts, [long(0), long(2)]);
    // A new subscriber gets the waiting rows too.
    sub(&mut plant, OTHER, "trade", &[""]);
    let mut sent = Sent::default();
    plant.publish_all(&mut sent);
    let sent = values(&sent);
    let [(RDB, one), (OTHER, other)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(one, other);
    assert_eq!(rows(one, "trade").len(), 2);
    assert_eq!(ask(&mut plant, OTHER, ".u.i"), long(2));
    assert!(!plant.has_rows());
}

#[test]
fn a_day_ends_by_the_clock_or_by_a_call() {
    let mut plant = plant(false);
    sub(&mut plant, RDB, "quote", &["A"]);
    assert!(!plant.is_day_over(NOW));
    let tomorrow = Local(NOW.0 + 86_400_000_000_000);
    assert!(plant.is_day_over(tomorrow));
    let mut sent = Sent::default();
    plant.end_day(tomorrow, &mut sent);
    let end = Value::List(vec![Value::symbol(".u.end"), Value::Atom(Atom::Date(NOW.date()))]);
    assert_eq!(values(&sent), [(RDB, end)]);
    assert_eq!(plant.date(), tomorrow.date());
    let call = message(MessageKind::Sync, |out| {
        out.list(2)?;
        out.string(b".u.endofday")?;
        out.null()
    });
    assert_eq!(say(&mut plant, FEED, &call), [(FEED, Value::null())]);
    assert!(plant.is_day_over(tomorrow));
    plant.end_day(tomorrow, &mut Sent::default());
    // The day does not end again when the clock reaches its date.
    assert_eq!((plant.date(), plant.is_day_over(tomorrow)), (tomorrow.date() + 1, false));
}

#[test]
fn what_is_no_part_of_it_is_an_error_and_does_nothing() {
    let mut plant = plant(false);
    for text in ["2+2", "exit 0", "delete from `trade", ".z.p"] {
        assert!(error(&ask(&mut plant, RDB, text)).starts_with("nothing is evaluated here"), "{text}");
    }
    // Empty queries, which confirm that earlier messages were processed.
    for text in ["", " ", "::"] {
        assert_eq!(ask(&mut plant, RDB, text), Value::null(), "{text}");
    }
    assert!(error(&sub(&mut plant, RDB, "orders", &[""])).starts_with("orders: no such table"));
    assert!(error(&ask(&mut plant, RDB, "(.u.sub[`trade;`];.u.sub[`orders;`])")).starts_with("orders"));
    // No part of the query was executed either.
    assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 1.0, "")])), []);
    let wrong = message(MessageKind::Sync, |out| {
        out.list(3)?;
        out.string(b".u.sub")?;
        out.symbol(b"trade")?;
        out.atom(&Atom::<&[u8]>::Long(5))
    });
    assert!(error(&say(&mut plant, RDB, &wrong)[0].1).starts_with("type: .u.sub"));
    // An asynchronous call gets no answer.
    let mut wrong = wrong;
    wrong[1] = MessageKind::Async as u8;
    assert_eq!(say(&mut plant, RDB, &wrong), []);
    // A response without a request is ignored.
    wrong[1] = MessageKind::Response as u8;
    assert_eq!(say(&mut plant, RDB, &wrong), []);
    assert_eq!(plant.counters().refused, 8);
}

#[test]
fn rows_that_are_no_rows_of_the_table_are_refused_whole() {
    let mut plant = plant(true);
    sub(&mut plant, RDB, "trade", &[""]);
    type Write = fn(&mut tapeline_kdb::Encoder<'_>) -> Result<(), tapeline_kdb::Refused>;
    let cases: [(&str, Write); 4] = [
        ("length: 4 columns", |out| {
            out.list(2)?;
            out.symbol(b"A")?;
            out.atom(&Atom::<&[u8]>::Float(1.0))
        }),
        ("type: column price has float, found long", |out| {
            out.list(3)?;
            out.symbols([b"A".as_slice()])?;
            out.column(Type::LONG, [1_i64])?;
            out.list(1)?;
            out.string(b"")
        }),
        ("mismatch: column price", |out| {
            out.table([b"sym".as_slice(), b"size", b"note"])?;
            out.symbols([b"A".as_slice()])?;
            out.column(Type::FLOAT, [1.0])?;
            out.list(1)?;
            out.string(b"")
        }),
        ("expected 2 rows in column 2", |out| {
            out.list(3)?;
            out.symbols([b"A".as_slice(), b"B"])?;
            out.column(Type::FLOAT, [1.0])?;
            out.list(1)?;
            out.string(b"")
        }),
    ];
    for (expected, write) in cases {
        let call = message(MessageKind::Sync, |out| {
            out.list(3)?;
            out.symbol(b"upd")?;
            out.symbol(b"trade")?;
            write(out)
        });
        let answers = say(&mut plant, FEED, &call);
        let said = error(&answers[0].1);
        assert!(said.contains(expected), "{said}");
    }
    // No refused row was stored: the next rows are published alone.
    assert_eq!(
        say(&mut plant, FEED, &upd(MessageKind::Sync, "trade", &[("Z", 2.0, "")])),
        [(FEED, Value::null())]
    );
    let mut sent = Sent::default();
    plant.publish_all(&mut sent);
    assert_eq!(rows(&values(&sent)[0].1, "trade"), [("Z".to_owned(), 2.0)]);
}

#[test]
fn rights_are_by_table() {
    let mut plant = plant(false);
    let only = |publish: [bool; 2], subscribe: [bool; 2]| Rights {
        publish: publish.into(),
        subscribe: subscribe.into(),
        end_day: false,
    };
    plant.open(FEED, only([true, false], [false, false]), false);
    plant.open(RDB, only([false, false], [false, true]), false);
    assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Sync, "trade", &[("A", 1.0, "")])).len(), 1);
    let refused = say(&mut plant, FEED, &upd(MessageKind::Sync, "quote", &[("A", 1.0, "")]));
    assert!(error(&refused[0].1).starts_with("access"));
    assert!(error(&sub(&mut plant, FEED, "", &[""])).starts_with("access"));
    assert!(error(&sub(&mut plant, RDB, "trade", &[""])).starts_with("access"));
    // "All tables" means those that the session may subscribe to.
    let Value::List(tables) = ask(&mut plant, RDB, ".u.sub[`;`]") else { panic!() };
    assert_eq!(tables.len(), 1);
    let call = message(MessageKind::Sync, |out| {
        out.list(1)?;
        out.string(b".u.endofday")
    });
    assert!(error(&say(&mut plant, RDB, &call)[0].1).starts_with("access"));
    // A session that was never opened has no rights.
    assert!(error(&sub(&mut plant, SessionId(77), "trade", &[""])).starts_with("access"));
}

#[test]
fn names_in_a_row_are_a_call() {
    // `(`.u.sub;`trade;`)` as q writes it: a message of a vector of symbols.
    let call = b"\x01\x01\0\0\x1c\0\0\0\x0b\0\x03\0\0\0.u.sub\0trade\0\0";
    let mut plant = plant(false);
    let Value::List(told) = &say(&mut plant, RDB, call)[0].1 else { panic!("it was refused") };
    assert_eq!(told[0], Value::symbol("trade"));
    assert_eq!(say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 1.5, "x")])).len(), 1);
    let end = message(MessageKind::Sync, |out| out.symbols([b".u.endofday".as_slice(), b""]));
    assert_eq!(say(&mut plant, FEED, &end), [(FEED, Value::null())]);
    assert!(plant.is_day_over(NOW));
}

#[test]
fn only_an_atom_means_all_symbols() {
    let mut plant = plant(false);
    let none = message(MessageKind::Sync, |out| {
        out.list(3)?;
        out.symbol(b".u.sub")?;
        out.symbol(b"trade")?;
        out.symbols([b"".as_slice()])
    });
    say(&mut plant, RDB, &none);
    let sent = say(&mut plant, FEED, &upd(MessageKind::Async, "trade", &[("A", 1.0, ""), ("", 2.0, "")]));
    let [(RDB, update)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(rows(update, "trade"), [(String::new(), 2.0)]);
}

#[test]
fn a_list_takes_cells_that_q_has_made_a_vector_of() {
    let mut plant = plant(false);
    sub(&mut plant, RDB, "trade", &[""]);
    let call = message(MessageKind::Async, |out| {
        out.list(3)?;
        out.symbol(b"upd")?;
        out.symbol(b"trade")?;
        out.list(3)?;
        out.symbols([b"A".as_slice(), b"B"])?;
        out.column(Type::FLOAT, [1.0, 2.0])?;
        // Notes of one character each.
        out.string(b"xy")
    });
    let sent = say(&mut plant, FEED, &call);
    let Value::List(parts) = &sent[0].1 else { panic!() };
    let Value::Table { columns, .. } = &parts[2] else { panic!() };
    assert_eq!(columns[3], Value::List(vec![Value::Atom(Atom::Char(b'x')), Value::Atom(Atom::Char(b'y'))]));
}

#[test]
fn what_is_asked_is_of_what_one_may_have() {
    let mut plant = plant(false);
    let only = |publish: [bool; 2], subscribe: [bool; 2]| Rights {
        publish: publish.into(),
        subscribe: subscribe.into(),
        end_day: false,
    };
    plant.open(FEED, only([true, false], [false, false]), false);
    plant.open(RDB, only([false, false], [false, true]), false);
    sub(&mut plant, OTHER, "trade", &["secret"]);
    for text in [".u.w", ".u.i", ".u.j", ".u.L", "`.u `i`L"] {
        assert!(error(&ask(&mut plant, FEED, text)).starts_with("access"), "{text}");
    }
    assert_eq!(ask(&mut plant, FEED, ".u.t"), symbols(&["trade"]));
    assert_eq!(ask(&mut plant, RDB, ".u.t"), symbols(&["quote"]));
    let Value::Dict { keys, values, .. } = ask(&mut plant, RDB, ".u.w") else { panic!() };
    assert_eq!((*keys, *values), (symbols(&["quote"]), Value::List(vec![Value::List(Vec::new())])));
    assert!(error(&ask(&mut plant, RDB, ".u.endofday[]")).starts_with("access"));
    assert_eq!(ask(&mut plant, OTHER, ".u.endofday[]"), Value::null());
}

#[test]
fn long_messages_are_compressed_for_who_wants_that() {
    let mut plant = plant(false);
    plant.open(OTHER, Rights::all(2), true);
    for session in [RDB, OTHER] {
        sub(&mut plant, session, "trade", &[""]);
    }
    let many = vec![("AAPL", 1.0, ""); 500];
    let mut sent = Sent::default();
    let update = upd(MessageKind::Async, "trade", &many);
    plant.receive(FEED, &Message::parse(&update).unwrap(), NOW, &mut sent);
    let [(RDB, plain), (OTHER, packed)] = &sent.0[..] else { panic!() };
    assert_eq!((plain[2], packed[2]), (0, 1));
    let mut unpacked = Vec::new();
    tapeline_kdb::unpack(packed, 1 << 20, &mut unpacked).unwrap();
    assert_eq!(value(&unpacked), value(plain));
}

/// A program that takes the rows instead of the subscribers.
#[derive(Default)]
struct Onward {
    sent: Sent,
    /// The rows as calls of `upd`, and their symbols.
    rows: Vec<(Vec<u8>, String)>,
    /// The rows as they were.
    kept: KeptRows,
}

impl Outlets for Onward {
    fn send(&mut self, to: SessionId, message: &[u8]) {
        self.sent.send(to, message);
    }

    fn pass_on(&mut self, rows: &mut Passing<'_>) -> Result<(), &'static str> {
        assert_eq!(rows.table(), 0);
        while let Some(row) = rows.next_row() {
            let mut call = Vec::new();
            row.write(&mut call);
            self.rows.push((call, String::from_utf8(row.symbol().to_vec()).unwrap()));
        }
        assert!(rows.next_row().is_none());
        rows.keep(&mut self.kept);
        Ok(())
    }
}

#[test]
fn rows_that_are_passed_on_come_back_as_one_update() {
    let settings = Settings { passes_on: true, ..Settings::new(vec![schema("trade")]) };
    let mut plant = Tickerplant::new(settings, NOW.date());
    let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
    plant.log_to("log", writer);
    [FEED, RDB].into_iter().for_each(|session| plant.open(session, Rights::all(1), false));
    ask(&mut plant, RDB, ".u.sub[`trade;`]");
    let mut out = Onward::default();
    let update = upd(MessageKind::Sync, "trade", &[("A", 1.0, "x"), ("BB", 2.0, ""), ("C", 3.0, "yyy")]);
    plant.receive(FEED, &Message::parse(&update).unwrap(), NOW, &mut out);
    // The sender has an answer, and no subscriber has rows.
    assert_eq!(values(&out.sent), [(FEED, Value::null())]);
    assert_eq!((plant.counters().rows, plant.log_messages()), (0, 0));
    out.sent.0.clear();
    let later = Local(NOW.0 + 1);
    for (call, symbol) in &out.rows {
        let view = View::parse(call, Order::Little).unwrap();
        let update = Update::of(&view).unwrap();
        assert_eq!(update.rows.columns().len(), 4, "the time is in it, and stays");
        plant.add(&update, later).unwrap();
        assert!(["A", "BB", "C"].contains(&symbol.as_str()));
    }
    assert!(plant.has_rows() && out.sent.0.is_empty());
    plant.publish_added(&mut out);
    let [(RDB, update)] = &values(&out.sent)[..] else { panic!("{:?}", out.sent) };
    let expected = [("A", 1.0), ("BB", 2.0), ("C", 3.0)].map(|(symbol, price)| (symbol.to_owned(), price));
    assert_eq!(rows(update, "trade"), expected);
    let as_rows = format!("{update:?}");
    let Value::List(parts) = update else { panic!() };
    let Value::Table { columns, .. } = &parts[2] else { panic!() };
    let Value::Vector { items, .. } = &columns[0] else { panic!() };
    assert_eq!(items[..], [(); 3].map(|()| Atom::<Box<[u8]>>::Timespan(NOW.of_day_ns())));
    let counters = plant.counters();
    assert_eq!((counters.updates, counters.rows, plant.log_messages()), (1, 3, 1));
    // Kept rows come back as the same update, and so do those of the next update.
    for symbol in ["A", "ZZ"] {
        if symbol == "ZZ" {
            let update = upd(MessageKind::Async, "trade", &[("ZZ", 9.0, "zz")]);
            plant.receive(FEED, &Message::parse(&update).unwrap(), NOW, &mut out);
        }
        out.sent.0.clear();
        plant.add_kept(&out.kept);
        plant.publish_added(&mut out);
        let [(RDB, again)] = &values(&out.sent)[..] else { panic!("{:?}", out.sent) };
        match symbol {
            "A" => assert_eq!(format!("{again:?}"), as_rows, "kept, and row by row"),
            _ => assert_eq!(rows(again, "trade"), [("ZZ".to_owned(), 9.0)]),
        }
    }
    // Nothing is added to a table that does not exist, and no cells that do not match the columns.
    let other = upd(MessageKind::Async, "other", &[("A", 1.0, "x")]);
    let other = Message::parse(&other).unwrap().view().unwrap();
    assert!(matches!(plant.add(&Update::of(&other).unwrap(), NOW), Err(Wrong::NoTable(_))));
    assert!(!plant.add_row(0, |_, cell| cell.extend_from_slice(b"no cell")));
    assert!(!plant.add_row(1, |_, _| {}) && !plant.has_rows());
}

#[test]
fn rows_that_are_added_wait_for_the_timer_and_are_logged_before() {
    let mut plant = plant(true);
    let (writer, _) = LogWriter::begin(&mut [0; 8]).unwrap();
    plant.log_to("log", writer);
    ask(&mut plant, RDB, ".u.sub[`trade;`]");
    let mut sent = Sent::default();
    let row = |price: f64| {
        move |at: usize, cell: &mut Vec<u8>| match at {
            0 => cell.extend_from_slice(&7_i64.to_le_bytes()),
            1 => cell.extend_from_slice(b"A\0"),
            2 => cell.extend_from_slice(&price.to_le_bytes()),
            _ => cell.extend_from_slice(&[0xF6, b'x']),
        }
    };
    assert!(plant.add_row(0, row(1.0)) && plant.add_row(0, row(2.0)));
    plant.publish_added(&mut sent);
    assert!(plant.add_row(0, row(3.0)));
    plant.publish_added(&mut sent);
    assert_eq!((sent.0.len(), plant.log_messages()), (0, 2));
    plant.publish_all(&mut sent);
    let [(RDB, update)] = &values(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(rows(update, "trade"), [1.0, 2.0, 3.0].map(|price| ("A".to_owned(), price)));
    let logged = plant.unlogged().to_vec();
    let bytes = [&tapeline_kdb::LOG_HEADER[..], &logged].concat();
    let counts: Vec<_> = Log::parse(&bytes, Order::Little)
        .unwrap()
        .map(|entry| Update::of(&entry.value).unwrap().rows.len())
        .collect();
    assert_eq!(counts, [2, 1]);
}

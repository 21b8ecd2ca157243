//! Bytes that kdb+ is known to write, in both directions: the examples of Kx's page on serialization
//! (<https://code.kx.com/q/kb/serialization/>), and values of each basic type from the table of data types.
use tapeline_kdb::{Atom, Attribute, Encoder, Message, MessageKind, Order, Type, Value, View};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|digit| !digit.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn vector(kind: Type, items: impl IntoIterator<Item = Atom<Box<[u8]>>>) -> Value {
    Value::Vector { kind, attribute: Attribute::NONE, items: items.into_iter().collect() }
}

fn ints<const N: usize>(items: [i32; N]) -> Value {
    vector(Type::INT, items.map(Atom::Int))
}

fn symbols<const N: usize>(names: [&str; N]) -> Value {
    vector(Type::SYMBOL, names.map(|name| Atom::Symbol(name.as_bytes().into())))
}

fn dict(keys: Value, values: Value) -> Value {
    Value::Dict { is_sorted: false, keys: Box::new(keys), values: Box::new(values) }
}

fn table<const N: usize>(names: [&str; N], columns: [Value; N]) -> Value {
    Value::Table { names: names.map(|name| name.as_bytes().into()).into(), columns: columns.into() }
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Vector { kind, items, .. } => Value::Vector { kind, attribute: Attribute::SORTED, items },
        other => other,
    }
}

fn lambda(namespace: &str, text: &str) -> Value {
    Value::Function {
        kind: Type::LAMBDA,
        head: namespace.as_bytes().into(),
        parts: vec![Value::string(text)],
    }
}

/// Returns results of `-8!`, with the values.
fn messages() -> Vec<(&'static str, Value)> {
    let byte_list = vector(Type::BYTE, (0..5).map(Atom::Byte));
    vec![
        ("01000000 0d000000 fa 01000000", Value::Atom(Atom::Int(1))),
        ("01000000 12000000 0600 01000000 01000000", ints([1])),
        ("01000000 13000000 0400 05000000 0001020304", byte_list.clone()),
        ("01000000 19000000 0000 01000000 0400 05000000 0001020304", Value::List(vec![byte_list])),
        (
            "01000000 21000000 63 0b00 02000000 6100 6200 0600 02000000 02000000 03000000",
            dict(symbols(["a", "b"]), ints([2, 3])),
        ),
        (
            "01000000 21000000 7f 0b01 02000000 6100 6200 0600 02000000 02000000 03000000",
            Value::Dict {
                is_sorted: true,
                keys: Box::new(sorted(symbols(["a", "b"]))),
                values: Box::new(ints([2, 3])),
            },
        ),
        (
            "01000000 2d000000 63 0b00 02000000 6100 6200 0000 02000000 \
             0600 01000000 02000000 0600 01000000 03000000",
            dict(symbols(["a", "b"]), Value::List(vec![ints([2]), ints([3])])),
        ),
        (
            "01000000 2f000000 62 00 63 0b00 02000000 6100 6200 0000 02000000 \
             0600 01000000 02000000 0600 01000000 03000000",
            table(["a", "b"], [ints([2]), ints([3])]),
        ),
        (
            "01000000 3f000000 63 \
             62 00 63 0b00 01000000 6100 0000 01000000 0600 01000000 02000000 \
             62 00 63 0b00 01000000 6200 0000 01000000 0600 01000000 03000000",
            dict(table(["a"], [ints([2])]), table(["b"], [ints([3])])),
        ),
        ("01000000 15000000 64 00 0a00 05000000 7b782b797d", lambda("", "{x+y}")),
        ("01000000 16000000 64 6400 0a00 05000000 7b782b797d", lambda("d", "{x+y}")),
    ]
}

/// Returns a value of each other type; nulls, infinities.
fn values() -> Vec<(&'static str, Value)> {
    let atom = Value::Atom;
    let function = |kind, head: &[u8], parts: &[Value]| Value::Function {
        kind: Type(kind),
        head: head.into(),
        parts: parts.to_vec(),
    };
    vec![
        ("ff 01", atom(Atom::Boolean(true))),
        ("fe 000102030405060708090a0b0c0d0e0f", atom(Atom::Guid(std::array::from_fn(|place| place as u8)))),
        ("fc 2a", atom(Atom::Byte(42))),
        ("fb 16ff", atom(Atom::Short(-234))),
        ("fb 0080", atom(Atom::Short(i16::MIN))),
        ("fa ffffff7f", atom(Atom::Int(i32::MAX))),
        ("f9 0000000000000080", atom(Atom::Long(i64::MIN))),
        ("f8 0000b040", atom(Atom::Real(5.5))),
        ("f7 ac1c5a643bdf0940", atom(Atom::Float(3.234))),
        ("f7 000000000000f07f", atom(Atom::Float(f64::INFINITY))),
        ("f6 30", atom(Atom::Char(b'0'))),
        ("f5 61626300", atom(Atom::Symbol((*b"abc").into()))),
        ("f5 00", Value::symbol("")),
        ("f4 00c0cafa20fe0000", atom(Atom::Timestamp(279_417_600_000_000))),
        ("f3 0c000000", atom(Atom::Month(12))),
        ("f2 6e010000", atom(Atom::Date(366))),
        ("f1 ac1c5a643bdf0940", atom(Atom::Datetime(3.234))),
        ("f0 00c0dd4663120000", atom(Atom::Timespan(20_217_600_000_000))),
        ("ef d1020000", atom(Atom::Minute(721))),
        ("ee eca90000", atom(Atom::Second(43_500))),
        ("ed 73be9702", atom(Atom::Time(43_499_123))),
        ("0000 00000000", Value::List(Vec::new())),
        ("0a00 03000000 616263", Value::string("abc")),
        ("0b01 02000000 6100 6200", sorted(symbols(["a", "b"]))),
        ("0100 03000000 000100", vector(Type::BOOLEAN, [false, true, false].map(Atom::Boolean))),
        ("0c00 01000000 0000000000000080", vector(Type::TIMESTAMP, [Atom::Timestamp(i64::MIN)])),
        ("65 00", Value::null()),
        ("66 01", function(102, &[1], &[])),
        ("67 02", function(103, &[2], &[])),
        (
            "68 02000000 66 01 f901 00000000000000",
            function(104, &[], &[function(102, &[1], &[]), atom(Atom::Long(1))]),
        ),
        (
            "69 02000000 65 01 65 02",
            function(105, &[], &[function(101, &[1], &[]), function(101, &[2], &[])]),
        ),
        ("6a 66 01", function(106, &[], &[function(102, &[1], &[])])),
        ("6f 66 01", function(111, &[], &[function(102, &[1], &[])])),
        ("80 7479706500", Value::Error((*b"type").into())),
    ]
}

#[test]
fn messages_are_read_and_written() {
    for (hex, value) in messages() {
        let expected = bytes(hex);
        let message = Message::parse(&expected).unwrap();
        assert_eq!((message.kind, message.order), (MessageKind::Async, Order::Little));
        assert_eq!(message.view().unwrap().to_value(), value, "{hex}");
        let mut room = [0; 128];
        let mut encoder = Encoder::message(&mut room, MessageKind::Async).unwrap();
        encoder.value(&value).unwrap();
        let len = encoder.finish().unwrap();
        assert_eq!(room[..len], expected, "{value:?}");
    }
}

#[test]
fn values_are_read_and_written() {
    for (hex, value) in values() {
        let expected = bytes(hex);
        assert_eq!(Value::parse(&expected, Order::Little), Ok(value.clone()), "{hex}");
        let mut room = [0; 128];
        let mut encoder = Encoder::value_alone(&mut room);
        encoder.value(&value).unwrap();
        let len = encoder.finish().unwrap();
        assert_eq!(room[..len], expected, "{value:?}");
    }
}

/// Bytes from a machine of the other byte order.
#[test]
fn the_other_byte_order_is_read() {
    let message = bytes("00010000 0000001a 0600 00000003 00000001 80000000 fffffffe");
    let message = Message::parse(&message).unwrap();
    assert_eq!((message.kind, message.order), (MessageKind::Sync, Order::Big));
    assert_eq!(message.view().unwrap().to_value(), ints([1, i32::MIN, -2]));
}

/// Vectors of capability 6: the attribute's highest bit says that the count has eight bytes.
#[test]
fn long_counts_are_read() {
    let view = bytes("0680 0200000000000000 01000000 02000000");
    assert_eq!(Value::parse(&view, Order::Little), Ok(ints([1, 2])));
}

#[test]
fn keyed_tables_and_nulls_are_told_apart() {
    let messages = messages();
    let keyed = bytes(messages[8].0);
    let View::Dict(dict) = Message::parse(&keyed).unwrap().view().unwrap() else { panic!("no dictionary") };
    let (keys, columns) = dict.keyed_table().unwrap();
    assert_eq!((keys.rows(), columns.rows()), (1, 1));
    assert_eq!(columns.names().symbols().unwrap().collect::<Vec<_>>(), [b"b"]);
    let null = bytes("65 00");
    assert!(matches!(View::parse(&null, Order::Little), Ok(View::Function(function)) if function.is_null()));
}

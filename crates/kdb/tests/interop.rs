//! qpython3 (Apache-2.0, from PyPI) reads what this crate writes, and the reverse. `make interop` installs it and sets
//! `INTEROP` to its folder; without `INTEROP`, the test is skipped.
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tapeline_kdb::{Atom, Attribute, Encoder, Message, MessageKind, Type, Value, pack};

fn vector<const N: usize>(kind: Type, items: [Atom<Box<[u8]>>; N]) -> Value {
    Value::Vector { kind, attribute: Attribute::NONE, items: items.into() }
}

fn names<const N: usize>(names: [&str; N]) -> Value {
    vector(Type::SYMBOL, names.map(|name| Atom::Symbol(name.as_bytes().into())))
}

/// Returns two atoms of each basic type, one of them a null if the type has one.
fn pairs() -> Vec<[Atom<Box<[u8]>>; 2]> {
    let (int, long) = (i32::MIN, i64::MIN);
    vec![
        [Atom::Boolean(true), Atom::Boolean(false)],
        [Atom::Guid([7; 16]), Atom::Guid([0; 16])],
        [Atom::Byte(42), Atom::Byte(255)],
        [Atom::Short(-234), Atom::Short(i16::MIN)],
        [Atom::Int(i32::MAX), Atom::Int(int)],
        [Atom::Long(i64::MAX), Atom::Long(long)],
        [Atom::Real(5.5), Atom::Real(f32::NAN)],
        [Atom::Float(3.234), Atom::Float(f64::INFINITY)],
        [Atom::Symbol((*b"AAPL").into()), Atom::Symbol([].into())],
        [Atom::Timestamp(708_697_697_727_152_000), Atom::Timestamp(long)],
        [Atom::Month(12), Atom::Month(int)],
        [Atom::Date(366), Atom::Date(int)],
        [Atom::Datetime(3.5), Atom::Datetime(f64::NAN)],
        [Atom::Timespan(20_217_600_000_000), Atom::Timespan(long)],
        [Atom::Minute(721), Atom::Minute(int)],
        [Atom::Second(43_500), Atom::Second(int)],
        [Atom::Time(43_499_123), Atom::Time(int)],
    ]
}

fn values() -> Vec<Value> {
    let mut values = Vec::new();
    for [one, other] in pairs() {
        values.push(Value::Atom(one.clone()));
        values.push(Value::Atom(other.clone()));
        values.push(vector(one.kind().vector(), [one, other]));
    }
    let table = Value::Table {
        names: vec![(*b"sym").into(), (*b"price").into(), (*b"time").into()],
        columns: vec![
            names(["AAPL", "IBM"]),
            vector(Type::FLOAT, [84.28, 1.5].map(Atom::Float)),
            vector(Type::TIMESTAMP, [1, i64::MIN].map(Atom::Timestamp)),
        ],
    };
    let column =
        |name: &str, column| Value::Table { names: vec![name.as_bytes().into()], columns: vec![column] };
    let dict = |keys: Value, values: Value| Value::Dict {
        is_sorted: false,
        keys: keys.into(),
        values: values.into(),
    };
    values.extend([
        Value::Atom(Atom::Char(b'x')),
        Value::string("a note"),
        Value::string(""),
        Value::List(Vec::new()),
        Value::List(vec![
            Value::symbol("upd"),
            Value::symbol("trade"),
            Value::List(vec![names(["A", "B"]), Value::Atom(Atom::Long(7))]),
        ]),
        Value::null(),
        dict(names(["a", "b"]), vector(Type::INT, [2, 3].map(Atom::Int))),
        table.clone(),
        dict(column("k", vector(Type::LONG, [1, 2].map(Atom::Long))), column("v", names(["x", "y"]))),
        Value::List(vec![Value::symbol("upd"), Value::symbol("trade"), table]),
        // Long enough to be compressed.
        Value::Vector {
            kind: Type::SYMBOL,
            attribute: Attribute::NONE,
            items: vec![Atom::Symbol((*b"q").into()); 1_000],
        },
        Value::Function { kind: Type::LAMBDA, head: [].into(), parts: vec![Value::string("{x+y}")] },
        Value::Function { kind: Type::BINARY, head: [1].into(), parts: Vec::new() },
    ]);
    values
}

fn message(value: &Value) -> Vec<u8> {
    let mut room = vec![0; 16_384];
    let mut encoder = Encoder::message(&mut room, MessageKind::Response).unwrap();
    encoder.value(value).unwrap();
    let len = encoder.finish().unwrap();
    let mut packed = vec![0; len];
    match pack(&room[..len], &mut packed) {
        Some(len) => packed.truncate(len),
        None => packed = room[..len].to_vec(),
    }
    packed
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn qpython_reads_and_writes_the_same() {
    let Some(place) = std::env::var_os("INTEROP") else {
        println!("skipped: INTEROP names no folder with qpython3; `make interop` makes one");
        return;
    };
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/interop/python/q_values.py");
    let mut child = Command::new(Path::new(&place).join("python/bin/python"))
        .args(["-W", "ignore"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let values = values();
    let packed = values.iter().filter(|value| message(value)[2] == 1).count();
    assert_eq!(packed, 1);
    let error = Value::Error((*b"type").into());
    let lines: Vec<String> =
        std::iter::once(&error).chain(&values).map(|value| hex(&message(value))).collect();
    let mut input = child.stdin.take().unwrap();
    // In parallel with reading the answers, which would fill their pipe.
    let writer = std::thread::spawn(move || lines.iter().for_each(|line| writeln!(input, "{line}").unwrap()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let mut answers = answers.lines();
    assert_eq!(answers.next(), Some("error b'type'"));
    let mut read_only = 0;
    for value in &values {
        let answer = answers.next().unwrap_or_else(|| panic!("no answer to {value:?}"));
        if answer.starts_with("read ") {
            // The library does not keep the number of q's own functions.
            assert!(matches!(value, Value::Function { .. }), "{value:?}: {answer}");
            read_only += 1;
            continue;
        }
        let bytes: Vec<u8> = answer
            .as_bytes()
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(str::from_utf8(pair).unwrap(), 16)
                    .unwrap_or_else(|_| panic!("{value:?}: {answer}"))
            })
            .collect();
        let again = Message::parse(&bytes).unwrap().view().unwrap().to_value();
        assert_eq!(again, *value, "{answer}");
    }
    println!("qpython3: {} values read and written again, {read_only} read", values.len() - read_only);
}

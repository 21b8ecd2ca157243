//! Refused input: the fault, its offset and its text.
use tapeline_kdb::{
    Atom, Attribute, Encoder, Fault, Header, Log, Message, MessageKind, NoUpdate, Order, Refused, Type,
    Update, Value, View, unpack,
};

fn fault(bytes: &[u8]) -> String {
    View::parse(bytes, Order::Little).unwrap_err().to_string()
}

#[test]
fn malformed_values_are_named_with_their_place() {
    let cases: [(&[u8], &str); 16] = [
        (b"", "at byte 0: expected 1 more bytes of a type, found the end after 0"),
        (b"\xFA\x01", "at byte 1: expected 4 more bytes of int, found the end after 1"),
        (b"\xF5ab", "at byte 1: expected 3 more bytes of a symbol, found the end after 2"),
        (
            b"\x03\0\0\0\0\0",
            "at byte 0: expected the type of a value, found 3, which is none that can be read",
        ),
        (
            b"\x14\0\0\0\0\0",
            "at byte 0: expected the type of a value, found 20, which is none that can be read",
        ),
        (b"\x70\0", "at byte 0: expected the type of a value, found 112, which is none that can be read"),
        (b"\x06\0\xFF\xFF\xFF\xFF", "at byte 2: expected a number of items, found -1"),
        (b"\x06\0\x02\0\0\0abcd", "at byte 6: expected 8 more bytes of int, found the end after 4"),
        (
            b"\x07\0\xFF\xFF\xFF\x7F",
            "at byte 6: expected 17179869176 more bytes of long, found the end after 0",
        ),
        (b"\x0B\0\x02\0\0\0a\0b", "at byte 6: expected 4 more bytes of symbols, found the end after 3"),
        (b"\0\0\xFF\xFF\0\0\xFF\0", "at byte 6: expected 131070 more bytes of a list, found the end after 2"),
        (b"\xFF\x01\x02", "at byte 2: expected the end of the message, found 1 more bytes"),
        (b"\x62\0\xFF\0", "at byte 2: expected a dictionary in a table, found type -1"),
        (b"\x62\0\x63\xFF\0", "at byte 3: expected the columns' names in a table, found type -1"),
        (
            b"\x62\0\x63\x0B\0\x01\0\0\0a\0\0\0\x01\0\0\0\xFF\0",
            "at byte 17: expected columns in a table, found type -1",
        ),
        (b"\x63\x04\0\x01\0\0\0\0\x04\0\0\0\0\0", "at byte 0: expected 1 values in a dictionary, found 0"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(fault(bytes), expected, "{bytes:02x?}");
    }
}

#[test]
fn a_table_has_columns_of_one_length() {
    let names = b"\x62\0\x63\x0B\0\x02\0\0\0a\0b\0";
    let two = b"\0\0\x02\0\0\0\x04\0\x01\0\0\0\x01\x04\0\x02\0\0\0\x01\x02";
    assert_eq!(
        fault(&[&names[..], two].concat()),
        "at byte 26: expected 1 rows in a table's column, found 2"
    );
    let one = b"\0\0\x01\0\0\0\x04\0\x01\0\0\0\x01";
    assert_eq!(fault(&[&names[..], one].concat()), "at byte 13: expected 2 columns in a table, found 1");
}

#[test]
fn values_too_deep_in_each_other_are_refused() {
    let nested = |depth: usize| [b"\0\0\x01\0\0\0".repeat(depth), b"\xFF\x01".to_vec()].concat();
    assert!(View::parse(&nested(63), Order::Little).is_ok());
    let fault = View::parse(&nested(64), Order::Little).unwrap_err();
    assert_eq!((fault.offset, fault.fault), (64 * 6, Fault::TooDeep));
}

/// If values were read twice at each level, this test would not end.
#[test]
fn values_deep_in_each_other_are_read_once() {
    let mut dict = b"\x04\0\0\0\0\0".to_vec();
    let mut table = b"\x04\0\x01\0\0\0\x07".to_vec();
    for depth in 0..60 {
        dict = [b"\x63".to_vec(), dict, b"\x04\0\0\0\0\0".to_vec()].concat();
        if depth % 2 == 0 {
            table = [b"\x62\0\x63\x0B\0\x01\0\0\0a\0\0\0\x01\0\0\0".to_vec(), table].concat();
        }
    }
    assert_eq!(View::parse(&dict, Order::Little).unwrap().count(), 0);
    assert_eq!(View::parse(&table, Order::Little).unwrap().count(), 1);
    assert!(matches!(Value::parse(&table, Order::Little), Ok(Value::Table { .. })));
}

#[test]
fn malformed_headers_are_named() {
    let header = |bytes: [u8; 8]| Header::parse(&bytes, 1_000).unwrap_err().to_string();
    assert_eq!(
        header([2, 0, 0, 0, 10, 0, 0, 0]),
        "at byte 0: expected byte order 0 or 1 at the start of a message, found 2"
    );
    assert_eq!(
        header([1, 3, 0, 0, 10, 0, 0, 0]),
        "at byte 1: expected a message of kind 0 (async), 1 (sync) or 2 (response), found 3"
    );
    assert_eq!(
        header([1, 0, 2, 0, 10, 0, 0, 0]),
        "at byte 2: expected a message that is plain (0) or compressed (1), found 2"
    );
    assert_eq!(
        header([1, 0, 0, 0, 8, 0, 0, 0]),
        "at byte 4: expected a message of 10 to 1000 bytes, found one of 8"
    );
    assert_eq!(
        header([0, 0, 0, 1, 0, 0, 0, 10]),
        "at byte 4: expected a message of 10 to 1000 bytes, found one of 4294967306"
    );
    assert_eq!(Message::parse(&[1, 0, 0, 0, 11, 0, 0, 0, 1]).unwrap_err().offset, 8);
    // Faults in the value are counted from the message's first byte.
    let message = [1, 0, 0, 0, 10, 0, 0, 0, 3, 0];
    assert_eq!(Message::parse(&message).unwrap().view().unwrap_err().offset, 8);
}

#[test]
fn compressed_bytes_that_lie_are_refused() {
    let packed = |size: u32, elements: &[u8]| {
        let len = 12 + elements.len() as u32;
        let head = [&[1, 0, 1, 0][..], &len.to_le_bytes(), &size.to_le_bytes()].concat();
        unpack(&[&head, elements].concat(), 1 << 20, &mut Vec::new()).unwrap_err()
    };
    // States a gigabyte; states a megabyte, in three bytes; states less than a header.
    assert_eq!(packed(1 << 30, &[0; 100]).offset, 8);
    assert_eq!(packed(1 << 20, &[1, 2, 3]).fault, Fault::Packed { expected: 1 << 20 });
    assert!(matches!(packed(9, &[0, 1]).fault, Fault::Size { found: 9, .. }));
    // Repeats bytes that do not exist, exceeds the size, ends before it, has bytes after the end.
    assert_eq!(packed(20, &[1, 0, 0]).fault, Fault::Reference);
    assert_eq!(packed(20, &[8, 1, 2, 3, 1 ^ 2, 200]).fault, Fault::Packed { expected: 20 });
    assert_eq!(packed(20, &[0, 1, 2, 3]).fault, Fault::Packed { expected: 20 });
    assert_eq!(packed(10, &[0, 1, 2, 3]).fault, Fault::Trailing(1));
    assert_eq!(packed(10, &[0, 1, 2, 3]).offset, 12 + 3);
}

#[test]
fn files_that_are_no_logs_are_named() {
    let message = |bytes: &[u8]| Log::parse(bytes, Order::Little).unwrap_err().to_string();
    assert_eq!(
        message(b"\xFF\x01"),
        "at byte 0: expected 8 more bytes of a log's header, found the end after 2"
    );
    assert!(
        message(b"kxzippedabc").ends_with(": a file that kdb+ compressed"),
        "{}",
        message(b"kxzippedabc")
    );
    assert!(message(b"\x1F\x8B\x08\0\0\0\0\0").ends_with(": gzip"));
    assert!(message(b"\xFF\x01\x0B\0\0\0\0\0").ends_with(": a kdb+ file, but no list of messages"));
    assert!(message(b"\x01\0\0\0\x0D\0\0\0").ends_with(": a message as it travels"));
    assert!(message(b"time,sym").contains("[74, 69, 6d, 65, 2c, 73, 79, 6d]"));
}

#[test]
fn what_is_no_update_is_named() {
    let no_update = |value: Value| {
        let mut room = [0; 256];
        let mut encoder = Encoder::value_alone(&mut room);
        encoder.value(&value).unwrap();
        let len = encoder.finish().unwrap();
        Update::of(&View::parse(&room[..len], Order::Little).unwrap()).unwrap_err()
    };
    let list = |rows: Value| Value::List(vec![Value::symbol("upd"), Value::symbol("trade"), rows]);
    let bytes = |count: usize| Value::Vector {
        kind: Type::BYTE,
        attribute: Attribute::NONE,
        items: vec![Atom::Byte(1); count],
    };
    assert_eq!(no_update(Value::symbol("upd")), NoUpdate::Shape { kind: Type(-11), count: 1 });
    assert_eq!(no_update(Value::List(vec![Value::null()])), NoUpdate::Shape { kind: Type(0), count: 1 });
    let unnamed = Value::List(vec![Value::symbol("upd"), bytes(1), bytes(1)]);
    assert_eq!(no_update(unnamed), NoUpdate::Name { what: "table", found: Type::BYTE });
    assert_eq!(no_update(list(Value::null())), NoUpdate::Rows(Type::UNARY));
    let uneven = Value::List(vec![bytes(2), bytes(3)]);
    assert_eq!(no_update(list(uneven)), NoUpdate::Uneven { column: 2, expected: 2, found: 3 });
    let odd = Value::List(vec![bytes(1), Value::null()]);
    assert_eq!(no_update(list(odd)), NoUpdate::Column { column: 2, found: Type::UNARY });
}

#[test]
fn encoders_refuse_what_is_not_whole() {
    let mut room = [0; 64];
    let mut short = Encoder::message(&mut room, MessageKind::Async).unwrap();
    short.list(2).unwrap();
    short.symbol(b"a").unwrap();
    assert_eq!(short.finish(), Err(Refused::Unfinished(1)));
    let mut long = Encoder::value_alone(&mut room);
    long.symbol(b"a").unwrap();
    assert_eq!(long.symbol(b"b"), Err(Refused::Superfluous));
    let mut one = Encoder::value_alone(&mut room);
    assert_eq!(one.column(Type::LONG, [1.5]), Err(Refused::WrongType(Type::LONG)));
    assert_eq!(one.symbol(b"a\0b"), Err(Refused::Zero));
    assert_eq!(Encoder::message(&mut [0; 7], MessageKind::Async).err(), Some(Refused::Full));
    for size in 0..14 {
        let mut small = vec![0; size];
        let mut encoder = Encoder::value_alone(&mut small);
        assert_eq!(encoder.column(Type::LONG, [1_i64]), Err(Refused::Full), "{size}");
    }
    // An iterator that miscounts.
    struct Lies;
    impl Iterator for Lies {
        type Item = i64;
        fn next(&mut self) -> Option<i64> {
            None
        }
    }
    impl ExactSizeIterator for Lies {
        fn len(&self) -> usize {
            3
        }
    }
    let mut lied = Encoder::value_alone(&mut room);
    assert_eq!(lied.column(Type::LONG, Lies), Err(Refused::Miscounted { said: 3, came: 0 }));
}

//! Properties of every value, and of arbitrary bytes.
use crate::oracle;

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_kdb::{
    Atom, Attribute, Encoder, Frames, Log, LogWriter, Message, MessageKind, Order, Type, Value, pack, unpack,
};

type Owned = Atom<Box<[u8]>>;

fn name() -> impl Strategy<Value = Box<[u8]>> {
    vec(1..=255_u8, 0..9).prop_map(Into::into)
}

/// Arbitrary numbers and special ones: nulls, infinities and their neighbours.
fn int() -> impl Strategy<Value = i32> {
    prop_oneof![any::<i32>(), Just(i32::MIN), Just(i32::MAX), Just(-i32::MAX)]
}

fn long() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX), Just(-i64::MAX)]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), Just(-0.0)]
}

/// Returns an atom of the type with this number.
fn atom_of(kind: i8) -> BoxedStrategy<Owned> {
    match Type(kind) {
        Type::BOOLEAN => any::<bool>().prop_map(Atom::Boolean).boxed(),
        Type::GUID => any::<[u8; 16]>().prop_map(Atom::Guid).boxed(),
        Type::BYTE => any::<u8>().prop_map(Atom::Byte).boxed(),
        Type::SHORT => any::<i16>().prop_map(Atom::Short).boxed(),
        Type::INT => int().prop_map(Atom::Int).boxed(),
        Type::LONG => long().prop_map(Atom::Long).boxed(),
        Type::REAL => any::<f32>().prop_map(Atom::Real).boxed(),
        Type::FLOAT => float().prop_map(Atom::Float).boxed(),
        Type::CHAR => any::<u8>().prop_map(Atom::Char).boxed(),
        Type::SYMBOL => name().prop_map(Atom::Symbol).boxed(),
        Type::TIMESTAMP => long().prop_map(Atom::Timestamp).boxed(),
        Type::MONTH => int().prop_map(Atom::Month).boxed(),
        Type::DATE => int().prop_map(Atom::Date).boxed(),
        Type::DATETIME => float().prop_map(Atom::Datetime).boxed(),
        Type::TIMESPAN => long().prop_map(Atom::Timespan).boxed(),
        Type::MINUTE => int().prop_map(Atom::Minute).boxed(),
        Type::SECOND => int().prop_map(Atom::Second).boxed(),
        _ => int().prop_map(Atom::Time).boxed(),
    }
}

fn kind() -> impl Strategy<Value = i8> {
    (1..=18_i8).prop_map(|kind| if kind == 3 { 19 } else { kind })
}

fn vector_of(count: usize) -> impl Strategy<Value = Value> {
    (kind(), 0..5_u8).prop_flat_map(move |(kind, attribute)| {
        vec(atom_of(kind), count).prop_map(move |items| Value::Vector {
            kind: Type(kind),
            attribute: Attribute(attribute),
            items,
        })
    })
}

fn table() -> impl Strategy<Value = Value> {
    (0..5_usize, 0..5_usize).prop_flat_map(|(width, rows)| {
        (vec(name(), width), vec(vector_of(rows), width))
            .prop_map(|(names, columns)| Value::Table { names, columns })
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        kind().prop_flat_map(atom_of).prop_map(Value::Atom),
        (0..20_usize).prop_flat_map(vector_of),
        table(),
        name().prop_map(Value::Error),
        any::<u8>().prop_map(|code| Value::Function {
            kind: Type::UNARY,
            head: [code].into(),
            parts: Vec::new()
        }),
        any::<u8>().prop_map(|code| Value::Function {
            kind: Type::ITERATOR,
            head: [code].into(),
            parts: Vec::new()
        }),
    ];
    leaf.prop_recursive(6, 64, 6, |inner| {
        let function = |kind, head: Box<[u8]>, parts| Value::Function { kind, head, parts };
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::List),
            (any::<bool>(), vec((inner.clone(), inner.clone()), 0..4)).prop_map(|(is_sorted, pairs)| {
                let (keys, values) = pairs.into_iter().unzip();
                let (keys, values) = (Value::List(keys).into(), Value::List(values).into());
                Value::Dict { is_sorted, keys, values }
            }),
            (name(), inner.clone()).prop_map(move |(head, text)| function(Type::LAMBDA, head, vec![text])),
            vec(inner.clone(), 0..4).prop_map(move |parts| function(Type::PROJECTION, [].into(), parts)),
            (106..=111_i8, inner).prop_map(move |(kind, of)| function(Type(kind), [].into(), vec![of])),
        ]
    })
}

fn encoded(value: &Value, len: usize) -> Vec<u8> {
    let mut room = vec![0; len];
    let mut encoder = Encoder::value_alone(&mut room);
    encoder.value(value).unwrap();
    assert_eq!(encoder.finish(), Ok(len));
    room
}

fn message(value: &Value) -> Vec<u8> {
    let mut room = vec![0; oracle::bytes(value, Order::Little).len() + 8];
    let mut encoder = Encoder::message(&mut room, MessageKind::Sync).unwrap();
    encoder.value(value).unwrap();
    assert_eq!(encoder.finish(), Ok(room.len()));
    room
}

proptest! {
    #[test]
    fn values_come_back_in_both_byte_orders(value in value()) {
        for order in [Order::Little, Order::Big] {
            let bytes = oracle::bytes(&value, order);
            prop_assert_eq!(Value::parse(&bytes, order), Ok(value.clone()));
        }
        let little = oracle::bytes(&value, Order::Little);
        prop_assert_eq!(encoded(&value, little.len()), little);
    }

    #[test]
    fn a_value_that_is_cut_is_told_from_a_malformed_one(value in value(), at in any::<prop::sample::Index>()) {
        let bytes = oracle::bytes(&value, Order::Big);
        let cut = &bytes[..at.index(bytes.len())];
        let fault = Value::parse(cut, Order::Big).unwrap_err();
        prop_assert!(fault.is_cut() && fault.offset <= cut.len(), "{fault}");
    }

    #[test]
    fn no_room_is_an_outcome(value in value(), at in any::<prop::sample::Index>()) {
        let len = oracle::bytes(&value, Order::Little).len();
        let mut room = vec![0; at.index(len)];
        prop_assert_eq!(Encoder::value_alone(&mut room).value(&value), Err(tapeline_kdb::Refused::Full));
    }

    /// Messages in pieces of any size, compressed or not.
    #[test]
    fn messages_come_out_of_a_stream(values in vec(value(), 1..5), pieces in vec(1..5_000_usize, 1..20), many in any::<bool>()) {
        let mut stream = Vec::new();
        for value in &values {
            // Repeated values compress well.
            let value = if many { Value::List(vec![value.clone(); 100]) } else { value.clone() };
            let plain = message(&value);
            let mut packed = vec![0; plain.len()];
            match pack(&plain, &mut packed) {
                Some(len) => stream.extend(&packed[..len]),
                None => stream.extend(&plain),
            }
        }
        let mut frames = Frames::new(1 << 24);
        let (mut came, mut rest) = (Vec::new(), &stream[..]);
        for size in pieces.iter().cycle() {
            let room = frames.room();
            let size = (*size).min(room.len()).min(rest.len());
            room[..size].copy_from_slice(&rest[..size]);
            rest = &rest[size..];
            frames.received(size);
            while let Some(message) = frames.next().unwrap() {
                prop_assert_eq!(message.kind, MessageKind::Sync);
                let value = message.view().unwrap().to_value();
                came.push(if many { let Value::List(mut values) = value else { panic!() }; values.remove(0) } else { value });
            }
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(came, values);
        prop_assert_eq!(frames.waiting(), 0);
    }

    #[test]
    fn what_is_compressed_comes_back(bytes in vec(0..6_u8, 10..400), byte in any::<u8>()) {
        let plain = message(&Value::Vector {
            kind: Type::BYTE,
            attribute: Attribute::NONE,
            // Runs of equal bytes, some longer than one repetition can express.
            items: bytes.iter().flat_map(|&few| vec![Atom::Byte(few.wrapping_mul(byte)); 1 << (2 * few)]).collect(),
        });
        let mut packed = vec![0; plain.len() / 2];
        let Some(len) = pack(&plain, &mut packed) else { return Ok(()) };
        prop_assert!(len <= plain.len() / 2);
        let mut again = Vec::new();
        unpack(&packed[..len], plain.len(), &mut again).unwrap();
        prop_assert_eq!(&again, &plain);
        prop_assert!(unpack(&packed[..len], plain.len() - 1, &mut again).is_err());
        prop_assert!(unpack(&packed[..len - 1], plain.len(), &mut again).is_err());
    }

    #[test]
    fn logs_come_back_up_to_their_torn_tail(values in vec(value(), 1..6), at in any::<prop::sample::Index>()) {
        let mut file = vec![0; 1 << 16];
        let (mut writer, mut len) = LogWriter::begin(&mut file).unwrap();
        let mut ends = vec![len];
        for value in &values {
            len += writer.append(&mut file[len..], |message| message.value(value)).unwrap();
            ends.push(len);
        }
        prop_assert_eq!((writer.messages(), writer.bytes()), (values.len() as u64, len as u64));
        let cut = 8 + at.index(len - 7);
        let mut log = Log::parse(&file[..cut], Order::Little).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
        let came: Vec<_> = log.by_ref().map(|entry| entry.value.to_value()).collect();
        prop_assert_eq!(&came[..], &values[..whole]);
        prop_assert_eq!((log.messages(), log.offset()), (whole as u64, ends[whole]));
        let torn = log.torn().map(|torn| (torn.offset, torn.bytes, torn.fault.is_cut()));
        let tail = cut - ends[whole];
        prop_assert_eq!(torn, (tail > 0).then_some((ends[whole], tail, true)));
    }
}

/// The response of a kdb+ process to `1000#`q` over a connection between two hosts.
#[test]
fn a_response_of_q_is_compressed_to_the_byte_as_q_does() {
    let value = Value::Vector {
        kind: Type::SYMBOL,
        attribute: Attribute::NONE,
        items: vec![Atom::Symbol((*b"q").into()); 1_000],
    };
    let mut room = vec![0; 3_000];
    let mut encoder = Encoder::message(&mut room, MessageKind::Response).unwrap();
    encoder.value(&value).unwrap();
    let len = encoder.finish().unwrap();
    let mut packed = vec![0; len / 2];
    let packed_len = pack(&room[..len], &mut packed).unwrap();
    let hex: String = packed[..packed_len].iter().map(|byte| format!("{byte:02x}")).collect();
    let elements = "800b00e80300007171ffaa7171ff7171ff7171ff7171ff2a7171ff7171ff7171bf";
    assert_eq!(hex, format!("010201002d000000de070000{elements}"));
    let mut plain = Vec::new();
    unpack(&packed[..packed_len], 1 << 20, &mut plain).unwrap();
    assert_eq!(Message::parse(&plain).unwrap().view().unwrap().to_value(), value);
}

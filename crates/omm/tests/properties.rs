//! Properties: what is written reads back as it was, and no bytes at all make a reader panic.
use crate::readers;

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_omm::rwf::{
    AckHeader, Array, ArrayEncoder, Attributes, CloseHeader, Conflation, Cursor, DataState, DataType, Domain,
    Flags, GenericHeader, Header, Hint, Key, Map, MapAction, MapEncoder, MapEntry, MapHead, MessageView,
    NakCode, NameType, PostHeader, PostUserInfo, Priority, Rate, RefreshHeader, RequestHeader, Rmtes,
    RmtesCache, StateCode, StatusHeader, StreamState, Timeliness, UpdateHeader, UpdateType, Writer,
};
use tapeline_omm::{
    Date, DateTime, Dictionary, Fid, FieldList, FieldListEncoder, Full, Qos, Real, State, Time, Value,
};

use readers::read_all;

prop_compose! {
    fn real()(mantissa in any::<i64>(), shift in 0_u32..64, hint in 0_u8..=30) -> Real {
        Real { mantissa: mantissa >> shift, hint: Hint(hint) }
    }
}

prop_compose! {
    fn date()(day in 0_u8..=31, month in 0_u8..=12, year in any::<u16>()) -> Date {
        Date { day, month, year }
    }
}

prop_compose! {
    fn time()(ns in 0_u64..86_400_000_000_000, unit in prop::sample::select(vec![1, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000_u64])) -> Time {
        Time::from_ns_of_day(ns / unit * unit)
    }
}

prop_compose! {
    fn qos()(timeliness in 0_u8..8, rate in 0_u8..16, dynamic in any::<bool>(), a in any::<u16>(), b in any::<u16>()) -> Qos {
        Qos {
            timeliness: Timeliness(timeliness),
            rate: Rate(rate),
            dynamic,
            time_info: if timeliness > 2 { a } else { 0 },
            rate_info: if rate > 2 { b } else { 0 },
        }
    }
}

/// Text of any length; which bytes it is of makes no difference to a codec.
static TEXT: [u8; 600] = {
    let mut text = [0; 600];
    let mut at = 0;
    while at < text.len() {
        text[at] = at as u8;
        at += 1;
    }
    text
};

fn text() -> impl Strategy<Value = &'static [u8]> {
    (1..TEXT.len()).prop_map(|len| &TEXT[..len])
}

fn value() -> impl Strategy<Value = Value<'static>> {
    prop_oneof![
        Just(Value::Blank),
        (any::<i64>(), 0_u32..64).prop_map(|(value, shift)| Value::Int(value >> shift)),
        (any::<u64>(), 0_u32..64).prop_map(|(value, shift)| Value::UInt(value >> shift)),
        any::<f32>().prop_map(Value::Float),
        any::<f64>().prop_map(Value::Double),
        real().prop_map(Value::Real),
        date().prop_filter("blank", |date| *date != Date::BLANK).prop_map(Value::Date),
        time().prop_map(Value::Time),
        (date(), time()).prop_map(|(date, time)| Value::DateTime(DateTime { date, time })),
        qos().prop_map(Value::Qos),
        (0_u8..32, 0_u8..8, any::<u8>(), text()).prop_map(|(stream, data, code, text)| Value::State(State {
            stream: StreamState(stream),
            data: DataState(data),
            code: StateCode(code),
            text,
        })),
        any::<u16>().prop_map(Value::Enum),
        text().prop_map(Value::Buffer),
        text().prop_map(Value::Ascii),
        text().prop_map(Value::Utf8),
        text().prop_map(|text| Value::Rmtes(Rmtes(text))),
    ]
}

proptest! {
    #[test]
    fn variable_numbers_read_back(value in any::<u32>(), shift in 0_u32..32) {
        let value = value >> shift;
        let mut out = [0; 4];
        let mut writer = Writer::new(&mut out);
        if value < 1 << 30 {
            writer.u30(value, "n").unwrap();
            let len = writer.len();
            prop_assert_eq!(Cursor::new(&out[..len]).u30("n"), Ok(value));
            for cut in 0..len {
                prop_assert!(Cursor::new(&out[..cut]).u30("n").is_err());
            }
        } else {
            prop_assert!(writer.u30(value, "n").is_err());
        }
        let small = value as u16;
        let mut writer = Writer::new(&mut out);
        writer.u16ob(usize::from(small), "n").unwrap();
        let len = writer.len();
        prop_assert_eq!(Cursor::new(&out[..len]).u16ob("n"), Ok(small));
        let mut writer = Writer::new(&mut out);
        writer.u15(usize::from(small >> 1), "n").unwrap();
        let len = writer.len();
        prop_assert_eq!(Cursor::new(&out[..len]).u15("n"), Ok(small >> 1));
    }

    #[test]
    fn field_lists_read_back(
        fields in vec((any::<i16>().prop_map(Fid), value()), 0..40),
        room in 3_usize..12_000,
    ) {
        let mut out = vec![0xEE; room];
        let mut list = FieldListEncoder::new(&mut out).unwrap();
        let written = fields.iter().take_while(|(fid, value)| list.value(*fid, value).is_ok()).count();
        let len = list.finish();
        let list = FieldList::parse(&out[..len]).unwrap();
        prop_assert_eq!(list.len(), written);
        for (field, (fid, value)) in list.iter().zip(&fields) {
            let field = field.unwrap();
            prop_assert_eq!(field.fid, *fid);
            let data_type = value.data_type().unwrap_or(DataType::BUFFER);
            let found = field.value(data_type).unwrap();
            match (found, value) {
                // Not a number is not equal to itself.
                (Value::Float(a), Value::Float(b)) => prop_assert_eq!(a.to_bits(), b.to_bits()),
                (Value::Double(a), Value::Double(b)) => prop_assert_eq!(a.to_bits(), b.to_bits()),
                _ => prop_assert_eq!(found, *value),
            }
            prop_assert_eq!(Value::decode(data_type, field.data).unwrap().data_type(), found.data_type());
        }
        // A list that is cut off anywhere is a fault or shorter, never longer or other.
        for cut in 0..len {
            if let Ok(short) = FieldList::parse(&out[..cut]) {
                let whole: Vec<_> = short.iter().map_while(Result::ok).collect();
                prop_assert!(whole.len() <= written);
                prop_assert!(cut == 0 || whole.len() < written);
                prop_assert!(whole.iter().zip(list.iter()).all(|(a, b)| *a == b.unwrap()));
            }
        }
    }

    /// Whatever part of a map has room goes in and reads back, in both forms of its lengths; cut off anywhere it is a fault
    /// or shorter.
    #[test]
    fn maps_read_back(
        (key_type, container) in (any::<u8>(), any::<u8>()),
        (key_fid, hint, parts) in (any::<i16>(), 0_u32..1 << 30, any::<u8>()),
        entries in vec((0_u8..16, any::<bool>(), text(), text()), 0..12),
        (summary, permission) in (text(), text()),
        room in 3_usize..8_000,
        in_place in any::<bool>(),
    ) {
        let has = |bit: u32| parts >> bit & 1 == 1;
        let head = MapHead {
            key_fid: has(0).then_some(Fid(key_fid)),
            set_definitions: has(1).then_some(permission),
            summary: has(2).then_some(summary),
            count_hint: has(3).then_some(hint),
            permission_data: has(4),
            ..MapHead::new(DataType(key_type), DataType(container | 0x80))
        };
        let entries: Vec<_> = entries.into_iter().map(|(action, is_permitted, key, data)| MapEntry {
            action: MapAction(action),
            permission_data: (has(4) && is_permitted).then_some(permission),
            key,
            data: if MapAction(action) == MapAction::DELETE || container & 0x7F == 0 { &[] } else { data },
        }).collect();
        let mut out = vec![0xEE; room];
        let Ok(mut map) = MapEncoder::new(&mut out, &head) else {
            prop_assert!(room < 16 + 2 * TEXT.len());
            return Ok(());
        };
        let append = |entry: &&MapEntry<'_>| {
            if !in_place {
                return map.entry(entry).is_ok();
            }
            map.entry_in_place(entry.action, entry.key, entry.permission_data, |room| {
                room.get_mut(..entry.data.len()).ok_or(Full)?.copy_from_slice(entry.data);
                Ok(entry.data.len())
            })
            .is_ok()
        };
        let written = entries.iter().take_while(append).count();
        let len = map.finish();
        let map = Map::parse(&out[..len]).unwrap();
        prop_assert_eq!(*map.head(), head);
        prop_assert_eq!(map.len(), written);
        let found: Vec<_> = map.iter().map(Result::unwrap).collect();
        prop_assert_eq!(&found, &entries[..written]);
        for cut in 0..len {
            if let Ok(short) = Map::parse(&out[..cut]) {
                let whole: Vec<_> = short.iter().map_while(Result::ok).collect();
                prop_assert!(whole.len() < written && whole == entries[..whole.len()]);
            }
        }
    }

    #[test]
    fn arrays_read_back(numbers in vec(any::<i64>(), 0..50), shift in 0_u32..64, item_len in 0_u16..=8) {
        let mut out = [0; 1024];
        let mut array = ArrayEncoder::new(&mut out, DataType::INT, item_len).unwrap();
        let mut kept = Vec::new();
        for number in numbers {
            let value = Value::Int(number >> shift);
            if array.value(&value).is_ok() {
                kept.push(value);
            }
        }
        let len = array.finish();
        let array = Array::decode(&out[..len]).unwrap().unwrap();
        prop_assert_eq!(array.values().collect::<Result<Vec<_>, _>>().unwrap(), kept);
    }

    #[test]
    fn reals_keep_their_value(left in real(), right in real()) {
        let text = left.to_string();
        let parsed: f64 = text.parse().unwrap();
        let value = left.to_f64();
        prop_assert!((parsed - value).abs() <= value.abs() * 4.5e-16, "{} is not {}", text, value);
        let order = left.compare(right).unwrap();
        prop_assert_eq!(right.compare(left), Some(order.reverse()));
        // Where doubles tell them apart clearly, so must we.
        let (a, b) = (left.to_f64(), right.to_f64());
        if (a - b).abs() > a.abs().max(b.abs()) * 1e-15 {
            prop_assert_eq!(Some(order), a.partial_cmp(&b));
        }
    }

    #[test]
    fn times_keep_every_nanosecond(ns in 0_u64..86_400_000_000_000) {
        prop_assert_eq!(Time::from_ns_of_day(ns).ns_of_day(), Some(ns));
    }

    #[test]
    fn days_follow_one_another(days in -719_162_i64..23_217_003) {
        let (today, tomorrow) = (Date::from_unix_days(days).unwrap(), Date::from_unix_days(days + 1).unwrap());
        let key = |date: Date| (date.year, date.month, date.day);
        prop_assert!(key(today) < key(tomorrow));
        prop_assert!(tomorrow.day == today.day + 1 || tomorrow.day == 1);
        prop_assert!((1..=31).contains(&today.day) && (1..=12).contains(&today.month));
    }

    #[test]
    fn headers_read_back(
        text in vec(any::<u8>(), 0..200),
        (a, b, c) in (any::<u32>(), any::<u32>(), any::<u16>()),
        members in any::<u16>(),
        class in 0..8,
        qos in qos(),
    ) {
        let has = |bit: u32| members >> bit & 1 == 1;
        let text = text.as_slice();
        let (domain, stream_id) = (Domain(c as u8), a as i32);
        let key = Key {
            service_id: has(0).then_some(c),
            name: has(1).then_some(text),
            name_type: (has(1) && has(2)).then_some(NameType(b as u8)),
            filter: has(3).then_some(a),
            identifier: has(4).then_some(b as i32),
            attributes: has(5).then_some(Attributes { container: DataType::ELEMENT_LIST, data: text }),
        };
        let state = State {
            stream: StreamState(c as u8 & 31),
            data: DataState(b as u8 & 7),
            code: StateCode(a as u8),
            text,
        };
        let sequence = has(6).then_some(b);
        let permission_data = has(7).then_some(text);
        let extended_header = has(8).then_some(text);
        let post_user_info = has(9).then_some(PostUserInfo { address: a, user_id: b });
        let part = has(10).then_some(c >> 1);
        let optional_key = has(11).then_some(key);
        let container = DataType(c as u8);
        // Nothing that the encoder decides upon.
        let flags = Flags(0);
        let header: Header<'_> = match class {
            0 => RequestHeader {
                container, flags, extended_header,
                priority: has(6).then_some(Priority { class: a as u8, count: c }),
                qos: has(9).then_some(qos),
                worst_qos: (has(9) && has(10)).then_some(qos),
                ..RequestHeader::new(domain, stream_id, key)
            }.into(),
            1 => RefreshHeader {
                sequence, permission_data, extended_header, post_user_info, part, key: optional_key,
                group_id: if text.is_empty() { &[0, 0] } else { text },
                qos: has(12).then_some(qos),
                ..RefreshHeader::new(domain, stream_id, state, container)
            }.into(),
            2 => StatusHeader {
                permission_data, extended_header, post_user_info, key: optional_key,
                state: has(12).then_some(state),
                group_id: has(13).then_some(text),
                ..StatusHeader::new(domain, stream_id)
            }.into(),
            3 => UpdateHeader {
                sequence, permission_data, extended_header, post_user_info, key: optional_key,
                conflation: has(12).then_some(Conflation { count: c >> 1, time_ms: c }),
                ..UpdateHeader::new(domain, stream_id, UpdateType(a as u8), container)
            }.into(),
            4 => CloseHeader { extended_header, ..CloseHeader::new(domain, stream_id) }.into(),
            5 => AckHeader {
                sequence, extended_header, key: optional_key,
                nak_code: has(12).then_some(NakCode(a as u8)),
                text: has(13).then_some(text),
                ..AckHeader::new(domain, stream_id, b)
            }.into(),
            6 => GenericHeader {
                sequence, permission_data, extended_header, part, key: optional_key,
                secondary_sequence: has(12).then_some(a),
                ..GenericHeader::new(domain, stream_id, container)
            }.into(),
            _ => PostHeader {
                sequence, permission_data, extended_header, part, key: optional_key,
                post_id: has(12).then_some(a),
                post_user_rights: has(13).then_some(c >> 1),
                ..PostHeader::new(domain, stream_id, PostUserInfo { address: a, user_id: b }, container)
            }.into(),
        };
        let mut out = [0; 2048];
        let len = header.encode(&mut out).unwrap();
        let message = MessageView::parse(&out[..len]).unwrap();
        prop_assert_eq!(message.header_len(), len);
        let mut again = [0; 2048];
        let found = message.header().unwrap();
        prop_assert_eq!(found.encode(&mut again), Ok(len));
        prop_assert_eq!(&out[..len], &again[..len]);
        prop_assert_eq!((found.class(), found.domain(), found.stream_id()), (header.class(), domain, stream_id));
        for room in 0..len {
            prop_assert!(header.encode(&mut again[..room]).is_err());
        }
        // A member that is cut off is a fault: shorten the header and say so.
        for cut in message.header_len().saturating_sub(40).max(11)..len {
            let mut short = out[..cut].to_vec();
            short[..2].copy_from_slice(&((cut - 2) as u16).to_be_bytes());
            if let Ok(message) = MessageView::parse(&short) {
                prop_assert!(message.header().is_err(), "cut at {}", cut);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200), data_type in any::<u8>()) {
        read_all(&bytes, DataType(data_type));
    }

    #[test]
    fn no_damage_to_a_message_makes_a_reader_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for text in CORPUS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            let mut bytes = unhex(text);
            let place = at.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(cut.index(bytes.len()) + 1);
            read_all(&bytes, DataType(byte));
        }
    }

    #[test]
    fn no_text_makes_a_dictionary_panic(text in "[ \"#!()A-Z0-9a-z\n\t_-]{0,200}") {
        let _ = Dictionary::parse(&text);
        let _ = Dictionary::builtin().clone().with_enumerations(&text);
    }

    #[test]
    fn partial_updates_stay_within_the_limit(
        cached in vec(any::<u8>(), 0..40),
        value in "([a-z]|\u{1b}\\[[0-9]{1,3}[`b]|\u{1b}%0){0,12}",
        limit in 0_usize..60,
    ) {
        let mut room = cached.clone();
        room.resize(limit, 0xAA);
        let before = cached.len().min(limit);
        let mut after = RmtesCache::with_len(&mut room, before);
        let rmtes = Rmtes(value.as_bytes());
        let is_whole = rmtes.apply(&mut after);
        prop_assert!(after.len() <= limit);
        if rmtes.is_partial() {
            prop_assert!(after.len() >= before);
        } else {
            prop_assert_eq!(after.bytes(), &value.as_bytes()[..after.len()]);
            prop_assert_eq!(is_whole, after.len() == value.len());
        }
        let _ = (rmtes.to_string(), rmtes.to_text());
    }
}

/// Messages whose damaged forms are worth trying, and those that once were read wrongly.
const CORPUS: &str = include_str!("corpus/messages.hex");

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

#[test]
fn the_corpus_reads_as_it_did() {
    let mut read = 0;
    for line in CORPUS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let bytes = unhex(line);
        read_all(&bytes, DataType::ARRAY);
        let message = MessageView::parse(&bytes).unwrap();
        let mut out = vec![0; bytes.len()];
        let len = message.header().unwrap().encode(&mut out).unwrap();
        assert_eq!(out[..len], bytes[..len], "{line}");
        read += 1;
    }
    assert_eq!(read, 11);
}

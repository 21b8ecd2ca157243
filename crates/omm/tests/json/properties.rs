//! Any values there and back.

use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_omm::json::Packed;
use tapeline_omm::rwf::{
    DataState, DataType, Domain, Hint, MessageView, Rate, Rmtes, StateCode, StreamState, Timeliness,
    UpdateType, update_header,
};
use tapeline_omm::{Date, DateTime, Fid, FieldList, FieldListEncoder, Qos, Real, State, Time, Value};

use crate::json::texts::{DICTIONARY, converter};

/// A value that JSON has a text for, and the field of its type.
#[derive(Debug, Clone)]
enum Any {
    Value(i16, Value<'static>),
    Text(i16, String),
    Bytes(Vec<u8>),
}

fn date() -> impl Strategy<Value = Date> {
    // A day without a month would be a month.
    (0_u8..=31, 1_u8..=12, any::<u16>()).prop_map(|(day, month, year)| Date { day, month, year })
}

fn time() -> impl Strategy<Value = Time> {
    (0_u64..86_400_000_000_000).prop_map(Time::from_ns_of_day)
}

fn value() -> impl Strategy<Value = Any> {
    let real = (any::<i64>(), 0_u32..64, 0_u8..=14)
        .prop_map(|(mantissa, shift, hint)| Real { mantissa: mantissa >> shift, hint: Hint(hint) });
    let qos =
        (0_u8..8, 0_u8..16, any::<bool>(), any::<u16>()).prop_map(|(timeliness, rate, dynamic, info)| Qos {
            timeliness: Timeliness(timeliness),
            rate: Rate(rate),
            dynamic,
            time_info: if timeliness > 2 { info } else { 0 },
            rate_info: if rate > 2 { info } else { 0 },
        });
    let state = (0_u8..32, 0_u8..8, any::<u8>()).prop_map(|(stream, data, code)| State {
        stream: StreamState(stream),
        data: DataState(data),
        code: StateCode(code),
        text: b"why \"not\"",
    });
    prop_oneof![
        any::<i64>().prop_map(|v| Any::Value(-1, Value::Int(v))),
        any::<u64>().prop_map(|v| Any::Value(-2, Value::UInt(v))),
        any::<f32>().prop_map(|v| Any::Value(-3, Value::Float(v))),
        any::<f64>().prop_map(|v| Any::Value(-4, Value::Double(v))),
        real.prop_map(|v| Any::Value(-5, Value::Real(v))),
        date().prop_map(|v| Any::Value(-6, Value::Date(v))),
        time().prop_map(|v| Any::Value(-7, Value::Time(v))),
        (date(), time()).prop_map(|(date, time)| Any::Value(-8, Value::DateTime(DateTime { date, time }))),
        qos.prop_map(|v| Any::Value(-9, Value::Qos(v))),
        state.prop_map(|v| Any::Value(-10, Value::State(v))),
        any::<u16>().prop_map(|v| Any::Value(-11, Value::Enum(v))),
        vec(any::<u8>(), 0..40).prop_map(Any::Bytes),
        "[\\x00-\u{FF}]{0,40}".prop_map(|text| Any::Text(-14, text)),
        ".{0,40}".prop_map(|text| Any::Text(-15, text)),
        // What may be an escape in RMTES is something else there.
        "[^\\x1B]{0,40}".prop_map(|text| Any::Text(-16, text)),
    ]
}

proptest! {
    #[test]
    fn values_come_back(values in vec(value(), 0..20)) {
        let mut out = vec![0; 16 * 1024];
        let header = update_header(&mut out, Domain::MARKET_PRICE, 5, UpdateType::QUOTE, DataType::FIELD_LIST).unwrap();
        let mut list = FieldListEncoder::new(&mut out[header..]).unwrap();
        for value in &values {
            match value {
                Any::Value(fid, value) => list.value(Fid(*fid), value).unwrap(),
                Any::Bytes(bytes) => list.buffer(Fid(-13), bytes).unwrap(),
                Any::Text(-14, text) => {
                    let bytes: Vec<u8> = text.chars().map(|character| u8::try_from(character).unwrap()).collect();
                    list.ascii(Fid(-14), &bytes).unwrap();
                }
                Any::Text(-15, text) => list.utf8(Fid(-15), text).unwrap(),
                Any::Text(fid, text) => {
                    let bytes = [b"\x1B%0", text.as_bytes()].concat();
                    list.rmtes(Fid(*fid), if text.is_empty() { &[] } else { &bytes }).unwrap();
                }
            }
        }
        let len = header + list.finish();
        let mut text = Vec::new();
        converter().write(&MessageView::parse(&out[..len]).unwrap(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let mut room = Vec::new();
        let rwf = converter().read(&Packed::parse(&text).unwrap().next().unwrap(), &mut room).unwrap();
        let shown = |bytes: &[u8]| -> Vec<String> {
            let list = FieldList::parse(MessageView::parse(bytes).unwrap().payload()).unwrap();
            list.iter().map(Result::unwrap).map(|field| {
                let value = field.value(DICTIONARY.data_type(field.fid).unwrap()).unwrap();
                match value {
                    Value::Rmtes(Rmtes(bytes)) => format!("{} {:?}", field.fid.0, Rmtes(bytes).to_text()),
                    Value::Float(v) if v.is_nan() => format!("{} NaN", field.fid.0),
                    Value::Double(v) if v.is_nan() => format!("{} NaN", field.fid.0),
                    value => format!("{} {value:?}", field.fid.0),
                }
            }).collect()
        };
        prop_assert_eq!(shown(rwf), shown(&out[..len]), "{}", text);
    }

    #[test]
    fn any_text_holds(text in ".{0,200}") {
        crate::json::texts::text(text.as_bytes());
    }
}

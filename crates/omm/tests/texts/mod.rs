//! Converters between RWF and JSON, and what must hold whatever they are given.

#![allow(dead_code, reason = "each user takes some of it")]

use std::sync::LazyLock;

use tapeline_omm::Dictionary;
use tapeline_omm::json::{Converter, MessageKind, Pack, Packed, WriteError};
use tapeline_omm::rwf::MessageView;

/// A field of every type, and a few of a price.
pub(crate) static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(|| {
    let fields = "INT \"I\" -1 NULL INTEGER 20 INT64 8\nUINT \"U\" -2 NULL INTEGER 20 UINT64 8\n\
        FLOAT \"F\" -3 NULL PRICE 17 FLOAT 4\nDOUBLE \"D\" -4 NULL PRICE 17 DOUBLE 8\n\
        REAL \"R\" -5 NULL PRICE 17 REAL64 9\nDATE \"D\" -6 NULL DATE 11 DATE 4\n\
        TIME \"T\" -7 NULL TIME_SECONDS 8 TIME 8\nDATETIME \"DT\" -8 NULL NONE 30 DATETIME 12\n\
        QOS \"Q\" -9 NULL NONE 5 QOS 5\nSTATE \"S\" -10 NULL NONE 100 STATE 100\n\
        ENUM \"E\" -11 NULL ENUMERATED 3 ( 4 ) ENUM 2\nARRAY \"A\" -12 NULL NONE 100 ARRAY 100\n\
        BUFFER \"B\" -13 NULL BINARY 100 BUFFER 100\nASCII \"A\" -14 NULL ALPHANUMERIC 100 ASCII_STRING 100\n\
        UTF8 \"U\" -15 NULL ALPHANUMERIC 100 UTF8_STRING 100\n\
        RMTES \"R\" -16 NULL ALPHANUMERIC 255 RMTES_STRING 255\n\
        FIELDS \"F\" -17 NULL NONE 200 FIELD_LIST 200\nELEMENTS \"E\" -18 NULL NONE 200 ELEMENT_LIST 200\n\
        MAP \"M\" -19 NULL NONE 200 MAP 200\nVECTOR \"V\" -20 NULL NONE 200 VECTOR 200\n\
        SERIES \"S\" -21 NULL NONE 200 SERIES 200\nFILTERS \"F\" -22 NULL NONE 200 FILTER_LIST 200\n\
        OPAQUE \"O\" -23 NULL NONE 200 OPAQUE 200\nXML \"X\" -24 NULL NONE 200 XML 200\n\
        MESSAGE \"M\" -25 NULL NONE 200 MSG 200\nBID \"BID\" 22 NULL PRICE 17 REAL64 9\n\
        ASK \"ASK\" 25 NULL PRICE 17 REAL64 9\n";
    let enumerations = "ENUM -11\n 1 \"BID\" a bid\n 2 \"ASK \" an ask\n 3 \"  \" none\n";
    Dictionary::parse(fields).unwrap().with_enumerations(enumerations).unwrap()
});

/// The one service.
pub(crate) const SERVICES: [(u16, &str); 1] = [(7, "FEED")];

pub(crate) fn converter() -> Converter<'static> {
    Converter::new(&DICTIONARY, &SERVICES)
}

/// Any text: what is taken is a message that can be read and written, and its text means the same as before.
pub(crate) fn text(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let converter = converter();
    let messages = match Packed::parse(text) {
        Ok(messages) => messages,
        Err(fault) => {
            assert!(fault.offset <= text.len(), "{fault}");
            return;
        }
    };
    let mut room = Vec::new();
    for incoming in messages {
        let _ = (incoming.id(), incoming.error_text());
        let most = incoming.text().len() * 5 + 128;
        match (incoming.kind(), converter.read(&incoming, &mut room)) {
            (MessageKind::Message, Ok(rwf)) => {
                assert!(rwf.len() <= most);
                again(&converter, &MessageView::parse(rwf).unwrap());
            }
            (_, Ok(_)) => panic!("not a message: {}", incoming.text()),
            (_, Err(fault)) => {
                assert!(fault.offset <= text.len(), "{fault}");
                let mut answer = Vec::new();
                let mut pack = Pack::new(&mut answer);
                pack.error(&fault, text);
                pack.finish();
                let answer: String = String::from_utf8(answer).unwrap();
                let mut answer = Packed::parse(&answer).unwrap();
                assert_eq!(
                    answer.next().map(|error| (error.kind(), error.id())),
                    Some((MessageKind::Error, fault.id))
                );
            }
        }
        assert!(room.len() <= most.max(text.len() * 5 + 128), "{} bytes for {}", room.len(), text.len());
    }
}

/// What was read can be written, and reads and writes the same ever after.
fn again(converter: &Converter<'_>, message: &MessageView<'_>) {
    let written = written(converter, message);
    let mut room = Vec::new();
    let rwf = converter.read(&Packed::parse(&written).unwrap().next().unwrap(), &mut room);
    let rwf = rwf.unwrap_or_else(|fault| panic!("{fault}: {written}"));
    // Designators of character sets, which are not written, may come together to others.
    if !written.contains("\\u001b") {
        assert_eq!(self::written(converter, &MessageView::parse(rwf).unwrap()), written);
    }
}

fn written(converter: &Converter<'_>, message: &MessageView<'_>) -> String {
    let mut out = Vec::new();
    assert_eq!(converter.write(message, &mut out), Ok(0), "{}", message.outline(converter.dictionary));
    String::from_utf8(out).unwrap()
}

/// Any bytes, as a message and as the payload of one: the first says of which type.
pub(crate) fn rwf(bytes: &[u8]) {
    let Some((data_type, bytes)) = bytes.split_first() else { return };
    message(bytes);
    message(&[&[0, 8, 7, 6, 0, 0, 0, 3, 0, data_type.wrapping_sub(128)], bytes].concat());
}

/// What can be written of it is JSON, of bounded length, and reads without a panic.
fn message(bytes: &[u8]) {
    let Ok(message) = MessageView::parse(bytes) else { return };
    let mut converter = converter();
    converter.settings.most_text = 100_000;
    let mut out = b"before".to_vec();
    match converter.write(&message, &mut out) {
        Ok(_) => {
            let written = str::from_utf8(&out[6..]).unwrap();
            assert!(written.len() <= 100_000);
            let json: serde_json::Value =
                serde_json::from_str(written).unwrap_or_else(|e| panic!("{e}: {written}"));
            assert!(json.is_object());
            let mut room = Vec::new();
            // Codes beyond the words of the protocol, say, are written and not taken.
            let _ = converter.read(&Packed::parse(written).unwrap().next().unwrap(), &mut room);
        }
        Err(WriteError::Malformed(_) | WriteError::TooDeep(_) | WriteError::TooLong(_)) => {
            assert_eq!(out, b"before");
        }
        Err(error) => panic!("{error}"),
    }
}

use tapeline_console::failure::{hints, text};
use tapeline_omm::rwf::{DataType, Map, MapAction};
use tapeline_omm::{Fid, FieldList};

use super::super::cases;
use super::super::stamp::{self, Stamp};
use super::*;

/// Two updates, a post and a generic message of prices, and a book.
const SMALL: &str = r#"<?xml version="1.0"?>
<msgFormat>
<marketPriceMsgList updateMsgCount="2">
<refreshMsg><dataBody><fieldList entryCount="3">
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="39.91"/>
    <fieldEntry fieldId="14265" dataType="RSSL_DT_TIME" data=" 21:00:01:007"/>
    <fieldEntry fieldId="25" dataType="RSSL_DT_REAL" data=""/>
</fieldList></dataBody></refreshMsg>
<updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="1"/></fieldList></dataBody></updateMsg>
<updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="8" data="2"/></fieldList></dataBody></updateMsg>
<postMsg><updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="3"/></fieldList></dataBody></updateMsg></postMsg>
<genMsg><!--updateMsg--><dataBody><fieldList><fieldEntry fieldId="4451" dataType="RSSL_DT_RMTES_STRING" data="BOS"/></fieldList></dataBody></genMsg>
</marketPriceMsgList>
<marketByOrderMsgList>
<refreshMsg><dataBody><map>
    <fieldSetDefs><fieldSetDef setId="0">
        <fieldSetDefEntry fieldId="3427" dataType="RSSL_DT_REAL" />
        <fieldSetDefEntry fieldId="3855" dataType="RSSL_DT_UINT_2" />
    </fieldSetDef></fieldSetDefs>
    <mapEntry action="RSSL_MPEA_ADD_ENTRY" key="100"><fieldList setId="0">
        <fieldEntry fieldId="3427" dataType="RSSL_DT_REAL" data="1.50"/>
        <fieldEntry fieldId="3855" dataType="RSSL_DT_UINT" data="500"/>
        <fieldEntry fieldId="3428" dataType="RSSL_DT_ENUM" data="2"/>
    </fieldList></mapEntry>
</map></dataBody></refreshMsg>
<updateMsg><dataBody><map>
    <mapEntry action="RSSL_MPEA_UPDATE_ENTRY" key="100"><fieldList><fieldEntry fieldId="3427" dataType="RSSL_DT_REAL" data="1.51"/></fieldList></mapEntry>
    <mapEntry action="RSSL_MPEA_DELETE_ENTRY" key="99"><fieldList/></mapEntry>
</map></dataBody></updateMsg>
</marketByOrderMsgList>
</msgFormat>"#;

const TIMES: &str = " TIM_TRK_1= TIM_TRK_2= TIM_TRK_3= TIM_TRK_4=";

fn parse(text: &str) -> anyhow::Result<Messages> {
    Messages::parse("small.xml", text, Dictionary::builtin())
}

fn shown(list: &[u8]) -> String {
    FieldList::parse(list).unwrap().render(Dictionary::builtin()).to_string()
}

fn encoded(payload: &Payload, stamp: Option<Stamp>) -> Vec<u8> {
    let mut bytes = vec![0xAA; 1_000];
    let len = payload.encode(&mut bytes, stamp).unwrap();
    bytes.truncate(len);
    bytes
}

#[test]
fn prices_are_those_of_the_file() {
    let prices = parse(SMALL).unwrap().market_price;
    assert_eq!(shown(prices.refresh.encoded()), format!("BID=39.91 QUOTIM_NS=21:00:01.007 ASK={TIMES}"));
    assert_eq!([0, 1, 2].map(|turn| shown(prices.update(turn).encoded())), ["BID=1", "BID=2", "BID=1"]);
    assert_eq!((prices.updates.len(), prices.posts.len(), prices.generics.len()), (2, 1, 1));
    assert_eq!(shown(prices.posts[0].encoded()), "BID=3");
    assert_eq!(shown(prices.generics[0].encoded()), "BID_SRC=BOS");
    assert_eq!(prices.refresh.container(), DataType::FIELD_LIST);
}

#[test]
fn what_is_encoded_again_is_the_same_and_a_stamp_is_behind_it() {
    let messages = parse(SMALL).unwrap();
    let prices = &messages.market_price;
    for payload in [&prices.refresh, &prices.updates[0], &messages.market_by_order.as_ref().unwrap().refresh]
    {
        assert_eq!(encoded(payload, None), payload.encoded());
    }
    let stamp = Stamp { field: stamp::POST, sent: 5_000_000_000, due: Some(7) };
    let text = shown(&encoded(&prices.posts[0], Some(stamp)));
    assert_eq!(text, "BID=3 TIM_TRK_2=5000000000 TIM_TRK_4=7");
    let text = shown(&encoded(&prices.updates[1], Some(Stamp { field: stamp::UPDATE, sent: 1, due: None })));
    assert_eq!(text, "BID=2 TIM_TRK_1=1");
    // Every buffer size that is too small is refused.
    let len = encoded(&prices.updates[1], Some(stamp)).len();
    for size in 0..len {
        assert!(prices.updates[1].encode(&mut vec![0; size], Some(stamp)).is_err(), "{size}");
    }
}

#[test]
fn books_have_sets_actions_and_a_stamp_in_the_summary() {
    let book = parse(SMALL).unwrap().market_by_order.unwrap();
    let map = Map::parse(book.refresh.encoded()).unwrap();
    let head = map.head();
    assert_eq!((head.key_fid, head.key_type), (Some(Fid(3426)), DataType::RMTES_STRING));
    assert_eq!(shown(head.summary.unwrap()), TIMES.trim_start());
    let sets = map.sets().unwrap();
    let order = map.iter().next().unwrap().unwrap();
    assert_eq!((order.action, order.key), (MapAction::ADD, &b"100"[..]));
    let list = FieldList::parse_with(order.data, &sets).unwrap();
    let types: Vec<_> = list.typed().map(|field| field.unwrap().1).collect();
    assert_eq!(types, [Some(DataType::REAL), Some(DataType::UINT_2), None]);
    assert_eq!(list.render(Dictionary::builtin()).to_string(), "ORDER_PRC=1.50 QUOTIM_MS=500 ORDER_SIDE=ASK");

    let update = &book.updates[0];
    assert_eq!(Map::parse(update.encoded()).unwrap().head().summary, None);
    let stamped = encoded(update, Some(Stamp { field: stamp::UPDATE, sent: 9, due: Some(8) }));
    let map = Map::parse(&stamped).unwrap();
    assert_eq!(shown(map.head().summary.unwrap()), "TIM_TRK_1=9 TIM_TRK_4=8");
    let orders: Vec<_> =
        map.iter().map(|order| order.unwrap()).map(|order| (order.action, order.key)).collect();
    assert_eq!(orders, [(MapAction::UPDATE, &b"100"[..]), (MapAction::DELETE, b"99")]);
}

#[test]
fn every_type_is_written() {
    // One field of each type, in a separate dictionary.
    let types: Vec<[String; 4]> = cases(
        r#"
            INT => INT64 => data="-5" => -5
            UINT => UINT64 => data="5" => 5
            FLOAT => FLOAT => data="0.5" => 0.5
            DOUBLE => DOUBLE => data="-2.25" => -2.25
            REAL => REAL64 => data="1.50" => 1.50
            DATE => DATE => data="11/22/2026" => 2026-11-22
            TIME => TIME => data="01:02:03:004:005:006" => 01:02:03.004005006
            DATETIME => DATETIME => data="11/22/2026 01:02:03" => 2026-11-22T01:02:03
            QOS => QOS => qosTimeliness="RSSL_QOS_TIME_DELAYED" qosRate="1" qosDynamic="1" qosTimeInfo="60" => DELAYED(60 s)/TICK_BY_TICK/dynamic
            STATE => STATE => streamState="RSSL_STREAM_OPEN" dataState="RSSL_DATA_SUSPECT" code="RSSL_SC_GAP_DETECTED" text="x" => OPEN/SUSPECT/GAP_DETECTED "x"
            ENUM => ENUM => data="7" => 7
            BUFFER => BUFFER => data="AB" => 4142
            ASCII_STRING => ASCII_STRING => data="a&lt;b" => a<b
            UTF8_STRING => UTF8_STRING => data="é" => é
            RMTES_STRING => RMTES_STRING => data="é" => é
        "#,
    )
    .collect();
    let mut fields = String::new();
    let (mut entries, mut blanks, mut expected) = (String::new(), String::new(), Vec::new());
    for (number, [name, dictionary, value, shown]) in (1..).zip(&types) {
        fields.push_str(&format!("F_{name} \"{name}\" {number} NULL NONE 0 {dictionary} 0\n"));
        entries.push_str(&format!("<fieldEntry fieldId=\"{number}\" dataType=\"RSSL_DT_{name}\" {value}/>"));
        blanks.push_str(&format!("<fieldEntry fieldId=\"{number}\" dataType=\"RSSL_DT_{name}\" data=\"\"/>"));
        expected.push(format!("F_{name}={shown}"));
    }
    let message = |name: &str, entries: &str| {
        format!("<{name}><dataBody><fieldList>{entries}</fieldList></dataBody></{name}>")
    };
    let file = format!(
        "<msgFormat><marketPriceMsgList>{}{}</marketPriceMsgList></msgFormat>",
        message("refreshMsg", &entries),
        message("updateMsg", &blanks)
    );
    let dictionary = Dictionary::parse(&fields).unwrap();
    let messages = Messages::parse("types.xml", &file, &dictionary).unwrap();
    let list =
        |payload: &Payload| FieldList::parse(payload.encoded()).unwrap().render(&dictionary).to_string();
    let shown = list(&messages.market_price.refresh);
    for value in &expected {
        assert!(shown.contains(value), "{value} in {shown}");
    }
    let blank = FieldList::parse(messages.market_price.updates[0].encoded()).unwrap();
    assert!(blank.iter().all(|field| field.unwrap().data.is_empty()));
    assert_eq!(blank.len(), types.len());
}

#[test]
fn the_messages_that_are_built_in() {
    let messages = Messages::parse("built in", BUILT_IN, Dictionary::builtin()).unwrap();
    let count = |payload: &Payload| FieldList::parse(payload.encoded()).unwrap().len();
    let prices = &messages.market_price;
    assert_eq!((count(&prices.refresh), count(&prices.updates[0]), count(&prices.updates[1])), (74, 13, 13));
    assert!(!prices.posts.is_empty() && !prices.generics.is_empty());
    let book = messages.market_by_order.unwrap();
    assert_eq!(Map::parse(book.refresh.encoded()).unwrap().iter().count(), 5);
    assert!(!book.posts.is_empty() && !book.generics.is_empty());
}

/// The user's error for the file with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from}");
    let error = parse(&SMALL.replacen(from, to, 1)).unwrap_err();
    assert!(!text(&error).contains("because"), "{error:?}");
    let hint = hints(&error).first().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{error}{hint}")
}

#[test]
fn what_is_wrong_is_said_with_file_line_and_field() {
    for [from, to, said] in cases(
        r#"
            data="39.91" => data="x"
                => small.xml:5: field 22 (BID): 'x' is no REAL; expected a number with 14 decimals at most, a fraction such as 3 5/8, Inf, -Inf or NaN
            data="39.91" =>  => small.xml:5: field 22 (BID): it has no attribute data
            fieldId="14265" => fieldId="99"
                => small.xml:6: field 99 is not in the dictionary (--dictionary names the file of another one, such as RDMFieldDictionary, and --enums its enumerations)
            fieldId="22" => fieldId="99999" => small.xml:5: fieldId is '99999'; expected a number from -32768 to 32767
            fieldId="22" =>  => small.xml:5: fieldEntry has no fieldId
            RSSL_DT_TIME => RSSL_DT_DATE
                => small.xml:6: field 14265 (QUOTIM_NS) is a TIME by the dictionary, and not a RSSL_DT_DATE (write RSSL_DT_TIME)
            RSSL_DT_TIME => RSSL_DT_TIM
                => small.xml:6: field 14265 (QUOTIM_NS): there is no type RSSL_DT_TIM (there is RSSL_DT_TIME)
            fieldId="25" => fieldId="3902" => small.xml:7: field 3902 carries the times that the tools put in (leave it out)
            <refreshMsg> => <refresh>
                => small.xml:8: this is not XML: ill-formed document: expected `</refresh>`, but `</refreshMsg>` was found
            <genMsg> => <genMsg><x/> => small.xml:12: genMsg has more than one element in it; expected one dataBody
            <postMsg><updateMsg> => <postMsg><genMsg/><updateMsg>
                => small.xml:11: postMsg has more than one element in it; expected one updateMsg
            <marketByOrderMsgList> => <marketByOrderMsgList/><marketByOrderMsgList>
                => small.xml:14: marketByOrderMsgList has no refreshMsg
            setId="0" => setId="1" => small.xml:16: setId is '1'; expected 0, the only set that LSEG's decoders read
            <fieldList setId="0"> => <fieldList setId="2">
                => small.xml:20: setId is '2'; this map has no such set (a fieldSetDef before the entries defines one)
            data="500" => data="70000"
                => small.xml:22: field 3855 (QUOTIM_MS): its set has it as a UINT_2, into which this value does not go
            fieldId="3427" dataType="RSSL_DT_REAL" data="1.50" => fieldId="3429" dataType="RSSL_DT_REAL" data="1.50"
                => small.xml:21: field 1 of this list is not field 1 of its set (its first fields are those of the set, in the same order)
            RSSL_MPEA_ADD_ENTRY => RSSL_MPEA_ADD_ENTRIES
                => small.xml:20: action is 'RSSL_MPEA_ADD_ENTRIES'; expected RSSL_MPEA_UPDATE_ENTRY, RSSL_MPEA_ADD_ENTRY, RSSL_MPEA_DELETE_ENTRY
            key="99" =>  => small.xml:28: mapEntry has no key
            RSSL_DT_UINT_2 => RSSL_DT_REAL_4RB
                => small.xml:18: field 3855 (QUOTIM_MS) is a UINT by the dictionary, and not a RSSL_DT_REAL_4RB (write RSSL_DT_UINT)
            <msgFormat> => <messages>
                => small.xml:31: this is not XML: ill-formed document: expected `</messages>`, but `</msgFormat>` was found
        "#,
    ) {
        assert_eq!(refused(&from, &to), said, "{to}");
    }
    let without = |from: &str, to: &str| SMALL.replace(from, to);
    for (file, said) in [
        (without("refreshMsg", "updateMsg"), "marketPriceMsgList has no refreshMsg"),
        (without("updateMsg", "refreshMsg"), "there is a second refreshMsg"),
        (without("msgFormat", "format"), "the root element is format; expected msgFormat"),
        (without("marketPriceMsgList", "marketPriceMsgLst"), "there is marketPriceMsgList"),
        ("<msgFormat/>".to_owned(), "there is no marketPriceMsgList"),
        (String::new(), "there is no element"),
        ("<!DOCTYPE a [<!ENTITY b \"c\">]><msgFormat/>".to_owned(), "there is a document type"),
        ("<a>".repeat(50), "deeper than 16"),
    ] {
        let error = text(&parse(&file).unwrap_err());
        assert!(error.contains(said), "{said}: {error}");
    }
}

/// The messages of the file with `from` replaced by `to`, and the notes on it.
fn noted(from: &str, to: &str) -> (Messages, file::Notes) {
    let mut notes = Vec::new();
    let messages = file::parse(&SMALL.replacen(from, to, 1), Dictionary::builtin(), &mut notes);
    (messages.unwrap(), notes)
}

#[test]
fn a_value_that_its_enumeration_does_not_have_is_said_and_taken() {
    let of = |value: &str| noted("ENUM\" data=\"2\"", &format!("ENUM\" data=\"{value}\"")).1;
    assert_eq!(of("1"), []);
    let notes = of("99");
    let [(23, what)] = &notes[..] else { panic!("{notes:?}") };
    assert!(what.starts_with("field 3428 (ORDER_SIDE) is 99, which its enumeration does not have"), "{what}");
    assert!(what.contains("by the dictionary it has 0-"), "{what}");
}

/// Every text is accepted or refused without a panic, and an accepted one can be encoded.
#[test]
fn any_text() {
    let mut state = 11_u64;
    let mut chance = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let pieces =
        ["<", ">", "/>", "\"", "data=", "-", "99999", "1/2", "\n", "&lt;", "&#0;", "é", "RSSL_DT_STATE", " "];
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..5_000 {
        let mut changed: Vec<char> = SMALL.chars().collect();
        for _ in 0..=chance(3) {
            let at = chance(changed.len());
            match chance(3) {
                0 => drop(changed.remove(at)),
                1 => changed[at] = char::from(chance(127) as u8),
                _ => {
                    let piece = pieces[chance(pieces.len())];
                    changed.splice(at..at, piece.chars());
                }
            }
        }
        let changed: String = changed.into_iter().collect();
        match file::parse(&changed, Dictionary::builtin(), &mut Vec::new()) {
            Ok(messages) => {
                taken += 1;
                for payload in messages.market_price.updates.iter().chain(&messages.market_price.posts) {
                    assert_eq!(encoded(payload, None), payload.encoded());
                }
            }
            Err(fault) => {
                refused += 1;
                assert!(fault.line >= 1 && fault.line <= changed.lines().count() + 1, "{fault:?}");
            }
        }
    }
    assert!(taken > 100 && refused > 1_000, "{taken} {refused}");
}

#[test]
fn what_is_longer_than_the_dictionary_says_is_noted_and_sent() {
    let (messages, notes) = noted("\"BOS\"", "\"MarketMaker1\"");
    let [(12, what)] = &notes[..] else { panic!("{notes:?}") };
    let said = "field 4451 (BID_SRC) has 12 bytes; by the dictionary it has 6 at most";
    assert!(what.starts_with(said), "{what}");
    assert_eq!(shown(messages.market_price.generics[0].encoded()), "BID_SRC=MarketMaker1");
}

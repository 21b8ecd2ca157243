//! Texts of our own, there and back.

use tapeline_omm::domain::List;
use tapeline_omm::domain::item::{RequestPayload, View};
use tapeline_omm::json::{Converter, JsonProblem, MessageKind, Packed};
use tapeline_omm::rwf::{Domain, Header, Key, MessageView, NameType, Qos, RequestHeader, flags};
use tapeline_omm::{Real, State};

use crate::json::texts::{SERVICES, converter};

/// The RWF of a text with one message.
fn read(converter: &Converter<'_>, text: &str) -> Vec<u8> {
    let mut room = Vec::new();
    let incoming = Packed::parse(text).unwrap().next().unwrap();
    converter.read(&incoming, &mut room).unwrap_or_else(|fault| panic!("{fault}: {text}")).to_vec()
}

fn write(converter: &Converter<'_>, rwf: &[u8]) -> String {
    let mut out = Vec::new();
    converter.write(&MessageView::parse(rwf).unwrap(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// What comes back of a text.
fn again(text: &str) -> String {
    let converter = converter();
    write(&converter, &read(&converter, text))
}

/// The members are in the order in which they are written, so the texts are the same.
#[test]
fn every_class_with_every_member() {
    let texts = [
        r#"{"ID":5,"Type":"Request","Domain":"MarketByOrder","Priority":{"Class":2,"Count":300},"Streaming":false,"KeyInUpdates":false,"ConfInfoInUpdates":true,"Refresh":false,"Pause":true,"Private":true,"Qualified":true,"ExtHdr":"AQID","Qos":{"Timeliness":"Realtime","Rate":"TickByTick"},"WorstQos":{"Timeliness":"Delayed","Rate":"TimeConflated","Dynamic":true,"TimeInfo":15,"RateInfo":1000},"Key":{"Service":"FEED","Name":"A.N","NameType":"Contributor","Filter":7,"Identifier":-3,"Elements":{"Role":1}},"ViewType":"FidList","View":[22,25]}"#,
        r#"{"ID":-5,"Type":"Refresh","Domain":130,"Key":{"Service":9,"Name":"A"},"State":{"Stream":"Closed","Data":"Suspect","Code":"NotEntitled","Text":"no"},"Qos":{"Timeliness":"DelayedUnknown","Rate":"JitConflated"},"Solicited":false,"Complete":false,"ClearCache":false,"DoNotCache":true,"Private":true,"Qualified":true,"SeqNumber":4000000000,"PartNumber":32767,"PostUserInfo":{"Address":"127.0.0.1","UserID":77},"PermData":"AwQ=","ExtHdr":"AQ==","Fields":{"BID":1.50}}"#,
        r#"{"ID":5,"Type":"Status","Key":{"Name":"A"},"State":{"Stream":"Open","Data":"NoChange","Code":127,"Text":""},"ClearCache":true,"Private":true,"Qualified":true,"PostUserInfo":{"Address":"0.0.0.1","UserID":2},"PermData":"Aw==","ExtHdr":"CA==","Elements":{"E":1}}"#,
        r#"{"ID":5,"Type":"Update","UpdateType":255,"DoNotCache":true,"DoNotConflate":true,"DoNotRipple":true,"Discardable":true,"Key":{"Name":"A"},"SeqNumber":8,"ConflationInfo":{"Count":3,"Time":500},"PostUserInfo":{"Address":"0.0.0.1","UserID":2},"PermData":"Aw==","ExtHdr":"CA==","Opaque":"AQI="}"#,
        r#"{"ID":5,"Type":"Close","Domain":"Login","Ack":true,"ExtHdr":"AQ=="}"#,
        r#"{"ID":5,"Type":"Ack","AckID":4294967295,"NakCode":"InvalidContent","Text":"bad","Private":true,"Qualified":true,"SeqNumber":9,"Key":{"Name":"A"},"ExtHdr":"AQ=="}"#,
        r#"{"ID":5,"Type":"Generic","Key":{"Name":"A"},"Complete":false,"ProviderDriven":true,"SeqNumber":1,"SecSeqNumber":2,"PartNumber":3,"PermData":"Aw==","ExtHdr":"AQ==","Xml":"<a b=\"c\"/>"}"#,
        r#"{"ID":5,"Type":"Post","PostUserInfo":{"Address":"127.0.0.1","UserID":1234},"PostID":2,"SeqNumber":1,"Ack":true,"Complete":false,"PartNumber":3,"PostUserRights":7,"Key":{"Service":"FEED","Name":"A"},"PermData":"Aw==","ExtHdr":"AQ==","Message":{"ID":0,"Type":"Update","UpdateType":"Trade","Fields":{"BID":40.00}}}"#,
    ];
    for text in texts {
        assert_eq!(again(text), text);
    }
}

#[test]
fn every_container() {
    let bodies = [
        r#""Fields":{"INT":-1,"UINT":18446744073709551615,"FLOAT":1.5,"DOUBLE":0.1,"REAL":-0.25,"DATE":"2024-02-29","TIME":"10:20:30.4005006","DATETIME":"2024-02-29T01:02:03","QOS":{"Timeliness":"Realtime","Rate":"TickByTick"},"STATE":{"Stream":"Open","Data":"Ok","Text":"é"},"ENUM":300,"ARRAY":{"Type":"Int","Data":[1,null,-300]},"BUFFER":"AAH/","ASCII":"aé","UTF8":"€","RMTES":"é中"}"#,
        r#""Fields":{"FLOAT":"Inf","DOUBLE":"-Inf","REAL":"NaN","ARRAY":{"Type":"Real","Data":[1.5,"Inf"]}}"#,
        r#""Fields":{"INT":null,"REAL":null,"DATE":null,"ARRAY":null,"MAP":null,"XML":null}"#,
        r#""Fields":{"FIELDS":{"BID":1},"ELEMENTS":{"E":{"Type":"Int","Data":-1}},"MAP":{"KeyType":"UInt"},"VECTOR":{},"SERIES":{},"FILTERS":{},"OPAQUE":"AQ==","XML":"<a/>","MESSAGE":{"ID":0,"Type":"Close"}}"#,
        r#""Elements":{"U":7,"A":"text","B":{"Type":"Real","Data":null},"N":{"Type":"NoData","Data":null},"L":{"Type":"Array","Data":{"Type":"AsciiString","Data":["a","bc"]}},"F":{"Type":"FieldList","Data":{"BID":9}},"J":{"Type":"Json","Data":{"a":[1,{}]}},"M":{"Type":"Msg","Data":{"ID":0,"Type":"Status"}},"D":{"Type":"Date","Data":"2024"}}"#,
        r#""Map":{"KeyType":"Buffer","Summary":{"Fields":{"BID":1}},"CountHint":1073741823,"KeyFieldID":3426,"Entries":[{"Action":"Add","Key":"SzE=","Fields":{"BID":1}},{"Action":"Update","Key":"SzI=","PermData":"Awk=","Fields":{"BID":2}},{"Action":"Delete","Key":"SzM="}]}"#,
        r#""Vector":{"Summary":{"Elements":{"x":1}},"CountHint":3,"SupportSorting":true,"Entries":[{"Index":200,"Action":"Set","PermData":"AQ==","Elements":{"y":1}},{"Index":1073741823,"Action":"Clear"},{"Index":0,"Action":"Delete"},{"Index":1,"Action":"Insert","Elements":{}}]}"#,
        r#""Series":{"Summary":{"Elements":{"s":"x"}},"CountHint":2,"Entries":[{"Elements":{"a":1}},{"Elements":{"a":2}}]}"#,
        r#""Series":{"Entries":[{},{}]}"#,
        r#""FilterList":{"CountHint":4,"Entries":[{"ID":1,"Action":"Set","Elements":{"A":1}},{"ID":2,"Action":"Update","Fields":{"BID":3}},{"ID":3,"Action":"Clear"},{"ID":4,"Action":"Set","PermData":"AwE=","Elements":{"B":2}}]}"#,
        r#""AnsiPage":"\u001b[1;1Hpage""#,
        r#""Json":{"a":[1,2,{"b":null}]}"#,
        r#""Opaque":"""#,
        r#""Fields":{}"#,
    ];
    for body in bodies {
        let text = format!(r#"{{"ID":5,"Type":"Generic",{body}}}"#);
        assert_eq!(again(&text), text);
    }
}

#[test]
fn what_is_absent_is_as_the_protocol_says() {
    let converter = converter();
    let rwf = read(&converter, r#"{"Key":{"Name":"A"},"ID":5}"#);
    let Header::Request(request) = MessageView::parse(&rwf).unwrap().header().unwrap() else { panic!() };
    assert_eq!(request.flags, flags::request::STREAMING | flags::request::MSG_KEY_IN_UPDATES);
    assert_eq!((request.key.name_type, request.key.service_id), (Some(NameType::RIC), None));
    assert_eq!((request.qos, request.priority), (None, None));

    let rwf = read(&converter, r#"{"ID":5,"Type":2}"#);
    let Header::Refresh(refresh) = MessageView::parse(&rwf).unwrap().header().unwrap() else { panic!() };
    assert_eq!(refresh.state, State::OPEN_OK);
    let expected = flags::refresh::SOLICITED | flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
    assert_eq!(refresh.flags, expected);
}

#[test]
fn booleans_and_other_forms_are_taken_as_clients_write_them() {
    let forms = [
        (r#""Streaming":"false""#, false),
        (r#""Streaming":0"#, false),
        (r#""Streaming":"yes""#, false),
        (r#""Streaming":1"#, true),
        (r#""Streaming":"true""#, true),
        (r#""Streaming":null"#, true),
    ];
    for (member, is_streaming) in forms {
        let rwf = read(&converter(), &format!(r#"{{"ID":5,"Key":{{"Name":"A"}},{member}}}"#));
        let has = MessageView::parse(&rwf).unwrap().flags().has(flags::request::STREAMING);
        assert_eq!(has, is_streaming, "{member}");
    }
    for (ours, theirs) in [
        (r#""Fields":{"22":1.5}"#, r#""Fields":{"BID":1.5}"#),
        (r#""Fields":{"REAL":Inf}"#, r#""Fields":{"REAL":"Inf"}"#),
        (r#""Fields":{"ENUM":"ASK"}"#, r#""Fields":{"ENUM":2}"#),
        (r#""Fields":{"ENUM":"  "}"#, r#""Fields":{"ENUM":3}"#),
        (r#""Fields":{"TIME":"14:40:32:001:000:000"}"#, r#""Fields":{"TIME":"14:40:32.001"}"#),
        (r#""Fields":null"#, r#""Fields":{}"#),
        (r#""Fields":{"FLOAT":1,"DOUBLE":1}"#, r#""Fields":{"FLOAT":1.0,"DOUBLE":1.0}"#),
        (r#""Elements":{"E":{"Data":5,"Type":"Int"}}"#, r#""Elements":{"E":{"Type":"Int","Data":5}}"#),
    ] {
        let text = |body| format!(r#"{{"ID":5,"Type":"Generic",{body}}}"#);
        assert_eq!(again(&text(ours)), text(theirs));
    }
    let rwf = read(&converter(), r#"{"ID":5,"Key":{"Name":"A"},"QOS":{"Timeliness":1,"Rate":1}}"#);
    let Header::Request(request) = MessageView::parse(&rwf).unwrap().header().unwrap() else { panic!() };
    assert_eq!(request.qos, Some(Qos::REALTIME_TICK));
}

#[test]
fn batches_and_views_are_in_the_payload() {
    let converter = converter();
    let text = r#"{"ID":5,"Key":{"Name":["A","BB"]},"View":["BID",25]}"#;
    let rwf = read(&converter, text);
    let message = MessageView::parse(&rwf).unwrap();
    assert!(message.flags().has(flags::request::HAS_BATCH | flags::request::HAS_VIEW));
    let payload = RequestPayload::read(&message).unwrap();
    let names: Vec<_> = payload.items.unwrap().iter().flatten().collect();
    assert_eq!(names, [&b"A"[..], b"BB"]);
    let Some(View::Fids(fids)) = payload.view else { panic!("{payload:?}") };
    assert_eq!(fids.iter().flatten().collect::<Vec<_>>(), [22, 25]);
    assert!(
        write(&converter, &rwf).contains(r#""Key":{"Name":["A","BB"]},"ViewType":"FidList","View":[22,25]"#)
    );

    let text = r#"{"ID":5,"Type":"Request","Key":{"Name":"A"},"ViewType":"NameList","View":["a","b"]}"#;
    assert_eq!(again(text), text);

    let rwf = read(&converter, r#"{"ID":[5,6,-7],"Type":"Close"}"#);
    let message = MessageView::parse(&rwf).unwrap();
    let streams = RequestPayload::read(&message).unwrap().streams.unwrap();
    assert_eq!(message.stream_id(), 5);
    assert_eq!(streams.iter().flatten().collect::<Vec<_>>(), [5, 6, -7]);
    assert_eq!(write(&converter, &rwf), r#"{"ID":[5,6,-7],"Type":"Close"}"#);
}

#[test]
fn several_ids_are_as_many_requests() {
    let converter = converter();
    let each = |text: &str| -> Vec<String> {
        let mut room = Vec::new();
        let messages = Packed::parse(text).unwrap();
        messages.map(|incoming| write(&converter, converter.read(&incoming, &mut room).unwrap())).collect()
    };
    assert_eq!(
        each(r#"{"ID":[5,9],"Key":{"Name":["A","BB"]},"View":[22]}"#),
        [
            r#"{"ID":5,"Type":"Request","Key":{"Name":"A"},"ViewType":"FidList","View":[22]}"#,
            r#"{"ID":9,"Type":"Request","Key":{"Name":"BB"},"ViewType":"FidList","View":[22]}"#,
        ]
    );
    assert_eq!(
        each(r#"[{"ID":[5,9],"Type":"Update","Fields":{"BID":1.5}}]"#),
        [
            r#"{"ID":5,"Type":"Update","UpdateType":"Unspecified","Fields":{"BID":1.5}}"#,
            r#"{"ID":9,"Type":"Update","UpdateType":"Unspecified","Fields":{"BID":1.5}}"#,
        ]
    );
    // Streams that are asked for again, all at once: two requests in JSON.
    let mut out = [0; 200];
    let streams = List::Given(&[5, 9]);
    let payload = RequestPayload { streams: Some(streams), ..RequestPayload::default() };
    let mut header = RequestHeader::new(Domain::MARKET_PRICE, 3, Key::default());
    payload.mark(&mut header);
    let len = header.encode_with(&mut out, |room| payload.encode(room)).unwrap();
    let text = write(&converter, &out[..len]);
    assert!(text.starts_with(r#"{"ID":[5,9],"Type":"Request","#), "{text}");
    assert_eq!(each(&text).len(), 2);
    // One id has no name.
    let text = r#"{"ID":[5,6],"Key":{"Name":["A"]}}"#;
    let second = Packed::parse(text).unwrap().nth(1).unwrap();
    let fault = converter.read(&second, &mut Vec::new()).unwrap_err();
    assert_eq!((fault.id, fault.offset), (6, text.find("[\"A").unwrap()));
}

#[test]
fn how_a_symbol_list_is_wanted_is_kept() {
    let converter = converter();
    let behaviors = r#""Elements":{":SymbolListBehaviors":{"Type":"ElementList","Data":{":DataStreams":2}}}"#;
    for view in ["", r#""ViewType":"FidList","View":[22],"#] {
        let text = format!(
            r#"{{"ID":5,"Type":"Request","Domain":"SymbolList","Key":{{"Name":"A"}},{view}{behaviors}}}"#
        );
        let rwf = read(&converter, &text);
        let payload = RequestPayload::read(&MessageView::parse(&rwf).unwrap()).unwrap();
        assert_eq!((payload.data_streams, payload.view.is_some()), (Some(2), !view.is_empty()));
        assert_eq!(write(&converter, &rwf), text);
    }
    // What has a member of its own is said there.
    let text = r#"{"ID":5,"Key":{"Name":"A"},"Elements":{":ViewType":1}}"#;
    let incoming = Packed::parse(text).unwrap().next().unwrap();
    let fault = converter.read(&incoming, &mut Vec::new()).unwrap_err();
    assert_eq!(fault.problem, JsonProblem::Key(":ViewType".to_owned()));
}

#[test]
fn services_have_names_and_one_may_be_assumed() {
    let mut converter = converter();
    converter.settings.default_service = Some(SERVICES[0].0);
    let service = |text: &str| {
        let rwf = read(&converter, text);
        MessageView::parse(&rwf).unwrap().key().unwrap().unwrap().service_id
    };
    assert_eq!(service(r#"{"ID":5,"Key":{"Name":"A"}}"#), Some(7));
    assert_eq!(service(r#"{"ID":5,"Key":{"Name":"A","Service":9}}"#), Some(9));
    assert_eq!(service(r#"{"ID":5,"Key":{"Name":"A","Service":"FEED"}}"#), Some(7));
    assert_eq!(service(r#"{"ID":5,"Domain":"Login","Key":{"Name":"A"}}"#), None);
    assert_eq!(service(r#"{"ID":5,"Domain":"Source","Key":{}}"#), None);
    assert_eq!(service(r#"{"ID":5,"Type":"Post","Key":{"Name":"A"}}"#), Some(7));
    assert_eq!(service(r#"{"ID":5,"Type":"Update","Key":{"Name":"A"}}"#), None);
}

#[test]
fn a_login_with_a_token_has_no_name() {
    let text = r#"{"ID":1,"Type":"Request","Domain":"Login","Key":{"NameType":"AuthnToken","Elements":{"AuthenticationToken":"t"}}}"#;
    assert_eq!(again(text), text);
}

#[test]
fn display_texts_are_written_on_request() {
    let mut converter = converter();
    converter.settings.expand_enumerations = true;
    let text = r#"{"ID":5,"Type":"Generic","Fields":{"ENUM":"ASK ","BID":39.90}}"#;
    assert_eq!(write(&converter, &read(&converter, text)), text);
}

#[test]
fn what_the_dictionary_does_not_have_is_left_out_and_counted() {
    let mut out = [0; 64];
    let mut list = tapeline_omm::FieldListEncoder::new(&mut out).unwrap();
    list.real(tapeline_omm::Fid(22), Real::decimal(3990, 2)).unwrap();
    list.uint(tapeline_omm::Fid(9_999), 1).unwrap();
    let len = list.finish();
    let mut rwf = vec![0, 9, 4, 6, 0, 0, 0, 3, 0, 4, 1];
    rwf.extend(&out[..len]);
    let mut text = Vec::new();
    assert_eq!(converter().write(&MessageView::parse(&rwf).unwrap(), &mut text), Ok(1));
    let expected = r#"{"ID":3,"Type":"Update","UpdateType":"Quote","Fields":{"BID":39.90}}"#;
    assert_eq!(str::from_utf8(&text).unwrap(), expected);
}

#[test]
fn pings_pongs_and_errors_are_for_the_caller() {
    let text = r#"[{"Type":"Ping"},{"Type":"Pong"},{"ID":3,"Type":"Error","Text":"\u0062ad"},{"ID":4}]"#;
    let messages: Vec<_> = Packed::parse(text).unwrap().collect();
    let kinds: Vec<_> = messages.iter().map(tapeline_omm::json::Incoming::kind).collect();
    assert_eq!(kinds, [MessageKind::Ping, MessageKind::Pong, MessageKind::Error, MessageKind::Message]);
    assert_eq!((messages[2].id(), messages[2].error_text().as_deref()), (3, Some("bad")));
}

#[test]
fn a_text_is_read_from_any_of_its_places() {
    for text in [
        r#"{"ID":5,"Type":"Close"}"#,
        "[]",
        r#"[{"Type":"Ping"}]"#,
        r#"[{"ID":2,"Key":{"Name":"A"}}, {"ID":[3,4,5],"Key":{"Name":["B","C","D"]}} ,{"Type":"Ping"},{"ID":[6,7],"Type":"Close"}]"#,
        r#"{"ID":[3,4,5],"Key":{"Name":["B","C","D"]}}"#,
        r#" [ {"ID":[8,9]} ] "#,
    ] {
        let described = |packed: &mut Packed<'_>| {
            packed.next().map(|incoming| (incoming.text().to_owned(), incoming.id(), incoming.kind()))
        };
        let mut whole = Packed::parse(text).unwrap();
        let mut places = 0;
        while let Some(place) = whole.place() {
            let mut resumed = Packed::resume(text, &place);
            assert_eq!(resumed.place(), Some(place), "{text}");
            let rest: Vec<_> = std::iter::from_fn(|| described(&mut resumed)).collect();
            let mut further = whole.clone();
            assert_eq!(rest, std::iter::from_fn(|| described(&mut further)).collect::<Vec<_>>(), "{text}");
            assert!(described(&mut whole).is_some(), "{text}");
            places += 1;
        }
        assert_eq!(described(&mut whole), None, "{text}");
        assert_eq!(places, Packed::parse(text).unwrap().count(), "{text}");
    }
}

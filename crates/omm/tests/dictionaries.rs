//! The built-in dictionary against the standard one, and the standard files against what is known of them.
use crate::shared_data;

use serde_json::Value as Json;
use shared_data::shared_text;
use tapeline_omm::dictionary::{Download, FieldDefinition, Verbosity};
use tapeline_omm::rwf::{DataType, MessageView};
use tapeline_omm::{Dictionary, Fid, Refused, fid};

fn standard() -> Option<Dictionary> {
    let fields = shared_text("data/refinitiv/RDMFieldDictionary")?;
    let enumerations = shared_text("data/refinitiv/enumtype.def")?;
    Some(Dictionary::parse(&fields).unwrap().with_enumerations(&enumerations).unwrap())
}

#[test]
fn our_fields_are_those_of_the_standard_dictionary() {
    let Some(standard) = standard() else { return };
    for field in Dictionary::builtin().fields() {
        let theirs = standard.field(field.fid).unwrap();
        assert_eq!(field.name, theirs.name);
        assert_eq!(field.long_name, theirs.long_name);
        assert_eq!(field.data_type, theirs.data_type, "{}", field.name);
        assert_eq!(field.data_len, theirs.data_len, "{}", field.name);
        assert_eq!(field.marketfeed_type, theirs.marketfeed_type, "{}", field.name);
        assert_eq!(field.marketfeed_len, theirs.marketfeed_len, "{}", field.name);
        assert_eq!(field.display_len, theirs.display_len, "{}", field.name);
        let ours = Dictionary::builtin().enumeration(field.fid).map_or(&[][..], |table| table.values());
        for value in ours {
            let shown = standard.display(field.fid, value.number);
            assert_eq!(shown, Some(value.display.as_ref()), "{} {}", field.name, value.number);
        }
    }
    for (name, fid) in fid::ALL {
        assert_eq!(standard.field_named(name).map(|field| field.fid), Some(*fid), "{name}");
    }
}

#[test]
fn the_standard_files_are_read_whole() {
    let (Some(standard), Some(expected)) = (standard(), shared_text("data/refinitiv/expected.json")) else {
        return;
    };
    let expected: Json = serde_json::from_str(&expected).unwrap();
    let fields = &expected["dictionary"];
    assert_eq!(standard.len() as u64, fields["fields"]);
    for (tag, value) in fields["tags"].as_object().unwrap() {
        assert_eq!(standard.field_tag(tag), value.as_str());
    }
    for (name, count) in fields["rwf_types"].as_object().unwrap() {
        let name = name.trim_end_matches("64");
        let found = standard.fields().filter(|field| field.data_type.name() == Some(name)).count();
        assert_eq!(found as u64, *count, "{name}");
    }
    for (name, count) in fields["marketfeed_types"].as_object().unwrap() {
        let found = standard.fields().filter(|field| field.marketfeed_type.name() == name).count();
        assert_eq!(found as u64, *count, "{name}");
    }
    let mut examples = 0;
    for example in fields["examples"].as_array().unwrap() {
        let field = standard.field_named(example["acronym"].as_str().unwrap()).unwrap();
        assert_eq!(i64::from(field.fid.0), example["fid"]);
        assert_eq!(field.long_name.as_ref(), example["dde"]);
        assert_eq!(field.ripples_to.as_deref().unwrap_or("NULL"), example["ripples_to"]);
        assert_eq!(u64::from(field.marketfeed_len), example["length"]);
        assert_eq!(field.display_len.map(u64::from), example["enum_length"].as_u64());
        assert_eq!(u64::from(field.data_len), example["rwf_len"]);
        examples += 1;
    }
    assert!(examples > 5);
    let rippling = standard.fields().filter(|field| standard.ripples_to(field.fid).is_some()).count();
    assert_eq!(rippling as u64, fields["fields_with_ripple"]);
    let chain = fields["ripple_chain_of_6"].as_array().unwrap();
    for pair in chain.windows(2) {
        let next = standard.ripples_to(Fid(pair[0][1].as_i64().unwrap() as i16)).unwrap();
        assert_eq!(next.name.as_ref(), pair[1][0]);
    }

    let enumerations = &expected["enums"];
    for (tag, value) in enumerations["tags"].as_object().unwrap() {
        assert_eq!(standard.enumeration_tag(tag), value.as_str());
    }
    assert_eq!(standard.enumerations().len() as u64, enumerations["tables"]);
    let shared: usize = standard.enumerations().map(|table| table.fids.len()).sum();
    assert_eq!(shared as u64, enumerations["fids_with_table"]);
    let values: usize = standard.enumerations().map(|table| table.values().len()).sum();
    assert_eq!(values as u64, enumerations["values"]);
    let mut enumerated = standard.fields().filter(|field| field.data_type == DataType::ENUM);
    assert!(enumerated.all(|field| standard.enumeration(field.fid).is_some()));
    for (fid, example) in enumerations["examples"].as_object().unwrap() {
        let table = standard.enumeration(Fid(fid.parse().unwrap())).unwrap();
        assert_eq!(table.values().len() as u64, example["values"]);
        for group in ["first", "last"] {
            for (number, texts) in example[group].as_object().unwrap() {
                let value = table.value(number.parse().unwrap()).unwrap();
                let display = match texts[0].as_str().unwrap() {
                    quoted if quoted.starts_with('"') => quoted.trim_matches('"').as_bytes().to_vec(),
                    hex => vec![u8::from_str_radix(hex.trim_matches('#'), 16).unwrap()],
                };
                assert_eq!(value.display_bytes(), display);
                assert_eq!(value.meaning.as_ref(), texts[1]);
            }
        }
    }
}

#[test]
fn bad_files_are_refused() {
    for (file, message) in [
        ("RDMFieldDictionaryDuplicateFid", "line 45: field id 1 was given to PROD_PERM before"),
        (
            "RDMFieldDictionaryInvalidRWFType",
            "line 41: RWF type \"UNKNOWN\" is not known; expected one of INT64 UINT64 ",
        ),
    ] {
        let Some(text) = shared_text(&format!("data/refinitiv/negative/{file}")) else { return };
        let fault = Dictionary::parse(&text).unwrap_err().to_string();
        assert!(fault.starts_with(message), "{fault}");
    }
}

/// All parts of a dictionary over the wire, each at most `size` bytes; the copy, and how many parts there were.
fn copy(dictionary: &Dictionary, verbosity: Verbosity, size: usize) -> (Dictionary, usize) {
    let mut download = Download::new();
    let (mut out, mut parts) = (vec![0; size], 0);
    let mut from = 0;
    loop {
        let part = dictionary.encode_fields(from, verbosity, &mut out).unwrap();
        download.fields(&out[..part.len]).unwrap();
        (from, parts) = (part.next, parts + 1);
        if part.is_last {
            break;
        }
    }
    from = 0;
    loop {
        let part = dictionary.encode_enumerations(from, verbosity, &mut out).unwrap();
        download.enumerations(&out[..part.len]).unwrap();
        (from, parts) = (part.next, parts + 1);
        if part.is_last {
            break;
        }
    }
    (download.finish(), parts)
}

fn check_same(dictionary: &Dictionary, copy: &Dictionary) -> (usize, usize) {
    assert_eq!(copy.len(), dictionary.len());
    for (copied, field) in copy.fields().zip(dictionary.fields()) {
        // A field may ripple to one that the file does not have; the wire knows only ids.
        let ripples_to = dictionary.ripples_to(field.fid).map(|to| to.name.clone());
        assert_eq!(*copied, FieldDefinition { ripples_to, ..field.clone() });
        assert_eq!(copy.field_named(&field.name), Some(copied));
    }
    let mut values = 0;
    for (copied, table) in copy.enumerations().zip(dictionary.enumerations()) {
        assert_eq!(copied, table);
        values += table.values().len();
    }
    assert_eq!(copy.enumerations().len(), dictionary.enumerations().len());
    for tag in ["Version", "DictionaryId"] {
        assert_eq!(copy.field_tag(tag).unwrap_or("0"), dictionary.field_tag(tag).unwrap_or("0"));
    }
    (dictionary.len(), values)
}

#[test]
fn ours_goes_over_the_wire_in_parts_of_any_size() {
    for (size, at_least) in [(700, 4), (4_096, 2), (65_536, 2)] {
        let (copied, parts) = copy(Dictionary::builtin(), Verbosity::VERBOSE, size);
        assert!(check_same(Dictionary::builtin(), &copied).1 > 10);
        assert!(parts >= at_least, "{parts} parts of {size} bytes");
    }
    // Without the meanings, and without what only shows.
    let (normal, _) = copy(Dictionary::builtin(), Verbosity::NORMAL, 65_536);
    let (minimal, _) = copy(Dictionary::builtin(), Verbosity::MINIMAL, 65_536);
    for field in Dictionary::builtin().fields() {
        let (normal, minimal) = (normal.field(field.fid).unwrap(), minimal.field(field.fid).unwrap());
        assert_eq!(normal, field);
        assert_eq!((minimal.data_type, &*minimal.long_name), (field.data_type, ""));
    }
    assert_eq!(normal.display(fid::TRD_STATUS, 2), Some("H "));
    assert_eq!(&*normal.enumeration(fid::TRD_STATUS).unwrap().value(2).unwrap().meaning, "");
    let (info, parts) = copy(Dictionary::builtin(), Verbosity::INFO, 65_536);
    assert_eq!((info.len(), parts, info.field_tag("Version")), (0, 2, Some("1.0.0")));
    // Not even one field has room.
    let refused = Dictionary::builtin().encode_fields(0, Verbosity::NORMAL, &mut [0; 150]);
    assert_eq!(refused, Err(Refused::Full));
}

#[test]
fn the_standard_dictionary_goes_over_the_wire() {
    let Some(standard) = standard() else { return };
    let (copied, parts) = copy(&standard, Verbosity::VERBOSE, 65_536);
    let (fields, values) = check_same(&standard, &copied);
    assert!(fields > 15_000 && values > 10_000 && parts > 10, "{fields} {values} {parts}");
}

/// What the reference sends reads as the files that it was made from, and what we send of it the same.
#[test]
fn downloads_of_the_reference() {
    let Some(fields) = shared_text("protocol/dictionary/RDMFieldDictionary") else { return };
    let enumerations = shared_text("protocol/dictionary/enumtype.def").unwrap();
    let file = Dictionary::parse(&fields).unwrap().with_enumerations(&enumerations).unwrap();
    for (name, expected) in [("rssl-01-baseline-dictionary-download", 2), ("rssl-27-dictionary-in-parts", 4)]
    {
        let text = shared_text(&format!("protocol/vectors/{name}.json")).unwrap();
        let json: Json = serde_json::from_str(&text).unwrap();
        let mut download = Download::new();
        let mut parts = 0;
        for record in json["records"].as_array().unwrap() {
            for message in record["messages"].as_array().into_iter().flatten() {
                if message["decoded"]["domainType"] != 5 || message["decoded"]["msgClass"] != "REFRESH" {
                    continue;
                }
                // Without bytes of its own a message is the rest of its frame, behind three bytes.
                let bytes = match message["hex"].as_str() {
                    Some(hex) => unhex(hex),
                    None => unhex(record["hex"].as_str().unwrap()).split_off(3),
                };
                let message = MessageView::parse(&bytes).unwrap();
                if message.key().unwrap().unwrap().name == Some(b"RWFFld") {
                    download.fields(message.payload()).unwrap();
                } else {
                    download.enumerations(message.payload()).unwrap();
                }
                parts += 1;
            }
        }
        assert_eq!(parts, expected, "{name}");
        let copied = download.finish();
        for table in file.enumerations() {
            for (value, fid) in table.values().iter().zip(table.fids.iter().cycle()) {
                let shown = copied.display(*fid, value.number);
                assert_eq!(shown, Some(&*value.display), "{name}: {fid} {}", value.number);
            }
        }
        // The second vector's dictionary has 300 fields more than the file.
        for field in file.fields() {
            let copied =
                copied.field(field.fid).unwrap_or_else(|| panic!("{name}: {} is missing", field.name));
            assert_eq!((&copied.name, copied.data_type), (&field.name, field.data_type), "{name}");
            assert_eq!((&copied.long_name, copied.data_len), (&field.long_name, field.data_len), "{name}");
        }
        let (again, _) = copy(&copied, Verbosity::NORMAL, 6_000);
        let (fields, values) = check_same(&copied, &again);
        assert!(fields > 66 && values > 9, "{name}: {fields} {values}");
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

//! The built-in dictionary against the standard one, and the standard files against what is known of them.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod shared_data;

use serde_json::Value as Json;
use shared_data::shared_text;
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Dictionary, Fid, fid};

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
                assert_eq!(value.display_bytes.as_ref(), display);
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

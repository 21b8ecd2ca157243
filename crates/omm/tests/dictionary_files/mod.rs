//! Files of fields and of enumerations, and what must hold whatever stands in them.

#![allow(dead_code, reason = "each user takes some of it")]

use tapeline_omm::dictionary::{DictionaryError, Download, Verbosity};
use tapeline_omm::{Dictionary, Refused};

/// A line of this is between the two files.
const BETWEEN: &str = "\n%%\n";

/// Any text: fields, then enumerations. Without fields these are of Tapeline's own.
pub(crate) fn any(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let (fields, enumerations) = text.split_once(BETWEEN).unwrap_or((text, ""));
    let dictionary = match fields {
        "" => Dictionary::builtin().clone(),
        fields => match Dictionary::parse(fields) {
            Ok(dictionary) => dictionary,
            Err(fault) => return has_its_line(&fault, fields),
        },
    };
    for field in dictionary.fields() {
        assert_eq!(dictionary.field(field.fid), Some(field));
        assert_eq!(dictionary.field_named(&field.name), Some(field));
        assert_eq!(dictionary.data_type(field.fid), Some(field.data_type));
    }
    match dictionary.with_enumerations(enumerations) {
        Ok(dictionary) => download(&dictionary),
        Err(fault) => has_its_line(&fault, enumerations),
    }
}

fn has_its_line(fault: &DictionaryError, text: &str) {
    assert!((1..=text.lines().count().max(1)).contains(&fault.line), "{fault}");
}

/// Sent in parts, it comes out the same.
fn download(dictionary: &Dictionary) {
    let (mut download, mut room) = (Download::new(), vec![0; 70_000]);
    let mut from = 0;
    loop {
        let part = match dictionary.encode_fields(from, Verbosity::NORMAL, &mut room) {
            Ok(part) => part,
            // A name that no entry can hold.
            Err(Refused::TooLong { .. }) => return,
            Err(refused) => panic!("{refused}"),
        };
        download.fields(&room[..part.len]).unwrap();
        if part.is_last {
            break;
        }
        assert!(part.next > from);
        from = part.next;
    }
    let mut from = 0;
    loop {
        let part = match dictionary.encode_enumerations(from, Verbosity::VERBOSE, &mut room) {
            Ok(part) => part,
            Err(Refused::TooLong { .. } | Refused::Full) => return,
            Err(refused) => panic!("{refused}"),
        };
        download.enumerations(&room[..part.len]).unwrap();
        if part.is_last {
            break;
        }
        assert!(part.next > from);
        from = part.next;
    }
    let copy = download.finish();
    assert_eq!(copy.len(), dictionary.len());
    for field in dictionary.fields() {
        let same = copy.field(field.fid).unwrap();
        assert_eq!((&same.name, same.data_type), (&field.name, field.data_type));
        assert_eq!(
            copy.ripples_to(field.fid).map(|to| to.fid),
            dictionary.ripples_to(field.fid).map(|to| to.fid)
        );
        let table = |dictionary: &Dictionary| {
            dictionary
                .enumeration(field.fid)
                .map(|table| table.values().iter().map(|value| value.number).collect::<Vec<_>>())
        };
        assert_eq!(table(&copy), table(dictionary), "{}", field.name);
    }
}

//! Every reader of RWF, and what must hold whatever bytes it is given.

#![allow(dead_code, reason = "each user takes some of it")]

mod containers;

use tapeline_omm::dictionary::Download;
use tapeline_omm::rwf::{DataType, Map, MessageView, Rmtes, RmtesCache, Series};
use tapeline_omm::{Dictionary, Fid, FieldList, Value};

pub(crate) const PRIMITIVES: [DataType; 16] = [
    DataType::INT,
    DataType::UINT,
    DataType::FLOAT,
    DataType::DOUBLE,
    DataType::REAL,
    DataType::DATE,
    DataType::TIME,
    DataType::DATETIME,
    DataType::QOS,
    DataType::STATE,
    DataType::ENUM,
    DataType::BUFFER,
    DataType::ASCII_STRING,
    DataType::UTF8_STRING,
    DataType::RMTES_STRING,
    DataType::ARRAY,
];

/// Any bytes: the first says as what the others are read, beside everything else that there is. A primitive is read as that type and as
/// one more: as all of them each time, two thirds of the time went into types that say nothing new.
pub(crate) fn any(bytes: &[u8]) {
    if let Some((data_type, bytes)) = bytes.split_first() {
        let one_more = PRIMITIVES[bytes.len() % PRIMITIVES.len()];
        read(bytes, &[DataType(*data_type), one_more]);
    }
}

/// The same, with primitives as every type.
pub(crate) fn any_thoroughly(bytes: &[u8]) {
    if let Some((data_type, bytes)) = bytes.split_first() {
        read_all(bytes, DataType(*data_type));
    }
}

/// Every reader over the same bytes, primitives as every type and as this one.
pub(crate) fn read_all(bytes: &[u8], data_type: DataType) {
    read(bytes, &[&PRIMITIVES[..], &[data_type]].concat());
}

/// Every reader over the same bytes. Results do not matter; offsets must lie within what was read.
fn read(bytes: &[u8], primitives: &[DataType]) {
    let dictionary = Dictionary::builtin();
    let mut faults = Vec::new();
    match MessageView::parse(bytes) {
        Ok(message) => {
            faults.extend(message.header().err());
            let mut out = [0; 1024];
            if let Ok(header) = message.header() {
                let _ = header.encode(&mut out);
            }
            let _ = (message.key(), message.update_type(), message.is_refresh_complete());
            let _ = message.outline(dictionary).to_string();
        }
        Err(fault) => faults.push(fault),
    }
    match FieldList::parse(bytes) {
        Ok(list) => {
            for field in list.iter() {
                match field {
                    Ok(field) => {
                        for &data_type in primitives {
                            let by_ahead = field.value(data_type);
                            let alone = Value::decode(data_type, field.data);
                            assert_eq!(format!("{by_ahead:?}"), format!("{alone:?}"));
                            if let Ok(value) = alone {
                                let _ = value.to_string();
                            }
                        }
                    }
                    Err(fault) => faults.push(fault),
                }
            }
            // A pass of its own finds what going through all of them finds.
            let ids = list.iter().filter_map(|field| Some(field.ok()?.fid));
            for fid in ids.chain([Fid(22)]).take(64) {
                let passed = list.iter().find(|field| field.as_ref().map_or(true, |field| field.fid == fid));
                assert_eq!(list.find(fid), passed.transpose());
            }
            let _ = (list.render(dictionary).to_string(), format!("{:#}", list.render(dictionary)));
        }
        Err(fault) => faults.push(fault),
    }
    containers::read_all(bytes, &mut faults);
    if let Ok(map) = Map::parse(bytes) {
        let _ = (map.render(dictionary).to_string(), format!("{:#}", map.render(dictionary)));
    }
    // A dictionary's tables are large: they are made only for what may fill them.
    if let Ok(series) = Series::parse(bytes)
        && series.head().container == DataType::ELEMENT_LIST
    {
        let mut download = Download::new();
        let _ = (download.fields(bytes), download.enumerations(bytes));
        let _ = download.finish().len();
    }
    let mut room = [b'.'; 20];
    let mut cache = RmtesCache::with_len(&mut room, 10);
    let is_partial = Rmtes(bytes).is_partial();
    Rmtes(bytes).apply(&mut cache);
    assert!(cache.len() <= 20 && (!is_partial || cache.len() >= 10));
    for &data_type in primitives {
        match Value::decode(data_type, bytes) {
            Ok(value) => {
                let _ = value.to_string();
            }
            Err(fault) => faults.push(fault),
        }
    }
    for fault in faults {
        assert!(fault.offset <= bytes.len(), "{fault} of {} bytes", bytes.len());
    }
}

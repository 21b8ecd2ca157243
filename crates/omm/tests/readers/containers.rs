//! Every container, however its bytes came about: what was understood is written again and reads the same.

use tapeline_omm::rwf::{
    Container, DEPTH_LIMIT, DataType, ElementListEncoder, Entries, FilterList, FilterListEncoder, Head, Map,
    MapEncoder, Series, SeriesEncoder, SetDefinitions, Vector, VectorEncoder,
};
use tapeline_omm::{Dictionary, Malformed, Value};

const CONTAINERS: [DataType; 7] = [
    DataType::FIELD_LIST,
    DataType::ELEMENT_LIST,
    DataType::FILTER_LIST,
    DataType::MAP,
    DataType::VECTOR,
    DataType::SERIES,
    DataType::MSG,
];

/// Reads the bytes as each container in turn.
pub(super) fn read_all(bytes: &[u8], faults: &mut Vec<Malformed>) {
    for data_type in CONTAINERS {
        match Container::parse(data_type, bytes, &SetDefinitions::NONE) {
            Ok(container) => {
                faults.extend(faults_of(&container));
                write_again(&container, bytes.len());
                walk(&container, 0);
                let _ = container.outline(Dictionary::builtin()).to_string();
            }
            Err(fault) => faults.push(fault),
        }
    }
}

/// All of a container and of those in it.
fn walk(container: &Container<'_>, depth: usize) {
    if depth == DEPTH_LIMIT {
        return;
    }
    let inner = |container: Result<Container<'_>, Malformed>| {
        if let Ok(container) = container {
            walk(&container, depth + 1);
        }
    };
    let value = |value: Result<Value<'_>, Malformed>| {
        if let Ok(Ok(Some(container))) = value.map(|value| value.open()) {
            walk(&container, depth + 1);
        }
    };
    match container {
        Container::FieldList(list) => {
            for field in list.iter().flatten() {
                value(field.value(DataType::ELEMENT_LIST));
            }
        }
        Container::ElementList(list) => list.iter().flatten().for_each(|element| value(element.value())),
        Container::FilterList(list) => {
            list.iter().flatten().for_each(|entry| inner(entry.open(list.head())));
        }
        Container::Map(map) => {
            let sets = map.sets().unwrap_or_default();
            let summary = map.head().summary.into_iter();
            let entries = map.iter().flatten().map(|entry| entry.data);
            summary.chain(entries).for_each(|data| inner(map.open(data, &sets)));
        }
        Container::Vector(vector) => {
            let sets = vector.sets().unwrap_or_default();
            let summary = vector.head().summary.into_iter();
            let entries = vector.iter().flatten().map(|entry| entry.data);
            summary.chain(entries).for_each(|data| inner(vector.open(data, &sets)));
        }
        // A few bytes can say that there are tens of thousands of entries without data.
        Container::Series(series) if series.head().container != DataType::NO_DATA => {
            let sets = series.sets().unwrap_or_default();
            let summary = series.head().summary.into_iter();
            summary.chain(series.iter().flatten()).for_each(|data| inner(series.open(data, &sets)));
        }
        Container::Message(message) => inner(message.open()),
        _ => {}
    }
}

/// The faults of a container's own entries: at most one, and the last.
fn faults_of(container: &Container<'_>) -> Option<Malformed> {
    fn last<T>(entries: impl Iterator<Item = Result<T, Malformed>>) -> Option<Malformed> {
        let entries: Vec<_> = entries.collect();
        assert!(entries.iter().rev().skip(1).all(Result::is_ok));
        entries.into_iter().next_back()?.err()
    }
    match container {
        Container::FieldList(list) => last(list.iter()),
        Container::ElementList(list) => last(list.iter()),
        Container::FilterList(list) => last(list.iter()),
        Container::Map(map) => last(map.iter()),
        Container::Vector(vector) => last(vector.iter()),
        Container::Series(series) => last(series.iter()),
        _ => None,
    }
}

fn write_again(container: &Container<'_>, len: usize) {
    let mut out = vec![0; 4 * len + 64];
    match container {
        Container::ElementList(list) if list.set_data().is_none() => {
            let mut again = ElementListEncoder::new(&mut out).unwrap();
            for element in list.iter().flatten() {
                again.raw(element.name, element.data_type, element.data).unwrap();
            }
            let len = again.finish();
            let again = tapeline_omm::rwf::ElementList::parse(&out[..len]).unwrap();
            assert!(again.iter().map(Result::unwrap).eq(list.iter().flatten()));
        }
        Container::FilterList(list) => {
            let mut again = FilterListEncoder::new(&mut out, list.head()).unwrap();
            list.iter().flatten().for_each(|entry| again.entry(&entry).unwrap());
            let len = again.finish();
            same(&FilterList::parse(&out[..len]).unwrap(), list);
        }
        Container::Map(map) => {
            let mut again = MapEncoder::new(&mut out, map.head()).unwrap();
            map.iter().flatten().for_each(|entry| again.entry(&entry).unwrap());
            let len = again.finish();
            same(&Map::parse(&out[..len]).unwrap(), map);
        }
        Container::Vector(vector) => {
            let mut again = VectorEncoder::new(&mut out, vector.head()).unwrap();
            vector.iter().flatten().for_each(|entry| again.entry(&entry).unwrap());
            let len = again.finish();
            same(&Vector::parse(&out[..len]).unwrap(), vector);
        }
        Container::Series(series) => {
            let mut again = SeriesEncoder::new(&mut out, series.head()).unwrap();
            series.iter().flatten().for_each(|entry| again.entry(entry).unwrap());
            let len = again.finish();
            same(&Series::parse(&out[..len]).unwrap(), series);
        }
        _ => {}
    }
}

/// The same head, and the same entries as far as they could be read.
fn same<'a, H>(again: &Entries<'a, H>, before: &Entries<'a, H>)
where
    H: Head<'a, Entry: PartialEq + std::fmt::Debug> + PartialEq + std::fmt::Debug,
{
    assert_eq!(again.head(), before.head());
    assert!(again.iter().map(Result::unwrap).eq(before.iter().flatten()));
}

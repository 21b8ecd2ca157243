//! Containers in containers, of any kinds and contents: what is written in one pass reads back as it was, and a buffer
//! that is too small is said to be so.
use proptest::collection::vec;
use proptest::prelude::*;
use tapeline_omm::rwf::{
    Container, DataType, ElementListEncoder, FilterAction, FilterEntry, FilterListEncoder, FilterListHead,
    MapAction, MapEncoder, MapHead, SeriesEncoder, SeriesHead, SetDefinitions, VectorAction, VectorEncoder,
    VectorHead,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Refused, Value};

/// A container with all that it holds.
#[derive(Debug, Clone, PartialEq)]
enum Tree {
    Opaque(Vec<u8>),
    Fields(Vec<(i16, Vec<u8>)>),
    Elements(Vec<(Vec<u8>, Inner)>),
    Filters { hint: Option<u8>, of: DataType, entries: Vec<(u8, Option<Vec<u8>>, DataType, Tree)> },
    Map { of: DataType, summary: Option<Box<Tree>>, entries: Vec<(u64, Option<Vec<u8>>, Option<Tree>)> },
    Vector { of: DataType, hint: Option<u32>, entries: Vec<(u32, Tree)> },
    Series { of: DataType, summary: Option<Box<Tree>>, entries: Vec<Tree> },
}

#[derive(Debug, Clone, PartialEq)]
enum Inner {
    Number(i64),
    Text(Vec<u8>),
    Tree(DataType, Tree),
}

/// Bytes that decide what a tree is; when they are used up, everything is small.
struct Choices<'b>(std::slice::Iter<'b, u8>);

impl Choices<'_> {
    fn below(&mut self, most: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % most
    }

    fn bytes(&mut self) -> Vec<u8> {
        // Lengths on both sides of the edges of every form.
        let len = [0, 1, 5, 127, 128, 253, 254, 300][self.below(8)];
        (0..len).map(|at| at as u8).collect()
    }

    fn option<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.below(2) == 1 { Some(make(self)) } else { None }
    }

    fn kind(&mut self, depth: usize) -> DataType {
        const KINDS: [DataType; 7] = [
            DataType::OPAQUE,
            DataType::FIELD_LIST,
            DataType::ELEMENT_LIST,
            DataType::FILTER_LIST,
            DataType::MAP,
            DataType::VECTOR,
            DataType::SERIES,
        ];
        KINDS[self.below(if depth == 0 { 2 } else { KINDS.len() })]
    }

    fn many<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn tree(&mut self, kind: DataType, depth: usize) -> Tree {
        let depth = depth.saturating_sub(1);
        match kind {
            DataType::FIELD_LIST => Tree::Fields(self.many(|c| (c.below(200) as i16 - 100, c.bytes()))),
            DataType::ELEMENT_LIST => Tree::Elements(self.many(|c| {
                let value = match c.below(3) {
                    0 => Inner::Number(i64::from(c.below(256) as i32 - 128) << c.below(50)),
                    1 => Inner::Text([b"t".to_vec(), c.bytes()].concat()),
                    _ => {
                        let kind = c.kind(depth);
                        Inner::Tree(kind, c.tree(kind, depth))
                    }
                };
                (c.bytes(), value)
            })),
            DataType::FILTER_LIST => {
                let of = self.kind(depth);
                let hint = self.option(|c| c.below(256) as u8);
                let entries = self.many(|c| {
                    let own = if c.below(2) == 0 { of } else { c.kind(depth) };
                    (c.below(256) as u8, c.option(Self::bytes), own, c.tree(own, depth))
                });
                Tree::Filters { hint, of, entries }
            }
            DataType::MAP => {
                let of = self.kind(depth);
                let summary = self.option(|c| Box::new(c.tree(of, depth)));
                let entries = self
                    .many(|c| (c.below(256) as u64, c.option(Self::bytes), c.option(|c| c.tree(of, depth))));
                Tree::Map { of, summary, entries }
            }
            DataType::VECTOR => {
                let of = self.kind(depth);
                let hint = self.option(|c| (c.below(256) as u32) << c.below(22));
                let entries = self.many(|c| ((c.below(256) as u32) << c.below(22), c.tree(of, depth)));
                Tree::Vector { of, hint, entries }
            }
            DataType::SERIES => {
                let of = self.kind(depth);
                let summary = self.option(|c| Box::new(c.tree(of, depth)));
                Tree::Series { of, summary, entries: self.many(|c| c.tree(of, depth)) }
            }
            _ => Tree::Opaque(self.bytes()),
        }
    }
}

fn write(tree: &Tree, out: &mut [u8]) -> Result<usize, Refused> {
    match tree {
        Tree::Opaque(bytes) => {
            out.get_mut(..bytes.len()).ok_or(Refused::Full)?.copy_from_slice(bytes);
            Ok(bytes.len())
        }
        Tree::Fields(fields) => {
            let mut list = FieldListEncoder::new(out)?;
            fields.iter().try_for_each(|(fid, bytes)| list.buffer(Fid(*fid), bytes))?;
            Ok(list.finish())
        }
        Tree::Elements(elements) => {
            let mut list = ElementListEncoder::new(out)?;
            for (name, value) in elements {
                match value {
                    Inner::Number(number) => list.int(name, *number)?,
                    Inner::Text(text) => list.ascii(name, text)?,
                    Inner::Tree(kind, tree) => list.in_place(name, *kind, |room| write(tree, room))?,
                }
            }
            Ok(list.finish())
        }
        Tree::Filters { hint, of, entries } => {
            let head = FilterListHead { container: *of, count_hint: *hint, permission_data: true };
            let mut list = FilterListEncoder::new(out, &head)?;
            for (id, permission_data, own, tree) in entries {
                let entry = FilterEntry {
                    container: Some(*own).filter(|own| own != of),
                    permission_data: permission_data.as_deref(),
                    ..FilterEntry::new(FilterAction::SET, *id, &[])
                };
                list.any_in_place(&entry, |room| write(tree, room))?;
            }
            Ok(list.finish())
        }
        Tree::Map { of, summary, entries } => {
            let head = MapHead { permission_data: true, ..MapHead::new(DataType::UINT, *of) };
            let mut map = match summary {
                Some(summary) => MapEncoder::with_summary(out, &head, |room| write(summary, room))?,
                None => MapEncoder::new(out, &head)?,
            };
            for (key, permission_data, tree) in entries {
                let action = if tree.is_some() { MapAction::ADD } else { MapAction::DELETE };
                map.keyed_in_place(action, *key, permission_data.as_deref(), |room| {
                    write(tree.as_ref().unwrap(), room)
                })?;
            }
            Ok(map.finish())
        }
        Tree::Vector { of, hint, entries } => {
            let mut vector =
                VectorEncoder::new(out, &VectorHead { count_hint: *hint, ..VectorHead::new(*of) })?;
            for (index, tree) in entries {
                vector.entry_in_place(VectorAction::INSERT, *index, None, |room| write(tree, room))?;
            }
            Ok(vector.finish())
        }
        Tree::Series { of, summary, entries } => {
            let head = SeriesHead::new(*of);
            let mut series = match summary {
                Some(summary) => SeriesEncoder::with_summary(out, &head, |room| write(summary, room))?,
                None => SeriesEncoder::new(out, &head)?,
            };
            entries.iter().try_for_each(|tree| series.entry_in_place(|room| write(tree, room)))?;
            Ok(series.finish())
        }
    }
}

fn read(container: Container<'_>) -> Tree {
    match container {
        Container::Bytes(_, bytes) => Tree::Opaque(bytes.to_vec()),
        Container::FieldList(list) => fields(&list),
        Container::ElementList(list) => Tree::Elements(
            list.iter()
                .map(Result::unwrap)
                .map(|element| {
                    let inner = match element.value().unwrap() {
                        Value::Int(number) => Inner::Number(number),
                        Value::Ascii(text) => Inner::Text(text.to_vec()),
                        value => Inner::Tree(
                            element.data_type,
                            value.open().unwrap().map_or(Tree::Opaque(Vec::new()), read),
                        ),
                    };
                    (element.name.to_vec(), inner)
                })
                .collect(),
        ),
        Container::FilterList(list) => Tree::Filters {
            hint: list.head().count_hint,
            of: list.head().container,
            entries: list
                .iter()
                .map(Result::unwrap)
                .map(|entry| {
                    let own = entry.container.unwrap_or(list.head().container);
                    let tree = read(entry.open(list.head()).unwrap());
                    (entry.id, entry.permission_data.map(<[u8]>::to_vec), own, tree)
                })
                .collect(),
        },
        Container::Map(map) => Tree::Map {
            of: map.head().container,
            summary: map.head().summary.map(|summary| Box::new(open(map.head().container, summary))),
            entries: map
                .iter()
                .map(Result::unwrap)
                .map(|entry| {
                    let Ok(Value::UInt(key)) = entry.key_value(DataType::UINT) else { panic!("a key") };
                    let tree =
                        (entry.action != MapAction::DELETE).then(|| open(map.head().container, entry.data));
                    (key, entry.permission_data.map(<[u8]>::to_vec), tree)
                })
                .collect(),
        },
        Container::Vector(vector) => Tree::Vector {
            of: vector.head().container,
            hint: vector.head().count_hint,
            entries: vector
                .iter()
                .map(Result::unwrap)
                .map(|entry| (entry.index, open(vector.head().container, entry.data)))
                .collect(),
        },
        Container::Series(series) => Tree::Series {
            of: series.head().container,
            summary: series.head().summary.map(|summary| Box::new(open(series.head().container, summary))),
            entries: series.iter().map(|entry| open(series.head().container, entry.unwrap())).collect(),
        },
        other => panic!("{other:?}"),
    }
}

fn open(kind: DataType, bytes: &[u8]) -> Tree {
    read(Container::parse(kind, bytes, &SetDefinitions::NONE).unwrap())
}

fn fields(list: &FieldList<'_>) -> Tree {
    Tree::Fields(list.iter().map(Result::unwrap).map(|field| (field.fid.0, field.data.to_vec())).collect())
}

proptest! {
    #[test]
    fn what_is_written_reads_back(choices in vec(any::<u8>(), 0..200)) {
        let mut choices = Choices(choices.iter());
        let kind = choices.kind(3);
        let tree = choices.tree(kind, 3);
        let mut out = vec![0; 1 << 18];
        match write(&tree, &mut out) {
            Ok(len) => {
                prop_assert_eq!(&open(kind, &out[..len]), &tree);
                // One byte more or less decides.
                let mut exact = vec![0; len];
                prop_assert_eq!(write(&tree, &mut exact), Ok(len));
                prop_assert_eq!(&exact, &out[..len]);
                for short in [len.saturating_sub(1), len / 2, len / 7] {
                    if short < len {
                        prop_assert_eq!(write(&tree, &mut vec![0; short]), Err(Refused::Full));
                    }
                }
            }
            // A summary of more than 32,767 bytes, an entry of more than 65,535.
            Err(refused) => prop_assert!(matches!(refused, Refused::TooLong { .. }), "{}", refused),
        }
    }
}

//! Field lists against a map of values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use tapeline_omm::rwf::{
    DataType, Flags, Map, MapAction, MapEncoder, MapEntry, MapHead, MessageView, Rmtes, RmtesCache, flags,
};
use tapeline_omm::{Dictionary, Fid};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Applied, Cache, Limits, View};

use crate::cache::messages::{
    CLEAR, COMPLETE, ITEM, apply, fields_of, list, payload, refresh, status, update, written,
};

type Fields = Vec<(i16, Vec<u8>)>;
type Model = BTreeMap<i16, Vec<u8>>;

/// What the model's fields are: 1 to 3 ripple in a row, 4 to 5 in a ring, 6 is a text of at most 12 bytes.
const DICTIONARY: &str = "\
A \"A\" 1 B INTEGER 15 UINT 8
B \"B\" 2 C INTEGER 15 UINT 8
C \"C\" 3 NULL INTEGER 15 UINT 8
D \"D\" 4 E INTEGER 15 UINT 8
E \"E\" 5 D INTEGER 15 UINT 8
TEXT \"TEXT\" 6 NULL ALPHANUMERIC 12 RMTES_STRING 12
";
const RIPPLES: [(i16, i16); 4] = [(1, 2), (2, 3), (4, 5), (5, 4)];

#[derive(Clone, Debug)]
enum Step {
    Refresh {
        clear: bool,
        fields: Fields,
    },
    Update {
        flags: Flags,
        fields: Fields,
    },
    Clear,
    /// An update whose list is cut.
    Cut {
        fields: Fields,
    },
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        10 => prop::collection::vec(any::<u8>(), 0..6),
        1 => prop::collection::vec(any::<u8>(), 240..270),
        1 => Just(b"ABCDEFGHIJ".to_vec()),
        2 => Just(b"\x1b[3`xy".to_vec()),
        2 => Just(b"\x1b[10`end and more".to_vec()),
        1 => Just(b"\x1b[1`z\x1b[2b".to_vec()),
    ]
}

fn fields(most: usize) -> impl Strategy<Value = Fields> {
    prop::collection::vec((prop_oneof![8 => 1..12_i16, 1 => any::<i16>()], value()), 0..most)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (any::<bool>(), fields(12)).prop_map(|(clear, fields)| Step::Refresh { clear, fields }),
        12 => (any::<[bool; 2]>(), prop_oneof![9 => fields(8).boxed(), 1 => fields(100).boxed()]).prop_map(
            |([ripples, caches], fields)| {
                let mut flags = Flags::NONE;
                if !ripples {
                    flags |= flags::update::DO_NOT_RIPPLE;
                }
                if !caches && !ripples {
                    flags |= flags::update::DO_NOT_CACHE;
                }
                Step::Update { flags, fields }
            }
        ),
        1 => Just(Step::Clear),
        1 => fields(8).prop_map(|fields| Step::Cut { fields }),
    ];
    prop::collection::vec(step, 1..40)
}

fn set(model: &mut Model, fields: &Fields) {
    for (fid, data) in fields {
        let old = model.entry(*fid).or_default();
        if *fid == 6 && Rmtes(data).is_partial() {
            let mut room = vec![0; old.len().max(12)];
            room[..old.len()].copy_from_slice(old);
            let mut text = RmtesCache::with_len(&mut room, old.len());
            Rmtes(data).apply(&mut text);
            *old = text.bytes().to_vec();
        } else {
            old.clone_from(data);
        }
    }
}

fn ripple(model: &mut Model, fields: &Fields) {
    let old = model.clone();
    let mut taken: BTreeSet<i16> = fields.iter().map(|(fid, _)| *fid).collect();
    for (fid, _) in fields {
        let mut from = *fid;
        while let Some((_, to)) = RIPPLES.iter().find(|(field, _)| *field == from)
            && old.contains_key(&from)
            && old.contains_key(to)
            && taken.insert(*to)
        {
            model.insert(*to, old[&from].clone());
            from = *to;
        }
    }
}

fn cache() -> Cache {
    let mut cache = Cache::new(Limits::default());
    cache.set_dictionary(ITEM.service, &Arc::new(Dictionary::parse(DICTIONARY).unwrap()));
    cache
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn an_image_is_the_fold_of_what_came(steps in steps()) {
        let mut cache = cache();
        let mut model: Option<Model> = None;
        let mut is_whole = false;
        for (seq, step) in (1..).zip(&steps) {
            match step {
                Step::Refresh { clear, fields } => {
                    let flags = if *clear { CLEAR | COMPLETE } else { COMPLETE };
                    apply(&mut cache, seq, &refresh(flags, DataType::FIELD_LIST, &list(fields)));
                    is_whole |= *clear || model.is_none();
                    if *clear {
                        model = None;
                    }
                    set(model.get_or_insert_default(), fields);
                }
                Step::Update { flags, fields } => {
                    let message = update(*flags, DataType::FIELD_LIST, &list(fields));
                    let applied = cache.apply(&ITEM, Seq(seq), &message).unwrap();
                    if let Some(model) = &mut model && !flags.has(flags::update::DO_NOT_CACHE) {
                        prop_assert_eq!(applied, Applied::Update);
                        if !flags.has(flags::update::DO_NOT_RIPPLE) {
                            ripple(model, fields);
                        }
                        set(model, fields);
                    } else {
                        prop_assert_eq!(applied, Applied::PassedBy);
                        continue;
                    }
                }
                Step::Clear => {
                    let _ = cache.apply(&ITEM, Seq(seq), &status(flags::status::CLEAR_CACHE, None)).unwrap();
                    model = None;
                }
                Step::Cut { fields } => {
                    let mut message = update(Flags::NONE, DataType::FIELD_LIST, &list(fields));
                    message.pop();
                    let refused = cache.apply(&ITEM, Seq(seq), &message);
                    if model.is_some() {
                        refused.unwrap_err();
                        is_whole = false;
                    }
                }
            }
            if let Some(model) = &model {
                prop_assert_eq!(&fields_of(&payload(&cache)), model, "at {}", seq);
                prop_assert_eq!(cache.image(&ITEM).unwrap().is_complete(), is_whole);
            }
        }
        cache.remove(&ITEM);
        prop_assert_eq!(cache.memory().items, 0);
        prop_assert_eq!(cache.memory().shapes, 0);
    }

    /// The same changes in one update and in one for each field give the same image.
    #[test]
    fn many_fields_at_once_are_as_many_updates(first in fields(40), then in fields(120)) {
        let (mut at_once, mut one_by_one) = (cache(), cache());
        let image = refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &list(&first));
        for cache in [&mut at_once, &mut one_by_one] {
            apply(cache, 1, &image);
        }
        let flags = flags::update::DO_NOT_RIPPLE;
        apply(&mut at_once, 2, &update(flags, DataType::FIELD_LIST, &list(&then)));
        for field in &then {
            apply(&mut one_by_one, 2, &update(flags, DataType::FIELD_LIST, &list(std::slice::from_ref(field))));
        }
        prop_assert_eq!(fields_of(&payload(&at_once)), fields_of(&payload(&one_by_one)));
    }
}

#[test]
fn values_ripple_to_what_the_image_has_and_the_update_has_not() {
    let mut cache = cache();
    let mut seq = 0;
    let mut after = |message: Vec<u8>| {
        seq += 1;
        apply(&mut cache, seq, &message);
        let fields = fields_of(&payload(&cache)).into_iter();
        fields
            .map(|(fid, data)| format!("{fid}={}", String::from_utf8(data).unwrap()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let fields = DataType::FIELD_LIST;
    let none = Flags::NONE;
    assert_eq!(
        after(refresh(CLEAR | COMPLETE, fields, &list(&[(1, "a"), (2, "b"), (3, "c")]))),
        "1=a 2=b 3=c"
    );
    assert_eq!(after(update(none, fields, &list(&[(1, "d")]))), "1=d 2=a 3=b");
    assert_eq!(after(update(none, fields, &list(&[(1, "longer"), (9, "new")]))), "1=longer 2=d 3=a 9=new");
    assert_eq!(after(update(none, fields, &list(&[(2, "e"), (1, "f")]))), "1=f 2=e 3=d 9=new");
    assert_eq!(after(update(flags::update::DO_NOT_RIPPLE, fields, &list(&[(1, "g")]))), "1=g 2=e 3=d 9=new");
    assert_eq!(after(refresh(COMPLETE, fields, &list(&[(1, "h")]))), "1=h 2=e 3=d 9=new");
    assert_eq!(after(refresh(CLEAR | COMPLETE, fields, &list(&[(1, "a"), (3, "c")]))), "1=a 3=c");
    assert_eq!(after(update(none, fields, &list(&[(1, "b")]))), "1=b 3=c");
    assert_eq!(after(refresh(CLEAR | COMPLETE, fields, &list(&[(4, "a"), (5, "b")]))), "4=a 5=b");
    assert_eq!(after(update(none, fields, &list(&[(4, "c")]))), "4=c 5=a");
}

#[test]
fn a_view_gives_the_fields_that_are_wanted_and_there() {
    let mut cache = cache();
    let fields = list(&[(1, "a"), (22, "bid"), (25, "ask")]);
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &fields));
    let wanted = [Fid(25), Fid(30), Fid(1), Fid(25)];
    let answer = AnswerParameters { view: View::Fields(&wanted), ..AnswerParameters::to(9) };
    let parts = written(cache.image(&ITEM).unwrap().parts(answer), 200);
    let message = MessageView::parse(&parts[0]).unwrap();
    let seen: Vec<_> = fields_of(message.payload()).into_keys().collect();
    assert_eq!(seen, [1, 25]);
}

#[test]
fn lists_end_at_65_535_bytes_and_are_let_go_beyond() {
    let mut cache = cache();
    let most = list(&[(10, vec![7; 65_535 - 5])]);
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &most));
    apply(&mut cache, 2, &update(Flags::NONE, DataType::FIELD_LIST, &list(&[(10, vec![8; 65_535 - 5])])));
    assert_eq!(payload(&cache).len(), 3 + 65_535);
    let more = update(Flags::NONE, DataType::FIELD_LIST, &list(&[(11, "")]));
    cache.apply(&ITEM, Seq(3), &more).unwrap_err();
    let image = cache.image(&ITEM).unwrap();
    assert_eq!((image.is_complete(), image.container()), (false, DataType::NO_DATA));
    assert_eq!(cache.counters().over_limit, 1);
}

/// Every length from none to beyond what one byte says, in each of three places, and back.
#[test]
fn values_of_any_length_take_the_place_of_others() {
    let mut cache = cache();
    let mut model = Model::from([(10, vec![]), (11, vec![1]), (12, vec![2, 2])]);
    let first: Fields = model.clone().into_iter().collect();
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &list(&first)));
    for (seq, len) in (2..).zip([0, 1, 252, 253, 254, 255, 256, 300, 254, 253, 3, 0]) {
        for fid in 10..13 {
            let data = vec![(fid as u8).wrapping_add(len as u8); len];
            model.insert(fid, data.clone());
            apply(&mut cache, seq, &update(Flags::NONE, DataType::FIELD_LIST, &list(&[(fid, data)])));
            assert_eq!(fields_of(&payload(&cache)), model, "{len} bytes in {fid}");
        }
    }
}

/// Fields in any order, each value shorter or longer than the one before it, all over a long list: nothing is left between them,
/// and the image asks for no more room than it takes.
#[test]
fn values_of_changing_lengths_leave_nothing_between_them() {
    let mut cache = cache();
    let mut model: Model = (100..200).map(|fid| (fid, vec![0; 9])).collect();
    let first: Fields = model.clone().into_iter().collect();
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &list(&first)));
    for step in 1..60_usize {
        let fields: Fields = (0..13)
            .map(|n| (100 + ((n * step * 7 + step) % 100) as i16, vec![step as u8; (n + step) % 20]))
            .collect();
        apply(&mut cache, 1 + step as u64, &update(Flags::NONE, DataType::FIELD_LIST, &list(&fields)));
        model.extend(fields);
        assert_eq!(fields_of(&payload(&cache)), model, "at {step}");
        let image = cache.image(&ITEM).unwrap();
        let mut room = [0xEE; 4_096];
        let len = image.write(&View::All, &mut room).unwrap();
        let mut exact = vec![0; len];
        assert_eq!(image.write(&View::All, &mut exact), Ok(len));
        assert_eq!(exact, room[..len], "at {step}");
        image.write(&View::All, &mut exact[1..]).unwrap_err();
    }
}

/// Partial text is applied in the entries of a map too; values ripple in a payload's own list alone.
#[test]
fn text_is_folded_where_it_stands() {
    let mut cache = cache();
    let map = |action, fields: &[(i16, &str)]| {
        let mut out = vec![0; 256];
        let mut map = MapEncoder::new(&mut out, &MapHead::new(DataType::UINT, DataType::FIELD_LIST)).unwrap();
        map.entry(&MapEntry { action, permission_data: None, key: &[1], data: &list(fields) }).unwrap();
        let len = map.finish();
        out.truncate(len);
        out
    };
    let first = map(MapAction::ADD, &[(1, "a"), (2, "b"), (6, "ABCDEF")]);
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::MAP, &first));
    let then = map(MapAction::UPDATE, &[(6, "\x1b[4`xyz"), (1, "c")]);
    apply(&mut cache, 2, &update(Flags::NONE, DataType::MAP, &then));
    let image = payload(&cache);
    let entry = Map::parse(&image).unwrap().iter().next().unwrap().unwrap();
    let fields: Vec<_> = fields_of(entry.data).into_iter().collect();
    assert_eq!(fields, [(1, b"c".to_vec()), (2, b"b".to_vec()), (6, b"ABCDxyz".to_vec())]);
}

/// An order whose end was missed, and another of the same number: nothing of the first is left.
#[test]
fn an_entry_that_is_added_again_is_another_one() {
    let mut cache = cache();
    let map = |fields: &[(i16, &str)], permission_data| {
        let mut out = vec![0; 256];
        let mut head = MapHead::new(DataType::UINT, DataType::FIELD_LIST);
        head.permission_data = true;
        let mut map = MapEncoder::new(&mut out, &head).unwrap();
        let data = &list(fields);
        map.entry(&MapEntry { action: MapAction::ADD, permission_data, key: &[1], data }).unwrap();
        let len = map.finish();
        out.truncate(len);
        out
    };
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::MAP, &map(&[(1, "a"), (2, "b")], Some(b"pe"))));
    apply(&mut cache, 2, &update(Flags::NONE, DataType::MAP, &map(&[(1, "c")], None)));
    let image = payload(&cache);
    let entries: Vec<_> = Map::parse(&image).unwrap().iter().map(|entry| entry.unwrap()).collect();
    assert_eq!((entries.len(), entries[0].permission_data), (1, None));
    assert_eq!(fields_of(entries[0].data).into_iter().collect::<Vec<_>>(), [(1, b"c".to_vec())]);
}

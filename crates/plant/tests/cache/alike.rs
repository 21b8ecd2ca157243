//! Images whose fields are those of an image before them, against the same images in a cache that has no other.

use std::sync::Arc;

use proptest::prelude::*;
use tapeline_omm::rwf::{DataType, Flags, Info, flags};
use tapeline_omm::{Dictionary, Fid, FieldListEncoder};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Cache, ItemKey, Limits};

use crate::cache::messages::{CLEAR, COMPLETE, ITEM, refresh, update, written};

/// The dictionaries of two services: the fields that ripple in one, and its text, are others in the other. A third service has none.
const DICTIONARIES: [(u16, &str); 2] = [
    (
        1,
        "A \"A\" 1 B INTEGER 15 UINT 8\nB \"B\" 2 NULL INTEGER 15 UINT 8\nC \"C\" 3 NULL ALPHANUMERIC 12 RMTES_STRING 12\n",
    ),
    (
        2,
        "A \"A\" 1 NULL ALPHANUMERIC 12 RMTES_STRING 12\nB \"B\" 2 C INTEGER 15 UINT 8\nC \"C\" 3 NULL INTEGER 15 UINT 8\n",
    ),
];
/// Some differ in one field, the first or the last; the last order has a field twice.
const ORDERS: [&[i16]; 7] =
    [&[1, 2, 3, 4], &[1, 2, 3, 5], &[5, 2, 3, 4], &[2, 1, 3, 4], &[1, 2, 3], &[3], &[1, 2, 1]];

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        20 => prop::collection::vec(b'a'..b'e', 0..6),
        1 => prop::collection::vec(any::<u8>(), 250..260),
        1 => Just(b"\x1b[2`xy".to_vec()),
    ]
}

#[derive(Clone, Debug)]
struct List {
    order: usize,
    values: Vec<Vec<u8>>,
    has_info: bool,
    /// Bytes behind the list, or missing from it.
    surplus: isize,
    /// First byte of the last value's length, and as many bytes behind it: none of a value with a length of one byte.
    long: Option<u8>,
}

impl List {
    fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0; 2_048];
        let info = Info { dictionary_id: 1, list_number: self.order as i16 };
        let mut list = match self.has_info {
            true => FieldListEncoder::with_info(&mut out, info).unwrap(),
            false => FieldListEncoder::new(&mut out).unwrap(),
        };
        let order = ORDERS[self.order];
        for (place, (fid, value)) in (1..).zip(order.iter().zip(&self.values)) {
            let is_blank = place == order.len() && self.long.is_some();
            list.raw(Fid(*fid), if is_blank { &[] } else { value }).unwrap();
        }
        let len = list.finish();
        out.truncate(len.saturating_add_signed(self.surplus));
        if let Some(long) = self.long
            && let Some(last) = out.last_mut()
        {
            *last = long;
            out.extend(vec![0; long.into()]);
        }
        out
    }
}

fn list() -> impl Strategy<Value = List> {
    let values = prop::collection::vec(value(), 4);
    let surplus = prop_oneof![30 => Just(0), 1 => Just(1), 1 => Just(-1)];
    let long = prop_oneof![20 => Just(None), 1 => (0xFE_u8..=0xFF).prop_map(Some)];
    (0..ORDERS.len(), values, any::<bool>(), surplus, long)
        .prop_map(|(order, values, has_info, surplus, long)| List { order, values, has_info, surplus, long })
}

fn cache() -> Cache {
    let mut cache = Cache::new(Limits::default());
    for (service, text) in DICTIONARIES {
        cache.set_dictionary(service, &Arc::new(Dictionary::parse(text).unwrap()));
    }
    cache
}

fn image(cache: &Cache, key: &ItemKey<'_>) -> Option<Vec<Vec<u8>>> {
    Some(written(cache.image(key)?.parts(AnswerParameters::to(3)), 1 << 16))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_image_like_one_before_is_as_if_it_were_the_first(
        steps in prop::collection::vec((1..=3_u16, 0..3_usize, list(), list(), any::<bool>()), 1..30)
    ) {
        const NAMES: [&[u8]; 3] = [b"A", b"B", b"C"];
        let mut shared = cache();
        for (seq, (service, name, first, then, ripples)) in (1..).map(Seq).zip(steps) {
            let key = ItemKey { service, name: NAMES[name], ..ITEM };
            let mut alone = cache();
            // What an update does depends on the places, the gaps and the dictionary of the image.
            let flags = if ripples { Flags::NONE } else { flags::update::DO_NOT_RIPPLE };
            for message in [
                refresh(CLEAR | COMPLETE, DataType::FIELD_LIST, &first.bytes()),
                update(flags, DataType::FIELD_LIST, &then.bytes()),
            ] {
                let [applied, expected] = [&mut shared, &mut alone]
                    .map(|cache| cache.apply(&key, seq, &message).map_err(|error| error.to_string()));
                prop_assert_eq!(&applied, &expected);
                if applied.is_err() {
                    break;
                }
                prop_assert_eq!(image(&shared, &key), image(&alone, &key));
            }
        }
        for service in 1..=3 {
            for name in NAMES {
                shared.remove(&ItemKey { service, name, ..ITEM });
            }
        }
        prop_assert_eq!((shared.memory().items, shared.memory().shapes), (0, 0));
    }
}

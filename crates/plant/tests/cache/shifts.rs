//! A sorted vector whose every message moves all that is there: as many entries as a hostile provider may send.

use tapeline_omm::rwf::{DataType, Vector, VectorAction, VectorEncoder, VectorEntry, VectorHead};
use tapeline_plant::cache::{Cache, Limits};

use crate::cache::messages::{CLEAR, COMPLETE, apply, payload, refresh, update};

/// The most entries that a message's count can say.
const ENTRIES: u32 = 65_535;

fn vector(
    action: VectorAction,
    indexes: impl Iterator<Item = u32>,
    data: impl Fn(u32) -> Vec<u8>,
) -> Vec<u8> {
    let mut out = vec![0; 1 << 20];
    let head = VectorHead { sorting: true, ..VectorHead::new(DataType::OPAQUE) };
    let mut vector = VectorEncoder::new(&mut out, &head).unwrap();
    for (number, index) in (0..).zip(indexes) {
        let data = data(number);
        vector.entry(&VectorEntry { action, index, permission_data: None, data: &data }).unwrap();
    }
    let len = vector.finish();
    out.truncate(len);
    out
}

fn entries(cache: &Cache) -> Vec<(u32, Vec<u8>)> {
    let payload = payload(cache);
    let vector = Vector::parse(&payload).unwrap();
    vector.into_iter().map(|entry| entry.map(|entry| (entry.index, entry.data.to_vec())).unwrap()).collect()
}

#[test]
fn what_is_put_in_at_the_front_and_taken_out_again_moves_all_the_others() {
    let number = |number: u32| number.to_be_bytes().to_vec();
    let mut cache = Cache::new(Limits::default());
    let none = vector(VectorAction::SET, std::iter::empty(), number);
    apply(&mut cache, 1, &refresh(CLEAR | COMPLETE, DataType::VECTOR, &none));
    let front = || std::iter::repeat_n(0, ENTRIES as usize);
    let inserts = vector(VectorAction::INSERT, front(), number);
    apply(&mut cache, 2, &update(Default::default(), DataType::VECTOR, &inserts));
    // The last to come is the first.
    let wanted = (0..ENTRIES).zip((0..ENTRIES).rev().map(number));
    assert!(entries(&cache).into_iter().eq(wanted));
    let deletes = vector(VectorAction::DELETE, front().skip(1), |_| Vec::new());
    apply(&mut cache, 3, &update(Default::default(), DataType::VECTOR, &deletes));
    assert_eq!(entries(&cache), [(0, number(0))]);
}

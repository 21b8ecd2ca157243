//! The texts of the codec's vectors back to RWF.

use serde_json::Value as Json;
use tapeline_omm::json::{Converter, Packed};
use tapeline_omm::rwf::MessageView;

use crate::json::equal::difference;
use crate::json::vectors::{SERVICES, dictionary, name, records, text_of, unhex};
use crate::json::written::{CODEC, theirs};

#[test]
fn texts_become_messages_that_become_the_same_texts() {
    let Some(dictionary) = dictionary() else { return };
    let converter = Converter::new(&dictionary, &SERVICES);
    let mut room = Vec::new();
    let (mut compared, mut same, mut different) = (0, 0, Vec::new());
    for file in CODEC {
        for record in records(file).unwrap() {
            let Some(theirs) = theirs(&record) else { continue };
            let text = theirs.to_string();
            let rwf = converter.read(&Packed::parse(&text).unwrap().next().unwrap(), &mut room);
            let rwf = rwf.unwrap_or_else(|fault| panic!("{}: {fault}: {text}", name(&record)));
            let ours: Json = serde_json::from_str(&text_of(&converter, rwf)).unwrap();
            if let Some(found) = difference(&ours, &theirs) {
                different.push(format!("{file}: {}: {found}", name(&record)));
            }
            compared += 1;
            // Our own text of the message, whose numbers have all their digits, gives back the very message where JSON has
            // a word for everything in it.
            let original = unhex(record["hex"].as_str().unwrap());
            let text = text_of(&converter, &original);
            let rwf = converter.read(&Packed::parse(&text).unwrap().next().unwrap(), &mut room).unwrap();
            let outline = |bytes: &[u8]| MessageView::parse(bytes).unwrap().outline(&dictionary).to_string();
            same += usize::from(outline(rwf) == outline(&original));
        }
    }
    assert_eq!(different, [""; 0]);
    // The others have groups, dictionary ids, set definitions, names without a type, or arrays of fixed width.
    assert_eq!((compared, same), (307, 274));
}

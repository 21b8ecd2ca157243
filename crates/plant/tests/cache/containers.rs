//! Containers of every kind, and containers in them, against the model.

use std::ops::Range;

use proptest::prelude::*;
use tapeline_omm::rwf::{DataType, Flags, MessageView, flags};
use tapeline_plant::Seq;
use tapeline_plant::cache::{AnswerParameters, Applied, Cache, Limits};

use crate::cache::messages::{self, CLEAR, COMPLETE, ITEM, refresh, status, update};
use crate::cache::model::{Entry, Node, image_of, laid, written};

/// What a container is made of: the same for all messages of an item.
#[derive(Clone, Debug)]
enum Form {
    Fields,
    Elements,
    Bytes,
    NoData,
    Filters(Vec<Form>),
    Map(Box<Form>),
    Vector(Box<Form>),
    Series(Box<Form>),
}

impl Form {
    fn data_type(&self) -> DataType {
        match self {
            Self::Fields => DataType::FIELD_LIST,
            Self::Elements => DataType::ELEMENT_LIST,
            Self::Bytes => DataType::OPAQUE,
            Self::NoData => DataType::NO_DATA,
            Self::Filters(_) => DataType::FILTER_LIST,
            Self::Map(_) => DataType::MAP,
            Self::Vector(_) => DataType::VECTOR,
            Self::Series(_) => DataType::SERIES,
        }
    }
}

fn forms() -> impl Strategy<Value = Form> {
    let lists = prop_oneof![3 => Just(Form::Fields), 2 => Just(Form::Elements), 1 => Just(Form::Bytes), 1 => Just(Form::NoData)];
    let inner = lists.prop_recursive(2, 6, 2, |below| {
        prop_oneof![
            2 => below.clone().prop_map(|form| Form::Map(Box::new(form))),
            1 => below.clone().prop_map(|form| Form::Vector(Box::new(form))),
            1 => below.clone().prop_map(|form| Form::Series(Box::new(form))),
            1 => prop::collection::vec(below, 1..3).prop_map(Form::Filters),
        ]
    });
    prop_oneof![
        3 => inner.clone().prop_map(|form| Form::Map(Box::new(form))),
        3 => inner.clone().prop_map(|form| Form::Vector(Box::new(form))),
        2 => inner.clone().prop_map(|form| Form::Series(Box::new(form))),
        2 => prop::collection::vec(inner, 1..4).prop_map(Form::Filters),
        1 => Just(Form::Elements),
    ]
}

fn bytes(len: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), len)
}

/// A message's container of this form.
fn node(form: &Form) -> BoxedStrategy<Node> {
    match form {
        Form::Fields => prop::collection::vec((1..7_i16, bytes(0..5)), 0..5).prop_map(Node::Fields).boxed(),
        Form::Elements => {
            let value = prop_oneof![
                (Just(DataType::UINT.0), bytes(0..5)),
                (Just(DataType::RMTES_STRING.0), Just(b"text".to_vec())),
                (Just(DataType::RMTES_STRING.0), Just(b"\x1b[2`XYZ".to_vec())),
                (Just(DataType::NO_DATA.0), Just(vec![])),
            ];
            let element = (bytes(0..2).prop_map(|name| name.iter().map(|byte| byte % 4).collect()), value);
            let elements = prop::collection::vec(element, 0..5);
            elements
                .prop_map(|elements: Vec<(Vec<u8>, _)>| {
                    Node::Elements(elements.into_iter().map(|(name, (of, data))| (name, of, data)).collect())
                })
                .boxed()
        }
        Form::Bytes => bytes(0..5).prop_map(Node::Bytes).boxed(),
        Form::NoData => Just(Node::Blank).boxed(),
        Form::Filters(forms) => {
            let entry = (0..forms.len()).prop_flat_map({
                let forms = forms.clone();
                move |id| {
                    let of = forms[id].data_type();
                    (1..4_u8, permission(), node(&forms[id])).prop_map(move |(action, permission, data)| {
                        entry(action, (vec![], id as u32), of, permission, data)
                    })
                }
            });
            prop::collection::vec(entry, 0..4).prop_map(|entries| Node::Filters(tidy(entries, &[3]))).boxed()
        }
        Form::Map(of) => {
            let (data_type, summary) = (of.data_type(), summary(of));
            let entry =
                (prop_oneof![2 => Just(1), 2 => Just(2), 1 => Just(3_u8)], 0..6_u8, permission(), node(of))
                    .prop_map(move |(action, key, permission, data)| {
                        entry(action, (vec![b'k', key], 0), data_type, permission, data)
                    });
            (prop::collection::vec(entry, 0..7), summary, any::<bool>())
                .prop_map(move |(entries, summary, has_fid)| Node::Map {
                    key_type: DataType::BUFFER.0,
                    key_fid: has_fid.then_some(3426),
                    of: data_type,
                    summary,
                    entries: tidy(entries, &[3]),
                })
                .boxed()
        }
        Form::Vector(of) => {
            let (data_type, summary) = (of.data_type(), summary(of));
            let entry = (1..6_u8, 0..6_u32, permission(), node(of)).prop_map(
                move |(action, index, permission, data)| {
                    entry(action, (vec![], index), data_type, permission, data)
                },
            );
            (prop::collection::vec(entry, 0..7), summary, any::<bool>())
                .prop_map(move |(entries, summary, sorting)| Node::Vector {
                    sorting,
                    of: data_type,
                    summary,
                    entries: tidy(entries, &[3, 5]),
                })
                .boxed()
        }
        Form::Series(of) => {
            let (data_type, summary) = (of.data_type(), summary(of));
            let entry = node(of).prop_map(move |data| entry(2, (vec![], 0), data_type, None, data));
            (prop::collection::vec(entry, 0..4), summary)
                .prop_map(move |(entries, summary)| Node::Series { of: data_type, summary, entries })
                .boxed()
        }
    }
}

fn entry(
    action: u8,
    (key, index): (Vec<u8>, u32),
    of: DataType,
    permission: Option<Vec<u8>>,
    data: Node,
) -> Entry {
    Entry { action, key, index, of, permission, data }
}

/// Entries whose action has no data have none.
fn tidy(mut entries: Vec<Entry>, without: &[u8]) -> Vec<Entry> {
    for entry in entries.iter_mut().filter(|entry| without.contains(&entry.action)) {
        entry.data = Node::Blank;
    }
    entries
}

fn permission() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop_oneof![4 => Just(None), 1 => bytes(0..3).prop_map(Some)]
}

fn summary(of: &Form) -> BoxedStrategy<Option<Box<Node>>> {
    if let Form::NoData = of {
        return Just(None).boxed();
    }
    prop_oneof![3 => Just(None), 1 => node(of).prop_map(|node| Some(Box::new(node)))].boxed()
}

#[derive(Clone, Debug)]
enum Step {
    Refresh(bool, Node),
    Update(Node),
    Clear,
}

fn story() -> impl Strategy<Value = (Form, Vec<Step>)> {
    forms().prop_flat_map(|form| {
        let step = prop_oneof![
            2 => (any::<bool>(), node(&form)).prop_map(|(clear, node)| Step::Refresh(clear, node)),
            6 => node(&form).prop_map(Step::Update),
            1 => Just(Step::Clear),
        ];
        (Just(form), prop::collection::vec(step, 1..14))
    })
}

/// The payloads of an image's parts, with so much room for each.
fn payloads(cache: &Cache, room: usize) -> Vec<Vec<u8>> {
    let image = cache.image(&ITEM).unwrap();
    let parts = messages::written(image.parts(AnswerParameters::to(1)), room);
    let views: Vec<_> = parts.iter().map(|part| MessageView::parse(part).unwrap()).collect();
    for (place, view) in views.iter().enumerate() {
        let header = view.header().unwrap();
        assert_eq!(view.is_refresh_complete(), place + 1 == views.len());
        assert_eq!(view.flags().has(CLEAR), place == 0);
        assert_eq!(header.part(), (views.len() > 1).then_some(place as u16));
    }
    views.iter().map(|view| view.payload().to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn an_image_is_the_fold_of_what_came((form, steps) in story()) {
        let mut cache = Cache::new(Limits::default());
        let mut model: Option<Node> = None;
        let container = form.data_type();
        for (seq, step) in (1..).zip(&steps) {
            let (message, change) = match step {
                Step::Refresh(clear, node) => {
                    let flags = if *clear { COMPLETE | CLEAR } else { COMPLETE };
                    if *clear {
                        model = None;
                    }
                    model.get_or_insert(Node::Blank);
                    (refresh(flags, container, &written(node)), Some(node))
                }
                Step::Update(node) => (update(Flags::NONE, container, &written(node)), Some(node)),
                Step::Clear => {
                    model = None;
                    (status(flags::status::CLEAR_CACHE, None), None)
                }
            };
            let applied = cache.apply(&ITEM, Seq(seq), &message).unwrap();
            let (Some(was), Some(change)) = (&model, change) else { continue };
            prop_assert_ne!(applied, Applied::PassedBy);
            let now = laid(was, change);
            let image = image_of(container, &payloads(&cache, 50_000));
            prop_assert!(image == now, "at {seq}:\n{image:?}\nis not\n{now:?}");
            model = Some(now);
        }
        // In the smallest parts that will do, it is the same image.
        if let Some(model) = model {
            let whole = messages::written(cache.image(&ITEM).unwrap().parts(AnswerParameters::to(1)), 50_000)[0].len();
            let mut room = 40;
            while room < whole {
                let mut parts = cache.image(&ITEM).unwrap().parts(AnswerParameters::to(1));
                let mut out = vec![0; room];
                while let Ok(Some(_)) = parts.write(&mut out) {}
                if let Ok(None) = parts.write(&mut out) {
                    break;
                }
                room += 1;
            }
            prop_assert_eq!(image_of(container, &payloads(&cache, room)), model);
        }
    }
}

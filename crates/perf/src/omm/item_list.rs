//! The item list: the guide's chapter 8.2 (`350k.xml`).

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use quick_xml::events::BytesStart;
use tapeline_client::xml::{self, Fault, Tag, Tags};
use tapeline_console::failure::Hinted;
use tapeline_console::near;
use tapeline_console::paths;
use tapeline_omm::rwf::Domain;

use super::source::InputSource;

/// Maximum bytes of a file: a million items in the format of the public lists.
const MOST_BYTES: u64 = 64 << 20;
/// Built-in items, and how many of them accept posts and generic messages: as in the public list.
const BUILT_IN: usize = 350_000;
const BUILT_IN_OPEN_TO_POSTS: usize = 10_000;
/// Maximum bytes of a name: the limit of a message key.
const LONGEST_NAME: usize = 255;
/// Maximum items of a list that is read whole.
pub const MOST_ITEMS: usize = 1_000_000;
/// The guide's name of the file.
pub(super) const FILE: &str = "350k.xml";

/// An item of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedItem {
    /// MarketPrice or MarketByOrder.
    pub domain: Domain,
    /// The item's name.
    pub name: String,
    /// Posts, if any, are sent to it.
    pub takes_posts: bool,
    /// Generic messages, if any, are sent to it.
    pub takes_generics: bool,
    /// It is opened as a snapshot.
    pub is_snapshot: bool,
}

impl ListedItem {
    fn named(name: String) -> Self {
        Self {
            domain: Domain::MARKET_PRICE,
            name,
            takes_posts: false,
            takes_generics: false,
            is_snapshot: false,
        }
    }
}

/// The first `count` items of a list; without one, those of `350k.xml` if the working directory has it, else RDT1 to
/// RDT350000, of which the first 10,000 accept posts and generic messages.
/// Refuses a list that is too short or has an item twice.
pub(super) fn load(path: Option<&Path>, count: usize) -> anyhow::Result<Vec<ListedItem>> {
    let (list, items) = match InputSource::of(path, FILE) {
        InputSource::File(path) => {
            let file = paths::shown(&path).to_string();
            let listed = listed(&path, count)?;
            check_once(&listed).map_err(|fault| fault.in_file(&file))?;
            (file, listed.into_iter().map(|(_, item)| item).collect())
        }
        InputSource::BuiltIn => ("the list that is built in".to_owned(), built_in(count)),
    };
    if items.len() < count {
        let hint = "name a longer list with --item-file, or fewer items with --item-count";
        let what = format!("{list} has {} items, and {count} are asked for", items.len());
        return Err(Hinted::new(what, hint).into());
    }
    Ok(items)
}

fn built_in(count: usize) -> Vec<ListedItem> {
    let item = |number: usize| ListedItem {
        takes_posts: number <= BUILT_IN_OPEN_TO_POSTS,
        takes_generics: number <= BUILT_IN_OPEN_TO_POSTS,
        ..ListedItem::named(format!("RDT{number}"))
    };
    (1..=count.min(BUILT_IN)).map(item).collect()
}

/// The first `most` items of a file: an item list, or names of MarketPrice items, one a line; empty lines and lines
/// that begin with `#` are skipped. The rest of the file is not read.
///
/// # Errors
/// The file cannot be read; or file, line and the expected value.
pub fn read(path: &Path, most: usize) -> anyhow::Result<Vec<ListedItem>> {
    Ok(listed(path, most)?.into_iter().map(|(_, item)| item).collect())
}

fn listed(path: &Path, most: usize) -> anyhow::Result<Listed> {
    let text = xml::text(paths::short(path), MOST_BYTES, "a list of items")?;
    Ok(parse(&text, most).map_err(|fault| fault.in_file(&paths::shown(&path).to_string()))?)
}

/// The items of a file, each with its line.
type Listed = Vec<(usize, ListedItem)>;

/// Refuses duplicates: an item opened twice on one connection has only one stream, and the counts do not match.
fn check_once(listed: &Listed) -> Result<(), Fault> {
    let mut first = HashMap::with_capacity(listed.len());
    for (line, item) in listed {
        if let Some(before) = first.insert((item.domain, item.name.as_str()), line) {
            let what = format!("the item {} is on line {before} already; expected it once", item.name);
            return Err(Fault::new(*line, what, "leave one of them out"));
        }
    }
    Ok(())
}

fn parse(text: &str, most: usize) -> Result<Listed, Fault> {
    let mut listed = Listed::new();
    if !text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        let lines = (1..).zip(text.lines().map(str::trim));
        let names = lines.filter(|(_, name)| !name.is_empty() && !name.starts_with('#'));
        return Ok(names.take(most).map(|(line, name)| (line, ListedItem::named(name.to_owned()))).collect());
    }
    let mut tags = Tags::new(text);
    let mut depth = 0;
    while listed.len() < most
        && let Some(tag) = tags.next_tag()?
    {
        let line = tags.line();
        let (start, is_open) = match tag {
            Tag::Open(start) => (start, true),
            Tag::Empty(start) => (start, false),
            Tag::Close => {
                depth -= 1;
                continue;
            }
            Tag::Text => continue,
        };
        match (depth, start.name().as_ref()) {
            (0, "itemList") => {}
            (1, "item") => listed.push((line, item(&start, line)?)),
            (depth, other) => {
                let what = match depth {
                    0 => format!("the root element is {other}; expected itemList"),
                    1 => format!("{other} has no place in itemList; expected item"),
                    _ => format!("{other} has no place in an item, which is empty"),
                };
                return Err(Fault::new(line, what, ""));
            }
        }
        depth += usize::from(is_open);
    }
    if depth > 0 && listed.len() < most {
        return Err(Fault::new(tags.line(), "the list ends in the middle of an element", ""));
    }
    Ok(listed)
}

/// `<item domain="MarketPrice" name="RDT1" post="true"/>`
fn item(start: &BytesStart<'_>, line: usize) -> Result<ListedItem, Fault> {
    const KNOWN: [&str; 6] = ["domain", "name", "post", "generic", "genMsg", "snapshot"];
    let (mut domain, mut name) = (None, None);
    let (mut posts, mut generics, mut snapshot) = (None, None, None);
    for attribute in xml::attributes(start, line) {
        let (key, value) = attribute?;
        let place = match &*key {
            "domain" => &mut domain,
            "name" => &mut name,
            "post" => &mut posts,
            // The guide's name is genMsg; its tools and files use generic.
            "generic" | "genMsg" => &mut generics,
            "snapshot" => &mut snapshot,
            _ => {
                let hint = near::nearest(&key, &KNOWN).map(|near| format!("there is {near}"));
                let what = format!("item has an attribute {key}; expected {}", KNOWN.join(", "));
                return Err(Fault::new(line, what, hint.unwrap_or_default()));
            }
        };
        if place.is_some() {
            return Err(Fault::new(line, format!("{key} is given twice"), ""));
        }
        *place = Some((key, value));
    }
    let missing = |what: &str| Fault::new(line, format!("an item has no {what}"), "");
    let (_, domain) = domain.ok_or_else(|| missing("domain"))?;
    let domain = match &*domain {
        "MarketPrice" => Domain::MARKET_PRICE,
        "MarketByOrder" => Domain::MARKET_BY_ORDER,
        _ => {
            let what = format!("domain is '{domain}'; expected MarketPrice or MarketByOrder");
            return Err(Fault::new(line, what, ""));
        }
    };
    let (_, name) = name.ok_or_else(|| missing("name"))?;
    if name.is_empty() || name.len() > LONGEST_NAME {
        let what = format!("name has {} bytes; expected 1 to {LONGEST_NAME}", name.len());
        return Err(Fault::new(line, what, ""));
    }
    let flag = |given: Option<(Cow<'_, str>, Cow<'_, str>)>| {
        let Some((key, value)) = given else { return Ok(false) };
        let what = || Fault::new(line, format!("{key} is '{value}'; expected true or false"), "");
        value.parse().map_err(|_| what())
    };
    let (takes_posts, takes_generics, is_snapshot) = (flag(posts)?, flag(generics)?, flag(snapshot)?);
    let item = ListedItem { domain, name: name.into_owned(), takes_posts, takes_generics, is_snapshot };
    for (is_so, what) in [(item.takes_posts, "post"), (item.takes_generics, "generic")] {
        if is_so && item.is_snapshot {
            let what = format!("the item {} has both {what} and snapshot; expected one of them", item.name);
            return Err(Fault::new(line, what, ""));
        }
    }
    Ok(item)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::omm::cases;

    const SMALL: &str = r#"<?xml version="1.0"?>
<!-- Two of them. -->
<itemList>
    <item domain="MarketPrice" name="A" post="true" genMsg="true"/>
    <item domain="MarketByOrder" name="B&amp;C" generic="true" snapshot="false"></item>
    <item snapshot="true" name="D" domain="MarketPrice" />
</itemList>
"#;

    fn fault(from: &str, to: &str) -> String {
        let fault = parse(&SMALL.replace(from, to), 10).unwrap_err();
        format!("{}: {}", fault.line, fault.what)
    }

    #[test]
    fn attributes_are_those_of_the_guide() {
        let a = ListedItem { takes_posts: true, takes_generics: true, ..ListedItem::named("A".to_owned()) };
        let b = ListedItem {
            domain: Domain::MARKET_BY_ORDER,
            takes_generics: true,
            ..ListedItem::named("B&C".to_owned())
        };
        let d = ListedItem { is_snapshot: true, ..ListedItem::named("D".to_owned()) };
        assert_eq!(parse(SMALL, 10).unwrap(), [(4, a.clone()), (5, b), (6, d)]);
        assert_eq!(parse(SMALL, 1).unwrap(), [(4, a)]);
        let named = |(line, name): (_, &str)| (line, ListedItem::named(name.to_owned()));
        assert_eq!(parse("# names\nA\n\n  B \nC", 2).unwrap(), [(2, "A"), (4, "B")].map(named));
    }

    #[test]
    fn an_item_is_in_a_list_once() {
        let twice = |text: &str| check_once(&parse(text, 10).unwrap());
        assert_eq!(twice(SMALL), Ok(()));
        // The same name in another domain is another item.
        assert_eq!(twice(&SMALL.replace("B&amp;C", "A")), Ok(()));
        let fault = twice(&SMALL.replace("\"D\"", "\"A\"")).unwrap_err();
        assert_eq!((fault.line, &*fault.what), (6, "the item A is on line 4 already; expected it once"));
        assert_eq!(twice("A\nB\n\n A\n").unwrap_err().line, 4);
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for [from, to, said] in cases(
            r#"
                post="true" => name="B" => 4: name is given twice
                genMsg="true" => genMsg="1" => 4: genMsg is '1'; expected true or false
                MarketByOrder => Login => 5: domain is 'Login'; expected MarketPrice or MarketByOrder
                name="D" =>  => 6: an item has no name
                name="D" domain="MarketPrice" => name="D" => 6: an item has no domain
                name="D" => name="" => 6: name has 0 bytes; expected 1 to 255
                snapshot="false" => snapshot="true" => 5: the item B&C has both generic and snapshot; expected one of them
                post= => posts= => 4: item has an attribute posts; expected domain, name, post, generic, genMsg, snapshot
                <itemList> => <items> => 3: the root element is items; expected itemList
                <item snapshot => <entry snapshot => 6: entry has no place in itemList; expected item
                </item> => <item/></item> => 5: item has no place in an item, which is empty
                </itemList> =>  => 8: the list ends in the middle of an element
            "#,
        ) {
            assert_eq!(fault(&from, &to), said);
        }
        assert!(fault("<?xml version=\"1.0\"?>", "<!DOCTYPE a>").contains("document type"));
    }

    #[test]
    fn the_list_that_is_built_in() {
        let items = built_in(20_000);
        assert_eq!((items.len(), items[0].name.as_str()), (20_000, "RDT1"));
        assert!(items[9_999].takes_posts && items[9_999].takes_generics && !items[10_000].takes_posts);
        assert_eq!(built_in(1_000_000).len(), 350_000);
        let error = load(None, 350_001).unwrap_err();
        assert!(error.to_string().ends_with("has 350000 items, and 350001 are asked for"), "{error}");
    }
}

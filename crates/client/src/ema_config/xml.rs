//! `EmaConfig.xml`: elements with a value or with child elements.

use quick_xml::XmlVersion;
use quick_xml::events::BytesStart;

use super::tree::{Fault, MOST_DEEP, MOST_NODES, Node};
use crate::xml::{Tag, Tags};

/// Parses the settings of a file, below its root element.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut tags = Tags::new(text);
    let mut open: Vec<Node> = Vec::new();
    let mut root = None;
    let mut nodes = 0;
    while let Some(tag) = tags.next_tag()? {
        let line = tags.line();
        let done = match tag {
            Tag::Open(start) => {
                open.push(element(&start, line)?);
                None
            }
            Tag::Empty(start) => Some(element(&start, line)?),
            Tag::Close => open.pop(),
            Tag::Text => {
                let hint = "write <Name value=\"…\"/>";
                return Err(Fault::new(line, "settings have values, and no text between elements", hint));
            }
        };
        nodes += 1;
        if open.len() > MOST_DEEP {
            let what = format!("elements are nested deeper than {MOST_DEEP}");
            return Err(Fault::new(line, what, ""));
        }
        if nodes > MOST_NODES {
            return Err(Fault::new(line, format!("there are more than {MOST_NODES} settings"), ""));
        }
        match (done, open.last_mut()) {
            (Some(node), Some(parent)) => parent.children.push(node),
            (Some(_), None) if root.is_some() => {
                return Err(Fault::new(line, "there is a second root element", ""));
            }
            (Some(node), None) => root = Some(node),
            (None, _) => {}
        }
    }
    let last = tags.line();
    if let Some(node) = open.last() {
        let what = format!("the element {} is not closed", node.name);
        return Err(Fault::new(node.line, what, ""));
    }
    let root = root
        .ok_or_else(|| Fault::new(last, "there is no element", "a configuration begins with <EmaConfig>"))?;
    if root.name != "EmaConfig" {
        let what = format!("the root element is {}; expected EmaConfig", root.name);
        return Err(Fault::new(root.line, what, ""));
    }
    Ok(root)
}

/// Parses an element with its one attribute.
fn element(start: &BytesStart<'_>, line: usize) -> Result<Node, Fault> {
    let mut node = Node::new(start.name().as_ref(), line);
    for attribute in start.attributes() {
        let attribute =
            attribute.map_err(|fault| Fault::new(line, format!("this is not XML: {fault}"), ""))?;
        if attribute.key.as_ref() != "value" {
            let name = attribute.key.as_ref();
            return Err(Fault::new(
                line,
                format!("{} has an attribute {name}", node.name),
                "only value is allowed",
            ));
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|fault| {
            Fault::new(line, format!("the value of {} is not XML: {fault}", node.name), "")
        })?;
        node.value = Some(value.trim().to_owned());
    }
    Ok(node)
}

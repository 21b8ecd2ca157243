//! `EmaConfig.xml`: elements that have a value or hold others.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::tree::{Fault, MOST_DEEP, MOST_NODES, Node};

/// The settings of a file, below its root element.
pub(super) fn parse(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let mut lines = Lines { text: text.trim_start_matches('\u{feff}').as_bytes(), at: 0, line: 1 };
    let mut open: Vec<Node> = Vec::new();
    let mut root = None;
    let mut nodes = 0;
    loop {
        // Blanks in front are part of what comes before.
        let line = lines.at(reader.buffer_position());
        let event = reader.read_event().map_err(|fault| {
            let line = lines.at(reader.error_position());
            Fault::new(line, format!("this is no XML: {fault}"), "")
        })?;
        match event {
            Event::Start(start) => {
                open.push(element(&start, line)?);
                nodes += 1;
                if open.len() > MOST_DEEP {
                    let what = format!("elements are deeper than {MOST_DEEP} within each other");
                    return Err(Fault::new(line, what, ""));
                }
            }
            Event::Empty(start) => {
                let node = element(&start, line)?;
                nodes += 1;
                match open.last_mut() {
                    Some(parent) => parent.children.push(node),
                    None => root = Some(node),
                }
            }
            Event::End(_) => {
                // The reader sees to it that it is the last one's.
                let Some(node) = open.pop() else { continue };
                match open.last_mut() {
                    Some(parent) => parent.children.push(node),
                    None if root.is_some() => {
                        return Err(Fault::new(line, "there is a second root element", ""));
                    }
                    None => root = Some(node),
                }
            }
            Event::DocType(_) => {
                return Err(Fault::new(line, "a configuration has no document type", "leave it out"));
            }
            Event::Text(text) if text.trim().is_empty() => {}
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                let hint = "write <Name value=\"…\"/>";
                return Err(Fault::new(line, "settings have values, and no text between elements", hint));
            }
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
        if nodes > MOST_NODES {
            return Err(Fault::new(line, format!("there are more than {MOST_NODES} settings"), ""));
        }
    }
    let last = lines.at(text.len() as u64);
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

/// An element with its one attribute.
fn element(start: &BytesStart<'_>, line: usize) -> Result<Node, Fault> {
    let mut node = Node::new(start.name().as_ref(), line);
    for attribute in start.attributes() {
        let attribute =
            attribute.map_err(|fault| Fault::new(line, format!("this is no XML: {fault}"), ""))?;
        if attribute.key.as_ref() != "value" {
            let name = attribute.key.as_ref();
            return Err(Fault::new(
                line,
                format!("{} has an attribute {name}", node.name),
                "there is value alone",
            ));
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|fault| {
            Fault::new(line, format!("the value of {} is no XML: {fault}", node.name), "")
        })?;
        node.value = Some(value.trim().to_owned());
    }
    Ok(node)
}

/// Lines of positions that only grow.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// The line of what follows this position, behind blanks.
    fn at(&mut self, position: u64) -> usize {
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        let passed = self.text.get(self.at..position).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = self.at.max(position);
        self.line
    }
}

//! Files of elements with attributes, the format of LSEG's tools and their settings, read with line numbers.

use std::borrow::Cow;
use std::path::Path;

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::Error;

/// A fault in a file, with its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line, from 1.
    pub line: usize,
    /// The fault, and what was expected.
    pub what: String,
    /// Advice to the user; may be empty.
    pub hint: String,
}

impl Fault {
    /// Creates a fault on a line, from 1; `hint` may be empty.
    pub fn new(line: usize, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { line, what: what.into(), hint: hint.into() }
    }

    /// Returns an error that also names the file.
    #[must_use]
    pub fn in_file(self, file: &str) -> Error {
        let Self { line, what, hint } = self;
        Error::Line { file: file.to_owned(), line, what, hint }
    }
}

/// Reads the text of a file of at most `most` bytes; `what` names the kind of file in errors.
///
/// # Errors
/// The file cannot be read, or is larger.
pub fn text(path: &Path, most: u64, what: &'static str) -> Result<String, Error> {
    let read = |source| Error::Read { path: path.to_owned(), source };
    let size = std::fs::metadata(path).map_err(read)?.len();
    if size > most {
        return Err(Error::TooLarge { path: path.to_owned(), size, what, most });
    }
    std::fs::read_to_string(path).map_err(read)
}

/// The next part of a file.
#[derive(Debug)]
pub enum Tag<'a> {
    /// An element begins.
    Open(BytesStart<'a>),
    /// An element without contents.
    Empty(BytesStart<'a>),
    /// The innermost open element ends.
    Close,
    /// Text that is not blank.
    Text,
}

/// The tags of a text, one at a time.
#[derive(Debug)]
pub struct Tags<'a> {
    reader: Reader<&'a [u8]>,
    text: &'a [u8],
    /// The offset up to which lines were counted, and the line there.
    at: usize,
    line: usize,
}

impl<'a> Tags<'a> {
    /// Creates a reader at the start of the text.
    pub fn new(text: &'a str) -> Self {
        let text = text.trim_start_matches('\u{feff}');
        Self { reader: Reader::from_str(text), text: text.as_bytes(), at: 0, line: 1 }
    }

    /// Returns the next tag; `None` at the end. Skips comments and declarations.
    ///
    /// # Errors
    /// The text is not XML, or has a document type, which readers of such files do not expect.
    pub fn next_tag(&mut self) -> Result<Option<Tag<'a>>, Fault> {
        loop {
            self.count_to(self.reader.buffer_position());
            let event = self.reader.read_event().map_err(|fault| {
                self.count_to(self.reader.error_position());
                Fault::new(self.line, format!("this is not XML: {fault}"), "")
            })?;
            return Ok(Some(match event {
                Event::Start(start) => Tag::Open(start),
                Event::Empty(start) => Tag::Empty(start),
                Event::End(_) => Tag::Close,
                Event::Text(text) if text.trim().is_empty() => continue,
                Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => Tag::Text,
                Event::Comment(_) | Event::Decl(_) | Event::PI(_) => continue,
                Event::DocType(_) => {
                    return Err(Fault::new(self.line, "there is a document type", "leave it out"));
                }
                Event::Eof => return Ok(None),
            }));
        }
    }

    /// Returns the line on which the last tag begins.
    pub const fn line(&self) -> usize {
        self.line
    }

    fn count_to(&mut self, position: u64) {
        let position = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        let passed = self.text.get(self.at..position).unwrap_or_default();
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = self.at.max(position);
    }
}

/// Returns the attributes of an element on this line, in their order.
pub fn attributes<'e>(
    element: &'e BytesStart<'_>,
    line: usize,
) -> impl Iterator<Item = Result<(Cow<'e, str>, Cow<'e, str>), Fault>> {
    // The caller checks for duplicates: a check here would take time quadratic in the number of attributes.
    let mut attributes = element.attributes();
    attributes.with_checks(false);
    attributes.map(move |attribute| {
        let fault = |fault: &dyn std::fmt::Display| Fault::new(line, format!("this is not XML: {fault}"), "");
        let attribute = attribute.map_err(|error| fault(&error))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).map_err(|error| fault(&error))?;
        Ok((Cow::Owned(attribute.key.as_ref().to_owned()), value))
    })
}

/// The deepest nesting of elements, and the most elements in a file: a file of messages has a dozen levels and
/// hundreds of elements.
const MOST_DEEP: usize = 16;
const MOST_ELEMENTS: usize = 100_000;

/// An element with its contents.
#[derive(Debug)]
pub struct Element {
    /// The element's name.
    pub name: String,
    /// The line on which the element begins, from 1.
    pub line: usize,
    attributes: Vec<(String, String)>,
    /// The elements in it, in their order.
    pub children: Vec<Element>,
}

impl Element {
    /// Parses the root element of a text. Skips text between elements.
    ///
    /// # Errors
    /// The text is not XML, is nested too deeply, or has too many elements.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let mut tags = Tags::new(text);
        let (mut open, mut root): (Vec<Self>, Option<Self>) = (Vec::new(), None);
        let mut count = 0;
        while let Some(tag) = tags.next_tag()? {
            let line = tags.line();
            let done = match tag {
                Tag::Open(start) => {
                    open.push(Self::begin(&start, line)?);
                    None
                }
                Tag::Empty(start) => Some(Self::begin(&start, line)?),
                Tag::Close => open.pop(),
                Tag::Text => None,
            };
            count += 1;
            if open.len() > MOST_DEEP {
                let what = format!("elements are nested deeper than {MOST_DEEP}");
                return Err(Fault::new(line, what, ""));
            }
            if count > MOST_ELEMENTS {
                return Err(Fault::new(line, format!("there are more than {MOST_ELEMENTS} elements"), ""));
            }
            match (done, open.last_mut()) {
                (Some(done), Some(parent)) => parent.children.push(done),
                (Some(done), None) if root.is_none() => root = Some(done),
                (Some(done), None) => {
                    return Err(Fault::new(done.line, "there is a second root element", ""));
                }
                (None, _) => {}
            }
        }
        if let Some(open) = open.last() {
            return Err(Fault::new(open.line, format!("the element {} is not closed", open.name), ""));
        }
        root.ok_or_else(|| Fault::new(tags.line(), "there is no element", ""))
    }

    fn begin(start: &BytesStart<'_>, line: usize) -> Result<Self, Fault> {
        let attributes = attributes(start, line)
            .map(|attribute| attribute.map(|(name, value)| (name.into_owned(), value.into_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { name: start.name().as_ref().to_owned(), line, attributes, children: Vec::new() })
    }

    /// Returns the attribute of this name, if there is one.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns the attribute of this name, which is required.
    ///
    /// # Errors
    /// The attribute is missing.
    pub fn required(&self, name: &str) -> Result<&str, Fault> {
        self.attribute(name).ok_or_else(|| self.fault(format!("{} has no {name}", self.name), ""))
    }

    /// Returns the only child, which must have this name.
    ///
    /// # Errors
    /// There is no child, more than one, or one of another name.
    pub fn only_child(&self, name: &str) -> Result<&Self, Fault> {
        match self.children.as_slice() {
            [child] if child.name == name => Ok(child),
            [] => Err(self.fault(format!("{} is empty; expected one {name} in it", self.name), "")),
            [child] => Err(child.unexpected(&self.name, &[name])),
            [_, second, ..] => {
                let what = format!("{} has more than one element in it; expected one {name}", self.name);
                Err(second.fault(what, ""))
            }
        }
    }

    /// Returns the fault that this element is not permitted in `parent`.
    pub fn unexpected(&self, parent: &str, known: &[&str]) -> Fault {
        let what = format!("{} has no place in {parent}; expected {}", self.name, known.join(" or "));
        let hint = crate::nearest(&self.name, known).map(|near| format!("there is {near}"));
        self.fault(what, hint.unwrap_or_default())
    }

    /// Returns a fault on the line of this element.
    pub fn fault(&self, what: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault::new(self.line, what, hint)
    }
}

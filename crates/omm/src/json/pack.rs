//! Several messages in one text: a server always sends an array.

use super::Converter;
use super::fault::{Fault, WriteError};
use super::text::JsonText;
use crate::rwf::MessageView;

/// Maximum bytes of a peer's text that an error returns: the maximum length of a message to LSEG's server.
const MOST_ECHO: usize = 61_440;

/// Writer of an array of messages to the end of the caller's buffer.
#[derive(Debug)]
pub struct Pack<'o> {
    text: JsonText<'o>,
    start: usize,
}

impl<'o> Pack<'o> {
    /// Starts an array.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        let mut text = JsonText::new(out);
        text.begin(b'[');
        Self { text, start }
    }

    /// Returns the length of the array so far, bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len() - self.start
    }

    /// Returns `true` if the array has no message yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Appends a message. Returns the number of its fields that were omitted because they are not in the dictionary.
    /// Fails as [`Converter::write`]; the array is unchanged.
    pub fn message(
        &mut self,
        converter: &Converter<'_>,
        message: &MessageView<'_>,
    ) -> Result<usize, WriteError> {
        let end = self.text.len();
        self.text.separate();
        converter.append(message, &mut self.text).inspect_err(|_| self.text.truncate(end))
    }

    /// Appends a ping.
    pub fn ping(&mut self) {
        self.text.separate();
        self.text.raw(br#"{"Type":"Ping"}"#);
    }

    /// Appends a pong, the answer to a ping.
    pub fn pong(&mut self) {
        self.text.separate();
        self.text.raw(br#"{"Type":"Pong"}"#);
    }

    /// Appends the answer to a peer's `text` with a message at fault. `Debug.Line` is the line of the text, from 1;
    /// `Debug.Message` is the text, or its first 61,440 bytes if it is longer.
    pub fn error(&mut self, fault: &Fault, text: &str) {
        let before = text.as_bytes().get(..fault.offset).unwrap_or(text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let out = &mut self.text;
        out.separate();
        out.begin(b'{');
        out.key("ID");
        out.signed(fault.id.into());
        out.key("Type");
        out.utf8(b"Error");
        out.key("Text");
        out.utf8(fault.problem.to_string().as_bytes());
        out.key("Debug");
        out.begin(b'{');
        out.key("File");
        out.utf8(b"tapeline_omm::json");
        out.key("Line");
        out.unsigned(line as u64);
        out.key("Offset");
        out.unsigned(fault.offset as u64);
        out.key("Message");
        out.utf8(&text.as_bytes()[..text.floor_char_boundary(MOST_ECHO)]);
        out.end(b'}');
        out.end(b'}');
    }

    /// Ends the array.
    pub fn finish(mut self) {
        self.text.end(b']');
    }
}

#[cfg(test)]
mod tests {
    use super::super::JsonProblem;
    use super::*;

    #[test]
    fn long_texts_do_not_come_back_whole() {
        let (mut out, text) = (Vec::new(), "é".repeat(100_000));
        let mut pack = Pack::new(&mut out);
        pack.error(&Fault { problem: JsonProblem::Missing("ID"), offset: 150_000, id: 7 }, &text);
        pack.finish();
        assert!((61_000..62_000).contains(&out.len()), "{}", out.len());
    }

    #[test]
    fn an_array_of_anything() {
        let mut out = b"before".to_vec();
        let mut pack = Pack::new(&mut out);
        assert!(pack.is_empty());
        pack.ping();
        pack.pong();
        let fault = Fault { problem: JsonProblem::Missing("ID"), offset: 3, id: 7 };
        pack.error(&fault, "\n\"\"");
        pack.finish();
        assert_eq!(
            str::from_utf8(&out).unwrap(),
            r#"before[{"Type":"Ping"},{"Type":"Pong"},{"ID":7,"Type":"Error","Text":"JSON Missing required key 'ID'","Debug":{"File":"tapeline_omm::json","Line":2,"Offset":3,"Message":"\n\"\""}}]"#
        );
    }
}

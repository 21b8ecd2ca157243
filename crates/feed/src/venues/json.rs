//! A reader of JSON text: one pass from start to end, without a tree and without allocation. Numbers stay text, because prices must not become
//! floating-point numbers.
//!
//! (The reader of `omm` passes over a text twice and is private to the conversion of OMM messages.)

use super::VenueFault;

/// Maximum nesting depth; venues use up to five levels.
const MAX_DEPTH: u8 = 16;

/// A position in a JSON text.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// Returns the first byte of the next value or separator, without moving past it.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, VenueFault> {
        while let Some(byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(*byte);
            }
            self.at += 1;
        }
        Err(VenueFault::Truncated)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), VenueFault> {
        if self.peek()? == byte {
            self.at += 1;
            return Ok(());
        }
        Err(VenueFault::Syntax)
    }

    /// Reads an object. `each` gets every name, and must read or [skip](Self::skip) the value.
    #[inline]
    pub(super) fn object(
        &mut self,
        mut each: impl FnMut(&mut Self, &'a [u8]) -> Result<(), VenueFault>,
    ) -> Result<(), VenueFault> {
        self.expect(b'{')?;
        self.down()?;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                let name = self.string()?;
                self.expect(b':')?;
                each(self, name)?;
                if self.is_last(b'}')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Reads an array. `each` must read or [skip](Self::skip) one value.
    #[inline]
    pub(super) fn array(
        &mut self,
        mut each: impl FnMut(&mut Self) -> Result<(), VenueFault>,
    ) -> Result<(), VenueFault> {
        self.expect(b'[')?;
        self.down()?;
        if self.peek()? == b']' {
            self.at += 1;
        } else {
            loop {
                each(self)?;
                if self.is_last(b']')? {
                    break;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    /// Moves past a comma or the closing bracket; returns `true` for the bracket.
    #[inline]
    fn is_last(&mut self, closing: u8) -> Result<bool, VenueFault> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Ok(false),
            byte if byte == closing => Ok(true),
            _ => Err(VenueFault::Syntax),
        }
    }

    fn down(&mut self) -> Result<(), VenueFault> {
        if self.depth == MAX_DEPTH {
            return Err(VenueFault::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    /// Reads a string without escapes: names, symbols and numbers have none.
    #[inline]
    pub(super) fn string(&mut self) -> Result<&'a [u8], VenueFault> {
        self.expect(b'"')?;
        let rest = &self.bytes[self.at..];
        for (length, byte) in rest.iter().enumerate() {
            match byte {
                b'"' => {
                    self.at += length + 1;
                    return Ok(&rest[..length]);
                }
                b'\\' => return Err(VenueFault::Escape),
                _ => {}
            }
        }
        Err(VenueFault::Truncated)
    }

    /// Reads a string, a number, `true`, `false` or `null` as its text.
    #[inline]
    pub(super) fn scalar(&mut self) -> Result<&'a [u8], VenueFault> {
        if self.peek()? == b'"' { self.string() } else { self.word() }
    }

    /// Reads a number, `true`, `false` or `null`; the caller checks the text that it uses.
    fn word(&mut self) -> Result<&'a [u8], VenueFault> {
        let rest = &self.bytes[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'+');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        if length == 0 {
            return Err(VenueFault::Syntax);
        }
        self.at += length;
        Ok(&rest[..length])
    }

    /// Skips a value of any kind.
    pub(super) fn skip(&mut self) -> Result<(), VenueFault> {
        match self.peek()? {
            b'{' => self.object(|reader, _| reader.skip()),
            b'[' => self.array(Self::skip),
            b'"' => self.skip_string(),
            _ => self.word().map(|_| ()),
        }
    }

    /// Skips a value of any kind; `each` gets every string in it, names of members excluded.
    pub(super) fn strings(&mut self, each: &mut dyn FnMut(&'a [u8])) -> Result<(), VenueFault> {
        match self.peek()? {
            b'{' => self.object(|reader, _| reader.strings(each)),
            b'[' => self.array(|reader| reader.strings(each)),
            b'"' => self.text().map(each),
            _ => self.word().map(|_| ()),
        }
    }

    fn skip_string(&mut self) -> Result<(), VenueFault> {
        self.text().map(|_| ())
    }

    /// Reads a string that may have escapes, as it is written.
    pub(super) fn text(&mut self) -> Result<&'a [u8], VenueFault> {
        self.expect(b'"')?;
        let from = self.at;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(&self.bytes[from..self.at - 1]);
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        Err(VenueFault::Truncated)
    }

    /// Checks that only blanks are left.
    pub(super) fn end(&mut self) -> Result<(), VenueFault> {
        match self.peek() {
            Err(VenueFault::Truncated) => Ok(()),
            _ => Err(VenueFault::Syntax),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(text: &str) -> Result<(), VenueFault> {
        let mut reader = Reader::new(text.as_bytes());
        reader.skip()?;
        reader.end()
    }

    #[test]
    fn values_of_all_kinds_are_skipped() {
        for text in [r#"{"a":[1,-2.5e7,"x\"]",{}],"b":null}"#, "[]", " [ ] ", "7", r#""\\""#, "true"] {
            assert_eq!(skipped(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn damaged_texts_are_refused() {
        let deep = ["[".repeat(17), "]".repeat(17)].concat();
        for (text, fault) in [
            ("", VenueFault::Truncated),
            ("{\"a\":1", VenueFault::Truncated),
            ("{\"a\" 1}", VenueFault::Syntax),
            ("{a:1}", VenueFault::Syntax),
            ("{\"a\\n\":1}", VenueFault::Escape),
            ("[1,]", VenueFault::Syntax),
            ("[1 2]", VenueFault::Syntax),
            ("[1]]", VenueFault::Syntax),
            ("\"x\\", VenueFault::Truncated),
            (&deep, VenueFault::TooDeep),
            (&"[".repeat(1 << 20), VenueFault::TooDeep),
        ] {
            assert_eq!(skipped(text), Err(fault), "{}", &text[..text.len().min(40)]);
        }
    }
}

//! The queries that are recognized as text: the query of `r.q` at its start, and its parts.
//!
//! `(.u.sub[`;`];.u `i`L)`, also with one table and symbols; also `` `.u `i`L ``, `.u.i` and so on alone. Blanks are
//! permitted between words. Other text is not a query, and is not evaluated.

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Query<'a> {
    /// Several queries, answered with a list.
    All(Vec<Self>),
    /// Subscribes to rows of tables.
    Subscribe {
        /// The table; an empty name means all tables.
        table: &'a [u8],
        /// The symbols; `None` means all.
        symbols: Option<Vec<&'a [u8]>>,
    },
    /// Reads one of a tickerplant's variables.
    Read(Variable),
    /// Ends the day: `.u.endofday[]`.
    EndDay,
}

/// A variable of a tickerplant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Messages in the log that were published.
    Published,
    /// Messages in the log.
    Logged,
    /// The log's path.
    Log,
    /// The sessions and symbols of all subscriptions.
    Subscriptions,
    /// The day.
    Date,
    /// The tables.
    Tables,
}

/// The longest text that is parsed, in bytes.
const LONGEST: usize = 64 * 1024;
/// The deepest nesting of lists.
const DEEPEST: usize = 4;
/// The most parts of a query: an RDB uses three, and each answer may contain all tables.
const MOST_PARTS: usize = 16;

impl Variable {
    /// Returns the variable with this name after `.u.`.
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"i" => Self::Published,
            b"j" => Self::Logged,
            b"L" => Self::Log,
            b"w" => Self::Subscriptions,
            b"d" => Self::Date,
            b"t" => Self::Tables,
            _ => return None,
        })
    }
}

impl<'a> Query<'a> {
    /// Parses a text; `None` if it is not a known query.
    pub(crate) fn parse(text: &'a [u8]) -> Option<Self> {
        if text.len() > LONGEST {
            return None;
        }
        let mut words = Words(text, 0);
        let query = words.query(DEEPEST)?;
        words.skip(b';');
        words.blanks();
        words.0.is_empty().then_some(query)
    }
}

/// A text that is read from its front, and the number of parts found.
struct Words<'a>(&'a [u8], usize);

impl<'a> Words<'a> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// Skips blanks, and `byte` if it is next. Returns `true` if it was.
    fn skip(&mut self, byte: u8) -> bool {
        self.blanks();
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Reads the characters of a name; may be empty.
    fn name(&mut self) -> &'a [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'/');
        let len = self.0.iter().position(|byte| !is_part(byte)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(len);
        self.0 = rest;
        name
    }

    /// Reads symbols such as `` `a`b``, at least one; a symbol may be empty.
    fn symbols(&mut self) -> Option<Vec<&'a [u8]>> {
        let mut symbols = Vec::new();
        self.blanks();
        // q permits no blanks between the symbols of a list.
        while let Some(rest) = self.0.strip_prefix(b"`") {
            self.0 = rest;
            symbols.push(self.name());
        }
        (!symbols.is_empty()).then_some(symbols)
    }

    fn query(&mut self, depth: usize) -> Option<Query<'a>> {
        self.blanks();
        self.1 += 1;
        if self.1 > MOST_PARTS {
            return None;
        }
        if self.skip(b'(') {
            let mut parts = Vec::new();
            loop {
                parts.push(self.query(depth.checked_sub(1)?)?);
                if self.skip(b')') {
                    break;
                }
                if !self.skip(b';') {
                    return None;
                }
            }
            // Parentheses around one query are not a list.
            return one_or_all(parts);
        }
        // The namespace `.u` is a dictionary; its name as a symbol can be used in its place.
        let is_name = self.skip(b'`');
        let name = self.name();
        match name.strip_prefix(b".u")? {
            b"" => {
                let names = self.symbols()?.into_iter();
                one_or_all(names.map(|name| Variable::named(name).map(Query::Read)).collect::<Option<_>>()?)
            }
            _ if is_name => None,
            b".sub" => {
                let table = self.skip(b'[').then(|| self.symbols())??;
                let [table] = table[..] else { return None };
                let symbols = self.skip(b';').then(|| self.symbols())??;
                let symbols = if symbols == [b""] { None } else { Some(symbols) };
                self.skip(b']').then_some(Query::Subscribe { table, symbols })
            }
            b".endofday" => (self.skip(b'[') && self.skip(b']')).then_some(Query::EndDay),
            rest => Variable::named(rest.strip_prefix(b".")?).map(Query::Read),
        }
    }
}

fn one_or_all(mut queries: Vec<Query<'_>>) -> Option<Query<'_>> {
    if queries.len() == 1 { queries.pop() } else { Some(Query::All(queries)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub<'a>(table: &'a str, symbols: &[&'a str]) -> Query<'a> {
        let symbols: Vec<_> = symbols.iter().map(|symbol| symbol.as_bytes()).collect();
        let symbols = if symbols == [b""] { None } else { Some(symbols) };
        Query::Subscribe { table: table.as_bytes(), symbols }
    }

    #[test]
    fn what_r_q_asks_is_known() {
        let both = || Query::All(vec![Query::Read(Variable::Published), Query::Read(Variable::Log)]);
        let cases = [
            ("(.u.sub[`;`];`.u `i`L)", Query::All(vec![sub("", &[""]), both()])),
            ("(.u.sub[`;`];.u `i`L)", Query::All(vec![sub("", &[""]), both()])),
            (" ( .u.sub[ `trade ; `AAPL`IBM.N ] ; .u`i`L ) ; ", {
                Query::All(vec![sub("trade", &["AAPL", "IBM.N"]), both()])
            }),
            ("(.u.sub[`trade;`])", sub("trade", &[""])),
            ("(.u.i;.u.L)", both()),
            ("`.u `d", Query::Read(Variable::Date)),
            (".u.w", Query::Read(Variable::Subscriptions)),
            (".u.endofday[]", Query::EndDay),
            ("(.u.sub[`a;`];.u.sub[`b;`x])", Query::All(vec![sub("a", &[""]), sub("b", &["x"])])),
        ];
        for (text, expected) in cases {
            assert_eq!(Query::parse(text.as_bytes()), Some(expected), "{text}");
        }
    }

    #[test]
    fn nothing_else_is() {
        let deep = "(".repeat(60_000);
        let many = format!("({}.u.i)", ".u.i;".repeat(100));
        for text in [
            "",
            "2+2",
            ".u.sub",
            ".u.sub[`trade]",
            ".u.sub[`a`b;`]",
            ".u.sub[`trade;`] 1",
            ".u.x",
            "`.u.sub[`;`]",
            "(.u.i;)",
            "(.u.i",
            ".u",
            "system\"ls\"",
            ".u.i;exit 0",
            &deep,
            &many,
        ] {
            assert_eq!(Query::parse(text.as_bytes()), None, "{text}");
        }
    }
}

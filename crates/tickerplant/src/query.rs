//! Queries that are known as text: what `r.q` asks at its start, and the parts of that.
//!
//! `(.u.sub[`;`];.u `i`L)`, with one table and symbols too; `` `.u `i`L ``, `.u.i` and so on alone. Blanks may stand between words.
//! Anything else is no query, and nothing of it is evaluated.

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Query<'a> {
    /// Several of them, answered with a list.
    All(Vec<Self>),
    /// To have rows of tables from now on.
    Subscribe {
        /// The tables: one, or all where the name is empty.
        table: &'a [u8],
        /// The symbols; all where there are none.
        symbols: Option<Vec<&'a [u8]>>,
    },
    /// One of a tickerplant's variables.
    Read(Variable),
    /// To end the day: `.u.endofday[]`.
    EndDay,
}

/// What a tickerplant says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variable {
    /// Messages in the log that were published.
    Published,
    /// Messages in the log.
    Logged,
    /// The log's path.
    Log,
    /// Who has subscribed to what.
    Subscriptions,
    /// The day.
    Date,
    /// The tables.
    Tables,
}

/// The longest text that is looked at.
const LONGEST: usize = 64 * 1024;
/// The most lists in each other.
const DEEPEST: usize = 4;
/// The most parts in all: an RDB asks for three, and each may be answered with all tables.
const MOST_PARTS: usize = 16;

impl Variable {
    /// By its name behind `.u.`.
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
    /// What a text asks, if it is known.
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

/// A text that is read from its front, and how many parts were found.
struct Words<'a>(&'a [u8], usize);

impl<'a> Words<'a> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    /// Whether it goes on with this, which is read then.
    fn skip(&mut self, byte: u8) -> bool {
        self.blanks();
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// As many bytes as names have.
    fn name(&mut self) -> &'a [u8] {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':' | b'/');
        let len = self.0.iter().position(|byte| !is_part(byte)).unwrap_or(self.0.len());
        let (name, rest) = self.0.split_at(len);
        self.0 = rest;
        name
    }

    /// `` `a`b``, one at least, and the empty one too.
    fn symbols(&mut self) -> Option<Vec<&'a [u8]>> {
        let mut symbols = Vec::new();
        self.blanks();
        // Between the symbols of one list q allows no blanks.
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
            // Brackets around one thing are no list.
            return if parts.len() == 1 { parts.pop() } else { Some(Query::All(parts)) };
        }
        // The namespace is a dictionary, and its name is good for it.
        let is_name = self.skip(b'`');
        let name = self.name();
        match name.strip_prefix(b".u")? {
            b"" => {
                let mut which =
                    self.symbols()?.into_iter().map(|name| Variable::named(name).map(Query::Read));
                let all: Option<Vec<_>> = which.by_ref().collect();
                let mut all = all?;
                if all.len() == 1 { all.pop() } else { Some(Query::All(all)) }
            }
            _ if is_name => None,
            b".sub" => {
                if !self.skip(b'[') {
                    return None;
                }
                let table = self.symbols()?;
                let [table] = table[..] else { return None };
                let symbols = if self.skip(b';') { self.symbols()? } else { return None };
                let symbols = if symbols == [b""] { None } else { Some(symbols) };
                self.skip(b']').then_some(Query::Subscribe { table, symbols })
            }
            b".endofday" => (self.skip(b'[') && self.skip(b']')).then_some(Query::EndDay),
            rest => Variable::named(rest.strip_prefix(b".")?).map(Query::Read),
        }
    }
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

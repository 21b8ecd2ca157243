//! The symbols of a feed, whether orders are published, and what is consolidated.

use std::path::Path;

use serde::Deserialize;
use tapeline_console::paths;
use tapeline_feed::nbbo::{MAX_VENUE_NAME, MAX_VENUES};
use tapeline_feed::symbols::Symbols;
use tapeline_node::config::Feed;
use tapeline_plant::{ConsolidationSettings, Participant};
use toml::Spanned;

use super::Source;
use super::source::span;

/// Maximum length of a consolidated item's suffix.
const MAX_SUFFIX: usize = 32;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNbbo {
    feeds: Spanned<Vec<Spanned<String>>>,
    suffix: Option<Spanned<String>>,
}

impl RawNbbo {
    /// The suffix of a symbol in the name of its consolidated item.
    pub(super) fn suffix(&self) -> &str {
        self.suffix.as_ref().map_or(".NBBO", |suffix| suffix.get_ref())
    }
}

impl Source<'_> {
    /// The suffix of a symbol in the name of its item: empty, or the venue if there are several feeds.
    pub(super) fn suffix(
        &self,
        suffix: Option<Spanned<String>>,
        venue: Option<&str>,
    ) -> anyhow::Result<String> {
        let Some(suffix) = suffix else {
            return Ok(venue.map_or_else(String::new, |venue| format!(".{venue}")));
        };
        let text = suffix.get_ref();
        if text.len() > MAX_SUFFIX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            let what =
                format!("suffix is \"{text}\"; at most {MAX_SUFFIX} letters, digits or signs are expected");
            return Err(self.wrong(suffix.span(), what, "AAPL's item is AAPL.XNAS with suffix = \".XNAS\""));
        }
        Ok(suffix.into_inner())
    }

    /// The symbols of a feed, from the list or from the file; `None` for all.
    pub(super) fn symbols(
        &self,
        listed: Option<Spanned<Vec<Spanned<String>>>>,
        file: Option<Spanned<String>>,
    ) -> anyhow::Result<Option<Symbols>> {
        let hint = "symbols = [\"AAPL\", \"MSFT*\"]; a * at the end matches any ending";
        match (listed, file) {
            (None, None) => Ok(None),
            (Some(_), Some(file)) => {
                Err(self.wrong(file.span(), "symbols and symbols_file are both set", "set one of the two"))
            }
            (Some(listed), None) => {
                if listed.get_ref().is_empty() {
                    return Err(self.wrong(listed.span(), "an empty list of symbols", hint));
                }
                let mut symbols = Symbols::default();
                for pattern in listed.get_ref() {
                    symbols
                        .add(pattern.get_ref())
                        .map_err(|error| self.wrong(pattern.span(), error, hint))?;
                }
                Ok(Some(symbols))
            }
            (None, Some(file)) => self.symbols_of_file(&file).map(Some),
        }
    }

    /// One pattern per line; empty lines and text after a `#` are ignored. A relative path starts at the
    /// configuration's folder.
    fn symbols_of_file(&self, file: &Spanned<String>) -> anyhow::Result<Symbols> {
        let path = self.beside(Path::new(file.get_ref()));
        let shown = paths::shown(&path);
        let hint = "a text file with one symbol a line, such as AAPL or MSFT*; # begins a comment";
        let wrong = |what: String| self.wrong(file.span(), what, hint);
        let text =
            std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot read {shown}: {error}")))?;
        let mut symbols = Symbols::default();
        for (line, number) in text.lines().zip(1..) {
            let pattern = line.split('#').next().unwrap_or_default().trim();
            if !pattern.is_empty() {
                symbols.add(pattern).map_err(|error| wrong(format!("{shown}:{number}: {error}")))?;
            }
        }
        if symbols.is_empty() {
            return Err(wrong(format!("{shown} contains no symbol")));
        }
        Ok(symbols)
    }

    /// The short name of a feed's venue.
    pub(super) fn venue(&self, venue: Option<Spanned<String>>, feed: &str) -> anyhow::Result<String> {
        let Some(venue) = venue else {
            return Ok(feed.chars().filter(char::is_ascii_graphic).take(MAX_VENUE_NAME).collect());
        };
        let text = venue.get_ref();
        if text.is_empty() || text.len() > MAX_VENUE_NAME || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            let what = format!("venue is \"{text}\"; one to {MAX_VENUE_NAME} letters or digits are expected");
            return Err(self.wrong(venue.span(), what, "such as the venue's MIC, venue = \"XNAS\""));
        }
        Ok(venue.into_inner())
    }

    /// The feeds whose best bid and offer is published.
    pub(super) fn nbbo(
        &self,
        raw: &RawNbbo,
        feeds: &[Feed],
        max_items: usize,
    ) -> anyhow::Result<ConsolidationSettings> {
        let named = raw.feeds.get_ref();
        if !(1..=MAX_VENUES).contains(&named.len()) {
            let what = format!("{} feeds take part; 1 to {MAX_VENUES} are expected", named.len());
            return Err(self.wrong(raw.feeds.span(), what, "feeds = [\"itch\", \"iex\"], by their names"));
        }
        let mut participants: Vec<Participant> = Vec::new();
        for name in named {
            let found = feeds.iter().zip(0..).find(|(feed, _)| feed.name == *name.get_ref());
            let Some((feed, channel)) = found else {
                let known: Vec<_> = feeds.iter().map(|feed| format!("\"{}\"", feed.name)).collect();
                let what = format!("no feed is called \"{}\"", name.get_ref());
                return Err(self.wrong(name.span(), what, format!("there are {}", known.join(", "))));
            };
            if participants.iter().any(|participant| participant.channel == channel) {
                let what = format!("feed \"{}\" takes part twice", name.get_ref());
                return Err(self.wrong(name.span(), what, "name each feed once"));
            }
            participants.push(Participant { channel, venue: feed.venue.clone() });
        }
        let suffix = raw.suffix();
        if suffix.is_empty() || suffix.len() > MAX_SUFFIX {
            let what = format!("suffix is \"{suffix}\"; one to {MAX_SUFFIX} bytes are expected");
            let hint = "AAPL's best is published as AAPL.NBBO with suffix = \".NBBO\"";
            return Err(self.wrong(span(&raw.suffix), what, hint));
        }
        // Cannot truncate: there are at most 64 feeds.
        let number = feeds.len() as u16;
        // Item numbers begin with 1.
        let max_symbols = max_items.saturating_add(1);
        Ok(ConsolidationSettings { number, participants, suffix: suffix.to_owned(), max_symbols })
    }
}

#[cfg(test)]
mod tests {
    use crate::plant::config::parse;
    use crate::plant::config::testing::checked;

    const PLANT: &str = "[plant]\nring = \"r\"\n";

    fn feed(name: &str, more: &str) -> String {
        let port = 20_000 + name.len();
        format!(
            "[[feed]]\nname = \"{name}\"\nprotocol = \"itch50-moldudp64\"\n{more}\n[[feed.line]]\naddress = \
             \"239.1.1.1:{port}\"\ninterface = \"127.0.0.1\"\n"
        )
    }

    #[test]
    fn symbols_and_orders_of_a_feed() {
        let text = [PLANT, &feed("a", "symbols = [\"AAPL\", \"MS*\"]\nmarket_by_order = true")].concat();
        let config = checked(&text).unwrap();
        let feed = &config.feeds[0];
        let symbols = feed.symbols.as_ref().unwrap();
        assert!(symbols.contains("MSFT") && !symbols.contains("IBM"));
        assert!(feed.market_by_order && feed.venue == "a" && config.nbbo.is_none());
        let iex = self::feed("a", "market_by_order = true").replace("itch50-moldudp64", "iex-deep-1.0");
        for (plant, feed, says) in [
            ("", self::feed("a", "symbols = [\"AA*PL\"]"), &["plant.toml:6:12:", "\"AA*PL\""][..]),
            (
                "",
                self::feed("a", "symbols_file = \"no such file\""),
                &["plant.toml:6:16: cannot read no such file"],
            ),
            ("publish = \"every-message\"\n", self::feed("a", "symbols = [\"AAPL\"]"), &["every-message"]),
            ("", iex, &["has no orders"]),
        ] {
            let said = checked(&[PLANT, plant, &feed].concat()).unwrap_err();
            assert!(says.iter().all(|says| said.contains(says)), "{said}");
        }
    }

    #[test]
    fn symbols_come_from_a_file_beside_the_configuration() {
        let folder = std::env::temp_dir().join(format!("tapeline-test-symbols-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("list"), "# wanted\nAAPL\n\nMSFT* # and its rights\n").unwrap();
        let text = [PLANT, &feed("a", "symbols_file = \"list\"")].concat();
        let config = parse(&folder.join("plant.toml").display().to_string(), &text).unwrap();
        let symbols = config.feeds[0].symbols.clone().unwrap();
        assert!(symbols.contains("AAPL") && symbols.contains("MSFTR") && symbols.len() == 2);
        std::fs::write(folder.join("list"), "AAPL\nA*B\n").unwrap();
        let said = parse(&folder.join("plant.toml").display().to_string(), &text).unwrap_err();
        assert!(format!("{said:?}").contains("list:2: \"A*B\""), "{said:?}");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_consolidated() {
        let feeds = [feed("a", "venue = \"XNAS\""), feed("bb", "")].concat();
        let config = checked(&[PLANT, &feeds, "[nbbo]\nfeeds = [\"bb\", \"a\"]\n"].concat()).unwrap();
        let nbbo = config.nbbo.unwrap();
        let venues: Vec<_> = nbbo.participants.iter().map(|p| (p.channel, p.venue.as_str())).collect();
        assert_eq!((venues, nbbo.number, nbbo.suffix.as_str()), (vec![(1, "bb"), (0, "XNAS")], 2, ".NBBO"));
        let complaint = |nbbo: &str| checked(&[PLANT, &feeds, "[nbbo]\n", nbbo].concat()).unwrap_err();
        assert!(complaint("feeds = [\"c\"]").contains("no feed is called \"c\""));
        assert!(complaint("feeds = [\"a\", \"a\"]").contains("takes part twice"));
        assert!(complaint("feeds = []").contains("0 feeds take part"));
        assert!(complaint("feeds = [\"a\"]\nsuffix = \"\"").contains("suffix is \"\""));
    }
}

//! `[kdb]`: the plant's tickerplant, and the sources of its tables.

use tapeline_console::near::nearest;
use tapeline_kdb::Type;
use tapeline_node::kdb::KdbConfig;
use tapeline_node::kdb::cells::kinds_for;
use tapeline_node::kdb::filling::{Content, Filler, RowsOf, Stamp};
use tapeline_node::kdb::publishing::Saying;
use tapeline_omm::rwf::DataType;
use tapeline_omm::{Dictionary, Fid};
use tapeline_tickerplant::Schema;
use toml::Spanned;

use super::Source;
use crate::tick::config::{RawTable, RawTickerplant, words};

/// The stamps that may follow a column's type in place of a field.
const STAMPS: [(&str, Stamp); 4] = [
    ("event", Stamp::Event),
    ("wire", Stamp::Wire),
    ("decoded", Stamp::Decoded),
    ("sequenced", Stamp::Sequenced),
];
const SEQUENCE: &str = "seq";
const ACTION: &str = "action";
const TIMES: [Type; 3] = [Type::TIMESPAN, Type::TIMESTAMP, Type::TIME];
const CONTENT_HINT: &str = "after the type comes a field of the dictionary, by name or number, or seq, action, event, wire, decoded \
     or sequenced, such as \"size long TRDVOL_1\"";

/// Distinguishes the items of kdb+ clients from those of feeds, which may have the same symbols.
const USUAL_VENUE: &str = "KDB";

/// The rest of the plant, as far as a tickerplant needs it.
pub(super) struct BesideTickerplant<'a> {
    /// The known fields.
    pub(super) dictionary: &'a Dictionary,
    pub(super) max_items: usize,
    pub(super) has_feeds: bool,
    /// The first number that no other channel has.
    pub(super) channel: u16,
}

impl Source<'_> {
    /// Checks the tickerplant of a plant.
    pub(super) fn kdb(&self, raw: &RawTickerplant, beside: &BesideTickerplant<'_>) -> Option<KdbConfig> {
        let serve = self.tickerplant(raw)?;
        let suffix = self.suffix(raw.suffix.clone(), beside.has_feeds.then_some(USUAL_VENUE));
        let suffix = self.sound(suffix)?;
        let (mut fillers, mut saying) = (Vec::new(), Vec::new());
        for (at, (raw, schema)) in raw.table.iter().zip(&serve.tables).enumerate() {
            let contents = self.contents(raw, schema, beside.dictionary);
            saying.push(Saying::of(&contents));
            fillers.extend(self.sound(self.filler(at, raw, &contents)).flatten());
        }
        let &BesideTickerplant { max_items, channel, .. } = beside;
        Some(KdbConfig { serve, fillers, max_items, saying, suffix, channel })
    }

    /// The source and the type of each column of a table; errors go to the faults.
    fn contents(
        &self,
        raw: &RawTable,
        schema: &Schema,
        dictionary: &Dictionary,
    ) -> Vec<(Option<Content>, Type)> {
        let columns = raw.columns.iter().zip(schema.columns()).enumerate();
        let content = columns.map(|(at, (text, column))| {
            let content = self.sound(self.content(at, text, column.kind, dictionary))?;
            if content.is_none() && raw.rows.is_some() {
                let what = format!("nothing fills column {} of table {}", column.name, raw.name.get_ref());
                self.fault(text.span(), what, CONTENT_HINT);
            }
            Some((content, column.kind))
        });
        // A wrong column is left out: with a fault, no plant runs.
        content.flatten().collect()
    }

    /// The ticks that fill a table, if any do.
    fn filler(
        &self,
        table: usize,
        raw: &RawTable,
        contents: &[(Option<Content>, Type)],
    ) -> anyhow::Result<Option<Filler>> {
        let Some(rows) = &raw.rows else { return Ok(None) };
        let rows_of = self.one_of(
            "rows",
            &raw.rows,
            [("trades", RowsOf::Trades), ("quotes", RowsOf::Quotes), ("changes", RowsOf::Changes)],
            "\"changes\" makes a row of each tick with one of the table's fields; if rows is left out, only kdb+ clients publish rows",
        )?;
        let columns: Vec<_> =
            contents.iter().filter_map(|(content, kind)| Some(((*content)?, *kind))).collect();
        let has_field = columns.iter().any(|(content, _)| matches!(content, Content::Field(..)));
        if rows_of == RowsOf::Changes && columns.len() == raw.columns.len() && !has_field {
            let what = format!(
                "rows of table {} are \"changes\", and no column has a field that changes",
                raw.name.get_ref()
            );
            return Err(self.wrong(rows.span(), what, CONTENT_HINT));
        }
        if rows_of != RowsOf::Trades && columns.iter().any(|(content, _)| *content == Content::Action) {
            let what =
                format!("table {} has a column action, but its rows are not trades", raw.name.get_ref());
            let hint = "action tells trades from breaks, with rows = \"trades\"";
            return Err(self.wrong(rows.span(), what, hint));
        }
        Ok(Some(Filler { table, rows: rows_of, columns }))
    }

    /// The source of a column; `None` if none is given.
    fn content(
        &self,
        at: usize,
        text: &Spanned<String>,
        kind: Type,
        dictionary: &Dictionary,
    ) -> anyhow::Result<Option<Content>> {
        let mut words = words(text.get_ref()).skip(2);
        let (word, more) = (words.next(), words.next());
        if more.is_some() {
            let what = format!("column \"{}\" has too many words", text.get_ref());
            return Err(self.wrong(text.span(), what, CONTENT_HINT));
        }
        let content = match (at, word) {
            (0, None) => Content::Stamp(Stamp::Sequenced),
            (1, None) => Content::Item,
            (1, Some(word)) => {
                let what = format!("sym is the item's name, and cannot be {word}");
                return Err(self.wrong(text.span(), what, "write \"sym symbol\" and nothing else"));
            }
            (_, None) => return Ok(None),
            (_, Some(SEQUENCE)) => Content::Sequence,
            (_, Some(ACTION)) => Content::Action,
            (_, Some(word)) => match STAMPS.iter().find(|(name, _)| *name == word) {
                Some((_, stamp)) => Content::Stamp(*stamp),
                None => {
                    let (fid, is) = self.field(word, text, dictionary)?;
                    Content::Field(fid, is)
                }
            },
        };
        let expected: &[Type] = match content {
            Content::Item | Content::Action => &[Type::SYMBOL],
            Content::Stamp(_) => &TIMES,
            Content::Sequence => &[Type::LONG],
            Content::Field(_, is) => kinds_for(is),
        };
        if expected.contains(&kind) {
            return Ok(Some(content));
        }
        let word = word.unwrap_or_default();
        let what = match content {
            Content::Field(_, is) => format!("field {word} is {is}"),
            _ => word.to_owned(),
        };
        let expected: Vec<_> = expected.iter().map(|kind| kind.name()).collect();
        let what = match expected[..] {
            [] => format!("{what}, and no column can hold it"),
            _ => format!("{what}, and {} cannot hold it; {} can", kind.name(), expected.join(", ")),
        };
        Err(self.wrong(text.span(), what, CONTENT_HINT))
    }

    /// A field by name or number.
    fn field(
        &self,
        word: &str,
        text: &Spanned<String>,
        dictionary: &Dictionary,
    ) -> anyhow::Result<(Fid, DataType)> {
        let by_number = || dictionary.field(Fid(word.parse().ok()?));
        if let Some(field) = dictionary.field_named(word).or_else(by_number) {
            return Ok((field.fid, field.data_type));
        }
        let known: Vec<_> = dictionary.fields().map(|field| &*field.name).collect();
        let hint = match nearest(word, &known) {
            Some(near) => format!("did you mean {near}? {CONTENT_HINT}"),
            None => CONTENT_HINT.to_owned(),
        };
        let what = format!("column \"{}\": there is no field {word}", text.get_ref());
        Err(self.wrong(text.span(), what, hint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plant::config::testing::{PLANT, checked};

    const TABLE: &str = "[kdb]\nport = 0\n[[kdb.table]]\n";

    #[test]
    fn tables_are_filled_from_fields_and_stamps() {
        let config = checked(&format!(
            "{PLANT}{TABLE}name = \"trade\"\nrows = \"trades\"\ncolumns = [\"time timespan\", \"sym symbol\", \
             \"price float TRDPRC_1\", \"size j 178\", \"at p event\", \"n long seq\"]\n"
        ));
        let kdb = config.unwrap().kdb.unwrap();
        assert_eq!(kdb.serve.tables[0].name(), "trade");
        let real = |fid| Content::Field(fid, DataType::REAL);
        let contents: Vec<_> = kdb.fillers[0].columns.iter().map(|(content, _)| *content).collect();
        let fixed = [Content::Stamp(Stamp::Sequenced), Content::Item];
        assert_eq!(contents[..2], fixed);
        assert_eq!(contents[2..4], [real(tapeline_omm::fid::TRDPRC_1), real(tapeline_omm::fid::TRDVOL_1)]);
        assert_eq!(contents[4..], [Content::Stamp(Stamp::Event), Content::Sequence]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let table = |rows: &str, column: &str| {
            format!(
                "{PLANT}{TABLE}name = \"t\"\n{rows}columns = [\"time timespan\", \"sym symbol\", \"{column}\"]\n"
            )
        };
        let trades = "rows = \"trades\"\n";
        for (text, says) in [
            (table("rows = \"all\"\n", "price float BID"), "plant.toml:13:8: rows is \"all\""),
            (table(trades, "price float"), "plant.toml:14:43: nothing fills column price of table t"),
            (table(trades, "price float TRDPRC"), "there is no field TRDPRC"),
            (
                table(trades, "price symbol BID"),
                "field BID is REAL, and symbol cannot hold it; float, real, long",
            ),
            (table(trades, "at long event"), "event, and long cannot hold it; timespan, timestamp, time can"),
            (table(trades, "price float BID ASK"), "has too many words"),
            (table(trades, "action long action"), "action, and long cannot hold it; symbol can"),
            (
                table("rows = \"quotes\"\n", "action symbol action"),
                "has a column action, but its rows are not trades",
            ),
            (table("rows = \"changes\"\n", "n long seq"), "no column has a field that changes"),
            (table(trades, "price flaot BID"), "column price of table t has an unknown type: \"flaot\""),
            (table(trades, "x float BID").replace("symbol\"", "symbol BID\""), "sym is the item's name"),
        ] {
            let said = checked(&text).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}

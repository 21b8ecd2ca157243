//! Fields to be published, from a file: the message files of LSEG's performance tools (`MsgData.xml`).

use std::path::Path;

use anyhow::Context;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use tapeline_omm::{Date, Fid, FieldListEncoder, Full, Time};

use super::values::real;
use crate::failure::Hinted;

/// Bytes of a file at most, and of the fields of one message.
const MOST_BYTES: u64 = 4 << 20;
const LONGEST: usize = 60_000;

/// An image and its changes, as field lists.
#[derive(Debug)]
pub(crate) struct MessageFile {
    refresh: Vec<u8>,
    updates: Vec<Vec<u8>>,
}

/// A field as the file has it.
struct Entry {
    fid: Fid,
    data_type: String,
    data: String,
}

impl MessageFile {
    /// Reads the refresh and the updates of a file's MarketPrice messages; its posts and generic messages are passed over.
    ///
    /// # Errors
    /// It cannot be read, has none of them, or a field is not of its type.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let file = path.display();
        let size = std::fs::metadata(path).with_context(|| format!("cannot read {file}"))?.len();
        if size > MOST_BYTES {
            anyhow::bail!("{file} has {size} bytes; a file of messages has {MOST_BYTES} at most");
        }
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {file}"))?;
        Self::parse(&text).with_context(|| format!("in {file}"))
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut reader = Reader::from_str(text);
        let mut open: Vec<String> = Vec::new();
        let (mut refresh, mut updates) = (None, Vec::new());
        let mut fields: Vec<Entry> = Vec::new();
        loop {
            let line =
                1 + text.get(..reader.buffer_position() as usize).unwrap_or(text).matches('\n').count();
            match reader.read_event().with_context(|| format!("line {line}: this is no XML"))? {
                Event::Start(start) => open.push(start.name().as_ref().to_owned()),
                Event::Empty(start) if start.name().as_ref() == "fieldEntry" => {
                    fields.push(entry(&start).with_context(|| format!("line {line}"))?);
                }
                Event::End(end) => {
                    open.pop();
                    let is_list = end.name().as_ref() == "fieldList";
                    // An update within a post is the post's.
                    let is_quoted = open.iter().any(|name| name == "marketPriceMsgList");
                    let is_other = open.iter().any(|name| name == "postMsg" || name == "genMsg");
                    if !is_list || !is_quoted || is_other {
                        if is_list {
                            fields.clear();
                        }
                        continue;
                    }
                    let list = encode(&fields).with_context(|| format!("above line {line}"))?;
                    fields.clear();
                    if open.iter().any(|name| name == "refreshMsg") {
                        refresh = Some(list);
                    } else if open.iter().any(|name| name == "updateMsg") {
                        updates.push(list);
                    }
                }
                Event::DocType(_) => anyhow::bail!("line {line}: there is a document type; leave it out"),
                Event::Eof => break,
                _ => {}
            }
        }
        let hint = "there are to be a marketPriceMsgList with a refreshMsg and one updateMsg or more";
        let refresh = refresh.ok_or_else(|| Hinted::new("there is no image of prices", hint))?;
        if updates.is_empty() {
            return Err(Hinted::new("there is no update of prices", hint).into());
        }
        Ok(Self { refresh, updates })
    }

    /// The image.
    pub(crate) fn refresh(&self) -> &[u8] {
        &self.refresh
    }

    /// The changes, one after the other and from the beginning again.
    pub(crate) fn update(&self, turn: u64) -> &[u8] {
        let place = turn % self.updates.len() as u64;
        &self.updates[place as usize]
    }
}

fn entry(start: &BytesStart<'_>) -> anyhow::Result<Entry> {
    let (mut fid, mut data_type, mut data) = (None, String::new(), String::new());
    for attribute in start.attributes() {
        let attribute = attribute?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
        match attribute.key.as_ref() {
            "fieldId" => fid = value.parse().ok().map(Fid),
            "dataType" => data_type = value.into_owned(),
            "data" => data = value.into_owned(),
            _ => {}
        }
    }
    let fid = fid.context("a fieldEntry has no fieldId, or one that is no number of 16 bits")?;
    Ok(Entry { fid, data_type, data })
}

fn encode(fields: &[Entry]) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; LONGEST];
    let mut list = FieldListEncoder::new(&mut bytes)?;
    for Entry { fid, data_type, data } in fields {
        let (fid, value) = (*fid, data.trim());
        let wrong = || format!("'{value}' is no value of field {fid}, a {data_type}");
        let added: Result<(), Full> = match data_type.strip_prefix("RSSL_DT_").unwrap_or(data_type) {
            _ if value.is_empty() => list.blank(fid),
            "UINT" => list.uint(fid, value.parse().with_context(wrong)?),
            "INT" => list.int(fid, value.parse().with_context(wrong)?),
            "ENUM" => list.enumeration(fid, value.parse().with_context(wrong)?),
            "REAL" => list.real(fid, real(value).with_context(wrong)?),
            "DATE" => list.date(fid, day(value).with_context(wrong)?),
            "TIME" => list.time(fid, clock(value).with_context(wrong)?),
            "ASCII_STRING" => list.ascii(fid, data.as_bytes()),
            "UTF8_STRING" => list.utf8(fid, data),
            "RMTES_STRING" => list.rmtes(fid, data.as_bytes()),
            "BUFFER" => list.buffer(fid, data.as_bytes()),
            _ => anyhow::bail!("field {fid} is a {data_type}, which is not read from files"),
        };
        added.with_context(|| format!("the fields of a message have more than {LONGEST} bytes"))?;
    }
    let len = list.finish();
    bytes.truncate(len);
    Ok(bytes)
}

/// `11/15/2005`: month, day, year.
fn day(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, '/');
    let month = parts.next()?.parse().ok().filter(|month| (1..=12).contains(month))?;
    let day = parts.next()?.parse().ok().filter(|day| (1..=31).contains(day))?;
    Some(Date { day, month, year: parts.next()?.parse().ok()? })
}

/// `21:00:01:000`: hours, minutes, seconds, milliseconds; later ones may be missing.
fn clock(text: &str) -> Option<Time> {
    let parts: Option<Vec<u64>> = text.split(':').map(|part| part.trim().parse().ok()).collect();
    let part = |at: usize| parts.as_ref()?.get(at).copied().or((at > 1).then_some(0));
    let (hours, minutes, seconds, ms) = (part(0)?, part(1)?, part(2)?, part(3)?);
    if hours > 23 || minutes > 59 || seconds > 59 || ms > 999 {
        return None;
    }
    Some(Time::from_ns_of_day((((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms) * 1_000_000))
}

#[cfg(test)]
mod tests {
    use tapeline_omm::{Dictionary, FieldList};

    use super::*;

    const SMALL: &str = r#"<msgFormat><marketPriceMsgList>
<refreshMsg><dataBody><fieldList>
    <fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="39.91"/>
    <fieldEntry fieldId="14265" dataType="RSSL_DT_TIME" data=" 21:00:01:007"/>
    <fieldEntry fieldId="4451" dataType="RSSL_DT_RMTES_STRING" data="BOS"/>
    <fieldEntry fieldId="25" dataType="RSSL_DT_REAL" data=""/>
</fieldList></dataBody></refreshMsg>
<updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="1"/></fieldList></dataBody></updateMsg>
<updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="2"/></fieldList></dataBody></updateMsg>
<postMsg><updateMsg><dataBody><fieldList><fieldEntry fieldId="22" dataType="RSSL_DT_REAL" data="9"/></fieldList></dataBody></updateMsg></postMsg>
</marketPriceMsgList></msgFormat>"#;

    fn shown(list: &[u8]) -> String {
        FieldList::parse(list).unwrap().render(Dictionary::builtin()).to_string()
    }

    #[test]
    fn an_image_and_its_updates_in_turn() {
        let file = MessageFile::parse(SMALL).unwrap();
        assert_eq!(shown(file.refresh()), "BID=39.91 QUOTIM_NS=21:00:01.007 BID_SRC=BOS ASK=");
        assert_eq!([0, 1, 2].map(|turn| shown(file.update(turn))), ["BID=1", "BID=2", "BID=1"]);
        assert_eq!(day("11/15/2005"), Some(Date { day: 15, month: 11, year: 2005 }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused =
            |from: &str, to: &str| format!("{:#}", MessageFile::parse(&SMALL.replace(from, to)).unwrap_err());
        assert!(refused("39.91", "x").contains("above line 7: 'x' is no value of field 22, a RSSL_DT_REAL"));
        assert!(
            refused("fieldId=\"4451\"", "fieldId=\"99999\"").contains("line 5: a fieldEntry has no fieldId")
        );
        assert!(refused("refreshMsg", "other").contains("there is no image"));
        assert!(refused("</dataBody>", "").contains("no XML"));
        assert!(refused("RMTES_STRING", "MAP").contains("not read from files"));
    }
}

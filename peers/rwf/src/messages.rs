//! The messages of `MsgData.xml`: what LSEG's performance tools send.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use roxmltree::{Document, Node};
use tapeline_omm::rwf::{Date, Rmtes, Time};
use tapeline_omm::{Dictionary, Fid, Real, Value};

pub(crate) type Fields = Vec<(Fid, Value<'static>)>;

/// The first image and the first update of price records.
pub(crate) struct Messages {
    refresh: Fields,
    update: Fields,
    pub(crate) dictionary: Dictionary,
}

impl Messages {
    /// Reads `MsgData.xml` and the dictionaries beside it.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
            anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let dictionary =
            Dictionary::parse(&read("RDMFieldDictionary")?)?.with_enumerations(&read("enumtype.def")?)?;
        let text = read("MsgData.xml")?;
        let file = Document::parse(&text).context("MsgData.xml")?;
        let first = |class: &str| {
            let list = file.descendants().find(|node| node.has_tag_name("marketPriceMsgList"));
            let message = list.and_then(|list| list.children().find(|node| node.has_tag_name(class)));
            let message = message.with_context(|| format!("MsgData.xml has no {class} of market price"))?;
            fields(message).with_context(|| format!("{class} of MsgData.xml"))
        };
        Ok(Self { refresh: first("refreshMsg")?, update: first("updateMsg")?, dictionary })
    }

    /// The update if it has so many fields; else the first ones of the image.
    pub(crate) fn of(&self, count: usize) -> anyhow::Result<&[(Fid, Value<'static>)]> {
        if self.update.len() == count {
            return Ok(&self.update);
        }
        self.refresh.get(..count).with_context(|| format!("the image has no {count} fields"))
    }
}

fn fields(message: Node<'_, '_>) -> anyhow::Result<Fields> {
    let entries = message.descendants().filter(|node| node.has_tag_name("fieldEntry"));
    entries
        .map(|entry| {
            let attribute = |name| entry.attribute(name).with_context(|| format!("an entry has no {name}"));
            let (fid, data) = (attribute("fieldId")?, attribute("data")?);
            let value = value(attribute("dataType")?, data.trim()).with_context(|| format!("field {fid}"))?;
            Ok((Fid(fid.parse()?), value))
        })
        .collect()
}

fn value(data_type: &str, text: &str) -> anyhow::Result<Value<'static>> {
    if text.is_empty() {
        return Ok(Value::Blank);
    }
    Ok(match data_type {
        "RSSL_DT_UINT" => Value::UInt(text.parse()?),
        "RSSL_DT_ENUM" => Value::Enum(text.parse()?),
        "RSSL_DT_REAL" => {
            let places = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            Value::Real(Real::decimal(text.replace('.', "").parse()?, u8::try_from(places)?))
        }
        "RSSL_DT_DATE" => {
            let [month, day, year] = numbers(text, '/')?;
            Value::Date(Date { day: u8::try_from(day)?, month: u8::try_from(month)?, year })
        }
        "RSSL_DT_TIME" => {
            let [hour, minute, second, millisecond] = numbers(text, ':')?;
            Value::Time(Time {
                hour: u8::try_from(hour)?,
                minute: u8::try_from(minute)?,
                second: u8::try_from(second)?,
                millisecond,
                ..Time::default()
            })
        }
        // A handful of short texts for the life of the program.
        "RSSL_DT_RMTES_STRING" => Value::Rmtes(Rmtes(text.to_owned().leak().as_bytes())),
        other => bail!("{other} is not a type that price records have"),
    })
}

fn numbers<const N: usize>(text: &str, separator: char) -> anyhow::Result<[u16; N]> {
    let parts: Vec<u16> = text.split(separator).map(str::parse).collect::<Result<_, _>>()?;
    ensure!(parts.len() == N, "{text:?} has {} parts, not {N}", parts.len());
    Ok(std::array::from_fn(|place| parts[place]))
}

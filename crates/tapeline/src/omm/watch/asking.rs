//! The requests: items, views, posts.

use std::rc::Rc;

use tapeline_console::failure::Hinted;
use tapeline_console::near::nearest;
use tapeline_omm::rwf::{DataType, Domain};
use tapeline_omm::{Dictionary, Fid, FieldListEncoder, Full};
use tapeline_perf::omm::values::{date, real, time};

use super::OmmWatchArgs;

/// The options, with what is to be looked up for them.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    pub(super) args: &'a OmmWatchArgs,
    pub(super) items: Vec<String>,
    /// Ids of the requested fields.
    pub(super) view: Vec<i16>,
    pub(super) post: Option<Rc<[u8]>>,
    pub(super) generic: Option<Rc<str>>,
}

/// Maximum length of a posted field list, in bytes.
const MOST_POSTED: usize = 60_000;

impl<'a> Asked<'a> {
    pub(super) fn new(args: &'a OmmWatchArgs, dictionary: &Dictionary) -> anyhow::Result<Self> {
        let items = if args.commands { args.items.load_any()? } else { args.items.load()? };
        let view = fids(&args.view, dictionary)?;
        let post = if args.post.is_empty() { None } else { Some(fields(&args.post, dictionary)?.into()) };
        Ok(Self { args, items, view, post, generic: args.generic.as_deref().map(Rc::from) })
    }
}

/// A domain by name or number: a value parser for clap.
pub(super) fn domain(text: &str) -> Result<Domain, String> {
    if let Ok(number) = text.parse() {
        return match number {
            1 | 4 | 5 => Err(format!("{text} is not a domain of items")),
            _ => Ok(Domain(number)),
        };
    }
    let all = || (6..=127).map(Domain).filter_map(|domain| Some((domain, domain.name()?)));
    if let Some((domain, _)) = all().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
        return Ok(domain);
    }
    let names: Vec<&str> = all().map(|(_, name)| name).collect();
    let hint = nearest(text, &names).map(|near| format!("; there is {near}")).unwrap_or_default();
    Err(format!(
        "'{text}' is neither a domain, such as MarketPrice or MarketByOrder, nor a number up to 255{hint}"
    ))
}

/// A field by name or number.
fn fid(text: &str, dictionary: &Dictionary) -> anyhow::Result<Fid> {
    if let Ok(number) = text.parse() {
        return Ok(Fid(number));
    }
    if let Some(field) = dictionary.field_named(text) {
        return Ok(field.fid);
    }
    let names: Vec<&str> = dictionary.fields().map(|field| &*field.name).collect();
    let hint = match nearest(text, &names) {
        Some(near) => format!("there is {near}"),
        None => "give its number, or name the file of a larger dictionary with --dictionary".to_owned(),
    };
    Err(Hinted::new(format!("the dictionary has no field {text}"), hint).into())
}

/// The ids of fields by name or number.
pub(super) fn fids(fields: &[String], dictionary: &Dictionary) -> anyhow::Result<Vec<i16>> {
    fields.iter().map(|field| Ok(fid(field, dictionary)?.0)).collect()
}

/// Encodes a field list from `NAME=VALUE` pairs.
pub(super) fn fields(pairs: &[String], dictionary: &Dictionary) -> anyhow::Result<Vec<u8>> {
    let mut bytes = vec![0; MOST_POSTED];
    let mut list = FieldListEncoder::new(&mut bytes)?;
    for pair in pairs {
        let (name, value) = pair.split_once('=').ok_or_else(|| {
            Hinted::new(format!("'{pair}' gives no field a value"), "write NAME=VALUE, such as BID=39.91")
        })?;
        let fid = fid(name, dictionary)?;
        add(&mut list, fid, value, dictionary)?;
    }
    let len = list.finish();
    bytes.truncate(len);
    Ok(bytes)
}

/// Adds a field's value from text, by the type in the dictionary.
fn add(
    list: &mut FieldListEncoder<'_>,
    fid: Fid,
    value: &str,
    dictionary: &Dictionary,
) -> anyhow::Result<()> {
    let data_type = dictionary.data_type(fid).unwrap_or(DataType::UNKNOWN);
    let wrong = || Hinted::new(format!("'{value}' is not a value of field {fid}, a {data_type}"), "");
    let added: Result<(), Full> = match data_type {
        _ if value.is_empty() => list.blank(fid),
        DataType::INT => list.int(fid, value.parse().map_err(|_| wrong())?),
        DataType::UINT => list.uint(fid, value.parse().map_err(|_| wrong())?),
        DataType::ENUM => list.enumeration(fid, value.parse().map_err(|_| wrong())?),
        DataType::REAL => list.real(fid, real(value).ok_or_else(wrong)?),
        DataType::DATE => list.date(fid, date(value).ok_or_else(wrong)?),
        DataType::TIME => list.time(fid, time(value).ok_or_else(wrong)?),
        DataType::ASCII_STRING => list.ascii(fid, value.as_bytes()),
        DataType::UTF8_STRING => list.utf8(fid, value),
        DataType::RMTES_STRING => list.rmtes(fid, value.as_bytes()),
        DataType::BUFFER => list.buffer(fid, value.as_bytes()),
        _ => {
            let hint = "only numbers, texts, dates and times of fields in the dictionary can be posted";
            return Err(Hinted::new(format!("field {fid} cannot be posted"), hint).into());
        }
    };
    Ok(added?)
}

#[cfg(test)]
mod tests {
    use tapeline_omm::{FieldList, fid};

    use super::*;

    #[test]
    fn values_are_read_as_people_write_them() {
        let pairs =
            ["BID=39.91", "ASKSIZE=-7", "QUOTIM_NS=14:30:15.5", "BID_SRC=TAPE", "TRD_STATUS=2", "25="];
        let bytes = fields(&pairs.map(str::to_owned), Dictionary::builtin()).unwrap();
        let text = FieldList::parse(&bytes).unwrap().render(Dictionary::builtin()).to_string();
        let expected = "BID=39.91 ASKSIZE=-7 QUOTIM_NS=14:30:15.500 BID_SRC=TAPE TRD_STATUS=H ASK=";
        assert_eq!(text, expected);
        assert_eq!(
            FieldList::parse(&bytes).unwrap().find(fid::BID).unwrap().unwrap().real(),
            Ok(real("39.91"))
        );
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for pair in ["BID", "BID=x", "BID=1.2.3", "BDI=1", "QUOTIM_NS=25:00:00", "TRD_STATUS=N"] {
            assert!(fields(&[pair.to_owned()], Dictionary::builtin()).is_err(), "{pair}");
        }
        let error = fid("ASKSZE", Dictionary::builtin()).unwrap_err();
        assert_eq!(error.downcast_ref::<Hinted>().unwrap().hint(), "there is ASKSIZE");
    }

    #[test]
    fn domains_have_names_and_numbers() {
        assert_eq!(domain("marketbyorder"), Ok(Domain::MARKET_BY_ORDER));
        assert_eq!(domain("200"), Ok(Domain(200)));
        assert!(domain("MarktPrice").unwrap_err().contains("there is MarketPrice"));
        assert!(domain("1").is_err() && domain("256").is_err());
    }
}

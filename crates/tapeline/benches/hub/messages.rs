//! The messages that are sent: those of `MsgData.xml`, which LSEG's tools send too.

use std::path::Path;

use anyhow::Context;
use tapeline_omm::rwf::{
    DataType, Date, Domain, RefreshHeader, State, Time, UpdateType, flags, update_header,
};
use tapeline_omm::{Fid, FieldList, FieldListEncoder, Real, Refused};

/// TIM_TRK_1, in which the tools send the time that latency is counted from, ns of the monotonic clock.
pub(crate) const STAMP: Fid = Fid(3_902);

/// An image and an update.
pub(crate) struct Messages {
    /// 70 fields, and the three that times are tracked with.
    pub(crate) image: Vec<u8>,
    /// 13 fields behind the stamp.
    update: Vec<u8>,
    stamp_at: usize,
}

impl Messages {
    /// From the folder of LSEG's tools; of the same lengths and types of our own without one.
    pub(crate) fn read(folder: Option<&Path>) -> anyhow::Result<Self> {
        let file = folder.map(|folder| folder.join("MsgData.xml")).filter(|file| file.is_file());
        let text = match file {
            Some(file) => std::fs::read_to_string(&file).with_context(|| file.display().to_string())?,
            None => made_up(),
        };
        // The first of its kind.
        let of = |kind: &str| {
            let (_, behind) = text.split_once(&format!("<{kind}>"))?;
            Some(behind.split_once(&format!("</{kind}>"))?.0)
        };
        let refresh = of("refreshMsg").context("MsgData.xml has no refreshMsg")?;
        let changes = of("updateMsg").context("MsgData.xml has no updateMsg")?;
        let mut header = RefreshHeader::new(Domain::MARKET_PRICE, 0, State::OPEN_OK, DataType::FIELD_LIST);
        header.flags = flags::refresh::REFRESH_COMPLETE | flags::refresh::CLEAR_CACHE;
        let mut image = vec![0; 4_096];
        let len = header.encode_with(&mut image, |room| {
            let mut list = FieldListEncoder::new(room)?;
            fields(refresh, &mut list)?;
            for number in 0..3 {
                list.raw(Fid(STAMP.0 + number), &[0; 8])?;
            }
            Ok(list.finish())
        })?;
        image.truncate(len);
        let mut update = vec![0; 1_024];
        let start =
            update_header(&mut update, Domain::MARKET_PRICE, 0, UpdateType::QUOTE, DataType::FIELD_LIST)?;
        let mut list = FieldListEncoder::new(&mut update[start..])?;
        list.raw(STAMP, &[0; 8])?;
        fields(changes, &mut list)?;
        let len = start + list.finish();
        update.truncate(len);
        let stamp = FieldList::parse(&update[start..])?.find(STAMP)?.context("the update has its stamp")?;
        let stamp_at = stamp.data.as_ptr().addr() - update.as_ptr().addr();
        Ok(Self { image, update, stamp_at })
    }

    /// An update that was due then, into `out`: its length.
    pub(crate) fn update(&self, due_ns: u64, out: &mut [u8]) -> usize {
        let out = &mut out[..self.update.len()];
        out.copy_from_slice(&self.update);
        out[self.stamp_at..self.stamp_at + 8].copy_from_slice(&due_ns.to_be_bytes());
        out.len()
    }
}

/// When an update's payload says that it was due: its first field.
#[inline]
pub(crate) fn due_ns(payload: &[u8]) -> Option<u64> {
    // The list's flags and the count; then id, length and value.
    let [_, _, _, a, b, 8, value @ ..] = payload else { return None };
    if i16::from_be_bytes([*a, *b]) != STAMP.0 {
        return None;
    }
    value.first_chunk().map(|value| u64::from_be_bytes(*value))
}

/// Fields of the tools' file, by what each entry says of itself.
fn fields(message: &str, list: &mut FieldListEncoder<'_>) -> Result<(), Refused> {
    for entry in message.split("<fieldEntry ").skip(1) {
        let of =
            |name: &str| entry.split_once(name).and_then(|(_, rest)| rest.split('"').nth(1)).unwrap_or("");
        let (fid, data) = (Fid(of("fieldId").parse().unwrap_or(0)), of("data=").trim());
        let numbers: Vec<u16> = data.split(['/', ':']).filter_map(|part| part.parse().ok()).collect();
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0);
        match of("dataType") {
            _ if data.is_empty() => list.blank(fid),
            "RSSL_DT_UINT" => list.uint(fid, data.parse().unwrap_or(0)),
            "RSSL_DT_ENUM" => list.enumeration(fid, data.parse().unwrap_or(0)),
            "RSSL_DT_REAL" => {
                let places = data.split_once('.').map_or(0, |(_, behind)| behind.len());
                list.real(fid, Real::decimal(data.replace('.', "").parse().unwrap_or(0), places as u8))
            }
            "RSSL_DT_DATE" => {
                list.date(fid, Date { year: number(2), month: number(0) as u8, day: number(1) as u8 })
            }
            "RSSL_DT_TIME" => {
                let second = (u64::from(number(0)) * 60 + u64::from(number(1))) * 60 + u64::from(number(2));
                list.time(fid, Time::from_ns_of_day(second * 1_000_000_000))
            }
            _ => list.rmtes(fid, data.as_bytes()),
        }?;
    }
    Ok(())
}

/// Prices, sizes, times and texts in about the proportions of the tools' file.
fn made_up() -> String {
    let field = |place: usize| {
        let (data_type, data) = match place % 13 {
            0 => ("TIME", "11:29:21:000"),
            1 | 5 => ("UINT", "4711"),
            2 | 10 | 12 => ("ENUM", "43"),
            3 => ("RMTES_STRING", "NAS"),
            11 => ("DATE", "10/26/2025"),
            _ => ("REAL", "123.45"),
        };
        format!(
            "<fieldEntry fieldId=\"{}\" dataType=\"RSSL_DT_{data_type}\" data=\"{data}\"/>",
            1 + place * 3
        )
    };
    let fields = |count| (0..count).map(field).collect::<String>();
    format!("<refreshMsg>{}</refreshMsg><updateMsg>{}</updateMsg>", fields(70), fields(13))
}

//! The fields of a broken trade, and of the state of an auction.

use tapeline_omm::rwf::{NamedValue, Value};
use tapeline_omm::{Real, fid};

use crate::message::{ns_of_day, real};

/// The side that initiated a trade, by the values of AGGRS_SID1.
pub const AGGRESSORS: [&str; 3] = ["", "buy", "sell"];
/// The side with the imbalance, by the values of IMB_SIDE.
pub const IMBALANCES: [&str; 5] = ["", "none", "buy", "sell", "insufficient"];
/// Distance of the near price from the current reference price, by the values of IMB_VA_IND: the letters of ITCH.
pub const VARIATIONS: [&str; 14] = ["", "1", "2", "3", "4", "5", "6", "7", "8", "9", "L", "A", "B", "C"];

/// Returns the word for a number of an enumeration: `Some(None)` for a blank or an empty word; `None` for a number
/// without a word, or a value that is not an enumeration.
pub(crate) fn word(words: &'static [&'static str], value: &Value<'_>) -> Option<Option<&'static str>> {
    match value {
        Value::Blank => Some(None),
        Value::Enum(number) => {
            words.get(usize::from(*number)).map(|word| Some(*word).filter(|word| !word.is_empty()))
        }
        _ => None,
    }
}

/// Returns a value as text; `None` if it is blank.
pub(crate) fn shown(field: &NamedValue<'_, '_>) -> Option<String> {
    (field.value != Value::Blank).then(|| field.to_string())
}

/// Stores a value, if it is valid. Returns `true` if it is.
pub(crate) fn put<T>(place: &mut Option<T>, value: Option<Option<T>>) -> bool {
    let Some(value) = value else { return false };
    *place = value;
    true
}

/// A trade that was broken.
#[derive(Default)]
pub(crate) struct Broken {
    pub(crate) id: Option<String>,
    pub(crate) price: Option<Real>,
    pub(crate) size: Option<Real>,
    /// The day's volume, without the broken trade.
    pub(crate) volume: Option<Real>,
    pub(crate) trades: Option<Real>,
    pub(crate) time_ns: Option<i64>,
}

impl Broken {
    /// Stores a field, if it belongs to a broken trade.
    pub(crate) fn take(&mut self, field: &NamedValue<'_, '_>) -> bool {
        match field.fid {
            fid::CAN_TRD_ID => put(&mut self.id, Some(shown(field))),
            fid::CAN_PRC => put(&mut self.price, real(&field.value)),
            fid::CAN_VOL => put(&mut self.size, real(&field.value)),
            fid::ACVOL_1 => put(&mut self.volume, real(&field.value)),
            fid::NUM_MOVES => put(&mut self.trades, real(&field.value)),
            fid::CAN_TIM_NS => put(&mut self.time_ns, ns_of_day(&field.value)),
            _ => false,
        }
    }
}

/// The state of an auction before it takes place.
#[derive(Default)]
pub(crate) struct Auction {
    pub(crate) kind: Option<String>,
    pub(crate) side: Option<&'static str>,
    pub(crate) paired: Option<Real>,
    pub(crate) imbalance: Option<Real>,
    pub(crate) reference: Option<Real>,
    pub(crate) near: Option<Real>,
    pub(crate) far: Option<Real>,
    pub(crate) variation: Option<&'static str>,
    pub(crate) due_ns: Option<i64>,
    pub(crate) extensions: Option<Real>,
    pub(crate) time_ns: Option<i64>,
}

impl Auction {
    /// Stores a field, if it belongs to an auction.
    pub(crate) fn take(&mut self, field: &NamedValue<'_, '_>) -> bool {
        let value = &field.value;
        match field.fid {
            fid::INDAUCTYPE => put(&mut self.kind, Some(shown(field))),
            fid::IMB_SIDE => put(&mut self.side, word(&IMBALANCES, value)),
            fid::IMB_PR_SH => put(&mut self.paired, real(value)),
            fid::IMB_SH => put(&mut self.imbalance, real(value)),
            fid::IMB_PR_REF => put(&mut self.reference, real(value)),
            fid::IMB_PR_NR => put(&mut self.near, real(value)),
            fid::IMB_PR_FR => put(&mut self.far, real(value)),
            fid::IMB_VA_IND => put(&mut self.variation, word(&VARIATIONS, value)),
            fid::AUC_TIME => put(&mut self.due_ns, ns_of_day(value)),
            fid::AUC_EX_NO => put(&mut self.extensions, real(value)),
            fid::IMB_TIM_NS => put(&mut self.time_ns, ns_of_day(value)),
            _ => false,
        }
    }
}

//! When two JSON values are the same.

use serde_json::Value as Json;

/// Where two values differ; `None` if they do not. Numbers are the same by value: `40.00` is 40.
pub(crate) fn difference(ours: &Json, theirs: &Json) -> Option<String> {
    match (ours, theirs) {
        (Json::Number(a), Json::Number(b)) if a != b && a.as_f64() == b.as_f64() => None,
        (Json::Object(a), Json::Object(b)) => {
            let missing = b.iter().find(|(key, _)| !a.contains_key(*key));
            if let Some((key, value)) = missing {
                return Some(format!("{key}: missing, should be {value}"));
            }
            a.iter().find_map(|(key, value)| match b.get(key) {
                Some(other) => difference(value, other).map(|where_| format!("{key}.{where_}")),
                None => Some(format!("{key}: {value} should not be there")),
            })
        }
        (Json::Array(a), Json::Array(b)) if a.len() == b.len() => a
            .iter()
            .zip(b)
            .enumerate()
            .find_map(|(n, (a, b))| difference(a, b).map(|where_| format!("{n}.{where_}"))),
        (a, b) if a == b => None,
        (a, b) => Some(format!(" {a} should be {b}")),
    }
}

/// A text that LSEG's converter wrote, with what is no JSON made so.
pub(crate) fn repaired(text: &str) -> Json {
    let mut text = text.replace("\"Data\":}", "\"Data\":null}");
    for word in ["Inf", "-Inf", "NaN"] {
        for before in [":", ","] {
            for behind in ["}", "]", ","] {
                text =
                    text.replace(&format!("{before}{word}{behind}"), &format!("{before}\"{word}\"{behind}"));
            }
        }
    }
    serde_json::from_str(&text).unwrap()
}

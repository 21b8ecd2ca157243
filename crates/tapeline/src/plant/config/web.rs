//! `[hub.web]`: metrics, health and the live page, over HTTP.

use serde::Deserialize;
use tapeline_node::web::WebConfig;
use toml::Spanned;

use super::Source;

/// In the same range as the hub's port.
const USUAL_PORT: u16 = 14_080;
/// Maximum number of items on a page; the page's own limit.
const MOST_ITEMS: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWeb {
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    #[serde(default)]
    names: Vec<Spanned<String>>,
    items: Option<Spanned<Vec<String>>>,
}

impl Source<'_> {
    pub(super) fn web(&self, raw: RawWeb) -> anyhow::Result<WebConfig> {
        let address = self.listens(&raw.bind, raw.port, USUAL_PORT);
        let names = raw.names.iter().map(|name| {
            let text = name.get_ref();
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
            if text.is_empty() || !text.bytes().all(is_name) {
                let what = format!("names contains \"{text}\"; a host name is expected");
                let hint = "names = [\"plant1.example.com\"], without a port";
                return Err(self.wrong(name.span(), what, hint));
            }
            Ok(text.clone())
        });
        if let Some(items) = &raw.items
            && items.get_ref().len() > MOST_ITEMS
        {
            let what = format!("items has {} names; {MOST_ITEMS} at most are shown", items.get_ref().len());
            self.fault(items.span(), what, "more can be added on the page");
        }
        Ok(WebConfig {
            address,
            names: names.filter_map(|name| self.sound(name)).collect(),
            items: raw.items.map(Spanned::into_inner).unwrap_or_default(),
        })
    }

    /// Checks the origins of other pages that may connect to the hub.
    pub(super) fn origins(&self, raw: Vec<Spanned<String>>) -> anyhow::Result<Vec<String>> {
        let check = |origin: Spanned<String>| {
            let text = origin.get_ref();
            let scheme = text.strip_prefix("http://").or(text.strip_prefix("https://"));
            let is_origin = scheme.is_some_and(|host| !host.is_empty() && !host.contains('/'));
            if is_origin || matches!(text.as_str(), "*" | "null") {
                return Ok(text.clone());
            }
            let what = format!("origins contains \"{text}\"; the origin of a page is expected");
            let hint = "origins = [\"https://desk.example.com:8443\"]: scheme, host and port, without a path";
            Err(self.wrong(origin.span(), what, hint))
        };
        raw.into_iter().map(check).collect()
    }
}

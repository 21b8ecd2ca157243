//! `[hub.zeromq]`: the data for ZeroMQ subscribers, and its port.

use std::time::Duration;

use serde::Deserialize;
use tapeline_console::arguments;
use tapeline_node::zeromq::ZeromqConfig;
use tapeline_node::zeromq::header::Body;
use tapeline_wire::zmtp;
use toml::Spanned;

use super::Source;

/// In the same range as the hub's port; ZeroMQ has no default port.
const USUAL_PORT: u16 = 14_020;
/// The default interval at which each item's image is published again.
const IMAGES_EVERY: Duration = Duration::from_secs(10);
/// The minimum high-water mark: the longest update fits in it.
const LEAST_QUEUE: usize = 128 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawZeromq {
    bind: Option<Spanned<String>>,
    port: Option<u16>,
    body: Option<Spanned<String>>,
    images_every: Option<Spanned<String>>,
    queue: Option<Spanned<String>>,
    max_subscribers: Option<usize>,
    /// Whether data that access rules restrict may go to everybody here.
    everybody: Option<bool>,
}

impl Source<'_> {
    /// Checks what a hub with these settings publishes with ZeroMQ; `is_guarded` if access is restricted. ZeroMQ
    /// has no users, so publishing restricted data must be allowed explicitly.
    pub(super) fn zeromq(
        &self,
        raw: &Spanned<RawZeromq>,
        hub: &tapeline_hub::Settings,
        is_guarded: bool,
    ) -> anyhow::Result<ZeromqConfig> {
        if is_guarded && raw.get_ref().everybody != Some(true) {
            let what = "ZeroMQ would publish to everybody what [hub.access] denies";
            let hint = "everybody = true in [hub.zeromq] permits that: let only users who may see everything reach the port";
            return Err(self.wrong(raw.span(), what, hint));
        }
        let raw = raw.get_ref();
        let usual = zmtp::PublisherSettings::default();
        let queue_bytes = self.size_or(&raw.queue, usual.queue_bytes);
        if let Some(queue) = &raw.queue
            && queue_bytes < LEAST_QUEUE
        {
            let what = format!("queue is {queue_bytes} bytes; at least {LEAST_QUEUE} are expected");
            let hint = "the most that is queued for one subscriber: \"8MiB\" is the default";
            self.fault(queue.span(), what, hint);
        }
        let hint = "\"10s\" is the default; \"0s\" sends no images but the plant's own refreshes";
        let images_every = self.time(&raw.images_every, arguments::duration, hint).unwrap_or(IMAGES_EVERY);
        let hint = "\"rwf\" is the message as the plant has it";
        let body = self.word("body", &raw.body, [("rwf", Body::Rwf), ("json", Body::Json)], hint);
        Ok(ZeromqConfig {
            address: self.listens(&raw.bind, raw.port, USUAL_PORT),
            body,
            images_every: (!images_every.is_zero()).then_some(images_every),
            settings: zmtp::PublisherSettings {
                queue_bytes,
                max_subscribers: raw.max_subscribers.unwrap_or(usual.max_subscribers),
                ..usual
            },
            services: vec![(hub.service_id, hub.service.clone())],
            dictionary: hub.dictionary.clone(),
            max_items: hub.max_items,
            cache_bytes: hub.cache_bytes,
        })
    }
}

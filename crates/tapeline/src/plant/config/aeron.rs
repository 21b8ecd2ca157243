//! `[aeron]`: the media driver, and lines of the bridge that it carries.

use std::path::PathBuf;

use serde::Deserialize;
use tapeline_node::bridge::BridgeConfig;
use tapeline_node::config::AeronDriverConfig;
use tapeline_node::upstream::UpstreamConfig;
use toml::Spanned;

use super::Source;

/// The stream of a line without `stream`: the bridge's number.
#[cfg(feature = "aeron")]
const USUAL_STREAM: i32 = 14_040;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(not(feature = "aeron"), expect(dead_code, reason = "refused, whatever they say"))]
pub(super) struct RawAeron {
    folder: Option<Spanned<PathBuf>>,
    #[serde(default)]
    embedded: bool,
}

/// A line of a bridge over Aeron.
#[cfg_attr(not(feature = "aeron"), expect(dead_code, reason = "refused, whatever they say"))]
pub(super) struct RawChannel<'a> {
    pub(super) channel: &'a Spanned<String>,
    pub(super) stream: Option<i32>,
    /// A key of lines over UDP that stands beside it.
    pub(super) other: Option<(&'static str, super::source::Span)>,
}

/// The program was built without Aeron.
#[cfg(not(feature = "aeron"))]
const MISSING: (&str, &str) = (
    "this build has no Aeron",
    "`make bridge-aeron` builds a program with it: docs/bridge.md has what that needs",
);

#[cfg(not(feature = "aeron"))]
impl Source<'_> {
    /// Refuses a driver.
    pub(super) fn aeron(
        &self,
        raw: Option<&Spanned<RawAeron>>,
        _: Option<&mut BridgeConfig>,
        _: Option<&mut UpstreamConfig>,
    ) -> Option<AeronDriverConfig> {
        if let Some(raw) = raw {
            self.fault(raw.span(), MISSING.0, MISSING.1);
        }
        None
    }

    /// Refuses a line over Aeron.
    pub(super) fn channel<T>(&self, raw: &RawChannel<'_>) -> Option<T> {
        self.fault(raw.channel.span(), MISSING.0, MISSING.1);
        None
    }
}

#[cfg(feature = "aeron")]
mod present {
    use tapeline_node::bridge::BridgeLine;
    use tapeline_node::upstream::UpstreamLine;
    use tapeline_wire::aeron::{AeronOptions, check_channel};

    use super::{
        AeronDriverConfig, BridgeConfig, RawAeron, RawChannel, Source, Spanned, USUAL_STREAM, UpstreamConfig,
    };

    impl Source<'_> {
        /// The driver if it is to run in the plant. The lines get the folder of its files.
        pub(in super::super) fn aeron(
            &self,
            raw: Option<&Spanned<RawAeron>>,
            bridge: Option<&mut BridgeConfig>,
            upstream: Option<&mut UpstreamConfig>,
        ) -> Option<AeronDriverConfig> {
            let raw = raw?.get_ref();
            let folder = raw.folder.as_ref().map(|folder| self.beside(folder.get_ref()));
            let above = bridge.into_iter().flat_map(|bridge| &mut bridge.lines);
            let above = above
                .filter_map(|line| if let BridgeLine::Aeron(options) = line { Some(options) } else { None });
            let below = upstream.into_iter().flat_map(|upstream| &mut upstream.lines);
            let below =
                below.filter_map(
                    |line| if let UpstreamLine::Aeron(options) = line { Some(options) } else { None },
                );
            above.chain(below).for_each(|options| options.folder.clone_from(&folder));
            raw.embedded.then_some(AeronDriverConfig { folder })
        }

        /// Checks a line over Aeron.
        pub(in super::super) fn channel<T: From<AeronOptions>>(&self, raw: &RawChannel<'_>) -> Option<T> {
            let RawChannel { channel, stream, other } = raw;
            if let Some((key, span)) = other {
                let hint = "the channel has its own: such as aeron:udp?endpoint=239.255.14.1:14041|interface=10.0.0.5|ttl=1";
                self.fault(
                    span.clone(),
                    format!("{key} is a key of lines over UDP, and this line has a channel"),
                    hint,
                );
            }
            let checked = check_channel(channel.get_ref()).map_err(|reason| {
                let what = format!("aeron is \"{}\": {reason}", channel.get_ref());
                self.wrong(
                    channel.span(),
                    what,
                    "such as aeron = \"aeron:udp?endpoint=239.255.14.1:14041|interface=10.0.0.5\"",
                )
            });
            self.sound(checked)?;
            let (channel, stream) = (channel.get_ref().clone(), stream.unwrap_or(USUAL_STREAM));
            Some(AeronOptions { channel, stream, folder: None }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::plant::config::testing::{PLANT, checked};

    const BRIDGE: &str =
        "[bridge]\nplant = \"NY1\"\n[[bridge.line]]\naeron = \"aeron:udp?endpoint=127.0.0.1:5\"\n";
    const UPSTREAM: &str = "[plant]\nring = \"r\"\n[[upstream]]\nplant = \"NY1\"\nserver = \"127.0.0.1:14040\"\n\
                            [[upstream.line]]\naeron = \"aeron:udp?endpoint=127.0.0.1:5\"\n";

    #[cfg(not(feature = "aeron"))]
    #[test]
    fn a_build_without_aeron_says_how_to_get_it() {
        for (text, place) in [
            (format!("{PLANT}{BRIDGE}"), "plant.toml:12:9: this build has no Aeron"),
            (UPSTREAM.to_owned(), "plant.toml:7:9: this build has no Aeron"),
            (format!("{PLANT}[aeron]\nembedded = true\n"), "plant.toml:9:1: this build has no Aeron"),
        ] {
            let said = checked(&text).err().unwrap();
            assert!(said.contains(place) && said.contains("make bridge-aeron"), "{text}\n{said}");
        }
    }

    #[cfg(feature = "aeron")]
    #[test]
    fn lines_over_aeron_have_the_folder_of_the_driver() {
        use tapeline_node::bridge::BridgeLine;

        let text = format!("{PLANT}[aeron]\nfolder = \"/dev/shm/a\"\nembedded = true\n{BRIDGE}stream = 7\n");
        let config = checked(&text).unwrap();
        let bridge = config.bridge.unwrap();
        let [BridgeLine::Aeron(options)] = &bridge.lines[..] else { panic!("{:?}", bridge.lines) };
        assert_eq!((options.stream, options.folder.as_deref()), (7, Some("/dev/shm/a".as_ref())));
        assert_eq!(config.aeron_driver.unwrap().folder, options.folder);
        // A message of the usual size is not split.
        assert_eq!(bridge.packer.packet_bytes, 1_376);
        let upstream = checked(UPSTREAM).unwrap().upstream.unwrap();
        assert_eq!(upstream.lines[0].to_string(), "aeron:udp?endpoint=127.0.0.1:5, stream 14040");
    }

    #[cfg(feature = "aeron")]
    #[test]
    fn a_channel_that_no_driver_would_take_is_told_with_its_place() {
        for (text, says) in [
            (BRIDGE.replace("aeron:udp", "udp"), "plant.toml:12:9: aeron is \"udp?endpoint"),
            (format!("{BRIDGE}ttl = 1\n"), "ttl is a key of lines over UDP"),
            (format!("{BRIDGE}address = \"239.1.1.1:1\"\n"), "address is a key of lines over UDP"),
            (
                format!("{BRIDGE}[[bridge.line]]\nttl = 1\n"),
                "plant.toml:13:1: a line has neither address, tcp nor aeron",
            ),
        ] {
            let said = checked(&format!("{PLANT}{text}")).err().unwrap();
            assert!(said.contains(says), "{text}\n{said}");
        }
    }
}

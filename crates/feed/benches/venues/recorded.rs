//! Recorded streams, where they are.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use tapeline_feed::venues::{CryptoVenue, snapshot_message};

use super::Stream;

fn unpacked(file: &str) -> Option<String> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("TAPELINE_SHARED").map_or_else(beside, PathBuf::from);
    let file = std::fs::File::open(root.join("data").join(file)).ok()?;
    let mut all = String::new();
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut all).unwrap();
    Some(all)
}

pub(crate) fn futures() -> Option<Stream> {
    binance("crypto-binance-20240808/usdm_btcusdt_20240808.gz")
}

pub(crate) fn spot() -> Option<Stream> {
    binance("crypto-binance-20240808/spot_btcusdt_20240808.gz")
}

/// Lines of a time and a message.
fn binance(file: &str) -> Option<Stream> {
    let symbol = "BTCUSDT";
    let message = |line: &str| {
        let (_, json) = line.split_once(' ').unwrap();
        if json.starts_with("{\"lastUpdateId\"") {
            snapshot_message(symbol, json.as_bytes())
        } else {
            json.as_bytes().to_vec()
        }
    };
    let messages = unpacked(file)?.lines().map(message).collect();
    Some(Stream { venue: CryptoVenue::Binance, symbols: vec![symbol.to_owned()], messages })
}

pub(crate) fn coinbase() -> Option<Stream> {
    session(CryptoVenue::Coinbase, "crypto-ws-captures-2021/COINBASE.ws.28.0.txt.gz", "product_ids")
}

pub(crate) fn kraken() -> Option<Stream> {
    session(CryptoVenue::Kraken, "crypto-ws-captures-2021/KRAKEN.ws.50.0.txt.gz", "pair")
}

/// Lines of cryptofeed: what was sent, which names the symbols, and what was received.
fn session(venue: CryptoVenue, file: &str, member: &str) -> Option<Stream> {
    let all = unpacked(file)?;
    let is_sent = |line: &&str| line.starts_with("wss:");
    let mut sent = all.lines().filter(is_sent);
    let (_, subscription) =
        sent.find_map(|line| line.split_once(": {").filter(|(url, _)| url.contains("<-"))).unwrap();
    let subscription: serde_json::Value = serde_json::from_str(&format!("{{{subscription}")).unwrap();
    let symbols = subscription[member].as_array().unwrap().iter();
    let symbols = symbols.map(|symbol| symbol.as_str().unwrap().to_owned()).collect();
    let received = all.lines().filter(|line| !is_sent(line)).filter_map(|line| line.split_once(": "));
    let messages = received.map(|(_, json)| json.as_bytes().to_vec()).collect();
    Some(Stream { venue, symbols, messages })
}

//! Compression of payloads: zlib as one stream for each direction, LZ4 block by block.

use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};

use super::fault::Fault;
use super::settings::Compression;

/// Maximum length of an inflated payload: no payload is longer than an uncompressed frame can carry.
const LARGEST_PAYLOAD: usize = 65_535;

/// Returns the maximum length of a compressed payload, which can be longer than the payload itself.
pub(super) fn most(payload: usize) -> usize {
    // Deflate's fixed codes take 9 bits for some bytes; stored blocks, headers and the sync flush are a few bytes more.
    (payload + payload / 8 + 64).max(get_maximum_output_size(payload))
}

/// The receiving direction.
pub(super) struct Inflater {
    method: Inflate,
    /// The last inflated payload, at the front.
    pub(super) payload: Box<[u8]>,
    /// Bytes inflated so far.
    pub(super) inflated: u64,
}

enum Inflate {
    Zlib(Decompress),
    Lz4,
}

impl Inflater {
    pub(super) fn new(compression: Compression) -> Option<Self> {
        let method = match compression {
            Compression::None => return None,
            Compression::Zlib => Inflate::Zlib(Decompress::new(true)),
            Compression::Lz4 => Inflate::Lz4,
        };
        // One byte more than the maximum, to detect payloads that are too long.
        Some(Self { method, payload: vec![0; LARGEST_PAYLOAD + 1].into(), inflated: 0 })
    }

    /// Inflates one payload to the front of [`payload`](Self::payload) and returns its length.
    pub(super) fn inflate(&mut self, compressed: &[u8]) -> Result<usize, Fault> {
        let length = match &mut self.method {
            Inflate::Zlib(stream) => zlib(stream, compressed, &mut self.payload)?,
            Inflate::Lz4 => decompress_into(compressed, &mut self.payload).map_err(|cause| {
                Fault::new(
                    format!("LZ4 payload of {} bytes: {cause}", compressed.len()),
                    format!("a block of at most {LARGEST_PAYLOAD} bytes"),
                )
            })?,
        };
        self.inflated += length as u64;
        if length > LARGEST_PAYLOAD {
            return Err(Fault::new(
                format!("payload of {} bytes that inflates to more than {LARGEST_PAYLOAD}", compressed.len()),
                "what would fit into a frame",
            ));
        }
        Ok(length)
    }
}

fn zlib(stream: &mut Decompress, compressed: &[u8], payload: &mut [u8]) -> Result<usize, Fault> {
    let (read, written) = (stream.total_in(), stream.total_out());
    let expected = "deflated bytes up to a sync flush";
    let status = stream.decompress(compressed, payload, FlushDecompress::Sync).map_err(|cause| {
        Fault::new(format!("zlib payload of {} bytes: {cause}", compressed.len()), expected)
    })?;
    let (read, written) = ((stream.total_in() - read) as usize, (stream.total_out() - written) as usize);
    if status == Status::StreamEnd {
        return Err(Fault::new("zlib stream that ends", "one stream for the whole connection"));
    }
    // While space is left, all readable input was read.
    if read < compressed.len() && written < payload.len() {
        return Err(Fault::new(
            format!("{} bytes of a zlib payload left over", compressed.len() - read),
            expected,
        ));
    }
    Ok(written)
}

/// The sending direction.
pub(super) struct Deflater {
    method: Deflate,
    compressed: Box<[u8]>,
}

enum Deflate {
    Zlib(Box<Compress>),
    Lz4(Box<CompressTable>),
}

impl Deflater {
    /// For payloads of at most `payload` bytes.
    pub(super) fn new(compression: Compression, level: u8, payload: usize) -> Option<Self> {
        let method = match compression {
            Compression::None => return None,
            Compression::Zlib => {
                let level = flate2::Compression::new(u32::from(level.min(9)));
                Deflate::Zlib(Box::new(Compress::new(level, true)))
            }
            Compression::Lz4 => Deflate::Lz4(Box::new(CompressTable::small())),
        };
        Some(Self { method, compressed: vec![0; most(payload)].into() })
    }

    /// Compresses the payload; the result can be longer. `None`: send the payload uncompressed. A zlib result
    /// must be sent: the peer's stream continues from there.
    pub(super) fn deflate(&mut self, payload: &[u8]) -> Option<&[u8]> {
        let length = match &mut self.method {
            Deflate::Zlib(stream) => {
                let written = stream.total_out();
                stream.compress(payload, &mut self.compressed, FlushCompress::Sync).ok()?;
                (stream.total_out() - written) as usize
            }
            Deflate::Lz4(table) => {
                let length = compress_into_with_table(payload, &mut self.compressed, table).ok()?;
                if length >= payload.len() {
                    return None;
                }
                length
            }
        };
        self.compressed.get(..length)
    }
}

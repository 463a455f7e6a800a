//! Readers of traces, as little as tests need.

mod pcapng;
mod perfetto;

pub(crate) use pcapng::packets;
pub(crate) use perfetto::Timeline;

//! Readers of traces, with the functions that tests need.

mod pcapng;
mod perfetto;

pub(crate) use pcapng::packets;
pub(crate) use perfetto::Timeline;

//! What the fuzz targets call, so that `cargo test` can replay their corpora.

use selvedge_wire::{Aeth, Bth, Datagram, Extension, tcp};

/// Parses `bytes` as every header. What parses must survive a round trip.
pub(crate) fn check_headers(bytes: &[u8]) {
    if let Ok((header, _)) = Bth::parse(bytes) {
        assert_eq!(Bth::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Aeth::parse(bytes) {
        assert_eq!(Aeth::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((header, _)) = Extension::parse(bytes) {
        assert_eq!(Extension::parse(&header.emit()), Ok((header, &[][..])));
    }
    if let Ok((datagram, payload)) = Datagram::parse(bytes) {
        let mut buffer = [0; Datagram::LONGEST_HEADERS];
        let again = [datagram.emit(&mut buffer), payload].concat();
        assert_eq!(Datagram::parse(&again), Ok((datagram, payload)));
    }
    if let Ok((header, payload)) = tcp::Header::parse(bytes) {
        let mut buffer = [0; tcp::Header::LONGEST];
        let again = [header.emit(&mut buffer), payload].concat();
        assert_eq!(tcp::Header::parse(&again), Ok((header, payload)));
    }
}

//! The reader of completion times: no panics, and what was read is written the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::fct::{Records, Style, write};

fuzz_target!(|bytes: &[u8]| {
    for style in [Style::Hpcc, Style::ConWeave] {
        for record in Records::new(bytes, "fuzz", style).map_while(Result::ok) {
            let mut line = Vec::new();
            write(&mut line, style, &record).expect("what was read can be written");
            assert_eq!(Records::new(&*line, "fuzz", style).next(), Some(Ok(record)));
        }
    }
});

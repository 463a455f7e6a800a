//! Emits a RoCEv2 Write with its payload and ICRC, prints the bytes, parses them, and shows that a damaged packet is
//! refused.
//!
//! ```text
//! cargo run -p selvedge-wire --example roce_packet
//! ```

use std::error::Error;
use std::net::Ipv4Addr;

use selvedge_units::{Psn, QpNumber};
use selvedge_wire::{Bth, Ecn, Envelope, Extended, Opcode, Reth, Roce};

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let payload = b"hello, remote memory";
    let packet = Roce {
        envelope: Envelope {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            dscp: 26,
            ecn: Ecn::Capable,
            identification: 0,
            ttl: 64,
        },
        port: 0xc000,
        bth: Bth { opcode: Opcode::WRITE_ONLY, destination: QpNumber(0x11), psn: Psn::new(7), ..Bth::default() },
        extended: Extended::Reth(Reth { address: 0x7000_0000, key: 0x1234, length: payload.len() as u32 }),
    };
    let mut buffer = vec![0; packet.length(payload.len())];
    let bytes = packet.emit(payload, &mut buffer);
    for line in bytes.chunks(16) {
        println!("{}", line.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "));
    }

    let (parsed, carried) = Roce::parse(bytes)?;
    println!("{parsed:#?}");
    println!("payload: {}", String::from_utf8_lossy(carried));

    let mut damaged = bytes.to_vec();
    damaged[60] ^= 1;
    let refused = Roce::parse(&damaged).err().ok_or("the ICRC covers every byte")?;
    println!("with one bit changed: {refused}");
    if carried == payload { Ok(()) } else { Err("the payload changed".into()) }
}

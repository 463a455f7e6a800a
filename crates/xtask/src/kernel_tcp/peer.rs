//! End of a transfer of the kernel, as a process in its namespace.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;

/// End of a transfer.
#[derive(Args)]
pub(crate) struct Peer {
    /// Address at which the receiver listens
    address: SocketAddr,
    /// Bytes to transfer
    bytes: u64,
    /// Send the bytes, with this congestion control; else receive them
    #[arg(long, value_name = "CONTROL")]
    send: Option<String>,
}

/// Sends and prints the time of the begin, or listens and prints the time of the last byte, in nanoseconds since 1970.
pub(crate) fn peer(options: &Peer) -> Result<()> {
    match &options.send {
        Some(control) => send(options, control),
        None => receive(options),
    }
}

fn send(options: &Peer, control: &str) -> Result<()> {
    let block = vec![0; 1 << 16];
    let start = clock()?;
    let mut stream = TcpStream::connect(options.address).context("cannot connect")?;
    choose(&stream, control).with_context(|| format!("this kernel has no {control}, or not for us"))?;
    let mut left = options.bytes;
    while left > 0 {
        let now = left.min(block.len() as u64);
        stream.write_all(&block[..now as usize])?;
        left -= now;
    }
    // Until the receiver has everything and closes.
    let _ = stream.read(&mut [0]);
    println!("{start}");
    Ok(())
}

fn receive(options: &Peer) -> Result<()> {
    let listener = TcpListener::bind(options.address).context("cannot listen")?;
    println!("ready");
    let (mut stream, _) = listener.accept()?;
    let mut block = vec![0; 1 << 16];
    let mut left = options.bytes;
    while left > 0 {
        let count = stream.read(&mut block)?;
        ensure!(count > 0, "the sender closed {left} bytes too early");
        left -= count as u64;
    }
    println!("{}", clock()?);
    Ok(())
}

/// Sets the congestion control of a connection: unlike for a namespace, any that the kernel has is allowed.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library knows no such option")]
fn choose(stream: &TcpStream, control: &str) -> std::io::Result<()> {
    use std::os::fd::AsRawFd;
    let (name, length) = (control.as_ptr().cast(), control.len() as libc::socklen_t);
    // SAFETY: the descriptor is open, and the name is as long as we say.
    let status = unsafe { libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name, length) };
    if status < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(not(target_os = "linux"))]
fn choose(_: &TcpStream, _: &str) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[expect(clippy::disallowed_methods, reason = "two processes compare their times")]
fn clock() -> Result<u128> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos())
}

//! Ping-pong over blocking UDP sockets: the latency that can be reached without spinning.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::link::{Link, SERVER};
use super::trial::Measured;
use crate::command::output;

/// End of a ping-pong.
#[derive(Args)]
pub(crate) struct Peer {
    /// Address of the other end
    address: SocketAddr,
    /// Answer the other end; else send requests, and print half of the median round trip in microseconds
    #[arg(long)]
    answer: bool,
}

const PORT: u16 = 18_700;
const TURNS: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) fn measure(link: &Link) -> Result<Measured> {
    let us = std::env::current_exe()?;
    let address = format!("{SERVER}:{PORT}");
    let mut answering =
        link.within(0, &us).args(["verbs-bench-peer", &address, "--answer"]).stdout(Stdio::piped()).spawn()?;
    let said = answering.stdout.take().context("a pipe")?;
    BufReader::new(said).read_line(&mut String::new())?;
    let asked = output(link.within(1, &us).args(["verbs-bench-peer", &address]));
    answering.wait()?;
    Ok(Measured { value: asked?.trim().parse().context("a number")? })
}

/// Runs `cargo xtask verbs-bench-peer`.
pub(crate) fn peer(options: &Peer) -> Result<()> {
    if options.answer { answer(options.address) } else { ask(options.address) }
}

fn answer(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    println!("ready");
    let mut buffer = [0; 64];
    // Until no more requests come.
    while let Ok((length, from)) = socket.recv_from(&mut buffer) {
        socket.send_to(&buffer[..length], from)?;
    }
    Ok(())
}

fn ask(address: SocketAddr) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 64];
    let turn = |buffer: &mut [u8]| socket.send(&[1, 2]).and_then(|_| socket.recv(buffer)).is_ok();
    let mut trips = Vec::with_capacity(TURNS);
    for _ in 0..TURNS {
        let start = clock();
        ensure!(turn(&mut buffer), "an answer was lost");
        trips.push(start.elapsed());
    }
    trips.sort_unstable();
    println!("{}", trips[TURNS / 2].as_nanos() as f64 / 2e3);
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "it measures real time")]
fn clock() -> Instant {
    Instant::now()
}

#![doc = include_str!("../README.md")]
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, reason = "programs reach what is exported by its name in C")]

mod address;
mod exports;
mod network;
mod next;
mod table;
mod transfer;
mod wait;

mod bursts;
mod failures;
mod resources;
mod stress;
mod transfers;
mod unreliable;
mod windows;
mod world;

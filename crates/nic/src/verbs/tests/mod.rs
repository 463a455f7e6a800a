mod bursts;
mod failures;
mod resources;
mod stress;
mod transfers;
mod windows;
mod world;

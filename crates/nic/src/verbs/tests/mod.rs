mod bursts;
mod failures;
mod resources;
mod transfers;
mod world;

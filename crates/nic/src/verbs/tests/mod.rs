mod transfers;
mod world;

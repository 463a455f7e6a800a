mod engine;
mod pool;
mod swapping;

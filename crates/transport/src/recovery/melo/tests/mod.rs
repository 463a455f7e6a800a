mod engine;
mod pool;

//! Tests of the crate as a library: the builder of simulations, and the examples.

mod builder;
mod examples;

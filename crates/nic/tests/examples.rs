//! Runs of the examples.

#[path = "../examples/write_in_memory.rs"]
mod write_in_memory;

#[test]
fn a_write_goes_from_one_memory_to_the_other() {
    write_in_memory::main().expect("the example runs");
}

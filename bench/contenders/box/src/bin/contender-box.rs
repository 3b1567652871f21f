//! `Box` on the system's allocator.

fn main() {
    contender_box::main("glibc malloc")
}

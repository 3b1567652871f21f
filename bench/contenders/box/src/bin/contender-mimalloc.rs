//! `Box` on mimalloc.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    contender_box::main("mimalloc, global allocator")
}

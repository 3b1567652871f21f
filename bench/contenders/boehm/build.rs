//! Links libgc; `apt-get install libgc-dev` provides it.

fn main() {
    println!("cargo:rustc-link-lib=gc");
}

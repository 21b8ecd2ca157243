//! The shared library's soname, which linked programs request at their start. Its number changes when old
//! programs no longer work with a new library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtapeline.so.0");
}

//! Compiles the C++ half of the peers that have one, and links the C libraries of others.

fn main() {
    #[cfg(feature = "boost")]
    {
        println!("cargo::rerun-if-changed=src/systems/boost.cpp");
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .opt_level(3)
            .define("NDEBUG", None)
            .file("src/systems/boost.cpp")
            .compile("peers-boost");
    }
    #[cfg(feature = "zeromq")]
    println!("cargo::rustc-link-lib=dylib=zmq");
}

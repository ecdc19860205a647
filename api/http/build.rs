//! Compresses what the build of the explorer, `web/dist`, has for browsers, so that the binary holds it as it
//! is sent.
//!
//! Why here, and not by Vite: gzip of one version of Node.js differs from that of another, and `web/dist` is
//! compared.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Where Vite writes the files whose names change with their content.
const ASSETS: &str = "web/dist/assets";

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed={ASSETS}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut files: Vec<_> =
        fs::read_dir(ASSETS)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let mut list = String::from("[\n");
    for file in files {
        println!("cargo:rerun-if-changed={}", file.display());
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name of Vite");
        let compressed = out.join(format!("{name}.gz"));
        compress(&file, &compressed)?;
        writeln!(list, "({:?}, include_bytes!({compressed:?}).as_slice()),", format!("/assets/{name}"))
            .expect("a string takes all");
    }
    fs::write(out.join("assets.in"), list + "]\n")
}

fn compress(from: &Path, to: &Path) -> io::Result<()> {
    let mut encoder = GzEncoder::new(File::create(to)?, Compression::best());
    encoder.write_all(&fs::read(from)?)?;
    encoder.finish().map(drop)
}

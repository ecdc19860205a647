//! The binary, as its users run it: flags, exit statuses, sentences, signals. Nothing of this
//! process's environment reaches it.

mod corruption;
mod embedded;
mod export;
mod flags;
mod migrate;
pub mod program;
mod retention;
mod secrets;
mod serve;
mod signals;

use libtest_mimic::Trial;

pub fn tests() -> Vec<Trial> {
    [
        flags::tests(),
        retention::tests(),
        serve::tests(),
        signals::tests(),
        secrets::tests(),
        migrate::tests(),
        corruption::tests(),
        embedded::tests(),
        export::tests(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

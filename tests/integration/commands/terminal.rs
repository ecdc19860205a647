//! What commands show on a terminal, and that they show it nowhere else.

use std::process::Stdio;

use tokio::process::Command;

use super::export::Scratch;
use super::program::{Ended, Place, run};
use crate::harness::{TRADES, fill, skip};

/// The same command on a terminal of its own, on which everything is that it writes.
pub fn on_terminal(command: &Command) -> Command {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| format!("'{}'", word.to_str().expect("text"))).collect::<Vec<_>>();
    // The tests may run where SIGHUP is ignored, as under `nohup`. The shell that `script` starts must not
    // ignore it either: it leads the session, and while it lives nothing below it is told of the end.
    let mut script = Command::new("env");
    script.args(["--default-signal=HUP", "script", "--quiet", "--return", "--command"]);
    script.args([&quoted.join(" "), "/dev/null"]);
    script.env_clear().env("TERM", "xterm").env("PATH", "/usr/bin:/bin").kill_on_drop(true);
    script.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    script
}

/// A bar with a rate and the time left.
fn has_bar(ended: &Ended, done: &str) -> bool {
    let bar = ended.out.split(['\r', '\n']).find(|line| line.contains(" % ") && line.contains(done));
    bar.is_some_and(|bar| bar.contains("/s, ") && bar.contains(" left"))
}

#[tokio::test(flavor = "multi_thread")]
async fn long_commands_have_a_bar_on_a_terminal_alone() {
    if Command::new("script").arg("--version").output().await.is_err() {
        return skip("a bar on a terminal", "there is no script");
    }
    let place = Place::new().await;
    assert_eq!(run(&mut place.pagebucket("migrate", &[])).await.status, Some(0));
    fill(&place.database().await, TRADES, 7, 4_000, 10).await;
    let (one, all) = (Scratch::new("one.csv"), Scratch::new("all.csv"));
    for (command, arguments, done) in [
        ("verify", &["--pages-per-second", "3000"][..], " pages verified"),
        ("verify", &["--customer", "7", "--pages-per-second", "6000"], " pages verified"),
        ("export", &["--customer", "7", "-o", one.path()], " exported"),
        ("export", &["-o", all.path()], " exported"),
    ] {
        let ended = run(&mut on_terminal(&place.pagebucket(command, arguments))).await;
        assert!(ended.status == Some(0) && has_bar(&ended, done), "{command} {arguments:?}: {ended:?}");
    }
    let elsewhere = run(&mut place.pagebucket("verify", &["--pages-per-second", "1000000"])).await;
    assert!(!has_bar(&elsewhere, " pages verified") && !elsewhere.err.contains('\r'), "{elsewhere:?}");
    assert_eq!((elsewhere.status, elsewhere.out.as_str()), (Some(0), ""));
}

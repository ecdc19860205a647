//! The same runs without what protects them: they must go wrong, else the others prove nothing.

use super::judge::{Finding, Kind};
use super::{killed_api, two_instances, w1};

/// How often a control that depends on chance may be tried.
const ATTEMPTS: usize = 3;

#[track_caller]
fn are_there(findings: &[Finding], kind: Kind) -> bool {
    let count = findings.iter().filter(|finding| finding.kind == kind).count();
    println!("control: {count} times {kind:?}, as it must be");
    count > 0
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_a_lost_answer_doubles() {
    let findings = killed_api::between_commit_and_answer_without_a_key().await;
    assert!(are_there(&findings, Kind::Doubled), "{findings:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_a_killed_api_doubles() {
    for _ in 0..ATTEMPTS {
        // Whether an answer is lost at the moment of a kill is chance; that none is in a whole run is rare.
        if are_there(&killed_api::without_keys().await, Kind::Doubled) {
            return;
        }
    }
    panic!("nothing is doubled without keys: these runs prove nothing of keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_repeats_double() {
    let findings = two_instances::without_keys().await;
    assert!(are_there(&findings, Kind::Doubled), "nothing is doubled without keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_w1_a_failover_loses() {
    let findings = w1::failover().await;
    assert!(are_there(&findings, Kind::Lost), "nothing is lost at w: 1");
}

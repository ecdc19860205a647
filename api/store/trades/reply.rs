//! What the answer to an ordered `update` command means: stored, refused, or unknown.

use mongodb::bson::{Bson, Document, Timestamp};

/// The server's verdict on the statements of one command, in their order.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Verdict {
    /// All are stored, durably.
    Stored,
    /// The first `stored` are stored, durably; the next is refused, for good, since a count never
    /// returns to an earlier value; those behind it did not run.
    Refused {
        stored: usize,
        /// When, in the cluster's time: a read from then on sees what refused it.
        at: Option<Timestamp>,
    },
    /// The first `stored` are stored, durably; the next is no bucket of ours, by our own mistake.
    Malformed { stored: usize, detail: String },
    /// Anything may have happened.
    Unknown(String),
}

const DUPLICATE_KEY: i32 = 11000;
const DOCUMENT_VALIDATION_FAILURE: i32 = 121;

/// Reads the answer to a command of `statements` statements.
pub(super) fn judge(reply: &Document, statements: usize) -> Verdict {
    if let Ok(error) = reply.get_document("writeConcernError") {
        return Verdict::Unknown(format!("write concern error: {error}"));
    }
    let n = number(reply.get("n"));
    let first_error =
        reply.get_array("writeErrors").ok().and_then(|errors| errors.first()).and_then(Bson::as_document);
    let Some(error) = first_error else {
        return match n {
            Some(n) if n == statements => Verdict::Stored,
            _ => Verdict::Unknown(format!("{statements} statements, but the reply counts {n:?}")),
        };
    };
    let (Some(index), Some(code)) = (number(error.get("index")), error.get("code").and_then(Bson::as_i32))
    else {
        return Verdict::Unknown(format!("a write error without an index or a code: {error}"));
    };
    // In an ordered command every statement before the failed one was applied.
    if n != Some(index) {
        return Verdict::Unknown(format!("statement {index} failed, but the reply counts {n:?}"));
    }
    match code {
        DUPLICATE_KEY => Verdict::Refused { stored: index, at: reply.get_timestamp("operationTime").ok() },
        DOCUMENT_VALIDATION_FAILURE if only_the_count_is_wrong(error) => {
            Verdict::Refused { stored: index, at: reply.get_timestamp("operationTime").ok() }
        }
        DOCUMENT_VALIDATION_FAILURE => Verdict::Malformed { stored: index, detail: error.to_string() },
        _ => Verdict::Unknown(format!("write error: {error}")),
    }
}

/// Whether the validator's `$expr` alone is not satisfied. The server explains a document that
/// failed `{$jsonSchema, $expr}` as an `$and` of the clauses that failed.
fn only_the_count_is_wrong(error: &Document) -> bool {
    let clauses = error
        .get_document("errInfo")
        .and_then(|info| info.get_document("details"))
        .and_then(|details| details.get_array("clausesNotSatisfied"));
    clauses.is_ok_and(|clauses| {
        !clauses.is_empty()
            && clauses.iter().all(|clause| {
                let details = clause.as_document().and_then(|clause| clause.get_document("details").ok());
                details.is_some_and(|details| details.get_str("operatorName").ok() == Some("$expr"))
            })
    })
}

/// A count in a reply, which servers give as int32, int64 or double.
fn number(value: Option<&Bson>) -> Option<usize> {
    let value = value?;
    let number =
        value.as_i32().map(i64::from).or(value.as_i64()).or(value.as_f64().map(|number| number as i64));
    number.and_then(|number| usize::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    fn with_error(n: i32, index: i32, code: i32, clauses: &[&str]) -> Document {
        let clauses: Vec<Bson> = clauses
            .iter()
            .map(|name| doc! { "index": 0, "details": { "operatorName": *name } }.into())
            .collect();
        let info = doc! { "details": { "operatorName": "$and", "clausesNotSatisfied": clauses } };
        doc! {
            "n": n,
            "operationTime": Timestamp { time: 5, increment: 1 },
            "writeErrors": [{ "index": index, "code": code, "errmsg": "", "errInfo": info }],
        }
    }

    #[test]
    fn an_answer_is_stored_refused_or_unknown() {
        let at = Some(Timestamp { time: 5, increment: 1 });
        assert_eq!(judge(&doc! { "n": 3, "ok": 1.0 }, 3), Verdict::Stored);
        assert_eq!(judge(&with_error(2, 2, 11000, &[]), 3), Verdict::Refused { stored: 2, at });
        assert_eq!(judge(&with_error(0, 0, 121, &["$expr"]), 3), Verdict::Refused { stored: 0, at });
        assert!(matches!(
            judge(&with_error(0, 0, 121, &["$jsonSchema", "$expr"]), 3),
            Verdict::Malformed { stored: 0, .. }
        ));
        assert!(matches!(judge(&with_error(0, 0, 121, &[]), 3), Verdict::Malformed { .. }));
    }

    #[test]
    fn whatever_is_not_understood_is_unknown() {
        for reply in [
            doc! { "n": 2 },
            doc! {},
            doc! { "n": 3, "writeConcernError": { "code": 64 } },
            with_error(2, 2, 11602, &[]),
            with_error(1, 2, 11000, &[]),
            doc! { "n": 1, "writeErrors": [{ "index": 1 }] },
        ] {
            assert!(matches!(judge(&reply, 3), Verdict::Unknown(_)), "{reply}");
        }
        let mut refused_but_not_durable = with_error(2, 2, 11000, &[]);
        refused_but_not_durable.insert("writeConcernError", doc! { "code": 91 });
        assert!(matches!(judge(&refused_but_not_durable, 3), Verdict::Unknown(_)));
    }
}

//! What the answer to an `update` command means: a verdict for each statement, or that the outcome of the
//! whole command is unknown.

use std::collections::BTreeMap;

use mongodb::bson::{Bson, Document, Timestamp};

use super::error::{Error, tells_of_full_disk};
use super::values::whole_number;

/// A final answer: the server has decided about every statement, and what is stored is stored durably.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// One verdict for each statement, in their order.
    pub verdicts: Vec<Verdict>,
    /// The indexes of the statements that inserted a document.
    pub upserted: Vec<usize>,
    /// The cluster time of the answer. A read at this time or later sees what refused a statement.
    pub at: Option<Timestamp>,
}

/// What became of one statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was applied.
    Stored,
    /// It was refused. That is final, because a count never returns to an earlier value.
    Refused,
    /// It would produce an invalid document. Either the statement is wrong or the stored document is.
    Malformed(String),
    /// An earlier statement of the same ordered command failed.
    NotRun,
}

const DUPLICATE_KEY: i32 = 11000;
const DOCUMENT_VALIDATION_FAILURE: i32 = 121;
/// BadValue, TypeMismatch, PathNotViable: fields of the stored document have unexpected types.
const WRONG_TYPES: [i32; 3] = [2, 14, 28];

/// BSONObjectTooLarge, and a document that an update makes larger than 16 MB.
pub(crate) const TOO_LARGE: [i32; 2] = [10334, 17419];

/// Why an answer does not say what is stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unjudged {
    /// What was applied may be lost.
    #[error("write concern error: {0}")]
    NotDurable(Document),
    /// The database has no room.
    #[error("{}", Error::DiskFull)]
    DiskFull,
    /// A statement failed for a reason that is not known to be final.
    #[error("write error: {0}")]
    Failed(Bson),
    /// The counts of the answer do not agree.
    #[error("{stored} of {statements} statements seem stored, but the reply counts {counted:?}")]
    Miscounted { stored: usize, statements: usize, counted: Option<usize> },
}

/// Judges the answer to a command of `statements` statements. After an error every statement may or may not
/// be stored.
pub(crate) fn judge(reply: &Document, statements: usize, ordered: bool) -> Result<Answer, Unjudged> {
    if let Ok(error) = reply.get_document("writeConcernError") {
        return Err(Unjudged::NotDurable(error.clone()));
    }
    let mut failed = BTreeMap::new();
    for error in reply.get_array("writeErrors").into_iter().flatten() {
        match judge_error(error) {
            Ok((index, verdict)) if index < statements => failed.insert(index, verdict),
            _ if tells_of_full_disk(error) => return Err(Unjudged::DiskFull),
            _ => return Err(Unjudged::Failed(error.clone())),
        };
    }
    // An ordered command ends with its first failure.
    let ran = match failed.keys().next() {
        Some(&first) if ordered => first + 1,
        _ => statements,
    };
    let verdict = |index: usize| match failed.remove(&index) {
        Some(verdict) => verdict,
        None if index < ran => Verdict::Stored,
        None => Verdict::NotRun,
    };
    let verdicts: Vec<_> = (0..statements).map(verdict).collect();
    let stored = verdicts.iter().filter(|verdict| **verdict == Verdict::Stored).count();
    // Each statement matches or inserts one bucket, or fails.
    match number(reply.get("n")) {
        Some(n) if n == stored => {
            let upserted = reply.get_array("upserted").into_iter().flatten();
            let upserted = upserted.filter_map(|item| number(item.as_document()?.get("index"))).collect();
            Ok(Answer { verdicts, upserted, at: reply.get_timestamp("operationTime").ok() })
        }
        counted => Err(Unjudged::Miscounted { stored, statements, counted }),
    }
}

fn judge_error(error: &Bson) -> Result<(usize, Verdict), ()> {
    let error = error.as_document().ok_or(())?;
    let index = number(error.get("index")).ok_or(())?;
    let malformed = || Verdict::Malformed(error.to_string());
    let verdict = match error.get_i32("code") {
        Ok(DUPLICATE_KEY) => Verdict::Refused,
        Ok(DOCUMENT_VALIDATION_FAILURE) if only_the_count_is_wrong(error) => Verdict::Refused,
        Ok(DOCUMENT_VALIDATION_FAILURE) => malformed(),
        Ok(code) if WRONG_TYPES.contains(&code) || TOO_LARGE.contains(&code) => malformed(),
        _ => return Err(()),
    };
    Ok((index, verdict))
}

/// Whether only the validator's `$expr` is not satisfied. If a document fails `{$jsonSchema, $expr}`, the
/// server reports an `$and` of the failed clauses.
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

fn number(value: Option<&Bson>) -> Option<usize> {
    value.and_then(whole_number).and_then(|number| usize::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    const AT: Option<Timestamp> = Some(Timestamp { time: 5, increment: 1 });

    fn reply(n: i32, errors: &[(i32, i32, &[&str])]) -> Document {
        let error = |(index, code, clauses): &(i32, i32, &[&str])| {
            let clause = |name: &&str| Bson::from(doc! { "index": 0, "details": { "operatorName": *name } });
            let clauses: Vec<Bson> = clauses.iter().map(clause).collect();
            let info = doc! { "details": { "operatorName": "$and", "clausesNotSatisfied": clauses } };
            Bson::from(doc! { "index": *index, "code": *code, "errmsg": "", "errInfo": info })
        };
        let errors: Vec<Bson> = errors.iter().map(error).collect();
        doc! { "n": n, "operationTime": AT.unwrap(), "writeErrors": errors }
    }

    fn verdicts(reply: &Document, statements: usize, ordered: bool) -> Vec<Verdict> {
        let answer = judge(reply, statements, ordered).unwrap();
        assert_eq!(answer.at, AT);
        answer.verdicts
    }

    #[test]
    fn an_ordered_command_ends_with_its_first_failure() {
        use Verdict::{NotRun, Refused, Stored};
        assert_eq!(verdicts(&reply(3, &[]), 3, true), [Stored, Stored, Stored]);
        assert_eq!(verdicts(&reply(1, &[(1, 11000, &[])]), 3, true), [Stored, Refused, NotRun]);
        assert_eq!(verdicts(&reply(0, &[(0, 121, &["$expr"])]), 2, true), [Refused, NotRun]);
    }

    #[test]
    fn in_an_unordered_command_each_stands_alone() {
        use Verdict::{Refused, Stored};
        let two = reply(1, &[(0, 11000, &[]), (2, 121, &["$expr"])]);
        assert_eq!(verdicts(&two, 3, false), [Refused, Stored, Refused]);
        let ours = verdicts(&reply(1, &[(0, 121, &["$jsonSchema", "$expr"])]), 2, false);
        assert!(matches!(ours[..], [Verdict::Malformed(_), Stored]));
        assert!(matches!(verdicts(&reply(0, &[(0, 121, &[])]), 1, false)[..], [Verdict::Malformed(_)]));
        let others = verdicts(&reply(1, &[(1, 14, &[])]), 2, false);
        assert!(matches!(others[..], [Stored, Verdict::Malformed(_)]), "a field of another type");
    }

    #[test]
    fn whatever_is_not_understood_is_unknown() {
        let mut refused_but_not_durable = reply(0, &[(0, 11000, &[])]);
        refused_but_not_durable.insert("writeConcernError", doc! { "code": 91 });
        for (reply, ordered) in [
            (doc! { "n": 2 }, false),
            (doc! {}, false),
            (doc! { "n": 3, "writeConcernError": { "code": 64 } }, false),
            (reply(2, &[(2, 11602, &[])]), false),
            (reply(1, &[(2, 11000, &[])]), true),
            (reply(2, &[(7, 11000, &[])]), false),
            (doc! { "n": 1, "writeErrors": [{ "index": 1 }] }, false),
            (refused_but_not_durable, false),
        ] {
            assert!(judge(&reply, 3, ordered).is_err(), "{reply}");
        }
    }
}

use mongodb::bson::{Document, doc};

use super::finding::{Finding, Mend};
use crate::store::history::engine::Engine;
use crate::store::{COMMAND, Deadline, Error};

impl Engine {
    /// Repairs one bucket: all that [`Engine::verify`] found wrong with it. Returns the fields that were set, or a sentence that says why
    /// nothing was.
    ///
    /// What readers kept stays true, so the history needs no new epoch: a bucket gets back what the append wrote. `count`, `first` and
    /// `last` follow from its items, and `page` from the pages around it. Readers are refused a bucket with a wrong `count` or `page`, and the
    /// answers that they may keep for a year do not hold `first` and `last`.
    ///
    /// # Errors
    /// The database does not answer in time.
    pub async fn mend(
        &self,
        findings: &[Finding],
        deadline: Deadline,
    ) -> Result<Result<Document, String>, Error> {
        let mut set = Document::new();
        for Finding { change, .. } in findings {
            match &change.mend {
                Mend::Set(fields) => set.extend(fields.clone()),
                Mend::No(why) => return Ok(Err((*why).to_owned())),
            }
        }
        let Some(Finding { change, .. }) = findings.first() else { return Ok(Ok(set)) };
        let update = doc! { "q": &change.filter, "u": { "$set": &set }, "hint": { "_id": 1 } };
        let command = doc! {
            "update": self.0.source.collection(),
            "updates": [update],
            "writeConcern": { "w": "majority", "j": true },
        };
        let database = self.0.source.database.clone();
        let run = async move { Ok(database.run_command(command).await?) };
        let reply = deadline.or_within(COMMAND).read(run).await?;
        let refused = reply.get_array("writeErrors").ok().and_then(|errors| errors.first());
        Ok(match (refused, reply.get_i32("n")) {
            (None, Ok(1)) => Ok(set),
            (None, _) => Err("it has changed meanwhile; run the command again".to_owned()),
            (Some(_), _) => Err(
                "the database refuses the repair: the bucket has more damages, or another one has its number"
                    .to_owned(),
            ),
        })
    }
}

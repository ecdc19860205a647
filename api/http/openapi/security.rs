//! Who may use each operation, from the table of routes.

use serde_json::{Value, json};
use utoipa::openapi::{Paths, security::SecurityRequirement};

use crate::auth::access::Access;
use crate::problem::refusals;

/// The name of the only security scheme.
const BEARER: &str = "bearer";

/// The security schemes of the document.
pub fn schemes() -> Value {
    let description = "An access token of the issuer (a JWT), or a key of the server (`pb_...`). Only a server that authenticates \
                       its clients (`--auth`) asks for it; others ignore it.";
    json!({ BEARER: { "type": "http", "scheme": "bearer", "description": description } })
}

/// Writes into the operations of a row their tag, who may use them, and what other clients are answered.
pub fn complete_row(paths: &mut Paths, tag: &str, access: Access) {
    let paths = paths.paths.values_mut();
    for operation in paths.flat_map(|path| [&mut path.get, &mut path.post, &mut path.delete]).flatten() {
        let required = (access != Access::Everyone).then(|| SecurityRequirement::new(BEARER, [""; 0]));
        operation.tags = Some(vec![tag.to_owned()]);
        operation.security = Some(required.into_iter().collect());
        operation.responses.responses.extend(refusals(access));
        let about = operation.description.get_or_insert_default();
        *about = format!("{about}\n\n{}", sentence(access));
    }
}

/// Who may use an operation, in the words of a template.
fn sentence(access: Access) -> String {
    match access {
        Access::Everyone => "Needs no token.".to_owned(),
        Access::Authenticated => "Needs a token or a key, with any scope.".to_owned(),
        Access::With(scope) => format!("Needs the scope `{scope}`."),
        Access::OfOwner(scope) => format!("Needs the scope `{scope}`, for this {{owner}}."),
        Access::OfAllOwners(scope) => format!("Needs the scope `{scope}`, for all {{manyOwners}}."),
    }
}

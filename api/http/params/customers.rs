//! Which customers are to be listed.

use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::Reader;
use super::list::in_query;
use crate::domain::{CustomerId, Limit};
use crate::http::problem::Problem;
use crate::http::schemas::{ordinal, whole};

/// `/customers?…`
pub struct CustomersParams {
    pub after: Option<CustomerId>,
    pub limit: Limit,
}

impl<S: Send + Sync> FromRequestParts<S> for CustomersParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let after = reader.query("after", CustomerId::from_str);
        let limit = reader.query("limit", Limit::from_str);
        reader.finish()?;
        Ok(Self { after, limit: limit.unwrap_or(Limit::CUSTOMERS) })
    }
}

impl IntoParams for CustomersParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let limit = whole(1, u64::from(Limit::MAX)).default(Some(Limit::CUSTOMERS.get().into()));
        vec![
            in_query(
                "after",
                "The customers with greater ids than this one, which need not be there. Default: from the least.",
                ordinal(),
            ),
            in_query("limit", "How many customers at most.", limit),
        ]
    }
}

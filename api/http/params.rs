//! Paths and queries, parsed into the domain's types with all their faults, and documented where
//! they are parsed.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};

mod customers;
mod export;
mod list;
mod page_views;

pub use customers::CustomersParams;
pub use export::ExportParams;
pub use list::{ListParams, Selection};
pub use page_views::{BucketParams, CountParams, NoParams, SeriesParams, TopParams};

use super::problem::{ParameterFault, Problem};
use super::schemas::ordinal;
use crate::domain::{CustomerId, Invalid, PageNumber, Seq};

/// `/customers/{customerId}`
pub struct CustomerParams {
    pub customer: CustomerId,
}

/// `/customers/{customerId}/trades/pages/{page}`
pub struct PageParams {
    pub customer: CustomerId,
    pub page: PageNumber,
}

/// `/customers/{customerId}/trades/{seq}`
pub struct TradeParams {
    pub customer: CustomerId,
    pub seq: Seq,
}

impl<S: Send + Sync> FromRequestParts<S> for CustomerParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let customer = reader.path("customerId");
        reader.finish()?;
        customer.map(|customer| Self { customer }).ok_or_else(missing)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PageParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let (customer, page) = (reader.path("customerId"), reader.path("page"));
        reader.finish()?;
        customer.zip(page).map(|(customer, page)| Self { customer, page }).ok_or_else(missing)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for TradeParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let (customer, seq) = (reader.path("customerId"), reader.path("seq"));
        reader.finish()?;
        customer.zip(seq).map(|(customer, seq)| Self { customer, seq }).ok_or_else(missing)
    }
}

/// A parameter that is not read above is a mistake of ours, and every one that is read and wrong
/// has its fault.
fn missing() -> Problem {
    Problem::new(super::problem::Kind::Internal, "A route and its parameters do not go together.")
}

/// Longer names of unknown parameters are cut before they are repeated.
const LONGEST_NAME_REPEATED: usize = 64;

/// Reads parameters one by one, and keeps what is wrong with them.
struct Reader<'a> {
    /// As the route has them, `{name}`, and as the request has them, percent-encoded.
    path: Vec<(&'a str, &'a str)>,
    query: Vec<(String, String)>,
    faults: Vec<ParameterFault>,
}

impl<'a> Reader<'a> {
    fn of(parts: &'a Parts) -> Self {
        // Not axum's own extractor of path parameters, which does not say which one is not UTF-8.
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let path = route.split('/').zip(parts.uri.path().split('/')).collect();
        // Pairs of texts: there is no query that this refuses.
        let query = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri).map(|Query(pairs)| pairs);
        Self { path, query: query.unwrap_or_default(), faults: Vec::new() }
    }

    fn path<T: FromStr<Err = Invalid>>(&mut self, name: &'static str) -> Option<T> {
        let is_it = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
        let (_, value) = self.path.iter().find(|(part, _)| is_it(part))?;
        let value = percent_decode_str(value).decode_utf8();
        let invalid = |_| Invalid("must be UTF-8 after percent-decoding".to_owned());
        self.keep(name, value.map_err(invalid).and_then(|value| value.parse()))
    }

    /// Whether the query has it, well-formed or not.
    fn gives(&self, name: &str) -> bool {
        self.query.iter().any(|(given, _)| given == name)
    }

    /// A fault of its own, or of its company.
    fn refuse(&mut self, name: &'static str, detail: impl Into<String>) {
        self.faults.push(ParameterFault { parameter: name.into(), detail: detail.into() });
    }

    /// At most once in the query.
    fn query<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let mut values: Vec<_> =
            self.query.extract_if(.., |(given, _)| given == name).map(|(_, value)| value).collect();
        if values.len() > 1 {
            return self.keep(name, Err(Invalid("must not be given more than once".to_owned())));
        }
        self.keep(name, parse(&values.pop()?))
    }

    /// Exactly once in the query.
    fn required<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        if !self.gives(name) {
            return self.keep(name, Err(Invalid("is required".to_owned())));
        }
        self.query(name, parse)
    }

    fn keep<T>(&mut self, name: &'static str, result: Result<T, Invalid>) -> Option<T> {
        let refuse = |Invalid(detail)| self.faults.push(ParameterFault { parameter: name.into(), detail });
        result.map_err(refuse).ok()
    }

    /// What is left of the query is unknown.
    fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in self.query {
            let parameter = Cow::Owned(name.chars().take(LONGEST_NAME_REPEATED).collect());
            self.faults
                .push(ParameterFault { parameter, detail: "is not a parameter of this address".to_owned() });
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_parameters(self.faults)) }
    }
}

fn in_path(name: &str, description: &str, example: u64) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(ordinal()))
        .example(Some(example.into()))
        .build()
}

fn customer_parameter() -> Parameter {
    in_path("customerId", "Whose history: decimal digits, without a sign or a leading zero.", 7)
}

impl IntoParams for CustomerParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter()]
    }
}

impl IntoParams for PageParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter(), in_path("page", "Permanent ordinal of the page, from 1.", 1)]
    }
}

impl IntoParams for TradeParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter(), in_path("seq", "Sequence number of the trade, from 1.", 1)]
    }
}

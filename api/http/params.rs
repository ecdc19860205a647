//! Parsing of paths and queries into the domain's types, with all their faults. Each parameter is documented where it
//! is parsed. This file has what routes share.

use std::borrow::Cow;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};

use super::problem::{ParameterFault, Problem};
use super::schemas::ordinal;
use crate::domain::{CustomerId, DateRange, Instant, Invalid};

/// `/customers/{customerId}`
pub struct CustomerParams {
    pub customer: CustomerId,
}

impl<S: Send + Sync> FromRequestParts<S> for CustomerParams {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut reader = Reader::of(parts);
        let customer = reader.path("customerId");
        reader.finish()?;
        Ok(Self { customer: given(customer) })
    }
}

/// The value of a required parameter, after [`Reader::finish`] has refused faults.
pub fn given<T>(parameter: Option<T>) -> T {
    parameter.expect("the route has each parameter that is read, and a wrong one has its fault")
}

/// Longer names of unknown parameters are cut before they are repeated.
const LONGEST_NAME_REPEATED: usize = 64;

/// Reads parameters one by one, and collects their faults.
pub struct Reader<'a> {
    /// Segments of the route, such as `{name}`, with those of the request, percent-encoded.
    path: Vec<(&'a str, &'a str)>,
    query: Vec<(String, String)>,
    faults: Vec<ParameterFault>,
}

impl<'a> Reader<'a> {
    /// The parameters of a request.
    pub fn of(parts: &'a Parts) -> Self {
        // Not axum's own extractor of path parameters, which does not say which one is not UTF-8.
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let path = route.split('/').zip(parts.uri.path().split('/')).collect();
        let query = Query::try_from_uri(&parts.uri).map(|Query(pairs)| pairs);
        Self { path, query: query.expect("every query is pairs of texts"), faults: Vec::new() }
    }

    /// Reads a parameter of the path. `None` if it has a fault.
    pub fn path<T: FromStr<Err = Invalid>>(&mut self, name: &'static str) -> Option<T> {
        let is_it = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
        let (_, value) = self.path.iter().find(|(part, _)| is_it(part))?;
        let value = percent_decode_str(value).decode_utf8();
        let invalid = |_| Invalid("must be UTF-8 after percent-decoding".to_owned());
        self.keep(name, value.map_err(invalid).and_then(|value| value.parse()))
    }

    /// Whether the query has the parameter, well-formed or not.
    pub fn gives(&self, name: &str) -> bool {
        self.query.iter().any(|(given, _)| given == name)
    }

    /// Adds a fault of a parameter, or of its combination with others.
    pub fn refuse(&mut self, name: &'static str, detail: impl Into<String>) {
        self.faults.push(ParameterFault { parameter: name.into(), detail: detail.into() });
    }

    /// Reads a parameter that the query has at most once.
    pub fn query<T>(&mut self, name: &'static str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let mut values: Vec<_> =
            self.query.extract_if(.., |(given, _)| given == name).map(|(_, value)| value).collect();
        if values.len() > 1 {
            return self.keep(name, Err(Invalid("must not be given more than once".to_owned())));
        }
        self.keep(name, parse(&values.pop()?))
    }

    /// Reads a parameter that the query must have exactly once.
    pub fn required<T>(
        &mut self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        if !self.gives(name) {
            return self.keep(name, Err(Invalid("is required".to_owned())));
        }
        self.query(name, parse)
    }

    fn keep<T>(&mut self, name: &'static str, result: Result<T, Invalid>) -> Option<T> {
        let refuse = |Invalid(detail)| self.faults.push(ParameterFault { parameter: name.into(), detail });
        result.map_err(refuse).ok()
    }

    /// Ends the reading. Parameters of the query that were not read are unknown.
    ///
    /// # Errors
    /// At least one parameter has a fault.
    pub fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in self.query {
            let parameter = Cow::Owned(name.chars().take(LONGEST_NAME_REPEATED).collect());
            self.faults
                .push(ParameterFault { parameter, detail: "is not a parameter of this address".to_owned() });
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_parameters(self.faults)) }
    }
}

/// `from` and `to`, if either is given.
pub fn dates(reader: &mut Reader<'_>) -> Option<DateRange> {
    let from = reader.query("from", instant);
    let to = reader.query("to", instant);
    let dates = DateRange::new(from, to).map_err(|Invalid(detail)| reader.refuse("to", detail));
    dates.ok().filter(|_| from.is_some() || to.is_some())
}

/// Parses RFC 3339. A `+` that was not written as `%2B` has become a space, which appears nowhere else.
pub fn instant(text: &str) -> Result<Instant, Invalid> {
    match text.rfind(' ') {
        Some(at) if at + "+00:00".len() == text.len() => {
            Instant::parse_rfc3339(&format!("{}+{}", &text[..at], &text[at + 1..]))
        }
        _ => Instant::parse_rfc3339(text),
    }
}

/// The documentation of an ordinal in a path.
pub fn in_path(name: &str, description: &str, example: u64) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(ordinal()))
        .example(Some(example.into()))
        .build()
}

/// The documentation of an optional parameter of a query.
pub fn in_query(name: &str, description: &str, schema: impl Into<RefOr<Schema>>) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

/// The documentation of `customerId` in a path.
pub fn customer_parameter() -> Parameter {
    in_path("customerId", "The customer's id: decimal digits, without a sign or a leading zero.", 7)
}

impl IntoParams for CustomerParams {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![customer_parameter()]
    }
}

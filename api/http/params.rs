//! Parsing of paths and queries into the domain's types, with all their faults. Each parameter is documented where it
//! is parsed. This file has what routes share.

use std::borrow::Cow;
use std::convert::Infallible;
use std::str::FromStr;

use axum::extract::{FromRequestParts, MatchedPath, Query};
use axum::http::Extensions;
use axum::http::request::Parts;
use percent_encoding::percent_decode_str;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};

use super::problem::{ParameterFault, Problem};
use super::schemas::{ordinal, owner_id};
use crate::definition::Owner;
use crate::domain::{DateRange, Instant, Invalid, OwnerId};
use crate::store::history::Engine;

/// The engine of the history that the route serves.
#[derive(Clone)]
pub struct HistoryOf(pub Engine);

impl HistoryOf {
    /// The engine of the history that a request is for.
    pub fn given(extensions: &Extensions) -> Self {
        extensions.get().cloned().expect("each route of a history is mounted with its engine")
    }
}

impl<S: Send + Sync> FromRequestParts<S> for HistoryOf {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::given(&parts.extensions))
    }
}

/// The parameters of an address under `/{owners}/{ownerId}/{items}`: a history, and what `P` reads.
pub struct InHistory<P> {
    /// The engine of the history.
    pub engine: Engine,
    /// Whose history it is.
    pub owner: OwnerId,
    /// The parameters besides the owner.
    pub params: P,
}

/// What an address has besides its owner.
pub trait Params: Sized {
    /// Reads the parameters of one address. `None` only if one of them has a fault.
    fn read(reader: &mut Reader<'_>, engine: &Engine) -> Option<Self>;

    /// Documents them.
    fn documented() -> Vec<Parameter>;
}

impl Params for () {
    fn read(_: &mut Reader<'_>, _: &Engine) -> Option<Self> {
        Some(())
    }

    fn documented() -> Vec<Parameter> {
        Vec::new()
    }
}

impl<P: Params, S: Send + Sync> FromRequestParts<S> for InHistory<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let HistoryOf(engine) = HistoryOf::given(&parts.extensions);
        let mut reader = Reader::of(parts);
        let owner = reader.owner(&engine.definition().owner);
        let params = P::read(&mut reader, &engine);
        reader.finish()?;
        Ok(Self { owner: given(owner), params: given(params), engine })
    }
}

impl<P: Params> IntoParams for InHistory<P> {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        std::iter::once(owner_parameter()).chain(P::documented()).collect()
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

    /// Reads the id of an owner in the path. `None` if it has a fault.
    pub fn owner(&mut self, owner: &Owner) -> Option<OwnerId> {
        self.path_as(&owner.field, |text| owner.kind.parse(text))
    }

    /// Reads a parameter of the path. `None` if it has a fault.
    pub fn path<T: FromStr<Err = Invalid>>(&mut self, name: &str) -> Option<T> {
        self.path_as(name, str::parse)
    }

    fn path_as<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let is_it = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
        let (_, value) = self.path.iter().find(|(part, _)| is_it(part))?;
        let value = percent_decode_str(value).decode_utf8();
        let invalid = |_| Invalid("must be UTF-8 after percent-decoding".to_owned());
        self.keep(name, value.map_err(invalid).and_then(|value| parse(&value)))
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

    fn keep<T>(&mut self, name: &str, result: Result<T, Invalid>) -> Option<T> {
        let refuse = |Invalid(detail)| {
            self.faults.push(ParameterFault { parameter: name.to_owned().into(), detail });
        };
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

/// The documentation of the owner in a path.
pub fn owner_parameter() -> Parameter {
    ParameterBuilder::new()
        .name("{ownerField}")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The {owner}'s id{ownerIdRule}."))
        .schema(Some(owner_id()))
        .example(Some("{ownerExample}".into()))
        .build()
}

//! Parsing of paths, queries and headers into the domain's types, with all their faults. Each parameter is
//! documented where it is parsed. This file has what routes share.

use std::borrow::Cow;
use std::collections::HashSet;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::HeaderName;
use axum::http::request::Parts;
use pagebucket_engine::Engine;
use pagebucket_model::domain::{
    DateRange, IdempotencyKey, Instant, Invalid, OwnerId, OwnerType, PageNumber, Seq,
};
use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, ParameterStyle};
use utoipa::openapi::{RefOr, Required, Schema};

use crate::admission::address::{QueryValue, decoded, pairs};
use crate::admission::context::RequestContext;
use crate::problem::{ParameterFault, Problem};
use crate::schemas::names::Names;
use crate::schemas::{ordinal, schema};

/// The client's name for the request. (IETF draft `draft-ietf-httpapi-idempotency-key-header`.)
pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Set on an answer whose items were stored by an earlier request with the key.
pub(crate) const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// What the address of a request names: a history, or for owners the first of theirs; and what `P` reads.
pub(crate) struct Address<P> {
    /// The engine of the history.
    pub engine: Engine,
    /// What the path and the query say.
    pub params: P,
}

/// The parameters of an address, or some of them.
pub(crate) trait Params: Sized {
    /// Reads the parameters of one address. `None` only if one of them has a fault.
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self>;

    /// Documents them.
    fn documented(names: &Names<'_>) -> Vec<Parameter>;
}

impl<P: Params, S: Send + Sync> FromRequestParts<S> for Address<P> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let context = RequestContext::of_mut(&mut parts.extensions);
        let owner = context.owner.take();
        let history = context.histories.as_ref().and_then(|histories| histories.first()).cloned();
        let history = history.expect("each route of a history is mounted with its engine");
        let engine = history.on_behalf_of(context.queue_client);
        let mut reader = ParameterReader { owner, ..ParameterReader::of(parts) };
        let params = P::read(&mut reader, &engine);
        reader.finish()?;
        Ok(Self { engine, params: given(params) })
    }
}

impl<P: Params, Q: Params> Params for (P, Q) {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        // Both are read, so that all faults are found.
        let (first, second) = (P::read(reader, engine), Q::read(reader, engine));
        first.zip(second)
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        [P::documented(names), Q::documented(names)].concat()
    }
}

impl Params for OwnerId {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        let owner = reader.owner.take()?;
        reader.keep(&engine.definition().owner.field, owner)
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let Names { owner, owner_field, .. } = names;
        let rule = match names.definition.owner.kind {
            OwnerType::Integer => "decimal digits, without a sign or a leading zero",
            OwnerType::String => "1 to 64 letters, digits and hyphens; upper and lower case differ",
            OwnerType::Uuid => "a UUID; upper and lower case do not differ, and answers are in lower case",
        };
        let about = format!("The {owner}'s id: {rule}.");
        vec![in_path(owner_field, about, names.owner_id(), names.examples.owner.clone())]
    }
}

/// Of a route for one owner, or for many.
impl Params for Option<OwnerId> {
    fn read(reader: &mut ParameterReader<'_>, engine: &Engine) -> Option<Self> {
        Some(OwnerId::read(reader, engine))
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        OwnerId::documented(names)
    }
}

impl Params for PageNumber {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        reader.path("page", Self::parse)
    }

    fn documented(_: &Names<'_>) -> Vec<Parameter> {
        vec![in_path("page", "Permanent number of the page, from 1.", ordinal(), 1.into())]
    }
}

impl Params for Seq {
    fn read(reader: &mut ParameterReader<'_>, _: &Engine) -> Option<Self> {
        reader.path("seq", Self::parse)
    }

    fn documented(names: &Names<'_>) -> Vec<Parameter> {
        let about = format!("Sequence number of the {}, from 1.", names.item);
        vec![in_path("seq", about, ordinal(), 1.into())]
    }
}

/// The header `Idempotency-Key`, if there is one. It is the client's own: another client may use the same
/// key.
pub(crate) struct KeyHeader(pub Option<IdempotencyKey>);

impl<S: Send + Sync> FromRequestParts<S> for KeyHeader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut given = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let key = match (given.next(), given.next()) {
            (None, _) => return Ok(Self(None)),
            (Some(key), None) => IdempotencyKey::parse(key.as_bytes()),
            (Some(_), Some(_)) => Err(Invalid::new("must not be given more than once")),
        };
        let client = RequestContext::of(&parts.extensions).principal_name();
        let key = key.map(|key| client.map_or(key.clone(), |client| key.of_client(client)));
        key.map(|key| Self(Some(key))).map_err(|Invalid(detail)| {
            Problem::invalid_parameters(vec![ParameterFault { parameter: "Idempotency-Key".into(), detail }])
        })
    }
}

impl KeyHeader {
    /// Documents it.
    pub(crate) fn documented() -> Vec<Parameter> {
        let description = "A unique key for the request, such as a UUID: 1 to 255 visible ASCII characters. A repeat of the request has the same key.";
        let key = json!({
            "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]{1,255}$",
            "examples": ["9f0c4d2e-6f3b-4d64-8a53-1d2c7be0a9f1"],
        });
        vec![in_header("Idempotency-Key", description, schema(key))]
    }
}

/// The value of a required parameter, after [`ParameterReader::finish`] has refused faults.
pub(crate) fn given<T>(parameter: Option<T>) -> T {
    parameter.expect("the route has each parameter that is read, and a wrong one has its fault")
}

/// Longer names of unknown parameters are cut before they are repeated.
const LONGEST_NAME_REPEATED: usize = 64;

/// Reads parameters one by one, and collects their faults.
pub(crate) struct ParameterReader<'a> {
    /// The request, for headers that select what its parameters do not.
    pub parts: &'a Parts,
    /// Segments of the route, such as `{name}`, with those of the request, percent-encoded.
    path: Vec<(&'a str, &'a str)>,
    /// The owner that the address names, which admission has parsed.
    owner: Option<Result<OwnerId, Invalid>>,
    query: Vec<(String, QueryValue)>,
    faults: Vec<ParameterFault>,
}

impl<'a> ParameterReader<'a> {
    /// The parameters of a request.
    pub(crate) fn of(parts: &'a Parts) -> Self {
        // Not axum's own extractor of path parameters, which does not say which one is not UTF-8.
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let path = route.split('/').zip(parts.uri.path().split('/')).collect();
        Self { parts, path, owner: None, query: pairs(&parts.uri), faults: Vec::new() }
    }

    /// Reads a parameter of the path. `None` if it has a fault.
    fn path<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let is_it = |part: &str| part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) == Some(name);
        let (_, value) = self.path.iter().find(|(part, _)| is_it(part))?;
        self.keep(name, decoded(value).and_then(|value| parse(&value)))
    }

    /// Whether the query has the parameter, well-formed or not.
    pub(crate) fn gives(&self, name: &str) -> bool {
        self.query.iter().any(|(given, _)| given == name)
    }

    /// Refuses a parameter if one of these others is given, too. Returns whether it does.
    pub(crate) fn excludes<'n>(
        &mut self,
        name: &'static str,
        others: impl IntoIterator<Item = &'n str>,
    ) -> bool {
        self.gives(name) && self.refuse_beside(name, others)
    }

    /// Refuses what is given as `name` if one of these parameters is given, too. Returns whether it does.
    pub(crate) fn refuse_beside<'n>(
        &mut self,
        name: &'static str,
        others: impl IntoIterator<Item = &'n str>,
    ) -> bool {
        let other = others.into_iter().find(|other| self.gives(other));
        if let Some(other) = other {
            self.refuse(name, format!("must not be given together with `{other}`"));
        }
        other.is_some()
    }

    /// Adds a fault of a parameter, or of its combination with others.
    pub(crate) fn refuse(&mut self, name: impl Into<Cow<'static, str>>, detail: impl Into<String>) {
        self.faults.push(ParameterFault { parameter: name.into(), detail: detail.into() });
    }

    /// Reads a parameter that the query has at most once.
    pub(crate) fn query<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let mut values = self.values(name);
        if values.len() > 1 {
            return self.keep(name, Err(Invalid::new("must not be given more than once")));
        }
        self.keep(name, values.pop()?.parse(parse))
    }

    /// Reads the values of a parameter that the query may repeat, up to `most` different ones. `None` if it
    /// is absent or has a fault.
    pub(crate) fn repeated<T>(
        &mut self,
        name: &str,
        most: usize,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<Vec<T>> {
        let values = self.values(name);
        let count = values.len();
        if count > most {
            let rule = format!("must not be given more than {most} times");
            return self.keep(name, Err(Invalid::new(rule)));
        }
        let parsed: Result<Vec<T>, Invalid> = (1..)
            .zip(&values)
            .map(|(place, value)| {
                value.parse(&parse).map_err(|Invalid(rule)| {
                    let which =
                        if count > 1 { format!(" (value {place} of {count})") } else { String::new() };
                    let comma =
                        value.text.contains(',').then_some("; for several values repeat the parameter");
                    Invalid(format!("{rule}{which}{}", comma.unwrap_or_default()))
                })
            })
            .collect();
        let parsed = self.keep(name, parsed)?;
        if values.iter().map(|value| &value.text).collect::<HashSet<_>>().len() < count {
            return self.keep(name, Err(Invalid::new("must not have the same value twice")));
        }
        (count > 0).then_some(parsed)
    }

    /// Reads a list with commas between its elements. Clients that repeat the parameter for each element mean
    /// the same.
    pub(crate) fn list<T>(&mut self, name: &str, parse: impl Fn(&str) -> Result<T, Invalid>) -> Option<T> {
        let values = self.values(name);
        let texts: Vec<_> = values.iter().map(|value| &*value.text).collect();
        let is_utf8 = values.iter().all(|value| value.is_utf8);
        let list = QueryValue { text: texts.join(","), is_utf8 };
        if values.is_empty() { None } else { self.keep(name, list.parse(parse)) }
    }

    /// Takes all values of a parameter from the query.
    fn values(&mut self, name: &str) -> Vec<QueryValue> {
        self.query.extract_if(.., |(given, _)| given == name).map(|(_, value)| value).collect()
    }

    /// Reads a parameter that the query must have exactly once.
    pub(crate) fn required<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        if !self.gives(name) {
            return self.keep(name, Err(Invalid::new("is required")));
        }
        self.query(name, parse)
    }

    /// The value, or its fault.
    pub(crate) fn keep<T>(&mut self, name: &str, result: Result<T, Invalid>) -> Option<T> {
        result.map_err(|Invalid(detail)| self.refuse(name.to_owned(), detail)).ok()
    }

    /// Ends the reading. Parameters of the query that were not read are unknown.
    ///
    /// # Errors
    /// At least one parameter has a fault.
    pub(crate) fn finish(mut self) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.query) {
            let name: String = name.chars().take(LONGEST_NAME_REPEATED).collect();
            self.refuse(name, "is not a parameter of this address");
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::invalid_parameters(self.faults)) }
    }
}

/// `from` and `to`, if either is given.
pub(crate) fn dates(reader: &mut ParameterReader<'_>) -> Option<DateRange> {
    let from = reader.query("from", instant);
    let to = reader.query("to", instant);
    let dates = DateRange::new(from, to).map_err(|Invalid(detail)| reader.refuse("to", detail));
    dates.ok().filter(|_| from.is_some() || to.is_some())
}

/// Parses RFC 3339. A `+` that was not written as `%2B` has become a space, which appears nowhere else.
pub(crate) fn instant(text: &str) -> Result<Instant, Invalid> {
    match text.rfind(' ') {
        Some(at) if at + "+00:00".len() == text.len() => {
            Instant::parse_rfc3339(&format!("{}+{}", &text[..at], &text[at + 1..]))
        }
        _ => Instant::parse_rfc3339(text),
    }
}

/// The documentation of a parameter of a path.
fn in_path(name: &str, description: impl Into<String>, schema: RefOr<Schema>, example: Value) -> Parameter {
    let parameter = required_in_query(name, description, schema, example);
    ParameterBuilder::from(parameter).parameter_in(ParameterIn::Path).build()
}

/// The documentation of an optional header.
pub(crate) fn in_header(name: &str, description: impl Into<String>, schema: RefOr<Schema>) -> Parameter {
    ParameterBuilder::from(in_query(name, description, schema)).parameter_in(ParameterIn::Header).build()
}

/// The documentation of a parameter that a query must have.
pub(crate) fn required_in_query(
    name: &str,
    description: impl Into<String>,
    schema: RefOr<Schema>,
    example: impl Into<Value>,
) -> Parameter {
    ParameterBuilder::from(in_query(name, description, schema))
        .required(Required::True)
        .example(Some(example.into()))
        .build()
}

/// The documentation of an optional list, with commas between some of these names.
pub(crate) fn in_list(
    name: &str,
    description: impl Into<String>,
    names: &[String],
    example: &[String],
) -> Parameter {
    let schema = schema(json!({
        "type": "array", "items": { "type": "string", "enum": names }, "minItems": 1, "maxItems": names.len(),
        "uniqueItems": true, "examples": [example],
    }));
    let list = ParameterBuilder::from(in_query(name, description, schema));
    list.style(Some(ParameterStyle::Form)).explode(Some(false)).build()
}

/// The documentation of an optional parameter of a query.
pub(crate) fn in_query(
    name: &str,
    description: impl Into<String>,
    schema: impl Into<RefOr<Schema>>,
) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Query)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

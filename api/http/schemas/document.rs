//! What the OpenAPI document says of a route. A function beside each handler makes it, with the names of a
//! definition.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{Operation, OperationBuilder, Parameter};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{Content, ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema};

use super::headers::{NamedHeader, server_timing};
use super::names::Names;
use super::views::{self, Schemas};

/// A documented route: its operation, and the schemas that this refers to.
pub(crate) struct Documented {
    pub operation: Operation,
    pub schemas: Schemas,
}

/// The document of a route, part by part.
pub(crate) struct RouteDocument<'a> {
    names: &'a Names<'a>,
    operation: OperationBuilder,
    answers: Vec<(u16, ResponseBuilder)>,
    schemas: Schemas,
}

impl<'a> RouteDocument<'a> {
    /// An operation: its name, what it does in a few words, and more of it.
    pub(crate) fn of(
        names: &'a Names<'a>,
        id: impl Into<String>,
        summary: impl Into<String>,
        about: impl Into<String>,
    ) -> Self {
        let operation = OperationBuilder::new().operation_id(Some(id)).summary(Some(summary));
        let operation = operation.description(Some(about));
        Self { names, operation, answers: Vec::new(), schemas: Schemas::new() }
    }

    /// Its parameters.
    pub(crate) fn parameters(mut self, all: Vec<Parameter>) -> Self {
        self.operation = self.operation.parameters(Some(all));
        self
    }

    /// The body that a request must have: with the schema of this view, `content` makes it.
    pub(crate) fn takes<T: ToSchema>(
        mut self,
        media_type: &str,
        about: impl Into<String>,
        content: impl FnOnce(RefOr<Schema>) -> Content,
    ) -> Self {
        let taken = content(self.names.schema::<T>());
        let body = RequestBodyBuilder::new().required(Some(Required::True)).content(media_type, taken);
        let about = Some(about.into()).filter(|about| !about.is_empty());
        self.operation = self.operation.request_body(Some(body.description(about).build()));
        let schemas = views::schemas::<T>(self.names);
        self.defines(schemas)
    }

    /// An answer. Its headers and its content follow.
    pub(crate) fn answers(mut self, status: u16, about: impl Into<String>) -> Self {
        self.answers.push((status, ResponseBuilder::new().description(about)));
        self
    }

    /// The answer of a read of JSON under `/v1`.
    pub(crate) fn reads(self, about: impl Into<String>) -> Self {
        self.answers(200, about).header(server_timing())
    }

    /// The same of one whose answer has a tag, by which a client may name its copy.
    pub(crate) fn reads_tagged(self, about: impl Into<String>) -> Self {
        let unchanged = "`If-None-Match` names the current state: the client's copy is still valid.";
        self.answers(304, unchanged).reads(about)
    }

    /// A header of the answer.
    pub(crate) fn header(self, (name, header): NamedHeader) -> Self {
        self.answering(|answer| answer.header(name, header))
    }

    /// The view that the answer shows, with an example unless none can be made.
    pub(crate) fn shows<T: ToSchema>(self, media_type: &str, example: impl Into<Option<Value>>) -> Self {
        let (shown, schemas) = (self.names.schema::<T>(), views::schemas::<T>(self.names));
        self.answering(|answer| answer.content(media_type, content(shown, example))).defines(schemas)
    }

    /// The same of an answer that is text of any length.
    pub(crate) fn text(mut self, media_type: &str, example: impl Into<Option<Value>>) -> Self {
        let text = json!({ "type": "string", "description": "Text without a bound of its length." });
        self.schemas.insert("TextStream".to_owned(), text);
        let shown = content(Ref::from_schema_name("TextStream"), example);
        self.answering(|answer| answer.content(media_type, shown))
    }

    /// Schemas that depend on the definition in more than names and texts.
    pub(crate) fn defines(mut self, schemas: Schemas) -> Self {
        self.schemas.extend(schemas);
        self
    }

    /// A bound in the schema of a view that depends on the definition.
    pub(crate) fn bounds<T: ToSchema>(mut self, property: &str, keyword: &str, most: usize) -> Self {
        self.schemas[&self.names.schema_name(&T::name())]["properties"][property][keyword] = json!(most);
        self
    }

    /// With these problems that is all.
    pub(crate) fn problems(self, problems: BTreeMap<String, RefOr<Response>>) -> Documented {
        let mut operation = self.operation.build();
        let answers = self.answers.into_iter();
        operation.responses.responses =
            answers.map(|(status, answer)| (status.to_string(), answer.into())).chain(problems).collect();
        Documented { operation, schemas: self.schemas }
    }

    fn answering(mut self, with: impl FnOnce(ResponseBuilder) -> ResponseBuilder) -> Self {
        if let Some((status, answer)) = self.answers.pop() {
            self.answers.push((status, with(answer)));
        }
        self
    }
}

/// A body of this schema, with an example unless none can be made.
pub(crate) fn content(schema: impl Into<RefOr<Schema>>, example: impl Into<Option<Value>>) -> Content {
    ContentBuilder::new().schema(Some(schema)).example(example.into()).build()
}

/// The same with a title for the example.
pub(crate) fn titled(schema: RefOr<Schema>, (name, title): (&str, &str), example: Option<Value>) -> Content {
    let example = ExampleBuilder::new().summary(title).value(example);
    ContentBuilder::new().schema(Some(schema)).examples_from_iter([(name, example)]).build()
}

//! The parts of the OpenAPI document that belong to no single route.

use utoipa::openapi::schema::ComponentsBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{ContactBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, ServerBuilder};
use utoipa::{PartialSchema, ToSchema};

use super::problem::ProblemSchema;

/// Title, description, tags and servers.
pub fn preamble() -> OpenApi {
    let tag =
        |name: &str, description: &str| TagBuilder::new().name(name).description(Some(description)).build();
    let license =
        LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("pagebucket")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Append-only histories of trades in MongoDB, in buckets of ten, served as pages: a page is a bucket. \
             Every acknowledged trade is stored exactly once. Any page of any history is one cheap read. Totals are \
             exact. Page views are counted in one bucket for each page and minute. Instants are RFC 3339 in UTC. \
             Errors are problems (RFC 9457), described at `/problems`.",
        ))
        .contact(Some(ContactBuilder::new().name(Some("The pagebucket developers")).build()))
        .license(Some(license))
        .build();
    OpenApiBuilder::new()
        .info(info)
        .servers(Some([ServerBuilder::new()
            .url("/")
            .description(Some("Where this document is served."))
            .build()]))
        // Explicitly empty: there is no authentication.
        .security(Some([]))
        .tags(Some([
            tag("Trades", "Append trades, and read histories by page, window or time."),
            tag("Customers", "Histories as a whole."),
            tag("Views", "Count page views, and read the counts."),
            tag("Probes", "For operators of the service."),
        ]))
        .components(Some(
            ComponentsBuilder::new().schema(ProblemSchema::name(), ProblemSchema::schema()).build(),
        ))
        .build()
}

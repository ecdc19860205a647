//! The documentation of the bodies that `domain::parse_views` and its siblings parse.

use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::PageView;
use crate::http::schemas::{date_time, new_date, page_path, whole};

/// The most page views in an array.
pub(super) const MOST_VIEWS: usize = 1_000;

/// Views of a page as a client sends them.
pub struct NewPageView;

impl ToSchema for NewPageView {}

impl PartialSchema for NewPageView {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some(
                "Views of a page at one moment. `at` may be at most 24 hours ahead of the server's clock; `views` is 1 by default.",
            ))
            .property("path", page_path())
            .property("at", new_date())
            .property("views", whole(1, u64::from(PageView::MOST_VIEWS)).default(Some(1.into())))
            .required("path")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .examples([json!({ "path": "/index.htm", "at": "2014-01-01T10:01:14.000Z", "views": 3 })])
            .into()
    }
}

/// One page view, or an array of 1 to 1,000.
pub struct NewPageViews;

impl ToSchema for NewPageViews {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NewPageView::name().into(), NewPageView::schema()));
    }
}

impl PartialSchema for NewPageViews {
    fn schema() -> RefOr<Schema> {
        let view = || Ref::from_schema_name(NewPageView::name());
        OneOfBuilder::new()
            .description(Some("One page view, or an array of 1 to 1,000."))
            .item(view())
            .item(ArrayBuilder::new().items(view()).min_items(Some(1)).max_items(Some(MOST_VIEWS)))
            .into()
    }
}

/// An hour of a page, as a client asks for it.
pub struct NewPreallocation;

impl ToSchema for NewPreallocation {}

impl PartialSchema for NewPreallocation {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some(
                "A page, and the hour to preallocate: a whole hour of UTC, at most 366 days ahead.",
            ))
            .property("path", page_path())
            .property("hour", date_time())
            .required("path")
            .required("hour")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
            .examples([json!({ "path": "/index.htm", "hour": "2014-01-01T10:00:00.000Z" })])
            .into()
    }
}

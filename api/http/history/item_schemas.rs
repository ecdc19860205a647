//! The schemas that a definition gives: templates only have their names.

use utoipa::openapi::Ref;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Most items in one request, uploads aside.
pub const MOST_ITEMS: usize = 1000;

macro_rules! of_definition {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        pub struct $name;

        impl ToSchema for $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().into()
            }
        }
    )*};
}

of_definition! {
    /// An item as a client sends it.
    NewItem;
    /// An item as a client sends it, and its owner.
    NewItemLine;
    /// A stored item.
    Item;
    /// A stored item and the number of its page.
    PlacedItem;
    /// A stored item and its owner.
    ExportedItem;
}

/// One item, or an array of 1 to 1,000.
pub struct NewItems;

impl ToSchema for NewItems {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((NewItem::name().into(), NewItem::schema()));
    }
}

impl PartialSchema for NewItems {
    fn schema() -> RefOr<Schema> {
        let item = || Ref::from_schema_name(NewItem::name());
        OneOfBuilder::new()
            .description(Some("One {item}, or an array of 1 to 1,000, appended in their order."))
            .item(item())
            .item(ArrayBuilder::new().items(item()).min_items(Some(1)).max_items(Some(MOST_ITEMS)))
            .into()
    }
}

//! The schemas that a definition gives: templates only have their names.

use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::schemas::one_or_many;

/// Most items in one request, uploads aside.
pub const MOST_ITEMS: usize = 1000;

/// An item as a client sends it.
#[derive(ToSchema)]
pub struct NewItem;

/// An item as a client sends it, and its owner.
#[derive(ToSchema)]
pub struct NewItemLine;

/// A stored item.
#[derive(ToSchema)]
pub struct Item;

/// A stored item and the number of its page.
#[derive(ToSchema)]
pub struct PlacedItem;

/// A stored item and its owner.
#[derive(ToSchema)]
pub struct ExportedItem;

/// One item, or an array of 1 to 1,000.
pub struct NewItems;

impl ToSchema for NewItems {}

impl PartialSchema for NewItems {
    fn schema() -> RefOr<Schema> {
        let description = "One {item}, or an array of 1 to 1,000, appended in their order.";
        one_or_many(description, "New{Item}Array", NewItem::name(), MOST_ITEMS)
    }
}

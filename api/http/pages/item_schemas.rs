//! The schemas that a definition gives: templates only have their names.

use utoipa::ToSchema;

/// Most items in one request, uploads aside.
pub(crate) const MOST_ITEMS: usize = 1000;

/// An item as a client sends it.
#[derive(ToSchema)]
pub(crate) struct ItemInput;

/// An item as a client sends it, and its owner.
#[derive(ToSchema)]
pub(crate) struct ItemLineInput;

/// A stored item.
#[derive(ToSchema)]
pub(crate) struct Item;

/// A stored item and the number of its page.
#[derive(ToSchema)]
pub(crate) struct PlacedItem;

/// A stored item and its owner.
#[derive(ToSchema)]
pub(crate) struct ExportedItem;

/// The texts that a group of a summary has.
#[derive(ToSchema)]
pub(crate) struct ItemSeriesGroup;

/// What becomes of the numbers of a summary.
#[derive(ToSchema)]
pub(crate) struct ItemSeriesValues;

//! One definition of a history: its names, its owners, its pages and the schema of its items.

use std::cell::RefCell;
use std::sync::Arc;

use regex::Regex;

use super::names::{
    FIELD, OF_LISTINGS, OF_SUMMARIES, OUR_FIELDS, OUR_ROUTES, RESERVED, ROUTE, TITLE, capitalised,
};
use super::summaries::{Summaries, is_unclear};
use super::time_series::TimeSeries;
use crate::domain::{OwnerType, PageSize};
use crate::item::{
    Frame, Members, Mistake, Mistakes, Noun, Schema, SourceValue, did_you_mean, unknown_member,
};

/// The history of trades, which a server has without a directory of definitions.
const TRADES: &str = include_str!("trades.json");

/// The JSON Schema of definitions, for editors. It refuses what [`Definition::parse`] refuses, as far as JSON
/// Schema has words for it.
pub const JSON_SCHEMA: &str = include_str!("definition.schema.json");

/// Bytes of a full page: the most that `pageSize` times `maxItemBytes` may be.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Bytes of an item, where the definition does not say.
const DEFAULT_ITEM_BYTES: usize = 16 << 10;
/// Less leaves no room for a date beside the engine's own bytes.
const LEAST_ITEM_BYTES: usize = 64;
/// Bytes of a definition's text.
const MAX_TEXT: usize = 1 << 20;

/// A history: an append-only list of items of one kind for each owner.
#[derive(Debug)]
pub struct Definition {
    /// The collection's name and the last part of the route, such as `trades`.
    pub name: Arc<str>,
    /// The item's name in OpenAPI, such as `Trade`.
    pub title: String,
    /// Whose items they are.
    pub owner: Owner,
    /// How many items a page has.
    pub page_size: PageSize,
    /// Bytes of a stored item, its index in the bucket and the engine's key included.
    pub max_item_bytes: usize,
    /// The property that spans of time go by.
    pub date: DateProperty,
    /// The properties by whose values listings can be filtered. All are texts.
    pub filters: Vec<String>,
    /// What summaries of its items may be asked for.
    pub summaries: Option<Summaries>,
    /// Its native time series, if it has one.
    pub time_series: Option<TimeSeries>,
    /// What an item is.
    pub item: Schema,
    /// The item's schema as it is written, for OpenAPI and for the database.
    pub source: serde_json::Value,
}

/// The owners of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The first part of the route, such as `customers`.
    pub collection: String,
    /// The id's name in JSON and in the database, such as `customerId`.
    pub field: String,
    /// The id's type.
    pub kind: OwnerType,
}

/// The property that is an item's date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DateProperty {
    /// Its name.
    pub name: String,
    /// Whether the client must send it. Otherwise it defaults to the time of arrival.
    pub required: bool,
}

impl Definition {
    /// Reads a definition.
    ///
    /// # Errors
    /// It has mistakes.
    pub fn parse(text: &str) -> Result<Self, Mistakes> {
        if text.len() > MAX_TEXT {
            return Err(Mistake::new("", format!("must have at most {MAX_TEXT} bytes")).into());
        }
        let mistakes = RefCell::default();
        let definition = Self::read(&SourceValue::of_text(text, &mistakes)?);
        let mistakes = mistakes.into_inner();
        definition.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }

    /// Reads all of a definition, so that all mistakes are found. `None` if something is missing.
    fn read(source: &SourceValue<'_>) -> Option<Self> {
        let known = [
            "$schema",
            "history",
            "title",
            "owner",
            "pageSize",
            "maxItemBytes",
            "date",
            "filters",
            "summaries",
            "timeSeries",
            "item",
        ];
        let mut members = members(source, "an object, which is a definition", &known)?;
        // Editors read it.
        members.read("$schema", SourceValue::text);
        let name = members.read_required("history", route);
        let title = members.read_required("title", |source| {
            let rule = "must be 1 to 64 letters and digits that begin with a capital, such as \"Trade\"";
            named(source, TITLE, rule)
        });
        let owner = members.required("owner").and_then(|owner| Owner::read(&owner, name.as_deref()));
        let page_size = match members.take("pageSize") {
            Some(source) => source.keep(page_size(&source)),
            None => Some(PageSize::DEFAULT),
        };
        // Of an unknown page size the smallest, which leaves most bytes for an item.
        let items = page_size.map_or(PageSize::MIN as usize, PageSize::get);
        let share = MAX_PAGE_BYTES / items;
        let max_item_bytes = members.read("maxItemBytes", |source| {
            let bytes = source.count().ok().filter(|bytes| (LEAST_ITEM_BYTES..=share).contains(bytes));
            let rule = format!("must be a whole number from {LEAST_ITEM_BYTES} to {share}, so that a page of {items} items has at most {MAX_PAGE_BYTES} bytes");
            bytes.ok_or_else(|| source.mistake(rule))
        });
        let max_item_bytes = max_item_bytes.unwrap_or(share.min(DEFAULT_ITEM_BYTES));
        let date = members.read_required("date", SourceValue::text);
        let filters_source = members.take("filters");
        let summaries_source = members.take("summaries");
        let series_source = members.take("timeSeries");
        let item = members.required("item")?;
        let key_field = key_field(name.as_deref().unwrap_or_default());
        let owner_field = owner.as_ref().map(|owner| &*owner.field);
        let reserved =
            RESERVED.into_iter().chain(owner_field).chain([key_field]).map(str::to_owned).collect();
        let frame = Frame {
            title: title.as_deref().unwrap_or_default(),
            date: date.as_deref(),
            reserved,
            page_size: page_size.unwrap_or(PageSize::DEFAULT),
            max_item_bytes,
            key_field,
        };
        let schema = Schema::parse(&item, frame)?;
        let summarised = summaries_source.is_some();
        let filters =
            filters_source.map(|source| filters(&source, &schema, &item, summarised)).unwrap_or_default();
        let summaries = summaries_source.and_then(|source| Summaries::read(&source, &schema, &item));
        let time_series = series_source.and_then(|source| TimeSeries::read(&source, &schema, &item));
        let date = date.filter(|_| !item.has_mistakes())?;
        let source = serde_json::from_str(item.raw.get());
        let source = item.keep(source.map_err(|error| item.mistake(format!("cannot be read: {error}"))))?;
        let date = DateProperty { required: schema.date_is_required(), name: date };
        Some(Self {
            name: name?.into(),
            title: title?,
            owner: owner?,
            page_size: page_size?,
            max_item_bytes,
            date,
            filters,
            summaries,
            time_series,
            item: schema,
            source,
        })
    }

    /// The history of trades that is built in.
    pub fn trades() -> Self {
        Self::parse(TRADES).expect("a test reads it")
    }

    /// The text of the definition of trades.
    pub fn trades_text() -> &'static str {
        TRADES
    }

    /// Whether this is the history that there was before there were definitions, or a copy of it.
    pub fn is_trades(&self) -> bool {
        &*self.name == "trades"
    }

    /// The engine's field of an item, for the key of its request.
    pub fn key_field(&self) -> &str {
        key_field(&self.name)
    }
}

fn page_size(source: &SourceValue<'_>) -> Result<PageSize, Mistake> {
    let size = source.count().ok().and_then(|size| PageSize::new(size as u64).ok());
    size.ok_or_else(|| source.mistake("must be a whole number from 2 to 200"))
}

/// Names of properties that listings can be filtered by, and summaries if there are any.
fn filters(
    source: &SourceValue<'_>,
    schema: &Schema,
    item: &SourceValue<'_>,
    summarised: bool,
) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in source.keep(source.array()).unwrap_or_default() {
        let Some(text) = name.keep(name.text()) else { continue };
        if !is_unclear(&text, schema, item) && !schema.has_text(&text) {
            let texts =
                schema.properties().map(|property| property.name).filter(|name| schema.has_text(name));
            let hint = did_you_mean(&text, texts);
            name.refuse(format!(
                "must name a property that is a string, without the format date-time or decimal{hint}"
            ));
        } else if OF_LISTINGS.contains(&&*text) {
            name.refuse("must not be the name of another parameter of listings");
        } else if summarised && OF_SUMMARIES.contains(&&*text) {
            name.refuse("must not be the name of another parameter of summaries");
        } else if names.contains(&text) {
            name.refuse("must not be given more than once");
        }
        names.push(text);
    }
    names
}

/// Trades had it before there were definitions.
fn key_field(name: &str) -> &'static str {
    if name == "trades" { "key" } else { "_key" }
}

impl Owner {
    /// `history`: the name of its history, if that is known.
    fn read(source: &SourceValue<'_>, history: Option<&str>) -> Option<Self> {
        let mut members =
            members(source, "an object with collection, field and type", &["collection", "field", "type"])?;
        let collection = members.read_required("collection", |source| match route(source)? {
            collection if Some(&*collection) == history => {
                Err(source.mistake("must not be the name of a history"))
            }
            collection => Ok(collection),
        });
        let field = members.read_required("field", |source| {
            let rule =
                "must be 1 to 64 letters and digits that begin with a small letter, such as \"customerId\"";
            let field = named(source, FIELD, rule)?;
            if OUR_FIELDS.contains(&&*field) {
                let rule = "must not be a name that pages and listings use for something else";
                return Err(source.mistake(rule));
            }
            Ok(field)
        });
        let kind = members.read_required("type", |source| {
            let kind = OwnerType::ALL
                .into_iter()
                .find(|kind| source.text().is_ok_and(|name| name == kind.to_string()));
            kind.ok_or_else(|| source.mistake("must be \"integer\", \"string\" or \"uuid\""))
        });
        Some(Self { collection: collection?, field: field?, kind: kind? })
    }

    /// What an owner is called: the field in words, without "Id".
    pub fn noun(&self) -> String {
        Noun::of_name(self.stem()).one().to_owned()
    }

    /// What an owner is called in OpenAPI: "Customer".
    pub fn title(&self) -> String {
        capitalised(self.stem())
    }

    fn stem(&self) -> &str {
        self.field.strip_suffix("Id").filter(|stem| !stem.is_empty()).unwrap_or(&self.field)
    }
}

fn route(source: &SourceValue<'_>) -> Result<String, Mistake> {
    let rule = "must be 1 to 48 of the characters a-z, 0-9 and \"-\", and begin with a letter";
    let name = named(source, ROUTE, rule)?;
    if OUR_ROUTES.contains(&&*name) {
        return Err(source.mistake("must not be a name that the server uses itself"));
    }
    Ok(name)
}

/// A text that matches the regular expression `pattern`.
fn named(source: &SourceValue<'_>, pattern: &str, rule: &str) -> Result<String, Mistake> {
    let name = source.text()?;
    let pattern = Regex::new(pattern).expect("the pattern is a constant");
    if pattern.is_match(&name) { Ok(name) } else { Err(source.mistake(rule)) }
}

fn members<'a>(source: &SourceValue<'a>, what: &str, known: &[&str]) -> Option<Members<'a>> {
    source.object(what, |name| (!known.contains(&name)).then(|| unknown_member(name, known)))
}

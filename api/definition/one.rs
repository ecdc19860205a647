use std::sync::Arc;

use super::names::{self, OUR_FIELDS, OUR_ROUTES, RESERVED};
use crate::domain::{OwnerType, PageSize};
use crate::item::{Frame, Mistake, Noun, Schema, Source};

/// The history of trades, which a server has without a directory of definitions.
const TRADES: &str = include_str!("../../histories/trades.json");

/// Bytes of a full page: the most that `pageSize` times `maxItemBytes` may be.
const MAX_PAGE_BYTES: usize = 4 << 20;
/// Bytes of an item, where the definition does not say.
const DEFAULT_ITEM_BYTES: usize = 16 << 10;
/// Less leaves no room for a date beside the engine's own bytes.
const LEAST_ITEM_BYTES: usize = 64;
/// Bytes of a definition's text.
const MAX_TEXT: usize = 1 << 20;

/// Why a text is not a definition: a JSON Pointer and a rule, one sentence.
pub type DefinitionError = Mistake;

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
    /// The first mistake.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        if text.len() > MAX_TEXT {
            return Err(Mistake::new("", format!("must have at most {MAX_TEXT} bytes")));
        }
        let source = Source::of_text(text)?;
        let [history, title, owner, page_size, max_item_bytes, date, item] = members(
            &source,
            "an object, which is a definition",
            ["history", "title", "owner", "pageSize", "maxItemBytes", "date", "item"],
        )?;
        let name = route(&required(history, "/history")?)?;
        let title_source = required(title, "/title")?;
        let title = title_source.text()?;
        if !names::is_title(&title) {
            return Err(title_source
                .mistake("must be 1 to 64 letters and digits that begin with a capital, such as \"Trade\""));
        }
        let owner = Owner::parse(&required(owner, "/owner")?, &name)?;
        let page_size = match page_size {
            None => PageSize::DEFAULT,
            Some(source) => {
                let size = source.count().ok().and_then(|size| PageSize::new(size as u64).ok());
                size.ok_or_else(|| source.mistake("must be a whole number from 2 to 200"))?
            }
        };
        let share = MAX_PAGE_BYTES / page_size.get();
        let max_item_bytes = match max_item_bytes {
            None => share.min(DEFAULT_ITEM_BYTES),
            Some(source) => source
                .count()
                .ok()
                .filter(|bytes| (LEAST_ITEM_BYTES..=share).contains(bytes))
                .ok_or_else(|| {
                    source.mistake(format!(
                        "must be a whole number from {LEAST_ITEM_BYTES} to {share}, so that a page of {page_size} items has at most {MAX_PAGE_BYTES} bytes"
                    ))
                })?,
        };
        let date = required(date, "/date")?.text()?;
        let item = required(item, "/item")?;
        let key_field = key_field(&name);
        let reserved = [RESERVED.as_slice(), &[owner.field.as_str()]].concat();
        let frame =
            Frame { title: &title, date: &date, reserved: &reserved, page_size, max_item_bytes, key_field };
        let schema = Schema::parse(&item, &frame)?;
        let source = serde_json::from_str(item.raw().get())
            .map_err(|error| item.mistake(format!("cannot be read: {error}")))?;
        let date = DateProperty { required: schema.date_is_required(), name: date };
        Ok(Self { name: name.into(), title, owner, page_size, max_item_bytes, date, item: schema, source })
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

    /// What an item is called: "trade".
    pub fn noun(&self) -> String {
        self.item.noun().one().to_owned()
    }

    /// What an owner is called: "customer".
    pub fn owner_noun(&self) -> String {
        self.owner.noun()
    }

    /// The engine's field of an item, for the key of its request.
    pub fn key_field(&self) -> &str {
        key_field(&self.name)
    }
}

/// Trades had it before there were definitions.
fn key_field(name: &str) -> &'static str {
    if name == "trades" { "key" } else { "_key" }
}

impl Owner {
    fn parse(source: &Source<'_>, history: &str) -> Result<Self, Mistake> {
        let [collection, field, kind] =
            members(source, "an object with collection, field and type", ["collection", "field", "type"])?;
        let collection_source = required(collection, "/owner/collection")?;
        let collection = route(&collection_source)?;
        if collection == history {
            return Err(collection_source.mistake("must not be the name of a history"));
        }
        let field_source = required(field, "/owner/field")?;
        let field = field_source.text()?;
        if !names::is_field(&field) {
            return Err(field_source.mistake(
                "must be 1 to 64 letters and digits that begin with a small letter, such as \"customerId\"",
            ));
        }
        if OUR_FIELDS.contains(&field.as_str()) {
            return Err(
                field_source.mistake("must not be a name that pages and listings use for something else")
            );
        }
        let kind_source = required(kind, "/owner/type")?;
        let kind = [OwnerType::Integer, OwnerType::String]
            .into_iter()
            .find(|kind| kind_source.text().is_ok_and(|name| name == kind.name()));
        let kind = kind.ok_or_else(|| kind_source.mistake("must be \"integer\" or \"string\""))?;
        Ok(Self { collection, field, kind })
    }

    /// What an owner is called: the field in words, without "Id".
    pub fn noun(&self) -> String {
        Noun::of_name(self.stem()).one().to_owned()
    }

    /// What an owner is called in OpenAPI: "Customer".
    pub fn title(&self) -> String {
        let (first, rest) = self.stem().split_at(1);
        first.to_ascii_uppercase() + rest
    }

    fn stem(&self) -> &str {
        self.field.strip_suffix("Id").filter(|stem| !stem.is_empty()).unwrap_or(&self.field)
    }
}

fn route(source: &Source<'_>) -> Result<String, Mistake> {
    let name = source.text()?;
    if !names::is_route(&name) {
        return Err(
            source.mistake("must be 1 to 48 of the characters a-z, 0-9 and \"-\", and begin with a letter")
        );
    }
    if OUR_ROUTES.contains(&name.as_str()) {
        return Err(source.mistake("must not be a name that the server uses itself"));
    }
    Ok(name)
}

/// The members of an object, by their names; others are a mistake.
fn members<'a, const N: usize>(
    source: &Source<'a>,
    what: &str,
    names: [&str; N],
) -> Result<[Option<Source<'a>>; N], Mistake> {
    let mut found = names.map(|_| None);
    for (name, member) in source.object(what)? {
        let at = names.iter().position(|known| *known == name);
        let at = at.ok_or_else(|| member.mistake("is not a member of a definition"))?;
        found[at] = Some(member);
    }
    Ok(found)
}

fn required<'a>(member: Option<Source<'a>>, pointer: &str) -> Result<Source<'a>, Mistake> {
    member.ok_or_else(|| Mistake::new(pointer, "is required"))
}

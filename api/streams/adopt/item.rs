//! From a document of the source to an item, its owner and its identity.

use std::collections::HashMap;
use std::sync::Arc;

use mongodb::bson::raw::{CString, RawBinaryRef, RawBsonRef, RawDocument, cstr};
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use pagebucket_engine::internal::ItemKey;
use pagebucket_model::definition::Definition;
use pagebucket_model::domain::{Invalid, OwnerId, OwnerType};
use pagebucket_model::item::{Draft, decimal_text, is_lossless, write_name, write_value};

use super::shape::{ITEMS, Shape, SourcePlace, whole, whole_text};
use super::watch::{RefusedItem, at};
use crate::import::{ColumnName, Columns, OpenError, RowFaults, uuid_text};

/// How the documents of a source become items.
#[derive(Debug)]
pub struct DocumentReader {
    pub(crate) definition: Arc<Definition>,
    pub(crate) shape: Shape,
    /// The owner's field in the source.
    pub(crate) owner: String,
    /// By which field an owner's items are ordered.
    pub(crate) order: String,
    /// The name of the source.
    pub(crate) source: String,
    columns: Columns,
    /// What each name of the source may stand for, in the order of the properties.
    names: HashMap<String, Vec<PropertyName>>,
    ignored: Vec<String>,
}

/// A property, or the owner, that a name may stand for.
#[derive(Debug)]
struct PropertyName {
    property: String,
    /// Its place among the names of its property.
    rank: usize,
}

/// A member of a document of the source.
#[derive(Debug)]
struct SourceMember<'a> {
    name: &'a str,
    value: RawBsonRef<'a>,
    known: &'a [PropertyName],
}

/// A sentence about a flag.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct MapError(String);

/// An item of the source that the schema accepts.
#[derive(Debug)]
pub(crate) struct Adopted {
    pub owner: OwnerId,
    pub draft: Draft,
    pub key: ItemKey,
    /// The `_id` of its document, as the byte of its BSON type and the bytes of its value.
    identity: Box<[u8]>,
    place: Option<u32>,
    /// The item with its owner, as it is in the source.
    source: RawDocumentBuf,
}

impl Adopted {
    /// Roughly its memory, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.draft.size() + self.source.as_bytes().len()
    }

    /// It cannot be stored, for this reason.
    pub(crate) fn refused(self, reason: RowFaults) -> Box<RefusedItem> {
        let (id, document) = (self.id(), Document::try_from(&*self.source).unwrap_or_default());
        Box::new(RefusedItem { id, place: self.place, reason, document, known: Some((self.owner, self.key)) })
    }

    /// Which item of the source it is.
    pub(crate) fn what(&self) -> String {
        at(&self.id(), self.place)
    }

    /// The `_id` of its document.
    pub(crate) fn id(&self) -> Bson {
        let (kind, value) = self.identity.split_at(1);
        let len = (self.identity.len() + 6) as u32;
        let document = [&len.to_le_bytes(), kind, &[0], value, &[0]].concat();
        let document = RawDocumentBuf::from_bytes(document).unwrap_or_default();
        let id = document.iter().flatten().next().and_then(|(_, id)| Bson::try_from(id).ok());
        id.unwrap_or(Bson::Null)
    }
}

/// How the documents of a source become items.
#[derive(Debug)]
pub struct ReadingRules<'a> {
    /// What a document is.
    pub shape: Shape,
    /// The name of the source.
    pub source: String,
    /// Properties, or the owner, that have another name in the source.
    pub map: &'a [ColumnName],
    /// The member by which the items of an owner are in order, if it is not the date.
    pub order: Option<&'a str>,
    /// Members of the source that are left out.
    pub ignored: &'a [String],
}

impl DocumentReader {
    /// # Errors
    /// A name is given twice, or for a property that no item has.
    pub fn new(definition: &Arc<Definition>, rules: ReadingRules<'_>) -> Result<Self, MapError> {
        let ReadingRules { shape, source, map, order, ignored } = rules;
        let of = |property: &str| {
            let given = map.iter().find(|given| given.property == property);
            given.map_or(property, |given| &given.name).to_owned()
        };
        let (field, date) = (&*definition.owner.field, &*definition.date.name);
        let (owner, order) = (of(field), order.map_or_else(|| of(date), str::to_owned));
        if order.is_empty() || order.starts_with('$') {
            return Err(MapError(format!("--order {order} names no field")));
        }
        // The server sorts by them, so each has one name.
        let mut names = map.to_vec();
        for (property, name) in [(field, &owner), (date, &of(date))] {
            if !map.iter().any(|given| given.property == property) {
                names.push(ColumnName { property: property.to_owned(), name: name.clone() });
            }
        }
        let columns = Columns::new(definition, &names, None).map_err(|error| match error {
            OpenError::Column { property, rule } => MapError(format!("--map {property}=… {rule}")),
            other => MapError(other.to_string()),
        })?;
        let columns = columns.of_documents();
        let mut names: HashMap<_, Vec<_>> = HashMap::new();
        for (property, tried) in columns.names() {
            for (rank, name) in tried.iter().enumerate() {
                let property = property.to_owned();
                names.entry(name.clone()).or_default().push(PropertyName { property, rank });
            }
        }
        if let Some(ColumnName { property, name }) = map.iter().find(|given| given.name.contains('.')) {
            return Err(MapError(format!(
                "--map {property}={name} is a path, and --map takes names of the first level: a view with \
                 {{$set: {{{property}: \"${name}\"}}}} gives {name} such a name"
            )));
        }
        let (definition, ignored) = (Arc::clone(definition), ignored.to_vec());
        Ok(Self { definition, shape, owner, order, source, columns, names, ignored })
    }

    /// What decides which items the source has, and their order. With another one there may be others.
    pub(crate) fn parameters(&self) -> Document {
        let names = self.columns.names().map(|(property, names)| format!("{property}={}", names.join("|")));
        doc! {
            "shape": self.shape.to_string(), "owner": &self.owner, "order": &self.order,
            "map": names.collect::<Vec<_>>(), "ignore": &self.ignored,
        }
    }

    /// Whose item is at a place; `None` if that is not clear.
    pub(crate) fn owner_at(&self, place: &SourcePlace<'_>) -> Option<OwnerId> {
        owner_of(place.owner, self.definition.owner.kind).ok()
    }

    /// The item at a place of the source; `None` for a bucket without items.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) fn read(&self, place: &SourcePlace<'_>) -> Option<Result<Adopted, Box<RefusedItem>>> {
        if self.shape == Shape::Documents {
            let document = place.item.and_then(bson::RawBsonRef::as_document)?;
            return Some(self.item(place.id, None, document));
        }
        let composed = match place.item {
            // An empty array: one that is missing has no length.
            None | Some(RawBsonRef::Null) if place.index.is_none() && place.items.is_some() => return None,
            Some(RawBsonRef::Document(item)) if place.index.is_some() => {
                let mut composed = RawDocumentBuf::new();
                if let (Some(owner), Ok(name)) = (place.owner, CString::try_from(&*self.owner)) {
                    composed.append(name, owner);
                }
                for member in item.iter().flatten() {
                    if place.owner.is_none() || member.0.as_str() != self.owner {
                        composed.append(member.0, member.1);
                    }
                }
                if has(item, &self.owner) {
                    // Whose it is cannot be known.
                    let reason = format!("has {:?} itself, which only its bucket may have", self.owner);
                    let read = self.item(place.id, place.index, &composed);
                    let mut refused =
                        read.map_or_else(|refused| refused, |item| item.refused(RowFaults::default()));
                    refused.reason = reason.into();
                    refused.known = refused.known.filter(|_| place.owner.is_some());
                    return Some(Err(refused));
                }
                composed
            }
            other => {
                let part = other.and_then(|value| Bson::try_from(value).ok()).unwrap_or(Bson::Null);
                let owner = place.owner.and_then(|value| Bson::try_from(value).ok()).unwrap_or(Bson::Null);
                let document = doc! { &self.owner: owner, ITEMS: part };
                let reason = match (place.index, place.item) {
                    (Some(_), _) => "must be an object".to_owned(),
                    (None, None) => format!("has no array `{ITEMS}`"),
                    (None, Some(_)) => format!("`{ITEMS}` must be an array"),
                };
                let known = place.index.and(owner_of(place.owner, self.definition.owner.kind).ok());
                let known = known.map(|owner| self.known(owner, &identity(place.id), place.index));
                let (id, place) = (id(place.id), place.index);
                return Some(Err(Box::new(RefusedItem {
                    id,
                    place,
                    reason: reason.into(),
                    document,
                    known,
                })));
            }
        };
        Some(self.item(place.id, place.index, &composed))
    }

    /// The item of a document that has its owner, too.
    ///
    /// # Errors
    /// It is refused.
    pub(crate) fn item(
        &self,
        id: RawBsonRef<'_>,
        place: Option<u32>,
        document: &RawDocument,
    ) -> Result<Adopted, Box<RefusedItem>> {
        let owner = document.get(&self.owner).ok().flatten();
        let owner = owner_of(owner, self.definition.owner.kind);
        let identity = identity(id);
        let known = owner.as_ref().ok().map(|owner| self.known(owner.clone(), &identity, place));
        let read = owner
            .map_err(|why| format!("{:?} {why}", self.owner).into())
            .and_then(|owner| self.draft(document, &owner));
        match (read, known) {
            (Ok(draft), Some((owner, key))) => {
                let source = document.to_owned();
                Ok(Adopted { owner, draft, key, identity: identity.into(), place, source })
            }
            (read, known) => {
                let reason = read.err().unwrap_or_default();
                let document = Document::try_from(document).unwrap_or_default();
                Err(Box::new(RefusedItem { id: self::id(id), place, reason, document, known }))
            }
        }
    }

    /// An item's owner and identity.
    fn known(&self, owner: OwnerId, identity: &[u8], place: Option<u32>) -> (OwnerId, ItemKey) {
        let key = ItemKey::adopted(&self.definition, &owner, &self.source, identity, place);
        (owner, key)
    }

    /// The item as the schema makes it from the document's JSON, if nothing is lost.
    fn draft(&self, document: &RawDocument, owner: &OwnerId) -> Result<Draft, RowFaults> {
        let members = self.members(document)?;
        let (_, draft) = self.columns.of_line(&self.json(&members, owner)?)?;
        let stored: Vec<_> = draft.document().into_iter().flatten().collect();
        for member @ SourceMember { name, value, .. } in &members {
            if *name == self.owner || *value == RawBsonRef::Null {
                continue;
            }
            let property = member.known_as(&members).map_or(*name, |known| &known.property);
            match stored.iter().find(|(stored, _)| stored.as_str() == property) {
                Some((_, stored)) if is_lossless(*value, *stored) => {}
                Some(_) => return Err(format!("{name:?} would lose its type or a part of its value").into()),
                None => {
                    let article = self.definition.item.noun().article();
                    return Err(format!(
                        "{name:?} would be lost, because it is no property of {article}: --map PROPERTY={name} renames it, \
                         and --ignore {name} leaves it out"
                    )
                    .into());
                }
            }
        }
        Ok(draft)
    }

    /// The JSON of a document of this owner, as `import` reads it.
    fn json(&self, members: &[SourceMember<'_>], owner: &OwnerId) -> Result<Vec<u8>, RowFaults> {
        let mut json = Vec::with_capacity(256);
        json.push(b'{');
        for SourceMember { name, value, .. } in members {
            write_name(name, &mut json);
            let decimal = match value {
                RawBsonRef::Decimal128(number) => decimal_text(number.bytes()),
                _ => None,
            };
            match decimal {
                _ if *name == self.owner => write_value(RawBsonRef::String(&owner.to_string()), &mut json),
                Some(digits) => {
                    json.extend_from_slice(format!(r#"{{"$numberDecimal":"{digits}"}}"#).as_bytes());
                    Ok(())
                }
                None => write_value(*value, &mut json),
            }
            .map_err(|corrupt| {
                let path =
                    if corrupt.field.is_empty() { String::new() } else { format!(".{}", corrupt.field) };
                format!("{:?} {}", format!("{name}{path}"), corrupt.detail)
            })?;
        }
        json.push(b'}');
        Ok(json)
    }

    /// The members of a document that are not left out.
    fn members<'a>(&'a self, document: &'a RawDocument) -> Result<Vec<SourceMember<'a>>, RowFaults> {
        let mut members = Vec::with_capacity(8);
        for member in document {
            let (name, value) = member.map_err(|_| "is no BSON document".to_owned())?;
            let name = name.as_str();
            let known = self.names.get(name).map_or(&[][..], Vec::as_slice);
            if !(self.ignored.iter().any(|ignored| ignored == name) || (name == "_id" && known.is_empty())) {
                members.push(SourceMember { name, value, known });
            }
        }
        Ok(members)
    }
}

impl SourceMember<'_> {
    /// The property that it becomes, if any. Of several names of a property the first that is there is used.
    fn known_as(&self, all: &[Self]) -> Option<&PropertyName> {
        let is_first = |known: &&PropertyName| {
            let is_before =
                |other: &PropertyName| other.property == known.property && other.rank < known.rank;
            known.rank == 0
                || !all
                    .iter()
                    .any(|other| other.value != RawBsonRef::Null && other.known.iter().any(is_before))
        };
        self.known.iter().find(is_first)
    }
}

fn has(document: &RawDocument, name: &str) -> bool {
    document.get(name).ok().flatten().is_some_and(|value| value != RawBsonRef::Null)
}

fn id(value: RawBsonRef<'_>) -> Bson {
    Bson::try_from(value).unwrap_or(Bson::Null)
}

/// The byte of a value's type, and its bytes.
fn identity(value: RawBsonRef<'_>) -> Vec<u8> {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!(""), value);
    // Before the value come the length, its type and the end of its empty name; after it the end of the
    // document.
    let bytes = document.as_bytes();
    [&bytes[4..5], &bytes[6..bytes.len() - 1]].concat()
}

/// The owner that a value names: a whole number of any type, a string, or a UUID, as the history has it.
fn owner_of(value: Option<RawBsonRef<'_>>, kind: OwnerType) -> Result<OwnerId, Invalid> {
    let rule = |rule: &str| Invalid::new(rule);
    let value = value.ok_or_else(|| rule("is missing"))?;
    let text = match (kind, value) {
        (kind, RawBsonRef::String(text)) if kind.is_text() => text.to_owned(),
        (OwnerType::Integer, decimal @ RawBsonRef::Decimal128(_)) => {
            whole_text(decimal).ok_or_else(|| rule("must be a whole number"))?
        }
        (OwnerType::Integer, number) => {
            whole(number).ok_or_else(|| rule("must be a whole number"))?.to_string()
        }
        (OwnerType::Uuid, RawBsonRef::Binary(RawBinaryRef { subtype, bytes })) => {
            uuid_text(subtype, bytes).ok_or_else(|| rule("must be a UUID"))?
        }
        (OwnerType::String | OwnerType::Uuid, _) => return Err(rule("must be a string")),
    };
    kind.parse(&text)
}

use super::mistake::Mistake;
use super::node::Kinds;
use super::source::Source;

/// The keywords of one schema that have not been read yet.
pub(super) struct Keywords<'a>(Vec<(String, Source<'a>)>);

/// All keywords of the subset, and the types that they say something of; annotations and others say it of all.
const KNOWN: [(&str, Kinds); 26] = [
    ("$ref", Kinds::ALL),
    ("type", Kinds::ALL),
    ("enum", Kinds::ALL),
    ("const", Kinds::ALL),
    ("properties", Kinds::OBJECT),
    ("required", Kinds::OBJECT),
    ("additionalProperties", Kinds::OBJECT),
    ("items", Kinds::ARRAY),
    ("minItems", Kinds::ARRAY),
    ("maxItems", Kinds::ARRAY),
    ("uniqueItems", Kinds::ARRAY),
    // A string of the format decimal has bounds too; the compiler looks at the format.
    ("minimum", Kinds::NUMBER_OR_STRING),
    ("maximum", Kinds::NUMBER_OR_STRING),
    ("exclusiveMinimum", Kinds::NUMBER_OR_STRING),
    ("exclusiveMaximum", Kinds::NUMBER_OR_STRING),
    ("multipleOf", Kinds::NUMBER_OR_STRING),
    ("minLength", Kinds::STRING),
    ("maxLength", Kinds::STRING),
    ("pattern", Kinds::STRING),
    ("format", Kinds::STRING),
    ("$defs", Kinds::ALL),
    ("title", Kinds::ALL),
    ("description", Kinds::ALL),
    ("examples", Kinds::ALL),
    ("default", Kinds::ALL),
    ("deprecated", Kinds::ALL),
];

const ANNOTATIONS: [&str; 5] = ["title", "description", "examples", "default", "deprecated"];

impl<'a> Keywords<'a> {
    /// # Errors
    /// The value is not an object, or has a keyword that is not of the subset.
    pub(super) fn read(schema: &Source<'a>) -> Result<Self, Mistake> {
        let members = schema.object("an object, which is a schema")?;
        for (name, source) in &members {
            if !KNOWN.iter().any(|(known, _)| known == name) {
                return Err(source.mistake("is not a keyword that a definition may use"));
            }
        }
        Ok(Self(members))
    }

    /// Removes a keyword.
    pub(super) fn take(&mut self, name: &str) -> Option<Source<'a>> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.remove(at).1)
    }

    /// Accepts annotations only beside the keyword `beside`.
    pub(super) fn check_rest(mut self, beside: &str) -> Result<(), Mistake> {
        self.take("examples").map(|examples| examples.array()).transpose()?;
        check_annotations(&mut self)?;
        match self.0.first() {
            None => Ok(()),
            Some((_, source)) => Err(source.mistake(format!("must not stand beside {beside}"))),
        }
    }

    /// Refuses keywords that say nothing of values of these types.
    pub(super) fn check_for(&self, kinds: Option<Kinds>) -> Result<(), Mistake> {
        for (name, source) in &self.0 {
            let of = KNOWN.iter().find(|(known, _)| known == name).map_or(Kinds::ALL, |(_, of)| *of);
            if name == "$defs" {
                return Err(source.mistake("must stand in the item's schema, not in one inside it"));
            }
            if kinds.is_some_and(|kinds| !kinds.has(of)) {
                return Err(source.mistake("means nothing for the type of this schema"));
            }
        }
        Ok(())
    }
}

/// Removes the annotations, and checks their form. Examples are checked with the schema.
pub(super) fn check_annotations(keywords: &mut Keywords<'_>) -> Result<(), Mistake> {
    for name in ANNOTATIONS {
        let Some(source) = keywords.take(name) else { continue };
        match name {
            "title" | "description" => source.text().map(|_| ())?,
            "deprecated" => source.boolean().map(|_| ())?,
            _ => {}
        }
    }
    Ok(())
}

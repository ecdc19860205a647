//! What the author of a definition most likely meant: for slips that are likely, and for names that are
//! nearly right.

use super::node::Kinds;

/// The longest name that is compared with others, in bytes.
const LONGEST: usize = 64;

/// How many letters may be wrong, missing, too many or swapped.
const MOST_SLIPS: usize = 2;

/// Keywords of other dialects, and what a definition has for them.
const KEYWORDS: [(&str, &str); 23] = [
    ("oneOf", ALTERNATIVES),
    ("anyOf", ALTERNATIVES),
    ("allOf", "write the keywords of all parts into one schema"),
    ("not", "say what is accepted, by an enum or a pattern"),
    ("if", ALTERNATIVES),
    ("then", ALTERNATIVES),
    ("else", ALTERNATIVES),
    ("nullable", "give two types, such as \"type\": [\"string\", \"null\"]"),
    ("optional", "a property is optional unless the \"required\" of its object names it"),
    ("readOnly", "all that clients send is stored, and nothing of it changes"),
    ("writeOnly", "all that clients send is stored and answered"),
    ("definitions", "did you mean \"$defs\"?"),
    ("patternProperties", OTHERS),
    ("propertyNames", OTHERS),
    ("prefixItems", "\"items\" is the schema of every item"),
    ("contains", "\"items\" is the schema of every item"),
    ("example", "did you mean \"examples\", which is an array?"),
    ("min", "did you mean \"minimum\"?"),
    ("max", "did you mean \"maximum\"?"),
    ("regex", "did you mean \"pattern\"?"),
    ("$comment", "did you mean \"description\"?"),
    ("$schema", "it may stand in the definition itself, beside \"history\""),
    ("$id", "a definition is known by its \"history\""),
];
const ALTERNATIVES: &str =
    "declare the properties of all alternatives, and require those that every alternative has";
const OTHERS: &str =
    "\"additionalProperties\" is the schema of all members that \"properties\" does not declare";

/// Names of types elsewhere, and how a schema has them.
const TYPES: [(&str, &str); 26] = [
    ("int", "\"integer\""),
    ("int32", "\"integer\""),
    ("int64", "\"integer\""),
    ("long", "\"integer\""),
    ("float", "\"number\""),
    ("double", "\"number\""),
    ("bool", "\"boolean\""),
    ("str", "\"string\""),
    ("text", "\"string\""),
    ("enum", "\"string\", with an \"enum\""),
    ("list", "\"array\""),
    ("map", "\"object\""),
    ("dict", "\"object\""),
    ("json", "\"object\""),
    ("date", "{ \"type\": \"string\", \"format\": \"date\" }, or \"date-time\" for an instant"),
    ("datetime", INSTANT),
    ("date-time", INSTANT),
    ("timestamp", INSTANT),
    ("time", INSTANT),
    ("decimal", DECIMAL),
    ("money", DECIMAL),
    ("uuid", "{ \"type\": \"string\", \"format\": \"uuid\" }"),
    ("email", "{ \"type\": \"string\", \"format\": \"email\" }"),
    ("uri", "{ \"type\": \"string\", \"format\": \"uri\" }"),
    ("url", "{ \"type\": \"string\", \"format\": \"uri\" }"),
    ("none", "\"null\""),
];
const INSTANT: &str = "{ \"type\": \"string\", \"format\": \"date-time\" }";
const DECIMAL: &str = "{ \"type\": \"string\", \"format\": \"decimal\" }";

/// Names of formats elsewhere.
const FORMATS: [(&str, &str); 10] = [
    ("uuid4", "uuid"),
    ("guid", "uuid"),
    ("datetime", "date-time"),
    ("timestamp", "date-time"),
    ("iso8601", "date-time"),
    ("day", "date"),
    ("url", "uri"),
    ("mail", "email"),
    ("number", "decimal"),
    ("money", "decimal"),
];

/// Names of members elsewhere, and the members that belong into another object.
const MEMBERS: [(&str, &str); 12] = [
    ("collection", "did you mean \"history\"? The collection of owners stands in \"owner\""),
    ("schema", "did you mean \"item\"?"),
    ("indexes", "did you mean \"filters\", which need no index?"),
    ("limit", "did you mean \"pageSize\"?"),
    ("timestamp", "did you mean \"date\", which names a property?"),
    ("description", IN_ITEM),
    ("properties", IN_ITEM),
    ("required", IN_ITEM),
    ("additionalProperties", IN_ITEM),
    ("type", IN_ITEM),
    ("examples", IN_ITEM),
    ("$defs", IN_ITEM),
];
const IN_ITEM: &str = "it belongs into \"item\"";

/// The rule that a keyword breaks which the subset does not have.
pub(crate) fn unknown_keyword(keyword: &str, known: &[&str]) -> String {
    unknown("is not a keyword that a definition may use", keyword, &KEYWORDS, known)
}

/// The rule that a member of a definition breaks which it must not have.
pub fn unknown_member(name: &str, known: &[&str]) -> String {
    unknown("is not a member of a definition", name, &MEMBERS, known)
}

fn unknown(rule: &str, name: &str, slips: &[(&str, &str)], known: &[&str]) -> String {
    let slip =
        slips.iter().find(|(slip, _)| slip.eq_ignore_ascii_case(name)).map(|(_, hint)| format!(": {hint}"));
    rule.to_owned() + &slip.unwrap_or_else(|| did_you_mean(name, known.iter().copied()))
}

/// The end of a sentence about a type that is none.
pub(crate) fn of_type(name: &str) -> String {
    let slip = TYPES.iter().find(|(slip, _)| slip.eq_ignore_ascii_case(name));
    let names = ["string", "integer", "number", "boolean", "array", "object", "null"];
    slip.map_or_else(|| did_you_mean(name, names), |(_, hint)| format!(": did you mean {hint}?"))
}

/// The end of a sentence about a format that is none of `known`.
pub(crate) fn of_format(name: &str, known: &[&str]) -> String {
    let slip = FORMATS.iter().find(|(slip, _)| slip.eq_ignore_ascii_case(name));
    let nearest = || did_you_mean(name, known.iter().copied());
    slip.map_or_else(nearest, |(_, format)| format!(": did you mean {format:?}?"))
}

/// The end of a sentence about a keyword that says nothing of these types.
pub(crate) fn of_other_type(keyword: &str, kinds: Kinds) -> String {
    let meant = match keyword {
        "minLength" | "minItems" | "minimum" => ["minimum", "minItems", "minLength"],
        "maxLength" | "maxItems" | "maximum" => ["maximum", "maxItems", "maxLength"],
        "format" if kinds == Kinds::NUMBER => {
            return ": an integer is within 53 bits, and a number is a double".to_owned();
        }
        _ => return String::new(),
    };
    let of_kind = [Kinds::NUMBER, Kinds::ARRAY, Kinds::STRING].into_iter().zip(meant);
    let meant = of_kind.filter(|(kind, _)| kinds == *kind).map(|(_, keyword)| keyword).next();
    meant.map_or_else(String::new, |keyword| format!(": did you mean {keyword:?}?"))
}

/// The end of a sentence about a name that is none of `known`: the nearest of them, if one is near.
pub fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    if name.len() > LONGEST {
        return String::new();
    }
    let letters = |name: &str| name.replace(['_', '-', '$'], "").to_ascii_lowercase();
    let written = letters(name);
    let slips = |known: &'k str| (strsim::damerau_levenshtein(&written, &letters(known)), known);
    // Of a short name, two letters are most of it.
    let most = MOST_SLIPS.min(written.chars().count() / 3);
    let nearest = known.into_iter().map(slips).filter(|(slips, _)| *slips <= most).min();
    nearest.map_or_else(String::new, |(_, known)| format!(": did you mean {known:?}?"))
}

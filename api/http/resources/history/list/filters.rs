//! Filters of a listing: the properties that its items must have, each with one value or with one of several.

use pagebucket_model::definition::Definition;

use crate::request::params::ParameterReader;
use crate::resources::links::{MOST_FILTER_BYTES, MOST_FILTER_VALUES};

/// A property, and the values of which an item must have one there: at least one, in ascending order.
pub(crate) type Filter = (String, Vec<String>);

/// Reads the filters of a request, in the order of the definition.
pub(crate) fn filters(reader: &mut ParameterReader<'_>, definition: &Definition) -> Vec<Filter> {
    filters_by(reader, definition, &definition.filters)
}

/// Reads filters by these properties.
pub(crate) fn filters_by(
    reader: &mut ParameterReader<'_>,
    definition: &Definition,
    names: &[String],
) -> Vec<Filter> {
    let (mut filters, mut bytes) = (Vec::new(), 0);
    for name in names {
        let parse = |text: &str| definition.item.check_text(name, text).map(|()| text.to_owned());
        let Some(mut values) = reader.repeated(name, MOST_FILTER_VALUES, parse) else { continue };
        // Links repeat the name with each value.
        bytes +=
            values.iter().map(String::len).sum::<usize>() + (values.len() - 1) * (name.len() + "&=".len());
        if bytes > MOST_FILTER_BYTES {
            let rule = format!(
                "must have at most {MOST_FILTER_BYTES} bytes, together with the other filters, and with its name for each further value"
            );
            reader.refuse(name.clone(), rule);
        }
        // One selection has one form, whatever the order of its values.
        values.sort_unstable();
        filters.push((name.clone(), values));
    }
    filters
}

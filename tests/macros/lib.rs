//! The attributes that register the integration tests with their harness (`tests/integration/harness.rs`).
//!
//! An attribute only reads the name of its function, and leaves the function as it is.

use proc_macro::{TokenStream, TokenTree};

/// An integration test: `#[test] async fn answers() { … }`.
#[proc_macro_attribute]
pub fn test(arguments: TokenStream, function: TokenStream) -> TokenStream {
    let Some(name) = name(&function) else { return refused("`test` stands above a function") };
    if !arguments.is_empty() {
        return refused("`test` takes no arguments; a test of histories has `test_over`");
    }
    registered(
        function,
        &format!(
            "Registered {{ module: module_path!(), name: \"{name}\", trial: |name| crate::harness::trial(name, {name}) }}"
        ),
    )
}

/// An integration test that runs once for each history of a list: `#[test_over(ALL)] async fn
/// answers(history: &'static History) { … }` makes `answers::trades` and others.
#[proc_macro_attribute]
pub fn test_over(histories: TokenStream, function: TokenStream) -> TokenStream {
    let Some(name) = name(&function) else { return refused("`test_over` stands above a function") };
    if histories.is_empty() {
        return refused("`test_over` takes a list of histories");
    }
    registered(
        function,
        &format!(
            "RegisteredOver {{ module: module_path!(), name: \"{name}\", histories: {histories}, \
             trial: |name, history| crate::harness::trial(name, move || {name}(history)) }}"
        ),
    )
}

/// The function, and beside it its entry in the harness's list.
fn registered(function: TokenStream, entry: &str) -> TokenStream {
    let submit = format!("::inventory::submit! {{ crate::harness::{entry} }}");
    function.into_iter().chain(submit.parse::<TokenStream>().expect("an item")).collect()
}

/// What follows the word `fn`.
fn name(function: &TokenStream) -> Option<String> {
    let mut tokens = function.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word.to_string() == "fn"))?;
    tokens.next().map(|name| name.to_string())
}

fn refused(why: &str) -> TokenStream {
    format!("compile_error!({why:?});").parse().expect("an item")
}

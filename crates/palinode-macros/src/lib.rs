//! Palinode's macros.
//!
//! Input: the text of a type or a function. Output: the implementation that would otherwise be written by
//! hand, or an error at the place of the mistake.
//!
//! | macro | writes |
//! |---|---|
//! | [`#[derive(Reals)]`](macro@Reals) | the traversal of a type with numbers inside |
//! | [`#[derive(Plain)]`](macro@Plain) | the same for a type without |
//! | [`#[step]`](macro@step) | a `Step` from a generic function |
//!
//! Invariants: what is written uses public items by their full paths, so nothing has to be imported; it works
//! for packages that depend on `palinode` and for those that depend on `palinode-core` and `palinode-time`.
//! Absent: calculus, and dependencies on other packages of Palinode, even for tests: a package of macros is
//! built for the host, so tests here would build all of them a second time. The examples are in `palinode`,
//! the tests in `palinode-time`.

mod fields;
mod paths;
mod plain;
mod reals;
mod step;

use proc_macro::TokenStream;
use syn::{DeriveInput, ItemFn, parse_macro_input};

/// Writes `Reals<S>` for a struct or an enum, where `S` is the first type parameter.
///
/// A field whose type names `S` holds numbers and must be `Reals<S>`; any other field is data and must be
/// `Plain`. An enum writes which variant it is as a word. What is reloaded keeps its memory where the shape
/// (the variant, for an enum) is the same.
///
/// Other type parameters, constants, lifetimes and `where` clauses pass through; another type parameter must
/// be `Plain`, or `Reals<S>` if it stands in a type that names `S` as well. Refused are a type without a type
/// parameter, which has no number to find; a union; and a field that is a reference.
#[proc_macro_derive(Reals)]
pub fn derive_reals(input: TokenStream) -> TokenStream {
    written(reals::derive(&parse_macro_input!(input as DeriveInput)))
}

/// Writes `Plain` for a struct or an enum whose fields are all `Plain`: data without numbers to differentiate
/// by.
#[proc_macro_derive(Plain)]
pub fn derive_plain(input: TokenStream) -> TokenStream {
    written(plain::derive(&parse_macro_input!(input as DeriveInput)))
}

/// Makes a generic function one step of a loop: a `Step` of `palinode-time`.
///
/// The function takes the state as `&mut`, then the parameters, then what enters at one step; the last two
/// may be missing. It may take them by reference or, if they can be copied, by value. An argument whose type
/// does not name the number is data that is not differentiated by (`PlainInput` around it).
///
/// The name of the function becomes that of a value, so no variable of its module can have this name. With a
/// name of its own, `#[step(Name)]`, the step leaves the function as it is.
///
/// Refused are functions that are not generic, that do not begin with `&mut`, that are `async`, `unsafe` or
/// `const`, or that return something.
#[proc_macro_attribute]
pub fn step(name: TokenStream, function: TokenStream) -> TokenStream {
    let name = parse_macro_input!(name as Option<syn::Ident>);
    let function = parse_macro_input!(function as ItemFn);
    written(paths::time().and_then(|time| step::expand(name, function, &time)))
}

fn written(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|mistake| mistake.to_compile_error()).into()
}

//! Where the traits are, seen from the package that uses a macro.
//!
//! Input: the manifest of that package. Output: a path. The package itself is named from outside as well
//! (`::palinode_core`), which also holds in its tests and examples.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Error, Ident, Result};

/// The path of `palinode_core`, itself or in the facade.
pub(crate) fn core() -> Result<TokenStream> {
    let facade = || package("palinode").map(|palinode| quote!(#palinode::__core));
    package("palinode-core").or_else(facade).ok_or_else(|| missing("palinode-core"))
}

/// The path of `palinode_time`, itself or in the facade.
pub(crate) fn time() -> Result<TokenStream> {
    let facade = || package("palinode").map(|palinode| quote!(#palinode::time));
    package("palinode-time").or_else(facade).ok_or_else(|| missing("palinode-time"))
}

fn package(name: &str) -> Option<TokenStream> {
    let name = match crate_name(name).ok()? {
        FoundCrate::Itself => name.replace('-', "_"),
        FoundCrate::Name(renamed) => renamed,
    };
    let name = Ident::new(&name, Span::call_site());
    Some(quote!(::#name))
}

fn missing(package: &str) -> Error {
    let text =
        format!("neither `palinode` nor `{package}` is a dependency of this package; add one to Cargo.toml");
    Error::new(Span::call_site(), text)
}

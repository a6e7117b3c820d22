//! `#[derive(Plain)]`.
//!
//! Input: a struct or an enum without numbers to differentiate by. Output: `impl Plain`, field by field;
//! every type parameter that a field names must be `Plain`.

use crate::fields::{Shapes, Trait, Way, names};
use crate::paths;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, parse_quote};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let shapes = Shapes::of(input, "Plain")?;
    let core = paths::core()?;
    let plain = quote!(#core::Plain);
    let of = Trait {
        path: plain.clone(),
        sink: quote!(::core::ops::FnMut(u64)),
        source: quote!(::core::ops::FnMut() -> u64),
        put: |word| quote!(to(#word);),
        get: quote!(from()),
    };
    let parameters = input.generics.type_params().map(|parameter| &parameter.ident);
    let named = parameters.filter(|parameter| shapes.types().any(|ty| names(ty, parameter)));
    let bounds = named.map(|parameter| parse_quote!(#parameter: #plain)).collect();
    Ok(shapes.implement(input, bounds, &of, |_| Way {
        by: plain.clone(),
        to: quote!(to),
        from: quote!(from),
    }))
}

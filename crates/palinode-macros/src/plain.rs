//! `#[derive(Plain)]`.
//!
//! Input: a struct or an enum without numbers to differentiate by. Output: `impl Plain`, field by field;
//! every type parameter that a field names must be `Plain`.

use crate::fields::{Part, PerField, Shapes, method, names};
use crate::paths;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Result, parse_quote};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let shapes = Shapes::of(input, "Plain")?;
    let core = paths::core()?;
    let plain = quote!(#core::Plain);
    let bodies = shapes.bodies(
        |word| quote!(to(#word);),
        &quote!(from()),
        &PerField {
            save: |part: &Part| {
                let (bound, save) = (&part.bound, method(part, &plain, "save"));
                quote!(#save(#bound, to);)
            },
            load: |part: &Part| {
                let load = method(part, &plain, "load");
                quote!(#load(from))
            },
            reload: |part: &Part| {
                let (bound, reload) = (&part.bound, method(part, &plain, "reload"));
                quote!(#reload(#bound, from);)
            },
            heap: |part: &Part| {
                let (bound, heap) = (&part.bound, method(part, &plain, "heap_bytes"));
                quote!(#heap(#bound))
            },
        },
    );
    let mut generics = input.generics.clone();
    let bounds = &mut generics.make_where_clause().predicates;
    for parameter in input.generics.type_params().map(|parameter| &parameter.ident) {
        if shapes.types().any(|ty| names(ty, parameter)) {
            bounds.push(parse_quote!(#parameter: #plain));
        }
    }
    let (for_all, _, where_clause) = generics.split_for_impl();
    let (_, of, _) = input.generics.split_for_impl();
    let name = &input.ident;
    let (save, load, reload, heap) = (bodies.save, bodies.load, bodies.reload, bodies.heap);
    Ok(quote! {
        #[automatically_derived]
        #[allow(unreachable_patterns, unused_variables)]
        impl #for_all #plain for #name #of #where_clause {
            #[inline]
            fn save(&self, to: &mut impl ::core::ops::FnMut(u64)) {
                #save
            }
            #[inline]
            fn load(from: &mut impl ::core::ops::FnMut() -> u64) -> Self {
                #load
            }
            #[inline]
            fn reload(&mut self, from: &mut impl ::core::ops::FnMut() -> u64) {
                #reload
            }
            fn heap_bytes(&self) -> usize {
                #heap
            }
        }
    })
}

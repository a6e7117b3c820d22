//! `#[derive(Reals)]`.
//!
//! Input: a struct or an enum over a number. Output: `impl Reals<S>`: fields that name `S` by `Reals<S>`, the
//! others by `Plain`.
//!
//! The bounds are on type parameters, not on the types of fields: those would make a type that contains
//! itself (a tree) ask for its own implementation without end, and would show private types to the outside.

use crate::fields::{Part, PerField, Shapes, method, names};
use crate::paths;
use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Result, parse_quote};

pub(crate) fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Some(number) = input.generics.type_params().next().map(|parameter| &parameter.ident) else {
        let name = &input.ident;
        let text = format!(
            "`{name}` has no type parameter to stand for the number; write `{name}<S>` with `S` in place of `f64`, \
             or derive `Plain` if it holds nothing to differentiate by"
        );
        return Err(Error::new_spanned(name, text));
    };
    let shapes = Shapes::of(input, "Reals")?;
    let core = paths::core()?;
    let (reals, plain) = (quote!(#core::Reals<#number>), quote!(#core::Plain));

    let has_numbers = |part: &Part| names(part.ty, number);
    let (put_word, get_word) = (
        quote!(&mut |word| #core::Sink::<#number>::word(to, word)),
        quote!(&mut || #core::Source::<#number>::word(from)),
    );
    let bodies = shapes.bodies(
        |word| quote!(#core::Sink::<#number>::word(to, #word);),
        &quote!(#core::Source::<#number>::word(from)),
        &PerField {
            save: |part: &Part| {
                let bound = &part.bound;
                if has_numbers(part) {
                    let save = method(part, &reals, "save");
                    quote!(#save(#bound, to);)
                } else {
                    let save = method(part, &plain, "save");
                    quote!(#save(#bound, #put_word);)
                }
            },
            load: |part: &Part| {
                if has_numbers(part) {
                    let load = method(part, &reals, "load");
                    quote!(#load(from))
                } else {
                    let load = method(part, &plain, "load");
                    quote!(#load(#get_word))
                }
            },
            reload: |part: &Part| {
                let bound = &part.bound;
                if has_numbers(part) {
                    let reload = method(part, &reals, "reload");
                    quote!(#reload(#bound, from);)
                } else {
                    let reload = method(part, &plain, "reload");
                    quote!(#reload(#bound, #get_word);)
                }
            },
            heap: |part: &Part| {
                let bound = &part.bound;
                let heap = method(part, if has_numbers(part) { &reals } else { &plain }, "heap_bytes");
                quote!(#heap(#bound))
            },
        },
    );

    let mut generics = input.generics.clone();
    let bounds = &mut generics.make_where_clause().predicates;
    // `PartialEq` so that nalgebra's matrices can be fields.
    bounds.push(parse_quote!(#number: #core::Scalar + ::core::cmp::PartialEq + #reals));
    for other in input.generics.type_params().skip(1).map(|parameter| &parameter.ident) {
        let (numeric, data): (Vec<_>, Vec<_>) =
            shapes.types().filter(|ty| names(ty, other)).partition(|ty| names(ty, number));
        if !numeric.is_empty() {
            bounds.push(parse_quote!(#other: #reals));
        }
        if !data.is_empty() {
            bounds.push(parse_quote!(#other: #plain));
        }
    }
    let (for_all, _, where_clause) = generics.split_for_impl();
    let (_, of, _) = input.generics.split_for_impl();
    let name = &input.ident;
    let (save, load, reload, heap) = (bodies.save, bodies.load, bodies.reload, bodies.heap);
    Ok(quote! {
        #[automatically_derived]
        #[allow(unreachable_patterns, unused_variables)]
        impl #for_all #reals for #name #of #where_clause {
            #[inline]
            fn save(&self, to: &mut impl #core::Sink<#number>) {
                #save
            }
            #[inline]
            fn load(from: &mut impl #core::Source<#number>) -> Self {
                #load
            }
            #[inline]
            fn reload(&mut self, from: &mut impl #core::Source<#number>) {
                #reload
            }
            fn heap_bytes(&self) -> usize {
                #heap
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(input: DeriveInput) -> String {
        derive(&input).expect_err("it should be refused").to_string()
    }

    #[test]
    fn refusals_say_what_to_do() {
        let text = refusal(parse_quote!(
            struct Point {
                x: f64,
            }
        ));
        assert!(text.contains("`Point` has no type parameter") && text.contains("derive `Plain`"), "{text}");
        let text = refusal(parse_quote!(union Either<S> { number: S, bits: u64 }));
        assert!(text.contains("union") && text.contains("use an enum"), "{text}");
        let text = refusal(parse_quote!(
            struct View<'a, S> {
                numbers: &'a [S],
            }
        ));
        assert!(text.contains("a reference cannot be loaded"), "{text}");
        let text = refusal(parse_quote!(
            enum Never<S> {}
        ));
        assert!(text.contains("without variants"), "{text}");
    }
}

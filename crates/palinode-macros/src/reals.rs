//! `#[derive(Reals)]`.
//!
//! Input: a struct or an enum over a number. Output: `impl Reals<S>`: fields that name `S` by `Reals<S>`, the
//! others by `Plain`.
//!
//! The bounds are on type parameters, not on the types of fields: those would make a type that contains
//! itself (a tree) ask for its own implementation without end, and would show private types to the outside.

use crate::fields::{Shapes, Trait, Way, names};
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

    let of = Trait {
        path: reals.clone(),
        sink: quote!(#core::Sink<#number>),
        source: quote!(#core::Source<#number>),
        put: |word| quote!(#core::Sink::<#number>::word(to, #word);),
        get: quote!(#core::Source::<#number>::word(from)),
    };
    // `PartialEq` so that nalgebra's matrices can be fields.
    let mut bounds = vec![parse_quote!(#number: #core::Scalar + ::core::cmp::PartialEq + #reals)];
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
    Ok(shapes.implement(input, bounds, &of, |part| match names(part.ty, number) {
        true => Way { by: reals.clone(), to: quote!(to), from: quote!(from) },
        false => Way {
            by: plain.clone(),
            to: quote!(&mut |word| #core::Sink::<#number>::word(to, word)),
            from: quote!(&mut || #core::Source::<#number>::word(from)),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        for (input, said) in [
            ("struct Point { x: f64 }", ["`Point` has no type parameter", "derive `Plain`"]),
            ("union Either<S> { number: S, bits: u64 }", ["union", "use an enum"]),
            ("struct View<'a, S> { numbers: &'a [S] }", ["a reference cannot be loaded", "keep the value"]),
            ("enum Never<S> {}", ["without variants", "`Reals`"]),
        ] {
            let input = syn::parse_str(input).expect("a type");
            let text = derive(&input).expect_err("it should be refused").to_string();
            assert!(said.iter().all(|said| text.contains(said)), "{text}");
        }
    }
}

//! `#[step]`.
//!
//! Input: a generic function that changes its first argument. Output: a unit struct that is a `Step`, and the
//! function: as `call` of that struct, or left as it is if the attribute names the struct (`#[step(Name)]`).

use crate::fields::names;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericParam, ItemFn, PatType, Result, ReturnType, Type, Visibility};

/// How an argument of the function is made from an argument of the step.
struct Argument {
    /// The associated type.
    ty: TokenStream,
    /// What is passed on; nothing if the function has no such argument.
    passed: Option<TokenStream>,
}

/// The step, by that name or that of the function; `time` is the path of `palinode_time`.
pub(crate) fn expand(name: Option<Ident>, function: ItemFn, time: &TokenStream) -> Result<TokenStream> {
    let number = check_signature(&function)?;
    let mut arguments = function.sig.inputs.iter().map(typed);
    let state = state_type(arguments.next().transpose()?, &function)?;
    let mut argument = |place: TokenStream| argument(arguments.next().transpose()?, &place, &number, time);
    let (params, input) = (argument(quote!(params))?, argument(quote!(input))?);
    let (params_type, input_type) = (&params.ty, &input.ty);
    let passed = [Some(quote!(state)), params.passed, input.passed].into_iter().flatten();

    let ItemFn { attrs, vis, sig, block, .. } = &function;
    let (docs, others): (Vec<_>, Vec<_>) =
        attrs.iter().partition(|attribute| attribute.path().is_ident("doc"));
    // A state `Vec<S>` is taken as `&mut Vec<S>`: a slice would not be a state.
    let quiet = quote!(#[allow(clippy::ptr_arg)]);
    let (step, kept, callee) = match name {
        Some(name) => {
            let callee = &sig.ident;
            (name, quote!(#quiet #function), quote!(#callee))
        }
        None => {
            let step = sig.ident.clone();
            let mut sig = sig.clone();
            sig.ident = Ident::new("call", step.span());
            let kept = quote! {
                impl #step {
                    /// The step as a function.
                    #(#others)*
                    #quiet
                    #vis #sig #block
                }
            };
            (step.clone(), kept, quote!(#step::call))
        }
    };
    let docs = if docs.is_empty() {
        let text = format!("The step `{}`.", sig.ident);
        quote!(#[doc = #text])
    } else {
        quote!(#(#docs)*)
    };
    let call = quote_spanned!(number.span()=> #callee::<#number>(#(#passed),*));
    let vis: &Visibility = vis;
    Ok(quote! {
        #docs
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #vis struct #step;

        #kept

        impl #time::Step for #step {
            type State<#number: #time::Number> = #state;
            type Params<#number: #time::Number> = #params_type;
            type Input<#number: #time::Number> = #input_type;

            #[inline]
            fn step<#number: #time::Number>(
                &self,
                state: &mut Self::State<#number>,
                params: &Self::Params<#number>,
                input: &Self::Input<#number>,
            ) {
                #call
            }
        }
    })
}

/// The name of the number, if everything but the arguments is as it must be.
fn check_signature(function: &ItemFn) -> Result<Ident> {
    let signature = &function.sig;
    let refuse = |place: &dyn ToTokens, text: &str| Err(Error::new_spanned(place, text));
    if let Some(token) = &signature.asyncness {
        return refuse(token, "a step is run again when its state is needed again, so it cannot be `async`");
    }
    if let Some(token) = &signature.constness {
        return refuse(token, "a step computes with any number, so it cannot be `const`");
    }
    let unsafety = signature.safety.to_token_stream();
    if !unsafety.is_empty() {
        return refuse(&unsafety, "a step is called by safe code, so it cannot be `unsafe`");
    }
    if let ReturnType::Type(arrow, ty) = &signature.output {
        let text = "a step returns nothing: it changes its state; keep what should come out in the state";
        return refuse(&quote!(#arrow #ty), text);
    }
    if signature.inputs.len() > 3 {
        let text = "a step takes at most a state, parameters and an input; group several values in a struct with `#[derive(Reals)]`";
        return refuse(&signature.inputs[3], text);
    }
    let mut number = None;
    for parameter in &signature.generics.params {
        match parameter {
            GenericParam::Type(parameter) if number.is_none() => number = Some(parameter.ident.clone()),
            GenericParam::Type(_) | GenericParam::Const(_) => {
                let text = "`#[step]` takes one type parameter, the number; implement `Step` by hand for a generic step";
                return refuse(parameter, text);
            }
            GenericParam::Lifetime(_) => {
                return refuse(
                    parameter,
                    "the arguments of a step have no named lifetimes; leave the lifetime out",
                );
            }
        }
    }
    number.ok_or_else(|| {
        let text = format!(
            "a step is generic over the number: write `fn {}<S: Real>(...)` with `S` in place of `f64`",
            signature.ident
        );
        Error::new_spanned(&signature.ident, text)
    })
}

fn typed(argument: &FnArg) -> Result<&PatType> {
    match argument {
        FnArg::Typed(argument) => Ok(argument),
        FnArg::Receiver(receiver) => Err(Error::new_spanned(
            receiver,
            "a step is a function of its own; for a step with `self`, implement `Step` by hand",
        )),
    }
}

fn state_type(argument: Option<&PatType>, function: &ItemFn) -> Result<Type> {
    let text = "a step begins with its state as `&mut`, for example `state: &mut [S; 3]`";
    let Some(argument) = argument else {
        return Err(Error::new_spanned(&function.sig.ident, text));
    };
    match &*argument.ty {
        Type::Reference(reference) if reference.mutability.is_some() => sized(&reference.elem).cloned(),
        other => Err(Error::new_spanned(other, text)),
    }
}

fn argument(
    argument: Option<&PatType>,
    place: &TokenStream,
    number: &Ident,
    time: &TokenStream,
) -> Result<Argument> {
    let Some(argument) = argument else {
        return Ok(Argument { ty: quote!(()), passed: None });
    };
    let (ty, by_reference) = match &*argument.ty {
        Type::Reference(reference) if reference.mutability.is_some() => {
            return Err(Error::new_spanned(
                reference,
                "only the state, the first argument, is changed by a step; take this as `&`",
            ));
        }
        Type::Reference(reference) => (sized(&reference.elem)?, true),
        ty => (sized(ty)?, false),
    };
    let is_unit = matches!(ty, Type::Tuple(tuple) if tuple.elems.is_empty());
    let is_plain = !is_unit && !names(ty, number);
    let span = ty.span();
    let passed = match (is_plain, by_reference) {
        (false, false) if is_unit => quote!(()),
        (false, true) => quote!(#place),
        (false, false) => quote_spanned!(span=> *#place),
        (true, true) => quote!(&#place.0),
        (true, false) => quote_spanned!(span=> #place.0),
    };
    let ty = if is_plain { quote!(#time::PlainInput<#ty>) } else { quote!(#ty) };
    Ok(Argument { ty, passed: Some(passed) })
}

fn sized(ty: &Type) -> Result<&Type> {
    match ty {
        Type::Slice(slice) => Err(Error::new_spanned(
            slice,
            "a slice does not own its numbers; take a `Vec<S>` or an array `[S; N]`",
        )),
        Type::ImplTrait(_) => {
            Err(Error::new_spanned(ty, "a step needs to know this type; `impl Trait` does not name one"))
        }
        _ => Ok(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let said = [
            ("fn f(x: &mut f64) {}", "write `fn f<S: Real>(...)`"),
            ("fn f<S: Real>() {}", "begins with its state as `&mut`"),
            ("fn f<S: Real>(x: &S) {}", "begins with its state as `&mut`"),
            ("fn f<S: Real>(x: S) {}", "begins with its state as `&mut`"),
            ("async fn f<S: Real>(x: &mut S) {}", "cannot be `async`"),
            ("const fn f<S: Real>(x: &mut S) {}", "cannot be `const`"),
            ("unsafe fn f<S: Real>(x: &mut S) {}", "cannot be `unsafe`"),
            ("fn f<S: Real>(x: &mut S) -> S { *x }", "returns nothing"),
            ("fn f<S: Real>(x: &mut S, p: &mut S) {}", "only the state"),
            ("fn f<S: Real>(x: &mut S, p: &S, i: &S, j: &S) {}", "at most"),
            ("fn f<S: Real, const N: usize>(x: &mut [S; N]) {}", "one type parameter"),
            ("fn f<S: Real>(x: &mut [S]) {}", "take a `Vec<S>`"),
            ("fn f<S: Real>(&self, x: &mut S) {}", "implement `Step` by hand"),
        ];
        for (function, expected) in said {
            let function = syn::parse_str(function).expect("a function");
            let text =
                expand(None, function, &quote!(palinode_time)).expect_err("it should be refused").to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}

//! What the two derives share: variants, fields, patterns, and which type parameters a type names.
//!
//! Input: a struct or an enum. Output: its variants with a name for each field, and the text of an
//! implementation, given what is done with one field. A struct is a type with one variant that needs no word.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Error, Field, Fields, Result, Type, WherePredicate};

/// One field: how it is named in the type, what it is called in a pattern, and its type.
pub(crate) struct Part<'a> {
    member: syn::Member,
    bound: Ident,
    pub(crate) ty: &'a Type,
}

/// One variant of an enum, or the only shape of a struct.
struct Shape<'a> {
    path: TokenStream,
    parts: Vec<Part<'a>>,
}

/// The shapes of a type, with a word for each if there can be several.
pub(crate) struct Shapes<'a> {
    all: Vec<Shape<'a>>,
    numbered: bool,
}

/// How a field is saved and loaded: by which trait, to what and from what.
pub(crate) struct Way {
    pub(crate) by: TokenStream,
    pub(crate) to: TokenStream,
    pub(crate) from: TokenStream,
}

/// A trait to implement: its path, the types of its sinks and sources, and how a word is put to `to` and got
/// from `from`.
pub(crate) struct Trait<Put> {
    pub(crate) path: TokenStream,
    pub(crate) sink: TokenStream,
    pub(crate) source: TokenStream,
    pub(crate) put: Put,
    pub(crate) get: TokenStream,
}

impl<'a> Shapes<'a> {
    /// Reads the type; `what` is the trait, for messages.
    pub(crate) fn of(input: &'a DeriveInput, what: &str) -> Result<Self> {
        match &input.data {
            Data::Struct(data) => {
                Ok(Shapes { all: vec![Shape::of(quote!(Self), &data.fields)?], numbered: false })
            }
            Data::Enum(data) if data.variants.is_empty() => Err(Error::new_spanned(
                &input.ident,
                format!("an enum without variants has no value, so nothing can be `{what}`"),
            )),
            Data::Enum(data) => {
                let shape = |variant: &'a syn::Variant| {
                    let name = &variant.ident;
                    Shape::of(quote!(Self::#name), &variant.fields)
                };
                Ok(Shapes { all: data.variants.iter().map(shape).collect::<Result<_>>()?, numbered: true })
            }
            Data::Union(data) => {
                let text = format!("`{what}` cannot know which field of a union holds; use an enum");
                Err(Error::new_spanned(data.union_token, text))
            }
        }
    }

    /// The types of all fields.
    pub(crate) fn types(&self) -> impl Iterator<Item = &'a Type> {
        self.all.iter().flat_map(|shape| shape.parts.iter().map(|part| part.ty))
    }

    /// The implementation for this type, with these bounds besides its own; `way` says what is done with a
    /// field.
    pub(crate) fn implement(
        &self,
        input: &DeriveInput,
        bounds: Vec<WherePredicate>,
        of: &Trait<impl Fn(u64) -> TokenStream>,
        way: impl Fn(&Part) -> Way,
    ) -> TokenStream {
        let Trait { path, sink, source, put, get } = of;
        let (mut saves, mut loads, mut reloads, mut heaps) = (vec![], vec![], vec![], vec![]);
        for (number, shape) in self.all.iter().enumerate() {
            let number = number as u64;
            let pattern = shape.pattern();
            let word = self.numbered.then(|| put(number));
            let (mut save, mut loaded, mut reload, mut heap) = (vec![], vec![], vec![], vec![]);
            for part in &shape.parts {
                let (Part { member, bound, .. }, Way { by, to, from }) = (part, way(part));
                let method = |name: &str| method(part, &by, name);
                let (save_to, load_from) = (method("save"), method("load"));
                let (reload_from, heap_bytes) = (method("reload"), method("heap_bytes"));
                save.push(quote!(#save_to(#bound, #to);));
                loaded.push(quote!(#member: #load_from(#from)));
                reload.push(quote!(#reload_from(#bound, #from);));
                heap.push(quote!(#heap_bytes(#bound)));
            }
            let of_shape = &shape.path;
            let loaded = quote!(#of_shape { #(#loaded),* });
            saves.push(quote!(#pattern => { #word #(#save)* }));
            if self.numbered {
                loads.push(quote!(#number => #loaded,));
                reloads.push(quote!((#number, #pattern) => { #(#reload)* }));
                reloads.push(quote!((#number, __other) => *__other = #loaded,));
            } else {
                loads.push(loaded);
                reloads.push(quote!(#pattern => { #(#reload)* }));
            }
            heaps.push(quote!(#pattern => 0 #(+ #heap)*,));
        }
        let unknown = quote!(::core::panic!(
            "there is no variant with the number {}: a value of another type was saved here",
            __unknown
        ));
        let (load, reload) = if self.numbered {
            (
                quote!(match #get { #(#loads)* __unknown => #unknown }),
                quote!(match (#get, self) { #(#reloads)* (__unknown, _) => #unknown }),
            )
        } else {
            (quote!(#(#loads)*), quote!(match self { #(#reloads)* }))
        };
        let mut generics = input.generics.clone();
        generics.make_where_clause().predicates.extend(bounds);
        let (for_all, _, where_clause) = generics.split_for_impl();
        let (_, arguments, _) = input.generics.split_for_impl();
        let name = &input.ident;
        quote! {
            #[automatically_derived]
            #[allow(unreachable_patterns, unused_variables)]
            impl #for_all #path for #name #arguments #where_clause {
                #[inline]
                fn save(&self, to: &mut impl #sink) {
                    match self { #(#saves)* }
                }
                #[inline]
                fn load(from: &mut impl #source) -> Self {
                    #load
                }
                #[inline]
                fn reload(&mut self, from: &mut impl #source) {
                    #reload
                }
                fn heap_bytes(&self) -> usize {
                    match self { #(#heaps)* }
                }
            }
        }
    }
}

impl<'a> Shape<'a> {
    fn of(path: TokenStream, fields: &'a Fields) -> Result<Self> {
        let parts = fields.members().zip(fields).enumerate().map(|(position, (member, field))| {
            no_reference(field)?;
            Ok(Part { member, bound: format_ident!("__field_{position}"), ty: &field.ty })
        });
        Ok(Shape { path, parts: parts.collect::<Result<_>>()? })
    }

    /// Braces and numbers (`Self { 0: a }`) serve named, unnamed and no fields alike.
    fn pattern(&self) -> TokenStream {
        let path = &self.path;
        let parts = self.parts.iter().map(|Part { member, bound, .. }| quote!(#member: #bound));
        quote!(#path { #(#parts),* })
    }
}

fn no_reference(field: &Field) -> Result<()> {
    match &field.ty {
        Type::Reference(reference) => Err(Error::new_spanned(
            reference,
            "a reference cannot be loaded from saved words; keep the value itself (`Vec<S>`, `[S; N]`, `Box<T>`), \
             or pass what is shared as a parameter",
        )),
        _ => Ok(()),
    }
}

/// Whether a name stands anywhere in this text.
pub(crate) fn names(text: impl ToTokens, name: &Ident) -> bool {
    text.into_token_stream().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == *name,
        TokenTree::Group(group) => names(group.stream(), name),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

/// A trait's function on a type, blamed on the field's type if the type does not have the trait.
fn method(part: &Part, path: &TokenStream, name: &str) -> TokenStream {
    use syn::spanned::Spanned;
    let (ty, name) = (part.ty, format_ident!("{name}"));
    quote_spanned!(ty.span()=> <#ty as #path>::#name)
}

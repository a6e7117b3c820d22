//! What the two derives share: variants, fields, patterns, and which type parameters a type names.
//!
//! Input: a struct or an enum. Output: its variants with a name for each field, and the text of the four
//! methods, given what to write for one field. A struct is a type with one variant that needs no word.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{Data, DeriveInput, Error, Field, Fields, Result, Type};

/// One field: how it is named in the type, what it is called in a pattern, and its type.
pub(crate) struct Part<'a> {
    member: syn::Member,
    pub(crate) bound: Ident,
    pub(crate) ty: &'a Type,
}

/// One variant of an enum, or the only shape of a struct.
pub(crate) struct Shape<'a> {
    path: TokenStream,
    pub(crate) parts: Vec<Part<'a>>,
}

/// The shapes of a type, with a word for each if there can be several.
pub(crate) struct Shapes<'a> {
    pub(crate) all: Vec<Shape<'a>>,
    numbered: bool,
}

/// What to write for one field, by the name that a pattern gave it.
pub(crate) struct PerField<Save, Load, Reload, Heap> {
    pub(crate) save: Save,
    pub(crate) load: Load,
    pub(crate) reload: Reload,
    pub(crate) heap: Heap,
}

/// The bodies of the four methods, over `self`, `to` and `from`.
pub(crate) struct Bodies {
    pub(crate) save: TokenStream,
    pub(crate) load: TokenStream,
    pub(crate) reload: TokenStream,
    pub(crate) heap: TokenStream,
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

    /// The four methods; `put` writes a word to the sink, `get` reads one from the source.
    pub(crate) fn bodies(
        &self,
        put: impl Fn(TokenStream) -> TokenStream,
        get: &TokenStream,
        field: &PerField<
            impl Fn(&Part) -> TokenStream,
            impl Fn(&Part) -> TokenStream,
            impl Fn(&Part) -> TokenStream,
            impl Fn(&Part) -> TokenStream,
        >,
    ) -> Bodies {
        let (mut saves, mut loads, mut reloads, mut heaps) = (vec![], vec![], vec![], vec![]);
        for (number, shape) in self.all.iter().enumerate() {
            let number = number as u64;
            let pattern = shape.pattern();
            let word = self.numbered.then(|| put(quote!(#number)));
            let each =
                |write: &dyn Fn(&Part) -> TokenStream| shape.parts.iter().map(write).collect::<Vec<_>>();
            let save = each(&field.save);
            saves.push(quote!(#pattern => { #word #(#save)* }));
            let loaded = shape.build(&field.load);
            let reload = each(&field.reload);
            if self.numbered {
                loads.push(quote!(#number => #loaded,));
                reloads.push(quote!((#number, #pattern) => { #(#reload)* }));
                reloads.push(quote!((#number, __other) => *__other = #loaded,));
            } else {
                loads.push(loaded);
                reloads.push(quote!(#pattern => { #(#reload)* }));
            }
            let heap = each(&field.heap);
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
        Bodies {
            save: quote!(match self { #(#saves)* }),
            load,
            reload,
            heap: quote!(match self { #(#heaps)* }),
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

    fn build(&self, load: impl Fn(&Part) -> TokenStream) -> TokenStream {
        let path = &self.path;
        let parts = self.parts.iter().map(|part| {
            let (member, loaded) = (&part.member, load(part));
            quote!(#member: #loaded)
        });
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

/// A call of a trait's function on a type, blamed on the field's type if the type does not have the trait.
pub(crate) fn method(part: &Part, path: &TokenStream, name: &str) -> TokenStream {
    use syn::spanned::Spanned;
    let (ty, name) = (part.ty, format_ident!("{name}"));
    quote_spanned!(ty.span()=> <#ty as #path>::#name)
}

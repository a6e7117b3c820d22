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
//! Absent: calculus.

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
/// ```
/// use palinode_core::Snapshot;
/// use palinode_macros::{Plain, Reals};
///
/// #[derive(Reals, Debug, PartialEq)]
/// struct Ball<S> {
///     position: [S; 2],
///     contact: Contact<S>,
///     bounces: u32,
///     colour: Colour,
/// }
///
/// #[derive(Reals, Debug, PartialEq)]
/// enum Contact<S> {
///     Flying,
///     Rolling { friction: S },
/// }
///
/// #[derive(Plain, Debug, PartialEq)]
/// enum Colour {
///     Red,
///     Green,
/// }
///
/// let ball = Ball { position: [1.0, 2.0], contact: Contact::Rolling { friction: 0.1 }, bounces: 3, colour: Colour::Green };
/// let kept = Snapshot::of(&ball);
/// assert_eq!(kept.reals().len(), 3);
/// assert_eq!(kept.plain(), [1, 3, 1]); // rolling, three bounces, green
///
/// let mut other = Ball { position: [0.0; 2], contact: Contact::Flying, bounces: 0, colour: Colour::Red };
/// kept.restore(&mut other);
/// assert_eq!(other, ball);
/// ```
///
/// Other type parameters, constants, lifetimes and `where` clauses pass through; another type parameter must
/// be `Plain`, or `Reals<S>` if it stands in a type that names `S` as well. Refused are a type without a type
/// parameter, which has no number to find,
///
/// ```compile_fail
/// #[derive(palinode_macros::Reals)]
/// struct Point {
///     x: f64,
/// }
/// ```
///
/// a union, and a field that is a reference:
///
/// ```compile_fail
/// #[derive(palinode_macros::Reals)]
/// struct View<'a, S> {
///     numbers: &'a [S],
/// }
/// ```
#[proc_macro_derive(Reals)]
pub fn derive_reals(input: TokenStream) -> TokenStream {
    written(reals::derive(&parse_macro_input!(input as DeriveInput)))
}

/// Writes `Plain` for a struct or an enum whose fields are all `Plain`: data without numbers to differentiate
/// by.
///
/// ```
/// use palinode_core::Plain as _;
/// use palinode_macros::Plain;
///
/// #[derive(Plain, Debug, PartialEq)]
/// enum Order {
///     Keep,
///     Buy { what: String, units: u32 },
/// }
///
/// let order = Order::Buy { what: "tea".into(), units: 12 };
/// let mut words = Vec::new();
/// order.save(&mut |word| words.push(word));
/// let mut words = words.into_iter();
/// assert_eq!(Order::load(&mut || words.next().unwrap()), order);
/// ```
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
/// ```
/// use palinode_core::Real;
/// use palinode_macros::{Reals, step};
/// use palinode_time::{PlainInput, Step};
///
/// #[derive(Reals)]
/// struct Pendulum<S> {
///     angle: S,
///     speed: S,
/// }
///
/// /// Semi-implicit Euler.
/// #[step]
/// fn swing<S: Real>(p: &mut Pendulum<S>, length: &S, dt: f64) {
///     p.speed -= p.angle.sin() / *length * (9.81 * dt);
///     p.angle += p.speed * dt;
/// }
///
/// // `swing` is now a value, to be given to a rollout,
/// let mut state = Pendulum { angle: 0.1, speed: 0.0 };
/// swing.step(&mut state, &1.0, &PlainInput(0.01));
/// // and the function is `swing::call`.
/// swing::call(&mut state, &1.0, 0.01);
/// assert!(state.speed < 0.0);
/// ```
///
/// Because `swing` is then the name of a value, no variable of its module can be called `swing`. With a name
/// of its own the step leaves the function as it is:
///
/// ```
/// # use palinode_core::Real;
/// # use palinode_macros::step;
/// #[step(Decay)]
/// fn decay<S: Real>(x: &mut S, rate: S) {
///     *x *= S::one() - rate;
/// }
///
/// let mut x = 1.0;
/// decay(&mut x, 0.25);
/// palinode_time::Step::step(&Decay, &mut x, &0.25, &());
/// assert_eq!(x, 0.5625);
/// ```
///
/// Refused are functions that are not generic, that do not begin with `&mut`, that are `async`, `unsafe` or
/// `const`, or that return something:
///
/// ```compile_fail
/// # use palinode_core::Real;
/// #[palinode_macros::step]
/// fn next<S: Real>(x: &mut S) -> S {
///     *x
/// }
/// ```
#[proc_macro_attribute]
pub fn step(name: TokenStream, function: TokenStream) -> TokenStream {
    let name = parse_macro_input!(name as Option<syn::Ident>);
    written(step::expand(name, parse_macro_input!(function as ItemFn)))
}

fn written(result: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    result.unwrap_or_else(|mistake| mistake.to_compile_error()).into()
}

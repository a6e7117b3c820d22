//! All integration tests of `palinode-num`, in one binary.

#[path = "all/apply.rs"]
mod apply;
#[path = "all/arithmetic.rs"]
mod arithmetic;
#[path = "all/exact.rs"]
mod exact;
#[path = "all/identities.rs"]
mod identities;
#[path = "all/posit.rs"]
mod posit;
#[path = "all/reference.rs"]
mod reference;
#[path = "all/special_values.rs"]
mod special_values;
#[path = "all/table.rs"]
mod table;
#[path = "all/text.rs"]
mod text;

//! All integration tests of `palinode-num`, in one binary.

mod apply;
mod arithmetic;
mod elementary;
mod exact;
mod identities;
mod lanes;
mod posit;
mod reference;
mod special_values;
mod sums;
mod table;
mod text;

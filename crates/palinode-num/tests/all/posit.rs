//! Posits and quires. The long run: `cargo test --release -p palinode-num posit -- --ignored`; that of
//! functions: see `functions.rs`.

/// Calls a function that is generic over the width of posits with every width.
macro_rules! every_width {
    ($name:ident($($argument:expr),*)) => {
        $name::<i8>($($argument),*);
        $name::<i16>($($argument),*);
        $name::<i32>($($argument),*);
        $name::<i64>($($argument),*);
    };
}

mod arithmetic;
mod convert;
mod exact;
mod functions;
mod quire;

//! Enumerations whose values have names: the values, the list of all and the names come from one table.

/// Makes the enumeration, its list `ALL` and its `name`; of one whose values have fields, the last two.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $of:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        pub enum $of { $($(#[$doc])* $value,)* }
        named! { $of: $($value = $name,)* }
    };
    ($of:ident: $($value:ident $({ $($field:ident: $is:literal),* })? = $name:literal,)*) => {
        impl $of {
            /// Every one.
            pub const ALL: [$of; [$($name),*].len()] = [$($of::$value $({ $($field: $is),* })?),*];

            /// How the text form calls it.
            pub fn name(self) -> &'static str {
                match self {
                    $($of::$value $({ $($field: $is),* })? => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;

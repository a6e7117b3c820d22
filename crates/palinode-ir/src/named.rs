//! Enumerations whose values have names: the values, the list of all and the names come from one table.

/// Makes the enumeration, its list `ALL` and its `name`; of one whose values have fields, the last two.
macro_rules! named {
    ($(#[$meta:meta])* $vis:vis enum $of:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)* }) => {
        $(#[$meta])*
        $vis enum $of { $($(#[$doc])* $value,)* }
        named! { $vis $of: $($value = $name,)* }
    };
    ($vis:vis $of:ident: $($value:ident $({ $($field:ident: $is:literal),* })? = $name:literal,)*) => {
        impl $of {
            /// Every one.
            $vis const ALL: [$of; [$($name),*].len()] = [$($of::$value $({ $($field: $is),* })?),*];

            /// How it is written.
            $vis fn name(self) -> &'static str {
                match self {
                    $($of::$value $({ $($field: $is),* })? => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;

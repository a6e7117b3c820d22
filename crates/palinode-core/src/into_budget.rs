//! Budgets out of text and numbers, with the error for what is none.

use crate::budget::{Budget, parse};
use crate::error::Error;
use core::str::FromStr;

impl TryFrom<&str> for Budget {
    type Error = Error;
    fn try_from(text: &str) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Budget {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).map(Budget::from).map_err(|why| Error::NotABudget { text: text.into(), why })
    }
}

/// What can be given where a budget is asked for: a [`Budget`], a number of bytes, or text.
///
/// ```
/// use palinode_core::{Budget, Error, IntoBudget};
///
/// fn within(budget: impl IntoBudget) -> Result<Budget, Error> {
///     budget.into_budget()
/// }
/// assert_eq!(within("64KiB")?, within(65536)?);
/// # Ok::<(), Error>(())
/// ```
pub trait IntoBudget {
    /// The budget, or an error that says what is wrong with the text.
    fn into_budget(self) -> Result<Budget, Error>;
}

impl IntoBudget for Budget {
    fn into_budget(self) -> Result<Budget, Error> {
        Ok(self)
    }
}

impl IntoBudget for usize {
    fn into_budget(self) -> Result<Budget, Error> {
        Ok(Budget::from(self))
    }
}

macro_rules! texts {
    ($($Text:ty)*) => {$(
        impl IntoBudget for $Text {
            fn into_budget(self) -> Result<Budget, Error> {
                self.parse()
            }
        }
    )*};
}
texts!(&str &String String);

//! The pages of the book about error codes, inside the binary.

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code.
pub(crate) fn find(code: &str) -> Option<&'static str> {
    PAGES.iter().find(|(own, _)| *own == code).map(|(_, page)| *page)
}

//! Data that is no number: integers, text, and lists of it; other containers are in `containers.rs`.

use super::Plain;
use palinode_num::Key;

macro_rules! plain_integers {
    ($($integer:ident)*) => {$(
        impl Plain for $integer {
            #[inline(always)]
            fn save(&self, to: &mut impl FnMut(u64)) {
                to(*self as u64);
            }
            #[inline(always)]
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                from() as $integer
            }
        }
    )*};
}
plain_integers!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize);

macro_rules! plain_halves {
    ($($integer:ident)*) => {$(
        impl Plain for $integer {
            fn save(&self, to: &mut impl FnMut(u64)) {
                to(*self as u64);
                to((*self >> 64) as u64);
            }
            fn load(from: &mut impl FnMut() -> u64) -> Self {
                let low = from();
                $integer::from(low) | ((from() as $integer) << 64)
            }
        }
    )*};
}
plain_halves!(u128 i128);

impl Plain for Key {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.words().into_iter().for_each(to);
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        Key::from_words([from(), from()])
    }
}

impl Plain for bool {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(u64::from(*self));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        from() != 0
    }
}

impl Plain for char {
    fn save(&self, to: &mut impl FnMut(u64)) {
        to(u64::from(u32::from(*self)));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        char::from_u32(from() as u32).expect("a char was saved here")
    }
}

impl Plain for String {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.len().save(to);
        self.bytes().for_each(|byte| byte.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        let bytes = Vec::<u8>::load(from);
        String::from_utf8(bytes).expect("a string was saved here")
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        let mut bytes = core::mem::take(self).into_bytes();
        bytes.reload(from);
        *self = String::from_utf8(bytes).expect("a string was saved here");
    }
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}

/// The capacity for so many items, or a panic: what says how many may be damaged, and that must not end the
/// process.
fn reserve<P>(items: &mut Vec<P>, more: usize) {
    let takes_memory = size_of::<P>() > 0 || more <= super::MOST_WITHOUT_WORDS;
    assert!(
        takes_memory && items.try_reserve_exact(more).is_ok(),
        "no memory for a list of {more} items: the words it is read from are damaged"
    );
}

impl<P: Plain> Plain for Vec<P> {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.len().save(to);
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        let mut items = Vec::new();
        let len = usize::load(from);
        reserve(&mut items, len);
        items.extend((0..len).map(|_| P::load(from)));
        items
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        let len = usize::load(from);
        self.truncate(len);
        self.iter_mut().for_each(|item| item.reload(from));
        let more = len - self.len();
        reserve(self, more);
        self.extend((0..more).map(|_| P::load(from)));
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<P>() + self.iter().map(P::heap_bytes).sum::<usize>()
    }
}

impl<P: Plain, const N: usize> Plain for [P; N] {
    fn save(&self, to: &mut impl FnMut(u64)) {
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl FnMut() -> u64) -> Self {
        core::array::from_fn(|_| P::load(from))
    }
    fn reload(&mut self, from: &mut impl FnMut() -> u64) {
        self.iter_mut().for_each(|item| item.reload(from));
    }
    fn heap_bytes(&self) -> usize {
        self.iter().map(P::heap_bytes).sum()
    }
}

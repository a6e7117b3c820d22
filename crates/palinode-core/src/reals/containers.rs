//! Containers of values with numbers inside.

use super::{Plain, Reals, Sink, Source, read_len, read_until};
use core::marker::PhantomData;
use std::collections::{BTreeMap, VecDeque};

/// So few items are saved and loaded one by one, without a loop: the compiler can then keep them in
/// registers.
const FEW: usize = 8;

impl<S, R: Reals<S>, const N: usize> Reals<S> for [R; N] {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        if N <= FEW {
            self.iter().for_each(|item| item.save(to));
        } else {
            R::save_slice(self, to);
        }
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        core::array::from_fn(|_| R::load(from))
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        if N <= FEW {
            self.iter_mut().for_each(|item| item.reload(from));
        } else {
            R::reload_slice(self, from);
        }
    }
    fn heap_bytes(&self) -> usize {
        self.iter().map(R::heap_bytes).sum()
    }
}

impl<S, R: Reals<S>> Reals<S> for Vec<R> {
    #[inline]
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        R::save_slice(self, to);
    }
    #[inline]
    fn load(from: &mut impl Source<S>) -> Self {
        let len = read_len(from);
        let mut items = Vec::new();
        read_until(&mut items, len, from);
        items
    }
    #[inline]
    fn reload(&mut self, from: &mut impl Source<S>) {
        let len = read_len(from);
        self.truncate(len);
        R::reload_slice(self, from);
        if self.len() < len {
            read_until(self, len, from);
        }
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<R>() + self.iter().map(R::heap_bytes).sum::<usize>()
    }
}

impl<S, R: Reals<S>> Reals<S> for VecDeque<R> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        self.iter().for_each(|item| item.save(to));
    }
    fn load(from: &mut impl Source<S>) -> Self {
        Vec::<R>::load(from).into()
    }
    fn reload(&mut self, from: &mut impl Source<S>) {
        let len = read_len(from);
        self.truncate(len);
        self.iter_mut().for_each(|item| item.reload(from));
        let mut more = Vec::new();
        read_until(&mut more, len - self.len(), from);
        self.extend(more);
    }
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<R>() + self.iter().map(R::heap_bytes).sum::<usize>()
    }
}

impl<S, K: Plain + Ord, R: Reals<S>> Reals<S> for BTreeMap<K, R> {
    fn save(&self, to: &mut impl Sink<S>) {
        to.word(self.len() as u64);
        for (key, item) in self {
            key.save(&mut |word| to.word(word));
            item.save(to);
        }
    }
    fn load(from: &mut impl Source<S>) -> Self {
        let len = read_len(from);
        let mut entries = BTreeMap::new();
        for _ in 0..len {
            if from.is_short() {
                break;
            }
            let key = K::load(&mut || from.word());
            entries.insert(key, R::load(from));
        }
        entries
    }
    /// A bound for what the tree holds: its nodes cannot be counted.
    fn heap_bytes(&self) -> usize {
        let nodes = self.len() * (2 * (size_of::<K>() + size_of::<R>()) + 32);
        nodes + self.iter().map(|(key, item)| key.heap_bytes() + item.heap_bytes()).sum::<usize>()
    }
}

/// Containers that are the same for values with numbers inside and for plain data, but for how a word is
/// written and read.
macro_rules! containers {
    ([$($S:ident)?] $Trait:path, |$to:ident: $To:ty, $word:ident| $write:expr, |$from:ident: $From:ty| $read:expr) => {
        impl<$($S,)? R: $Trait> $Trait for Option<R> {
            fn save(&self, $to: &mut $To) {
                let $word = u64::from(self.is_some());
                $write;
                self.iter().for_each(|item| item.save($to));
            }
            fn load($from: &mut $From) -> Self {
                ($read != 0).then(|| R::load($from))
            }
            fn reload(&mut self, $from: &mut $From) {
                match ($read != 0, self) {
                    (true, Some(item)) => item.reload($from),
                    (true, empty) => *empty = Some(R::load($from)),
                    (false, item) => *item = None,
                }
            }
            fn heap_bytes(&self) -> usize {
                self.as_ref().map_or(0, R::heap_bytes)
            }
        }

        impl<$($S,)? R: $Trait> $Trait for Box<R> {
            fn save(&self, $to: &mut $To) {
                (**self).save($to);
            }
            fn load($from: &mut $From) -> Self {
                Box::new(R::load($from))
            }
            fn reload(&mut self, $from: &mut $From) {
                (**self).reload($from);
            }
            fn heap_bytes(&self) -> usize {
                size_of::<R>() + (**self).heap_bytes()
            }
        }

        impl<$($S,)? T> $Trait for PhantomData<T> {
            fn save(&self, _to: &mut $To) {}
            fn load(_from: &mut $From) -> Self {
                PhantomData
            }
        }

        containers! { @tuples [$($S)?] [$Trait] [$To] [$From]
            () (A.0) (A.0, B.1) (A.0, B.1, C.2) (A.0, B.1, C.2, D.3) (A.0, B.1, C.2, D.3, E.4)
            (A.0, B.1, C.2, D.3, E.4, F.5)
        }
    };
    (@tuples $S:tt $Trait:tt $To:tt $From:tt $($items:tt)*) => {
        $(containers! { @tuple $S $Trait $To $From $items })*
    };
    (@tuple [$($S:ident)?] [$Trait:path] [$To:ty] [$From:ty] ($($item:ident . $index:tt),*)) => {
        impl<$($S,)? $($item: $Trait),*> $Trait for ($($item,)*) {
            #[inline]
            fn save(&self, _to: &mut $To) {
                $(self.$index.save(_to);)*
            }
            #[inline]
            #[allow(clippy::unused_unit)] // of the tuple without items
            fn load(_from: &mut $From) -> Self {
                ($($item::load(_from),)*)
            }
            #[inline]
            fn reload(&mut self, _from: &mut $From) {
                $(self.$index.reload(_from);)*
            }
            fn heap_bytes(&self) -> usize {
                0 $(+ self.$index.heap_bytes())*
            }
        }
    };
}
containers! { [S] Reals<S>, |to: impl Sink<S>, word| to.word(word), |from: impl Source<S>| from.word() }
containers! { [] Plain, |to: impl FnMut(u64), word| to(word), |from: impl FnMut() -> u64| from() }

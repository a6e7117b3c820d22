//! How a compressed recording keeps its partials: as they are, or in fewer bytes.
//!
//! Input: partials. Output: the same, or the nearest narrow numbers. Sweeps widen them one by one and compute
//! in `S`.

use crate::error::Error;
use palinode_num::Scalar;

/// In how many bytes partials are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partials {
    /// As they are.
    #[default]
    Exact,
    /// 4 bytes, 24 binary digits.
    F32,
    /// 2 bytes, 8 binary digits, the range of `f32`.
    Bf16,
}

impl Partials {
    /// How reports call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Partials::Exact => "exact partials",
            Partials::F32 => "f32 partials",
            Partials::Bf16 => "bf16 partials",
        }
    }
}

/// A partial in memory.
pub(super) trait Stored<S>: Copy {
    /// The number that a sweep multiplies by.
    fn wide(self) -> S;
}

/// A partial as it is.
#[derive(Clone, Copy)]
pub(super) struct Exact<S>(pub(super) S);

impl<S: Scalar> Stored<S> for Exact<S> {
    #[inline(always)]
    fn wide(self) -> S {
        self.0
    }
}

#[derive(Clone, Copy)]
pub(super) struct Single(f32);

impl<S: Scalar> Stored<S> for Single {
    #[inline(always)]
    fn wide(self) -> S {
        S::from_f64(f64::from(self.0))
    }
}

/// The upper half of an `f32`.
#[derive(Clone, Copy)]
pub(super) struct Brain(u16);

impl<S: Scalar> Stored<S> for Brain {
    #[inline(always)]
    fn wide(self) -> S {
        S::from_f64(f64::from(f32::from_bits(u32::from(self.0) << 16)))
    }
}

impl Brain {
    /// The nearest, and of two equally near the even one. NaN stays NaN.
    fn nearest(value: f32) -> Brain {
        let bits = value.to_bits();
        if value.is_nan() {
            return Brain((bits >> 16) as u16 | 0x40);
        }
        let half = 0x7fff + (bits >> 16 & 1);
        Brain((bits.wrapping_add(half) >> 16) as u16)
    }
}

/// All partials of a compressed recording.
pub(super) enum Store<S> {
    Exact(Vec<Exact<S>>),
    F32(Vec<Single>),
    Bf16(Vec<Brain>),
}

/// Evaluates an expression with the list of partials, whatever they are kept as.
macro_rules! with_partials {
    ($store:expr, |$list:ident| $body:expr) => {
        match $store {
            Store::Exact($list) => $body,
            Store::F32($list) => $body,
            Store::Bf16($list) => $body,
        }
    };
}
pub(super) use with_partials;

impl<S: Scalar> Store<S> {
    /// Narrow copies of these partials.
    ///
    /// An error if `S` is more than a plain number, so that its partials are too, or if a finite partial is
    /// too large.
    pub(super) fn narrow(partials: &[Exact<S>], how: Partials) -> Result<Store<S>, Error> {
        if S::DEPTH > 0 && how != Partials::Exact {
            return Err(Error::NotPlain);
        }
        let single = |exact: &Exact<S>| {
            let value = exact.0.peek().ok_or(Error::NotPlain)?;
            let narrow = value as f32;
            if value.is_finite() && narrow.is_infinite() {
                Err(Error::PartialTooLarge { value })
            } else {
                Ok(narrow)
            }
        };
        Ok(match how {
            Partials::Exact => {
                Store::Exact(collect(partials.len(), partials.iter().map(|&exact| Ok(exact)))?)
            }
            Partials::F32 => {
                Store::F32(collect(partials.len(), partials.iter().map(|p| single(p).map(Single)))?)
            }
            Partials::Bf16 => {
                let brain = |exact: &Exact<S>| {
                    let (narrow, value) = (single(exact)?, exact.0.peek().unwrap_or(f64::NAN));
                    let rounded = Brain::nearest(narrow);
                    let overflows = f32::from_bits(u32::from(rounded.0) << 16).is_infinite();
                    if value.is_finite() && overflows {
                        Err(Error::PartialTooLarge { value })
                    } else {
                        Ok(rounded)
                    }
                };
                Store::Bf16(collect(partials.len(), partials.iter().map(brain))?)
            }
        })
    }

    /// How many partials are zero.
    pub(super) fn zeros(&self) -> usize {
        fn count<S: Scalar, P: Stored<S>>(list: &[P]) -> usize {
            list.iter().filter(|partial| partial.wide().vanishes()).count()
        }
        with_partials!(self, |list| count::<S, _>(list))
    }

    /// The bytes of one partial.
    pub(super) fn width(&self) -> usize {
        fn width<P>(_: &[P]) -> usize {
            size_of::<P>()
        }
        with_partials!(self, |list| width(list))
    }

    /// The heap bytes held.
    pub(super) fn bytes(&self) -> usize {
        with_partials!(self, |list| list.capacity()) * self.width()
    }
}

fn collect<T>(len: usize, items: impl Iterator<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut list = Vec::new();
    list.try_reserve_exact(len).map_err(|_| Error::OutOfMemory { bytes: len * size_of::<T>() })?;
    for item in items {
        list.push(item?);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_the_nearest_and_even() {
        let wide = |value: f32| -> f64 { Brain::nearest(value).wide() };
        let step = 1.0 / 128.0;
        assert_eq!(wide(1.0), 1.0);
        assert_eq!(wide(1.0 + step), f64::from(1.0 + step));
        assert_eq!(wide(1.0 + step / 2.0), 1.0, "a tie goes to the even one");
        assert_eq!(wide(1.0 + 1.5 * step), f64::from(1.0 + 2.0 * step));
        assert_eq!(wide(-1.0 - 0.51 * step), f64::from(-1.0 - step));
        assert_eq!(wide(f32::INFINITY), f64::INFINITY);
        assert!(wide(f32::NAN).is_nan());
        assert!(wide(f32::from_bits(0x7f80_0001)).is_nan(), "no NaN becomes infinity");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let refused = |value: f64, how| match Store::narrow(&[Exact(value)], how) {
            Err(error) => error.code(),
            Ok(_) => "fits",
        };
        assert_eq!(refused(1e39, Partials::F32), "PAL0109");
        assert_eq!(refused(3.4e38, Partials::F32), "fits");
        assert_eq!(refused(3.4e38, Partials::Bf16), "PAL0109");
        assert_eq!(refused(f64::INFINITY, Partials::Bf16), "fits");
        assert_eq!(refused(1e300, Partials::Exact), "fits");
        let dual = [Exact(crate::Dual::new(1.0, 2.0))];
        assert!(matches!(Store::narrow(&dual, Partials::F32), Err(Error::NotPlain)));
        assert!(Store::narrow(&dual, Partials::Exact).is_ok());
    }
}

//! Reals in fewer bits, several to an integer: how residuals are kept where that was asked for.
//!
//! A number is rounded to single precision (to nearest, ties to even), and for `bf16` once more to its upper
//! half. Numbers beyond the range become infinities, NaN stays NaN. The first number is in the lowest bits.

use palinode_core::Real;

use super::error::RunErrorKind;
use super::ledger::Memory;
use super::store::Store;
use super::value::{Val, length, primal};
use crate::op::{Narrow, Op};

/// The bits of a number.
fn bits(narrow: Narrow, x: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation)] // rounding is the purpose
    let single = (x as f32).to_bits();
    match narrow {
        Narrow::F32 => u64::from(single),
        Narrow::Bf16 if x.is_nan() => u64::from((single >> 16) | 0x40),
        // Half a unit of the upper half, less a bit if that is even; a carry runs into the exponent as it
        // should.
        Narrow::Bf16 => u64::from((single + 0x7FFF + ((single >> 16) & 1)) >> 16),
    }
}

/// The number with these bits.
fn number(narrow: Narrow, bits: u64) -> f64 {
    #[allow(clippy::cast_possible_truncation)] // the low bits are meant
    let single = match narrow {
        Narrow::F32 => bits as u32,
        Narrow::Bf16 => (bits as u32) << 16,
    };
    f64::from(f32::from_bits(single))
}

fn width(narrow: Narrow) -> usize {
    64 / narrow.per_word()
}

pub(super) fn pack<R: Real>(
    narrow: Narrow,
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let op = Op::Pack(narrow).name();
    let data = args[0].array().reals().data();
    if !data.iter().all(|x| x.carries_nothing()) {
        return Err(RunErrorKind::CarriesDerivative { op });
    }
    let words = data.chunks(narrow.per_word());
    let mut made = Store::with_capacity(op, vec![words.len()], memory)?;
    for chunk in words {
        let word = chunk.iter().rev().fold(0u64, |word, &x| {
            word.checked_shl(width(narrow) as u32).unwrap_or(0) | bits(narrow, primal(x))
        });
        made.buffer().push(word as i64);
    }
    memory.stats.elements_filled += data.len() as u64;
    Ok(Val::from_ints(made))
}

pub(super) fn unpack<R: Real>(
    narrow: Narrow,
    args: &[Val<R>],
    memory: &mut Memory,
) -> Result<Val<R>, RunErrorKind> {
    let op = Op::Unpack(narrow).name();
    let n = length(op, args[1].int())?;
    let words = args[0].array().ints().data();
    let held = words.len() * narrow.per_word();
    if n > held {
        return Err(RunErrorKind::BadReshape { from: [held][..].into(), to: [n][..].into() });
    }
    let mut made = Store::with_capacity(op, vec![n], memory)?;
    let mask = u64::MAX >> (64 - width(narrow));
    for at in 0..n {
        let word = words[at / narrow.per_word()] as u64;
        let part = (word >> (width(narrow) * (at % narrow.per_word()))) & mask;
        made.buffer().push(R::from_f64(number(narrow, part)));
    }
    memory.stats.elements_filled += n as u64;
    Ok(Val::from_reals(made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_nearest() {
        for x in [0.0, -0.0, 1.0, -1.5, 0.618_033_9, 1e-40, 1e300, f64::INFINITY, -7e-20] {
            let single = number(Narrow::F32, bits(Narrow::F32, x));
            assert_eq!(single.to_bits(), f64::from(x as f32).to_bits());
            let half = number(Narrow::Bf16, bits(Narrow::Bf16, x));
            if x.is_finite() && x.abs() < 1e38 {
                assert!((half - x).abs() <= x.abs() / 256.0 + 1e-38, "{half} for {x}");
            } else {
                assert_eq!(half, x.signum() * f64::INFINITY);
            }
            assert_eq!(bits(Narrow::Bf16, half), bits(Narrow::Bf16, x));
        }
        // Ties go to even: 1 + 1/256 lies between 1 and 1 + 1/128.
        assert_eq!(number(Narrow::Bf16, bits(Narrow::Bf16, 1.0 + 1.0 / 256.0)), 1.0);
        assert_eq!(number(Narrow::Bf16, bits(Narrow::Bf16, 1.0 + 3.0 / 256.0)), 1.0 + 4.0 / 256.0);
        assert!(number(Narrow::Bf16, bits(Narrow::Bf16, f64::NAN)).is_nan());
    }
}

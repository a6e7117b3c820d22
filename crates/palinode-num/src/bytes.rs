//! Exact sums as bytes: to keep one, send it, and go on from it.
//!
//! Input: a sum. Output: bytes that are the same for the same sum, in whatever order and grouping it came
//! about, on every platform; and the sum again, or an error for bytes that are none.
//!
//! | bytes | hold |
//! |---|---|
//! | 1 | the version of this format, 1 |
//! | 1 | what it is: 1 for an [`ExactSum`](crate::ExactSum), 2 for an [`ExactDot`](crate::ExactDot), for a
//! [`Quire`](crate::Quire) the bits of its posits |
//! | 1 | what was added besides finite numbers, as a sum: 1 infinity, 2 minus infinity, 4 NaN or NaR |
//! | all but 7 | the sum as a two's complement integer, lowest byte first, in units of 2^-1074, 2^-2148, or
//! those of the posit standard |
//! | 4 | a CRC-32 (as in zlib) of all that is before it, lowest byte first |

use core::fmt;

const VERSION: u8 = 1;
/// The bytes before the integer, and after it.
const HEAD: usize = 3;
const TAIL: usize = 4;

/// Why bytes are no exact sum. What was `expected` and `found` is a number of bytes, or the first or second
/// byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum SumBytesError {
    /// There are too few of them, or too many.
    Length { expected: usize, found: usize },
    /// They are in a format that this version does not know.
    Version { found: u8 },
    /// They are a sum of another kind.
    Kind { expected: u8, found: u8 },
    /// They are not what was written.
    Damaged,
}

impl fmt::Display for SumBytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SumBytesError::Length { expected, found } => {
                write!(f, "PAL0602: an exact sum of this kind has {expected} bytes, not {found}")
            }
            SumBytesError::Version { found } => {
                write!(
                    f,
                    "PAL0602: the bytes of the sum are of format {found}; this version reads format {VERSION}"
                )
            }
            SumBytesError::Kind { expected, found } => {
                write!(f, "PAL0602: the bytes are those of a sum of kind {found}, not {expected}")
            }
            SumBytesError::Damaged => {
                write!(f, "PAL0602: the bytes of the sum are damaged; write them again")
            }
        }
    }
}

impl core::error::Error for SumBytesError {}

pub(crate) fn write(kind: u8, beyond: u8, integer: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let mut bytes = vec![VERSION, kind, beyond];
    bytes.extend(integer);
    let check = crc32(&bytes);
    bytes.extend(check.to_le_bytes());
    bytes
}

/// What was added besides finite numbers, and the integer of so many bytes.
pub(crate) fn read(kind: u8, length: usize, bytes: &[u8]) -> Result<(u8, &[u8]), SumBytesError> {
    if let Some(&found) = bytes.first()
        && found != VERSION
    {
        return Err(SumBytesError::Version { found });
    }
    if let Some(&found) = bytes.get(1)
        && found != kind
    {
        return Err(SumBytesError::Kind { expected: kind, found });
    }
    let expected = HEAD + length + TAIL;
    if bytes.len() != expected {
        return Err(SumBytesError::Length { expected, found: bytes.len() });
    }
    let (content, check) = bytes.split_at(expected - TAIL);
    let is_sound = crc32(content).to_le_bytes() == *check && content[2] < 8;
    if is_sound { Ok((content[2], &content[HEAD..])) } else { Err(SumBytesError::Damaged) }
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

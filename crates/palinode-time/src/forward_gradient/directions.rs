//! Families of random directions, whose entries are made from a key when they are read.
//!
//! Input: a family, a key, a number of parameters. Output: a [`Draw`] of `K` directions, scaled so that E[v
//! v^T] = I.
//!
//! Invariants: a draw stores nothing per parameter: what it holds besides the key is a number per direction
//! and the last block of the generator. An entry is the same whenever it is read.

use super::error::EstimateError;
use core::cell::Cell;
use core::f64::consts::TAU;
use core::fmt;
use palinode_core::{Key, Scalar};

/// Entry `i` of direction `lane`, made from the key of the draw. What it gives must be an isotropic random
/// direction: E[v v^T] = I.
pub type OwnDirection<'a> = &'a (dyn Fn(Key, usize, usize) -> f64 + Sync);

/// How random directions are drawn.
///
/// The error of an estimate from `k` directions of `n` parameters, E |estimate - g|^2 / |g|^2:
///
/// | | error | an entry costs |
/// |---|---|---|
/// | `Gaussian` | (n + 1) / k | a logarithm, a root and a sine for two |
/// | `Rademacher` | (n - 1) / k | a bit |
/// | `Sphere` | (n - 1) / k | as Gaussian, and a pass for the norm |
/// | `Coordinate` | (n - 1) / k | nothing |
/// | `CoordinateFrame`, `HadamardFrame` | n / k - 1: none at k = n | nothing; a bit and, unless n is a power of two, a sine |
///
/// `Rademacher` is the one to start with. Frames are better if k is no longer small against n. Coordinates
/// have the same mean square error, in rarer and larger mistakes: a draw sees nothing of a gradient that lies
/// elsewhere.
#[derive(Clone, Copy, Default)]
pub enum Directions<'a> {
    /// Independent standard normals.
    Gaussian,
    /// Independent signs.
    #[default]
    Rademacher,
    /// Uniform on the sphere of radius sqrt(n).
    Sphere,
    /// sqrt(n) times an axis, drawn with replacement.
    Coordinate,
    /// sqrt(n) times axes that are all different: an orthonormal frame, scaled.
    CoordinateFrame,
    /// Different rows of an orthogonal matrix, scaled, with random signs for the columns: Sylvester's
    /// Hadamard matrix if n is a power of two, else its Kronecker product with the Hartley matrix of the odd
    /// factor of n.
    HadamardFrame,
    /// Your own.
    Own(OwnDirection<'a>),
}

impl<'a> Directions<'a> {
    /// E |estimate - g|^2 / |g|^2 for `k` directions of `n` parameters; `None` for your own directions, whose
    /// fourth moments are not known.
    pub fn relative_error(&self, n: usize, k: usize) -> Option<f64> {
        let (n, k) = (n as f64, k as f64);
        match self {
            Directions::Gaussian => Some((n + 1.0) / k),
            Directions::Rademacher | Directions::Sphere | Directions::Coordinate => Some((n - 1.0) / k),
            Directions::CoordinateFrame | Directions::HadamardFrame => Some(n / k - 1.0),
            Directions::Own(_) => None,
        }
    }

    /// How far the expectation of an entry of an estimate may be from that of the gradient, relative to it,
    /// because entries of directions are rounded to the number `S`: E[v v^T] is then I but for this, on its
    /// diagonal. (Off it there are zeros: rounding keeps signs.)
    ///
    /// None if entries are whole, as signs are, and for axes if `S` holds the root of `n`. Otherwise less
    /// than three roundings, 3 / 4096 for 16-bit posits: an entry counts with its square, and few Gaussians
    /// are so small that a posit has fewer bits for them. Of your own directions the same is said, if their
    /// entries are like that.
    ///
    /// ```
    /// use palinode_core::{Posit8, Posit16};
    /// use palinode_time::Directions;
    ///
    /// assert_eq!(Directions::Rademacher.rounding_bias::<Posit8>(1000), 0.0);
    /// assert_eq!(Directions::Gaussian.rounding_bias::<Posit16>(1000), 3.0 / 4096.0);
    /// // The root of 7 is 2.75 in eight bits, and its square is 7.56.
    /// let axes = Directions::Coordinate;
    /// assert_eq!(axes.rounding_bias::<Posit8>(7), 2.75 * 2.75 / 7.0 - 1.0);
    /// assert_eq!(axes.rounding_bias::<Posit8>(9), 0.0);
    /// ```
    pub fn rounding_bias<S: Scalar>(&self, n: usize) -> f64 {
        match self {
            Directions::Rademacher => 0.0,
            Directions::HadamardFrame if n.is_power_of_two() => 0.0,
            Directions::Coordinate | Directions::CoordinateFrame => {
                let root = S::from_f64((n as f64).sqrt()).peek().unwrap_or(f64::NAN);
                (root * root / (n.max(1) as f64) - 1.0).abs()
            }
            Directions::Gaussian | Directions::Sphere | Directions::HadamardFrame | Directions::Own(_) => {
                3.0 * rounding::<S>()
            }
        }
    }

    /// A name for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Directions::Gaussian => "Gaussian",
            Directions::Rademacher => "Rademacher",
            Directions::Sphere => "spherical",
            Directions::Coordinate => "coordinate",
            Directions::CoordinateFrame => "coordinate-frame",
            Directions::HadamardFrame => "Hadamard-frame",
            Directions::Own(_) => "own",
        }
    }

    /// Draws `K` directions for `n` parameters.
    ///
    /// # Errors
    /// If a frame would have more directions than there are parameters (PAL0605).
    pub fn draw<const K: usize>(self, key: Key, n: usize) -> Result<Draw<'a, K>, EstimateError> {
        let frame = matches!(self, Directions::CoordinateFrame | Directions::HadamardFrame);
        if frame && K > n {
            return Err(EstimateError::FrameTooLarge { directions: K, parameters: n });
        }
        let mut draw = Draw {
            directions: self,
            key: key.split(0),
            signs: key.split(1),
            n,
            scales: [1.0; K],
            axes: [0; K],
            at_hand: Cell::new(u64::MAX),
            words: [const { Cell::new(0) }; 4],
        };
        match self {
            Directions::Gaussian | Directions::Rademacher | Directions::Own(_) => {}
            Directions::Sphere => {
                let norms = draw.squared_norms();
                draw.scales = norms.map(|norm| (n as f64 / norm).sqrt());
            }
            Directions::Coordinate if n > 0 => {
                draw.axes = core::array::from_fn(|lane| draw.key.below(n as u64, lane as u64) as usize);
            }
            Directions::Coordinate => {}
            Directions::CoordinateFrame | Directions::HadamardFrame => {
                draw.axes = distinct(draw.key, n);
            }
        }
        Ok(draw)
    }
}

/// What rounding to `S` may lose next to 1: half a unit in the last place.
fn rounding<S: Scalar>() -> f64 {
    let mut half = 0.5;
    // Ties go to even: 1 and half a unit is 1.
    while S::from_f64(1.0 + half).peek().is_some_and(|sum| sum != 1.0) {
        half *= 0.5;
    }
    half
}

impl fmt::Debug for Directions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `K` different numbers below `n`, every set of them equally likely (Floyd's method).
fn distinct<const K: usize>(key: Key, n: usize) -> [usize; K] {
    let mut chosen = [0; K];
    for i in 0..K {
        let last = n - K + i;
        let candidate = key.below(last as u64 + 1, i as u64) as usize;
        chosen[i] = if chosen[..i].contains(&candidate) { last } else { candidate };
    }
    chosen
}

/// `K` directions.
#[derive(Clone, Debug)]
pub struct Draw<'a, const K: usize> {
    directions: Directions<'a>,
    key: Key,
    /// For the columns of Hadamard frames.
    signs: Key,
    n: usize,
    /// What Gaussians are multiplied with.
    scales: [f64; K],
    /// Axes, or rows of the orthogonal matrix.
    axes: [usize; K],
    /// The number of the last block of the generator, and its words: neighbours are read one after the other.
    at_hand: Cell<u64>,
    words: [Cell<u64>; 4],
}

impl<'a, const K: usize> Draw<'a, K> {
    /// How many entries a direction has.
    #[expect(clippy::len_without_is_empty, reason = "a draw is no collection")]
    pub fn len(&self) -> usize {
        self.n
    }

    /// The family.
    pub fn directions(&self) -> Directions<'a> {
        self.directions
    }

    /// Entry `i` of every direction.
    #[inline]
    pub fn at(&self, i: usize) -> [f64; K] {
        let root = (self.n as f64).sqrt();
        match self.directions {
            Directions::Gaussian | Directions::Sphere => {
                core::array::from_fn(|lane| self.gaussian((i * K + lane) as u64) * self.scales[lane])
            }
            Directions::Rademacher => self.signs_at((i * K) as u64),
            Directions::Coordinate | Directions::CoordinateFrame => {
                core::array::from_fn(|lane| if self.axes[lane] == i { root } else { 0.0 })
            }
            Directions::HadamardFrame => {
                let sign = self.sign(self.signs, i as u64);
                core::array::from_fn(|lane| sign * orthogonal(self.n, self.axes[lane], i))
            }
            Directions::Own(own) => core::array::from_fn(|lane| own(self.key, lane, i)),
        }
    }

    /// Whether a direction has something to say about parameter `i`.
    pub(super) fn reaches(&self, i: usize) -> bool {
        match self.directions {
            Directions::Coordinate | Directions::CoordinateFrame => self.axes.contains(&i),
            Directions::Own(_) => self.at(i).iter().any(|v| *v != 0.0),
            Directions::Gaussian
            | Directions::Rademacher
            | Directions::Sphere
            | Directions::HadamardFrame => true,
        }
    }

    /// The squared lengths of the directions.
    fn squared_norms(&self) -> [f64; K] {
        let mut norms = [0.0; K];
        for i in 0..self.n {
            for (norm, v) in norms.iter_mut().zip(self.at(i)) {
                *norm += v * v;
            }
        }
        norms
    }

    /// Word `i` of the generator, or of what is made of it.
    #[inline]
    fn word(&self, i: u64, make: impl FnOnce(u64) -> [u64; 4]) -> u64 {
        if self.at_hand.get() != i / 4 {
            self.words.iter().zip(make(i / 4)).for_each(|(word, new)| word.set(new));
            self.at_hand.set(i / 4);
        }
        self.words[(i % 4) as usize].get()
    }

    #[inline]
    fn gaussian(&self, i: u64) -> f64 {
        f64::from_bits(self.word(i, |block| self.key.gaussians(block).map(f64::to_bits)))
    }

    /// [`Key::rademacher`], 256 from a block.
    #[inline]
    fn sign(&self, key: Key, i: u64) -> f64 {
        sign_of(self.word(i / 64, |block| key.block(block)) >> (i % 64))
    }

    /// Signs `first`, `first + 1`, ...
    #[inline]
    fn signs_at(&self, first: u64) -> [f64; K] {
        let shift = first % 64;
        if shift as usize + K <= 64 {
            let word = self.word(first / 64, |block| self.key.block(block)) >> shift;
            core::array::from_fn(|lane| sign_of(word >> lane))
        } else {
            core::array::from_fn(|lane| self.sign(self.key, first + lane as u64))
        }
    }
}

/// 1, or -1 if the last bit is set.
#[inline]
fn sign_of(word: u64) -> f64 {
    f64::from_bits(1f64.to_bits() | word << 63)
}

/// An entry of the orthogonal matrix of order `n`, times sqrt(n).
fn orthogonal(n: usize, row: usize, column: usize) -> f64 {
    let bits = n.trailing_zeros();
    let (low, odd) = ((1 << bits) - 1, n >> bits);
    let hadamard = sign_of(u64::from((row & column & low).count_ones()));
    if odd == 1 {
        return hadamard;
    }
    // Reduced before it is rounded: the angle of a large product would be noise.
    let turns = ((row >> bits) as u128 * (column >> bits) as u128 % odd as u128) as f64 / odd as f64;
    let (sine, cosine) = libm::sincos(TAU * turns);
    hadamard * (cosine + sine)
}

/// How suspicious the outcome of a comparison is: 0 if not at all, 1 if it is one of small numbers, 2 or 3 if
/// it exists only at this point.
#[inline(always)]
pub(crate) fn suspicion(x: f64, y: f64) -> u64 {
    let is_in_order = (x < y) | (x > y);
    let (x, y) = (abs(x), abs(y));
    let (least, most) = if x < y { (x, y) } else { (y, x) };
    let is_tiny = most <= TINY;
    let small = is_tiny & (least <= SMALL * most);
    let exact = !is_in_order | (is_tiny & (least == 0.0));
    u64::from(small) | u64::from(exact) << 1
}

/// Numbers that are not larger than this are tiny.
const TINY: f64 = ITS_VALUE;

/// What is small beside another number is not larger than this much of it.
const SMALL: f64 = ITS_VALUE;

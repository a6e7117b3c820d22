//! What random programs meet too rarely: writes that read the array they write to, and absurd sizes.

use crate::array::Array;
use crate::rules::{Add, Multiply};
use crate::tape::Tape;
use crate::tape::arrays::WhenOverwritten;
use crate::tape::hostile::message;

const POLICIES: [WhenOverwritten; 3] =
    [WhenOverwritten::Copy, WhenOverwritten::AlwaysCopy, WhenOverwritten::Recompute];

/// Writes to a part of an array of what is read of the same array, some of it more than once. The cotangent
/// of element 0 is a sum of many terms, and the policy must not change their order: in another order they
/// have another last bit.
#[test]
fn no_policy_changes_the_order_of_cotangents() {
    type Write = fn(&mut Array<f64>);
    /// The first element, four times.
    fn first(a: &Array<f64>) -> Array<f64> {
        a.slice(0..1).broadcast(&[4])
    }
    let writes: [(&str, Write); 7] = [
        ("scatter_add", |a| a.scatter_add(&[1, 2, 3, 3], &first(a))),
        ("scatter", |a| a.scatter(&[1, 2, 3, 4], &first(a))),
        ("assign", |a| a.slice(1..).assign(&first(a))),
        ("+=", |a| a.slice(1..).zip_with_in_place(Add {}, &first(a))),
        ("*=", |a| a.slice(1..).zip_with_in_place(Multiply {}, &first(a))),
        ("+= after a copy", |a| {
            let (copy, mut part) = (a.clone(), a.slice(1..));
            part += &first(a);
            part += &first(&copy);
        }),
        ("add_at", |a| {
            for k in [1, 2, 3, 4] {
                a.add_at(k, a.get(0));
            }
        }),
    ];
    let x = [0.7, 1.1, -0.4, 0.9, 1.3];
    for (name, write) in writes {
        let f = |mut a: Array<f64>| {
            write(&mut a);
            write(&mut a);
            a.dot(&Array::from_values([0.1, 1.0 / 3.0, 0.2, 0.7, 1e-3]))
        };
        let gradients = POLICIES.map(|policy| {
            let mut tape = Tape::new();
            tape.set_when_overwritten(policy);
            let (value, gradient) = tape.value_and_grad(|x| f(Array::from_vars(x)), &x).unwrap();
            (value.to_bits(), gradient.iter().map(|g| g.to_bits()).collect::<Vec<_>>())
        });
        assert_eq!(gradients[0], gradients[1], "{name}: a copy for every write");
        assert_eq!(gradients[0], gradients[2], "{name}: computed again");
        // And it is the gradient: the program is smooth, so a central difference agrees to ten digits.
        for k in 0..x.len() {
            let at = |step: f64| {
                let mut moved = x;
                moved[k] += step;
                f(Array::from_values(moved)).value()
            };
            let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
            let found = f64::from_bits(gradients[0].1[k]);
            assert!((slope - found).abs() < 1e-8 * (1.0 + slope.abs()), "{name} by {k}: {found} and {slope}");
        }
    }
}

#[test]
fn sizes_that_no_array_can_have_are_refused() {
    let two = Array::<f64>::from_values([1.0, 2.0]);
    let one = two.slice(..1);
    let (huge, most) = (1_usize << 32, u32::MAX as usize);
    let sizes: [(&str, &dyn Fn() -> Array<f64>); 10] = [
        ("zeros", &|| Array::zeros(&[huge, huge])),
        ("one axis", &|| Array::zeros(&[huge])),
        ("just too many", &|| Array::filled(&[1 << 16, 1 << 16], 1.0)),
        ("empty, and no strides for it", &|| Array::zeros(&[0, usize::MAX, usize::MAX])),
        ("broadcast", &|| one.broadcast(&[1 << 33])),
        ("broadcast that wraps to nothing", &|| one.broadcast(&[huge, huge])),
        ("reshaped", &|| two.slice(2..).reshaped(&[huge, huge])),
        ("matmul", &|| one.broadcast(&[1 << 16, 1]).matmul(&one.broadcast(&[1, 1 << 16]))),
        ("concat", &|| Array::concat(&[&one.broadcast(&[most]), &one.broadcast(&[most])])),
        ("spread beyond", &|| one.broadcast(&[usize::MAX, 2])),
    ];
    for (what, f) in sizes {
        let said = message(what, f);
        assert!(said.contains("PAL0101") && said.contains("at most 4294967295 elements"), "{what}: {said}");
    }
    // The largest view there may be, of one element: nothing is allocated for it.
    assert_eq!(one.broadcast(&[most]).len(), most);
    assert_eq!(one.broadcast(&[3, 5, 17, 257, 65537]).len(), most);
}

#[test]
fn ranges_beyond_the_largest_number_are_refused() {
    use core::ops::Bound::{Excluded, Included, Unbounded};
    let two = Array::<f64>::from_values([1.0, 2.0]);
    // The message has the range as it was written.
    const MAX: usize = usize::MAX;
    let ranges: [(&str, &dyn Fn() -> Array<f64>); 6] = [
        ("..=18446744073709551615 of axis 0", &|| two.slice(..=MAX)),
        ("(Excluded(18446744073709551615), Unbounded)", &|| two.slice((Excluded(MAX), Unbounded))),
        ("18446744073709551615..=18446744073709551615", &|| two.slice((Included(MAX), Included(MAX)))),
        ("..=18446744073709551615 of axis 1", &|| two.reshaped(&[1, 2]).slice_axis(1, ..=MAX)),
        ("slice 1..3 of axis 0, which has 2 elements", &|| two.slice(1..3)),
        ("slice 3.. of axis 0", &|| two.slice(3..)),
    ];
    for (what, slice) in ranges {
        let said = message(what, slice);
        assert!(said.contains("PAL0101") && said.contains(what), "{what}: {said}");
    }
    // A step that leads out at once shows the first element.
    for step in [2, 3, usize::MAX / 2 + 1, usize::MAX] {
        assert_eq!(two.every(0, step).values(), [1.0], "{step}");
        assert_eq!(two.every(0, step).reversed(0).values(), [1.0], "{step}");
    }
}

//! Transforms on programs written by hand, one feature each, against duals, the tape and closed forms.

use crate::agree::{check, flat, run_on};
use palinode_ir::interp::Datum;
use palinode_ir::{Program, text, transform};

fn parsed(source: &str) -> Program {
    text::parse(source).unwrap_or_else(|errors| panic!("{errors:?}\n{source}"))
}

fn agrees(source: &str, inputs: &[Datum<f64>], wrt: &[usize]) {
    let program = parsed(source);
    match check(&program, inputs, wrt) {
        Ok(covered) => assert!(covered.second_order, "numbers were too large to compare"),
        Err(failure) => {
            let reverse = transform::vjp(&program, wrt).map(|program| text::print(&program));
            panic!("{failure}\n{source}\n{}", reverse.unwrap_or_default());
        }
    }
}

fn real(x: f64) -> Datum<f64> {
    Datum::real(x)
}

fn vector(x: &[f64]) -> Datum<f64> {
    Datum::vector(x.to_vec())
}

const LOGISTIC: &str = "entry fn main(x.0: f64, r.1: f64, n.2: int) -> (f64) outputs (y) {
  v8 = const 1.0
  x.3 = for k.4 in n.2 (x.5: f64 = x.0) {
    v6 = mul r.1, x.5
    v7 = sub v8, x.5
    v9 = mul v6, v7
    yield v9
  }
  yield x.3
}";

#[test]
fn scalar_loop() {
    for n in [0, 1, 2, 10] {
        agrees(LOGISTIC, &[real(0.3), real(3.1), Datum::int(n)], &[0, 1]);
    }
}

#[test]
fn nested_loops_write_an_array() {
    let source = "entry fn main(a.0: f64[_], n.1: int, m.2: int) -> (f64) outputs (y) {
      v3 = for i.4 in n.1 (s.5: f64[_] = a.0) {
        v6 = for j.7 in m.2 (q.8: f64[_] = s.5) {
          v9 = read q.8[j.7]
          v10 = sin v9
          v20 = mul v10, v9
          v11 = write q.8[j.7], v20
          yield v11
        }
        yield v6
      }
      v12 = mul v3, v3
      v13 = reduce_sum<0> v12
      yield v13
    }";
    agrees(source, &[vector(&[0.3, 0.7, 1.1]), Datum::int(4), Datum::int(3)], &[0]);
    agrees(source, &[vector(&[0.3, 0.7, 1.1]), Datum::int(4), Datum::int(0)], &[0]);
}

#[test]
fn triangular_loops_keep_offsets() {
    let source = "entry fn main(x.0: f64, n.1: int) -> (f64) outputs (y) {
      v3 = for i.4 in n.1 (s.5: f64 = x.0) {
        v6 = for j.7 in i.4 (q.8: f64 = s.5) {
          v9 = sin q.8
          v10 = for l.11 in j.7 (p.12: f64 = v9) {
            v13 = cos p.12
            v14 = mul v13, q.8
            yield v14
          }
          yield v10
        }
        yield v6
      }
      yield v3
    }";
    agrees(source, &[real(0.7), Datum::int(5)], &[0]);
}

#[test]
fn while_with_branches_inside() {
    let source = "entry fn main(x.0: f64) -> (f64) outputs (y) {
      v1 = const 40.0
      v3 = const 1.7
      v2 = while (x.4: f64 = x.0) {
        v5 = less x.4, v1
        yield v5
      } do (x.6: f64) {
        v7 = mul x.6, v3
        v20 = const 3.0
        v8 = less v7, v20
        v9 = if v8 {
           v10 = sin v7
           v12 = add v10, v7
           v15 = mul v12, v12
           yield v15
        } else {
           v11 = sqrt v7
           v13 = mul v11, x.0
           v14 = add v13, v7
           yield v14
        }
        yield v9
      }
      yield v2
    }";
    agrees(source, &[real(0.9)], &[0]);
}

#[test]
fn loop_inside_a_branch_inside_a_loop() {
    let source = "entry fn main(x.0: f64, n.1: int) -> (f64) outputs (y) {
      two.2 = const 2i
      none.3 = const 0i
      v4 = for i.5 in n.1 (s.6: f64 = x.0) {
        v7 = irem i.5, two.2
        v8 = equal v7, none.3
        v9 = if v8 {
          v10 = for j.11 in i.5 (q.12: f64 = s.6) {
            v13 = sin q.12
            v14 = add v13, q.12
            yield v14
          }
          yield v10
        } else {
          v15 = exp s.6
          v16 = cos v15
          yield v16
        }
        yield v9
      }
      yield v4
    }";
    agrees(source, &[real(0.3), Datum::int(7)], &[0]);
}

#[test]
fn array_residuals_in_a_loop() {
    // A small recurrent net: h = tanh(W h + b), in a loop whose state is a vector.
    let source = "entry fn main(w.0: f64[_,_], b.1: f64[_], n.2: int) -> (f64) outputs (y) {
      v3 = for i.4 in n.2 (h.5: f64[_] = b.1) {
        v6 = matmul w.0, h.5
        v7 = add v6, b.1
        v8 = tanh v7
        yield v8
      }
      v9 = matmul v3, v3
      yield v9
    }";
    let w = Datum::matrix(2, 2, vec![0.3, -0.8, 0.5, 0.9]);
    agrees(source, &[w, vector(&[0.2, -0.4]), Datum::int(4)], &[0, 1]);
}

#[test]
fn arrays_that_change_their_length() {
    let source = "entry fn main(a.0: f64[_], n.1: int) -> (f64) outputs (y) {
      v3 = for i.4 in n.1 (h.5: f64[_] = a.0) {
        v6 = sin h.5
        v7 = concat<0> h.5, v6
        v8 = mul v7, v7
        yield v8
      }
      v9 = reduce_sum<0> v3
      yield v9
    }";
    agrees(source, &[vector(&[0.2, -0.4]), Datum::int(3)], &[0]);
}

#[test]
fn a_swap_is_a_parallel_move() {
    let source = "entry fn main(a.0: f64, b.1: f64, n.2: int) -> (f64, f64) outputs (x, y) {
      v3, v4 = for i.5 in n.2 (p.6: f64 = a.0, q.7: f64 = b.1) {
        v8 = mul p.6, q.7
        yield q.7, v8
      }
      yield v3, v4
    }";
    agrees(source, &[real(1.1), real(0.9), Datum::int(5)], &[0, 1]);
}

#[test]
fn captured_and_carried_at_once() {
    let source = "entry fn main(a.0: f64[_], n.1: int) -> (f64) outputs (y) {
      v2 = for i.3 in n.1 (s.4: f64[_] = a.0) {
        v5 = read a.0[i.3]
        v6 = read s.4[i.3]
        v7 = mul v5, v6
        v8 = add_at s.4[i.3], v7
        yield v8
      }
      v9 = reduce_sum<0> v2
      yield v9
    }";
    agrees(source, &[vector(&[0.5, 0.7, 1.3]), Datum::int(3)], &[0]);
}

#[test]
fn recursion() {
    let source = "fn power(x.0: f64, n.1: int) -> (f64) {
      v2 = const 0i
      v3 = less_eq n.1, v2
      v4 = if v3 {
        v5 = const 1.0
        yield v5
      } else {
        v6 = const 1i
        v7 = isub n.1, v6
        v8 = call power(x.0, v7)
        v9 = sin v8
        v10 = mul v9, x.0
        yield v10
      }
      yield v4
    }

    entry fn main(x.0: f64, n.1: int) -> (f64) outputs (y) {
      v2 = call power(x.0, n.1)
      v3 = mul v2, v2
      yield v3
    }";
    agrees(source, &[real(1.3), Datum::int(4)], &[0]);
}

#[test]
fn a_rule_given_by_hand_is_used() {
    // The rule says 10 x instead of 2 x, so it shows.
    let source = "fn square(x.0: f64) -> (f64) tangent square_rule {
      v1 = mul x.0, x.0
      yield v1
    }

    fn square_rule(x.0: f64, dx.1: f64) -> (f64) {
      v2 = const 10.0
      v3 = mul x.0, v2
      v4 = mul dx.1, v3
      yield v4
    }

    entry fn main(x.0: f64) -> (f64) outputs (y) {
      v1 = call square(x.0)
      yield v1
    }";
    let gradient = transform::grad(&parsed(source), &[0]).unwrap();
    let found = run_on(&gradient, &[real(3.0)], "the gradient").unwrap();
    assert_eq!(flat(&found), [30.0]);
    let second = transform::grad(&gradient, &[0]).unwrap();
    assert_eq!(flat(&run_on(&second, &[real(3.0)], "the second derivative").unwrap()), [10.0]);
}

#[test]
fn every_way_of_access() {
    let source = "entry fn main(a.0: f64[_,_], x.1: f64[_], l.2: int[_]) -> (f64, f64[_,_]) outputs (y, b) {
      zero.3 = const 0i
      one.4 = const 1i
      two.5 = const 2i
      row.6 = read a.0[one.4, :]
      v7 = write a.0[:, two.5], x.1
      v8 = read v7[zero.3:+two.5:one.4, @l.2]
      v9 = sin v8
      v10 = add_at v7[zero.3:+two.5:two.5, @l.2], v9
      v11 = mul row.6, row.6
      v12 = reduce_sum<0> v11
      s.13 = const 0.5
      v14 = write v10[two.5, :], v12
      v15 = mul v14, v14
      v16 = reduce_sum<0,1> v15
      v17 = reduce_max<1> v14
      v18 = matmul v17, v17
      v19 = add v16, v18
      v20 = permute<1,0> v14
      yield v19, v20
    }";
    let a = Datum::matrix(3, 3, vec![0.3, -0.8, 0.5, 0.9, 0.1, -0.2, 0.7, 0.4, 0.25]);
    agrees(source, &[a, vector(&[0.2, -0.4, 0.6]), Datum::ints(vec![2, 0])], &[0, 1]);
}

#[test]
fn dense_linear_algebra() {
    let a = Datum::matrix(3, 3, vec![2.0, 0.3, -0.4, 0.1, 1.5, 0.2, -0.3, 0.4, 3.0]);
    for op in [
        "v2 = solve a.0, b.1",
        "v2 = solve_t a.0, b.1",
        "v2 = solve_lower a.0, b.1",
        "v2 = solve_upper_t a.0, b.1",
        "v4 = inverse a.0\n v2 = matmul v4, b.1",
        "v4 = det a.0\n v2 = mul b.1, v4",
        "v4 = logdet a.0\n v2 = mul b.1, v4",
        "v3 = matmul a.0, a.0'\n v4 = cholesky v3\n v2 = matmul v4, b.1",
        "q.3, r.4 = qr a.0\n v5 = matmul q.3, b.1\n v6 = matmul r.4, b.1\n v2 = mul v5, v6",
        "v3 = matmul a.0, a.0'\n w.4, v.5 = eigh v3\n v6 = matmul v.5, b.1\n v2 = mul w.4, v6",
        "u.3, s.4, v.5 = svd a.0\n v6 = matmul u.3, b.1\n v7 = matmul v.5, b.1\n v8 = mul v6, v7\n v2 = mul s.4, v8",
    ] {
        let source = format!(
            "entry fn main(a.0: f64[_,_], b.1: f64[_]) -> (f64) outputs (y) {{\n {op}\n v20 = mul v2, v2\n v21 = reduce_sum<0> v20\n yield v21\n}}"
        );
        agrees(&source, &[a.clone(), vector(&[0.4, -0.7, 1.1])], &[0, 1]);
    }
    // Of a symmetric matrix itself: duals in single entries, which leave the symmetric ones, are the oracle.
    let a = Datum::matrix(3, 3, vec![2.0, 0.3, -0.4, 0.3, 1.5, 0.2, -0.4, 0.2, 3.0]);
    for op in [
        "v4 = cholesky a.0\n v2 = matmul v4, b.1",
        "w.4, v.5 = eigh a.0\n v6 = matmul v.5, b.1\n v2 = mul w.4, v6",
    ] {
        let source = format!(
            "entry fn main(a.0: f64[_,_], b.1: f64[_]) -> (f64) outputs (y) {{\n {op}\n v20 = mul v2, v2\n v21 = reduce_sum<0> v20\n yield v21\n}}"
        );
        agrees(&source, &[a.clone(), vector(&[0.4, -0.7, 1.1])], &[0, 1]);
    }
}

#[test]
fn closed_forms_of_loops() {
    // Repeated squaring: 2^n x^(2^n - 1).
    let source = "entry fn main(x.0: f64, n.1: int) -> (f64) outputs (y) {
      v2 = for k.3 in n.1 (x.4: f64 = x.0) {
        v5 = mul x.4, x.4
        yield v5
      }
      yield v2
    }";
    let gradient = transform::grad(&parsed(source), &[0]).unwrap();
    let found = flat(&run_on(&gradient, &[real(1.1), Datum::int(3)], "the gradient").unwrap())[0];
    assert!((found - 8.0 * 1.1_f64.powi(7)).abs() < 1e-13, "{found}");
    // The second and the third derivative, by doing it again.
    let second = transform::grad(&gradient, &[0]).unwrap();
    let found = flat(&run_on(&second, &[real(1.1), Datum::int(3)], "the second").unwrap())[0];
    assert!((found - 56.0 * 1.1_f64.powi(6)).abs() < 1e-12, "{found}");
    let third = transform::grad(&second, &[0]).unwrap();
    let found = flat(&run_on(&third, &[real(1.1), Datum::int(3)], "the third").unwrap())[0];
    assert!((found - 336.0 * 1.1_f64.powi(5)).abs() < 1e-11, "{found}");
}

#[test]
fn a_program_does_not_grow_with_its_loops() {
    let sizes: Vec<usize> = [10, 1_000_000]
        .map(|n: i64| {
            let source = LOGISTIC
                .replace("n.2: int) -> ", "n.20: int) -> ")
                .replace("v8 = const 1.0", &format!("v8 = const 1.0\n  n.2 = const {n}i"));
            let gradient = transform::grad(&parsed(&source), &[0]).unwrap();
            text::print(&gradient).replace("1000000", "10").len()
        })
        .to_vec();
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn jacobian_and_hessian() {
    let source = "entry fn main(x.0: f64[_], s.1: f64) -> (f64[_], f64) outputs (y, z) {
      v2 = mul x.0, x.0
      v3 = mul v2, s.1
      v4 = reduce_sum<0> v3
      v5 = mul v4, s.1
      yield v3, v5
    }";
    let program = parsed(source);
    let inputs = [vector(&[1.0, 2.0]), real(3.0)];
    let found = run_on(&transform::jacobian(&program, &[0, 1]).unwrap(), &inputs, "the Jacobian").unwrap();
    let shapes: Vec<&[usize]> = found.iter().map(|datum| datum.shape()).collect();
    assert_eq!(shapes, [&[2, 2][..], &[2], &[2], &[]]);
    assert_eq!(flat(&found), [6.0, 0.0, 0.0, 12.0, 1.0, 4.0, 18.0, 36.0, 30.0]);
    // z = s^2 |x|^2
    let source = source
        .replace("(f64[_], f64) outputs (y, z)", "(f64) outputs (z)")
        .replace("yield v3, v5", "yield v5");
    let found =
        run_on(&transform::hessian(&parsed(&source), &[0, 1]).unwrap(), &inputs, "the Hessian").unwrap();
    let shapes: Vec<&[usize]> = found.iter().map(|datum| datum.shape()).collect();
    assert_eq!(shapes, [&[2, 2][..], &[2], &[2], &[]]);
    assert_eq!(flat(&found), [18.0, 0.0, 0.0, 18.0, 12.0, 24.0, 12.0, 24.0, 10.0]);
}

#[test]
fn transpose_of_a_linear_program() {
    let source = "entry fn main(w.0: f64[_], t.1: f64[_], n.2: int) -> (f64) outputs (y) {
      v3 = for k.4 in n.2 (t.5: f64[_] = t.1) {
        v6 = mul t.5, w.0
        v7 = add v6, t.1
        yield v7
      }
      v8 = reduce_sum<0> v3
      yield v8
    }";
    let program = parsed(source);
    let transposed = transform::transpose(&program, &[1]).unwrap();
    let (w, t) = ([0.5, 2.0], [1.5, -0.25]);
    let y = flat(&run_on(&program, &[vector(&w), vector(&t), Datum::int(3)], "forwards").unwrap())[0];
    let inputs = [vector(&w), Datum::int(3), real(2.0), vector(&[0.0, 0.0])];
    let back = flat(&run_on(&transposed, &inputs, "backwards").unwrap());
    let inner: f64 = back.iter().zip(&t).map(|(c, t)| c * t).sum();
    assert!((inner - 2.0 * y).abs() < 1e-12, "<u, J v> = {} but <J' u, v> = {inner}", 2.0 * y);
    // By w it is not linear.
    let error = transform::transpose(&program, &[0, 1]).unwrap_err();
    assert!(error.to_string().starts_with("PAL0273"), "{error}");
}

#[test]
fn a_rule_may_have_slopes_where_the_body_has_none() {
    let source = "fn quantised(x.0: f64) -> (f64) tangent straight_through {
      v1 = round x.0
      yield v1
    }

    fn straight_through(x.0: f64, dx.1: f64) -> (f64) {
      yield dx.1
    }

    entry fn main(x.0: f64) -> (f64) outputs (y) {
      v1 = call quantised(x.0)
      v2 = mul v1, v1
      yield v2
    }";
    let gradient = transform::grad(&parsed(source), &[0]).unwrap();
    assert_eq!(flat(&run_on(&gradient, &[real(2.6)], "the gradient").unwrap()), [6.0]);
}

/// Writes of single elements cost O(1), forwards, backwards and in the second derivative: nothing is copied,
/// and what is filled grows with the array, not with the product of writes and elements.
#[test]
fn single_writes_cost_the_same_backwards() {
    let source = "entry fn main(a.0: f64[_], s.1: f64) -> (f64) outputs (y) {
      n.2 = dim<0> a.0
      one.3 = const 1i
      m.4 = isub n.2, one.3
      v5 = for k.6 in m.4 (q.7: f64[_] = a.0) {
        v8 = read q.7[k.6]
        v9 = iadd k.6, one.3
        v10 = read q.7[v9]
        v11 = mul v8, v10
        v12 = sin v11
        v13 = mul v12, s.1
        v14 = write q.7[v9], v13
        v15 = add_at v14[k.6], v13
        yield v15
      }
      v16 = read v5[m.4]
      yield v16
    }";
    use palinode_ir::interp::{Code, Limits};
    let n = 2000;
    let a: Vec<f64> = (0..n).map(|k| 1.0 + f64::from(k % 7) * 0.1).collect();
    let program = parsed(source);
    let gradient = transform::grad(&program, &[0, 1]).unwrap();
    let second = transform::vjp(&gradient, &[0, 1]).unwrap();
    let inputs = [vector(&a), real(0.9)];
    let seeds = [vector(&a), real(0.5)];
    let cases =
        [(&program, inputs.to_vec()), (&gradient, inputs.to_vec()), (&second, [inputs, seeds].concat())];
    for (program, inputs) in cases {
        let (_, stats) = Code::new(program).run_with_stats(&inputs, &Limits::default()).unwrap();
        // The argument itself is copied once, because the caller keeps it.
        assert!(stats.elements_copied <= 4 * n as u64, "{stats:?}\n{}", text::print(program));
        assert!(stats.elements_filled <= 40 * n as u64, "{stats:?}\n{}", text::print(program));
    }
}

#[test]
fn what_cannot_be_transposed_is_refused() {
    let with = |body: &str| {
        let source = format!(
            "entry fn main(t.0: f64, w.1: f64) -> (f64) outputs (y) {{\n zero.2 = const 0.0\n three.3 = const 3.0\n {body}\n yield v9\n}}"
        );
        transform::transpose(&parsed(&source), &[0]).map_err(|error| error.code())
    };
    assert!(with("v9 = mul t.0, w.1").is_ok());
    assert!(with("v9 = add t.0, zero.2").is_ok());
    for body in [
        "v9 = add t.0, three.3",
        "v9 = mul t.0, t.0",
        "v9 = sin t.0",
        "v8 = less t.0, w.1\n v9 = select v8, t.0, zero.2",
        "v8 = less t.0, w.1\n v9 = if v8 {\n yield t.0\n } else {\n yield zero.2\n }",
        "v8 = stop_gradient t.0\n v9 = add t.0, v8",
        "v8 = convert<int> t.0\n v9 = for k.10 in v8 (s.11: f64 = t.0) {\n yield s.11\n }",
        "v9 = while (s.10: f64 = t.0) {\n v11 = less s.10, w.1\n yield v11\n } do (s.12: f64) {\n v13 = add s.12, s.12\n yield v13\n }",
    ] {
        assert_eq!(with(body).unwrap_err(), "PAL0273", "{body}");
    }
}

#[test]
fn an_argument_listed_twice_is_refused() {
    let program = parsed(LOGISTIC);
    for found in [
        transform::grad(&program, &[0, 0]),
        transform::jvp(&program, &[1, 1]),
        transform::hessian(&program, &[0, 0]),
    ] {
        assert_eq!(found.unwrap_err().code(), "PAL0274");
    }
    assert_eq!(transform::grad(&program, &[7]).unwrap_err().code(), "PAL0270");
    assert_eq!(transform::grad(&program, &[2]).unwrap_err().code(), "PAL0271");
}

#[test]
fn a_tangent_rule_must_be_linear() {
    let source = "fn square(x.0: f64) -> (f64) tangent rule {
      v1 = mul x.0, x.0
      yield v1
    }

    fn rule(x.0: f64, dx.1: f64) -> (f64) {
      v2 = mul dx.1, dx.1
      yield v2
    }

    entry fn main(x.0: f64) -> (f64) outputs (y) {
      v1 = call square(x.0)
      yield v1
    }";
    let program = parsed(source);
    assert_eq!(transform::grad(&program, &[0]).unwrap_err().code(), "PAL0273");
    assert_eq!(transform::linearize(&program, &[0]).unwrap_err().code(), "PAL0273");
    assert_eq!(transform::jvp(&program, &[0]).unwrap_err().code(), "PAL0273");
}

#[test]
fn an_entry_that_calls_itself() {
    let source = "entry fn main(x: f64, n: int) -> (f64) outputs (y) {
      zero = const 0i
      one = const 1i
      c = less_eq n, zero
      r = if c {
        s = sin x
        yield s
      } else {
        m = isub n, one
        k = const 2.0
        t = call main(k, m)
        u = call main(x, m)
        v = mul t, u
        yield v
      }
      yield r
    }";
    agrees(source, &[real(0.5), Datum::int(3)], &[0]);
}

/// Which results depend on what must be found for all functions together: an answer that was found while
/// another function was still taken to depend on nothing is not final.
#[test]
fn functions_that_call_each_other() {
    let pal = |source: &str| {
        let model = palinode_ir::pal::compile(source).unwrap_or_else(|problems| panic!("{problems:?}"));
        match check(&model.program, &[real(0.7)], &[0]) {
            Ok(covered) => assert!(covered.second_order),
            Err(failure) => panic!("{failure}\n{source}"),
        }
    };
    pal("param x = 0.7
fn f(a: real, n: int) -> real { if n == 0 { return sin(a) }; return g(a, n - 1) }
fn g(a: real, n: int) -> real { if n == 0 { return 3.0 }; return f(a, n - 1) }
loss l = f(x, 2) * 2 + g(x, 3)
");
    pal("param x = 0.7
fn f(a: real, b: real, n: int) -> real { if n == 0 { return sin(a) }; return f(b, a, n - 1) }
loss l = f(x, 2, 4) + f(2, x, 3)
");
}

#[test]
fn a_rule_that_was_fused_is_still_a_rule() {
    let source = "fn twice(a: f64[_]) -> (f64[_]) tangent rule {
      v = add a, a
      yield v
    }

    fn rule(a: f64[_], da: f64[_]) -> (f64[_]) {
      two = const 2.0
      half = const 0.5
      w = mul da, two
      u = mul w, half
      t = mul u, two
      yield t
    }

    entry fn main(a: f64[_]) -> (f64) outputs (y) {
      v = call twice(a)
      w = mul v, v
      y = reduce_sum<0> w
      yield y
    }";
    let program = palinode_ir::passes::simplify(&parsed(source));
    let gradient = transform::grad(&program, &[0]).unwrap();
    assert_eq!(flat(&run_on(&gradient, &[vector(&[1.0, 2.0])], "the gradient").unwrap()), [8.0, 16.0]);
}

/// `<u, J v> = <J' u, v>` for linear programs that nobody generated, so that lengths must be found from the
/// operations.
#[test]
fn linear_programs_by_hand_are_transposed() {
    let matrix = || Datum::matrix(2, 3, vec![0.3, -0.8, 0.5, 0.9, 0.1, -0.2]);
    // Parameters, body, what is known, and where the program is linear.
    type Case = (&'static str, &'static str, Vec<Datum<f64>>, Datum<f64>);
    let cases: Vec<Case> = vec![
        (
            "w: f64, n: int, a: f64[_]",
            "one = const 1i\n v = read a[one:+n:one]\n s = reduce_sum<0> v\n y = mul s, w",
            vec![real(0.7), Datum::int(2)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64, a: f64[_]",
            "v = concat<0> a, a\n u = mul v, w\n y = reduce_sum<0> u",
            vec![real(0.7)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "m: f64[_,_], a: f64[_]",
            "v = matmul m, a\n y = reduce_sum<0> v",
            vec![matrix()],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64[_], m: f64[_,_]",
            "p = permute<1,0> m\n q = reduce_sum<1> p\n y = matmul q, w",
            vec![vector(&[0.2, 0.3, -0.9])],
            matrix(),
        ),
        (
            "n: int, m: f64[_,_]",
            "z = const 0.0\n y = for i in n (s: f64 = z) {\n v = read m[i, :]\n u = reduce_sum<0> v\n t = add s, u\n yield t\n }",
            vec![Datum::int(2)],
            matrix(),
        ),
        (
            "c: bool, a: f64[_]",
            "v = if c {\n yield a\n } else {\n b = add a, a\n yield b\n }\n y = reduce_sum<0> v",
            vec![Datum::bool(false)],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "l: int[_], a: f64[_]",
            "v = read a[@l]\n y = reduce_sum<0> v",
            vec![Datum::ints(vec![2, 0, 2, 1])],
            vector(&[0.4, 1.5, -0.3]),
        ),
        (
            "w: f64[_], a: f64[_]",
            "v = strong_outer a, w\n u = permute<1,0> v\n s = reduce_sum<0> u\n y = reduce_sum<0> s",
            vec![vector(&[0.2, 0.3])],
            vector(&[0.4, 1.5, -0.3]),
        ),
    ];
    for (params, body, known, v) in cases {
        let source = format!("entry fn main({params}) -> (f64) outputs (y) {{\n {body}\n yield y\n}}");
        let program = parsed(&source);
        let transposed = transform::transpose(&program, &[known.len()])
            .unwrap_or_else(|error| panic!("{error}\n{source}"));
        let y =
            flat(&run_on(&program, &[&known[..], std::slice::from_ref(&v)].concat(), "forwards").unwrap())[0];
        let zeros = v.map(|_| 0.0);
        let inputs = [&known[..], &[real(2.0), zeros]].concat();
        let back = flat(&run_on(&transposed, &inputs, "backwards").unwrap());
        let inner: f64 = back.iter().zip(v.as_vector().unwrap()).map(|(c, v)| c * v).sum();
        assert!((inner - 2.0 * y).abs() < 1e-12, "<u, J v> = {} but <J' u, v> = {inner}\n{source}", 2.0 * y);
    }
    // A length that grows in the loop is not known beforehand: refused, not guessed.
    let source = "entry fn main(n: int, a: f64[_]) -> (f64) outputs (y) {
      v = for i in n (s: f64[_] = a) {
        t = push s, s
        yield t
      }
      y = reduce_sum<0> v
      yield y
    }";
    assert_eq!(transform::transpose(&parsed(source), &[1]).unwrap_err().code(), "PAL0273");
}

#[test]
fn a_rule_that_reads_a_part_of_its_tangent() {
    let source = "fn f(a: f64[_]) -> (f64) tangent df {
      one = const 1i
      none = const 0i
      two = const 2i
      v = read a[none:+two:one]
      s = reduce_sum<0> v
      yield s
    }

    fn df(a: f64[_], da: f64[_]) -> (f64) {
      one = const 1i
      none = const 0i
      two = const 2i
      v = read da[none:+two:one]
      s = reduce_sum<0> v
      yield s
    }

    entry fn main(a: f64[_]) -> (f64) outputs (y) {
      s = call f(a)
      y = sin s
      yield y
    }";
    agrees(source, &[vector(&[0.3, 0.5, 0.9])], &[0]);
}

#[test]
fn elements_that_tie_share_the_derivative() {
    let source = "entry fn main(a: f64[_], m: f64[_,_]) -> (f64, f64[_]) outputs (y, z) {
      y = reduce_max<0> a
      z = reduce_min<1> m
      yield y, z
    }";
    let a = vector(&[0.2, 0.1, 0.2, 0.2]);
    let m = Datum::matrix(2, 3, vec![0.5, 0.5, 0.7, 0.3, 0.3, 0.3]);
    agrees(source, &[a.clone(), m.clone()], &[0, 1]);
    let source =
        source.replace("(f64, f64[_]) outputs (y, z)", "(f64) outputs (y)").replace("yield y, z", "yield y");
    let gradient = transform::grad(&parsed(&source), &[0]).unwrap();
    let found = flat(&run_on(&gradient, &[a, m], "the gradient").unwrap());
    assert_eq!(found, [1.0 / 3.0, 0.0, 1.0 / 3.0, 1.0 / 3.0]);
}

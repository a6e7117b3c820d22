//! Times gradients of models: interpreter and machine code. `cargo run --release -p palinode-native
//! --example time -- a.pal`
use palinode_ir::{
    interp::{Code, Datum, Limits, Tensor},
    loops, pal, passes, transform,
};
use palinode_native::Native;
use std::time::Instant;

fn best(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    f();
    let once = start.elapsed().as_secs_f64();
    let rounds = ((0.5 / once) as usize).clamp(1, 200);
    (0..rounds)
        .map(|_| {
            let s = Instant::now();
            f();
            s.elapsed().as_secs_f64()
        })
        .fold(once, f64::min)
}

fn main() {
    let mut show = false;
    for path in std::env::args().skip(1) {
        if path == "--show" {
            show = true;
            continue;
        }
        let source = std::fs::read_to_string(&path).unwrap();
        let model = match pal::compile(&source) {
            Ok(m) => m,
            Err(e) => {
                println!("{path}: {:?}", e[0]);
                continue;
            }
        };
        let inputs: Vec<Datum<f64>> = model
            .arguments
            .iter()
            .map(|a| {
                let d = a.default.as_ref().expect("a default");
                let scale = |x: f64| a.unit.as_ref().map_or(x, |u| u.to_si(x));
                let (shape, data) = (d.shape().to_vec(), d.data().to_vec());
                match a.ty.elem {
                    palinode_ir::Elem::Int => {
                        Datum::Int(Tensor { shape, data: data.iter().map(|&x| x as i64).collect() })
                    }
                    _ => Datum::Real(Tensor { shape, data: data.iter().map(|&x| scale(x)).collect() }),
                }
            })
            .collect();
        let wrt: Vec<usize> =
            (0..inputs.len()).filter(|&i| model.arguments[i].role == pal::Role::Param).collect();
        let value = passes::simplify(&passes::inline(&model.program));
        let grad = passes::simplify(&transform::value_and_grad(&model.program, &wrt).unwrap());
        for (what, program) in [("value", value), ("grad", grad)] {
            let limits = Limits { trap_nonfinite: true, ..Limits::default() };
            let code = Code::new(&program);
            let t_int = best(|| {
                code.run(&inputs, &limits).unwrap();
            });
            let start = Instant::now();
            let form = match loops::lower(&program, &inputs, true) {
                Ok(f) => f,
                Err(r) => {
                    println!("{path} {what}: interp {:.3} ms, refused {r:?}", t_int * 1e3);
                    continue;
                }
            };
            let t_lower = start.elapsed().as_secs_f64();
            if show {
                println!("{form}");
            }
            let start = Instant::now();
            let native = Native::new(form).unwrap();
            let t_compile = start.elapsed().as_secs_f64();
            let Ok(_) = native.run(&inputs, &limits) else {
                println!("{path} {what}: stopped");
                continue;
            };
            let t_nat = best(|| {
                native.run(&inputs, &limits).unwrap();
            });
            println!(
                "{path} {what}: interp {:.4} ms, native {:.4} ms ({:.1}x), lower {:.2} ms, compile {:.2} ms, workspace {} B",
                t_int * 1e3,
                t_nat * 1e3,
                t_int / t_nat,
                t_lower * 1e3,
                t_compile * 1e3,
                native.workspace_bytes()
            );
        }
    }
}

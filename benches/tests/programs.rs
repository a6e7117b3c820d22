//! The value and the gradient of every model are those of the plain function.

use benches::programs;

#[test]
fn every_model_agrees_with_the_plain_function_and_its_differences() {
    for (name, value, gradient) in programs::distances() {
        println!("{name}: value {value:.1e}, gradient {gradient:.1e}");
        assert!(value < 1e-9, "{name}: the value is {value:e} from the plain function's");
        assert!(gradient < 1e-6, "{name}: the gradient is {gradient:e} from differences");
    }
}

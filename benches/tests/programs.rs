//! What the models give is what the plain functions give, and their differences.

use benches::programs;

#[test]
fn every_model_agrees_with_the_plain_function_and_its_differences() {
    for (name, value, gradient) in programs::distances() {
        println!("{name}: value {value:.1e}, gradient {gradient:.1e}");
        assert!(value < 1e-9, "{name}: the value is {value:e} from the plain function's");
        assert!(gradient < 1e-6, "{name}: the gradient is {gradient:e} from differences");
    }
}

#[test]
fn products_and_bundle_adjustment_agree_with_the_plain_functions() {
    let product = programs::distance_of_product();
    assert!(product < 1e-14, "the product is {product:e} from the plain one");
    let [errors, entries, differences] = programs::distances_of_ba();
    println!("errors {errors:.1e}, entries {entries:.1e}, differences {differences:.1e}");
    assert!(errors < 1e-13, "errors are {errors:e} from the plain function's");
    assert!(entries < 1e-12, "entries are {entries:e} from those of numbers with tangents");
    assert!(differences < 1e-7, "tangents are {differences:e} from differences");
}

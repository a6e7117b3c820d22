#[path = "all/check.rs"]
mod check;
#[path = "all/confusion.rs"]
mod confusion;
#[path = "all/nested_points.rs"]
mod nested_points;
#[path = "all/nesting.rs"]
mod nesting;
#[path = "all/point_laws.rs"]
mod point_laws;
#[path = "all/points.rs"]
mod points;
#[path = "all/structured.rs"]
mod structured;

//! Explanations for people.

mod awaited;
mod circle;
mod flow;
mod flows;
mod merged;
mod page;
mod pauses;
mod places;

pub use circle::render_circle;
pub use flow::render_flow;
pub use flows::render_flows;

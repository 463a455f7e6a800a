//! Explanations for people.

mod flow;
mod flows;
mod merged;
mod page;
mod pauses;
mod places;

pub use flow::render_flow;
pub use flows::render_flows;

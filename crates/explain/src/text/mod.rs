//! Explanations as text.

mod awaited;
mod cycle;
mod flow;
mod flows;
mod merged;
mod page;
mod pauses;
mod places;

pub use cycle::render_cycle;
pub use flow::render_flow;
pub use flows::render_flows;

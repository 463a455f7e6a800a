//! stub
use crate::*;
/// x
pub struct ReportInput<'a> {
    /// x
    pub summary: &'a Summary,
    /// x
    pub points: &'a [PointSummary],
    /// x
    pub scenario_toml: &'a str,
    /// x
    pub command: &'a str,
}
/// x
pub fn render_report(_: &ReportInput) -> String {
    String::new()
}

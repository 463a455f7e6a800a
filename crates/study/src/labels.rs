//! Labels of runs in the tables of a study, and the table of links.

use std::path::Path;

use selvedge_results::{Labels, LinkRow, ResultsError, Swept, write_links};
use selvedge_scenario::{KeyValue, Plan, PlannedSeries};
use selvedge_sim::{port_infos, ports_of_links};

/// Returns the labels of each series of `plan`.
pub(crate) fn labels(plan: &Plan) -> Vec<Labels> {
    let columns: Vec<(&String, Vec<Swept>)> = plan.swept.iter().map(|key| (key, column(plan, key))).collect();
    let label = |(at, series): (usize, &PlannedSeries)| Labels {
        name: series.name.clone(),
        series: series.series.clone(),
        case: series.case.clone(),
        swept: columns.iter().map(|(key, values)| ((*key).clone(), values[at].clone())).collect(),
    };
    plan.series.iter().enumerate().map(label).collect()
}

/// Returns the values of a key, series by series: numbers if all of them are, else texts.
fn column(plan: &Plan, key: &str) -> Vec<Swept> {
    let values: Vec<Option<KeyValue>> = plan.series.iter().map(|series| series.value_of(key)).collect();
    let is_number = |value: &Option<KeyValue>| matches!(value, None | Some(KeyValue::Number(_)));
    if values.iter().all(is_number) {
        let number = |value: Option<KeyValue>| match value {
            Some(KeyValue::Number(number)) => number,
            _ => f64::NAN,
        };
        return values.into_iter().map(|value| Swept::Number(number(value))).collect();
    }
    let text = |value: Option<KeyValue>| value.map(|value| value.to_string()).unwrap_or_default();
    values.into_iter().map(|value| Swept::Text(text(value))).collect()
}

/// Writes the links of each series' network.
pub(crate) fn write_all_links(plan: &Plan, path: &Path) -> Result<(), ResultsError> {
    let links = |series: &PlannedSeries| -> Vec<LinkRow> {
        let graph = series.network.graph();
        let infos = port_infos(graph);
        let both = (0..).zip(graph.links.iter().zip(ports_of_links(graph))).flat_map(|(link, (config, ports))| {
            ports.map(|port| LinkRow {
                link,
                port: infos[port.index()].clone(),
                delay: config.delay,
                loss: config.loss.as_f64(),
            })
        });
        both.collect()
    };
    let networks: Vec<(Labels, Vec<LinkRow>)> =
        labels(plan).into_iter().zip(&plan.series).map(|(labels, series)| (labels, links(series))).collect();
    write_links(path, &networks)
}

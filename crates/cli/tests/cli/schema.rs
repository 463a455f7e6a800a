//! Tests that results conform to their schema.

use selvedge_testkit::texts::SCENARIO as SMALL;
use serde_json::{Map, Value, json};

use super::{Scratch, parsed};

#[test]
fn a_summary_is_what_its_schema_says() {
    let flows = (0..10).map(|host| format!("{host} {} 3 100 20000000 0\n", (host + 4) % 10));
    let flows = format!("10\n{}", flows.collect::<String>());
    let scratch = Scratch::new("schema").with("ok.toml", SMALL).with("ring.toml", RING).with("ring.txt", &flows);
    let (schema, _) = scratch.expect(0, &["schema", "summary"]);
    let schema = parsed(&schema);
    let (out, _) = scratch.expect(0, &["run", "ok.toml", "--json", "-q"]);
    let summary = parsed(&out);
    assert_eq!(Schema(&schema).complaint(&summary), None);
    let (out, _) = scratch.expect(0, &["run", "ring.toml", "--json", "-q"]);
    let ring = parsed(&out);
    assert_eq!(ring["series"][0]["deadlocks"][0]["cycle"][0]["paused_by"], "s1", "{out}");
    let named = "ended in a PFC deadlock at 2,000 us (5 ports wait in a cycle: s0 for s1, s1 for s2, s2 for s3, s3 for \
                 s4, s4 for s0).";
    assert!(ring["warnings"][1].as_str().is_some_and(|warning| warning.ends_with(named)), "{out}");
    assert_eq!(Schema(&schema).complaint(&ring), None);

    for (place, wrong) in [
        ("/seeds/0", json!(-1)),
        ("/verdict/answer", json!("maybe")),
        ("/series/0/drops/unknown-qp", json!("many")),
        ("/ratios/0/ci95", json!([1.0])),
        ("/run/points/0", json!({})),
        ("/series/0/metrics/fct_mean_us/median", json!(1.0)),
    ] {
        let mut summary = summary.clone();
        match summary.pointer_mut(place) {
            Some(value) => *value = wrong,
            None => {
                let (parent, key) = place.rsplit_once('/').expect("a place has a parent");
                summary.pointer_mut(parent).expect("the parent exists")[key] = wrong;
            }
        }
        assert!(Schema(&schema).complaint(&summary).is_some(), "{place}");
    }
}

#[test]
fn every_metric_of_a_summary_is_described() {
    let scratch = Scratch::new("described");
    let (schema, _) = scratch.expect(0, &["schema", "summary"]);
    let schema = parsed(&schema);
    let described = schema.pointer("/$defs/SeriesSummary/properties/metrics/properties").unwrap();
    for metric in selvedge_results::METRICS {
        let text = described[metric.name]["description"].as_str().unwrap_or_default();
        assert!(text.contains(metric.meaning), "{}: {text}", metric.name);
    }
    let fct = "Average FCT, in microseconds: flow completion time, mean over measured flows; of a flow that had not finished \
               when the run ended, its age: at least so much.";
    assert_eq!(described["fct_mean_us"]["description"], fct);
}

/// Scenario in which flows from each switch to the next but one fill all buffers of the cycle.
const RING: &str = r#"title = "ring"
seeds = 1
[topology.explicit]
hosts = ["a0", "b0", "a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]
switches = ["s0", "s1", "s2", "s3", "s4"]
links = [
  { between = ["a0", "s0"], rate = "100Gbps", delay = "1us" }, { between = ["b0", "s0"], rate = "100Gbps", delay = "1us" },
  { between = ["a1", "s1"], rate = "100Gbps", delay = "1us" }, { between = ["b1", "s1"], rate = "100Gbps", delay = "1us" },
  { between = ["a2", "s2"], rate = "100Gbps", delay = "1us" }, { between = ["b2", "s2"], rate = "100Gbps", delay = "1us" },
  { between = ["a3", "s3"], rate = "100Gbps", delay = "1us" }, { between = ["b3", "s3"], rate = "100Gbps", delay = "1us" },
  { between = ["a4", "s4"], rate = "100Gbps", delay = "1us" }, { between = ["b4", "s4"], rate = "100Gbps", delay = "1us" },
  { between = ["s0", "s1"], rate = "100Gbps", delay = "1us" }, { between = ["s1", "s2"], rate = "100Gbps", delay = "1us" },
  { between = ["s2", "s3"], rate = "100Gbps", delay = "1us" }, { between = ["s3", "s4"], rate = "100Gbps", delay = "1us" },
  { between = ["s4", "s0"], rate = "100Gbps", delay = "1us" },
]
[workload.flows]
path = "ring.txt"
[[series]]
preset = "roce+pfc"
"#;

/// Schema written by schemars. Properties that the schema does not describe are errors, unlike in JSON Schema alone.
struct Schema<'a>(&'a Value);

impl Schema<'_> {
    /// Returns the first violation of the schema by `value`, and its place.
    fn complaint(&self, value: &Value) -> Option<String> {
        self.check(self.0, value, "")
    }

    fn check(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        let rules = schema.as_object().expect("a schema is an object");
        for (rule, of) in rules {
            let fits = |schema: &Value| self.check(schema, value, at).is_none();
            let listed = || of.as_array().expect("a list of schemas or values").iter();
            let holds = match &**rule {
                "$ref" => {
                    let name = of.as_str().expect("a reference").trim_start_matches('#');
                    if let Some(complaint) = self.check(self.0.pointer(name).expect("a defined reference"), value, at) {
                        return Some(complaint);
                    }
                    true
                }
                "type" => listed_or_one(of).iter().any(|kind| is_of(value, kind)),
                "const" => value == of,
                "enum" => listed().any(|one| one == value),
                "anyOf" => listed().any(fits),
                "oneOf" => listed().filter(|schema| fits(schema)).count() == 1,
                "minimum" => value.as_f64().is_none_or(|number| Some(number) >= of.as_f64()),
                "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= of.as_u64().unwrap()),
                "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= of.as_u64().unwrap()),
                "required" => {
                    let has = |key: &Value| value.get(key.as_str().expect("a key")).is_some();
                    !value.is_object() || listed().all(has)
                }
                "items" => {
                    let items = value.as_array().into_iter().flatten().enumerate();
                    let complaint =
                        items.map(|(n, item)| self.check(of, item, &format!("{at}/{n}"))).find_map(|found| found);
                    if complaint.is_some() {
                        return complaint;
                    }
                    true
                }
                "properties" | "additionalProperties" => true,
                "$schema" | "$defs" | "title" | "description" | "format" | "default" => true,
                other => panic!("the schema says {other}, which this test does not know"),
            };
            if !holds {
                return Some(format!("{at}: {value} is not {rule} {of}"));
            }
        }
        value.as_object().filter(|_| rules.get("type") == Some(&"object".into())).and_then(|object| {
            let known = rules.get("properties").and_then(Value::as_object);
            self.check_keys(known, rules.get("additionalProperties"), object, at)
        })
    }

    fn check_keys(
        &self,
        known: Option<&Map<String, Value>>,
        others: Option<&Value>,
        object: &Map<String, Value>,
        at: &str,
    ) -> Option<String> {
        object.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            match known.and_then(|known| known.get(key)).or(others) {
                Some(schema) => self.check(schema, value, &at),
                None => Some(format!("{at}: nothing describes this")),
            }
        })
    }
}

fn listed_or_one(kinds: &Value) -> Vec<&str> {
    match kinds {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        one => one.as_str().into_iter().collect(),
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("there is no type {other}"),
    }
}

//! List of the packages that an installation is made of, in the format CycloneDX 1.6.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::build::Build;
use super::packages::date;
use crate::command::{cargo, output};
use crate::workspace::read;

/// Packages of this workspace that an installation and the wheel contain.
const ROOTS: [&str; 5] = ["selvedge", "selvedge-ibverbs", "selvedge-native-c", "selvedge-udp", "selvedge-py"];

/// Returns the list. It follows Cargo's graph of normal dependencies from the programs and libraries, for the target of
/// the build; procedural macros are part of the graph, build scripts are not.
///
/// # Errors
/// Returns an error if Cargo knows no such graph.
pub(super) fn sbom(build: &Build) -> Result<String> {
    let target = build.target.clone().unwrap_or(host()?);
    let arguments = ["metadata", "--format-version=1", "--locked", "--filter-platform", &target];
    let metadata = serde_json::from_str(&output(&mut cargo(arguments))?).context("cargo metadata")?;
    let list = describe(&metadata, &checksums(&read("Cargo.lock")?), &date("+%Y-%m-%dT%H:%M:%SZ")?)?;
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

/// Returns the target for which this program was built.
fn host() -> Result<String> {
    let text = output(std::process::Command::new("rustc").arg("-vV"))?;
    Ok(text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc -vV names no host")?.to_owned())
}

/// Returns the checksums in a lock file, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        line.map(|rest| rest.trim_end_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    blocks
        .filter_map(|block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?)))
        .collect()
}

fn describe(metadata: &Value, sums: &BTreeMap<(String, String), String>, time: &str) -> Result<Value> {
    let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        array(&metadata["packages"]).into_iter().map(|package| (text(&package["id"]), package)).collect();
    let edges: BTreeMap<String, Vec<String>> = array(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let normal = |edge: &&Value| array(&edge["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let to = array(&node["deps"]).iter().filter(normal).map(|edge| text(&edge["pkg"])).collect();
            (text(&node["id"]), to)
        })
        .collect();
    let is_root = |package: &Value| ROOTS.contains(&text(&package["name"]).as_str()) && package["source"].is_null();
    let mut open: Vec<String> = packages.iter().filter(|(_, one)| is_root(one)).map(|(id, _)| id.clone()).collect();
    let mut seen: BTreeSet<String> = open.iter().cloned().collect();
    while let Some(id) = open.pop() {
        open.extend(edges.get(&id).into_iter().flatten().filter(|to| seen.insert((*to).clone())).cloned());
    }
    let url = |package: &Value| format!("pkg:cargo/{}@{}", text(&package["name"]), text(&package["version"]));
    let mut components = Vec::new();
    for package in seen.iter().map(|id| &packages[id]) {
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let kind = if name == "selvedge" { "application" } else { "library" };
        let mut component = json!({
            "type": kind, "bom-ref": url(package), "name": name, "version": version, "purl": url(package),
        });
        if let Some(license) = package["license"].as_str() {
            // An old notation of crates.io.
            component["licenses"] = json!([{ "expression": license.replace('/', " OR ") }]);
        }
        if let Some(sum) = sums.get(&(name, version)) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        if let Some(repository) = package["repository"].as_str() {
            component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
        }
        components.push(component);
    }
    let roots: Vec<String> = seen.iter().map(|id| &packages[id]).filter(|one| is_root(one)).map(url).collect();
    let mut dependencies = vec![json!({ "ref": "selvedge-installation", "dependsOn": roots })];
    dependencies.extend(seen.iter().map(|id| {
        let to = edges.get(id).into_iter().flatten().map(|to| url(&packages[to])).collect::<BTreeSet<_>>();
        json!({ "ref": url(&packages[id]), "dependsOn": to })
    }));
    let version = env!("CARGO_PKG_VERSION");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask dist", "version": version }] },
            "component": {
                "type": "application", "bom-ref": "selvedge-installation", "name": "selvedge-installation",
                "version": version, "licenses": [{ "expression": "Apache-2.0" }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_and_of_other_programs_are_left_out() {
        let package = |name: &str, source: Value| json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0", "source": source });
        let edge = |to: &str, kind: Value| json!({ "pkg": to, "dep_kinds": [{ "kind": kind }] });
        let metadata = json!({
            "packages": [
                package("selvedge", Value::Null), package("xtask", Value::Null),
                package("used", json!("registry")), package("tests", json!("registry")), package("deep", json!("registry")),
            ],
            "resolve": { "nodes": [
                { "id": "selvedge", "deps": [edge("used", Value::Null), edge("tests", json!("dev"))] },
                { "id": "used", "deps": [edge("deep", Value::Null)] },
                { "id": "deep", "deps": [] },
                { "id": "xtask", "deps": [edge("tests", Value::Null)] },
            ] },
        });
        let lock = "version = 4\n\n[[package]]\nname = \"used\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n";
        let list = describe(&metadata, &checksums(lock), "2026-01-01T00:00:00Z").expect("a list");
        let names: Vec<_> = list["components"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
        assert_eq!(names, ["deep", "selvedge", "used"]);
        assert_eq!(list["components"][2]["hashes"][0]["content"], "ab");
        assert_eq!(list["components"][2]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(list["dependencies"][2]["dependsOn"], json!(["pkg:cargo/used@1.0.0"]));
    }
}

//! Checks of CONTRIBUTING.md: the places that an extension must touch are the ones that the compiler asks for.

use std::path::Path;

use anyhow::{Result, ensure};

use super::Complaint;
use crate::workspace::{files, read};

const DOCUMENT: &str = "CONTRIBUTING.md";

/// Enum with one variant per algorithm or form of input, and the section of CONTRIBUTING.md on adding one.
struct Registry {
    /// Heading of the section, without `## `.
    section: &'static str,
    /// File that defines the enum. Files in the same folder belong to the registry and need not be named.
    file: &'static str,
    /// Name of the enum.
    name: &'static str,
}

const REGISTRIES: &[Registry] = &[
    Registry {
        section: "Adding a congestion control",
        file: "crates/transport/src/congestion/mod.rs",
        name: "CongestionConfig",
    },
    Registry {
        section: "Adding a loss recovery",
        file: "crates/transport/src/recovery/mod.rs",
        name: "RecoveryConfig",
    },
    Registry { section: "Adding a topology", file: "crates/sim/src/topology/mod.rs", name: "Topology" },
    Registry { section: "Adding a loss model", file: "crates/sim/src/fault/loss.rs", name: "LossModel" },
    Registry { section: "Adding a loss model", file: "crates/switch/src/loss.rs", name: "LossProcess" },
];

/// Checks that CONTRIBUTING.md names every file that names all variants of a registry, and that the paths in it exist.
///
/// A file counts if its code, without comments and tests, contains for each variant of the enum `Name` the path
/// `Name::Variant`, or an import of it as in `Name::{A, B}` or `Name::*`. So does each file with an exhaustive `match`
/// without wildcard, which stops compiling when a variant is added. The rule also finds several matches that cover the
/// variants together, and lists of values. The rule does not see a `match` whose last arm binds the remaining variants
/// to a name.
pub(super) fn check() -> Result<Vec<Complaint>> {
    let document = read(DOCUMENT)?;
    let files = files()?;
    let paths: Vec<String> = files.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut complaints = unknown_paths(&document, &paths);
    let is_code = |path: &&Path| path.starts_with("crates") && path.iter().any(|part| part == "src") && !is_test(path);
    let is_rust = |path: &&Path| path.extension().is_some_and(|extension| extension == "rs");
    let code = files.iter().map(|path| path.as_path()).filter(is_rust).filter(is_code);
    let sources: Vec<(String, String)> =
        code.map(|path| Ok((path.to_string_lossy().into_owned(), read(path)?))).collect::<Result<_>>()?;
    for registry in REGISTRIES {
        let variants = variants(&read(registry.file)?, registry.name);
        ensure!(variants.len() > 1, "{}: no enum or registry! {} with variants", registry.file, registry.name);
        complaints.extend(unnamed(&document, registry, &variants, &sources));
    }
    Ok(complaints)
}

/// Complains about each file that names all variants and is missing in the section.
fn unnamed(document: &str, registry: &Registry, variants: &[String], sources: &[(String, String)]) -> Vec<Complaint> {
    let Some(section) = section(document, registry.section) else {
        return vec![Complaint::new(DOCUMENT, format!("has no section \"{}\"", registry.section))];
    };
    let home = Path::new(registry.file).parent().unwrap_or(Path::new(""));
    let is_missing = |path: &str| !Path::new(path).starts_with(home) && !section.contains(&format!("`{path}`"));
    let asked = sources.iter().filter(|(_, source)| names_all(source, registry.name, variants));
    let missing = asked.map(|(path, _)| path).filter(|path| is_missing(path));
    let told = |path: &String| {
        let message = format!(
            "the section \"{}\" must name `{path}`, which names every variant of {}",
            registry.section, registry.name
        );
        Complaint::new(DOCUMENT, message)
    };
    missing.map(told).collect()
}

/// Complains about each path in backticks that no file or folder of the project has or ends with. A path contains a
/// slash and a dot or a slash at its end; paths with placeholders (`<name>`, `*`) are left out.
fn unknown_paths(document: &str, paths: &[String]) -> Vec<Complaint> {
    let is_known = |named: &str| {
        let inside = |path: &String| match named.strip_suffix('/') {
            Some(folder) => path.starts_with(&format!("{folder}/")) || path.contains(&format!("/{folder}/")),
            None => path == named || path.ends_with(&format!("/{named}")),
        };
        paths.iter().any(inside)
    };
    let mut complaints = Vec::new();
    let mut is_block = false;
    for (number, line) in (1..).zip(document.lines()) {
        is_block ^= line.starts_with("```");
        if is_block || line.starts_with("```") {
            continue;
        }
        for named in line.split('`').skip(1).step_by(2) {
            let is_path = named.contains('/') && named.len() > 1 && (named.contains('.') || named.ends_with('/'));
            let is_pattern = named.contains(['<', '*', ' ', '=', ':']) || named.starts_with('.');
            if is_path && !is_pattern && !is_known(named) {
                complaints.push(Complaint::new(format!("{DOCUMENT}:{number}"), format!("no {named} in the project")));
            }
        }
    }
    complaints
}

/// Returns the text of a section, from its heading to the next.
fn section<'a>(document: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = document.split_once(&format!("\n## {heading}\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// Returns the variants of `pub enum <name>`, or of the `registry!` whose configuration is called `<name>`.
fn variants(source: &str, name: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric()).collect::<String>();
    let capital = |word: &String| word.starts_with(|c: char| c.is_ascii_uppercase());
    let registry =
        source.split_once(&format!("    config {name}: ")).and_then(|(_, rest)| rest.split_once("algorithms {"));
    if let Some((_, rest)) = registry {
        let lines = rest.lines().take_while(|line| *line != "    }");
        return lines.filter_map(|line| line.split_once("\" => ")).map(|(_, variant)| word(variant)).collect();
    }
    let Some((_, rest)) = source.split_once(&format!("pub enum {name} {{\n")) else { return Vec::new() };
    let lines = rest.lines().take_while(|line| *line != "}").filter_map(|line| line.strip_prefix("    "));
    lines.map(word).filter(capital).collect()
}

/// Returns whether the code of a file names each variant: `Name::Variant`, `Name::{Variant, ...}` or `Name::*`.
fn names_all(source: &str, name: &str, variants: &[String]) -> bool {
    let code = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(source);
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = lines.join("\n");
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let prefix = format!("{name}::");
    let mut named = Vec::new();
    for (at, _) in code.match_indices(&prefix).filter(|(at, _)| !code[..*at].ends_with(is_word)) {
        let rest = &code[at + prefix.len()..];
        if rest.starts_with('*') {
            return true;
        }
        match rest.strip_prefix('{').and_then(|list| list.split_once('}')) {
            Some((list, _)) => named.extend(list.split(',').map(str::trim)),
            None => named.extend(rest.split(|c| !is_word(c)).next()),
        }
    }
    variants.iter().all(|variant| named.contains(&variant.as_str()))
}

/// Returns whether a file in `src` contains tests only.
fn is_test(path: &Path) -> bool {
    path.iter().any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGISTRY: Registry =
        Registry { section: "Adding a colour", file: "crates/paint/src/colour/mod.rs", name: "Colour" };
    const ENUM: &str = "/// Colour.\npub enum Colour {\n    /// Red.\n    Red(Shade),\n    #[default]\n    Blue,\n    Green {\n        \
                        /// Shade.\n        Shade: u8,\n    },\n}\n\npub enum Other {\n    Grey,\n}\n";
    const EXHAUSTIVE: &str = "fn a(colour: Colour) {\n    match colour {\n        paint::Colour::Red(_) => 1,\n        \
                              Colour::Blue | Colour::Green { .. } => 2,\n    }\n}\n";

    fn complaints(document: &str, source: &str) -> Vec<String> {
        let sources = [("crates/sim/src/a.rs".to_owned(), source.to_owned())];
        let found = unnamed(document, &REGISTRY, &variants(ENUM, "Colour"), &sources);
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn variants_are_read_from_enums_and_registries() {
        assert_eq!(variants(ENUM, "Colour"), ["Red", "Blue", "Green"]);
        let registry = "registry! {\n    config Colour: Tint {\n        fn a();\n    }\n    algorithms {\n        /// Red.\n        \
                        \"red\" => Red(red),\n        \"dark-blue\" => DarkBlue(blue),\n    }\n}\n";
        assert_eq!(variants(registry, "Colour"), ["Red", "DarkBlue"]);
        assert!(variants(registry, "Other").is_empty());
    }

    #[test]
    fn a_file_with_an_exhaustive_match_must_be_named_in_the_section() {
        let with =
            |named: &str| format!("# Contributing\n\n## Adding a colour\n\n{named}\n\n## Adding a shade\n\nMore.\n");
        assert!(complaints(&with("Mend `crates/sim/src/a.rs`."), EXHAUSTIVE).is_empty());
        let missing = "CONTRIBUTING.md: the section \"Adding a colour\" must name `crates/sim/src/a.rs`, which names every \
                       variant of Colour";
        assert_eq!(complaints(&with("Mend it."), EXHAUSTIVE), [missing]);
        assert_eq!(complaints("# Contributing\n", EXHAUSTIVE), ["CONTRIBUTING.md: has no section \"Adding a colour\""]);
        let imported =
            "use Colour::{Blue, Green,\n    Red};\nmatch colour {\n    Red(_) | Blue | Green { .. } => 1,\n}\n";
        assert_eq!(complaints(&with(""), imported), [missing]);
        assert_eq!(complaints(&with(""), "use Colour::*;\n"), [missing]);
        // Another section does not count.
        assert_eq!(complaints(&(with("") + "`crates/sim/src/a.rs`\n"), EXHAUSTIVE), [missing]);
    }

    #[test]
    fn files_that_do_not_name_every_variant_need_no_mention() {
        let document = "# Contributing\n\n## Adding a colour\n";
        for source in [
            // A wildcard.
            "match colour {\n    Colour::Red(_) | Colour::Blue => 1,\n    _ => 2,\n}\n".to_owned(),
            // A longer name, another enum, a comment, a test.
            EXHAUSTIVE.replace("Colour::Blue", "Colour::Blueish"),
            EXHAUSTIVE.replace("Colour::", "OtherColour::"),
            EXHAUSTIVE.replace("        Colour::Blue", "        // Colour::Blue"),
            format!("fn b() {{}}\n\n#[cfg(test)]\nmod tests {{\n{EXHAUSTIVE}}}\n"),
        ] {
            assert!(complaints(document, &source).is_empty(), "{source}");
        }
        let own = [("crates/paint/src/colour/names.rs".to_owned(), EXHAUSTIVE.to_owned())];
        assert!(unnamed(document, &REGISTRY, &variants(ENUM, "Colour"), &own).is_empty());
    }

    #[test]
    fn paths_must_exist() {
        let paths = ["crates/sim/src/a.rs".to_owned(), "docs/b.md".to_owned()];
        let found = |line: &str| unknown_paths(line, &paths).iter().map(ToString::to_string).collect::<Vec<_>>();
        let known =
            "`crates/sim/src/a.rs`, `src/a.rs`, `crates/sim/`, `sim/src/`, `a/<name>/b.rs`, `cargo xtask a/b.c`, `/`";
        assert!(found(known).is_empty(), "{:?}", found(known));
        assert_eq!(found("see\n`rc/a.rs` and `docs/c.md`").len(), 2);
        assert_eq!(found("`crates/nowhere/`"), ["CONTRIBUTING.md:1: no crates/nowhere/ in the project"]);
        assert!(found("```sh\n`no/a.rs`\n```").is_empty());
    }
}

//! Layout of this crate's structures, compared with the installed header.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use selvedge_ibverbs::abi::LAYOUTS;
use selvedge_ibverbs::rdmacm;

/// Returns a field's name in C: without the trailing underscore that avoids a keyword. A field that is an anonymous
/// union in C has the name of one of its members.
fn in_c(field: &str) -> &str {
    field.strip_suffix('_').unwrap_or(field)
}

#[test]
fn structures_are_those_of_the_header() {
    if !PathBuf::from("/usr/include/rdma/rdma_cma.h").is_file() {
        eprintln!("skipped: no <rdma/rdma_cma.h> here: install librdmacm-dev");
        return;
    }
    let mut source =
        "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\nint main(void) {\n".to_owned();
    let mut ours = String::new();
    for layout in LAYOUTS.iter().copied().chain([rdmacm::LAYOUTS]).flatten() {
        let name = layout.name;
        writeln!(source, "printf(\"{name} %zu\\n\", sizeof({name}));").expect("writing to a string never fails");
        writeln!(ours, "{name} {}", layout.size).expect("writing to a string never fails");
        for (field, offset) in layout.fields {
            let field = in_c(field);
            writeln!(source, "printf(\"{name}.{field} %zu\\n\", offsetof({name}, {field}));")
                .expect("writing to a string never fails");
            writeln!(ours, "{name}.{field} {offset}").expect("writing to a string never fails");
        }
    }
    source += "return 0;\n}\n";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (file, program) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&file, source).expect("the source file is writable");
    let built = Command::new("cc").arg("-w").arg("-o").arg(&program).arg(&file).output().expect("a C compiler");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let theirs = Command::new(&program).output().expect("the compiled program runs");
    let theirs = String::from_utf8_lossy(&theirs.stdout);
    let different: Vec<_> = theirs.lines().zip(ours.lines()).filter(|(theirs, ours)| theirs != ours).collect();
    assert!(different.is_empty() && theirs.lines().count() == ours.lines().count(), "(theirs, ours): {different:#?}");
}

//! Hidden command `selvedge manual`: the manual pages of all commands, for packages.

use std::fs;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::args::Selvedge;
use crate::output::Failure;

/// Hand-written pages that say more than the help of a command.
const FURTHER: &[(&str, &str)] = &[("selvedge-eqds", "selvedge-eqds(8)"), ("selvedge-verbs", "selvedge-verbs(7)")];

/// Writes a page per command, `selvedge-run.1` and so on, to an existing folder.
pub(crate) fn manual(folder: &Path) -> Result<(), Failure> {
    let mut command = Selvedge::command().disable_help_subcommand(true);
    command.build();
    write(&command, folder).map_err(|error| Failure::outcome(format!("{}: {error}", folder.display())))
}

fn write(command: &Command, folder: &Path) -> std::io::Result<()> {
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        write(part, folder)?;
    }
    let source = concat!("selvedge ", env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(source).manual("Selvedge");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|part| !part.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = with_tables(&String::from_utf8_lossy(&page));
    if command.get_after_long_help().is_some() {
        // Examples and tables: their lines stay as they are.
        let mut extra = Vec::new();
        man.render_extra_section(&mut extra)?;
        page += &String::from_utf8_lossy(&extra).replace(".SH EXTRA\n", ".SH EXAMPLES AND NOTES\n.nf\n");
        page += ".fi\n";
    }
    let name = man.get_filename();
    let further = FURTHER.iter().filter(|(of, _)| name.starts_with(of)).map(|(_, page)| *page);
    let above = (name != "selvedge.1").then_some("selvedge(1)");
    let others: Vec<String> = above.into_iter().chain(further).map(|page| page.replace('-', "\\-")).collect();
    if !others.is_empty() {
        page += &format!(".SH SEE ALSO\n{}\n", others.join(", "));
    }
    fs::write(folder.join(name), page)
}

/// Returns a page in which indented lines, as those of a table, are neither joined nor broken.
fn with_tables(page: &str) -> String {
    let (mut text, mut in_table) = (String::new(), false);
    for line in page.lines() {
        if line.starts_with("  ") != in_table {
            in_table = !in_table;
            text += if in_table { ".nf\n" } else { ".fi\n" };
        }
        text += line;
        text += "\n";
    }
    text
}

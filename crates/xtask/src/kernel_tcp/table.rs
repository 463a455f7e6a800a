//! Table of results, for people.

use anyhow::{Context, Result};

use super::{BOTTLENECK, Compared, MSS, Outcome};

/// Returns one transfer as one line.
pub(super) fn line(compared: &Compared) -> String {
    let transfer = &compared.transfer;
    format!(
        "{} loss {} %, late {} %, seed {}: kernel {:.2} Mb/s, Selvedge {:.2} Mb/s; retransmissions {} and {}, timeouts {} and {}; \
         host delay {:.0} us",
        transfer.control,
        transfer.loss,
        transfer.late_share,
        transfer.seed,
        compared.goodput(compared.kernel),
        compared.goodput(compared.ours),
        compared.kernel.retransmissions,
        compared.ours.retransmissions,
        compared.kernel.timeouts,
        compared.ours.timeouts,
        compared.kernel.late_us,
    )
}

/// Returns the table of docs/tcp.md.
pub(super) fn table(all: &[Compared]) -> Result<String> {
    let row_of = |one: &Compared| (one.transfer.control.clone(), one.transfer.loss, one.transfer.late_share);
    let mut rows: Vec<(String, f64, f64)> = all.iter().map(row_of).collect();
    rows.sort_by(|one, other| other.0.cmp(&one.0).then(one.2.total_cmp(&other.2)).then(one.1.total_cmp(&other.1)));
    rows.dedup();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel version")?;
    let mut text = format!(
        "Linux {}, {} Mb/s, {} ms, {} KB of buffer, segments of {MSS} bytes; late packets arrive {} ms\n\
         late. Goodput in Mb/s: mean of the seeds (lowest to highest). Retransmissions and timeouts per transfer. Host delay: time that the machine of this run added to the\n\
         kernel's round trips.\n\n",
        kernel.trim(),
        BOTTLENECK.rate / 1_000_000,
        BOTTLENECK.rtt_ms,
        BOTTLENECK.buffer / 1_000,
        BOTTLENECK.late_ms,
    );
    text += "| control | loss | late | seeds | MB each | kernel | Selvedge | Selvedge / kernel | retransmissions, kernel / Selvedge | timeouts, kernel / Selvedge | host delay, us |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|---|\n";
    for name in rows {
        let these: Vec<&Compared> = all.iter().filter(|one| row_of(one) == name).collect();
        text += &row(&name, &these);
    }
    Ok(text)
}

fn row((control, loss, late): &(String, f64, f64), all: &[&Compared]) -> String {
    let spread = |values: Vec<f64>| {
        let (low, high) = values.iter().fold((f64::MAX, 0.0f64), |(low, high), &v| (low.min(v), high.max(v)));
        format!("{:.2} ({low:.2}-{high:.2})", mean(&values))
    };
    let each = |value: &dyn Fn(&Compared) -> f64| -> Vec<f64> { all.iter().map(|one| value(one)).collect() };
    let pair = |value: &dyn Fn(Outcome) -> u64| {
        let (kernel, ours) = (each(&|one| value(one.kernel) as f64), each(&|one| value(one.ours) as f64));
        format!("{:.1} / {:.1}", mean(&kernel), mean(&ours))
    };
    format!(
        "| {control} | {loss} % | {late} % | {} | {:.0} | {} | {} | {} | {} | {} | {:.0} |\n",
        all.len(),
        mean(&each(&|one| one.transfer.bytes as f64 / 1e6)),
        spread(each(&|one| one.goodput(one.kernel))),
        spread(each(&|one| one.goodput(one.ours))),
        spread(each(&|one| one.kernel.seconds / one.ours.seconds)),
        pair(&|outcome| outcome.retransmissions),
        pair(&|outcome| outcome.timeouts),
        mean(&each(&|one| one.kernel.late_us)),
    )
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

//! Feedback from a receiver to the sender's congestion control beside acknowledgements: congestion notification
//! packets, and reports of round-trip times where data is not acknowledged.

use selvedge_units::{Bytes, Duration, Instant};

use crate::congestion::{Needs, ReportBy, Reports};

/// Settings of the receivers' feedback, shared by all queue pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackConfig {
    cnp_interval: Option<Duration>,
    reports: Option<Reports>,
    /// Whether there are notifications or reports.
    tells: bool,
}

impl FeedbackConfig {
    /// Returns the feedback that congestion control needs where data is `acknowledged` or not.
    pub fn new(needs: &Needs, acknowledged: bool) -> Self {
        let (cnp_interval, reports) = (needs.cnp_interval, needs.reports.filter(|_| !acknowledged));
        Self { cnp_interval, reports, tells: cnp_interval.is_some() || reports.is_some() }
    }
    /// Returns whether receivers send no feedback.
    #[inline]
    pub const fn is_silent(&self) -> bool {
        !self.tells
    }
    /// Returns whether reports travel outside the fabric.
    pub fn reports_freely(&self) -> bool {
        self.reports.is_some_and(|reports| reports.by == ReportBy::Free)
    }
}

/// The feedback that is due after the arrival of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FeedbackDue {
    /// Whether a congestion notification packet is due.
    pub cnp: bool,
    /// The bytes that have arrived since the last report, if a report is due.
    pub report: Option<Bytes>,
    /// Whether an acknowledgement packet is due, in place of a report.
    pub ack: bool,
}

/// The notification point and the reporter of one queue pair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feedback {
    /// Marks before this instant trigger no notification.
    quiet_until: Instant,
    /// Bytes since the last report.
    unreported: Bytes,
}

impl Feedback {
    /// Handles the arrival of a data packet of `frame` bytes on the wire; `marked` says whether the packet carries a
    /// congestion mark, `last` whether it is the last of its message. Returns the feedback that is due.
    ///
    /// The first mark triggers a notification at once; there is at most one notification per interval (DCQCN, section
    /// 3.1, figure 6).
    pub fn handle_data(
        &mut self,
        config: &FeedbackConfig,
        now: Instant,
        frame: Bytes,
        marked: bool,
        last: bool,
    ) -> FeedbackDue {
        let mut told = FeedbackDue::default();
        if marked
            && now >= self.quiet_until
            && let Some(interval) = config.cnp_interval
        {
            told.cnp = true;
            self.quiet_until = now.saturating_add(interval);
        }
        if let Some(reports) = config.reports {
            self.unreported += frame;
            if last || self.unreported >= reports.every {
                let bytes = core::mem::take(&mut self.unreported);
                match reports.by {
                    ReportBy::Free => told.report = Some(bytes),
                    ReportBy::SegmentAcks => told.ack = true,
                }
            }
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Bytes = Bytes::new(1_000);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    #[test]
    fn one_notification_per_interval() {
        let needs = Needs { cnp_interval: Some(Duration::from_us(50)), ..Needs::default() };
        let config = FeedbackConfig::new(&needs, true);
        let mut point = Feedback::default();
        let marked = [(0, false), (3, true), (4, true), (52, true), (53, true), (200, false), (201, true), (250, true)];
        let told = marked.map(|(us, marked)| point.handle_data(&config, at(us), FRAME, marked, false).cnp);
        assert_eq!(told, [false, true, false, false, true, false, true, false]);
    }

    #[test]
    fn one_report_per_segment_where_nothing_is_acknowledged() {
        let reports = Reports { every: FRAME * 3, by: ReportBy::Free };
        let needs = Needs { reports: Some(reports), ..Needs::default() };
        assert!(FeedbackConfig::new(&needs, true).is_silent());
        let config = FeedbackConfig::new(&needs, false);
        assert!(config.reports_freely());
        let mut point = Feedback::default();
        let reported = |point: &mut Feedback, last| point.handle_data(&config, at(1), FRAME, false, last).report;
        assert_eq!([false; 4].map(|last| reported(&mut point, last)), [None, None, Some(FRAME * 3), None]);
        assert_eq!(reported(&mut point, true), Some(FRAME * 2));
    }

    #[test]
    fn a_report_may_be_an_acknowledgement() {
        let reports = Reports { every: FRAME, by: ReportBy::SegmentAcks };
        let config = FeedbackConfig::new(&Needs { reports: Some(reports), ..Needs::default() }, false);
        let told = Feedback::default().handle_data(&config, at(1), FRAME, true, false);
        assert_eq!(told, FeedbackDue { cnp: false, report: None, ack: true });
    }
}

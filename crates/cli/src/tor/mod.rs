//! Command `selvedge tor`: NetRT between top-of-rack switches, on real packets.

use clap::{Args, Subcommand};
use selvedge_dataplane::impair::{Plan, addresses};
use selvedge_tor::Settings;
use selvedge_transport::netrt;
use selvedge_units::{Bytes, Duration, Rate, Setting};

use crate::impair::{self, ImpairArgs};
use crate::output::Failure;

#[derive(Args)]
pub(crate) struct TorArgs {
    #[command(subcommand)]
    command: TorCommand,
}

#[derive(Subcommand)]
enum TorCommand {
    /// Make two hosts, a switch at each, and an impaired fabric between the switches
    #[command(after_long_help = LAB_EXAMPLES)]
    Lab(Box<LabArgs>),
}

#[derive(Args)]
struct LabArgs {
    /// Round trip between the switches, without what software takes; half of it in each direction
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    rtt: Option<Duration>,
    /// Switches only forward: the same network, to compare with
    #[arg(long)]
    without: bool,
    /// Copies that a switch keeps for its host [default: what the link carries in a round trip, 128KB at least]; "0B"
    /// for none
    #[arg(long, value_name = "BYTES")]
    pool: Option<Bytes>,
    /// Early packets that a switch holds for its host [default: as --pool]
    #[arg(long, value_name = "BYTES")]
    buffer: Option<Bytes>,
    /// Time after which a request is repeated [default: the round trip, and 200us for software]
    #[arg(long, value_name = "TIME")]
    interval: Option<Duration>,
    /// Never pause a host's link: a pause lasts while copies are sent below the link's rate, after a burst of losses
    #[arg(long)]
    no_pause: bool,
    /// Queue of each port of the switches; packets beyond it are dropped
    #[arg(long, value_name = "BYTES", default_value = "1MB")]
    queue: Bytes,
    /// Bytes in a queue above which packets are marked for congestion (ECN) [default: none are]
    #[arg(long, value_name = "BYTES")]
    mark_above: Option<Bytes>,
    /// DSCP of copies and messages, which go before other packets
    #[arg(long, value_name = "N", default_value_t = Settings::DSCP, value_parser = clap::value_parser!(u8).range(1..64))]
    dscp: u8,
    /// Path MTU of the hosts' queue pairs, until a packet shows it: tells how many packets answer a Read
    #[arg(long, value_name = "BYTES", default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(256..=4_096))]
    path_mtu: u32,
    #[command(flatten)]
    impair: ImpairArgs,
}

/// Time that two switches, the kernel and two programs take, at most times.
const SOFTWARE: Duration = Duration::from_us(200);
/// Rate of links without --rate, by which the pool and the rate of copies reckon.
const FAST: Rate = Rate::from_gbps(10);

pub(crate) fn tor(args: &TorArgs) -> Result<(), Failure> {
    let TorCommand::Lab(args) = &args.command;
    impair::run(&args.impair, &args.plan().map_err(Failure::input)?)
}

impl LabArgs {
    /// Returns the plan of the laboratory.
    fn plan(&self) -> Result<Plan, String> {
        let mut plan = self.impair.plan()?;
        let mut rate = None;
        for way in &mut plan.impairments {
            if let Some(rtt) = self.rtt {
                way.delay = rtt / 2;
            }
            way.check()?;
            // The switches' queues come before the rate: there a packet with high priority overtakes others.
            rate = way.rate.take().or(rate);
        }
        let [there, back] = [0, 1].map(|way: usize| plan.impairments[way].delay);
        let netrt = self.netrt(rate.unwrap_or(FAST), there + back)?;
        let switch = |end: usize| Settings {
            netrt: (!self.without).then_some(netrt),
            hosts: vec![addresses(end)],
            rate,
            line_rate: rate.unwrap_or(FAST),
            queue: self.queue,
            mark_above: self.mark_above,
            dscp: self.dscp,
            path_mtu: self.path_mtu,
        };
        plan.tors = Some(Box::new([0, 1].map(switch)));
        Ok(plan)
    }

    fn netrt(&self, line: Rate, rtt: Duration) -> Result<netrt::Settings, String> {
        let mut config = Settings::netrt_for(line, self.interval.unwrap_or(rtt + SOFTWARE));
        config.pause = !self.no_pause;
        if let Some(pool) = self.pool {
            (config.pool, config.buffer) = (Setting::Value(pool), Setting::Value(pool));
        }
        if let Some(buffer) = self.buffer {
            config.buffer = Setting::Value(buffer);
        }
        config.check().map_err(|error| format!("--{error}"))?;
        Ok(netrt::Settings::from(&config).restarting())
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  selvedge tor lab --loss 1% --rtt 50us --rate 2Gbps -- ./test.sh
  selvedge tor lab --loss 1% --rtt 50us --rate 2Gbps --without -- ./test.sh";

const LAB_EXAMPLES: &str = "\
Examples:
  selvedge tor lab --loss 1% --packets data --rtt 50us --rate 2Gbps      # then, in other terminals:
    ip netns exec sv-a env SELVEDGE_RECOVERY=go-back-n selvedge verbs -- ib_write_bw -d sv_eth0
    ip netns exec sv-b env SELVEDGE_RECOVERY=go-back-n selvedge verbs -- ib_write_bw -d sv_eth0 10.78.0.1
  selvedge tor lab --loss 1% --rtt 50us --json -- ./test.sh
  selvedge tor lab --loss 1% --rtt 50us --without -- ./test.sh           # to compare with

host ── switch ── impaired fabric ── switch ── host: the hosts are two network namespaces, sv-a (10.78.0.1, fd78::1) and
sv-b (10.78.0.2, fd78::2). A switch keeps copies of RoCEv2 packets from its host for about a round trip. The switch at
the other end holds packets that come early, requests the missing ones, and passes all on in order: unmodified NICs with
go-back-N see no loss. All options of `selvedge impair` apply to the fabric; queues and --rate are the switches'.
Sends, Writes, Atomics and Read requests are repaired; answers to Reads are left to the NICs.
PROGRAM runs in neither host; `ip netns exec NAME` enters. It needs root or, with a PROGRAM, a kernel that gives
ordinary users namespaces. Counters are printed at the end, as `selvedge impair` does. Exit status: PROGRAM's.";

//! Arguments of `selvedge impair`.

use std::ffi::OsString;

use clap::{Args, ValueEnum};
use selvedge_dataplane::impair::{Class, Impairment, Loss, Plan};
use selvedge_units::words::{did_you_mean, one_of};
use selvedge_units::{Chance, Duration, Rate, TwoStates};

/// Directions that impairments apply to.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// Both directions
    Both,
    /// From the first namespace to the second
    There,
    /// From the second to the first
    Back,
}

#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct ImpairArgs {
    /// Probability that a packet is lost, as in 1% or 0.01
    #[arg(long, value_name = "CHANCE", conflicts_with = "gemodel")]
    loss: Option<Chance>,
    /// Lose packets in bursts of this mean length, at the rate of --loss (Gilbert-Elliott)
    #[arg(long, value_name = "PACKETS", requires = "loss")]
    burst: Option<f64>,
    /// Lose packets in two states, like netem's `loss gemodel`: the probabilities to turn bad and good again, to be
    /// lost in the bad state [default: 100%] and in the good one [default: 0%]
    #[arg(long, value_name = "P,R[,1-H[,1-K]]")]
    gemodel: Option<String>,
    /// Probability that a packet arrives twice
    #[arg(long, value_name = "CHANCE", default_value = "0%")]
    duplicate: Chance,
    /// Probability that a bit of a packet is flipped, anywhere: the kernel's checksums find most of these
    #[arg(long, value_name = "CHANCE", default_value = "0%")]
    corrupt: Chance,
    /// Probability that a bit behind UDP's header is flipped and UDP's checksum made to fit: only RoCE's ICRC can tell
    #[arg(long, value_name = "CHANCE", default_value = "0%")]
    corrupt_payload: Chance,
    /// Delay of packets
    #[arg(long, value_name = "TIME", default_value = "0us")]
    delay: Duration,
    /// Largest deviation from the delay, uniformly distributed; packets may overtake others then
    #[arg(long, value_name = "TIME", default_value = "0us")]
    jitter: Duration,
    /// Probability that a packet arrives without delay, before those that wait; needs --delay
    #[arg(long, value_name = "CHANCE", default_value = "0%")]
    reorder: Chance,
    /// Rate at which packets follow each other, as in 1Gbps [default: unlimited]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Maximum number of packets on their way at a time, in each direction; more are dropped
    #[arg(long, value_name = "N", default_value_t = Impairment::default().limit)]
    limit: usize,
    /// Kinds of packets to impair: data, ack, management (RoCE's), other (TCP for example)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "data,ack,management,other")]
    packets: Vec<String>,
    /// Direction to impair
    #[arg(long, value_enum, default_value = "both")]
    direction: Direction,
    /// Seed of chance: the n-th packet of its kind has the same fate for the same seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Names of the two network namespaces
    #[arg(long, value_name = "A,B", value_delimiter = ',', num_args = 1, default_value = "sv-a,sv-b")]
    names: Vec<String>,
    /// MTU of eth0, the device in each namespace
    #[arg(long, value_name = "BYTES", default_value_t = 1_500, value_parser = clap::value_parser!(u16).range(576..))]
    mtu: u16,
    /// Print the counts of impairments as JSON, to standard output
    #[arg(long)]
    pub(super) json: bool,
    /// Program to run in the namespaces, and its arguments; without: until Ctrl-C
    #[arg(last = true, value_name = "PROGRAM")]
    pub(super) command: Vec<OsString>,
}

impl ImpairArgs {
    /// Returns the plan of impairments.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let [first, second] = &self.names[..] else {
            return Err(format!("--names wants two names, as in sv-a,sv-b, not {}", self.names.len()));
        };
        if first == second {
            return Err(format!("--names wants two different names, not {first} twice"));
        }
        let impaired = Impairment {
            loss: self.loss()?,
            duplicate: self.duplicate,
            corrupt: self.corrupt,
            corrupt_payload: self.corrupt_payload,
            delay: self.delay,
            jitter: self.jitter,
            reorder: self.reorder,
            rate: self.rate,
            limit: self.limit,
            concerns: self.concerns()?,
        };
        impaired.check()?;
        let way = |suffers: Direction| {
            if [Direction::Both, suffers].contains(&self.direction) { impaired.clone() } else { Impairment::default() }
        };
        let impairments = [way(Direction::There), way(Direction::Back)];
        Ok(Plan { names: [first.clone(), second.clone()], mtu: self.mtu, impairments, seed: self.seed })
    }

    fn loss(&self) -> Result<Loss, String> {
        let rate = self.loss.unwrap_or(Chance::NEVER);
        match (&self.gemodel, self.burst) {
            (Some(text), _) => two_states(text).map(Loss::TwoStates),
            (None, Some(mean)) => TwoStates::bursts(mean, rate).map(Loss::TwoStates).ok_or_else(|| {
                "bursts have a mean of at least 1 packet, and lose at most PACKETS / (PACKETS + 1)".to_owned()
            }),
            (None, None) => Ok(Loss::Random(rate)),
        }
    }

    fn concerns(&self) -> Result<[bool; Class::ALL.len()], String> {
        let names = Class::ALL.map(Class::name);
        if let Some(unknown) = self.packets.iter().find(|name| !names.contains(&name.as_str())) {
            let hint = did_you_mean(unknown, names);
            return Err(format!("--packets: found \"{unknown}\", expected {}{hint}", one_of(&names)));
        }
        Ok(names.map(|name| self.packets.iter().any(|packets| packets == name)))
    }
}

fn two_states(text: &str) -> Result<TwoStates, String> {
    let wrong = |why: String| format!("--gemodel: {why}");
    let chances: Result<Vec<Chance>, _> = text.split(',').map(str::parse).collect();
    let chances = chances.map_err(|error| wrong(error.to_string()))?;
    let [to_bad, to_good, rest @ ..] = &chances[..] else {
        return Err(wrong("expected two to four chances, as in 1%,25%".to_owned()));
    };
    let (in_bad, in_good) = match rest {
        [] => (Chance::ALWAYS, Chance::NEVER),
        [bad] => (*bad, Chance::NEVER),
        [bad, good] => (*bad, *good),
        _ => return Err(wrong(format!("expected two to four chances, as in 1%,25%, not {}", chances.len()))),
    };
    Ok(TwoStates { to_bad: *to_bad, to_good: *to_good, in_good, in_bad })
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  selvedge impair --loss 1% --seed 7                     # then, in other terminals:
    ip netns exec sv-a selvedge verbs -- ib_write_bw -d sv_eth0
    ip netns exec sv-b selvedge verbs -- ib_write_bw -d sv_eth0 10.78.0.1
  selvedge impair --loss 1% --burst 4 --reorder 5% --delay 50us --json -- ./test.sh
  selvedge impair --packets data,ack --corrupt-payload 1% -- sh

The namespaces are joined by a device of ours, eth0 in each: 10.78.0.1 and fd78::1 in the first, 10.78.0.2 and
fd78::2 in the second. PROGRAM runs in neither; `ip netns exec NAME` enters. It needs root or, with a PROGRAM,
a kernel that gives ordinary users namespaces, where PROGRAM is root and sees no other network.
Nothing but what is asked for happens to packets; what did is printed at the end, by direction and class
(to standard error, where there is a PROGRAM; --json to standard output). Exit status: PROGRAM's.";

//! Distributions that users know by name.
//!
//! Each table is `(size in bytes, P(X <= size) in millionths of a percent)`, interpolated linearly. The numbers are
//! those of the files named in the comments.

use super::CdfPoints;

/// Sizes and cumulative probabilities in units of 10^-8.
type Table = &'static [(u64, u32)];

/// Names that [`known`] accepts, in alphabetical order.
pub const NAMES: &[&str] = &[
    "ali-storage",
    "data-mining",
    "fb-cache-follower",
    "fb-hadoop",
    "fb-webserver",
    "google-rpc",
    "irn-heavy-tailed",
    "solar",
    "web-search",
];

/// Returns the distribution with this name; [`NAMES`] lists them.
pub fn known(name: &str) -> Option<CdfPoints> {
    let table = match name {
        "irn-heavy-tailed" => IRN_HEAVY_TAILED,
        "web-search" => WEB_SEARCH,
        "data-mining" => DATA_MINING,
        "fb-hadoop" => FB_HADOOP,
        "fb-webserver" => FB_WEBSERVER,
        "fb-cache-follower" => FB_CACHE_FOLLOWER,
        "ali-storage" => ALI_STORAGE,
        "solar" => SOLAR,
        "google-rpc" => GOOGLE_RPC,
        _ => return None,
    };
    Some(CdfPoints::from_parts(table, 100_000_000))
}

/// IRN's heavy-tailed sizes (SIGCOMM'18, section 4.1): the points of YAPS' `CDF_aditya.txt`, in packets of 1,460 B,
/// after Benson et al. (IMC'10). The paper says that half of the flows are single packets of 32 B to 1 KB, so below the
/// first point they are uniform from 32 B to 1,000 B, which is one packet of IRN's MTU. Nothing lies between 1,000 B
/// and 1,460 B: flows of several packets begin at YAPS' "1 packet", and exactly 50 % of all flows are single packets.
const IRN_HEAVY_TAILED: Table = &[
    (32, 0),
    (1_000, 50_000_000),
    (1_460, 50_000_000),
    (2_920, 60_000_000),
    (4_380, 70_000_000),
    (7_300, 75_000_000),
    (10_220, 80_000_000),
    (58_400, 81_250_000),
    (105_120, 82_500_000),
    (200_020, 85_000_000),
    (389_820, 90_000_000),
    (1_733_020, 95_000_000),
    (3_076_220, 100_000_000),
];

/// Web search (DCTCP, SIGCOMM'10), as in HPCC's `WebSearch_distribution.txt`.
const WEB_SEARCH: Table = &[
    (0, 0),
    (10_000, 15_000_000),
    (20_000, 20_000_000),
    (30_000, 30_000_000),
    (50_000, 40_000_000),
    (80_000, 53_000_000),
    (200_000, 60_000_000),
    (1_000_000, 70_000_000),
    (2_000_000, 80_000_000),
    (5_000_000, 90_000_000),
    (10_000_000, 97_000_000),
    (30_000_000, 100_000_000),
];

/// Data mining (VL2, SIGCOMM'09), as in pFabric's and ConWeave's `mining.txt`.
const DATA_MINING: Table = &[
    (100, 0),
    (10_000, 80_000_000),
    (152_522, 83_460_000),
    (390_541, 90_000_000),
    (3_223_542, 95_384_600),
    (100_000_000, 99_000_000),
    (1_000_000_000, 100_000_000),
];

/// Hadoop at Facebook (SIGCOMM'15), as in HPCC's `FbHdp_distribution.txt`. ConWeave's `FbHdp2015.txt` is another, finer
/// curve under the same name.
const FB_HADOOP: Table = &[
    (0, 0),
    (100, 1_000_000),
    (200, 2_000_000),
    (300, 5_000_000),
    (350, 15_000_000),
    (400, 20_000_000),
    (500, 30_000_000),
    (600, 40_000_000),
    (700, 50_000_000),
    (1_000, 60_000_000),
    (2_000, 67_000_000),
    (7_000, 70_000_000),
    (30_000, 72_000_000),
    (50_000, 82_000_000),
    (80_000, 87_000_000),
    (120_000, 90_000_000),
    (300_000, 95_000_000),
    (1_000_000, 97_500_000),
    (2_000_000, 99_000_000),
    (10_000_000, 100_000_000),
];

/// Web servers at Facebook (SIGCOMM'15), as in ConWeave's `webserver.txt`; a step at 300 B.
const FB_WEBSERVER: Table = &[
    (150, 0),
    (300, 12_000_000),
    (300, 20_000_000),
    (600, 20_000_000),
    (1_000, 30_000_000),
    (2_000, 40_000_000),
    (3_100, 50_000_000),
    (6_000, 60_000_000),
    (20_000, 71_000_000),
    (60_000, 80_000_000),
    (150_000, 82_000_000),
    (300_000, 90_000_000),
    (500_000, 100_000_000),
];

/// Cache followers at Facebook (SIGCOMM'15), as in ConWeave's workloads; steps at 70 B, 150 B and 350 B.
const FB_CACHE_FOLLOWER: Table = &[
    (70, 0),
    (70, 1_000_000),
    (150, 1_500_000),
    (150, 4_000_000),
    (300, 8_000_000),
    (350, 10_000_000),
    (350, 19_000_000),
    (450, 20_000_000),
    (500, 28_000_000),
    (600, 30_000_000),
    (700, 35_000_000),
    (1_100, 40_000_000),
    (2_000, 42_000_000),
    (10_000, 48_000_000),
    (30_000, 50_000_000),
    (100_000, 52_000_000),
    (200_000, 60_000_000),
    (400_000, 68_000_000),
    (600_000, 70_000_000),
    (1_500_000, 70_100_000),
    (2_000_000, 80_000_000),
    (2_400_000, 90_000_000),
    (3_000_000, 100_000_000),
];

/// Storage at Alibaba, as in HPCC's `AliStorage2019.txt`.
const ALI_STORAGE: Table = &[
    (0, 0),
    (4_000, 22_930_000),
    (8_000, 69_210_000),
    (16_000, 80_610_000),
    (32_000, 90_470_000),
    (64_000, 93_530_000),
    (128_000, 96_770_000),
    (256_000, 97_530_000),
    (2_000_000, 100_000_000),
];

/// Block storage at Alibaba (Solar, SIGCOMM'22), as in ConWeave's `Solar2022.txt`.
const SOLAR: Table = &[
    (0, 0),
    (4_095, 1_000),
    (4_096, 30_000_000),
    (16_383, 35_000_000),
    (16_384, 50_000_000),
    (65_535, 60_000_000),
    (65_536, 95_000_000),
    (262_144, 100_000_000),
];

/// Remote procedure calls at Google (2008): 73 of the 843 points of HPCC's `GoogleRPC2008.txt`. Straight lines between
/// them stay within 0.3 percentage points of those left out.
const GOOGLE_RPC: Table = &[
    (0, 0),
    (3, 6_488_260),
    (32, 9_732_390),
    (40, 12_050_300),
    (46, 13_209_200),
    (64, 15_527_100),
    (77, 22_070_500),
    (85, 25_342_200),
    (96, 28_613_900),
    (110, 31_885_600),
    (146, 38_815_500),
    (186, 44_302_800),
    (228, 47_961_000),
    (256, 49_790_100),
    (296, 57_617_900),
    (313, 60_227_200),
    (331, 62_836_500),
    (375, 68_055_000),
    (433, 73_273_600),
    (512, 78_492_100),
    (623, 81_287_800),
    (796, 84_083_400),
    (956, 85_760_800),
    (1_271, 88_095_700),
    (1_536, 89_364_100),
    (1_940, 90_632_500),
    (2_458, 91_755_900),
    (3_072, 92_625_700),
    (5_521, 95_010_500),
    (6_349, 95_578_700),
    (7_469, 96_146_800),
    (9_596, 97_027_500),
    (11_385, 97_574_500),
    (13_709, 98_071_600),
    (16_384, 98_469_400),
    (19_735, 98_663_300),
    (24_121, 98_835_600),
    (29_436, 98_975_600),
    (35_606, 99_085_700),
    (47_104, 99_213_900),
    (55_146, 99_271_800),
    (65_536, 99_325_600),
    (75_618, 99_428_900),
    (87_381, 99_519_200),
    (101_694, 99_601_000),
    (117_965, 99_669_900),
    (131_072, 99_712_900),
    (150_160, 99_746_600),
    (177_776, 99_782_500),
    (210_429, 99_812_800),
    (320_864, 99_883_600),
    (364_618, 99_904_100),
    (409_266, 99_920_500),
    (463_677, 99_936_200),
    (524_288, 99_949_800),
    (687_784, 99_962_200),
    (793_885, 99_967_500),
    (922_664, 99_972_300),
    (1_079_314, 99_976_600),
    (1_284_581, 99_980_600),
    (1_519_358, 99_983_900),
    (1_827_703, 99_986_900),
    (2_155_839, 99_989_200),
    (2_565_212, 99_991_200),
    (2_991_214, 99_992_700),
    (3_710_020, 99_994_500),
    (4_300_563, 99_995_500),
    (5_114_695, 99_996_500),
    (6_309_051, 99_997_500),
    (7_143_054, 99_998_000),
    (9_710_291, 99_999_000),
    (11_837_511, 99_999_500),
    (15_158_197, 100_000_000),
];

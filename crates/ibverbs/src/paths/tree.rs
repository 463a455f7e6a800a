//! The files by which Linux shows RDMA hardware, for this library's devices.
//!
//! As with hardware, the folder of a device is below that of the hardware of its interface, and `/sys/class/infiniband`
//! has a link to it. An interface without hardware gets a folder in the tree, `/sys/devices/virtual/selvedge/eth0`.

use std::fs;

use selvedge_dataplane::rnic::Device;

use super::counters;
use crate::query;

/// Folder of device nodes.
pub(super) const NODES: &str = "/dev/infiniband";
const CLASS: &str = "/sys/class/infiniband";
const VERBS: &str = "/sys/class/infiniband_verbs";
const MANAGER: &str = "/sys/class/misc/rdma_cm";
const VIRTUAL: &str = "/sys/devices/virtual/selvedge";

/// File in a hardware's folder that not all hardware has.
const NODE: &[u8] = b"/numa_node";

/// Major number of `uverbs` nodes, and the minor number of the first.
const UVERBS: (u32, u32) = (231, 192);

/// Kinds of nodes at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// A folder.
    Folder,
    /// A file with this content.
    File(String),
    /// A link to this path.
    Link(String),
}

/// The nodes, by absolute path, folders before their content; and the folders that the tree replaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<(String, Node)>,
    pub(super) roots: Vec<String>,
}

/// Returns whether a path may lead to a tree, by a quick check: every file that a program opens passes it.
pub(super) fn may_lead_here(path: &[u8]) -> bool {
    let has = |word: &[u8]| path.windows(word.len()).any(|part| part == word);
    has(b"infiniband") || has(b"/selvedge") || has(b"rdma_cm") || path.ends_with(NODE)
}

impl Tree {
    /// Creates the tree of these devices. `hardware` returns an interface's hardware, if it has any.
    pub(super) fn of(devices: &[&Device], hardware: impl Fn(&str) -> Option<Hardware>) -> Self {
        let mut tree = Self::default();
        for root in [CLASS, VERBS, MANAGER, NODES, VIRTUAL] {
            tree.root(root.to_owned());
        }
        tree.file(VERBS, "abi_version", "6");
        tree.file(MANAGER, "abi_version", "4");
        tree.file(MANAGER, "dev", "10:121");
        tree.link(NODES, "rdma_cm", "/dev/null");
        for device in devices {
            let parent = match hardware(&device.interface) {
                None => tree.substitute(device),
                Some(hardware) => {
                    let node = format!("{}/numa_node", hardware.folder);
                    if let Some(of) = hardware.node.filter(|_| !tree.roots.contains(&node)) {
                        tree.file(&hardware.folder, "numa_node", &of);
                        tree.roots.push(node);
                    }
                    hardware.folder
                }
            };
            tree.device(device, &parent);
        }
        tree
    }

    /// Returns whether a path without links is below a folder that the tree replaces.
    pub(super) fn covers(&self, path: &str) -> bool {
        let is_below = |root: &String| {
            path.strip_prefix(root.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.roots.iter().any(is_below)
    }

    fn root(&mut self, path: String) {
        if !self.roots.contains(&path) {
            self.nodes.push((path.clone(), Node::Folder));
            self.roots.push(path);
        }
    }
    fn folder(&mut self, path: &str) {
        self.nodes.push((path.to_owned(), Node::Folder));
    }
    fn file(&mut self, folder: &str, name: &str, line: &str) {
        self.nodes.push((format!("{folder}/{name}"), Node::File(format!("{line}\n"))));
    }
    fn link(&mut self, folder: &str, name: &str, to: &str) {
        self.nodes.push((format!("{folder}/{name}"), Node::Link(to.to_owned())));
    }

    /// Adds the folder that represents an interface's hardware where it has none; returns its path.
    fn substitute(&mut self, device: &Device) -> String {
        let parent = format!("{VIRTUAL}/{}", device.interface);
        self.folder(&parent);
        self.file(&parent, "numa_node", "-1");
        self.file(&parent, "uevent", "DRIVER=selvedge");
        self.folder(&format!("{parent}/net"));
        self.link(&format!("{parent}/net"), &device.interface, &format!("../../../net/{}", device.interface));
        for kind in ["infiniband", "infiniband_verbs"] {
            self.folder(&format!("{parent}/{kind}"));
        }
        parent
    }

    fn device(&mut self, device: &Device, parent: &str) {
        let name = &device.name;
        // Only the files in the hardware's folder are the kernel's.
        for kind in ["infiniband", "infiniband_verbs"] {
            let root = format!("{parent}/{kind}");
            if !self.covers(&root) {
                self.root(root);
            }
        }
        let below = parent.strip_prefix("/sys").unwrap_or(parent);
        let hardware = parent.rsplit('/').next().unwrap_or_default();
        // Path from there up to /sys.
        let up = "../".repeat(below.matches('/').count() + 2);

        self.link(CLASS, name, &format!("../..{below}/infiniband/{name}"));
        let own = format!("{parent}/infiniband/{name}");
        self.folder(&own);
        self.link(&own, "device", &format!("../../../{hardware}"));
        self.link(&own, "subsystem", &format!("{up}class/infiniband"));
        self.file(&own, "uevent", &format!("NAME={name}"));
        self.file(&own, "node_type", "1: CA");
        self.file(&own, "node_guid", &in_fours(&device.guid()));
        self.file(&own, "sys_image_guid", &in_fours(&device.guid()));
        self.file(&own, "node_desc", name);
        self.file(&own, "fw_ver", env!("CARGO_PKG_VERSION"));
        self.file(&own, "hca_type", "selvedge");
        self.file(&own, "hw_rev", "0x0");
        self.file(&own, "board_id", "selvedge");
        self.file(&own, "parent", &device.interface);
        self.folder(&format!("{own}/ports"));
        self.port(device, &format!("{own}/ports/1"));

        let node = format!("uverbs{}", device.index);
        let minor = UVERBS.1 + device.index;
        self.link(VERBS, &node, &format!("../..{below}/infiniband_verbs/{node}"));
        let own = format!("{parent}/infiniband_verbs/{node}");
        self.folder(&own);
        self.link(&own, "device", &format!("../../../{hardware}"));
        self.link(&own, "subsystem", &format!("{up}class/infiniband_verbs"));
        self.file(&own, "uevent", &format!("MAJOR={}\nMINOR={minor}\nDEVNAME=infiniband/{node}", UVERBS.0));
        self.file(&own, "dev", &format!("{}:{minor}", UVERBS.0));
        self.file(&own, "ibdev", name);
        self.file(&own, "abi_version", "1");
        self.link(NODES, &node, "/dev/null");
    }

    fn port(&mut self, device: &Device, port: &str) {
        self.folder(port);
        self.file(port, "state", if device.is_up { "4: ACTIVE" } else { "1: DOWN" });
        self.file(port, "phys_state", if device.is_up { "5: LinkUp" } else { "3: Disabled" });
        self.file(port, "rate", &rate(device));
        self.file(port, "link_layer", "Ethernet");
        self.file(port, "cap_mask", &format!("{:#010x}", query::PORT_CAPABILITIES));
        for name in ["lid", "sm_lid"] {
            self.file(port, name, "0x0");
        }
        for name in ["lid_mask_count", "sm_sl"] {
            self.file(port, name, "0");
        }
        self.folder(&format!("{port}/pkeys"));
        self.file(&format!("{port}/pkeys"), "0", "0xffff");
        for folder in ["gids", "gid_attrs", "gid_attrs/ndevs", "gid_attrs/types", "counters", "hw_counters"] {
            self.folder(&format!("{port}/{folder}"));
        }
        for index in 0..query::gid_table(device) {
            let gid = device.gids.get(index).map_or([0; 16], std::net::Ipv6Addr::octets);
            self.file(&format!("{port}/gids"), &index.to_string(), &in_fours(&gid));
        }
        // The kernel has files for empty entries, too, but they cannot be read; they are left out.
        for index in 0..device.gids.len() {
            self.file(&format!("{port}/gid_attrs/ndevs"), &index.to_string(), &device.interface);
            self.file(&format!("{port}/gid_attrs/types"), &index.to_string(), "RoCE v2");
        }
        for name in counters::OF_INTERFACE {
            self.file(&format!("{port}/counters"), name, "0");
        }
        for name in counters::OF_PROCESS {
            self.file(&format!("{port}/hw_counters"), name, "0");
        }
    }
}

/// The hardware of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Hardware {
    /// Path of the hardware's folder.
    pub(super) folder: String,
    /// The NUMA node, where the kernel does not show it in the folder (virtio): that of the enclosing device, or -1.
    pub(super) node: Option<String>,
}

/// Returns an interface's hardware, if it has any.
pub(super) fn hardware(interface: &str) -> Option<Hardware> {
    let folder = fs::canonicalize(format!("/sys/class/net/{interface}/device")).ok()?;
    let node = if folder.join("numa_node").exists() {
        None
    } else {
        let known = folder.ancestors().find_map(|above| fs::read_to_string(above.join("numa_node")).ok());
        Some(known.map_or_else(|| "-1".to_owned(), |line| line.trim().to_owned()))
    };
    let folder = folder.into_os_string().into_string().ok().filter(|folder| folder.starts_with("/sys/"))?;
    Some(Hardware { folder, node })
}

/// Returns an identifier in Linux's form: groups of four digits, separated by colons.
fn in_fours(bytes: &[u8]) -> String {
    let fours = bytes.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    fours.collect::<Vec<_>>().join(":")
}

/// Returns a port's rate in Linux's form.
fn rate(device: &Device) -> String {
    let (width, speed) = query::lanes(device.speed);
    let lanes = if width == query::FOUR_LANES { 4 } else { 1 };
    let (of_lane, name) = if speed == query::QDR { (10, "QDR") } else { (25, "EDR") };
    format!("{} Gb/sec ({lanes}X {name})", lanes * of_lane)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "sv_eth0".to_owned(),
            interface: "eth0".to_owned(),
            index: 4,
            mtu: 1_500,
            hardware: [2, 0, 0, 0, 0, 1],
            is_up: true,
            speed: None,
            gids: vec!["fe80::1".parse().expect("valid"), "::ffff:10.0.0.1".parse().expect("valid")],
            has_link_local: true,
        }
    }
    fn find<'a>(tree: &'a Tree, path: &str) -> Option<&'a Node> {
        tree.nodes.iter().find(|(at, _)| at == path).map(|(_, node)| node)
    }

    #[test]
    fn files_are_as_linux_has_them() {
        let tree = Tree::of(&[&device()], |_| None);
        let own = "/sys/devices/virtual/selvedge/eth0/infiniband/sv_eth0";
        let line = |path: &str| match find(&tree, &format!("{own}/{path}")) {
            Some(Node::File(content)) => content.clone(),
            other => format!("{other:?}"),
        };
        assert_eq!(line("ports/1/gid_attrs/types/1"), "RoCE v2\n");
        assert_eq!(line("ports/1/gid_attrs/ndevs/0"), "eth0\n");
        assert_eq!(line("ports/1/gids/1"), "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
        assert_eq!(line("ports/1/gids/255"), "0000:0000:0000:0000:0000:0000:0000:0000\n");
        assert_eq!(line("ports/1/state"), "4: ACTIVE\n");
        assert_eq!(line("ports/1/rate"), "10 Gb/sec (1X QDR)\n");
        assert_eq!(line("node_guid"), "0000:00ff:fe00:0001\n");
        assert_eq!(find(&tree, &format!("{own}/ports/1/gid_attrs/types/2")), None);
        assert_eq!(find(&tree, "/dev/infiniband/uverbs4"), Some(&Node::Link("/dev/null".to_owned())));
    }

    #[test]
    fn links_lead_where_the_kernels_do() {
        let pci = "/sys/devices/pci0000:00/0000:00:03.0";
        let tree = Tree::of(&[&device()], |_| Some(Hardware { folder: pci.to_owned(), node: None }));
        let link = |path: &str| match find(&tree, path) {
            Some(Node::Link(to)) => to.clone(),
            other => format!("{other:?}"),
        };
        let expected = "../../devices/pci0000:00/0000:00:03.0/infiniband/sv_eth0";
        assert_eq!(link("/sys/class/infiniband/sv_eth0"), expected);
        assert_eq!(link(&format!("{pci}/infiniband/sv_eth0/device")), "../../../0000:00:03.0");
        assert_eq!(link(&format!("{pci}/infiniband/sv_eth0/subsystem")), "../../../../../class/infiniband");
        assert!(tree.covers(&format!("{pci}/infiniband/sv_eth0/ports")));
        assert!(!tree.covers(&format!("{pci}/numa_node")));
        assert_eq!(find(&tree, pci), None);

        let node = format!("{pci}/virtio1/numa_node");
        let of_virtio = Hardware { folder: format!("{pci}/virtio1"), node: Some("1".to_owned()) };
        let tree = Tree::of(&[&device()], |_| Some(of_virtio.clone()));
        assert!(tree.covers(&node) && may_lead_here(node.as_bytes()));
        assert_eq!(find(&tree, &node), Some(&Node::File("1\n".to_owned())));
    }

    #[test]
    fn folders_come_before_what_is_in_them_and_nothing_twice() {
        let second = Device { name: "sv_eth1".to_owned(), interface: "eth1".to_owned(), index: 5, ..device() };
        let of = |node| Hardware { folder: "/sys/devices/pci0000:00/0000:00:03.0".to_owned(), node };
        for hardware in [None, Some(of(None)), Some(of(Some("0".to_owned())))] {
            let tree = Tree::of(&[&device(), &second], |_| hardware.clone());
            for (at, (path, _)) in tree.nodes.iter().enumerate() {
                let folder = path.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
                let is_there = tree.nodes[..at].iter().any(|(of, node)| of == folder && *node == Node::Folder);
                assert!(is_there || tree.roots.contains(path), "{path}");
                assert!(!tree.nodes[..at].iter().any(|(of, _)| of == path), "{path}");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_left_to_others() {
        let tree = Tree::of(&[&device()], |_| None);
        for path in ["/sys/class/infiniband_mad", "/sys/class/net/eth0", "/etc/passwd", "/dev/infinibandit"] {
            assert!(!tree.covers(path), "{path}");
        }
        assert!(!may_lead_here(b"/etc/passwd"));
        assert!([CLASS, VIRTUAL].iter().all(|path| may_lead_here(path.as_bytes())));
    }
}

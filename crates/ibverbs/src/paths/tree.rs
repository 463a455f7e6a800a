//! What Linux shows of RDMA hardware in files, for our devices.

use selvedge_dataplane::rnic::Device;

const NODES: &str = "/dev/infiniband/";
const CLASS: &str = "/sys/class/infiniband";

/// What is at a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// A character device.
    Device,
    /// A folder.
    Folder,
    /// A file with this content.
    File(String),
    /// What is at this path, whatever that is.
    At(String),
}

/// Whether a path may be one that we know.
pub(super) fn is_ours(path: &str) -> bool {
    path.starts_with(NODES) || path.starts_with(CLASS)
}

/// What is at a path.
pub(super) fn find(devices: &[&Device], path: &str) -> Option<Found> {
    if let Some(node) = path.strip_prefix(NODES) {
        let is_known = node == "rdma_cm" || devices.iter().any(|device| node == format!("uverbs{}", device.index));
        return is_known.then_some(Found::Device);
    }
    let below = path.strip_prefix(CLASS)?;
    let mut names = below.split('/').filter(|name| !name.is_empty());
    let Some(name) = names.next() else { return below.trim_matches('/').is_empty().then_some(Found::Folder) };
    let device = devices.iter().find(|device| device.name == name && below.starts_with('/'))?;
    of_device(device, &names.collect::<Vec<_>>())
}

fn of_device(device: &Device, names: &[&str]) -> Option<Found> {
    let line = |text: String| Some(Found::File(text + "\n"));
    match names {
        [] | ["ports"] | ["ports", "1"] => Some(Found::Folder),
        // The interface's hardware, if it has any, is the device's.
        ["device", ..] => Some(Found::At(format!("/sys/class/net/{}/{}", device.interface, names.join("/")))),
        ["node_type"] => line("1: CA".to_owned()),
        ["node_guid" | "sys_image_guid"] => line(in_fours(&device.guid())),
        ["node_desc"] => line(device.name.clone()),
        ["fw_ver"] => line(env!("CARGO_PKG_VERSION").to_owned()),
        ["ports", "1", rest @ ..] => of_port(device, rest),
        _ => None,
    }
}

fn of_port(device: &Device, names: &[&str]) -> Option<Found> {
    let line = |text: &str| Some(Found::File(format!("{text}\n")));
    let gid = |index: &str| device.gids.get(index.parse::<usize>().ok()?);
    match names {
        ["gids" | "gid_attrs" | "pkeys"] | ["gid_attrs", "types" | "ndevs"] => Some(Found::Folder),
        ["state"] => line(if device.is_up { "4: ACTIVE" } else { "1: DOWN" }),
        ["phys_state"] => line(if device.is_up { "5: LinkUp" } else { "3: Disabled" }),
        ["link_layer"] => line("Ethernet"),
        ["lid" | "sm_lid"] => line("0x0"),
        ["lid_mask_count" | "sm_sl"] => line("0"),
        ["pkeys", "0"] => line("0xffff"),
        ["gids", index] => line(&in_fours(&gid(index)?.octets())),
        ["gid_attrs", "types", index] => gid(index).and_then(|_| line("RoCE v2")),
        ["gid_attrs", "ndevs", index] => gid(index).and_then(|_| line(&device.interface)),
        _ => None,
    }
}

/// As Linux writes identifiers: four digits and a colon.
fn in_fours(bytes: &[u8]) -> String {
    let fours = bytes.chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    fours.collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device {
            name: "sv-eth0".to_owned(),
            interface: "eth0".to_owned(),
            index: 4,
            mtu: 1_500,
            hardware: [2, 0, 0, 0, 0, 1],
            is_up: true,
            speed: None,
            gids: vec!["fe80::1".parse().expect("right"), "::ffff:10.0.0.1".parse().expect("right")],
        }
    }
    fn found(path: &str) -> Option<Found> {
        find(&[&device()], path)
    }
    fn file(text: &str) -> Option<Found> {
        Some(Found::File(text.to_owned()))
    }

    #[test]
    fn files_are_as_linux_has_them() {
        let port = "/sys/class/infiniband/sv-eth0/ports/1";
        assert_eq!(found(&format!("{port}/gid_attrs/types/1")), file("RoCE v2\n"));
        assert_eq!(found(&format!("{port}/gid_attrs/ndevs/0")), file("eth0\n"));
        assert_eq!(found(&format!("{port}/gids/1")), file("0000:0000:0000:0000:0000:ffff:0a00:0001\n"));
        assert_eq!(found(&format!("{port}//state")), file("4: ACTIVE\n"));
        assert_eq!(found("/sys/class/infiniband/sv-eth0/node_guid"), file("0000:00ff:fe00:0001\n"));
        assert_eq!(found(port), Some(Found::Folder));
        let hardware = Found::At("/sys/class/net/eth0/device/net".to_owned());
        assert_eq!(found("/sys/class/infiniband/sv-eth0/device/net/"), Some(hardware));
        assert_eq!(found("/dev/infiniband/uverbs4"), Some(Found::Device));
    }

    #[test]
    fn what_is_not_there_is_left_to_others() {
        for path in [
            "/sys/class/infiniband/sv-eth0/ports/1/gid_attrs/types/2",
            "/sys/class/infiniband/sv-eth0/ports/2",
            "/sys/class/infiniband/mlx5_0/node_type",
            "/sys/class/infiniband_verbs/uverbs4",
            "/dev/infiniband/uverbs0",
            "/etc/passwd",
        ] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}

use super::*;

/// Returns the bytes of a hexadecimal text.
fn hex<const N: usize>(text: &str) -> [u8; N] {
    assert_eq!(text.len(), 2 * N);
    core::array::from_fn(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
}

/// The private keys of RFC 7748, section 6.1.
fn alice() -> Secret {
    Secret::new(hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"))
}

fn bob() -> Secret {
    Secret::new(hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"))
}

fn pairs(suite: Suite) -> [(Pair, Pair); 2] {
    let shared = Secret::new([7; 32]);
    let (a, b) = (alice(), bob());
    [
        (
            Pair::from_static(&a, b.public(), Some(&shared), suite).unwrap(),
            Pair::from_static(&b, a.public(), Some(&shared), suite).unwrap(),
        ),
        (Pair::from_shared(&shared, "a", "b", suite).unwrap(), Pair::from_shared(&shared, "b", "a", suite).unwrap()),
    ]
}

#[test]
fn what_one_end_sends_the_other_reads() {
    for suite in [Suite::Aes128Gcm, Suite::ChaCha20Poly1305] {
        for (a, b) in pairs(suite) {
            for (from, to) in [(&a, &b), (&b, &a)] {
                let (out, inward) = (from.outbound(), to.inbound());
                assert_eq!(out.id, inward.id);
                let (out, inward) = (out.epoch(9), inward.epoch(9));
                assert!(inward.verify(b"header", out.mac(b"header")));
                let mut bytes = *b"payload and its tag.............";
                let tag = out.seal(5, b"header", &mut bytes[..16]);
                bytes[16..].copy_from_slice(&tag);
                assert_ne!(bytes[..16], *b"payload and its ");
                assert_eq!(inward.open(5, b"header", &mut bytes.clone()).unwrap(), b"payload and its ");
                assert_eq!(inward.open(6, b"header", &mut bytes.clone()), None, "another number");
                assert_eq!(inward.open(5, b"Header", &mut bytes.clone()), None, "another header");
                bytes[3] ^= 1;
                assert_eq!(inward.open(5, b"header", &mut bytes), None, "a damaged payload");
            }
        }
    }
}

#[test]
fn each_pair_direction_epoch_suite_and_purpose_has_its_key() {
    let mut macs = Vec::new();
    for suite in [Suite::Aes128Gcm, Suite::ChaCha20Poly1305] {
        for (a, _) in pairs(suite) {
            for direction in [a.outbound(), a.inbound()] {
                macs.extend([0, 1, u32::MAX].map(|epoch| direction.epoch(epoch).mac(b"header")));
            }
        }
    }
    let count = macs.len();
    macs.sort_unstable();
    macs.dedup();
    assert_eq!(macs.len(), count);
}

#[test]
fn keys_that_protect_nothing_are_refused() {
    let low_order = [
        [0; 32],
        hex("0100000000000000000000000000000000000000000000000000000000000000"),
        hex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    ];
    for key in low_order {
        assert_eq!(Pair::from_static(&alice(), key, None, Suite::default()).err(), Some(KeyError::Weak));
    }
    let own = alice().public();
    assert_eq!(Pair::from_static(&alice(), own, None, Suite::default()).err(), Some(KeyError::SameIdentity));
    let zero = Secret::new([0; 32]);
    assert_eq!(Pair::from_shared(&zero, "a", "b", Suite::default()).err(), Some(KeyError::Zero));
    assert_eq!(Pair::from_shared(&alice(), "a", "a", Suite::default()).err(), Some(KeyError::SameIdentity));
    assert_eq!(format!("{:?}", alice()), "Secret(..)");
}

#[test]
fn the_mac_is_siphash_as_its_authors_have_it() {
    // Aumasson and Bernstein, appendix A: the key is 0 to 15, the message 0 to 14.
    let hash = SipHasher24::new_with_key(&core::array::from_fn(|at| at as u8));
    let message: [u8; 15] = core::array::from_fn(|at| at as u8);
    assert_eq!(hash.hash(&message), 0xa129_ca61_49be_45e5);
}

/// The test vectors of docs/eqds-wire.md, which an independent implementation in Python has confirmed.
#[test]
fn keys_are_those_of_the_specification() {
    let shared = Secret::new([7; 32]);
    let pair = Pair::from_static(&alice(), bob().public(), Some(&shared), Suite::Aes128Gcm).unwrap();
    assert_eq!((pair.outbound().id, pair.inbound().id), (0x449d_6ce9, 0x5583_2db9));
    let keys = pair.outbound().epoch(0x0102_0304);
    assert_eq!(keys.mac(b"header"), hex("3dc360b3d1b40f70"));
    let mut payload = *b"payload";
    assert_eq!(keys.seal(5, b"header", &mut payload), hex("22a9aee14ebb9d39a2f9ff2d2b4ba44e"));
    assert_eq!(payload, hex("6003d1d871ae66"));
    let by_name = Pair::from_shared(&shared, "a", "b", Suite::ChaCha20Poly1305).unwrap().outbound();
    assert_eq!(by_name.id, 0x0a8b_bccc);
    assert_eq!(by_name.epoch(0x0102_0304).mac(b"header"), hex("ca9be5f3d228b4f3"));
}

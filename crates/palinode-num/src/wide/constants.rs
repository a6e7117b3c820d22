//! Constants to 192 bits.
//!
//! Written by `reference/constants.py`: change that file, not this one.

use super::Wide;

/// pi.
pub(crate) const PI: Wide = Wide::table(2, [0xc90fdaa22168c234, 0xc4c6628b80dc1cd1, 0x29024e088a67cc74]);

/// `2 / pi`.
pub(crate) const TWO_OVER_PI: Wide =
    Wide::table(0, [0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439042]);

/// `ln 2`.
pub(crate) const LN_2: Wide = Wide::table(0, [0xb17217f7d1cf79ab, 0xc9e3b39803f2f6af, 0x40f343267298b62e]);

/// `ln 10`.
pub(crate) const LN_10: Wide = Wide::table(2, [0x935d8dddaaa8ac16, 0xea56d62b82d30a28, 0xe28fecf9da5df90f]);

/// `1 / 3`.
pub(crate) const ONE_THIRD: Wide =
    Wide::table(-1, [0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaab]);

/// `1 / sqrt(pi)`.
pub(crate) const ONE_OVER_SQRT_PI: Wide =
    Wide::table(0, [0x906eba8214db688d, 0x71d48a7f6bfec344, 0x1409a0ebac3e7517]);

/// `ln(2 pi) / 2`.
pub(crate) const LN_SQRT_TWO_PI: Wide =
    Wide::table(0, [0xeb3f8e4325f5a534, 0x94bc900144192023, 0xcfb08f8d13458b4e]);

/// Euler's constant.
pub(crate) const EULER_GAMMA: Wide =
    Wide::table(0, [0x93c467e37db0c7a4, 0xd1be3f810152cb56, 0xa1cecc3af65cc019]);

/// `zeta(2) / 2`.
pub(crate) const ZETA_2_OVER_2: Wide =
    Wide::table(0, [0xd28d3312983e9918, 0x73d8912200bace5e, 0xb5c88daa81162d8b]);

/// `1 / n!`, from `n = 0`.
pub(crate) const INVERSE_FACTORIALS: [Wide; 45] = [
    Wide::table(1, [0x8000000000000000, 0x0000000000000000, 0x0000000000000000]),
    Wide::table(1, [0x8000000000000000, 0x0000000000000000, 0x0000000000000000]),
    Wide::table(0, [0x8000000000000000, 0x0000000000000000, 0x0000000000000000]),
    Wide::table(-2, [0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaab]),
    Wide::table(-4, [0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaab]),
    Wide::table(-6, [0x8888888888888888, 0x8888888888888888, 0x8888888888888889]),
    Wide::table(-9, [0xb60b60b60b60b60b, 0x60b60b60b60b60b6, 0x0b60b60b60b60b61]),
    Wide::table(-12, [0xd00d00d00d00d00d, 0x00d00d00d00d00d0, 0x0d00d00d00d00d01]),
    Wide::table(-15, [0xd00d00d00d00d00d, 0x00d00d00d00d00d0, 0x0d00d00d00d00d01]),
    Wide::table(-18, [0xb8ef1d2ab6399c7d, 0x560e4472800b8ef1, 0xd2ab6399c7d560e4]),
    Wide::table(-21, [0x93f27dbbc4fae397, 0x780b69f5333c725b, 0x0eef82e16caab3ea]),
    Wide::table(-25, [0xd7322b3faa271c7f, 0x3a3f25c1bee38f10, 0x15b9788db55562c8]),
    Wide::table(-28, [0x8f76c77fc6c4bdaa, 0x26d4c3d67f425f60, 0x0e7ba5b3ce38ec86]),
    Wide::table(-32, [0xb092309d43684be5, 0x1c198e91d7b4269d, 0x9babdfa238e39942]),
    Wide::table(-36, [0xc9cba54603e4e905, 0xd6f8a2efd1f27546, 0x68c46d4baebaf84b]),
    Wide::table(-40, [0xd73f9f399dc0f88e, 0xc32b58774657f48f, 0x5eaf6383ed943c0c]),
    Wide::table(-44, [0xd73f9f399dc0f88e, 0xc32b58774657f48f, 0x5eaf6383ed943c0c]),
    Wide::table(-48, [0xca963b81856a5359, 0x3028cbbb8d7ff53b, 0xa468d621d08b83cf]),
    Wide::table(-52, [0xb413c31dcbecbbdd, 0x8024435161554bc3, 0x3ccef73a807c0363]),
    Wide::table(-56, [0x97a4da340a0ab926, 0x50f61dbdcb3a5abf, 0x5ba0d03143c6bf7c]),
    Wide::table(-61, [0xf2a15d201011283d, 0x4e5695fc785d5dfe, 0xf9014d1b9fa46593]),
    Wide::table(-65, [0xb8dc77b6e7ab8c5f, 0x78a37e77372290c2, 0x43d03abfb695a2b9]),
    Wide::table(-69, [0x8671cb6dbfc294a2, 0x86485bf99c763abb, 0xd43a59459c0fbc29]),
    Wide::table(-74, [0xbb0da098b1c0cecb, 0xdc3826ebfb13cc26, 0xb7f82329322c272e]),
    Wide::table(-79, [0xf96780cb97abbe65, 0x25a033e54ec51033, 0x9ff58436ed90343e]),
    Wide::table(-83, [0x9f9e66e8b2fd46a7, 0x22520cbbb7885c49, 0xfff94a60980a5ee0]),
    Wide::table(-88, [0xc4742fe35272cd1c, 0x790285d3580a4a33, 0xb132d1b1f6342600]),
    Wide::table(-93, [0xe8d58e16e6751905, 0x4d0c78aea13b9a50, 0x3a4f316a9f0e65ed]),
    Wide::table(-97, [0x850c5131a842e9b9, 0xe2e28e1aa546a152, 0x6a7665617f75f11a]),
    Wide::table(-102, [0x92cfcc5a1ac56bd5, 0xf1873bb378948eb3, 0x37aec824f693cc40]),
    Wide::table(-107, [0x9c9962823eb07306, 0x56f6a614c4e2ba58, 0xc3eda2498f8c9599]),
    Wide::table(-112, [0xa1a6973c1fade217, 0x0f7237d35fe1c89d, 0xb1796db749db7122]),
    Wide::table(-117, [0xa1a6973c1fade217, 0x0f7237d35fe1c89d, 0xb1796db749db7122]),
    Wide::table(-122, [0x9cc092a6e86a8da9, 0xc166ffd4ba113ea8, 0x6e092492b439a402]),
    Wide::table(-127, [0x9388118e07ebd09f, 0xc515a57ceb5b8644, 0x2b53e62fb8aeb87b]),
    Wide::table(-132, [0x86e2ce38b6c8f941, 0x9e3fad3f0311d9d7, 0xed1981ffbecba15a]),
    Wide::table(-138, [0xefcc194861654958, 0x35c6895393adf50e, 0x1749caaa36bf57bd]),
    Wide::table(-143, [0xcf6468e4a742d7a6, 0x3c58ae1ec4e979fe, 0x5954939a2182e419]),
    Wide::table(-148, [0xaea565ce061d5748, 0x9e9b85276273c50c, 0x1554b230f3cc8a30]),
    Wide::table(-153, [0x8f4ca24d25d66f00, 0x8223b575a61d5979, 0x81178ba4e24bee1a]),
    Wide::table(-159, [0xe5476a1509571800, 0xd0392255d6955bf5, 0x9b58df6e36dfe35d]),
    Wide::table(-164, [0xb2f30e1ce812063f, 0x12e7e8d8d96e5442, 0xd0a9443d0b9c02a0]),
    Wide::table(-169, [0x8857a93a986f41b6, 0x26c912ee5c84d27c, 0x0cb1ba162139e99f]),
    Wide::table(-175, [0xcaeda292bf28916e, 0x5d72b6f79b901b83, 0x0cf0b5b5c64a49da]),
    Wide::table(-180, [0x93958d81ff63527e, 0xcf993f3fb6f47119, 0x7dc6559b78f035b6]),
];

/// The magnitudes of `B_2k / (2k (2k - 1))`, from `k = 1`; the signs alternate.
pub(crate) const STIRLING: [Wide; 30] = [
    Wide::table(-3, [0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaab]),
    Wide::table(-8, [0xb60b60b60b60b60b, 0x60b60b60b60b60b6, 0x0b60b60b60b60b61]),
    Wide::table(-10, [0xd00d00d00d00d00d, 0x00d00d00d00d00d0, 0x0d00d00d00d00d01]),
    Wide::table(-10, [0x9c09c09c09c09c09, 0xc09c09c09c09c09c, 0x09c09c09c09c09c1]),
    Wide::table(-10, [0xdca8f158c7f91ab8, 0x7539c0372a3c5631, 0xfe46ae1d4e700dcb]),
    Wide::table(-9, [0xfb5586ccc9e3e40f, 0xb5586ccc9e3e40fb, 0x5586ccc9e3e40fb5]),
    Wide::table(-7, [0xd20d20d20d20d20d, 0x20d20d20d20d20d2, 0x0d20d20d20d20d21]),
    Wide::table(-5, [0xf21436587a9cbee1, 0x032547698badcff2, 0x1436587a9cbee103]),
    Wide::table(-2, [0xb7f4b1c0f033ffd0, 0xc3b7f4b1c0f033ff, 0xd0c3b7f4b1c0f034]),
    Wide::table(1, [0xb23b3808c0f9cf6d, 0xedce7312cc3ea607, 0x48b14c1f4aa70224]),
    Wide::table(4, [0xd672219167002d3a, 0x7a9c886459c00b4e, 0x9ea72219167002d4]),
    Wide::table(8, [0x9cd9292e6660d55b, 0x3f712eb9e07ca39d, 0xb44a9292e6660d56]),
    Wide::table(12, [0x8911a740da740da7, 0x40da740da740da74, 0x0da740da740da741]),
    Wide::table(16, [0x8d0cc570e255bf59, 0xff6eec24b48ff1b3, 0x94d92e2fd250842d]),
    Wide::table(20, [0xa8d1044d3708d1c2, 0x19ee4fdc4469ccae, 0xdcb00698234d582c]),
    Wide::table(24, [0xe8844d8a169abbc4, 0x06169abbc406169a, 0xbbc406169abbc406]),
    Wide::table(29, [0xb694d07b219dbcc4, 0x8676f31219dbcc48, 0x676f31219dbcc486]),
    Wide::table(34, [0xa2288cecf23376ae, 0xa6024d5c49761634, 0xda88c0793f07a1f9]),
    Wide::table(39, [0xa1bbcde4ea012735, 0x0b88127350b88127, 0x350b88127350b881]),
    Wide::table(44, [0xb4005bde03d4642a, 0x243581714af642a2, 0x43581714af642a24]),
    Wide::table(49, [0xde466b7c78fbaae3, 0xc3a9e6daeae46d98, 0xeeecac9e8573ed1f]),
    Wide::table(55, [0x977d762877729bcb, 0x40509f4fd884644b, 0x72037c5e151661b5]),
    Wide::table(60, [0xe2e1337f5af0bed9, 0x0b6b0a352d4f335c, 0x83da6597d3226a6f]),
    Wide::table(66, [0xb9e094058ad89016, 0xb4f92ff986cdeea2, 0x09d8d881ad457156]),
    Wide::table(72, [0xa5f7eef9e71ac7c8, 0x0326ab4cc8bf3f7c, 0x478f4715b08640e9]),
    Wide::table(78, [0xa0ef80e57954084c, 0xda64925c6c86491a, 0x694deef08cb9cebd]),
    Wide::table(84, [0xa8ebfe48da17dd99, 0x9790760b0ce0256e, 0xc758797bf4826900]),
    Wide::table(90, [0xbf582a433556fb17, 0x24c95ab56cbec2ef, 0x3ba1b5ef128b1478]),
    Wide::table(96, [0xe940b3723e6c7d0e, 0x7770e67104316dcb, 0x45c0eb78e86d69d6]),
    Wide::table(103, [0x989a150689672663, 0xf8cc3b4f451835e1, 0x174b18c9bd60a7d5]),
];

/// The binary digits of `2 / pi` after the point, highest first: enough for the largest `f64`.
pub(crate) const TWO_OVER_PI_BITS: [u64; 22] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
    0xf0cfbc209af4361d,
    0xa9e391615ee61b08,
    0x6599855f14a06840,
];

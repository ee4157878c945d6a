//! The kits there are: which tests of each make sense against which configuration of the agent.

use super::corrections;
use super::kit::PublishedKit;
use super::known::{self, KnownFailure};

/// The kit of one version of A2A.
pub(super) struct Suite {
    pub(super) version: &'static str,
    pub(super) kit: PublishedKit,
    /// The kit's names of the bindings that are served.
    pub(super) bindings: &'static str,
    /// The option by which it is told where the agent is.
    pub(super) address: &'static str,
    /// Where its tests are; names of tests are relative to this.
    pub(super) tests: &'static str,
    /// Whether it counts requirements, beside tests.
    pub(super) reports_requirements: bool,
    pub(super) settings: &'static [KitRun],
    pub(super) failures: &'static [KnownFailure],
}

/// One run of the kit.
pub(super) struct KitRun {
    pub(super) name: &'static str,
    /// The agent's configuration.
    pub(super) config: &'static str,
    /// Which tests, below the suite's.
    pub(super) tests: &'static str,
    pub(super) pytest: &'static [&'static str],
    /// Whether this is a part of the tests, whose share of requirements means nothing.
    pub(super) is_part: bool,
    /// Whether the kit as published cannot even begin, and is not run.
    pub(super) needs_corrections: bool,
    /// How many tests are skipped: those of other bindings, those of capabilities the configuration has the other way, and
    /// empty parameter sets. More skips than this hide a failed set-up; fewer mean that the number is an old one.
    pub(super) skips: Skips,
}

pub(super) struct Skips {
    pub(super) as_published: usize,
    pub(super) corrected: usize,
}

const fn skips(as_published: usize, corrected: usize) -> Skips {
    Skips { as_published, corrected }
}

pub(super) const SUITES: &[Suite] = &[
    Suite {
        version: "1.0",
        kit: PublishedKit {
            commit: "357c4a87afa2818731590647cccbea31c31733a2",
            tree: "c3f0224d6dd2efc8685fe7b2edd7148cc87cbbda0a761b7d19cc04773f4f196c",
            corrected_tree: "24322590e05659b7fd52d7a8879e4a7118d4cd417e980fd5228c3de2f13a53ab",
            corrections: corrections::OF_1_0,
        },
        bindings: "jsonrpc,http_json,grpc",
        address: "--sut-host",
        tests: "tests/compatibility/",
        reports_requirements: true,
        settings: &[
            KitRun {
                name: "full",
                config: "full",
                tests: "",
                pytest: &["--transport=jsonrpc,http_json,grpc"],
                is_part: false,
                needs_corrections: false,
                skips: skips(15, 15),
            },
            KitRun {
                name: "minimal",
                config: "minimal",
                tests: "",
                pytest: &["--transport=jsonrpc,http_json,grpc"],
                is_part: false,
                needs_corrections: false,
                skips: skips(82, 83),
            },
            // The agent refuses every call that does not name the extension, so the kit's other tests mean nothing here.
            KitRun {
                name: "required-extension",
                config: "required-extension",
                tests: "",
                pytest: &["--transport=jsonrpc,http_json,grpc", "-k", "extension"],
                is_part: true,
                needs_corrections: false,
                skips: skips(0, 0),
            },
        ],
        failures: known::OF_1_0,
    },
    Suite {
        version: "0.3",
        kit: PublishedKit {
            commit: "eb1f804c27ea25db8805264d9ed2d7ca077a7776",
            tree: "df0887b3fbe9caeb6aa7f6d6b2a2fed8ec6d6f4c61baf6b4a548a196288f7fa8",
            corrected_tree: "830801f6ac9df47336a88f11dff675a68bb6983cc3094be6624cff58fe6fa992",
            corrections: corrections::OF_0_3,
        },
        bindings: "jsonrpc,rest,grpc",
        address: "--sut-url",
        tests: "tests/",
        reports_requirements: false,
        settings: &[
            KitRun {
                name: "mandatory-jsonrpc",
                config: "0.3",
                tests: "mandatory/",
                pytest: &["--test-scope=all", "--transports=jsonrpc", "-m", "mandatory_jsonrpc or mandatory_protocol"],
                is_part: false,
                needs_corrections: false,
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-jsonrpc",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=jsonrpc"],
                is_part: false,
                needs_corrections: false,
                skips: skips(34, 34),
            },
            KitRun {
                name: "quality-jsonrpc",
                config: "0.3",
                tests: "optional/quality/",
                pytest: &["--test-scope=all", "--transports=jsonrpc"],
                is_part: false,
                needs_corrections: false,
                skips: skips(0, 0),
            },
            KitRun {
                name: "features-jsonrpc",
                config: "0.3",
                tests: "optional/features/",
                pytest: &["--test-scope=all", "--transports=jsonrpc"],
                is_part: false,
                needs_corrections: false,
                skips: skips(1, 1),
            },
            KitRun {
                name: "mandatory-rest",
                config: "0.3",
                tests: "mandatory/protocol/",
                pytest: &["--test-scope=all", "--transports=rest", "-m", "mandatory_protocol"],
                is_part: false,
                needs_corrections: false,
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-rest",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=rest"],
                is_part: false,
                needs_corrections: false,
                skips: skips(39, 39),
            },
            KitRun {
                name: "quality-rest",
                config: "0.3",
                tests: "optional/quality/",
                pytest: &["--test-scope=all", "--transports=rest"],
                is_part: false,
                needs_corrections: false,
                skips: skips(0, 0),
            },
            KitRun {
                name: "features-rest",
                config: "0.3",
                tests: "optional/features/",
                pytest: &["--test-scope=all", "--transports=rest"],
                is_part: false,
                needs_corrections: false,
                skips: skips(1, 1),
            },
            KitRun {
                name: "mandatory-grpc",
                config: "0.3",
                tests: "mandatory/protocol/",
                pytest: &["--test-scope=all", "--transports=grpc", "-m", "mandatory_protocol"],
                is_part: false,
                needs_corrections: true,
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-grpc",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=grpc"],
                is_part: false,
                needs_corrections: true,
                skips: skips(39, 39),
            },
            KitRun {
                name: "quality-grpc",
                config: "0.3",
                tests: "optional/quality/",
                pytest: &["--test-scope=all", "--transports=grpc"],
                is_part: false,
                needs_corrections: true,
                skips: skips(0, 0),
            },
            KitRun {
                name: "features-grpc",
                config: "0.3",
                tests: "optional/features/",
                pytest: &["--test-scope=all", "--transports=grpc"],
                is_part: false,
                needs_corrections: true,
                skips: skips(1, 1),
            },
            KitRun {
                name: "transport-equivalence",
                config: "0.3",
                tests: "optional/multi_transport/",
                pytest: &["--test-scope=all", "--transports=jsonrpc,rest,grpc", "-m", "transport_equivalence"],
                is_part: false,
                needs_corrections: true,
                skips: skips(4, 4),
            },
        ],
        failures: known::OF_0_3,
    },
];

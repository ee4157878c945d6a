//! The kits there are: which tests of each make sense against which configuration of the agent.

use super::known::{self, KnownFailure};

/// The kit of one version of A2A.
pub(super) struct Suite {
    pub(super) version: &'static str,
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
    /// The fewest tests that are skipped: those of other bindings, those of capabilities the configuration has the other
    /// way, and empty parameter sets. More skips than this hide a failed set-up.
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
                skips: skips(15, 15),
            },
            KitRun {
                name: "minimal",
                config: "minimal",
                tests: "",
                pytest: &["--transport=jsonrpc,http_json,grpc"],
                is_part: false,
                skips: skips(82, 83),
            },
            // The agent refuses every call that does not name the extension, so the kit's other tests mean nothing here.
            KitRun {
                name: "required-extension",
                config: "required-extension",
                tests: "",
                pytest: &["--transport=jsonrpc,http_json,grpc", "-k", "extension"],
                is_part: true,
                skips: skips(0, 0),
            },
        ],
        failures: known::OF_1_0,
    },
    Suite {
        version: "0.3",
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
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-jsonrpc",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=jsonrpc"],
                is_part: false,
                skips: skips(40, 40),
            },
            KitRun {
                name: "mandatory-rest",
                config: "0.3",
                tests: "mandatory/protocol/",
                pytest: &["--test-scope=all", "--transports=rest", "-m", "mandatory_protocol"],
                is_part: false,
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-rest",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=rest"],
                is_part: false,
                skips: skips(45, 45),
            },
            KitRun {
                name: "mandatory-grpc",
                config: "0.3",
                tests: "mandatory/protocol/",
                pytest: &["--test-scope=all", "--transports=grpc", "-m", "mandatory_protocol", "-p", "host_and_port"],
                is_part: false,
                skips: skips(3, 3),
            },
            KitRun {
                name: "capabilities-grpc",
                config: "0.3",
                tests: "optional/capabilities/",
                pytest: &["--test-scope=all", "--transports=grpc", "-p", "host_and_port"],
                is_part: false,
                skips: skips(45, 45),
            },
        ],
        failures: known::OF_0_3,
    },
];

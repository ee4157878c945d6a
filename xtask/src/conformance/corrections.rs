//! What is wrong in the published kits, as edits of files whose content is known.
//!
//! An edit names the words that it replaces, which must occur once, and why. A file is known by its SHA-256 before and after, so that
//! a correction is made to the text that was read when it was written, or not at all. The kits stay where they are published;
//! here are only the words that an edit must name. `kit` makes the corrections in a copy of its own.

use sha2::{Digest as _, Sha256};

/// The corrections of one file.
pub(super) struct Correction {
    /// Relative to the kit.
    pub(super) file: &'static str,
    pub(super) change: Change,
    /// SHA-256 of the corrected file.
    pub(super) after: &'static str,
}

pub(super) enum Change {
    Edit {
        before: &'static str,
        edits: &'static [Edit],
    },
    /// A file of ours that the kit does not have.
    Add {
        text: &'static str,
        reason: &'static str,
    },
}

pub(super) struct Edit {
    find: &'static str,
    replace: &'static str,
    reason: &'static str,
}

impl Edit {
    pub(super) const fn new(find: &'static str, replace: &'static str, reason: &'static str) -> Edit {
        Edit { find, replace, reason }
    }
}

impl Correction {
    /// The corrected text of a file, given the text it has (none if there is no such file).
    pub(super) fn apply(&self, text: Option<&str>) -> Result<String, String> {
        let corrected = match (&self.change, text) {
            (Change::Add { text, .. }, None) => (*text).to_owned(),
            (Change::Add { .. }, Some(_)) => return Err(format!("{}: the kit has a file of this name", self.file)),
            (Change::Edit { .. }, None) => return Err(format!("{}: the kit has no such file", self.file)),
            (Change::Edit { before, edits }, Some(text)) => {
                self.expect("before its correction", before, text)?;
                edits.iter().try_fold(text.to_owned(), |text, edit| match text.matches(edit.find).count() {
                    1 => Ok(text.replace(edit.find, edit.replace)),
                    count => Err(format!("{}: {:?} occurs {count} times, not once", self.file, edit.find)),
                })?
            }
        };
        self.expect("after its correction", self.after, &corrected)?;
        Ok(corrected)
    }

    fn expect(&self, when: &str, expected: &str, text: &str) -> Result<(), String> {
        let found = sha256([text.as_bytes()]);
        if found == expected {
            return Ok(());
        }
        Err(format!("{}: its SHA-256 {when} is {found}, expected {expected}", self.file))
    }

    /// Why the file is corrected: one reason for each different one of its edits.
    pub(super) fn reasons(&self) -> Vec<&'static str> {
        let mut reasons = match &self.change {
            Change::Add { reason, .. } => vec![*reason],
            Change::Edit { edits, .. } => edits.iter().map(|edit| edit.reason).collect(),
        };
        reasons.dedup();
        reasons
    }
}

const ERROR_TABLE: &str = "the table of errors is that of 1.0.0; 1.0.1 has other HTTP statuses and gRPC codes (5.4)";
const MEDIA_TYPE: &str =
    "since 1.0.1 application/a2a+json SHOULD be used for HTTP+JSON (11.1); both types are accepted";
const UNSUPPORTED_PART: &str =
    "the requirement's text asks for ContentTypeNotSupportedError, its test for success (3.1.1, 3.3.2)";
const REAL_JSON: &str =
    "the body of the test of a wrong Content-Type was Python's spelling of a dict, which is not JSON";

/// For the kit of 1.0, which was written for specification 1.0.0: what 1.0.1 says, and faults of the tests.
pub(super) const OF_1_0: &[Correction] = &[
    Correction {
        file: "tck/requirements/base.py",
        change: Change::Edit {
            before: "f7af452fb0c044351f2880e3c1dc82a9b77a8e4d4e827223c64de93d743666a9",
            edits: &[
                Edit::new(
                    "jsonrpc_code=-32002,\n    http_status=409",
                    "jsonrpc_code=-32002,\n    http_status=400",
                    ERROR_TABLE,
                ),
                Edit::new(
                    "grpc_status=\"UNIMPLEMENTED\",\n    reason=\"PUSH_NOTIFICATION_NOT_SUPPORTED\"",
                    "grpc_status=\"FAILED_PRECONDITION\",\n    reason=\"PUSH_NOTIFICATION_NOT_SUPPORTED\"",
                    ERROR_TABLE,
                ),
                Edit::new(
                    "grpc_status=\"UNIMPLEMENTED\",\n    reason=\"UNSUPPORTED_OPERATION\"",
                    "grpc_status=\"FAILED_PRECONDITION\",\n    reason=\"UNSUPPORTED_OPERATION\"",
                    ERROR_TABLE,
                ),
                Edit::new("http_status=415", "http_status=400", ERROR_TABLE),
                Edit::new("http_status=502", "http_status=500", ERROR_TABLE),
                Edit::new(
                    "grpc_status=\"UNIMPLEMENTED\",\n    reason=\"VERSION_NOT_SUPPORTED\"",
                    "grpc_status=\"FAILED_PRECONDITION\",\n    reason=\"VERSION_NOT_SUPPORTED\"",
                    ERROR_TABLE,
                ),
            ],
        },
        after: "6d765d4dd08788558db1a300b127dc2bbc4d7ed111a2a128edcf223cf5501f36",
    },
    Correction {
        file: "tck/requirements/core_operations.py",
        change: Change::Edit {
            before: "c5790845f8ed32455add5b121ace24be76e95730ed659ba5e3f85fd90cefc457",
            edits: &[
                Edit::new(
                    "    CANCEL_TASK_BINDING,\n    GET_TASK_BINDING,",
                    "    CANCEL_TASK_BINDING,\n    CONTENT_TYPE_NOT_SUPPORTED_ERROR,\n    GET_TASK_BINDING,",
                    UNSUPPORTED_PART,
                ),
                Edit::new(
                    "        expected_behavior=\"ContentTypeNotSupportedError returned\",\n",
                    "        expected_behavior=\"ContentTypeNotSupportedError returned\",\n        \
                     expected_error=CONTENT_TYPE_NOT_SUPPORTED_ERROR,\n",
                    UNSUPPORTED_PART,
                ),
            ],
        },
        after: "cba40c26c329d7c1315d4961c900616b39602dc3c2d38923ad73c16239a16499",
    },
    Correction {
        file: "tck/transport/http_json_client.py",
        change: Change::Edit {
            before: "6fe3985dba571ca06b68be4704d2597dbf87165487d05c6d3d89e4fad03ed076",
            edits: &[Edit::new(
                "                response.close()\n",
                "                response.read()\n",
                "a refused stream was closed unread and read afterwards, which raises an error in the kit",
            )],
        },
        after: "c3f0cd81895a11e6d22d799a3bc7714866f8ba87f765d5bb2d5b15158ff68f4e",
    },
    Correction {
        file: "tests/compatibility/core_operations/test_error_handling.py",
        change: Change::Edit {
            before: "db0375c4fbeebc5e763b95b1c0361e482215a78568c7773270609785b6d7107e",
            edits: &[Edit::new(
                "if \"application/json\" not in ct:",
                "if \"application/json\" not in ct and \"application/a2a+json\" not in ct:",
                MEDIA_TYPE,
            )],
        },
        after: "34528abeb8d50b6e5f2064f84983f858dfe7e275e714d13e58de737cdc1ce3dd",
    },
    Correction {
        file: "tests/compatibility/core_operations/test_execution_and_auth.py",
        change: Change::Add {
            text: include_str!("test_execution_and_auth.py"),
            reason: "nine tests that the kit lacks: waiting, returnImmediately and auth-required, over each binding",
        },
        after: "9847532576fe97380a135517f05a8202062f7538b9514b6f1e867d54f4bd47ce",
    },
    Correction {
        file: "tests/compatibility/core_operations/test_transport_behavior.py",
        change: Change::Edit {
            before: "039076d83fc3d53c3aa97ba15f207304c29fc809b6c3f3f12f38571b3d695b7a",
            edits: &[Edit::new(
                "ct = rest_response.headers.get(\"content-type\", \"\")\n        errors = []\n        \
                 if \"application/json\" not in ct:",
                "ct = rest_response.headers.get(\"content-type\", \"\")\n        errors = []\n        \
                 if \"application/json\" not in ct and \"application/a2a+json\" not in ct:",
                MEDIA_TYPE,
            )],
        },
        after: "078c8690d7d27959b26ebb025e6eefd656675bb1fc7d7652fb06cc16ae215272",
    },
    Correction {
        file: "tests/compatibility/http_json/test_http_status.py",
        change: Change::Edit {
            before: "004897d0dccb9e0349301483b34c8114d2d294457dd859f8e48944925ae226c9",
            edits: &[Edit::new(
                "valid = status in (404, 409)",
                "valid = status in (404, 400)",
                "since 1.0.1 TaskNotCancelableError is 400 (5.4)",
            )],
        },
        after: "f63c3138d4041a27e3b5544f0fafa71d8b524da0b036ee2f2063759f19415462",
    },
    Correction {
        file: "tests/compatibility/http_json/test_problem_details.py",
        change: Change::Edit {
            before: "a1abb1bef47604693cdd0afa8b65c4f406b6423bb70a9d79426eff02726e9c4c",
            edits: &[Edit::new(
                "valid = \"application/json\" in ct.lower()",
                "valid = \"application/json\" in ct.lower() or \"application/a2a+json\" in ct.lower()",
                MEDIA_TYPE,
            )],
        },
        after: "b36810a9749120e8a24f4d3457e39669335c7208e32b028e99eb6f93747158de",
    },
    Correction {
        file: "tests/compatibility/jsonrpc/test_error_codes.py",
        change: Change::Edit {
            before: "51fb6d9c8057c15c999c72015bc7529736ddd91a4df2157707d7af93c5dc8349",
            edits: &[
                Edit::new(
                    "from typing import TYPE_CHECKING, Any\n",
                    "import json\n\nfrom typing import TYPE_CHECKING, Any\n",
                    REAL_JSON,
                ),
                Edit::new("content=str(payload).encode(),", "content=json.dumps(payload).encode(),", REAL_JSON),
            ],
        },
        after: "9ea59eb09d3b7d354a5297f4b7df54070bb790f58102fa8abc29c38b9a241e89",
    },
];

/// For the kit of 0.3.
pub(super) const OF_0_3: &[Correction] = &[Correction {
    file: "tck/transport/grpc_client.py",
    change: Change::Edit {
        before: "654cc66fa3cb88dac88f2b6334391051a07603542f78dc93be488febd2cd5d06",
        edits: &[Edit::new(
            "parsed = urlparse(base_url)\n",
            "parsed = urlparse(base_url if \"://\" in base_url else f\"http://{base_url}\")\n",
            "a gRPC address without a scheme, which is what gRPC libraries take, was read as one without a host",
        )],
    },
    after: "8f622785b1e9b4c205785b6ad717f81bce9040de1edb29fff28fad66826695ef",
}];

/// In hexadecimal, of all pieces one after the other.
pub(super) fn sha256<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update(piece);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::{Change, Correction, Edit, OF_0_3, OF_1_0, sha256};

    const EDITS: &[Edit] = &[Edit::new("two", "2", "a digit is shorter")];

    /// The corrections of a file that is known as "one two", without pinning what they make of it.
    fn correction(edits: &'static [Edit]) -> Correction {
        Correction { file: "a.py", change: Change::Edit { before: leak("one two"), edits }, after: leak("one 2") }
    }

    fn leak(text: &str) -> &'static str {
        Box::leak(sha256([text.as_bytes()]).into_boxed_str())
    }

    #[test]
    fn a_known_file_is_corrected() {
        assert_eq!(correction(EDITS).apply(Some("one two")).as_deref(), Ok("one 2"));
        assert_eq!(correction(EDITS).reasons(), ["a digit is shorter"]);
    }

    #[test]
    fn a_file_of_another_content_is_refused() {
        let refused = correction(EDITS).apply(Some("one two ")).expect_err("the file is not the one that was read");
        assert!(refused.starts_with("a.py: its SHA-256 before its correction is "), "{refused}");
        assert_eq!(correction(EDITS).apply(None), Err("a.py: the kit has no such file".to_owned()));
    }

    #[test]
    fn an_edit_that_does_not_say_where_is_refused() {
        const TWICE: &[Edit] = &[Edit::new("o", "0", "there are two")];
        assert_eq!(correction(TWICE).apply(Some("one two")), Err("a.py: \"o\" occurs 2 times, not once".to_owned()));
    }

    #[test]
    fn a_correction_that_makes_something_else_is_refused() {
        const OTHER: &[Edit] = &[Edit::new("two", "zwei", "another language")];
        let refused = correction(OTHER).apply(Some("one two")).expect_err("the result is not the one that was pinned");
        assert!(refused.starts_with("a.py: its SHA-256 after its correction is "), "{refused}");
    }

    #[test]
    fn a_file_of_ours_replaces_none_of_the_kit() {
        let ours = OF_1_0.iter().find(|correction| matches!(correction.change, Change::Add { .. }));
        let ours = ours.expect("one file is ours");
        assert!(ours.apply(None).is_ok(), "its content is the one that is pinned");
        assert_eq!(ours.apply(Some("")), Err(format!("{}: the kit has a file of this name", ours.file)));
    }

    #[test]
    fn every_file_is_corrected_in_one_place() {
        for corrections in [OF_1_0, OF_0_3] {
            let files: Vec<_> = corrections.iter().map(|correction| correction.file).collect();
            assert!(files.is_sorted() && files.windows(2).all(|pair| pair[0] != pair[1]), "{files:?}");
        }
    }
}

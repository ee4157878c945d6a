//! First the tree itself: it is tidy. Then the rules: each is handed a breach, and finds it.

use super::graph::{Graph, Package};
use super::rules::{self, Law, Wall};
use super::tree::Tree;
use super::workspace_root;
use super::{Breach, Findings, check_all, circles, crates, graph, imports, licence, links, named_files, source, text};

#[test]
fn the_tree_is_tidy() {
    let root = workspace_root();
    let tree = Tree::read(&root).expect("the tree can be read");
    let graph = Graph::read(&root).expect("cargo knows the workspace");
    let checks = check_all(&tree, &graph);
    let breaches: Vec<String> = checks.iter().flat_map(|(_, it)| &it.breaches).map(Breach::to_string).collect();
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

#[test]
fn the_reader_sees_the_real_tree() {
    let tree = Tree::read(&workspace_root()).expect("the tree can be read");
    assert!(tree.files.iter().any(|file| file.path == "xtask/src/tidy/tests.rs"));
    assert!(tree.paths.contains("crates/switchboard-core"));
    assert!(!tree.paths.iter().any(|path| path.starts_with("target") || path.starts_with(".git/")));
    assert!(!tree.paths.contains(".git"), "neither the folder nor, in a worktree, the file");
}

/// Where the breaches are, as `file:line what`.
fn seen(findings: &Findings) -> Vec<String> {
    let line = |it: &Breach| it.line.map(|line| format!(":{line}")).unwrap_or_default();
    findings.breaches.iter().map(|it| format!("{}{} {}", it.file, line(it), it.what)).collect()
}

mod imports_in_circles {
    use super::{Tree, circles, seen};

    fn breaches(files: &[(&str, &str)]) -> Vec<String> {
        seen(&circles::check(&Tree::of(files)))
    }

    const CIRCLE: &[(&str, &str)] = &[
        ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;"),
        ("crates/x/src/a.rs", "use crate::b::B;"),
        ("crates/x/src/b.rs", "use super::c::C;"),
        ("crates/x/src/c.rs", "fn c() -> crate::a::A {}"),
        ("crates/x/src/d.rs", "use crate::a::A;"),
    ];

    #[test]
    fn files_that_import_each_other_are_named_with_what_ties_them() {
        let ties = "crates/x/src/a.rs -> crates/x/src/b.rs: B; crates/x/src/b.rs -> crates/x/src/c.rs: C; \
                    crates/x/src/c.rs -> crates/x/src/a.rs: A";
        assert_eq!(breaches(CIRCLE), [format!("crates/x/src/a.rs files import each other: {ties}")]);
    }

    #[test]
    fn a_name_that_a_module_hands_on_is_that_of_the_file_that_has_it() {
        let state = ("crates/x/src/state.rs", "use crate::push::Queue;");
        let push =
            ("crates/x/src/push/mod.rs", "mod queue;\nmod deliver;\npub use queue::Queue;\npub use deliver::go;");
        let deliver = ("crates/x/src/push/deliver.rs", "use super::queue::Queue;");
        let queue = ("crates/x/src/push/queue.rs", "");
        assert!(breaches(&[state, push, deliver, queue]).is_empty());
        let queue = ("crates/x/src/push/queue.rs", "use crate::state::State;");
        let ties = "crates/x/src/state.rs -> crates/x/src/push/queue.rs: Queue; \
                    crates/x/src/push/queue.rs -> crates/x/src/state.rs: State";
        let found = breaches(&[state, push, deliver, queue]);
        assert_eq!(found[0], format!("crates/x/src/state.rs files import each other: {ties}"));
    }

    #[test]
    fn a_folder_imports_what_any_of_its_files_imports() {
        let state = ("crates/x/src/state.rs", "use crate::push::queue::Queue;");
        let queue = ("crates/x/src/push/queue.rs", "");
        let deliver = ("crates/x/src/push/deliver.rs", "use super::queue::Queue;\nuse crate::state::State;");
        let ties = "crates/x/src/state.rs -> crates/x/src/push/queue.rs: Queue; \
                    crates/x/src/push/deliver.rs -> crates/x/src/state.rs: State";
        let circle = format!("crates/x/src/state.rs folders import each other: {ties}");
        assert_eq!(breaches(&[state, queue, deliver]), [circle]);
        let deliver = ("crates/x/src/push/deliver.rs", "use super::queue::Queue;");
        assert!(breaches(&[state, queue, deliver]).is_empty());
        let deliver = ("crates/x/src/deliver.rs", "use crate::push::queue::Queue;\nuse crate::state::State;");
        assert!(breaches(&[state, queue, deliver]).is_empty());
    }
}

mod names_handed_on {
    use super::{Tree, circles, seen};

    #[test]
    fn a_file_names_the_file_beside_it_and_not_their_folder() {
        let folder = ("crates/x/src/push/mod.rs", "mod queue;\npub use queue::Queue;\npub struct Own;");
        let queue = ("crates/x/src/push/queue.rs", "");
        let other = ("crates/x/src/other.rs", "use crate::push::Queue;");
        let breaches = |deliver: &str, included: &[&str]| {
            let deliver = ("crates/x/src/push/deliver.rs", deliver);
            seen(&circles::check_handed_on(included, &Tree::of(&[folder, queue, other, deliver])))
        };
        assert!(breaches("use super::queue::Queue;\nuse super::Own;", &[]).is_empty());
        let found = "crates/x/src/push/deliver.rs:1 crate::push::Queue is in crates/x/src/push/queue.rs";
        assert_eq!(breaches("use super::{Own, Queue};", &[]), [found]);
        assert!(breaches("use super::Queue;", &["crates/x/src/push/deliver.rs"]).is_empty());
    }
}

mod walls {
    use super::{Law, Tree, Wall, imports, rules, seen};

    /// What the walls of this repository say about a few files.
    fn breaches_of_walls(files: &[(&str, &str)]) -> Vec<String> {
        seen(&imports::check(rules::WALLS, &Tree::of(files)))
    }

    /// For each wall of this repository, something that it must refuse.
    #[test]
    fn every_wall_stops_somebody() {
        let plants: &[(&str, &[(&str, &str)])] = &[
            ("the model is the ground", &[("crates/switchboard-core/src/model/task.rs", "use crate::call::Request;")]),
            ("the lifecycle is pure", &[("crates/switchboard-core/src/lifecycle/fold.rs", "use crate::dialect::V1;")]),
            ("dialects only translate", &[("crates/switchboard-core/src/dialect/v1_0/a.rs", "use crate::lifecycle;")]),
            (
                "dialects do not know each other",
                &[
                    ("crates/switchboard-core/src/dialect/v0_3/mod.rs", "use crate::dialect::v1_0::wire;"),
                    ("crates/switchboard-core/src/dialect/v1_0/mod.rs", ""),
                ],
            ),
            (
                "compat dialects do not know each other",
                &[
                    ("crates/switchboard-core/src/dialect/compat/nexus/mod.rs", "use super::corvid::encode_card;"),
                    ("crates/switchboard-core/src/dialect/compat/corvid/mod.rs", ""),
                ],
            ),
            (
                "the engine knows no dialect",
                &[("crates/switchboard-engine/src/push/a.rs", "use switchboard_core::dialect::v1_0;")],
            ),
            ("ports name only core", &[("crates/switchboard-engine/src/ports/store.rs", "use crate::commit::Commit;")]),
            (
                "operations stand side by side",
                &[
                    ("crates/switchboard-engine/src/operations/send.rs", "use super::get::get;"),
                    ("crates/switchboard-engine/src/operations/get.rs", ""),
                ],
            ),
            ("operations know no adapter", &[("crates/switchboard-engine/src/operations/a.rs", "use crate::memory;")]),
            ("the one writer looks down only", &[("crates/switchboard-engine/src/commit.rs", "use crate::runs::Run;")]),
            (
                "stores do not know each other",
                &[("crates/switchboard-stores/src/nats/hints.rs", "use crate::sqlite::open;")],
            ),
            (
                "the client stands on core alone",
                &[("crates/switchboard/src/client/a.rs", "use switchboard_engine::E;")],
            ),
            (
                "bindings of the client do not know each other",
                &[("crates/switchboard/src/client/bindings/grpc.rs", "use super::jsonrpc::open;")],
            ),
            (
                "the outbound client stands on core alone",
                &[("crates/switchboard/src/outbound/a.rs", "use crate::webhooks::W;")],
            ),
            (
                "bindings do not know each other",
                &[("crates/switchboard/src/server/bindings/grpc.rs", "use super::jsonrpc::Envelope;")],
            ),
            (
                "the edge knows no engine",
                &[("crates/switchboard/src/server/edge/service.rs", "use switchboard_engine::{Engine, Readiness};")],
            ),
            (
                "authentication stands below the edge",
                &[("crates/switchboard/src/server/authentication/a.rs", "use crate::server::edge::paths::check_name;")],
            ),
            ("stores are chosen at the edge", &[("crates/switchboard-engine/src/a.rs", "use switchboard_stores::S;")]),
            ("the binary is the end of the line", &[("bench/src/main.rs", "use switchboard_cli::serve;")]),
        ];
        for wall in rules::WALLS {
            let plant = plants.iter().find(|(name, _)| *name == wall.name);
            let (_, files) = plant.unwrap_or_else(|| panic!("no breach planted for: {}", wall.name));
            let found = imports::check(rules::WALLS, &Tree::of(files));
            let stopped = found.breaches.iter().any(|it| it.rule == wall.name && it.line == Some(1));
            assert!(stopped, "{} let through {files:?}", wall.name);
        }
    }

    #[test]
    fn neighbours_may_share_what_is_shared_and_know_themselves() {
        let v1 = "use crate::dialect::codes::CODES;\nuse crate::dialect::Dialect;\nuse super::wire::Task;\nuse crate::dialect::v1_0::card;";
        let files = [
            ("crates/switchboard-core/src/dialect/mod.rs", "use v1_0::decode; pub use self::v0_3::encode;"),
            ("crates/switchboard-core/src/dialect/codes.rs", ""),
            ("crates/switchboard-core/src/dialect/v1_0/decode.rs", v1),
            ("crates/switchboard-core/src/dialect/v0_3/decode.rs", ""),
        ];
        assert_eq!(breaches_of_walls(&files), [""; 0]);
    }

    #[test]
    fn an_import_is_found_however_it_is_written() {
        let wall =
            [Wall { name: "w", modules: &["crates/x/src/a"], law: Law::Never(&["crate::b", "tokio"]), because: "" }];
        for code in [
            "use crate::b;",
            "use crate::b::C;",
            "pub(crate) use crate::b::C as D;",
            "use crate::{a::z, b::{C, D}};",
            "use {crate::a::z, crate::b};",
            "use super::super::b::C;",
            "use super::super::{a, b};",
            "use crate::b::*;",
            "use ::tokio::spawn;",
            "fn f() { crate::b::g(); }",
            "fn f(x: &crate::b::T<u8>) {}",
            "fn f() -> Vec<crate::b::T> { vec![] }",
            "mod inner { use super::super::super::b::C; }",
            "#[cfg(test)] mod tests; use crate::b::C;",
            "#[cfg(test)] fn t() { {} } use crate::b::C;",
            "const Q: char = '\"'; use crate::b::C;",
            "fn f<'a>(x: &'a str) {} use crate::b::C;",
            "use r#type::x; use crate::b::C;",
        ] {
            let found = imports::check(&wall, &Tree::of(&[("crates/x/src/a/y.rs", code)]));
            assert!(!found.breaches.is_empty(), "{code}");
        }
    }

    #[test]
    fn what_is_not_an_import_is_let_through() {
        let wall = [Wall { name: "w", modules: &["crates/x/src/a"], law: Law::Never(&["crate::b"]), because: "" }];
        for code in [
            "// use crate::b::C;",
            "//! [`crate::b::C`]",
            "/* /* */ use crate::b::C; */",
            "const S: &str = \"use crate::b::C;\";",
            "const S: &str = r#\"\" use crate::b::C;\"#;",
            "const S: &[u8] = b\"\\\" crate::b::C\";",
            "use crate::bb::C;",
            "use crate::a::b::C;",
            "use super::b::C;",
            "use other::b::C;",
            "use std::{b::C, fmt};",
            "#[cfg(test)]\nmod tests { use crate::b::C; fn f() { crate::b::g() } }",
            "#[cfg(test)]\nuse crate::b::{C, D};",
            "#![cfg(test)] use crate::b::C;",
            "fn f() -> impl Sized + use<'_> { crate::a::b() }",
        ] {
            let found = imports::check(&wall, &Tree::of(&[("crates/x/src/a/y.rs", code)]));
            assert_eq!(seen(&found), [""; 0], "{code}");
        }
        let tests = [("crates/x/src/a/tests.rs", "use crate::b::C;"), ("crates/x/src/a/y_tests.rs", "use crate::b;")];
        assert_eq!(seen(&imports::check(&wall, &Tree::of(&tests))), [""; 0]);
    }

    #[test]
    fn a_breach_names_file_line_rule_and_reason() {
        let file =
            ("crates/switchboard-core/src/model/task.rs", "//! Tasks.\n\nuse crate::{\n    dialect::codes,\n};\n");
        let found = imports::check(rules::WALLS, &Tree::of(&[file]));
        let text = "crates/switchboard-core/src/model/task.rs:4: the model is the ground: imports crate::dialect::codes\n    \
                    because everything is built from these types, so they can lean on nothing that is built from them";
        assert_eq!(found.breaches.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
    }

    #[test]
    fn a_wall_around_an_empty_room_or_against_nobody_is_shown() {
        let wall = |modules| [Wall { name: "w", modules, law: Law::Never(&["crate::b"]), because: "" }];
        let tree = Tree::of(&[("crates/x/src/a.rs", "")]);
        let not_yet = |walls: &[Wall], tree: &Tree| imports::check(walls, tree).not_yet;
        assert_eq!(not_yet(&wall(&["crates/x/src/z"]), &tree), ["w: no file in crates/x/src/z"]);
        assert_eq!(not_yet(&wall(&["crates/x/src/a"]), &tree), ["w: no module crate::b"]);
        let both = Tree::of(&[("crates/x/src/a.rs", ""), ("crates/x/src/b/mod.rs", "")]);
        assert_eq!(not_yet(&wall(&["crates/x/src/a"]), &both), [""; 0]);
    }
}

mod texts {
    use super::{Tree, rules, seen, source, text, workspace_root};

    fn check(path: &str, content: &str) -> Vec<String> {
        seen(&text::check(&Tree::of(&[(path, content)])))
    }

    #[test]
    fn code_and_comments_are_told_apart() {
        let whole = "let a = \"x // y\"; // b \"c\"\nlet d = 'e'; /* f\n*/ g::<'h>()\n";
        let source::Source { code, comments } = source::split(whole);
        assert_eq!(code, "let a =         ;         \nlet d =    ;     \n   g::<'h>()\n");
        assert_eq!(comments, "                  // b \"c\"\n             /* f\n*/          \n");
    }

    #[test]
    fn broken_rust_is_read_to_its_end() {
        for broken in
            ["\"", "r##\"a\"#", "/* /*", "'", "'\\", "b'", "use", "use a::{b", "mod x {", "#[cfg(test)] {", "}}", "ä'ä"]
        {
            let halves = source::split(broken);
            assert_eq!((halves.code.len(), halves.comments.len()), (broken.len(), broken.len()), "{broken}");
            check("crates/x/src/a.rs", broken);
            super::imports::check(rules::WALLS, &Tree::of(&[("crates/switchboard-core/src/model/a.rs", broken)]));
        }
    }

    #[test]
    fn long_files_are_found() {
        let lines = |n: usize| format!("//! Head.\n{}", "\n".repeat(n - 1));
        assert_eq!(check("tests/src/a.rs", &lines(900)), [""; 0]);
        assert_eq!(check("tests/src/a.rs", &lines(901)), ["tests/src/a.rs:901 901 lines, 900 at most"]);
        assert_eq!(check("ARCHITECTURE.md", &lines(250)), [""; 0]);
        assert_eq!(check("ARCHITECTURE.md", &lines(251)), ["ARCHITECTURE.md:251 251 lines, 250 at most"]);
    }

    #[test]
    fn a_file_without_a_head_is_found() {
        for text in ["", "use std::fmt;\n", "// Not the head.\n", "\n//! Too late.\n"] {
            assert_eq!(check("crates/x/src/a/b.rs", text), ["crates/x/src/a/b.rs:1 does not begin with //!"]);
            assert_eq!(check("tests/src/b.rs", text), [""; 0]);
        }
    }

    #[test]
    fn words_left_behind_are_found() {
        let has = |line: &str| check("crates/x/src/a.rs", &format!("//! Head.\n{line}\n"));
        assert_eq!(has("fn f() { todo!() }"), ["crates/x/src/a.rs:2 has todo!("]);
        assert_eq!(has("fn f() { unimplemented!(\"x\") }"), ["crates/x/src/a.rs:2 has unimplemented!("]);
        assert_eq!(has("let x = dbg!(y);"), ["crates/x/src/a.rs:2 has dbg!("]);
        assert_eq!(has("let x = y; // FIXME: z"), ["crates/x/src/a.rs:2 has FIXME"]);
        assert_eq!(has("// never write todo!() here"), [""; 0]);
        assert_eq!(has("let x = \"todo!() FIXME\"; my_todo!();"), [""; 0]);
    }

    #[test]
    fn code_outside_of_the_files_it_belongs_to_is_found() {
        for (folder, code, only, _) in rules::ONLY_HERE {
            let text = format!("//! Head.\nfn f() {{ self.{code}); }}\n");
            let other = format!("{folder}/other/a.rs");
            assert_eq!(check(&other, &text), [format!("{other}:2 has {code}")]);
            assert!(only.iter().all(|only| check(only, &text).is_empty()));
            assert_eq!(check("crates/x/src/a.rs", &text), [""; 0]);
        }
        let real = Tree::read(&workspace_root()).expect("the tree can be read");
        for (_, code, only, _) in rules::ONLY_HERE {
            for only in *only {
                let file = real.files.iter().find(|file| file.path == *only).expect("the file is there");
                assert!(file.text.contains(code), "{only} has {code}, or the rule is about nothing");
            }
        }
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for line in ["see /home/me/x", "cd '/work/x'", "DIR=/root/.cargo", "C:\\Users\\me", "(/Users/me)"] {
            assert_eq!(check("docs/a.md", line).len(), 1, "{line}");
            assert_eq!(check("tests/golden/v1_0/a.json", line), [""; 0]);
        }
        for line in ["docs/home/x", "https://host/work/x", "${root}/work/x", "/homes", "./work/x", "~/work/x"] {
            assert_eq!(check("docs/a.md", line), [""; 0], "{line}");
        }
    }

    #[test]
    fn a_ban_lifted_in_another_file_is_found() {
        let lifts = "#![expect(clippy::disallowed_methods, reason = \"the clock\")]";
        let files = [
            ("crates/x/src/clock.rs", lifts),
            ("crates/x/src/other.rs", lifts),
            ("crates/x/src/other/tests.rs", lifts),
            ("tests/src/lib.rs", lifts),
        ];
        let found =
            text::check_exceptions(&[("crates/x/src/clock.rs", "time"), ("gone.rs", "dice")], &Tree::of(&files));
        let places: Vec<_> = found.breaches.iter().map(|it| (it.file.as_str(), it.line)).collect();
        assert_eq!(places, [("crates/x/src/other.rs", Some(1))]);
        assert_eq!(found.not_yet, ["gone.rs: dice"]);
    }
}

mod pages {
    use super::{Tree, links, named_files, seen};

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let readme = "\
[a](docs/a.md) [folder](docs) [up](./docs/../Cargo.toml) [web](https://host/x) [mail](mailto:x@y)
[item](crate::Agent) `[code](gone.md)` [heading](docs/a.md#two-words--one) [title](docs/a.md \"A\") [here](#top)
```
[fenced](gone.md)
```
[gone](gone.md) and ![picture](docs/gone.png)
[out](../x) [no heading](docs/a.md#three) [angle](<docs/gone two.md>)

[ref]: docs/gone-too.md
";
        let a = "# A\n\n## Two words & one\n\n[back](../README.md#top) [beside](b.md)\n";
        let tree = Tree::of(&[("README.md", &format!("# Top\n{readme}")), ("docs/a.md", a), ("Cargo.toml", "")]);
        assert_eq!(
            seen(&links::check(&tree)),
            [
                "README.md:7 gone.md does not exist",
                "README.md:7 docs/gone.png does not exist",
                "README.md:8 ../x leaves the tree",
                "README.md:8 docs/a.md#three: no such heading",
                "README.md:8 docs/gone two.md does not exist",
                "README.md:10 docs/gone-too.md does not exist",
                "docs/a.md:5 b.md does not exist",
            ]
        );
    }

    #[test]
    fn named_files_that_do_not_exist_are_found() {
        let page = "\
`docs/a.md`, `crates/x/src/`, `x/src/lib.rs` and `see docs/a.md.` are there; `tasks/get` and `text/plain` are no files
docs/gone.md in plain words, `docs/*.md` and `docs/{page}.md` name none; `docs/gone.md` and `src/gone.rs` do
```sh
cat docs/a.md docs/gone-too.md
```
`x/lib.rs` leaves out a folder
";
        let code = "//! As `docs/a.md` says, and docs/gone.md.\nconst HELP: &str = \"see docs/gone-too.md\";\n";
        let tree = Tree::of(&[("docs/a.md", page), ("crates/x/src/lib.rs", code)]);
        assert_eq!(
            seen(&named_files::check(&tree)),
            [
                "docs/a.md:2 there is no docs/gone.md",
                "docs/a.md:2 there is no src/gone.rs",
                "docs/a.md:4 there is no docs/gone-too.md",
                "docs/a.md:6 there is no x/lib.rs",
                "crates/x/src/lib.rs:1 there is no docs/gone.md",
                "crates/x/src/lib.rs:2 there is no docs/gone-too.md",
            ]
        );
    }

    #[test]
    fn a_decision_missing_from_the_index_is_found() {
        let tree = Tree::of(&[
            ("docs/decisions/README.md", "[one](0001-one.md)"),
            ("docs/decisions/0001-one.md", ""),
            ("docs/decisions/0002-two.md", "[one](0001-one.md)"),
        ]);
        let found = seen(&links::check(&tree));
        assert_eq!(found, ["docs/decisions/0002-two.md is not linked from docs/decisions/README.md"]);
    }
}

mod dependencies {
    use super::{Graph, Package, crates, graph as reader, licence, rules, seen};

    /// One line per crate: name, version, and what it needs, by line. Ours are those named switchboard.
    fn graph(lines: &[(&str, &str, &[usize])]) -> Graph {
        let package = |(name, version, needs): &(&str, &str, &[usize])| Package {
            name: (*name).to_owned(),
            version: (*version).to_owned(),
            licence: Some("MIT".to_owned()),
            source: (!name.starts_with("switchboard")).then(|| "registry+https://registry.example/index".to_owned()),
            needs: needs.to_vec(),
            needs_in_tests: Vec::new(),
        };
        Graph { packages: lines.iter().map(package).collect(), ..Graph::default() }
    }

    #[test]
    fn an_optional_crate_counts_when_a_feature_that_is_on_asks_for_it() {
        let features = [("std", vec!["ring?/std", "alloc"]), ("tls", vec!["dep:ring"]), ("dice", vec!["ring/dice"])];
        let features =
            features.map(|(name, wishes)| (name.to_owned(), wishes.into_iter().map(str::to_owned).collect()));
        let features = features.into_iter().collect();
        for (on, counts) in [("std", false), ("alloc", false), ("tls", true), ("dice", true), ("ring", true)] {
            assert_eq!(reader::is_asked_for("ring", &[on], &features), counts, "{on}");
        }
        assert!(!reader::is_asked_for("ring", &[], &features));
    }

    #[test]
    fn the_tree_of_core_equals_the_list() {
        let mut graph = graph(&[
            ("switchboard-core", "0.1.0", &[1]),
            ("a", "1.0.0", &[2]),
            ("b", "1.0.0", &[]),
            ("t", "1.0.0", &[]),
        ]);
        graph.packages[0].needs_in_tests = vec![3];
        let check = |list: &[(&str, &str)]| seen(&crates::core_tree(list, &graph));
        assert_eq!(check(&[("a", ""), ("b", "")]), [""; 0]);
        assert_eq!(
            check(&[("a", "")]),
            ["crates/switchboard-core/Cargo.toml b is in the tree of switchboard-core and not on the list"]
        );
        assert_eq!(
            check(&[("a", ""), ("b", ""), ("c", "")]),
            [
                "xtask/src/tidy/rules.rs c is on the list and no longer in the tree of switchboard-core: take the row out"
            ]
        );
    }

    #[test]
    fn a_client_that_brings_an_engine_along_is_found() {
        let mut graph = graph(&[("switchboard", "0.1.0", &[])]);
        let check = |graph: &_| seen(&crates::client_tree(rules::CLIENT_WITHOUT, graph));
        graph.client_tree = ["switchboard", "hyper"].map(str::to_owned).into();
        assert_eq!(check(&graph), [""; 0]);
        graph.client_tree.insert("prost".to_owned());
        let expected = "prost is in the tree of switchboard with the feature client alone";
        assert_eq!(check(&graph), [format!("crates/switchboard/Cargo.toml {expected}")]);
    }

    #[test]
    fn banned_crates_are_found_however_they_come_in() {
        let graph = graph(&[
            ("switchboard", "0.1.0", &[1, 3]),
            ("a", "1.0.0", &[2, 3]),
            ("ring", "0.17.0", &[]),
            ("lazy_static", "1.0.0", &[]),
        ]);
        assert_eq!(
            seen(&crates::banned(rules::BANNED, rules::NOT_BY_US, &graph)),
            ["Cargo.lock ring 0.17.0 comes in with a 1.0.0", "Cargo.toml switchboard asks for lazy_static"]
        );
    }

    #[test]
    fn a_second_version_needs_a_reason_and_a_reason_needs_a_second_version() {
        let graph =
            graph(&[("switchboard", "0.1.0", &[1, 2]), ("a", "1.0.0", &[]), ("b", "1.0.0", &[3]), ("a", "2.0.0", &[])]);
        let check = |list: &[(&str, &str)]| seen(&crates::duplicates(list, &graph));
        assert_eq!(check(&[("a", "")]), [""; 0]);
        assert_eq!(check(&[]), ["Cargo.lock a is built as 1.0.0 (of switchboard 0.1.0) and as 2.0.0 (of b 1.0.0)"]);
        let stale = "xtask/src/tidy/rules.rs b is no longer built twice: take the row out";
        assert_eq!(check(&[("a", ""), ("b", "")]), [stale]);
    }

    #[test]
    fn crates_from_elsewhere_are_found() {
        let mut graph = graph(&[("switchboard", "0.1.0", &[1]), ("a", "1.0.0", &[])]);
        assert_eq!(seen(&crates::origins(&graph)), [""; 0]);
        graph.packages[1].source = Some("git+https://host/a".to_owned());
        assert_eq!(seen(&crates::origins(&graph)), ["Cargo.lock a 1.0.0 comes from git+https://host/a"]);
    }

    #[test]
    fn licences_outside_the_list_are_found() {
        let under = |name: &str, licence: Option<&str>| {
            let mut graph = graph(&[(name, "1.0.0", &[])]);
            graph.packages[0].licence = licence.map(str::to_owned);
            seen(&licence::check(rules::LICENCES, &graph))
        };
        assert_eq!(under("a", Some("MIT OR GPL-3.0-only")), [""; 0]);
        assert_eq!(under("webpki-roots", Some("CDLA-Permissive-2.0")), [""; 0]);
        assert_eq!(under("a", Some("CDLA-Permissive-2.0")), ["Cargo.lock a 1.0.0 is under CDLA-Permissive-2.0"]);
        assert_eq!(under("a", Some("AGPL-3.0-only")), ["Cargo.lock a 1.0.0 is under AGPL-3.0-only"]);
        assert_eq!(under("a", Some("MIT OR")), ["Cargo.lock a 1.0.0 has a licence we cannot read: \"MIT OR\""]);
        assert_eq!(under("a", None), ["Cargo.lock a 1.0.0 names no licence"]);
    }

    #[test]
    fn licence_expressions_are_read_as_spdx_means_them() {
        let accepts = |id: &str| matches!(id, "MIT" | "ISC" | "Apache-2.0 WITH LLVM-exception");
        for (expression, met) in [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("GPL-3.0 AND MIT", Some(false)),
            ("MIT/GPL-3.0", Some(true)),
            ("GPL-3.0 OR MIT AND ISC", Some(true)),
            ("MIT OR ISC AND GPL-3.0", Some(true)),
            ("(MIT OR GPL-3.0) AND GPL-3.0", Some(false)),
            ("ISC AND (GPL-3.0 OR MIT)", Some(true)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("Apache-2.0", Some(false)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("MIT ISC", None),
            ("(MIT", None),
            ("MIT OR", None),
            ("MIT WITH", None),
        ] {
            assert_eq!(licence::is_met(expression, &accepts), met, "{expression}");
        }
    }
}

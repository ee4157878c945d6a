//! Reads the report pytest writes: one verdict per test. Knows as much XML as that report uses.

#[derive(Debug, PartialEq)]
pub(super) struct Case {
    /// As pytest names it, relative to where the kit's tests are.
    pub(super) id: String,
    pub(super) verdict: TestOutcome,
}

/// The text is what the kit says, all lines of it for a failure and the first line otherwise.
#[derive(Debug, PartialEq)]
pub(super) enum TestOutcome {
    Passed,
    Failed(String),
    Skipped(String),
    ExpectedFailure(String),
}

pub(super) fn cases(report: &str, tests: &str) -> impl Iterator<Item = Case> {
    report.split("<testcase ").skip(1).map(move |rest| {
        let tag = Tag::read(rest);
        let inside = if tag.is_empty { "" } else { tag.rest.split("</testcase>").next().unwrap_or_default() };
        Case { id: node_id(&tag, tests), verdict: verdict(inside) }
    })
}

/// `file.py::Class::test[parameter]`, put together again from the parts that the report keeps apart.
fn node_id(tag: &Tag<'_>, tests: &str) -> String {
    let (file, class_path, name) = (tag.get("file"), tag.get("classname"), tag.get("name"));
    let module = file.trim_end_matches(".py").replace('/', ".");
    let class = class_path.strip_prefix(&module).unwrap_or_default().trim_start_matches('.');
    let file = file.trim_start_matches(tests);
    if class.is_empty() { format!("{file}::{name}") } else { format!("{file}::{}::{name}", class.replace('.', "::")) }
}

fn verdict(inside: &str) -> TestOutcome {
    let first = |element: &str| inside.find(element).map(|at| Tag::read(&inside[at + element.len()..]));
    let said = |tag: &Tag<'_>| tag.get("message").lines().next().unwrap_or_default().to_owned();
    if let Some(tag) = first("<failure ").or_else(|| first("<error ")) {
        return TestOutcome::Failed(tag.get("message"));
    }
    match first("<skipped ") {
        Some(tag) if tag.get("type") == "pytest.xfail" => TestOutcome::ExpectedFailure(said(&tag)),
        Some(tag) => TestOutcome::Skipped(said(&tag)),
        None => TestOutcome::Passed,
    }
}

/// An opening tag, from after its name.
struct Tag<'a> {
    attributes: Vec<(&'a str, String)>,
    is_empty: bool,
    rest: &'a str,
}

impl<'a> Tag<'a> {
    fn read(mut text: &'a str) -> Tag<'a> {
        let mut attributes = Vec::new();
        loop {
            text = text.trim_start();
            let parsed = text.split_once("=\"").filter(|(name, _)| !name.contains(['>', '/']));
            let Some((name, (value, rest))) = parsed.and_then(|(name, rest)| Some((name, rest.split_once('"')?)))
            else {
                let is_empty = text.starts_with("/>");
                return Tag { attributes, is_empty, rest: text };
            };
            attributes.push((name, unescape(value)));
            text = rest;
        }
    }

    fn get(&self, name: &str) -> String {
        self.attributes.iter().find(|(known, _)| *known == name).map_or_else(String::new, |(_, value)| value.clone())
    }
}

fn unescape(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#10;", "\n"), ("&#9;", "\t")];
    let text = named.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain));
    // Last, or `&amp;lt;` would become `<`.
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::{Case, TestOutcome, cases};

    #[test]
    fn every_kind_of_verdict_is_read() {
        let report = r#"<testsuite tests="4"><testcase classname="tests.compatibility.a.test_x.TestY" name="t[j]" file="tests/compatibility/a/test_x.py" line="1" time="0.1" /><testcase classname="tests.compatibility.a.test_x" name="m[&quot;k&quot;]" file="tests/compatibility/a/test_x.py"><failure message="want 1 &lt; 2&#10;more">trace</failure></testcase><testcase classname="tests.compatibility.a.test_x" name="s" file="tests/compatibility/a/test_x.py"><skipped type="pytest.skip" message="no grpc">x</skipped></testcase><testcase classname="tests.compatibility.a.test_x" name="f" file="tests/compatibility/a/test_x.py"><skipped type="pytest.xfail" message="should" /></testcase></testsuite>"#;
        let case = |id: &str, verdict| Case { id: id.to_owned(), verdict };
        assert_eq!(
            cases(report, "tests/compatibility/").collect::<Vec<_>>(),
            [
                case("a/test_x.py::TestY::t[j]", TestOutcome::Passed),
                case("a/test_x.py::m[\"k\"]", TestOutcome::Failed("want 1 < 2\nmore".to_owned())),
                case("a/test_x.py::s", TestOutcome::Skipped("no grpc".to_owned())),
                case("a/test_x.py::f", TestOutcome::ExpectedFailure("should".to_owned())),
            ]
        );
    }
}

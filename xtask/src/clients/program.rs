//! Runs one client and checks that it took every step it must take.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::packages::Packages;
use super::{Client, GRPC, within};

/// A client has a shorter limit for each of its steps; this one is for what hangs outside of them.
const RUN: Duration = Duration::from_secs(180);

/// Runs the client and tells of each step. A server is given by its URL and whether it is the one for gRPC. Fails only on
/// what is no fault of the client's.
#[expect(clippy::disallowed_methods, reason = "how long a client took is for people to read")]
pub(super) fn run(client: &Client, packages: &Packages, servers: &[(&str, bool)]) -> Result<bool, String> {
    println!("     Client {}", client.name);
    let begun = Instant::now();
    let (mut trouble, mut said) = (None, String::new());
    for (url, is_for_grpc) in servers {
        let transports = client.transports.iter().filter(|transport| (**transport == GRPC) == *is_for_grpc);
        let transports: Vec<_> = transports.collect();
        if transports.is_empty() || trouble.is_some() {
            continue;
        }
        let mut command = packages.program(client)?;
        command.arg(url).args(transports);
        match within::run(command, &packages.log(client), RUN) {
            Ok(ended) => {
                trouble = (!ended.is_success).then(|| "it failed".to_owned());
                said.push_str(&ended.said);
            }
            Err(message) => trouble = Some(message),
        }
    }
    let verdict = judge(client, &said, trouble);
    for step in &verdict.passed {
        println!("test {} {step} ... ok", client.name);
    }
    if let Some(trouble) = &verdict.trouble {
        println!("test {} ... FAILED: {trouble}\n{}", client.name, said.trim_end());
    }
    let word = if verdict.trouble.is_none() { "ok" } else { "FAILED" };
    let failed = u32::from(verdict.trouble.is_some());
    let seconds = begun.elapsed().as_secs_f64();
    println!("test result: {word}. {} passed; {failed} failed; finished in {seconds:.2}s\n", verdict.passed.len());
    Ok(verdict.trouble.is_none())
}

#[derive(Debug, PartialEq, Eq)]
struct StepResults {
    passed: Vec<String>,
    trouble: Option<String>,
}

/// Compares the lines `ok TRANSPORT STEP` with what the client must have done. A client that ends well but left out a
/// step has failed: it would otherwise pass by doing nothing.
fn judge(client: &Client, said: &str, trouble: Option<String>) -> StepResults {
    let expected: BTreeSet<String> = client
        .transports
        .iter()
        .flat_map(|transport| client.steps.iter().map(move |step| format!("{transport} {step}")))
        .collect();
    let passed: Vec<String> = said.lines().filter_map(|line| line.strip_prefix("ok ")).map(str::to_owned).collect();
    let done: BTreeSet<String> = passed.iter().cloned().collect();
    let list = |steps: &mut dyn Iterator<Item = &String>| steps.cloned().collect::<Vec<_>>().join(", ");
    let trouble = trouble.or_else(|| {
        let missing = list(&mut expected.difference(&done));
        (!missing.is_empty()).then(|| format!("it left out {missing}"))
    });
    let trouble = trouble.or_else(|| {
        let unknown = list(&mut done.difference(&expected));
        (!unknown.is_empty()).then(|| format!("nobody expected {unknown}; add it to the list of clients"))
    });
    StepResults { passed, trouble }
}

#[cfg(test)]
mod tests {
    use super::{StepResults, judge};
    use crate::clients::Client;
    use crate::clients::packages::Language;

    const CLIENT: Client =
        Client { name: "it", language: Language::Python, transports: &["a", "b"], steps: &["send", "get"] };

    fn trouble(said: &str, trouble: Option<&str>) -> Option<String> {
        judge(&CLIENT, said, trouble.map(str::to_owned)).trouble
    }

    #[test]
    fn every_step_over_every_transport_is_all_it_takes() {
        let passed = ["a send", "a get", "b send", "b get"].map(str::to_owned).to_vec();
        let said = "a line of the SDK's\nok a send\nok a get\nok b send\nok b get\n";
        assert_eq!(judge(&CLIENT, said, None), StepResults { passed, trouble: None });
    }

    #[test]
    fn a_client_that_leaves_out_a_step_has_failed() {
        assert_eq!(trouble("ok a send\nok a get\nok b get\n", None).as_deref(), Some("it left out b send"));
        assert_eq!(trouble("", None).as_deref(), Some("it left out a get, a send, b get, b send"));
    }

    #[test]
    fn a_step_that_is_not_in_the_list_is_told() {
        let said = "ok a send\nok a get\nok b send\nok b get\nok b sing\n";
        assert_eq!(trouble(said, None).as_deref(), Some("nobody expected b sing; add it to the list of clients"));
    }

    #[test]
    fn what_the_client_itself_says_comes_first() {
        assert_eq!(trouble("ok a send\n", Some("it failed")).as_deref(), Some("it failed"));
    }
}

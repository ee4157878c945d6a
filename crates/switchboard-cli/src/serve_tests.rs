//! The whole server, as the binary puts it together, reached by the lines it prints.

use std::path::Path;

use clap::Parser;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::cli::{Cli, Command as Typed};
use crate::config::{read_layers, resolve};

/// Serves with these flags on a free port, and gives the lines of the banner that begin with `curl` to `visit`.
async fn serving(flags: &[&str], variables: &[(&str, &str)], visit: impl AsyncFnOnce(Vec<String>)) {
    let typed = ["switchboard", "serve", "--listen", "127.0.0.1:0"].iter().chain(flags);
    let Typed::Serve(args) = Cli::parse_from(typed).command else { panic!("serve was typed") };
    let environment = Environment::of(variables);
    let nowhere = Path::new("/nonexistent");
    let layers = read_layers(&args.settings, None, &environment, nowhere);
    let config = resolve(layers, &environment, nowhere).unwrap();
    check_build(&config, &environment).unwrap();
    let (listen, examples) = (*config.server.listen, examples(&config));
    let bound = assemble(config, &environment, None, &ServedAt::default()).unwrap().server.bind(listen).await.unwrap();
    let text = bound.banner().examples(examples.send, examples.stream).to_string();
    let lines = text.lines().map(str::trim).filter(|line| line.starts_with("curl ")).map(str::to_owned).collect();
    let stop = CancellationToken::new();
    let visit = async {
        visit(lines).await;
        stop.cancel();
    };
    tokio::join!(bound.run_until(stop.cancelled(), Duration::from_secs(5)), visit);
}

async fn paste(shell: &str, line: &str) -> String {
    let output = Command::new(shell).arg("-c").arg(line).env("TOKEN", "0123456789abcdef").output().await.unwrap();
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The id and the text of the task in an answer.
fn answered(text: &str) -> (String, String) {
    let task = json(text)["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{text}");
    let answer = task["artifacts"][0]["parts"][0]["text"].as_str().unwrap().to_owned();
    (task["id"].as_str().unwrap().to_owned(), answer)
}

#[tokio::test]
async fn the_printed_lines_work_each_time_they_are_pasted() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("data");
    serving(&["--data", folder.to_str().unwrap()], &[], async |lines| {
        let [send, stream] = &lines[..] else { panic!("{lines:?}") };
        let first = answered(&paste("bash", send).await);
        let second = answered(&paste("bash", send).await);
        let third = answered(&paste("sh", send).await);
        for (_, answer) in [&first, &second, &third] {
            assert_eq!(answer, "hello");
        }
        assert!(first.0 != second.0 && second.0 != third.0, "each paste is a message of its own");
        for shell in ["bash", "sh"] {
            let streamed = paste(shell, stream).await;
            let events = streamed.lines().filter_map(|line| line.strip_prefix("data: ")).map(json);
            let chunks: String = events
                .filter_map(|event| {
                    Some(event.get("artifactUpdate")?["artifact"]["parts"][0]["text"].as_str()?.to_owned())
                })
                .collect();
            assert_eq!(chunks, (1..=40).map(|n| format!("chunk {n} of 40\n")).collect::<String>(), "{streamed}");
        }
    })
    .await;
}

#[tokio::test]
async fn tokens_and_a_base_path_are_in_the_printed_lines() {
    let flags = ["--memory", "--exec", "tr a-z A-Z", "--public-url", "https://agents.example/base"];
    let variables = [("SWITCHBOARD_TOKENS", "0123456789abcdef alice"), ("PATH", "/usr/local/bin:/usr/bin:/bin")];
    serving(&flags, &variables, async |lines| {
        let [send, _] = &lines[..] else { panic!("{lines:?}") };
        assert!(send.contains("/base/message:send") && send.contains("Bearer $TOKEN"), "{send}");
        assert_eq!(answered(&paste("bash", send).await).1, "HELLO");
        let refused = json(&paste("bash", &send.replace("$TOKEN", "somebody-elses-token")).await);
        assert_eq!(refused["error"]["code"], 401, "{refused}");
    })
    .await;
}

#[tokio::test]
async fn the_printed_lines_trust_the_certificate_of_the_server_whatever_it_is_for() {
    let certificates = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/certificates");
    let pair = |name: &str| [format!("{certificates}/{name}.cert.pem"), format!("{certificates}/{name}.key.pem")];
    for (name, host, detour) in [("first", "127.0.0.1", false), ("named", "agents.example", true)] {
        let [cert, key] = pair(name);
        serving(&["--memory", "--tls-cert", &cert, "--tls-key", &key], &[], async |lines| {
            let [send, stream] = &lines[..] else { panic!("{lines:?}") };
            let expected = format!("curl -sS --cacert {cert} ");
            assert!(send.starts_with(&expected) && send.contains(&format!(" https://{host}:")), "{send}");
            assert_eq!(send.contains("--connect-to ::127.0.0.1:"), detour, "{send}");
            assert_eq!(answered(&paste("bash", send).await).1, "hello");
            assert!(paste("sh", stream).await.contains("chunk 40 of 40"), "{stream}");
            let plain = paste("sh", &send.replace("https://", "http://")).await;
            assert_eq!(plain, "this port speaks TLS; use https://\n");
        })
        .await;
    }
}

#[tokio::test]
async fn every_agent_has_its_card() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.toml");
    let text = "[[agent]]\nname = \"One\"\n[[agent]]\nname = \"Two\"\ncommand = \"cat\"\nstreaming = false\n\
                [[agent.skill]]\nid = \"copy\"\nname = \"Copy\"\ntags = [\"t\"]\n";
    std::fs::write(&file, text).unwrap();
    // The file is named by a variable here; flags would do as well.
    let variables = [("SWITCHBOARD_CONFIG", file.to_str().unwrap())];
    serving(&["--memory"], &variables, async |lines| {
        let url = lines[0].split_whitespace().find_map(|word| word.strip_suffix("/message:send")).unwrap();
        let card = |path: &str| paste_card(format!("{url}{path}/.well-known/agent-card.json"));
        assert_eq!(card("").await["name"], "One");
        assert_eq!(card("/agents/one").await["name"], "One");
        let two = card("/agents/two").await;
        assert_eq!(two["name"], "Two");
        assert_eq!(two["capabilities"]["streaming"], false);
        assert_eq!(two["skills"][0]["id"], "copy");
        let send = lines[0].replace("/message:send", "/agents/two/message:send");
        assert_eq!(answered(&paste("bash", &send).await).1, "hello");
    })
    .await;
}

async fn paste_card(url: String) -> serde_json::Value {
    json(&paste("bash", &format!("curl -sS {url}")).await)
}

#[test]
fn what_the_configuration_says_of_a_run_holds() {
    for (flags, effects, run_max) in [
        (&[][..], Effects::Never, Some(7_200)),
        (&["--effects", "some", "--run-timeout", "5"], Effects::Possible, Some(5)),
    ] {
        let Typed::Serve(args) = Cli::parse_from(["switchboard", "serve"].iter().chain(flags)).command else {
            panic!("serve was typed")
        };
        let environment = Environment::of(&[]);
        let nowhere = Path::new("/nonexistent");
        let layers = read_layers(&args.settings, None, &environment, nowhere);
        let config = resolve(layers, &environment, nowhere).unwrap();
        let server = with_rules(Server::builder().memory(), config, &environment, &ServedAt::default())
            .unwrap()
            .builder
            .build()
            .unwrap();
        let agents = server.engine().unwrap().agents();
        let traits = agents[0].source.traits();
        assert_eq!((traits.effects, traits.run_max), (effects, run_max.map(Duration::from_secs)));
    }
}

#[test]
fn targets_that_webhooks_cannot_go_to_are_refused_by_name() {
    let Typed::Serve(args) = Cli::parse_from(["switchboard", "serve", "--outbound-allow", "http://x"]).command else {
        panic!("serve was typed")
    };
    let environment = Environment::of(&[]);
    let nowhere = Path::new("/nonexistent");
    let layers = read_layers(&args.settings, None, &environment, nowhere);
    let refused = check_build(&resolve(layers, &environment, nowhere).unwrap(), &environment).unwrap_err();
    assert!(refused.to_string().starts_with("--outbound-allow: \"http://x\" "), "{refused}");
}

/// The public card and, for the holder of the key, the extended one.
async fn cards(file: &str) -> (serde_json::Value, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(config::FILE_NAME), file).unwrap();
    let variables = [("MY_KEY", "0123456789abcdef")];
    let Typed::Serve(args) = Cli::parse_from(["switchboard", "serve", "--listen", "127.0.0.1:0", "--memory"]).command
    else {
        panic!("serve was typed")
    };
    let environment = Environment::of(&variables);
    let layers = read_layers(&args.settings, None, &environment, folder.path());
    let config = resolve(layers, &environment, folder.path()).unwrap();
    check_build(&config, &environment).unwrap();
    let bound = assemble(config, &environment, None, &ServedAt::default())
        .unwrap()
        .server
        .bind("127.0.0.1:0".parse().unwrap())
        .await
        .unwrap();
    let (url, stop) = (bound.url().to_owned(), CancellationToken::new());
    let asking = async {
        let curl = format!("curl -sS -H 'A2A-Version: 1.0' {url}");
        let public = json(&paste("sh", &format!("{curl}/.well-known/agent-card.json")).await);
        let bearer = "-H \"Authorization: Bearer $TOKEN\"";
        let extended = json(&paste("sh", &format!("{curl}/extendedAgentCard {bearer}")).await);
        stop.cancel();
        (public, extended)
    };
    tokio::join!(bound.run_until(stop.cancelled(), Duration::from_secs(5)), asking).1
}

#[tokio::test]
async fn the_file_says_all_that_a_card_says() {
    let file = r#"
        [server]
        api_key_env = "MY_KEY"
        [[agent]]
        name = "Shout"
        provider_organization = "Example, Inc."
        provider_url = "https://example.com"
        icon_url = "https://example.com/shout.png"
        documentation_url = "https://example.com/shout"
        extensions = ["urn:one", "urn:two"]
        extensions_required = ["urn:two"]
        extended_description = "For those we know"
        [[agent.skill]]
        id = "shout"
        [[agent.skill]]
        id = "whisper"
        extended = true
    "#;
    let (public, extended) = cards(file).await;
    assert_eq!(public["provider"], serde_json::json!({"organization": "Example, Inc.", "url": "https://example.com"}));
    assert_eq!(public["iconUrl"], "https://example.com/shout.png");
    assert_eq!(public["documentationUrl"], "https://example.com/shout");
    assert_eq!(public["version"], "1.0.0");
    let extensions = serde_json::json!([{"uri": "urn:one"}, {"uri": "urn:two", "required": true}]);
    // The first is the server's own.
    assert_eq!(public["capabilities"]["extensions"].as_array().unwrap()[1..], extensions.as_array().unwrap()[..]);
    assert_eq!(public["capabilities"]["extensions"][0]["uri"], switchboard::IDEMPOTENT_SENDS);
    assert_eq!(public["capabilities"]["extendedAgentCard"], true);
    let ids = |card: &serde_json::Value| {
        let skills = card["skills"].as_array().unwrap().iter();
        skills.map(|skill| skill["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (ids(&public), ids(&extended)),
        (vec!["shout".to_owned()], vec!["shout".to_owned(), "whisper".to_owned()])
    );
    assert_eq!(extended["description"], "For those we know");
    assert_ne!(public["description"], extended["description"]);
}

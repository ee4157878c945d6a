//! The example deployments in `deploy/` fit the binary: every variable and flag in them exists and has a value that the server takes,
//! the probes name paths that it answers, ports and times agree, and the image is that of the `Dockerfile`.
//!
//! The files are read by [`yaml`], which knows as much of YAML as they use and refuses the rest.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Map, Value, json};
use switchboard_test_servers::free_addr;

const KEY: &str = "swkey_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
const TOKENS: &str = "q6V0mDk2H1rT9yXw4bZc alice";
const STORE: &str = "postgres://switchboard:secret@db.example/switchboard";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn manifest(name: &str) -> Value {
    yaml::parse(&read(&format!("deploy/kubernetes/{name}.yaml")))
}

/// The value of an instruction of the `Dockerfile`.
fn of_dockerfile(word: &str) -> String {
    let text = read("Dockerfile");
    let line = text.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' ')).next_back();
    line.unwrap_or_else(|| panic!("the Dockerfile has no {word}")).to_owned()
}

/// What `switchboard serve --print-config` makes of a command line and an environment.
fn configured(args: &[String], variables: &[(String, String)], folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
    command.env_clear().current_dir(folder).args(args).arg("--print-config");
    let output = command.envs(variables.iter().cloned()).stdin(Stdio::null()).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?} {variables:?}: {said}");
    String::from_utf8(output.stdout).expect("a configuration is text")
}

/// The variables of the server that `docs/configuration.md` has, which is made from its table of settings.
fn assert_known(variable: &str) {
    let is_known = read("docs/configuration.md").contains(&format!("`{variable}`"));
    assert!(is_known || variable == "PGPASSWORD", "the server has no variable {variable}");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no list")).iter().map(text).collect()
}

/// Seconds, as in `20s`.
fn seconds(value: &Value) -> u64 {
    text(value).strip_suffix('s').and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{value}"))
}

/// A number of a printed configuration.
fn setting(config: &str, key: &str) -> u64 {
    let line = config.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{key} in {config}"))
}

/// One service of the compose file with what it extends.
fn service(compose: &Value, name: &str) -> Value {
    let own = &compose["services"][name];
    assert!(own.is_object(), "there is no service {name}");
    let Some(base) = own["extends"]["service"].as_str() else { return own.clone() };
    let mut whole = service(compose, base);
    let mut environment = whole["environment"].clone();
    for (name, value) in own["environment"].as_object().into_iter().flatten() {
        environment[name] = value.clone();
    }
    whole["environment"] = environment;
    whole["depends_on"] = own["depends_on"].clone();
    whole
}

#[test]
fn the_servers_of_the_compose_file_take_their_settings() {
    let compose = yaml::parse(&read("deploy/compose.yaml"));
    let folder = tempfile::tempdir().unwrap();
    let built = read("Dockerfile").contains("docker build --tag switchboard .");
    for name in ["one", "two", "three"] {
        let server = service(&compose, name);
        assert!(built && server["image"] == "switchboard" && server["build"] == "..");
        assert!(compose["services"]["postgres"].is_object() && server["depends_on"]["postgres"].is_object());
        let mut variables = Vec::new();
        for (variable, value) in server["environment"].as_object().unwrap() {
            assert_known(variable);
            let value = match text(value).strip_prefix("${").and_then(|rest| Some(rest.split_once(":?")?.0.to_owned()))
            {
                None => text(value),
                Some(asked) => match asked.as_str() {
                    "SWITCHBOARD_TOKENS" => TOKENS.to_owned(),
                    "SWITCHBOARD_SECRETS_KEY" => KEY.to_owned(),
                    "POSTGRES_PASSWORD" => "secret".to_owned(),
                    other => panic!("the head of the file does not make {other}"),
                },
            };
            variables.push((variable.clone(), value));
        }
        // What the image sets.
        for pair in of_dockerfile("ENV").split(' ') {
            let (name, value) = pair.split_once('=').unwrap();
            variables.push((name.to_owned(), value.to_owned()));
        }
        let config = configured(&texts(&server["command"]), &variables, folder.path());
        assert!(config.contains(&format!("replica = \"{name}\"")), "{config}");
        assert!(config.contains(&format!("listen = \"0.0.0.0:{}\"", of_dockerfile("EXPOSE"))), "{config}");
        assert!(seconds(&server["stop_grace_period"]) > setting(&config, "grace_s") + 3, "{name}");
        let store = text(&server["environment"]["SWITCHBOARD_STORE"]);
        let database = &compose["services"]["postgres"]["environment"];
        let expected =
            format!("postgres://{}@postgres/{}", text(&database["POSTGRES_USER"]), text(&database["POSTGRES_DB"]));
        // Neither of the two images has a certificate.
        assert_eq!(store, format!("{expected}?sslmode=disable"));
        assert_eq!(text(&server["environment"]["SWITCHBOARD_HINTS"]), "nats://nats?tls=disable");
        assert!(compose["services"]["nats"].is_object());
    }
    for asked in ["SWITCHBOARD_TOKENS=", "SWITCHBOARD_SECRETS_KEY=swkey_", "POSTGRES_PASSWORD="] {
        let head: String = read("deploy/compose.yaml").lines().take_while(|line| line.starts_with('#')).collect();
        assert!(head.contains(asked), "the head of the file makes {asked}");
    }
}

#[test]
fn the_balancer_sends_to_every_server_in_turn() {
    let (compose, nginx) = (yaml::parse(&read("deploy/compose.yaml")), read("deploy/nginx.conf"));
    let balancer = &compose["services"]["balancer"];
    let directive = |name: &str| -> Vec<String> {
        let lines = nginx.lines().map(str::trim).filter_map(|line| line.strip_prefix(name)?.strip_suffix(';'));
        lines.map(|rest| rest.trim().to_owned()).collect()
    };
    let servers: Vec<String> =
        directive("server ").iter().map(|server| server.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(servers, ["one", "two", "three"].map(|name| format!("{name}:{}", of_dockerfile("EXPOSE"))));
    assert_eq!(texts(&balancer["depends_on"]), ["one", "two", "three"]);
    for other in ["ip_hash", "hash", "sticky", "least_conn", "random"] {
        assert!(!nginx.lines().any(|line| line.trim().starts_with(other)), "{other} is not round robin");
    }
    assert_eq!(directive("proxy_buffering "), ["off"]);
    let port = texts(&balancer["ports"])[0].rsplit(':').next().unwrap().to_owned();
    assert_eq!(directive("listen "), [port]);
    assert_eq!(texts(&balancer["volumes"]), ["./nginx.conf:/etc/nginx/nginx.conf:ro"]);
    let public = text(&compose["services"]["one"]["environment"]["SWITCHBOARD_PUBLIC_URL"]);
    assert!(texts(&balancer["ports"])[0].contains(&format!(":{}:", public.rsplit(':').next().unwrap())), "{public}");
}

/// The container of the Deployment.
fn container(deployment: &Value) -> Value {
    deployment["spec"]["template"]["spec"]["containers"][0].clone()
}

#[test]
fn the_pods_take_their_settings() {
    let (deployment, settings) = (manifest("deployment"), manifest("configmap"));
    let (pod, container) = (&deployment["spec"]["template"]["spec"], container(&deployment));
    assert_eq!(container["image"], "switchboard");
    assert!(of_dockerfile("ENTRYPOINT").contains("switchboard") && container["command"].is_null());
    // The file of the ConfigMap, where the pod has it.
    let folder = tempfile::tempdir().unwrap();
    let volume = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|volume| volume["configMap"]["name"] == settings["metadata"]["name"]);
    let mounts = container["volumeMounts"].as_array().unwrap();
    let mount = mounts.iter().find(|mount| mount["name"] == volume.unwrap()["name"]).unwrap();
    let args: Vec<String> = texts(&container["args"])
        .into_iter()
        .map(|argument| match argument.strip_prefix(&format!("{}/", text(&mount["mountPath"]))) {
            Some(file) => {
                let place = folder.path().join(file);
                std::fs::write(&place, text(&settings["data"][file])).unwrap();
                place.to_str().unwrap().to_owned()
            }
            None => argument,
        })
        .collect();
    let page = read("docs/deploy.md");
    let mut variables = Vec::new();
    for variable in container["env"].as_array().unwrap() {
        let name = text(&variable["name"]);
        assert_known(&name);
        let secret = &variable["valueFrom"]["secretKeyRef"];
        let value = match secret["key"].as_str() {
            Some(key) => {
                let command = format!("kubectl create secret generic {}", text(&secret["name"]));
                assert!(
                    page.contains(&command) && page.contains(&format!("--from-literal={key}=")),
                    "{key} is not made"
                );
                match key {
                    "store" => STORE,
                    "secrets-key" => KEY,
                    "tokens" => TOKENS,
                    other => panic!("{other}"),
                }
            }
            None => "switchboard-7d9c6b-x2x4z",
        };
        variables.push((name, value.to_owned()));
    }
    let config = configured(&args, &variables, folder.path());
    assert!(config.contains("replica = \"switchboard-7d9c6b-x2x4z\""), "{config}");
    let port = container["ports"][0]["containerPort"].as_u64().unwrap();
    assert!(config.contains(&format!("listen = \"0.0.0.0:{port}\"")) && of_dockerfile("EXPOSE") == port.to_string());
    let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let patience = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(patience > pause + setting(&config, "grace_s") + 3, "{patience}");
    // The commented lines of the file are settings, too.
    let with_all = text(&settings["data"]["switchboard.toml"]).replace("# otlp_endpoint", "otlp_endpoint");
    std::fs::write(folder.path().join("switchboard.toml"), with_all).unwrap();
    assert!(configured(&args, &variables, folder.path()).contains("otlp_endpoint = "));
}

#[test]
fn the_manifests_name_each_other() {
    let (deployment, service, budget) = (manifest("deployment"), manifest("service"), manifest("disruption-budget"));
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    for selector in [
        &deployment["spec"]["selector"]["matchLabels"],
        &service["spec"]["selector"],
        &budget["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(selector, labels);
    }
    let spread = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"].as_array().unwrap();
    assert!(spread.len() == 2 && spread.iter().all(|rule| &rule["labelSelector"]["matchLabels"] == labels));
    assert!(budget["spec"]["minAvailable"].as_u64() < deployment["spec"]["replicas"].as_u64());
    assert_eq!(service["spec"]["ports"][0]["targetPort"], container(&deployment)["ports"][0]["name"]);
    assert_eq!(service["spec"]["sessionAffinity"], "None");
    for entry in std::fs::read_dir(root().join("deploy/kubernetes")).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        assert!(read("docs/deploy.md").contains(&name), "docs/deploy.md does not name {name}");
    }
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The status that the server answers a path with; none while it does not listen.
fn status(port: u16, path: &str) -> Option<u16> {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).ok()?;
    socket.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    // As the kubelet asks: by the address of the pod.
    write!(socket, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer).ok()?;
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}

#[test]
fn the_probes_ask_for_paths_that_the_server_answers() {
    let container = container(&manifest("deployment"));
    let probes = ["startupProbe", "livenessProbe", "readinessProbe"].map(|probe| container[probe]["httpGet"].clone());
    assert!(probes.iter().all(|probe| probe["port"] == container["ports"][0]["name"]), "{probes:?}");
    let port = free_addr().port();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_switchboard"));
    command.env_clear().current_dir(folder.path()).env("SWITCHBOARD_TOKENS", TOKENS);
    command.args(["serve", "--memory", "--listen", &format!("127.0.0.1:{port}")]);
    let _server = Server(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    for _ in 0..1_000 {
        if status(port, "/healthz").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    for probe in probes {
        let path = text(&probe["path"]);
        assert_eq!(status(port, &path), Some(200), "{path}");
    }
    assert_eq!(status(port, "/tasks"), Some(401), "what is no probe needs a token");
}

/// As much of YAML as the files use: mappings and lists by indentation, plain and quoted texts, numbers, `true` and `false`, texts of
/// several lines (`|`), and comments. Everything else is refused, so that a file is never read as something it is not.
mod yaml {
    use super::{Map, Value, json};

    struct Line<'a> {
        indent: usize,
        text: &'a str,
    }

    pub(super) fn parse(file: &str) -> Value {
        let lines: Vec<Line<'_>> = file
            .lines()
            .map(|line| {
                assert!(!line.contains('\t') && line.trim() != "---", "{line:?}");
                Line { indent: line.len() - line.trim_start().len(), text: line.trim() }
            })
            .collect();
        let mut rest = &lines[..];
        let value = block(&mut rest, 0);
        assert!(next(rest).is_none(), "{:?} is left", next(rest).map(|line| line.text));
        value
    }

    /// The next line that says something.
    fn next<'a, 'b>(rest: &'b [Line<'a>]) -> Option<&'b Line<'a>> {
        rest.iter().find(|line| !line.text.is_empty() && !line.text.starts_with('#'))
    }

    fn skip<'a, 'b>(rest: &mut &'b [Line<'a>]) -> Option<&'b Line<'a>> {
        let at = rest.iter().position(|line| !line.text.is_empty() && !line.text.starts_with('#'))?;
        *rest = &rest[at..];
        rest.first()
    }

    fn block(rest: &mut &[Line<'_>], at_least: usize) -> Value {
        let Some(first) = skip(rest).filter(|line| line.indent >= at_least) else { return Value::Null };
        let (indent, is_list) = (first.indent, first.text.starts_with("- "));
        let (mut items, mut members) = (Vec::new(), Map::new());
        while let Some(line) = skip(rest).filter(|line| line.indent >= indent) {
            assert_eq!(line.indent, indent, "{:?} is indented otherwise than what is before it", line.text);
            let text = line.text;
            *rest = &rest[1..];
            match text.strip_prefix("- ") {
                Some(item) => {
                    assert!(is_list, "{text:?} is in a mapping");
                    items.push(list_item(item, rest, indent + 2));
                }
                None => {
                    assert!(!is_list, "{text:?} is in a list");
                    let (key, value) = member(text).unwrap_or_else(|| panic!("{text:?} is no member"));
                    let value = value_of(value, rest, indent);
                    assert!(members.insert(key.to_owned(), value).is_none(), "{key} is there twice");
                }
            }
        }
        if is_list { Value::Array(items) } else { Value::Object(members) }
    }

    /// What stands behind the dash: a text, or the first member of a mapping whose others are below it.
    fn list_item(item: &str, rest: &mut &[Line<'_>], indent: usize) -> Value {
        let Some((key, value)) = member(item) else { return scalar(item) };
        let first = value_of(value, rest, indent);
        let mut members = match next(rest).filter(|line| line.indent == indent) {
            Some(_) => block(rest, indent),
            None => json!({}),
        };
        members[key] = first;
        members
    }

    fn member(text: &str) -> Option<(&str, &str)> {
        if text.starts_with(['"', '\'']) {
            return None;
        }
        let (key, value) = text.split_once(": ").or_else(|| Some((text.strip_suffix(':')?, "")))?;
        let is_key = key.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter));
        is_key.then_some((key, value.trim()))
    }

    fn value_of(value: &str, rest: &mut &[Line<'_>], indent: usize) -> Value {
        match value {
            "" => match next(rest) {
                // A list may stand as far left as its key.
                Some(line) if line.indent > indent => block(rest, indent + 1),
                _ => Value::Null,
            },
            "|" => {
                let inner = rest.first().map_or(0, |line| line.indent);
                assert!(inner > indent);
                let mut text = String::new();
                while let Some(line) = rest.first().filter(|line| line.text.is_empty() || line.indent >= inner) {
                    text.push_str(&" ".repeat(line.indent.saturating_sub(inner)));
                    text.push_str(line.text);
                    text.push('\n');
                    *rest = &rest[1..];
                }
                Value::String(text)
            }
            value => scalar(value),
        }
    }

    fn scalar(text: &str) -> Value {
        for quote in ['"', '\''] {
            if let Some(inner) = text.strip_prefix(quote) {
                let inner = inner.strip_suffix(quote).unwrap_or_else(|| panic!("{text:?} has no end"));
                assert!(!inner.contains(['\\', quote]), "{text:?}");
                return Value::String(inner.to_owned());
            }
        }
        assert!(!text.starts_with(['&', '*', '!', '{', '[', '>', '%', '@', '`']) && !text.contains(" #"), "{text:?}");
        match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => text.parse::<u64>().map_or_else(|_| Value::String(text.to_owned()), Value::from),
        }
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        let file = "a: 1\n# a comment\nb:\n  - c: x y\n    d:\n      e: \"2\"\n  - f\nlong: |\n  one\n    two\n\n  three\nlast: true\n";
        let long = "one\n  two\n\nthree\n";
        assert_eq!(parse(file), json!({"a": 1, "b": [{"c": "x y", "d": {"e": "2"}}, "f"], "long": long, "last": true}));
    }
}

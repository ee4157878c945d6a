//! Layers and rules.

mod issuers;
mod otlp;
mod reference;
mod refusals;
mod secrets;
mod store;

use std::path::{Path, PathBuf};

use clap::Parser;
use expect_test::expect;

use super::*;
use crate::cli::{Cli, Command as Typed};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// What comes of flags, variables and a file, in a folder that also holds the files that examples name.
fn load(flags: &[&str], variables: &[(&str, &str)], file: &str) -> Result<Config, String> {
    let folder = tempfile::tempdir().unwrap();
    if !file.is_empty() {
        std::fs::write(folder.path().join(FILE_NAME), file).unwrap();
    }
    std::fs::write(folder.path().join("tokens.txt"), format!("# ours\n{TOKEN} alice acme,globex\n")).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("tokens.txt"), private).unwrap();
    std::fs::write(folder.path().join("org-secrets.txt"), "example.com a-long-random-secret\n").unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(folder.path().join("org-secrets.txt"), private).unwrap();
    let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"k1","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    std::fs::write(folder.path().join("keys.json"), format!("{{\"keys\":[{key}]}}")).unwrap();
    let authority = include_str!("../../../../tests/certificates/authority.cert.pem");
    std::fs::write(folder.path().join("clients-ca.pem"), authority).unwrap();
    put_certificate(folder.path());
    load_in(folder.path(), flags, variables)
}

/// A certificate and its key, which only its owner may read.
fn put_certificate(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(folder.join("cert.pem"), include_str!("../../../../tests/certificates/first.cert.pem")).unwrap();
    std::fs::write(folder.join("key.pem"), include_str!("../../../../tests/certificates/first.key.pem")).unwrap();
    std::fs::set_permissions(folder.join("key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn load_in(folder: &Path, flags: &[&str], variables: &[(&str, &str)]) -> Result<Config, String> {
    let typed = ["switchboard", "serve"].iter().chain(flags);
    let Typed::Serve(args) = Cli::try_parse_from(typed).map_err(|error| error.to_string())?.command else {
        panic!("serve was typed")
    };
    let environment = Environment::of(variables);
    let layers = read_layers(&args.settings, args.config.as_deref(), &environment, folder);
    resolve(layers, &environment, folder).map_err(|error| error.to_string())
}

fn refusal(flags: &[&str], variables: &[(&str, &str)], file: &str) -> String {
    load(flags, variables, file).map(|config| format!("{config:?}")).unwrap_err()
}

#[test]
fn variables_for_the_default_command_can_be_named_one_by_one() {
    let env = |flags: &[&str], variables: &[(&str, &str)], file: &str| {
        load(flags, variables, file).map(|config| config.agents[0].settings.env.value.clone())
    };
    let flags = ["--exec", "cat", "--exec-env", "API_KEY", "--exec-env", "HOST"];
    assert_eq!(env(&flags, &[], "").unwrap(), ["API_KEY", "HOST"]);
    assert_eq!(env(&["--exec", "cat"], &[("SWITCHBOARD_EXEC_ENV", "A,B")], "").unwrap(), ["A", "B"]);
    // As for every setting, a flag outranks the file.
    let file = "[[agent]]\nname = \"Cat\"\ncommand = \"cat\"\nenv = [\"OLD\"]\n";
    assert_eq!(env(&["--exec-env", "NEW"], &[], file).unwrap(), ["NEW"]);
    assert_eq!(env(&[], &[], file).unwrap(), ["OLD"]);
    let refused = |flags: &[&str]| env(flags, &[], "").unwrap_err();
    let reason = "--exec-env: \"A2A_ATTEMPT\" cannot be passed on: names that begin with A2A_ describe the message";
    assert_eq!(refused(&["--exec", "cat", "--exec-env", "A2A_ATTEMPT"]), reason);
    assert_eq!(refused(&["--exec-env", "API_KEY"]), "--exec-env: only agents of kind \"exec\" have this");
}

#[test]
fn without_a_word_it_is_a_durable_demo_for_this_machine() {
    let config = load(&[], &[], "").unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    let folder = PathBuf::from("./switchboard-data");
    assert_eq!(config.storage, Storage::Sqlite { folder, synchronous: Synchronous::Full });
    assert_eq!((*config.server.body_bytes_max, *config.server.reply_bytes_max), (10 << 20, 32 << 20));
    assert!(config.tokens.is_none() && !*config.server.allow_unauthenticated);
    let [agent] = &config.agents[..] else { panic!("{config:?}") };
    assert_eq!((agent.name.as_str(), agent.slug.as_str()), ("Demo", "demo"));
    assert!(matches!(agent.kind, Kind::Demo));
    let skills: Vec<_> = agent.skills.iter().filter_map(|skill| skill.id.as_deref()).collect();
    assert_eq!(skills, ["echo", "slow", "stream", "fail", "ask", "auth", "reject", "file", "data"]);
    assert!(agent.skills.iter().all(|skill| !skill.examples.is_empty() && !skill.description.is_empty()));
}

#[test]
fn flag_beats_variable_beats_file_beats_default() {
    let file = "[server]\nlisten = \"127.0.0.1:1\"\ngrace_s = 1\nbody_bytes_max = 2048\nlog_format = \"json\"";
    let variables = [("SWITCHBOARD_LISTEN", "127.0.0.1:2"), ("SWITCHBOARD_GRACE", "2")];
    let config = load(&["--listen", "127.0.0.1:3"], &variables, file).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!(*config.server.grace_s, 2);
    assert_eq!(*config.server.body_bytes_max, 2048);
    assert_eq!(*config.server.log_format, LogFormat::Json);
    assert_eq!(load(&[], &variables, file).unwrap().server.listen.port(), 2);
    assert_eq!(load(&[], &[], file).unwrap().server.listen.port(), 1);
}

#[test]
fn every_setting_has_a_variable() {
    let variables = [
        ("SWITCHBOARD_PUBLIC_URL", "https://agents.example/a2a/"),
        ("SWITCHBOARD_TLS_CERT", "cert.pem"),
        ("SWITCHBOARD_TLS_KEY", "key.pem"),
        ("SWITCHBOARD_DATA", "elsewhere"),
        ("SWITCHBOARD_SYNCHRONOUS", "normal"),
        ("SWITCHBOARD_ALLOW_UNAUTHENTICATED", "1"),
        ("SWITCHBOARD_TENANT", "acme, globex"),
        ("SWITCHBOARD_OUTBOUND_ALLOW", "10.0.0.0/8,127.0.0.1:9000"),
        ("SWITCHBOARD_CORS_ORIGIN", "https://app.example"),
        ("SWITCHBOARD_WEBHOOK_ATTEMPTS", "3"),
        ("SWITCHBOARD_WEBHOOK_COALESCE", "100"),
        ("SWITCHBOARD_BODY_LIMIT", "4096"),
        ("SWITCHBOARD_REPLY_LIMIT", "2097152"),
        ("SWITCHBOARD_DEFAULT_VERSION", "1.0"),
        ("SWITCHBOARD_LISTEN", "0.0.0.0:0"),
        ("SWITCHBOARD_LOG_FORMAT", "json"),
        ("SWITCHBOARD_LOG_COMPLETED_TASKS", "false"),
        ("SWITCHBOARD_ACCESS_LOG", "access.log"),
        ("SWITCHBOARD_ERROR_DETAILS", "full"),
        ("SWITCHBOARD_NAME", "Upper Case"),
        ("SWITCHBOARD_DESCRIPTION", "Shouts"),
        ("SWITCHBOARD_AGENT_VERSION", "7"),
        ("SWITCHBOARD_EXEC", "tr 'a-z' A-Z"),
        ("SWITCHBOARD_EFFECTS", "none"),
        ("SWITCHBOARD_RUN_TIMEOUT", "60"),
        ("SWITCHBOARD_GRACE", "0"),
        ("SWITCHBOARD_CARD", "1.0"),
        ("SWITCHBOARD_MEMORY", ""),
    ];
    let config = load(&[], &variables, "").unwrap();
    expect![[r##"
        # The configuration in effect.
        [server]
        listen = "0.0.0.0:0"
        public_url = "https://agents.example/a2a"
        cors_origins = ["https://app.example"]
        data = "elsewhere"
        memory = false
        synchronous = "normal"
        grace_s = 0
        lease_s = 30
        dispatch = "direct"
        resume_window_s = 86400
        retention_events_s = 604800
        retention_tasks_s = 2592000
        retention_tasks_max = 1000000
        retention_tasks_batch = 0
        audit = "default"
        retention_audit_s = 31536000
        retention_audit_max = 1000000
        basic = false
        jwt_audience = []
        jwt_algorithms = []
        jwt_leeway_s = 30
        jwt_principal_claim = "sub"
        jwt_scope_claims = ["scope", "scp"]
        require = []
        allow_unauthenticated = true
        shared_tenant = false
        protect_cards = false
        allow_plain_http = false
        allowed_hosts = []
        open_peers = []
        tenants = ["acme", "globex"]
        outbound_allow = ["10.0.0.0/8", "127.0.0.1:9000"]
        body_bytes_max = 4096
        reply_bytes_max = 2097152
        frame_bytes_max = 4194304
        body_bytes_held_max = 67108864
        body_bytes_held_per_caller_max = 33554432
        reply_bytes_held_max = 134217728
        reply_bytes_held_per_caller_max = 67108864
        streams_max = 20000
        streams_per_caller_max = 10000
        runs_queued_max = 10000
        runs_queued_per_owner_max = 1000
        run_message_bytes_max = 134217728
        run_message_bytes_per_owner_max = 67108864
        storage_task_bytes_max = 2147483648
        storage_owner_bytes_max = 17179869184
        storage_bytes_max = 68719476736
        default_version = "1.0"
        card = "1.0"
        sign_cards = true
        webhook_attempts_max = 3
        webhook_coalesce_after = 100
        webhook_challenge = false
        log_format = "json"
        log_completed_tasks = false
        access_log = "access.log"

        [tls]
        cert = "cert.pem"
        key = "key.pem"

        [[agent]]
        name = "Upper Case"
        slug = "upper-case"
        description = "Shouts"
        version = "7"
        kind = "exec"
        command = ["tr", "a-z", "A-Z"]
        shell = false
        env = []
        calls = true
        processes_max = 64
        new_privileges = false
        run_timeout_s = 60
        recovery = "retry"
        error_details = "full"
        effects = "none"
        context_messages_max = 0
        extensions = []
        extensions_required = []
        streaming = true
        push = true
        input_modes = ["text/plain"]
        output_modes = ["text/plain", "application/octet-stream"]
        strict_output_modes = false

        [agent.compat]
        default_project = false

        [[agent.skill]]
        id = "run"
        name = "Run"
        description = "Runs a command on the text of each message and answers with what it prints"
        tags = ["command"]
        extended = false
    "##]]
    .assert_eq(&print(&config).unwrap());
}

#[test]
fn interfaces_come_from_every_layer_in_their_order() {
    use switchboard::ProtocolBinding::{Grpc, HttpJson, JsonRpc};
    let file = "[server]\ninterfaces = [\"http+json\"]\n[[agent]]\nname = \"X\"\ninterfaces = [\"JSONRPC\"]";
    let interfaces = |flags: &[&str], variables: &[(&str, &str)]| {
        load(flags, variables, file).map(|config| config.server.interfaces.value)
    };
    assert_eq!(interfaces(&[], &[]).unwrap(), Some(vec![HttpJson]));
    let variable = [("SWITCHBOARD_INTERFACE", "GRPC,JSONRPC")];
    assert_eq!(interfaces(&[], &variable).unwrap(), Some(vec![Grpc, JsonRpc]));
    let flags = ["--interface", "JSONRPC", "--interface", "GRPC"];
    assert_eq!(interfaces(&flags, &variable).unwrap(), Some(vec![JsonRpc, Grpc]));
    assert_eq!(load(&[], &[], file).unwrap().agents[0].settings.interfaces.value, Some(vec![JsonRpc]));
    assert_eq!(load(&[], &[], "").unwrap().server.interfaces.value, None);
}

#[test]
fn host_and_port_of_a_platform_stand_in_for_listen() {
    let listen = |variables: &[(&str, &str)]| {
        load(&["--allow-unauthenticated"], variables, "").map(|c| c.server.listen.to_string())
    };
    assert_eq!(listen(&[("PORT", "9000")]).unwrap(), "127.0.0.1:9000");
    assert_eq!(listen(&[("BIND_HOST", "0.0.0.0")]).unwrap(), "0.0.0.0:8080");
    assert_eq!(listen(&[("BIND_HOST", "::"), ("PORT", "9000")]).unwrap(), "[::]:9000");
    assert_eq!(listen(&[("BIND_HOST", "[::1]"), ("PORT", "")]).unwrap(), "[::1]:8080");
    assert_eq!(listen(&[("BIND_HOST", "localhost")]).unwrap(), "127.0.0.1:8080");
    assert_eq!(listen(&[("SWITCHBOARD_LISTEN", "127.0.0.1:7"), ("PORT", "9000")]).unwrap(), "127.0.0.1:7");
    assert_eq!(listen(&[("PORT", "many")]).unwrap_err(), "PORT: expected a port from 0 to 65535, got \"many\"");
    assert_eq!(
        listen(&[("BIND_HOST", "example.com"), ("PORT", "1")]).unwrap_err(),
        "BIND_HOST: expected an IP address, as in 127.0.0.1 or 0.0.0.0, got \"example.com\""
    );
}

#[test]
fn beyond_this_machine_only_with_tokens_or_an_explicit_word() {
    let why = "can be reached from other machines, and every client that reaches it could use every agent and read every task; \
               either give out tokens (--tokens FILE, or SWITCHBOARD_TOKENS) or say --allow-unauthenticated";
    for (listen, from, refused) in [
        (("--listen", "0.0.0.0:80"), "--listen", "0.0.0.0:80"),
        (("--listen", "[::]:80"), "--listen", "[::]:80"),
        (("--listen", "192.0.2.1:80"), "--listen", "192.0.2.1:80"),
    ] {
        assert_eq!(refusal(&[listen.0, listen.1], &[], ""), format!("{from}: {refused} {why}"));
    }
    assert_eq!(refusal(&[], &[("BIND_HOST", "0.0.0.0")], ""), format!("BIND_HOST: 0.0.0.0:8080 {why}"));
    let file = "\n[server]\nlisten = \"0.0.0.0:80\"";
    assert_eq!(refusal(&[], &[], file), format!("switchboard.toml:3: server.listen: 0.0.0.0:80 {why}"));
    assert!(load(&["--tokens", "tokens.txt"], &[], file).is_ok());
    assert!(load(&[], &[("SWITCHBOARD_TOKENS", &format!("{TOKEN} bob"))], file).is_ok());
    assert!(load(&["--allow-unauthenticated"], &[], file).is_ok());
    let why = "invites clients from other machines, and each of them could use every agent and read every task; either give \
               out tokens (--tokens FILE, or SWITCHBOARD_TOKENS) or say --allow-unauthenticated";
    let public = ["--public-url", "https://agents.example/a2a"];
    assert_eq!(refusal(&public, &[], ""), format!("--public-url: https://agents.example/a2a {why}"));
    assert!(load(&[public[0], public[1], "--tokens", "tokens.txt"], &[], "").is_ok());
    assert!(load(&[public[0], public[1], "--allow-unauthenticated"], &[], "").is_ok());
    for local in ["http://127.0.0.1:9000/x", "https://localhost", "http://[::1]:80"] {
        assert!(load(&["--public-url", local], &[], "").is_ok(), "{local}");
    }
    for local in ["127.0.0.1:0", "127.8.9.1:80", "[::1]:80", "[::ffff:127.0.0.1]:80", "localhost:80"] {
        assert!(load(&["--listen", local], &[], "").is_ok(), "{local}");
    }
}

#[test]
fn what_is_printed_can_be_read_back_and_holds_no_secret() {
    let file = r#"
        [server]
        tokens_file = "tokens.txt"
        lease_s = 7
        queued_timeout_s = 180
        processing_timeout_s = 1800
        resume_window_s = 0
        retention_events_s = 60
        retention_tasks_s = 120
        retention_tasks_max = 5
        [tls]
        cert = "cert.pem"
        key = "key.pem"
        [[agent]]
        name = "Demo \"quoted\""
        idempotency = "off"
        slug = "one"
        [[agent]]
        name = "Two"
        command = "cat | cat"
        shell = true
        env = ["LC_ALL"]
        recovery = "fail"
        recovery_reason = "not twice"
        run_timeout_s_max = 70
        streaming = false
        [[agent.skill]]
        id = "x"
        examples = ["a", "b"]
        [[agent]]
        name = "Three"
        attempts_max = 5
        retry_pause_s = 2
        retry_pause_s_max = 4
        card = "agent-native"
        [agent.compat]
        dialect = "selectools"
        default_dialect = "agent-native"
        selectools_tasks_max = 2
        selectools_body_bytes_max = 4096
        selectools_card_url = "https://agents.example/a2a"
    "#;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokens.txt"), format!("{TOKEN} alice\n")).unwrap();
    put_certificate(folder.path());
    std::fs::write(folder.path().join(FILE_NAME), file).unwrap();
    let printed = print(&load_in(folder.path(), &[], &[]).unwrap()).unwrap();
    assert!(!printed.contains(TOKEN) && printed.contains("tokens_file = \"tokens.txt\""), "{printed}");
    assert!(!printed.contains("PRIVATE") && printed.contains("cert = \"cert.pem\"\nkey = \"key.pem\"\n"), "{printed}");
    assert!(printed.contains("dialect = \"selectools\"\ndefault_dialect = \"agent-native\"\n"), "{printed}");
    std::fs::write(folder.path().join(FILE_NAME), &printed).unwrap();
    assert_eq!(print(&load_in(folder.path(), &[], &[]).unwrap()).unwrap(), printed);
    let hidden = load(&[], &[("SWITCHBOARD_TOKENS", &format!("{TOKEN} bob"))], "").unwrap();
    let printed = print(&hidden).unwrap();
    assert!(!printed.contains(TOKEN) && !printed.contains("tokens_file"), "{printed}");
    assert!(printed.contains("# Left out: 1 tokens from SWITCHBOARD_TOKENS."), "{printed}");
}

#[test]
fn a_layer_that_names_a_folder_means_it() {
    let folder =
        |config: &Config| matches!(&config.storage, Storage::Sqlite { folder, .. } if folder == Path::new("d"));
    let memory = "[server]\nmemory = true";
    assert_eq!(load(&[], &[], memory).unwrap().storage, Storage::Memory);
    assert!(folder(&load(&["--data", "d"], &[], memory).unwrap()));
    assert!(folder(&load(&["--memory=false"], &[("SWITCHBOARD_DATA", "d")], memory).unwrap()));
    assert_eq!(load(&["--memory"], &[("SWITCHBOARD_DATA", "d")], "").unwrap().storage, Storage::Memory);
    assert!(refusal(&["--memory", "--data", "d"], &[], "").contains("cannot be used with"));
}

#[test]
fn tokens_of_a_higher_layer_replace_those_below() {
    let variables = [("SWITCHBOARD_TOKENS", "another-token-0123456789 bob\nthird-token-0123456789 carol")];
    assert_eq!(load(&[], &variables, "").unwrap().tokens.unwrap().tokens.len(), 2);
    let by_flag = load(&["--tokens", "tokens.txt"], &variables, "").unwrap().tokens.unwrap();
    assert_eq!((by_flag.tokens.len(), by_flag.file), (1, Some(PathBuf::from("tokens.txt"))));
}

#[test]
fn a_certificate_and_its_key_may_come_from_different_layers() {
    let file = "[tls]\ncert = \"cert.pem\"\nkey = \"none.pem\"";
    let config = load(&["--tls-key", "key.pem"], &[], file).unwrap();
    assert_eq!(*config.tls_settings.key, Some(PathBuf::from("key.pem")));
    let known = config.tls.unwrap();
    assert_eq!(known.doubt, None);
    assert!(known.tls.is_for("localhost"));
    assert!(load(&[], &[], "[tls]\n").unwrap().tls.is_none());
}

#[test]
fn a_key_that_everybody_can_read_is_doubted_and_taken() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    put_certificate(folder.path());
    std::fs::set_permissions(folder.path().join("key.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let config = load_in(folder.path(), &["--tls-cert", "cert.pem", "--tls-key", "key.pem"], &[]).unwrap();
    let expected = "everybody on this machine can read key.pem; `chmod 600 key.pem` keeps it private";
    assert_eq!(config.tls.unwrap().doubt, Some(Origin::Flag("--tls-key").error(expected)));
}

#[test]
fn agent_flags_are_about_the_default_agent() {
    let file = "[[agent]]\nname = \"One\"\nslug = \"uno\"\nrun_timeout_s = 5\n[[agent]]\nname = \"Two\"";
    let flags = ["--name", "First", "--exec", "cat", "--effects", "some", "--run-timeout", "9"];
    let config = load(&flags, &[], file).unwrap();
    let [first, second] = &config.agents[..] else { panic!("{config:?}") };
    assert_eq!((first.name.as_str(), first.slug.as_str()), ("First", "uno"));
    assert!(matches!(&first.kind, Kind::Exec { invocation: Invocation::Words(words), .. } if words == &["cat"]));
    assert_eq!((*first.settings.effects, *second.settings.effects), (Some(Effects::Some), None));
    assert!(matches!(second.kind, Kind::Demo));
    assert_eq!(*first.settings.run_timeout_s, Some(9));
    assert_eq!(*second.settings.run_timeout_s, Some(9));
    let shell = load(&["--exec", "a | b", "--exec-shell"], &[], "").unwrap();
    assert_eq!((shell.agents[0].name.as_str(), shell.agents[0].slug.as_str()), ("Command", "command"));
    assert!(matches!(&shell.agents[0].kind, Kind::Exec { invocation: Invocation::Shell(line), .. } if line == "a | b"));
}

#[test]
fn in_production_it_is_closed_until_it_knows_who_may_call() {
    for (variables, culprit) in [
        (&[("NODE_ENV", "production")][..], "NODE_ENV"),
        (&[("NETLIFY", "true")], "NETLIFY"),
        (&[("AWS_LAMBDA_FUNCTION_NAME", "agents")], "AWS_LAMBDA_FUNCTION_NAME"),
        (&[("CF_PAGES", "1")], "CF_PAGES"),
        (&[("VERCEL", "1")], "VERCEL"),
        (&[("VERCEL_ENV", "preview")], "VERCEL_ENV"),
        (&[("RENDER", "true")], "RENDER"),
        (&[("FLY_APP_NAME", "agents")], "FLY_APP_NAME"),
        (&[("K_SERVICE", "agents")], "K_SERVICE"),
    ] {
        // At every address, and without any of what lets others start a server without tokens.
        for flags in [&[][..], &["--listen", "0.0.0.0:0"], &["--public-url", "https://agents.example"]] {
            let config = load(flags, variables, "").unwrap();
            assert_eq!((config.production, config.is_closed()), (Some(culprit), true), "{flags:?}");
        }
        assert!(!load(&["--tokens", "tokens.txt"], variables, "").unwrap().is_closed(), "{culprit}");
        assert!(!load(&["--allow-unauthenticated"], variables, "").unwrap().is_closed(), "{culprit}");
        let key = [variables, &[("KEY", "0123456789abcdef")]].concat();
        assert!(!load(&["--api-key-env", "KEY"], &key, "").unwrap().is_closed(), "{culprit}");
    }
    for harmless in [
        &[("NODE_ENV", "development")][..],
        &[("NETLIFY", "true"), ("NETLIFY_LOCAL", "true")],
        &[("AWS_LAMBDA_FUNCTION_NAME", "agents"), ("NETLIFY_LOCAL", "true")],
        &[("CF_PAGES", "0"), ("VERCEL", ""), ("RENDER", " "), ("NETLIFY", "false")],
    ] {
        let config = load(&[], harmless, "").unwrap();
        assert_eq!((config.production, config.is_closed()), (None, false), "{harmless:?}");
    }
}

#[test]
fn in_production_a_card_names_no_foreign_address_without_encryption() {
    let production = &[("NODE_ENV", "production")];
    let open = |url: &str, more: &[&str]| {
        let flags = [&["--allow-unauthenticated", "--public-url", url], more].concat();
        load(&flags, production, "").map(|_| ())
    };
    assert_eq!(
        open("http://agents.example/a2a", &[]).unwrap_err(),
        "--public-url: http://agents.example/a2a is not encrypted, and in production clients would send their tokens there; use \
         https://, or say --allow-plain-http"
    );
    assert_eq!(open("http://agents.example/a2a", &["--allow-plain-http"]), Ok(()));
    assert_eq!(open("https://agents.example/a2a", &[]), Ok(()));
    assert_eq!(open("http://127.0.0.1:8080", &[]), Ok(()));
    assert!(load(&["--allow-unauthenticated", "--public-url", "http://agents.example"], &[], "").is_ok());
}

#[test]
fn a_shared_secret_protects_a_server_unless_it_can_be_guessed() {
    let others = ["--listen", "0.0.0.0:8080"];
    let long = ("A2A_SECRET", "a-long-random-secret");
    let config = load(&others, &[long], "").unwrap();
    assert!(config.shared_secret.is_some() && config.open_to_others_at().is_none());
    assert!(load(&[], &[("A2A_SECRET", "s3cret")], "").unwrap().shared_secret.is_some());
    let why = "A2A_SECRET: is shorter than 16 characters, so that it can be found by trying, and other machines can reach the server";
    assert!(refusal(&others, &[("A2A_SECRET", "s3cret")], "").starts_with(why));
    assert!(load(&[], &[("A2A_SECRET", "  ")], "").unwrap().shared_secret.is_none(), "a blank one counts as unset");
    assert!(load(&["--tokens", "tokens.txt"], &[long], "").is_ok(), "either is accepted then");
}

#[test]
fn every_example_of_the_page_about_authentication_can_be_used() {
    let page = include_str!("../../../../docs/authentication.md");
    let examples: Vec<&str> = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(examples.len() >= 6, "{}", examples.len());
    for example in examples {
        let config = load(&[], &[("A2A_SECRET", "a-long-random-secret")], example)
            .unwrap_or_else(|error| panic!("{error}: {example}"));
        crate::serve::check_build(&config, &Environment::of(&[])).unwrap_or_else(|error| panic!("{error}: {example}"));
    }
}

#[test]
fn an_identity_provider_needs_an_audience() {
    let file = "[server]\njwt_issuer = \"https://login.example\"\n";
    let why = "needs jwt_audience (--jwt-audience), or tokens of the provider for other servers would be good here";
    assert!(refusal(&[], &[], file).ends_with(why), "{}", refusal(&[], &[], file));
    let config = load(&["--listen", "0.0.0.0:8080", "--jwt-audience", "agents"], &[], file).unwrap();
    assert!(!config.issuers.is_empty() && config.open_to_others_at().is_none());
}

#[test]
fn memory_keeps_as_many_tasks_as_the_configuration_says() {
    let kept = |file: &str| *load(&[], &[], file).unwrap().server.retention_tasks_max;
    assert_eq!(kept(""), 1_000_000);
    assert_eq!(kept("[server]\nmemory = true"), 10_000);
    assert_eq!(kept("[server]\nmemory = true\nretention_tasks_max = 1000000"), 1_000_000);
    let printed = print(&load(&["--memory"], &[], "").unwrap()).unwrap();
    assert!(printed.contains("\nretention_tasks_max = 10000\n"), "{printed}");
}

#[test]
fn one_key_for_all_callers_comes_from_the_variable_that_is_named() {
    let named =
        |key: &str| [("SWITCHBOARD_API_KEY_ENV", "MY_KEY"), ("MY_KEY", key)].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let key_of = |flags: &[&str], key: &str| {
        let variables = named(key);
        let variables: Vec<_> = variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        load(flags, &variables, "").map(|config| config.api_key.map(|Secret(key)| key))
    };
    let everywhere = ["--listen", "0.0.0.0:0"];
    assert_eq!(key_of(&[], "short\n").unwrap().as_deref(), Some("short"));
    assert_eq!(key_of(&everywhere, TOKEN).unwrap().as_deref(), Some(TOKEN), "a key is enough to open a server by");
    assert_eq!(
        key_of(&everywhere, "short").unwrap_err(),
        "SWITCHBOARD_API_KEY_ENV: the variable MY_KEY holds a key of fewer than 16 characters, which can be guessed, and other \
         machines can reach the server"
    );
    assert_eq!(key_of(&[], " ").unwrap_err(), "SWITCHBOARD_API_KEY_ENV: the variable MY_KEY is empty");
    assert_eq!(refusal(&["--api-key-env", "MY_KEY"], &[], ""), "--api-key-env: the variable MY_KEY is not set");
    // It is shown nowhere.
    let config = load(&["--api-key-env", "MY_KEY"], &[("MY_KEY", TOKEN)], "").unwrap();
    assert!(!format!("{config:?}").contains(TOKEN) && !print(&config).unwrap().contains(TOKEN));
    assert!(print(&config).unwrap().contains("api_key_env = \"MY_KEY\""));
}

#[test]
fn what_a_card_says_beside_what_the_agent_does_is_checked() {
    let agent = |lines: &str| refusal(&[], &[], &format!("[[agent]]\nname = \"Demo\"\n{lines}\n"));
    for (lines, expected) in [
        ("provider_organization = \"Us\"", "provider_organization: a provider has a page, too; add provider_url"),
        (
            "provider_url = \"https://us.example\"",
            "provider_url: a provider has a name, too; add provider_organization",
        ),
        (
            "extensions = [\"two words\"]",
            "extensions: expected a URI, as in https://example.com/ext/v1, got \"two words\"",
        ),
        ("context_messages_max = 1001", "context_messages_max: expected 0 to 1000 messages, got 1001"),
    ] {
        assert_eq!(agent(lines), format!("switchboard.toml:3: agent[0].{expected}"));
    }
    assert!(agent("icon_url = \"icon.png\"").contains("icon_url: expected a URL that begins with http"));
}

/// A file that is wrong is refused with the line, and never a panic; nor is a secret in it quoted.
#[test]
fn fuzz_configuration_files() {
    let example = include_str!("../../switchboard.example.toml");
    let small = "[server]\nlisten = \"127.0.0.1:0\"\nwebhook_signing_secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"\n\
                 [[agent]]\nname = \"A\"\ncommand = [\"cat\"]\n[[agent.skill]]\nid = \"s\"\n";
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::of(&[]);
    switchboard_fuzz::run("configuration files", &switchboard_fuzz::texts(&[example, small]), |input| {
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, input).unwrap();
        let flags = SettingFlags::data(Some(Path::new("data")));
        let layers = read_layers(&flags, Some(&path), &environment, folder.path());
        if let Err(errors) = resolve(layers, &environment, folder.path()) {
            assert!(!errors.to_string().contains("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "{errors}");
        }
    });
}

//! What is refused, and how. A refusal is compared as a whole, since it is all that its reader gets.

use super::refusal;

/// The text with files named as they were given.
fn without_folder(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.rsplit_once('/') {
        Some((folder, file)) if folder.starts_with(&*std::env::temp_dir().to_string_lossy()) => file,
        Some(_) | None => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_wrong_file_is_refused_with_line_and_key() {
    for (file, expected) in [
        ("[server]\nlisten = 5", "2: server.listen: expected a string, got 5"),
        (
            "[server]\n\nlisten = \"here\"",
            "3: server.listen: expected ADDRESS:PORT, as in 127.0.0.1:8080 or [::1]:8080, got \"here\"",
        ),
        ("[server]\nmemory = \"yes\"", "2: server.memory: expected true or false, got \"yes\""),
        ("[server]\nbody_bytes_max = -1", "2: server.body_bytes_max: expected 1024 to 1073741824 bytes, got -1"),
        ("[server]\nbody_bytes_max = 5", "2: server.body_bytes_max: expected 1024 to 1073741824 bytes, got 5"),
        ("[server]\nreply_bytes_max = 5", "2: server.reply_bytes_max: expected 2097152 to 1073741824 bytes, got 5"),
        ("[server]\nlog_format = \"xml\"", "2: server.log_format: expected text or json, got \"xml\""),
        ("[server]\ngrace_s = 9999", "2: server.grace_s: expected 0 to 3600 seconds, got 9999"),
        ("[server]\nlease_s = 0", "2: server.lease_s: expected 1 to 3600 seconds, got 0"),
        ("[server]\nretention_tasks_max = 0", "2: server.retention_tasks_max: expected 1 to 1000000000 tasks, got 0"),
        (
            "[server]\nretention_events_s = 999999999",
            "2: server.retention_events_s: expected 0 to 315360000 seconds, got 999999999",
        ),
        ("[server]\nqueued_timeout_s = 0", "2: server.queued_timeout_s: expected 1 to 31536000 seconds, got 0"),
        (
            "[server]\nprocessing_timeout_s = 31536001",
            "2: server.processing_timeout_s: expected 1 to 31536000 seconds, got 31536001",
        ),
        (
            "[server]\ninterfaces = [\"JSONRPC\", \"REST\"]",
            "2: server.interfaces: \"REST\" is not a protocol binding; there are JSONRPC, HTTP+JSON, GRPC",
        ),
        ("[[agent]]\nname = \"X\"\nattempts_max = 0", "3: agent[0].attempts_max: expected 1 to 1000 attempts, got 0"),
        (
            "[[agent]]\nname = \"X\"\nretry_pause_s = 86401",
            "3: agent[0].retry_pause_s: expected 0 to 86400 seconds, got 86401",
        ),
        (
            "[[agent]]\nname = \"X\"\nretry_pause_s = 9\nretry_pause_s_max = 8",
            "4: agent[0].retry_pause_s_max: expected at least retry_pause_s, 9, got 8",
        ),
        (
            "[[agent]]\nname = \"X\"\nrecovery = \"fail\"\nattempts_max = 2",
            "4: agent[0].attempts_max: this goes with recovery = \"retry\"",
        ),
        (
            "[[agent]]\nname = \"X\"\nrecovery_reason = \"no\"",
            "3: agent[0].recovery_reason: this goes with recovery = \"fail\"",
        ),
        (
            "[[agent]]\nname = \"X\"\ndispatch_to = [\"a\"]",
            "3: agent[0].dispatch_to: only agents of kind \"dispatch\" have this",
        ),
        (
            "[[agent]]\nname = \"X\"\nkind = \"dispatch\"\ndispatch_to = []",
            "4: agent[0].dispatch_to: expected at least one agent; leave it out for all",
        ),
        (
            "[[agent]]\nname = \"X\"\nkind = \"dispatch\"\ncommand = \"cat\"",
            "4: agent[0].command: only agents of kind \"exec\" have this",
        ),
        (
            "[[agent]]\nname = \"X\"\nkind = \"dispatch\"\nurl = \"https://a.example\"",
            "4: agent[0].url: only agents of kind \"relay\" have this",
        ),
        (
            "[[agent]]\nurl = \"https://a.example\"\n[agent.relay]\noauth_client_id = \"x\"",
            "4: agent[0].relay.oauth_client_id: this goes with credential_kind = \"oauth\"",
        ),
        (
            "[[agent]]\nurl = \"https://a.example\"\n[agent.relay]\ncredential_kind = \"oauth\"",
            "4: agent[0].relay.credential_kind: the application needs a secret; add credential_env or credential_file",
        ),
        (
            "[[agent]]\nname = \"X\"\n[agent.compat]\ndialect = \"0.3\"",
            "4: agent[0].compat.dialect: expected agent-native or selectools or nexus, got \"0.3\"",
        ),
        // Where these settings stood before.
        (
            "[[agent]]\nname = \"X\"\ndialect = \"nexus\"",
            "3: agent[0].dialect: there is no such setting in [[agent]]; it belongs to [agent.compat]",
        ),
        (
            "[[agent]]\nname = \"X\"\ndefault_project = true",
            "3: agent[0].default_project: there is no such setting in [[agent]]; it belongs to [agent.compat]",
        ),
        (
            "[[agent]]\nname = \"X\"\ncompat = true",
            "3: agent[0].compat: expected a table; begin it with the line [agent.compat]",
        ),
        (
            "[[agent]]\nname = \"X\"\n[agent.compat]\ncorvid_depth_mx = 2",
            "4: agent[0].compat.corvid_depth_mx: there is no such setting in [agent.compat]; did you mean `corvid_depth_max`?",
        ),
        (
            "[[agent]]\nname = \"X\"\ncard = \"old\"",
            "3: agent[0].card: expected all or 1.0 or agent-native or selectools or corvid or nexus, got \"old\"",
        ),
        (
            "[[agent]]\nname = \"X\"\n[agent.compat]\nselectools_tasks_max = 0",
            "4: agent[0].compat.selectools_tasks_max: expected 1 to 1000000 tasks, got 0",
        ),
        (
            "[[agent]]\nname = \"X\"\n[agent.compat]\nselectools_body_bytes_max = 9",
            "4: agent[0].compat.selectools_body_bytes_max: expected 1024 to 1073741824 bytes, got 9",
        ),
        (
            "[[agent]]\nname = \"X\"\nrun_timeout_s_max = 0",
            "3: agent[0].run_timeout_s_max: expected 1 to 604800 seconds, got 0",
        ),
        (
            "[server]\npublic_url = \"example.com\"",
            "2: server.public_url: expected a URL that begins with http:// or https:// and names a host, got \"example.com\"",
        ),
        (
            "[server]\npublic_url = \"https://a.example/x?y\"",
            "2: server.public_url: expected a URL without ? and #, got \"https://a.example/x?y\"",
        ),
        (
            "[server]\ncors_origins = [\"https://ok.example\", \"*\"]",
            "2: server.cors_origins: expected an origin, as in https://app.example, got \"*\"",
        ),
        (
            "[server]\ntenants = [\"acme\", \"tasks\"]",
            "2: server.tenants: \"tasks\" is reserved: the server has a path of that name",
        ),
        (
            "[server]\ntenants = [\"a/b\"]",
            "2: server.tenants: expected 1 to 64 letters, digits, '-', '_', '.' or '~', no dot first, got \"a/b\"",
        ),
        ("[server]\ndefault_version = \"0.2\"", "2: server.default_version: expected 1.0 or 0.3, got \"0.2\""),
        ("[server]\ndata = \"\"", "2: server.data: expected the name of a folder, got none"),
        (
            "[tls]\ncert = \"cert.pem\"",
            "2: tls.cert: there is no private key to go with it; name its file, too (tls.key, --tls-key or SWITCHBOARD_TLS_KEY)",
        ),
        (
            "[tls]\nkey = \"key.pem\"",
            "2: tls.key: there is no certificate to go with it; name its file, too (tls.cert, --tls-cert or SWITCHBOARD_TLS_CERT)",
        ),
        ("[tls]\ncert = \"\"\nkey = \"key.pem\"", "2: tls.cert: expected the name of a file, got none"),
        (
            "[tls]\ncert = \"none.pem\"\nkey = \"key.pem\"",
            "2: tls.cert: none.pem cannot be read: No such file or directory (os error 2)",
        ),
        (
            "[tls]\ncert = \"key.pem\"\nkey = \"cert.pem\"",
            "2: tls.cert: key.pem holds a private key and no certificate; were the two mixed up?",
        ),
        (
            "[tls]\ncert = \"cert.pem\"\nkey = \"tokens.txt\"",
            "3: tls.key: tokens.txt holds no private key; expected PEM, a text with the line -----BEGIN PRIVATE KEY-----",
        ),
        ("[tls]\ncert = 5", "2: tls.cert: expected a string, got 5"),
        ("[[agent]]\nslug = \"x\"", "1: agent[0]: every agent needs a name; add name = \"…\""),
        ("[[agent]]\nname = \" \"", "2: agent[0].name: expected some text, got none"),
        (
            "[[agent]]\nname = \"API\"",
            "2: agent[0].name: \"api\" is reserved: the server has a path of that name; set a slug for this agent",
        ),
        (
            "[[agent]]\nname = \"X\"\nslug = \"v1\"",
            "3: agent[0].slug: \"v1\" is reserved: the server has a path of that name",
        ),
        (
            "[[agent]]\nname = \"A b\"\n[[agent]]\nname = \"a-B\"",
            "4: agent[1].name: the slug \"a-b\" is taken by the agent \"A b\"; set another slug",
        ),
        ("[[agent]]\nname = \"X\"\nkind = \"exec\"", "3: agent[0].kind: an agent of kind \"exec\" needs a command"),
        (
            "[[agent]]\nname = \"X\"\nkind = \"demo\"\ncommand = \"cat\"",
            "4: agent[0].command: only agents of kind \"exec\" have this",
        ),
        ("[[agent]]\nname = \"X\"\nshell = true", "3: agent[0].shell: only agents of kind \"exec\" have this"),
        ("[[agent]]\nname = \"X\"\ncommand = 5", "3: agent[0].command: expected a string, or a list of strings, got 5"),
        (
            "[[agent]]\nname = \"X\"\ncommand = \"a 'b\"",
            "3: agent[0].command: \"a 'b\" has an opening ' without a closing one",
        ),
        (
            "[[agent]]\nname = \"X\"\ncommand = [\"no-such-tool\"]",
            "3: agent[0].command: there is no program \"no-such-tool\" in PATH",
        ),
        (
            "[[agent]]\nname = \"X\"\ncommand = [\"cat\"]\nshell = true",
            "3: agent[0].command: a shell takes the command as one string, not as a list",
        ),
        (
            "[[agent]]\nname = \"X\"\ncommand = \"cat\"\nenv = [\"A2A_TASK_ID\"]",
            "4: agent[0].env: \"A2A_TASK_ID\" cannot be passed on: names that begin with A2A_ describe the message",
        ),
        (
            "[[agent]]\nname = \"X\"\ncommand = \"cat\"\nprocesses_max = 0",
            "4: agent[0].processes_max: expected 1 to 10000 processes, got 0",
        ),
        (
            "[[agent]]\nname = \"X\"\nrun_timeout_s = 0",
            "3: agent[0].run_timeout_s: expected 1 to 604800 seconds, got 0",
        ),
        (
            "[[agent]]\nname = \"X\"\noutput_modes = [\"text\"]",
            "3: agent[0].output_modes: expected a media type, as in text/plain, got \"text\"",
        ),
        (
            "[[agent]]\nname = \"X\"\n[[agent.skill]]\nid = \"s\"\n[[agent.skill]]\nid = \"s\"",
            "6: agent[0].skill[1].id: the id \"s\" is taken by another skill of this agent",
        ),
    ] {
        assert_eq!(without_folder(&refusal(&[], &[], file)), format!("switchboard.toml:{expected}"), "{file}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    for (file, expected) in [
        (
            "[server]\nlisten = \"127.0.0.1:1\"\nlisen = \"127.0.0.1:1\"",
            "3: server.lisen: there is no such setting in [server]; did you mean `listen`?",
        ),
        (
            "[server]\nbanana = 1",
            "2: server.banana: there is no such setting in [server]; docs/configuration.md lists all settings",
        ),
        (
            "[server]\nattempts_max = 3",
            "2: server.attempts_max: there is no such setting in [server]; it belongs to [[agent]]",
        ),
        (
            "[server]\ntokens = \"0123456789abcdef bob\"",
            "2: server.tokens: this cannot stand in the file; use tokens_file, or the variable SWITCHBOARD_TOKENS",
        ),
        ("[sever]\n", "1: sever: there is no such table; did you mean [server]?"),
        ("[agents]\n", "1: agents: there is no such table; did you mean [[agent]]?"),
        ("[metrics]\n", "1: metrics: there is no such table; expected [server], [tls], [[issuer]] or [[agent]]"),
        ("listen = \"127.0.0.1:1\"", "1: listen: it belongs to [server]; put it below that line"),
        ("server = 5", "1: server: expected a table; begin it with the line [server]"),
        ("[agent]\nname = \"X\"", "1: agent: expected a list of tables; begin it with the line [[agent]]"),
        (
            "[[agent]]\nname = \"X\"\n[agent.skill]\nid = \"s\"",
            "3: agent[0].skill: expected a list of tables; begin it with the line [[agent.skill]]",
        ),
        ("[[agent]]\nnme = \"X\"", "2: agent[0].nme: there is no such setting in [[agent]]; did you mean `name`?"),
        (
            "[[agent]]\nname = \"X\"\n[[agent.skill]]\nid = \"s\"\ntag = []",
            "5: agent[0].skill[0].tag: there is no such setting in [[agent.skill]]; did you mean `tags`?",
        ),
    ] {
        assert_eq!(refusal(&[], &[], file), format!("switchboard.toml:{expected}"), "{file}");
    }
}

#[test]
fn one_run_reports_every_mistake_and_no_consequence_of_one() {
    let file = "[server]\nlisten = \"0.0.0.0:80\"\ntoken_file = \"tokens.txt\"\ngrace_s = 9999\n[tls]\ncert = 5\nkey = \"key.pem\"\n\
                [[agent]]\nname = \"A\"\ncommand = \"no-such-tool\"\nrecovery_reason = \"x\"\n[[agent]]\nslug = \"v1\"\n";
    let variables = [("SWITCHBOARD_MEMORY", "maybe"), ("SWITCHBOARD_GRCE", "1")];
    let refused = refusal(&["--run-timeout", "soon", "--tenant", "a/b"], &variables, file);
    let expected = [
        "--run-timeout: expected a whole number, got \"soon\"",
        "SWITCHBOARD_MEMORY: expected true or false, got \"maybe\"",
        "SWITCHBOARD_GRCE: there is no such variable; did you mean SWITCHBOARD_GRACE?",
        "--tenant: expected 1 to 64 letters, digits, '-', '_', '.' or '~', no dot first, got \"a/b\"",
        "switchboard.toml:3: server.token_file: there is no such setting in [server]; did you mean `tokens_file`?",
        "switchboard.toml:4: server.grace_s: expected 0 to 3600 seconds, got 9999",
        "switchboard.toml:6: tls.cert: expected a string, got 5",
        "switchboard.toml:10: agent[0].command: there is no program \"no-such-tool\" in PATH",
        "switchboard.toml:11: agent[0].recovery_reason: this goes with recovery = \"fail\"",
        "switchboard.toml:12: agent[1]: every agent needs a name; add name = \"…\"",
        "switchboard.toml:13: agent[1].slug: \"v1\" is reserved: the server has a path of that name",
    ];
    assert_eq!(refused.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_misspelled_variable_is_refused_and_those_of_others_are_not() {
    let unknown = |name: &str, hint: &str| {
        assert_eq!(refusal(&[], &[(name, "1")], ""), format!("{name}: there is no such variable{hint}"));
    };
    unknown("SWITCHBOARD_LISTN", "; did you mean SWITCHBOARD_LISTEN?");
    unknown("SWITCHBOARD_TOKENFILE", "; did you mean SWITCHBOARD_TOKENS_FILE?");
    unknown("SWITCHBOARD_CONFG", "; did you mean SWITCHBOARD_CONFIG?");
    unknown("SWITCHBOARD_SOMETHING_ELSE_ALTOGETHER", "");
    let others = [
        ("SWITCHBOARD_TOKEN", "0123456789abcdef"),
        ("SWITCHBOARD_TEST_LONG", "1"),
        ("SWITCHBOARD_NOTHING", ""),
        ("SWITCHBOARDING", "1"),
        // What Kubernetes tells every container about a service called `switchboard`.
        ("SWITCHBOARD_SERVICE_HOST", "10.0.0.7"),
        ("SWITCHBOARD_SERVICE_PORT", "8080"),
        ("SWITCHBOARD_SERVICE_PORT_HTTP", "8080"),
        ("SWITCHBOARD_PORT", "tcp://10.0.0.7:8080"),
        ("SWITCHBOARD_PORT_8080_TCP", "tcp://10.0.0.7:8080"),
        ("SWITCHBOARD_PORT_8080_TCP_ADDR", "10.0.0.7"),
    ];
    assert!(super::load(&[], &others, "").is_ok());
}

#[test]
fn broken_toml_is_refused_with_its_line() {
    let refused = refusal(&[], &[], "[server]\nlisten = \n");
    assert_eq!(refused, "switchboard.toml:2: string values must be quoted, expected literal string");
    let refused = refusal(&[], &[], "[server]\nmemory = true\nmemory = true\n");
    assert_eq!(refused, "switchboard.toml:3: duplicate key");
}

#[test]
fn wrong_flags_and_variables_are_refused_by_name() {
    for (flags, variables, expected) in [
        (
            &["--public-url", "ftp://x"][..],
            &[][..],
            "--public-url: expected a URL that begins with http:// or https:// and names a host, got \"ftp://x\"",
        ),
        (&["--exec", "no-such-tool -x"], &[], "--exec: there is no program \"no-such-tool\" in PATH"),
        (&["--exec", ""], &[], "--exec: the command is empty"),
        (&["--exec-shell"], &[], "--exec-shell: there is no --exec to go with it"),
        (&["--name", ""], &[], "--name: expected some text, got none"),
        (&["--tenant", "metrics"], &[], "--tenant: \"metrics\" is reserved: the server has a path of that name"),
        (
            &["--tenant", "acme", "--tokens", "tokens.txt"],
            &[],
            "--tenant: these are the tenants of callers without a token, and there are tokens; name them in the tokens' lines",
        ),
        (&["--run-timeout", "0"], &[], "--run-timeout: expected 1 to 604800 seconds, got 0"),
        (&["--tokens", "none.txt"], &[], "--tokens: none.txt cannot be read: No such file or directory (os error 2)"),
        (&["--config", "none.toml"], &[], "--config: none.toml cannot be read: No such file or directory (os error 2)"),
        (&[], &[("SWITCHBOARD_MEMORY", "maybe")], "SWITCHBOARD_MEMORY: expected true or false, got \"maybe\""),
        (&[], &[("SWITCHBOARD_GRACE", "1.5")], "SWITCHBOARD_GRACE: expected a whole number, got \"1.5\""),
        (&[], &[("SWITCHBOARD_LOG_FORMAT", "xml")], "SWITCHBOARD_LOG_FORMAT: expected text or json, got \"xml\""),
        (
            &[],
            &[("SWITCHBOARD_TOKENS", "# nothing")],
            "SWITCHBOARD_TOKENS: no token in it; expected lines of TOKEN PRINCIPAL [TENANT,TENANT] [+operator]",
        ),
        (
            &[],
            &[("SWITCHBOARD_TOKENS", "short bob")],
            "SWITCHBOARD_TOKENS: line 1: the token is shorter than 16 characters; use a long random one",
        ),
    ] {
        assert_eq!(refusal(flags, variables, ""), expected);
    }
}

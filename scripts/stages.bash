# Runs the stages of a script, one line each:
#
#     [ 12 s] doctests … ok
#
# A stage is a title and a command. Its output is kept, and shown whole if it fails; the script goes on and
# `stages_end` tells the outcome and leaves. What cargo's test runner reported is listed below the stage and summed at the end.
# Sourced by scripts/test and .ci/run, which have moved to the root of the workspace before.

stage_logs=$(mktemp -d)
trap 'rm -rf "$stage_logs"' EXIT
stage_count=0
stages_failed=()
# Failed stages in which no test failed, such as a build: each counts as one failure in the sum.
stages_broken=0
# The status of a stage that could not be run here. Its last line says why. It does not count as a failure.
NOT_RUN=77

[[ -t 1 ]] || export CARGO_TERM_COLOR=never

# stage TITLE COMMAND…   runs the command and notes how it went. Call it plainly, not in an `if` or before `||`: there,
# bash no longer stops a command of several lines at the first that fails.
stage() {
    local title=$1 started=$SECONDS status=0 log
    shift
    stage_count=$((stage_count + 1))
    log=$stage_logs/$stage_count
    [[ -t 1 ]] && printf '[  …  ] %s …' "$title"
    set +e
    (set -e; "$@") >"$log" 2>&1
    status=$?
    set -e
    [[ -t 1 ]] && printf '\r\033[K'
    if ((status == 0)); then
        printf '[%3d s] %s … ok\n' $((SECONDS - started)) "$title"
        test_results "$log"
    elif ((status == NOT_RUN)); then
        printf '[%3d s] %s … NOT RUN: %s\n' $((SECONDS - started)) "$title" "$(tail -n 1 "$log")"
    else
        printf '[%3d s] %s … FAILED\n' $((SECONDS - started)) "$title"
        stages_failed+=("$title")
        grep -qE '^test result:.* [1-9][0-9]* failed;' "$log" || stages_broken=$((stages_broken + 1))
        printf '%s\n' "---- output of: $title"
        cat "$log"
        printf '%s\n' "---- end of output"
        test_results "$log"
    fi
}

# One line for each test binary that ran something, then the seeds that random tests printed.
test_results() {
    awk '
        /^ +Running .*\(.*\)$/  { name = $0; sub(/.*[\/\\]/, "", name); sub(/-[0-9a-f]+(\.exe)?\)$/, "", name) }
        /^ +Doc-tests /         { name = $2 " (doc)" }
        /^ +(Client|Server|Relay) /   { name = $2 }
        /^test result:/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed/) passed = $(i - 1)
                if ($i ~ /^failed/) failed = $(i - 1)
                if ($i ~ /^ignored/) ignored = $(i - 1)
            }
            if (passed + failed + ignored > 0)
                printf "        %-28s %5d passed, %d failed%s, %s\n", name, passed, failed,
                    (ignored > 0 ? ", " ignored " ignored" : ""), $NF
        }
        /^(seed|SEED)[ =:]/ && !seen[$0]++ { seeds[++count] = $0 }
        END { for (i = 1; i <= count; i++) print "        " seeds[i] }
    ' "$1"
}

# What each failed test printed, its last forty lines, once more: the whole output of a stage is too long to be searched.
failed_tests() {
    awk '
        /^failures:$/                 { show(); inside = 1; next }
        /^successes:$|^test result:/  { if (inside) show(); inside = 0 }
        !inside                       { next }
        /^---- .* stdout ----$/       { show(); title = $0; next }
        /^    [^ ]+$/ && title == ""  { next }
        title != ""                   { lines[++count] = $0 }
        function show(    i) {
            if (title != "") {
                print title
                for (i = (count > 40 ? count - 39 : 1); i <= count; i++) print lines[i]
            }
            title = ""; count = 0
        }
    ' "$stage_logs"/*
}

# Tells the outcome, sums up all tests in the last line, and leaves.
stages_end() {
    echo
    if ((${#stages_failed[@]} > 0)); then
        printf 'failed: %s\n' "${stages_failed[@]}"
        failed_tests
    else
        printf 'all is well after %d s\n' "$SECONDS"
    fi
    cat "$stage_logs"/* | awk -v broken="$stages_broken" '
        /^test result:/ {
            for (i = 2; i <= NF; i++) {
                if ($i ~ /^passed/) passed += $(i - 1)
                if ($i ~ /^failed/) failed += $(i - 1)
            }
        }
        END { printf "%d passed, %d failed\n", passed, failed + broken }
    '
    exit $((${#stages_failed[@]} > 0))
}

# need COMMAND HOW-TO-GET-IT   leaves with a clear word if the command is not there.
need() {
    command -v "$1" >/dev/null && return
    printf '%s is missing. %s\n' "$1" "$2" >&2
    exit 1
}

need_toolchain() {
    need cargo 'Install Rust from https://rustup.rs, open a new shell, and run this again.'
    if ! command -v "${CC:-cc}" >/dev/null; then
        need gcc 'SQLite and the cryptography are compiled from C. Install a C compiler (Debian and Ubuntu: apt install build-essential; Fedora: dnf install gcc; macOS: xcode-select --install) and run this again.'
    fi
}

# Fetches a Python with its venv module by the system's package manager, if it is not there and this is allowed. What
# is still missing then is reported by the stage that needs it.
fetch_python() {
    python3 -c 'import venv, ensurepip' 2>/dev/null && return
    install 'python3 python3-venv' 'python3 python3-pip' 'python3 py3-pip' 'python'
}

# Fetches strace, with which system calls of a server are made to fail. It exists on Linux alone.
fetch_strace() {
    [[ $(uname) != Linux ]] || command -v strace >/dev/null || install strace strace strace ''
}

# Fetches PostgreSQL, which tests start. If it cannot be had, they say so and fail.
fetch_postgres() {
    [[ -n ${SWITCHBOARD_TEST_POSTGRES-} ]] || command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
        install postgresql postgresql-server postgresql postgresql
}

# Fetches NATS, which carries hints between servers in some tests. If it cannot be had, they say so and fail.
fetch_nats() {
    [[ -n ${SWITCHBOARD_TEST_NATS-} ]] || command -v nats-server >/dev/null || [[ -x /usr/sbin/nats-server ]] ||
        install nats-server '' nats-server nats-server
}

# Makes clocks of servers wrong; without it they are right, which the tests say.
fetch_faketime() {
    compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || install libfaketime libfaketime libfaketime ''
}

# install APT-NAMES DNF-NAMES APK-NAMES BREW-NAMES   installs packages where this is allowed.
install() {
    local as_root=()
    if ((EUID != 0)) && ! command -v brew >/dev/null; then
        as_root=(sudo -n)
        "${as_root[@]}" true 2>/dev/null || return 0
    fi
    # The names are lists: they are split on purpose.
    # shellcheck disable=SC2086
    if command -v apt-get >/dev/null; then
        "${as_root[@]}" apt-get update -q && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy $1
    elif command -v dnf >/dev/null; then
        "${as_root[@]}" dnf install -qy $2
    elif command -v apk >/dev/null; then
        "${as_root[@]}" apk add -q $3
    elif command -v brew >/dev/null; then
        brew install --quiet $4
    fi
}

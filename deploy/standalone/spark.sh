#!/bin/sh
# A Spark standalone cluster from the PySpark that Kelda is installed with: no other download.
#
#   spark.sh secret                              make the secret that all machines share, and say where it is
#   spark.sh conf FOLDER                         write spark-defaults.conf with it there, for the driver
#   spark.sh start master                        on one machine
#   spark.sh start worker spark://HOST:7077      on each machine that is to work
#   spark.sh stop  master|worker
#   spark.sh run   master|worker [URL]           in the foreground, for systemd or a terminal
#   spark.sh status
#
# Whoever can speak to Spark can run programs as its user. So nobody is spoken to who does not have the secret,
# and what is said is encrypted (spark.authenticate, spark.network.crypto.enabled). Make the secret on one
# machine, and copy the file to the same place on the others, readable by that user alone.
#
# Settings, by the environment:
#   PYTHON         the interpreter that Kelda is installed in          (python3)
#   SPARK_HOST     the name or address to listen at                    (127.0.0.1)
#   SPARK_PORT     of the master                                       (7077)
#   WORKER_CORES   cores that a worker gives away                      (all)
#   WORKER_MEMORY  memory that it gives away to JVMs, such as 4g       (all but 1 GB)
#   KELDA_RUN      where logs, process ids and scratch files are       (~/.local/state/kelda/spark)
#   KELDA_SECRET   the file with the secret                            ($KELDA_RUN/secret)
set -eu
umask 077

PYTHON=${PYTHON:-python3}
SPARK_HOST=${SPARK_HOST:-127.0.0.1}
SPARK_PORT=${SPARK_PORT:-7077}
KELDA_RUN=${KELDA_RUN:-${XDG_STATE_HOME:-${HOME:?set KELDA_RUN}/.local/state}/kelda/spark}
KELDA_SECRET=${KELDA_SECRET:-$KELDA_RUN/secret}

usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ $# -ge 1 ] || usage

fail() { echo "error: $*" >&2; exit 1; }

ours() { # folder: makes it, for this user alone; refuses one that somebody else has made
    mkdir -p "$1"
    [ ! -L "$1" ] && [ -O "$1" ] ||
        fail "$1 is a link or belongs to another user; set KELDA_RUN to a folder of your own"
    chmod 700 "$1"
}

secret() { # makes the secret, if there is none
    ours "$KELDA_RUN"
    if [ ! -e "$KELDA_SECRET" ]; then
        made=$(mktemp "$KELDA_SECRET.XXXXXX")
        head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$made"
        ln "$made" "$KELDA_SECRET" 2>/dev/null || true # somebody may have been faster: his holds
        rm -f "$made"
    fi
    echo "the secret is in $KELDA_SECRET; copy it to the other machines"
}

read_secret() { # into SECRET
    [ -s "$KELDA_SECRET" ] || fail "there is no secret in $KELDA_SECRET: copy it from the master's machine, where" \
        "'$0 secret' makes it"
    [ -O "$KELDA_SECRET" ] || fail "$KELDA_SECRET belongs to another user"
    [ -z "$(find "$KELDA_SECRET" -perm /077)" ] || fail "others can read $KELDA_SECRET: chmod 600 it, after making" \
        "another if they may have"
    SECRET=$(cat "$KELDA_SECRET")
}

conf() { # folder
    read_secret
    mkdir -p "$1"
    part=$(mktemp "$1/.spark-defaults.XXXXXX")
    cat "$(dirname "$0")/spark-defaults.conf" >"$part"
    printf '\nspark.authenticate.secret         %s\n' "$SECRET" >>"$part"
    mv "$part" "$1/spark-defaults.conf"
    echo "$1/spark-defaults.conf is written, for this user alone"
}

case $1 in
secret) secret; exit ;;
conf) [ $# -eq 2 ] || usage; conf "$2"; exit ;;
esac

SPARK_HOME=$("$PYTHON" -c 'import pathlib, pyspark; print(pathlib.Path(pyspark.__file__).parent)') || {
    echo "error: $PYTHON has no PySpark; set PYTHON to the interpreter that Kelda is installed in" >&2
    exit 1
}
SPARK_LOCAL_IP=$SPARK_HOST
SPARK_LOCAL_DIRS=${SPARK_LOCAL_DIRS:-$KELDA_RUN/local}
SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-512m}
# Executors whose application has ended leave their folders; a worker clears them away after a day.
SPARK_WORKER_OPTS=${SPARK_WORKER_OPTS:-"-Dspark.worker.cleanup.enabled=true -Dspark.worker.cleanup.appDataTtl=86400"}
export SPARK_HOME SPARK_LOCAL_IP SPARK_LOCAL_DIRS SPARK_DAEMON_MEMORY SPARK_WORKER_OPTS

run() { # kind [url]
    ours "$KELDA_RUN"
    mkdir -p "$SPARK_LOCAL_DIRS"
    [ "$1" != master ] || secret
    read_secret
    # By the environment, which only this user can look at; arguments everybody sees.
    _SPARK_AUTH_SECRET=$SECRET
    SPARK_DAEMON_JAVA_OPTS="${SPARK_DAEMON_JAVA_OPTS:-} -Dspark.authenticate=true -Dspark.network.crypto.enabled=true"
    export _SPARK_AUTH_SECRET SPARK_DAEMON_JAVA_OPTS
    case $1 in
    master)
        exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.master.Master \
            --host "$SPARK_HOST" --port "$SPARK_PORT" --webui-port "${SPARK_WEBUI_PORT:-0}"
        ;;
    worker)
        [ -n "${2:-}" ] || usage
        exec "$SPARK_HOME/bin/spark-class" org.apache.spark.deploy.worker.Worker \
            --host "$SPARK_HOST" --webui-port "${SPARK_WEBUI_PORT:-0}" --work-dir "$KELDA_RUN/work" \
            ${WORKER_CORES:+--cores "$WORKER_CORES"} ${WORKER_MEMORY:+--memory "$WORKER_MEMORY"} "$2"
        ;;
    *) usage ;;
    esac
}

pid_of() { # kind: the id of its process, if it runs
    [ -f "$KELDA_RUN/$1.pid" ] || return 1
    pid=$(cat "$KELDA_RUN/$1.pid")
    kill -0 "$pid" 2>/dev/null || return 1
    echo "$pid"
}

start() { # kind [url]
    if pid=$(pid_of "$1"); then
        echo "$1 runs already (process $pid)"
        return
    fi
    ours "$KELDA_RUN"
    [ "$1" = master ] || read_secret
    log=$KELDA_RUN/$1.log
    nohup "$0" run "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    echo "$pid" >"$KELDA_RUN/$1.pid"
    case $1 in master) up="Starting Spark master at" ;; *) up="Successfully registered with master" ;; esac
    tries=0
    until grep -q "$up" "$log"; do
        tries=$((tries + 1))
        if ! kill -0 "$pid" 2>/dev/null || [ "$tries" -gt 600 ]; then
            tail -n 5 "$log" >&2
            echo "error: the $1 did not come up; its log is $log" >&2
            exit 1
        fi
        sleep 0.2
    done
    echo "$1 is up (process $pid, log $log)"
    [ "$1" = worker ] || echo "workers join with: $0 start worker spark://$SPARK_HOST:$SPARK_PORT"
}

stop() { # kind
    if ! pid=$(pid_of "$1"); then
        echo "no $1 runs here"
        rm -f "$KELDA_RUN/$1.pid"
        return
    fi
    kill "$pid"
    tries=0
    while kill -0 "$pid" 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -le 150 ] || { echo "error: $1 (process $pid) does not end" >&2; exit 1; }
        sleep 0.2
    done
    rm -f "$KELDA_RUN/$1.pid"
    echo "$1 stopped"
}

status() {
    for kind in master worker; do
        if pid=$(pid_of "$kind"); then echo "$kind: process $pid"; else echo "$kind: not running"; fi
    done
}

command=$1
shift
case $command in
start | run) [ $# -ge 1 ] || usage; "$command" "$@" ;;
stop) [ $# -eq 1 ] || usage; stop "$1" ;;
status) status ;;
*) usage ;;
esac

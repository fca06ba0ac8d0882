#!/usr/bin/env bash
# Two hosts on one machine: two network namespaces with a cable (veth) between them and host names of their own, and one
# training run over both by mpirun's TCP.
#
#   tools/two_hosts.sh BINARY [CASE...]
#
#   same     two ranks on two hosts give the bits of two ranks on one
#   blink    the cable is pulled and put back before engine.timeout: the run goes on, to the same bits
#   cut      the cable stays pulled: all ranks end and one says why; with the cable back, the run is resumed
#   kill     everything on the second host is killed: the job ends; the run is resumed
#
# Needs root (network namespaces), `ip` (Debian: iproute2) and mpirun. Where one is missing it says so and exits with 77.
set -euo pipefail

say() { printf 'two_hosts: %s\n' "$*"; }
fail() {
  say "FAILED: $*" >&2
  for log in "$work"/*.log; do
    [ ! -s "$log" ] || { echo "--- ${log##*/}" && tail -n 20 "$log"; } >&2
  done
  exit 1
}
skip() {
  say "skipped: $*"
  exit 77
}

[ $# -ge 1 ] || { sed -n '2,13s/^# \{0,1\}//p' "$0" && exit 2; }
binary=$(realpath "$1")
shift
cases=("$@")
[ ${#cases[@]} -gt 0 ] || cases=(same blink cut kill)
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# --- The hosts -----------------------------------------------------------------------------------------------------

first=siamese-a-$$ second=siamese-b-$$ # network namespaces
cable_a=sa$$ cable_b=sb$$
address_a=10.213.77.1 address_b=10.213.77.2 network=10.213.77.0/30

for tool in ip mpirun unshare setsid; do
  command -v "$tool" >/dev/null || skip "no \`$tool\` on this machine"
done
[ -x "$binary" ] || skip "no such program: $binary"
why=$(ip netns add "$first" 2>&1) || skip "network namespaces cannot be made here (root is needed): $why"
work=$(mktemp -d)

processes() { # of both hosts
  ip netns pids "$first" 2>/dev/null || true
  ip netns pids "$second" 2>/dev/null || true
}
clean_up() {
  local left
  left=$(processes)
  # shellcheck disable=SC2086
  [ -z "$left" ] || kill -9 $left 2>/dev/null || true
  ip netns del "$second" 2>/dev/null || true
  ip netns del "$first" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

ip netns add "$second"
why=$(ip link add "$cable_a" netns "$first" type veth peer name "$cable_b" netns "$second" 2>&1) ||
  skip "no cable between the namespaces (veth): $why"
ip -n "$first" address add "$address_a/30" dev "$cable_a"
ip -n "$second" address add "$address_b/30" dev "$cable_b"
for host in "$first" "$second"; do
  ip -n "$host" link set lo up
  # mpirun and its daemons learn from TCP alone that a host is gone: after 15 minutes, unless they are told otherwise
  # here (what was sent and not answered) and by the keepalives below (where nothing was to be sent).
  ip netns exec "$host" sh -c 'echo 4 >/proc/sys/net/ipv4/tcp_retries2'
done
ip -n "$first" link set "$cable_a" up
plug() { ip -n "$second" link set "$cable_b" up; }
pull() { ip -n "$second" link set "$cable_b" down; }
plug

# --- Runs ----------------------------------------------------------------------------------------------------------

cd "$work"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_WAIT_POLICY=passive

# What ssh would be: mpirun calls it with the other host and the command that is to run there.
cat >enter <<END
#!/bin/sh
shift
exec ip netns exec $second unshare --uts sh -c "hostname node-b; exec \$*"
END
chmod +x enter

on_two_hosts() {
  setsid ip netns exec "$first" unshare --uts sh -c 'hostname node-a; exec "$@"' sh \
    mpirun --mca plm_rsh_agent "$work/enter" --mca btl tcp,self --mca btl_tcp_if_include "$network" \
    --mca oob_tcp_if_include "$network" --mca oob_tcp_keepalive_time 4 --mca oob_tcp_keepalive_intvl 1 \
    --mca oob_tcp_keepalive_probes 3 --bind-to none --host "$address_a:1,$address_b:1" -n 2 "$@"
}
on_one_host() { mpirun --oversubscribe --bind-to none -n 2 "$@"; }

train=("$binary" train "$root/tests/cli/tiny.yaml" train.micro_batch=1 --quiet)

# Waits until a command succeeds; the limit is only for machines that hang.
await() {
  local what=$1 left=3000
  shift
  until "$@"; do
    left=$((left - 1))
    [ "$left" -gt 0 ] || fail "waited in vain: $what"
    sleep 0.1
  done
}
saved_step() { sed 's/step//' "$1/latest"; }
steps_of() { wc -l 2>/dev/null <"$1/metrics.jsonl" || echo 0; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }
is_past_or_ended() { [ "$(steps_of "$1")" -gt "$2" ] || has_ended "$job"; }

# A run without end in the background: $job. It has saved step 2 and saves no more: ranks wait for a save without a limit,
# so that what happens to the cable happens inside a step.
start() {
  on_two_hosts "${train[@]}" train.steps=2 --out "$1" >"$1.log" 2>&1 </dev/null || fail "$1: two steps on two hosts"
  on_two_hosts "$binary" resume "$1" train.steps=1000000 train.checkpoint_every=0 train.eval_every=0 --quiet "${@:2}" \
    >"$1.log" 2>&1 </dev/null &
  job=$!
  await "further steps of $1" is_past_or_ended "$1" 4
  has_ended "$job" && fail "$1 ended by itself"
  return 0
}

# Its exit code: $code.
await_end() {
  await "the end of $1" has_ended "$job"
  code=0
  wait "$job" || code=$?
}
no_process_is_left() { [ -z "$(processes)" ]; }

# Weights and moments, as many files as there are.
expect_same_bits() {
  local file
  for file in "$1"/step6/*.safetensors; do
    cmp "$file" "$2/step6/${file##*/}" || fail "$1 and $2 differ in ${file##*/}"
  done
}
# The run goes on from its last checkpoint, on two hosts.
expect_resumable() {
  local step
  step=$(saved_step "$1")
  on_two_hosts "$binary" resume "$1" "train.steps=$((step + 2))" --quiet >"$1-resumed.log" 2>&1 </dev/null ||
    fail "$1 was not resumed from step $step"
  [ "$(saved_step "$1")" -eq $((step + 2)) ] || fail "$1 was resumed and is at step $(saved_step "$1")"
}

# --- Cases ---------------------------------------------------------------------------------------------------------

case_same() {
  on_one_host "${train[@]}" --out one >one.log 2>&1 </dev/null || fail "two ranks on one host"
  on_two_hosts "${train[@]}" --out two >two.log 2>&1 </dev/null || fail "two ranks on two hosts"
  expect_same_bits one two
}

case_blink() {
  start blink engine.timeout=120
  pull
  local before
  before=$(steps_of blink)
  plug
  await "a step after the cable was put back" is_past_or_ended blink $((before + 2))
  has_ended "$job" && fail "the run did not outlive a cable that was pulled for a moment"
  # shellcheck disable=SC2046
  kill -USR1 $(ip netns pids "$second" | while read -r id; do
    [ "$(readlink "/proc/$id/exe")" != "$binary" ] || echo "$id"
  done)
  await_end blink
  [ "$code" -eq 138 ] || fail "after SIGUSR1: expected exit code 138, got $code"
  expect_resumable blink
}

case_cut() {
  start cut engine.timeout=2
  pull
  await_end cut
  [ "$code" -ne 0 ] || fail "the job ended with 0"
  grep -q '^siamese: rank 0 on node-a: .*engine.timeout' cut.log || fail "no line says that nobody answered rank 0"
  # Rank 1 waits for orders and cannot be told: its daemon ends it, which misses mpirun.
  await "the second host ends its rank" no_process_is_left
  plug
  expect_resumable cut
}

case_kill() {
  start kill engine.timeout=60
  # shellcheck disable=SC2046
  kill -9 $(ip netns pids "$second")
  await_end kill
  [ "$code" -ne 0 ] || fail "the job ended with 0"
  await "the ranks on the first host end" no_process_is_left
  expect_resumable kill
}

for name in "${cases[@]}"; do
  declare -F "case_$name" >/dev/null || { say "no such case: $name" >&2 && exit 2; }
  "case_$name"
  await "all processes of the case $name end" no_process_is_left
  say "$name: ok"
done

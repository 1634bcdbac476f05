#!/usr/bin/env bash
# Runs t5x commands on a Cloud TPU slice. Step by step: docs/launch.md.
#
#   launch/tpu_vm.sh COMMAND SLICE [OPTIONS] \
#     [-- python -m t5x.train --gin_file=FILE.gin ...]
#
# COMMAND
#   create   create the slice, which costs money until `delete`
#   setup    copy this repository's HEAD to every worker and install it; rerun it
#            to update
#   run      run the command after -- on every worker; its log is shown here and
#            saved to runs/launch/NAME.log. The run continues if this machine
#            sleeps; `logs` follows it again
#   all      create, setup, run
#   logs     follow the log of the run
#   stop     send SIGTERM to the run: t5x saves and exits
#   fetch    copy --from gs://BUCKET/FOLDER (or a path on the first worker)
#            --to FOLDER
#   status   print the state of the slice and of the run
#   delete   delete the slice (asks first), never a bucket
# SLICE      v3-8 v3-32 v4-8 v4-32 v5e-4 v5e-8 v5e-32 v6e-4
# OPTIONS
#   --project ID, --zone ZONE   default: those of `gcloud config`; --dry-run needs
#                    both, or CLOUDSDK_CORE_PROJECT and CLOUDSDK_COMPUTE_ZONE
#   --name NAME      default: sgdx-SLICE
#   --spot           cheaper, but can be preempted at any time. `run` and `all`
#                    then delete the remains of the slice, create it again and
#                    restart the command, which resumes from its MODEL_DIR
#   --restarts N     maximum number of restarts (default 20)
#   --queued         wait in Google's queue instead of failing when there is no
#                    capacity
#   --wait HOURS     maximum time in the queue (default 24)
#   --t5x google     use Google's T5X instead of t5x_lite
#   --repo URL       clone this repository on the workers instead of copying HEAD
#   --yes            delete without asking
#   --dry-run        print the commands without running them
#
# Exit codes: 0 ok, 1 failed, 2 usage error, 129, 130 or 143 interrupted.
set -euo pipefail
cd "$(dirname "$0")/.."
source launch/common.sh

slices=(v3-8 v3-32 v4-8 v4-32 v5e-4 v5e-8 v5e-32 v6e-4)
commands=(create setup run all logs stop fetch status delete)
poll="${LAUNCH_POLL_SECONDS:-30}"
attempts=4  # for transient failures: no capacity, no connection

# --- the command line ------------------------------------------------------------------------

# Zones: cloud.google.com/tpu/docs/regions-zones; runtimes: cloud.google.com/tpu/docs/runtimes.
describe_slice() {
  multi_host="" accelerator="$slice" runtime=tpu-ubuntu2204-base
  case "$slice" in
    v3-8) quota="TPU v3" zones="us-central1-a us-central1-b europe-west4-a" ;;
    v3-32) quota="TPU v3 pod" zones="europe-west4-a" ;;
    v4-*) quota="TPU v4" zones="us-central2-b" ;;
    v5e-*)
      accelerator="v5litepod-${slice#v5e-}" runtime=v2-alpha-tpuv5-lite quota="TPU v5e (v5 lite)"
      zones="us-central1-a us-south1-a us-west1-c us-west4-a europe-west4-b" ;;
    v6e-*)
      runtime=v2-alpha-tpuv6e quota="TPU v6e"
      zones="us-central1-b us-east1-d us-east5-a us-east5-b europe-west4-a" ;;
  esac
  case "$slice" in *-32) multi_host=yes ;; esac
}

parse() {
  action="${1:-}" slice="${2:-}" name="" project="" zone="" spot="" queued=""
  restarts=20 wait_hours=24 engine=lite repository="" from="" to="" yes="" program=()
  case "$action" in
    -h | --help) usage "$0"; exit ;;
    "") usage "$0" >&2; exit 2 ;;
  esac
  [[ " ${commands[*]} " == *" $action "* ]] || fail 2 "$action is not a command" \
    "a command of $0" "${commands[*]}" "$0 --help"
  [[ -n "$slice" && " ${slices[*]} " == *" $slice "* ]] ||
    fail 2 "slice ${slice:-(none given)} is unknown" "a type of TPU and its number of cores" \
      "${slices[*]}" "$0 $action ${slices[0]} ..."
  describe_slice
  shift 2
  while [ $# -gt 0 ]; do
    case "$1" in --?*=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
    case "$1" in
      --spot) spot=yes ;;
      --queued) queued=yes ;;
      --yes) yes=yes ;;
      --dry-run) dry_run=yes ;;
      --) shift; program=("$@"); break ;;
      --name | --project | --zone | --restarts | --wait | --t5x | --repo | --from | --to)
        value_of "$1" $#
        case "$1" in
          --name) name="$2" ;;
          --project) project="$2" ;;
          --zone) zone="$2" ;;
          --restarts) restarts="$2" ;;
          --wait) wait_hours="$2" ;;
          --t5x) engine="$2" ;;
          --repo) repository="$2" ;;
          --from) from="$2" ;;
          --to) to="$2" ;;
        esac
        shift ;;
      *) fail 2 "$1 is not an option" "an option of $0, the command to run after --" \
        "--name --project --zone --spot --queued --restarts --wait --t5x --repo --from --to --yes --dry-run" \
        "$0 --help" ;;
    esac
    shift
  done
  name="${name:-sgdx-$slice}"
}

check_values() {
  local number
  for number in "$restarts" "$wait_hours"; do
    [[ "$number" =~ ^[0-9]+$ ]] ||
      fail 2 "$number is not a whole number" "--restarts 20, --wait 24" "$number" "$0 --help"
  done
  restarts="$((10#$restarts))" wait_hours="$((10#$wait_hours))"  # 08 is not an octal number
  [[ "$name" =~ ^[a-z]([-a-z0-9]{0,60}[a-z0-9])?$ ]] || fail 2 "--name $name" \
    "lowercase letters, digits and -, starting with a letter" "$name" "--name sgdx-$slice"
  case "$engine" in lite | google) ;; *) fail 2 "--t5x $engine is unknown" "lite or google" \
    "t5x_lite, Google's T5X" "--t5x google" ;; esac
  case "$action" in
    run | all) check_program ;;
    fetch) [ "${from:+a}${to:+b}" = ab ] || fail 2 "fetch needs --from and --to" \
      "--from gs://BUCKET/FOLDER --to FOLDER" "--from ${from:-(none)}, --to ${to:-(none)}" \
      "$0 fetch $slice --from gs://BUCKET/t5dst --to runs/t5dst" ;;
  esac
}

# Rejects commands that would fail on the slice, after paid minutes.
check_program() {
  check_command ${program[@]+"${program[@]}"}
  local file macro folder folders
  search_paths "${program[@]}"
  while IFS= read -r file; do
    case "$file" in t5x/* | gs://*) continue ;; esac
    [ -n "$repository" ] || in_head "$file" ${folders[@]+"${folders[@]}"} || fail 2 \
      "--gin_file=$file is not in HEAD, which is copied to the workers" \
      "a committed file, by its path in the repository" \
      "$(git status --short -- "$file" 2>/dev/null || echo "outside the repository")" \
      "commit it"
  done < <(values_of --gin_file "${program[@]}")
  [ -n "$multi_host$spot" ] || return 0
  for macro in MODEL_DIR EVAL_OUTPUT_DIR INFER_OUTPUT_DIR; do
    folder="$(binding_of "$macro" "${program[@]}")"
    case "$folder" in
      "" | gs://*) ;;
      *) fail 2 "$macro is $folder" "gs://BUCKET/FOLDER: $(
          if [ -n "$multi_host" ]; then echo "$slice has several hosts, which share no disk"
          else echo "a spot slice loses its disk when it is preempted"; fi)" \
        "buckets: gcloud storage ls" "--gin.$macro=\"'gs://BUCKET/${folder##*/}'\"" ;;
    esac
  done
}

# in_head FILE FOLDER...: whether the file is committed, by its path or in one of the folders.
in_head() {
  local folder
  for folder in . "${@:2}"; do
    folder="${folder#./}"
    ! git cat-file -e "HEAD:./$folder/$1" 2>/dev/null || return 0
  done
  return 1
}

check_cloud() {
  project="${project:-${CLOUDSDK_CORE_PROJECT:-}}" zone="${zone:-${CLOUDSDK_COMPUTE_ZONE:-}}"
  if [ -z "$dry_run" ]; then
    command -v gcloud >/dev/null || fail 1 "gcloud is not on PATH" "the Google Cloud CLI" "$PATH" \
      "install it: https://cloud.google.com/sdk/docs/install, then gcloud init"
    project="${project:-$(gcloud config get-value project 2>/dev/null || true)}"
    zone="${zone:-$(gcloud config get-value compute/zone 2>/dev/null || true)}"
  fi
  local asked="gcloud's configuration"
  [ -z "$dry_run" ] || asked="the environment (--dry-run does not ask gcloud)"
  [ -n "$project" ] || fail 2 "no project" "--project ID, or one in $asked" \
    "those that \`gcloud projects list\` prints" "pass --project ID"
  [ -n "$zone" ] || fail 2 "no zone" "--zone ZONE, or one in $asked" "zones with $slice: $zones" \
    "--zone ${zones%% *}"
  [[ " $zones " == *" $zone "* ]] || note "when this was written, $slice was offered in $zones," \
    "not in $zone: see https://cloud.google.com/tpu/docs/regions-zones"
  where=(--project="$project" --zone="$zone")
  again=("$slice" --name "$name" "${where[@]}")
}

# --- calls -----------------------------------------------------------------------------------

log=runs/launch/tpu_vm.log
output=""

# Runs a command, prints its output and appends it to the log; sets `output` to the last 40 lines.
attempt() {
  if [ -n "$dry_run" ]; then quoted "$@"; return; fi
  local before status=0
  before="$(wc -c < "$log")"
  "$@" < /dev/null 2>&1 | tee -a "$log" || status=$?
  output="$(tail -c "+$((before + 1))" "$log" | tail -n 40)"
  return "$status"
}

on_workers() {
  attempt gcloud compute tpus tpu-vm ssh "$name" "${where[@]}" --worker=all --quiet --command="$1"
}

# ask KIND FIELD: sets `answer` to a field of the slice or its queued request, NONE if it does not
# exist. Retries transient failures, so that a run of days survives a broken connection.
ask() {
  local try
  for ((try = 1; ; try++)); do
    if answer="$(gcloud compute tpus "$1" describe "$name" "${where[@]}" \
      --format="value($2)" 2>&1)"; then
      answer="${answer##*$'\n'}"
      return
    fi
    case "$answer" in
      *NOT_FOUND* | *"not found"*) answer=NONE; return ;;
      *PERMISSION_DENIED* | *redentials* | *"auth login"*) explain "$answer" ;;
    esac
    [ "$try" -lt "$attempts" ] || explain "$answer"
    pause "$try"
  done
}
look() { ask tpu-vm state; state="$answer"; }  # READY, PREEMPTED, ...
look_at_queue() { ask queued-resources state.state; queue="$answer"; }  # ACTIVE, SUSPENDED, ...

# Whether the slice was preempted. After a failure its state may take a minute to show it.
preempted() {
  local try
  for try in 1 2 3; do
    look
    look_at_queue
    [ "$queue" = NONE ] || queued=yes  # so that it is recreated the same way
    case "$queue" in SUSPENDING | SUSPENDED) state="$queue" ;; esac
    case "$state" in
      PREEMPTED | TERMINATED | SUSPENDING | SUSPENDED) return 0 ;;
      READY) ;;
      *) return 1 ;;
    esac
    sleep "$poll"
  done
  return 1
}

# Fails with an explanation of gcloud's error.
explain() {
  local said="${1##*ERROR: }"
  local quotas="https://console.cloud.google.com/iam-admin/quotas"
  quotas+="?project=$project&service=tpu.googleapis.com"
  case "$1" in
    *ALREADY_EXISTS* | *"already exists"*)
      fail 1 "$name already exists in $zone" "an unused name" \
        "$0 status $(quoted "${again[@]}")" \
        "use it: $0 run $(quoted "${again[@]}") -- ...; or choose another: --name NAME" ;;
    *"no more capacity"* | *"nsufficient"*"capacity"*)
      fail 1 "no capacity for $slice in $zone" "a free slice" "zones with $slice: $zones" \
        "--queued waits for one; or choose another --zone" ;;
    *SERVICE_DISABLED* | *"has not been used in project"*)
      fail 1 "the Cloud TPU API is disabled in project $project" "the API enabled" "$said" \
        "gcloud services enable tpu.googleapis.com --project=$project" ;;
    *[Qq]uota* | *QUOTA* | *RESOURCE_EXHAUSTED*)
      fail 1 "quota exceeded: $said" \
        "quota for $quota${spot:+ (preemptible)} in $zone or its region" \
        "zones with $slice: $zones" "request it at $quotas, or choose another zone or slice" ;;
    *PERMISSION_DENIED* | *"credentials"* | *"gcloud auth login"*)
      fail 1 "Google Cloud denied access: $said" "roles/tpu.admin in project $project" \
        "gcloud auth list" "gcloud auth login, or ask the project's owner for the role" ;;
    *NOT_FOUND* | *"not found"*)
      fail 1 "not found: $said" "an existing $name in $zone" \
        "gcloud compute tpus tpu-vm list $(quoted "${where[@]}")" \
        "$0 create $(quoted "${again[@]}"), or the right --name and --zone" ;;
  esac
  fail 1 "gcloud failed: $said" "success" "the full output in $log" \
    "$0 status $(quoted "${again[@]}") shows what exists"
}

# Fails with an explanation of an ssh or scp error.
explain_ssh() {
  local step="$1" bad
  bad="$(sed -n 's/.*on worker \([0-9]*\) failed.*/\1/p' <<< "$output" | sort -un | paste -sd, -)"
  look
  [ "$state" = READY ] || fail 1 "$step failed: $name is $state" "READY" \
    "nothing was deleted" \
    "$0 status $(quoted "${again[@]}"); --spot restarts a preempted slice"
  case "$output" in
    *ssh-add* | *"not present in the SSH agent"*)
      fail 1 "$step failed: with several workers, ssh needs gcloud's key in its agent" \
        "the key in the agent" \
        "ssh-add -l" "eval \$(ssh-agent); ssh-add ~/.ssh/google_compute_engine; then retry" ;;
  esac
  fail 1 "$step failed on worker ${bad:-(unknown)}; it may have succeeded on others" \
    "success on every worker" "the full output in $log; $name is running and costs money" \
    "$0 $step $(quoted "${again[@]}") repeats it; to look: gcloud compute tpus tpu-vm ssh $name \
$(quoted "${where[@]}") --worker=$(cut -d, -f1 <<< "${bad:-0}")"
}

# pause TRY: waits with exponential backoff, 10 minutes at most.
pause() {
  local seconds=$((poll * (1 << ($1 < 6 ? $1 : 6))))
  sleep "$((seconds < 600 ? seconds : 600))"
}

# --- steps: each returns 3 if the slice was preempted ------------------------------------------

create() {
  local try kind=(tpu-vm create "$name" --version="$runtime")
  [ -z "$queued" ] || kind=(queued-resources create "$name" --node-id="$name" \
    --runtime-version="$runtime" --valid-until-duration="${wait_hours}h")
  for ((try = 1; ; try++)); do
    say "Creating $name ($accelerator${spot:+, spot}${queued:+, queued}) in $zone"
    attempt gcloud compute tpus "${kind[@]}" --accelerator-type="$accelerator" "${where[@]}" \
      ${spot:+--spot} --quiet && break
    case "$output" in *"no more capacity"*)
      [ "$try" -ge "$attempts" ] || {
        note "no capacity; retrying ($try of $((attempts - 1)))"
        pause "$try"
        continue
      } ;;
    esac
    explain "$output"
  done
  [ -z "$queued" ] || wait_in_queue
}

wait_in_queue() {
  if [ -n "$dry_run" ]; then
    echo "# every $poll seconds, until it prints ACTIVE:"
    quoted gcloud compute tpus queued-resources describe "$name" "${where[@]}" \
      --format='value(state.state)'
    return
  fi
  local waited before=""
  for ((waited = 0; waited <= wait_hours * 3600; waited += poll > 0 ? poll : 1)); do
    look_at_queue
    [ "$queue" = "$before" ] || say "$name is $queue"
    before="$queue"
    case "$queue" in
      ACTIVE) return 0 ;;
      SUSPENDING | SUSPENDED) state="$queue"; return 3 ;;
      FAILED | NONE | DELETING)
        fail 1 "the queued request $name is $queue" "ACTIVE" "gcloud compute tpus queued-resources \
describe $name $(quoted "${where[@]}")" "$0 delete $(quoted "${again[@]}"), then another --zone" ;;
    esac
    sleep "$poll"
  done
  fail 1 "no slice after $wait_hours hours in the queue" "ACTIVE" \
    "the request still exists: $queue" \
    "--wait HOURS to wait longer, $0 delete $(quoted "${again[@]}") to give up"
}

# Moves code of another origin aside, with all else that is in its folder.
aside="mv sgdx_t5x sgdx_t5x.\$(date +%s)"

setup() {
  local unpack="[ ! -d sgdx_t5x/.git ] || $aside; tar -xzf sgdx_t5x.tar.gz" archive try url
  archive="runs/launch/$name.tar.gz"
  if [ -n "$repository" ]; then
    url="$(quoted "$repository")"
    unpack="[ ! -d sgdx_t5x ] || \
[ \"\$(git -C sgdx_t5x config remote.origin.url)\" = $url ] || $aside; \
if [ -d sgdx_t5x ]; then git -C sgdx_t5x pull --ff-only; else git clone $url sgdx_t5x; fi"
  elif [ -n "$restarting" ] && [ -e "$archive" ]; then
    note "the workers get the code of the last setup ($archive), not that of HEAD"
  else
    [ -z "$(git status --porcelain)" ] || note "uncommitted changes are not copied; the workers get HEAD"
    perform mkdir -p runs/launch
    perform git archive --format=tar.gz --prefix=sgdx_t5x/ --output="$archive" HEAD || fail 1 \
      "git archive failed" "a git checkout with a commit" "$PWD" "--repo URL clones on the workers"
  fi
  [ -n "$dry_run" ] || printf '%s\n' "$engine" "$repository" > "runs/launch/$name.setup"
  say "Setting up $name (takes a few minutes)"
  for ((try = 1; ; try++)); do
    if { [ -n "$repository" ] || attempt gcloud compute tpus tpu-vm scp "$archive" \
        "$name:sgdx_t5x.tar.gz" "${where[@]}" --worker=all --quiet; } &&
      on_workers "$unpack && bash sgdx_t5x/launch/worker.sh setup $engine"; then
      return 0
    fi
    [ -z "$spot" ] || ! preempted || return 3
    # A new slice may refuse connections for a minute.
    case "$output" in
      *"exit status 255"* | *"return code [255]"* | *"onnection"*) [ "$try" -ge "$attempts" ] || {
        note "no connection; retrying ($try of $((attempts - 1)))"
        pause "$try"
        continue
      } ;;
    esac
    explain_ssh setup
  done
}

run() {
  local words=("${program[@]}")
  # jax.distributed, which multi-host checkpoints need; on a TPU it finds the other hosts itself.
  if [ -n "$multi_host" ] && is_t5x "${words[@]}" &&
    [[ " ${words[*]} " != *" --multiprocess_gpu"* ]]; then
    words+=(--multiprocess_gpu)
  fi
  say "Starting on $name: $(quoted "${words[@]}")"
  if ! on_workers "bash sgdx_t5x/launch/worker.sh start $(quoted "${words[@]}")"; then
    [ -z "$spot" ] || ! preempted || return 3
    case "$output" in *"a command is already running here"*)
      fail 1 "a command is already running on $name" "one at a time" \
        "$0 logs $(quoted "${again[@]}") follows it" "$0 stop $(quoted "${again[@]}") stops it" ;;
    esac
    local failed="$output"
    note "the command did not start on every worker; stopping it on the others"
    on_workers "bash sgdx_t5x/launch/worker.sh stop" || true
    output="$failed"
    explain_ssh run
  fi
  follow +1
}

follow() {
  local lines="$1" try status began
  for ((try = 1; ; try++)); do
    status=0 began="$SECONDS"
    on_workers "bash sgdx_t5x/launch/worker.sh follow $lines" || status=$?
    [ "$status" != 0 ] || return 0
    [ -z "$spot" ] || ! preempted || return 3
    [ $((SECONDS - began)) -lt 300 ] || try=1  # the connection had worked for a while
    case "$status" in
      4) fail 1 "nothing was started on $name" "a run to follow" \
        "$0 status $(quoted "${again[@]}")" \
        "$0 run $(quoted "${again[@]}") -- ..." ;;
      255) [ "$try" -ge "$attempts" ] || {  # ssh itself failed
        note "connection lost, the run continues; reconnecting ($try of $((attempts - 1)))"
        pause "$try"
        lines=20
        continue
      }
        explain_ssh logs ;;
    esac
    look
    [ "$state" = READY ] || explain_ssh logs
    fail 1 "the command failed on $name with exit code $status" "exit code 0" \
      "the log in $log; $name is still running and costs money" \
      "commit a fix, then $0 setup and $0 run; or $0 delete $(quoted "${again[@]}")"
  done
}

# The remains of a preempted slice still hold its name. A live slice is never deleted: its state is
# checked again, and without --force Google refuses to delete an active queued resource.
remove_remains() {
  say "Deleting the remains of $name ($state: its machines and disks are already gone)"
  look
  look_at_queue
  if [ "$queue" != NONE ]; then
    attempt gcloud compute tpus queued-resources delete "$name" "${where[@]}" --quiet ||
      explain "$output"
  elif [ "$state" != NONE ]; then
    case "$state" in READY | CREATING) fail 1 "$name is $state again" "PREEMPTED" \
      "nothing was deleted" "$0 run $(quoted "${again[@]}") --spot -- ..." ;; esac
    attempt gcloud compute tpus tpu-vm delete "$name" "${where[@]}" --quiet || explain "$output"
  fi
}

# steps NAME...: runs steps in order; with --spot, starts over with a new slice after a preemption.
steps() {
  local count=0 step status restarting=""
  while :; do
    status=0
    for step in "$@"; do
      "$step" || { status=$?; break; }
    done
    [ "$status" != 0 ] || break
    count=$((count + 1))
    [ -n "$spot" ] ||
      fail 1 "$name was preempted" "a slice" "state ${queue:-$state}" "--spot restarts it"
    [ "$count" -le "$restarts" ] || fail 1 "$name was preempted $count times" \
      "at most --restarts $restarts" "checkpoints in MODEL_DIR; state of $name: $state" \
      "$0 all $(quoted "${again[@]}") --spot -- ... resumes later, after $0 delete"
    say "$name was preempted ($count of at most $restarts): restarting from MODEL_DIR"
    until [ "${state:-}" != SUSPENDING ]; do sleep "$poll"; look_at_queue; state="$queue"; done
    remove_remains
    pause "$((count - 1))"
    # A run goes on with the code and the engine that it began with.
    restarting=yes
    [ ! -e "runs/launch/$name.setup" ] ||
      { read -r engine && read -r repository; } < "runs/launch/$name.setup" || true
    [ -z "$repository" ] || note "the workers clone $repository anew, with any later commits"
    set -- create setup run
  done
  [ -z "$dry_run" ] || [ -z "$spot" ] ||
    echo "# if preempted (PREEMPTED, SUSPENDED): delete the remains, then create, setup, run"
}

# --- commands --------------------------------------------------------------------------------

fetch() {
  perform mkdir -p "$to"
  case "$from" in
    gs://*) attempt gcloud storage cp --recursive "$from" "$to" --project="$project" ||
      explain "$output" ;;
    *) attempt gcloud compute tpus tpu-vm scp --recurse "$name:$from" "$to" "${where[@]}" \
      --worker=0 --quiet || explain_ssh fetch ;;
  esac
}

status() {
  if [ -n "$dry_run" ]; then
    quoted gcloud compute tpus tpu-vm describe "$name" "${where[@]}" --format='value(state)'
    quoted gcloud compute tpus queued-resources describe "$name" "${where[@]}" \
      --format='value(state.state)'
    on_workers "bash sgdx_t5x/launch/worker.sh status"
    return
  fi
  look
  look_at_queue
  echo "$name in $zone of $project: slice $state, queued request $queue"
  [ "$state" != READY ] || on_workers "bash sgdx_t5x/launch/worker.sh status" ||
    note "not all workers answered; before setup there is nothing to query"
}

delete() {
  local kind=(tpu-vm delete "$name")
  if [ -n "$dry_run" ]; then
    [ -z "$queued" ] || kind=(queued-resources delete "$name" --force)
  else
    look
    look_at_queue
    [ "$queue" = NONE ] || kind=(queued-resources delete "$name" --force)
    [ "$state $queue" != "NONE NONE" ] || fail 1 "there is no $name in $zone of $project" \
      "a slice to delete" "gcloud compute tpus tpu-vm list $(quoted "${where[@]}")" "--name, --zone"
    confirm
  fi
  attempt gcloud compute tpus "${kind[@]}" "${where[@]}" --quiet || explain "$output"
  [ -n "$dry_run" ] || say "$name was deleted. Buckets were not touched; their contents still cost money."
}

confirm() {
  [ -z "$yes" ] || return 0
  local answer=""
  printf 'Delete %s (slice %s, queued request %s) in %s of %s? Its disk is deleted too. [y/N] ' \
    "$name" "$state" "$queue" "$zone" "$project" >&2
  read -r answer || true
  case "$answer" in
    y | Y | yes) ;;
    *) fail 1 "nothing was deleted" "y" "answer: ${answer:-(none)}" \
      "--yes deletes without asking" ;;
  esac
}

# interrupted STATUS: says what may go on, and exits.
interrupted() {
  trap - INT TERM HUP
  say "interrupted. Nothing was stopped or deleted on Google Cloud: if $name exists, it costs money."
  local command
  for command in status logs stop delete; do
    printf '  %s %s %s\n' "$0" "$command" "$(quoted "${again[@]}")" >&2
  done
  exit "$1"
}

reminder() {
  [ -n "$dry_run" ] || note "$name is running and costs money until $0 delete $(quoted "${again[@]}")"
}

parse "$@"
check_values
check_cloud
if [ -z "$dry_run" ]; then
  mkdir -p runs/launch
  log="runs/launch/$name.log"
  touch "$log"
  trap 'interrupted 130' INT
  trap 'interrupted 143' TERM
  trap 'interrupted 129' HUP
fi
case "$action" in
  all) steps create setup run; reminder ;;
  create) create || fail 1 "$name was preempted before it was ready" "ACTIVE" "$queue" \
    "$0 delete $(quoted "${again[@]}"), then retry"; reminder ;;
  setup) steps setup; reminder ;;
  run) steps run; reminder ;;
  logs) spot=""; follow +1; reminder ;;
  stop) on_workers "bash sgdx_t5x/launch/worker.sh stop" || explain_ssh stop; reminder ;;
  fetch | status | delete) "$action" ;;
esac

# Sourced by tpu_vm.sh, gpu.sh, cpu.sh, study.sh and worker.sh: errors, dry runs, command checks.
# shellcheck shell=bash

say() { printf '\n%s\n' "$*" >&2; }
note() { printf 'note: %s\n' "$*" >&2; }

# fail STATUS FOUND EXPECTED AVAILABLE FIX: exits with 1 for a failure, 2 for a usage error.
fail() {
  printf '%s\n' "$2" >&2
  printf '  %-10s %s\n' expected: "$3" available: "$4" fix: "$5" >&2
  exit "$1"
}

if [ "${BASH_VERSINFO[0]}" -lt 4 ] || [ "${BASH_VERSINFO[0]}${BASH_VERSINFO[1]}" -lt 44 ]; then
  fail 1 "bash $BASH_VERSION is too old" "bash 4.4 or newer" "$BASH" "macOS: brew install bash"
fi

# Prints the words as one line that can be pasted into a shell.
quoted() {
  local word line=""
  for word in "$@"; do
    case "$word" in
      "" | *[!A-Za-z0-9_./:=,@%+-]*) line+=" ${word@Q}" ;;
      *) line+=" $word" ;;
    esac
  done
  printf '%s\n' "${line# }"
}

dry_run=""
# Runs a command; with --dry-run prints it.
perform() { if [ -n "$dry_run" ]; then quoted "$@"; else "$@"; fi; }

# finish COMMAND...: the last command of a script, which becomes it, so that signals reach it.
finish() { if [ -n "$dry_run" ]; then quoted "$@"; else exec "$@"; fi; }

# usage FILE: prints the comment at the top of a script in launch/, from any working directory.
usage() { sed -n '2,/^[^#]/{s/^# \{0,1\}//p;}' "launch/${1##*/}"; }

# value_of OPTION LEFT: rejects an option without a value.
value_of() {
  [ "$2" -ge 2 ] || fail 2 "$1 has no value" "$1 VALUE" "$1 is the last argument" "$0 --help"
}

# values_of FLAG WORD...: the values that a command gives a flag (--flag=VALUE or --flag VALUE), one
# per line.
values_of() {
  local flag="$1" previous="" word
  shift
  for word in "$@"; do
    case "$word" in "$flag"=*) printf '%s\n' "${word#*=}" ;; esac
    [ "$previous" != "$flag" ] || printf '%s\n' "$word"
    previous="$word"
  done
}

# binding_of MACRO WORD...: the value that a command binds (--gin.MACRO=VALUE or
# --gin_bindings='MACRO = VALUE', the last counts), without quotes.
binding_of() {
  local macro="$1"
  shift
  values_of --gin_bindings "${@/#--gin./--gin_bindings=}" | sed -n "s/^ *$macro *= *//p" |
    tail -n 1 | sed "s/^[\"']*//; s/[\"']*\$//"
}

# Sets `folders` to those of a command's --gin_search_paths.
search_paths() { IFS=, read -ra folders <<< "$(values_of --gin_search_paths "$@" | paste -sd, -)"; }

is_t5x() { [[ " $* " == *" t5x."* ]]; }

# Rejects an empty command, a misplaced --dry-run, and gin files that do not exist.
check_command() {
  [ $# -gt 0 ] || fail 2 "no command to run" "-- python -m t5x.train --gin_file=FILE.gin ..." \
    "nothing after --" "$0 --help"
  [[ " $* " != *" --dry-run "* ]] || fail 2 "--dry-run comes after --, so this would be a real run" \
    "options of $0 before --" "t5x's own --dry_run only checks the gin files" \
    "$0 ... --dry-run -- ..."
  local file folders
  search_paths "$@"
  while IFS= read -r file; do
    case "$file" in t5x/* | gs://*) continue ;; esac
    is_in_any "$file" ${folders[@]+"${folders[@]}"} || fail 2 "--gin_file=$file: no such file" \
      "a path relative to the repository root, $PWD" \
      "find gin -name '*.gin' lists those of this project" "correct the path"
  done < <(values_of --gin_file "$@")
}

# is_in_any FILE FOLDER...: whether the file is there, or in one of the folders.
is_in_any() {
  local file="$1" folder
  shift
  [ ! -f "$file" ] || return 0
  for folder in "$@"; do [ ! -f "$folder/$file" ] || return 0; done
  return 1
}

# Prints the gin files that a command names and those that they include, one per line.
all_gin_files() {
  local folders
  search_paths "$@"
  values_of --gin_file "$@" | with_included
}
# with_included: the same of files named on standard input, in the repository or in `folders`.
with_included() {
  local file folder
  while IFS= read -r file; do
    for folder in "" ${folders[@]+"${folders[@]/%//}"}; do
      [ -f "$folder$file" ] || continue
      file="$folder$file"
      file="${file#"$PWD"/}"
      file="${file#./}"
      printf '%s\n' "$file"
      sed -n "s/^include ['\"]\(.*\)['\"].*/\1/p" "$file" | with_included
      break
    done
  done
}

# Sets `scale` to the flags to add: the file that --scale names, or by default the machine's, for
# training commands of trackers. Those that name a gin/scale file, the sample, the study's trainings
# and an annex's experiments that set BATCH_SIZE have batches and lengths of their own.
choose_scale() {
  local wanted="$1" machine="$2" files all file
  shift 2
  scale=()
  case "$wanted" in
    none) return ;;
    "") [[ " $* " == *" t5x.train "* || " $* " == *" t5x.main "*"--run_mode=train "* ]] || return 0 ;;
    *) scale=("--gin_file=$wanted") ; check_command "${scale[@]}" ; return ;;
  esac
  mapfile -t files < <(all_gin_files "$@")
  all=" ${files[*]} "
  all="${all// gin\/study\/model.gin/}"
  case "$all" in
    *" gin/scale/"* | *" gin/study/"* | *" gin/sample/"* | *" gin/papers/"*/sample/*) return ;;
    *" gin/t5dst.gin "*)
      for file in "${files[@]}"; do
        [[ "$file" != gin/papers/* ]] || ! grep -qs '^BATCH_SIZE' "$file" || return 0
      done ;;
    *) grep -qs '^encoder\.BertConfig' "${files[@]}" || return 0
      machine="gin/scale/encoders/$(basename "$machine")" ;;
  esac
  scale=("--gin_file=$machine")
  note "adding ${scale[0]} (--scale none omits it, --scale FILE replaces it)"
}

jax_version() { sed -n 's/^jax==//p' constraints.txt; }

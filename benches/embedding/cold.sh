#!/bin/bash
# Builds the smallest program with each engine alone (src/hello) in an empty folder, and prints a table: the size of the
# stripped program, the crates, the processor time of the build, and that of a run. See README.md.
#
#   cold.sh [ENGINE...]                         all but monty
#   CARGO="cargo +nightly" cold.sh monty        with another toolchain
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
read -ra cargo <<<"${CARGO:-cargo}"
[ $# -gt 0 ] || set -- lispbox rhai mlua starlark wasmtime
runs=200

echo "| | program, stripped | crates | build | a run |"
echo "|---|--:|--:|--:|--:|"
for engine; do
  crate=$folder/$engine
  mkdir -p "$crate/src"
  # The dependencies of this package, without what the program does not need: async calls and components.
  {
    printf '[package]\nname = "hello"\nedition = "2024"\n[workspace]\n[dependencies]\n'
    grep -E "^$engine(-types)? = [{\"]" "$here/Cargo.toml" | sed -E \
      -e "s|path = \"../..\"|path = \"$here/../..\"|" \
      -e 's/, optional = true//' \
      -e 's/, "(async|component-model|wave)"//g; s/"async"//'
  } >"$crate/Cargo.toml"
  {
    echo "#[path = \"$here/src/hello/$engine.rs\"] mod hello;"
    if [ "$engine" = lispbox ]; then
      echo '#[global_allocator]'
      echo 'static ALLOCATOR: lispbox::lang::Metered<std::alloc::System> = lispbox::lang::Metered::new(std::alloc::System);'
    fi
    echo 'fn main() { assert_eq!(hello::hello().unwrap(), 2) }'
  } >"$crate/src/main.rs"
  cp "$here/Cargo.lock" "$crate"
  "${cargo[@]}" fetch --quiet --manifest-path "$crate/Cargo.toml"
  export CARGO_TARGET_DIR=$crate/target
  TIMEFORMAT='%U %S'
  { time "${cargo[@]}" build --release --offline --manifest-path "$crate/Cargo.toml" 2>"$crate/log"; } 2>"$crate/time" ||
    { cat "$crate/log" >&2; exit 1; }
  read -r user system <"$crate/time"
  strip -o "$crate/hello" "$CARGO_TARGET_DIR/release/hello"
  "$crate/hello"
  { time for ((run = 0; run < runs; run++)); do "$crate/hello"; done; } 2>"$crate/time"
  read -r runs_user runs_system <"$crate/time"
  LC_ALL=C awk -v name="$engine" -v size="$(stat -c %s "$crate/hello")" -v crates="$(grep -c Compiling "$crate/log")" \
    -v user="$user" -v kernel="$system" -v runs_user="$runs_user" -v runs_system="$runs_system" -v runs=$runs 'BEGIN {
      printf "| %s | %.1f MB | %d | %.0f s | %.1f ms |\n",
        name, size / 1e6, crates, user + kernel, 1000 * (runs_user + runs_system) / runs
    }'
  rm -rf "$CARGO_TARGET_DIR"
done

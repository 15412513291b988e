#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# cargo in a sandbox, with a dependency that lies in the project.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program cargo rustc

tool cargo 'cargo build' 'cargo build --offline --locked' '"Cargo.toml", "Cargo.lock", "src/**", "vendor/**"' '"target/**"'
put Cargo.toml <<'C'
[package]
name = "app"
version = "1.0.0"
edition = "2021"
[dependencies]
twice = { path = "vendor/twice" }
C
put vendor/twice/Cargo.toml <<'C'
[package]
name = "twice"
version = "1.0.0"
edition = "2021"
C
echo 'pub fn twice(n: i32) -> i32 { 2 * n }' | put vendor/twice/src/lib.rs
echo 'fn main() { assert_eq!(twice::twice(21), 42); }' | put src/main.rs
ok "cargo: a lockfile" cargo generate-lockfile --offline
works target/debug/app target/debug/app.d
ok "cargo: the program runs" target/debug/app
not_without vendor 'read cargo/vendor'
not_without target 'write cargo/target/CACHEDIR.TAG'
derived

# Without a cache it sees what it made the last time.
COMMAND='cargo build --offline --locked -v'
uncached
run run cargo#t
silent "incremental, first"
echo 'fn main() { assert_eq!(twice::twice(4), 8); }' >src/main.rs
run run cargo#t
silent "incremental, after an edit"
said 'Fresh.* twice v1' "cargo: incremental: the dependency stands"
said 'Compiling.* app v1' "cargo: incremental: what was edited is compiled"
run run cargo#t
silent "incremental, once more"
said 'Fresh.* app v1' "cargo: incremental: nothing, when nothing changed"
finish

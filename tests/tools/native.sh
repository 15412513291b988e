#!/bin/sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # what tools.sh reads
# Programs that compile C, in a sandbox: gcc with make, ccache, cmake with ninja.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/tools/tools.sh"
require_program make gcc ccache cmake ninja

sources() { # DIR
	put "$1/src/main.c" <<-'C'
		#include "twice.h"
		int main(void) { return twice(21) != 42; }
	C
	echo 'int twice(int);' | put "$1/src/twice.h"
	echo 'int twice(int n) { return 2 * n; }' >"$1/src/twice.c"
}
makefile() { # COMPILER
	put Makefile <<M
CC = $1
app: obj/main.o obj/twice.o
	gcc -o \$@ \$^
obj/%.o: src/%.c
	@mkdir -p obj
	\$(CC) -MMD -c -o \$@ \$<
-include obj/*.d
M
}

# --- make and gcc ------------------------------------------------------------------------------

tool make 'make, gcc' 'make' '"Makefile", "src/**"' '"obj/**", "app"'
sources .
makefile gcc
works app obj/main.o obj/main.d
ok "make: the program runs" ./app
not_without src 'read make/src'
not_without obj 'write make/obj/main\.d'
derived

echo 'printf stray >>src/twice.h' >hook.sh
COMMAND='sh ./hook.sh; make'
config '{ "allow": { "read": ["Makefile", "src", "hook.sh"], "write": ["obj", "app"] } }'
run run make#t
exits 1 "make: a write beside its outputs"
said '^write make/src/twice\.h' "make: is named"
is "$(cat src/twice.h)" 'int twice(int);' "make: and not kept"

# --- ccache ------------------------------------------------------------------------------------

# COUNTER: of the cache in CCACHE_DIR.
ccache_count() { ccache --print-stats | sed -n "s/^$1[[:space:]]*//p"; }

tool ccache 'ccache' 'make' '"Makefile", "src/**"' '"obj/**", "app"'
sources .
makefile 'ccache gcc'
mkdir -p "$HOME/.cache/ccache"
works app
is "$(ccache_count cache_miss)" 2 "$P: both files went into its cache, outside of the workspace"
# Its outputs go first, so make compiles again.
run run --no-cache "$P#t"
silent "again"
is "$(ccache_count direct_cache_hit)" 2 "$P: and came from it"
derived
is "$(ccache_count direct_cache_hit)" 2 "$P: --sandbox: what it wrote at home is thrown away"

CCACHE_DIR=$W/ccache-inside/.ccache
export CCACHE_DIR
tool ccache-inside 'ccache, in the project' 'CCACHE_DIR=$PWD/.ccache make' '"Makefile", "src/**"' '"obj/**", "app"'
sources .
makefile 'ccache gcc'
NOTE='kept but not stored, so that no hit brings it: cache.outputs.files: .*\.ccache/.*'
works app
run run --no-cache "$P#t"
exits 0 "$P: again"
is "$(ccache_count direct_cache_hit)" 2 "$P: both files came from its cache"
not_without .ccache "write $P/\.ccache/.*"

# --- cmake and ninja ---------------------------------------------------------------------------

tool cmake 'cmake, ninja' 'cmake -S . -B build -G Ninja && cmake --build build' \
	'"CMakeLists.txt", "src/**"' '"build/**"'
sources .
put CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.13)
project(app C)
add_executable(app src/main.c src/twice.c)
C
works build/app build/build.ninja build/CMakeCache.txt
not_without src 'read cmake/src'
not_without build 'write cmake/build/CMakeCache\.txt'
derived
finish

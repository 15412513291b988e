#!/bin/sh
# SPDX-License-Identifier: MIT
# Libraries neither exit nor print: only src/cli, sandbox/ and helpers/ may, and the few files below.
. "${VX_SRCDIR:?}/tests/lib.sh"
cd "$VX_SRCDIR" || exit 99

# FILE...: calls that end the program or write to a stream of the process, comments left out.
# (snprintf, vfprintf to a named file and the like do not match: the word must begin there.)
calls() {
	awk '
	{
		line = $0
		gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
		if (in_comment) {
			if (!sub(/^.*\*\//, "", line))
				next
			in_comment = 0
		}
		gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
		if (sub(/\/\*.*$/, "", line))
			in_comment = 1
		if (line ~ /(^|[^A-Za-z0-9_])(exit|_exit|_Exit|quick_exit|abort|printf|vprintf|puts|putchar|perror|err|errx|warn|warnx)[ ]*\(/ ||
		    line ~ /(^|[^A-Za-z0-9_])(fprintf|vfprintf|fputs|fputc|fwrite|dprintf)[ ]*\(.*(stderr|stdout|STDERR_FILENO|STDOUT_FILENO)/)
			print FILENAME ":" FNR ": " $0
	}' "$@"
}

# Out of memory and bug() die, log, timing and report are those that print, the guard is a process of its
# own that ends as the core ended, and so are the keeper and who removes the trash; a child can only leave by _exit.
find src -name '*.c' | sort | grep -v '^src/cli/' | grep -vxE \
	'src/util/(alloc|arena|err|keeper|log|fd|timing)\.c|src/run/report[a-z-]*\.c|src/exec/(guard|scratch)\.c' >"$T/files"
# shellcheck disable=SC2046 # our own file names
calls $(cat "$T/files") >"$T/bad"
is "$(cat "$T/bad")" "" "no library exits or prints"

cat >"$T/planted.c" <<'C'
/* exit(1) in a comment is no call */
static const char *s = "exit(1)";
void f(void) { exit(1); }
void g(void) { fprintf(stderr, "x"); }
void h(char *b) { snprintf(b, 1, "x"); at_exit(0); }
C
is "$(calls "$T/planted.c" | wc -l | tr -d ' ')" 2 "planted calls are found, others not"
done_testing

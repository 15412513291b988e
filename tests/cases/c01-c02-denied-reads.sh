#!/bin/sh
# SPDX-License-Identifier: MIT
# C01: a denied read is seen. C02: also from a program without libc.
. "${VX_SRCDIR:?}/tests/lib.sh"
. "${VX_SRCDIR:?}/tests/cases/box.sh"
require_program cc

mkdir src priv
echo k >priv/key
echo s >src/s
echo k >src/key
before
box '{ "allow": { "read": ["src/**"] } }' <<'E'
cat src/s; cat priv/key; exit 0
E
# A directory that no grant leads into is hidden itself: the kernel never asks for names below it.
findings 1 "C01: the task fails although its own exit was 0"
said '^s$' "what is granted is read"
said_not '^k$' "what is not granted is not"
reported read 'priv(/key)?' cat
unchanged C01

# The kernel's entry by hand: nothing a preloaded library or a hook in libc would see.
cat >"$T/rawopen.c" <<'E'
static long
sys(long nr, long a, long b, long c, long d)
{
#if defined(__x86_64__)
	long r;
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall" : "=a"(r) : "0"(nr), "D"(a), "S"(b), "d"(c), "r"(r10)
		: "rcx", "r11", "memory");
	return r;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
	return x0;
#endif
}
#if defined(__x86_64__)
enum { OPENAT = 257, EXIT = 231 };
__asm__(".globl _start\n_start: mov %rsp, %rdi\n and $-16, %rsp\n call start\n");
#elif defined(__aarch64__)
enum { OPENAT = 56, EXIT = 94 };
__asm__(".globl _start\n_start: mov x0, sp\n bl start\n");
#endif
__attribute__((used)) void
start(long *stack)
{
	long fd = sys(OPENAT, -100, stack[2], 0, 0);

	sys(EXIT, fd < 0 ? 9 : 0, 0, 0, 0);
}
E
if cc -O1 -static -nostdlib -nostartfiles -ffreestanding -fno-stack-protector -o "$T/rawopen" \
	"$T/rawopen.c" 2>"$T/cc"; then
	ok "C02: the program opens what it may" "$T/rawopen" priv/key
	box '{ "allow": { "read": ["src/**"] } }' <<-E
		$T/rawopen src/s || exit 3
		$T/rawopen priv/key
		[ \$? = 9 ] || exit 4
	E
	findings 1 "C02: a raw system call"
	said 'failed \(exit 1,' "its own checks went well"
	reported read 'priv(/key)?' rawopen
	unchanged C02
else
	fail "C02: cannot build a program without libc"
	diag_file cc "$T/cc"
fi

# A name that the host lacks is a probe, never a finding.
box '{ "allow": { "read": ["src/**"] } }' <<'E'
cat nothing src/nothing || :
test -e src/no || test -e no || :
E
findings 0 "a probe"

before
box '{ "allow": { "read": ["src/s*"] } }' <<'E'
{ cat src/key || :; cat src/key || :; cat < src/key || :; test -e src/key || :; } 2>/dev/null
cat src/s
E
findings 1 "a name denied many times"
reported read src/key cat
said_not '^k$' "and never read"
said '^s$' "the granted name beside it is"
unchanged "denied reads"
done_testing

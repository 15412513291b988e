/* SPDX-License-Identifier: MIT */
#include "run/report.h"
#include "tests/tap.h"

static void
check_duration(uint64_t ns, const char *want)
{
	char buf[32];

	report_duration(ns, buf, sizeof(buf));
	ok_str(buf, want, want);
}

int
main(void)
{
	check_duration(0, "0ms");
	check_duration(999499999, "999ms");
	check_duration(1250000000, "1.2s");
	check_duration(125000000000u, "2m 05s");
	return tap_done();
}

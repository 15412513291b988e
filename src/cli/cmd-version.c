/* SPDX-License-Identifier: MIT */
#include "cli/cmd.h"
#include "util/err.h"

int
cmd_version(int argc, char *const *argv, struct err *e)
{
	(void)argv;
	if (argc)
		return err_set(e, ERR_USAGE, 0, "vx version takes no arguments");
	puts(PACKAGE_VERSION);
	return 0;
}

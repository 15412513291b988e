/* SPDX-License-Identifier: MIT */
/* The executor without a sandbox: sh -c in its own session and group. The interface is exec.h. */
#ifndef EXEC_DIRECT_H
#define EXEC_DIRECT_H

#include "exec/exec.h"

#endif

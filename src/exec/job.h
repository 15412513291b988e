/* SPDX-License-Identifier: MIT */
/*
 * One child from start to done(): pipes, timeout, grace, drain, reaping. Shared by direct.c and
 * sandboxed.c, which differ in how they start it, how they ask it to end and what else they read.
 */
#ifndef EXEC_JOB_H
#define EXEC_JOB_H
#endif

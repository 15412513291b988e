/* SPDX-License-Identifier: MIT */
/*
 * The parts of taskdef: taskdef.c has projects, tasks and exec, taskdef-cache.c the cache block,
 * taskdef-sandbox.c the sandbox.
 */
#ifndef CONFIG_TASKDEF_PRIVATE_H
#define CONFIG_TASKDEF_PRIVATE_H

#include "config/fields.h"
#include "config/json.h"

struct arena;
struct cachedef;
struct err;
struct sandboxdef;
struct taskdef;

extern const struct shape cachedef_shape, sandboxdef_shape;

/* Names of variables of vx's own environment, whatever they are made of: each by itself. */
extern const struct shape taskdef_env_names_shape;
int taskdef_check_env_name(const struct json_at *at, const char *s, struct err *e);

/* `dir`: the project's directory from the workspace root. `t`: whose dependsOn is read already. Into
 * the arena. */
int cachedef_parse(const struct json_at *at, const json_t *value, const char *dir,
	const struct taskdef *t, struct arena *a, struct cachedef **ret, struct err *e);
int sandboxdef_parse(const struct json_at *at, const json_t *value, const char *dir,
	bool persistent, struct arena *a, struct sandboxdef **ret, struct err *e);

/* The value of a member and its place below `up`. */
static inline const json_t *
json_member(const json_t *object, const struct json_at *up, const char *key, struct json_at *ret)
{
	*ret = (struct json_at){up->doc, up, key, 0};
	return json_object_get(object, key);
}

#endif

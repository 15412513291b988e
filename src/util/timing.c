/* SPDX-License-Identifier: MIT */
#include "util/timing.h"
#include "util/clock.h"
#include "util/err.h"

enum {
	TIMING_NAMES = 32
};

struct timed {
	const char *name;
	uint64_t ns;
	uint64_t n; /* how often; 0: a stage */
};

static struct {
	bool on;
	struct timed v[TIMING_NAMES];
	size_t n;
	struct timed *stage;
	uint64_t since;
} timing;

static struct timed *
find(const char *name)
{
	for (size_t i = 0; i < timing.n; i++)
		if (!strcmp(timing.v[i].name, name))
			return &timing.v[i];
	if (timing.n == TIMING_NAMES)
		bug("more stages than %d", TIMING_NAMES);
	timing.v[timing.n].name = name;
	return &timing.v[timing.n++];
}

void
timing_init(void)
{
	const char *text = getenv("VX_TIMING");

	timing.on = text && *text && strcmp(text, "0") != 0;
	timing_stage("startup");
}

void
timing_stage(const char *name)
{
	uint64_t now;

	if (!timing.on)
		return;
	now = clock_monotonic_ns();
	if (timing.stage)
		timing.stage->ns += now - timing.since;
	timing.stage = find(name);
	timing.since = now;
}

uint64_t
timing_begin(void)
{
	return timing.on ? clock_monotonic_ns() : 0;
}

void
timing_end(const char *span, uint64_t begun)
{
	struct timed *t;

	if (!begun)
		return;
	t = find(span);
	t->ns += clock_monotonic_ns() - begun;
	t->n++;
}

void
timing_print(void)
{
	uint64_t sum = 0;

	if (!timing.on)
		return;
	timing_stage("close");
	fputs("vx: timing\n", stderr);
	for (size_t i = 0; i < timing.n; i++) {
		const struct timed *t = &timing.v[i];

		if (t->n)
			continue;
		sum += t->ns;
		fprintf(stderr, "%10.2f ms  %s\n", (double)t->ns / 1e6, t->name);
	}
	fprintf(stderr, "%10.2f ms  in all; of that\n", (double)sum / 1e6);
	for (size_t i = 0; i < timing.n; i++) {
		const struct timed *t = &timing.v[i];

		if (t->n)
			fprintf(stderr, "%10.2f ms  %s (%llu)\n", (double)t->ns / 1e6, t->name,
				(unsigned long long)t->n);
	}
}

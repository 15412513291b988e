/* SPDX-License-Identifier: MIT */
/*
 * vx cache prune: flags to limits.
 */
#include "cli/cmd.h"
#include "cli/opt.h"
#include "run/prune.h"
#include "util/err.h"
#include "util/num.h"
#include "util/strbuf.h"

enum opt_id {
	O_CACHE_DIR,
	O_DRY_RUN,
	O_FORMAT,
	O_HELP,
	O_MAX_SIZE,
	O_OLDER_THAN,
};

/* The man page has the same words: tests/lint/options.sh. */
static const struct opt cache_opts[] = {
	{"older-than", OPT_VALUE, "AGE", "entries not used for so long: 12h, 30d", O_OLDER_THAN},
	{"max-size", OPT_VALUE, "SIZE", "those longest unused, until the rest fits: 512M, 10G",
		O_MAX_SIZE},
	{"dry-run", OPT_FLAG, NULL, "say what would go, remove nothing", O_DRY_RUN},
	{"format", OPT_VALUE, "pretty|json", "of what is printed", O_FORMAT},
	{"cache-dir", OPT_VALUE, "PATH", "where the cache lives (default: .vx/cache)", O_CACHE_DIR},
	{"help", OPT_FLAG, NULL, "print this page", O_HELP},
	{NULL, OPT_FLAG, NULL, NULL, 0},
};

static int
set_bound(const char *flag, const char *value,
	int (*parse)(const char *s, uint64_t *ret, struct err *e), uint64_t *ret, struct err *e)
{
	cleanup_strbuf struct strbuf shown = STRBUF_INIT;

	if (!parse(value, ret, e))
		return 0;
	strbuf_add_sanitised(&shown, value, strlen(value));
	return err_wrap(e, "--%s=%s", flag, shown.buf);
}

static int
set_option(struct prune_options *o, int id, const char *value, struct err *e)
{
	switch ((enum opt_id)id) {
	case O_CACHE_DIR:
		o->cache_dir = value;
		return 0;
	case O_DRY_RUN:
		o->dry = true;
		return 0;
	case O_FORMAT:
		o->json = !strcmp(value, "json");
		if (o->json || !strcmp(value, "pretty"))
			return 0;
		return err_set(e, ERR_USAGE, 0, "--format: write pretty or json");
	case O_MAX_SIZE:
		return set_bound("max-size", value, num_parse_size, &o->max_bytes, e);
	case O_OLDER_THAN:
		return set_bound("older-than", value, num_parse_duration, &o->older_than_ns, e);
	case O_HELP:
		break;
	}
	bug("option %d", id);
}

static void
print_help(void)
{
	fputs("usage: vx cache prune [OPTIONS]\n\n"
	      "Removes stored results by age, by size, or by both; without either, by the\n"
	      "cacheRetention of vx.workspace.json.\n\n",
		stdout);
	opt_print_help(cache_opts);
}

int
cmd_cache(int argc, char *const *argv, struct err *e)
{
	struct prune_options o = {.command = "vx cache prune"};
	cleanup_strbuf struct strbuf product = STRBUF_INIT;
	struct opt_parser p;
	const char *value;
	bool help = false;
	int id, r;

	opt_init(&p, "vx cache prune", cache_opts, argc, argv);
	while ((r = opt_next(&p, &id, &value, e)) == 1) {
		if (id == O_HELP)
			help = true;
		else if (set_option(&o, id, value, e))
			break;
	}
	if (!r && !help && (p.words.n != 1 || strcmp(p.words.v[0], "prune") || p.rest < argc))
		r = err_set(e, ERR_USAGE, 0, "vx cache has one command: vx cache prune [OPTIONS]");
	strvec_release(&p.words);
	strvec_release(&p.strays);
	if (r)
		return -1;
	if (help) {
		print_help();
		return 0;
	}
	r = prune_cache(&o, &product, e);
	fwrite(product.buf, 1, product.len, stdout);
	return r;
}

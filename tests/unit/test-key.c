/* SPDX-License-Identifier: MIT */
#include "cache/filehash.h"
#include "cache/key.h"
#include "tests/unit/ws.h"

static const struct key_parts *
example(void)
{
	static const char *const args[] = {"--fast", "a\nb"};
	static const struct key_env env[] = {{"EMPTY", ""}, {"MODE", "prod"}, {"NODE_ENV", NULL}};
	static const struct key_runtime runtime[] = {
		{"cc -v", "", "gcc\\12\n0", 0, 8}, {"node -v", "v22\0x", "", 5, 0}};
	static const struct key_runtime ws_runtime[] = {{"a\nb", "1", "2\0", 1, 2}};
	static struct digest workspace, upstream[2];
	static const struct key_input inputs[] = {
		{"packages/app/src/a.ts", "100644:01"}, {"packages/app/src/b\\.sh", "100755:02"}};
	static struct key_parts p = {
		.task = "app#build",
		.platform = "x86_64 debian 12",
		.workspace = &workspace,
		.manifest = "absent",
		.config = "{}",
		.forward_args = args,
		.nforward_args = 2,
		.env = env,
		.nenv = 3,
		.runtime = runtime,
		.nruntime = 2,
		.ws_runtime = ws_runtime,
		.nws_runtime = 1,
		.upstream = upstream,
		.nupstream = 2,
		.inputs = inputs,
		.ninputs = 2,
	};

	memset(&workspace, 0x11, sizeof(workspace));
	memset(&upstream[0], 0x33, sizeof(upstream[0]));
	memset(&upstream[1], 0x22, sizeof(upstream[1]));
	return &p;
}

#define HEX16(x) x x x x x x x x x x x x x x x x
#define HEX32(x) HEX16(x) HEX16(x)

static void
test_bytes(void)
{
	static const char want[] =
		"vx-key 1\n"
		"task:app#build\n"
		"platform:x86_64 debian 12\n"
		"workspace:" HEX32(
			"11") "\n"
			      "manifest:absent\n"
			      "config:"
			      "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a\n"
			      "forward-args:2\n--fast\na\\nb\n"
			      "env-values:3\nEMPTY\0\nMODE\0prod\nNODE_ENV\n"
			      "runtime-values:2\ncc -v\0\0gcc\\\\12\\n0\nnode -v\0v22\\0x\n"
			      "ws-runtime-values:1\na\\nb\0"
			      "1\0"
			      "2\\0\n"
			      "upstream:2\n" HEX32("22") "\n" HEX32(
				      "33") "\n"
					    "inputs:2\npackages/app/src/a.ts\0"
					    "100644:01\n"
					    "packages/app/src/b\\\\.sh\0"
					    "100755:02\n";
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	struct digest d, again, of_text;

	key_compute(example(), &d, &text);
	ok(text.len == sizeof(want) - 1 && !memcmp(text.buf, want, text.len), "the bytes of a key");
	digest_bytes(text.buf, text.len, &of_text);
	ok(digest_equal(&d, &of_text), "the key is their digest");
	key_compute(example(), &again, NULL);
	ok(digest_equal(&d, &again), "with or without the text");
}

/*
 * Two lists of parts have the same bytes only when they are the same: parts drawn at random from few
 * and nasty values, so that different ones often look alike.
 */
static uint64_t rnd_state = 1;

static unsigned
rnd(unsigned n)
{
	rnd_state = rnd_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(rnd_state >> 33) % n;
}

static const char *const nasty[] = {"", "a", "a\nb", "a\\nb", "\\", "\n", "b\n", "inputs:0",
	"upstream:0\ninputs:0", "absent\nconfig:", "a\\0", "1", "0\n"};

struct sample {
	const char *args[3];
	struct key_env env[2];
	struct key_runtime runtime[2];
	struct key_input inputs[2];
	struct digest workspace;
	struct key_parts p;
};

static const char *
pick(void)
{
	return nasty[rnd(array_len(nasty))];
}

/* A NUL among what a probe said is as good a byte as others. */
static struct key_runtime
pick_runtime(void)
{
	static const char nuls[] = "a\0b\0\0";
	bool errors = rnd(2), odd = rnd(3) == 0;
	struct key_runtime r = {.command = pick(), .out = odd ? nuls : pick(), .err = pick()};

	r.nout = odd ? rnd(sizeof(nuls) - 1) : strlen(r.out);
	if (odd)
		r.out += sizeof(nuls) - 1 - r.nout; /* a NUL follows */
	if (!errors)
		r.err = "";
	r.nerr = strlen(r.err);
	return r;
}

static void
draw(struct sample *s)
{
	*s = (struct sample){0};
	s->p = (struct key_parts){
		.task = pick(),
		.platform = pick(),
		.workspace = &s->workspace,
		.manifest = pick(),
		.config = pick(),
		.forward_args = s->args,
		.nforward_args = rnd(4),
		.env = s->env,
		.nenv = rnd(3),
		.inputs = s->inputs,
		.ninputs = rnd(3),
	};
	for (size_t i = 0; i < s->p.nforward_args; i++)
		s->args[i] = pick();
	for (size_t i = 0; i < s->p.nenv; i++)
		s->env[i] = (struct key_env){pick(), rnd(3) ? pick() : NULL};
	for (size_t i = 0; i < s->p.ninputs; i++)
		s->inputs[i] = (struct key_input){pick(), pick()};
	/* of the two lists one after the other, so that an entry can be in either */
	s->p.nruntime = rnd(3);
	s->p.nws_runtime = rnd(3 - (unsigned)s->p.nruntime);
	for (size_t i = 0; i < array_len(s->runtime); i++)
		s->runtime[i] = pick_runtime();
	s->p.runtime = s->runtime;
	s->p.ws_runtime = s->runtime + s->p.nruntime;
}

static bool
str_same(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool
runtime_same(const struct key_runtime *a, size_t na, const struct key_runtime *b, size_t nb)
{
	for (size_t i = 0; i < na && na == nb; i++)
		if (strcmp(a[i].command, b[i].command) != 0 || a[i].nout != b[i].nout ||
			memcmp(a[i].out, b[i].out, a[i].nout) != 0 || a[i].nerr != b[i].nerr ||
			memcmp(a[i].err, b[i].err, a[i].nerr) != 0)
			return false;
	return na == nb;
}

static bool
same(const struct key_parts *a, const struct key_parts *b)
{
	if (strcmp(a->task, b->task) != 0 || strcmp(a->platform, b->platform) != 0 ||
		strcmp(a->manifest, b->manifest) != 0 || strcmp(a->config, b->config) != 0 ||
		a->nforward_args != b->nforward_args || a->nenv != b->nenv ||
		a->ninputs != b->ninputs)
		return false;
	for (size_t i = 0; i < a->nforward_args; i++)
		if (strcmp(a->forward_args[i], b->forward_args[i]) != 0)
			return false;
	for (size_t i = 0; i < a->nenv; i++)
		if (strcmp(a->env[i].name, b->env[i].name) != 0 ||
			!str_same(a->env[i].value, b->env[i].value))
			return false;
	if (!runtime_same(a->runtime, a->nruntime, b->runtime, b->nruntime) ||
		!runtime_same(a->ws_runtime, a->nws_runtime, b->ws_runtime, b->nws_runtime))
		return false;
	for (size_t i = 0; i < a->ninputs; i++)
		if (strcmp(a->inputs[i].path, b->inputs[i].path) != 0 ||
			strcmp(a->inputs[i].identity, b->inputs[i].identity) != 0)
			return false;
	return true;
}

static void
test_unambiguous(void)
{
	enum {
		N = 400
	};
	static struct sample s[N];
	static struct digest d[N];
	int wrong = 0;

	for (int i = 0; i < N; i++) {
		draw(&s[i]);
		if (i % 2) { /* a neighbour that differs in one thing, or in none */
			const struct sample *b = &s[i - 1];

			s[i] = *b;
			s[i].p.forward_args = s[i].args;
			s[i].p.env = s[i].env;
			s[i].p.inputs = s[i].inputs;
			s[i].p.workspace = &s[i].workspace;
			s[i].p.runtime = s[i].runtime;
			s[i].p.ws_runtime = s[i].runtime + s[i].p.nruntime;
			switch (rnd(8)) {
			case 0:
				s[i].args[0] = pick();
				break;
			case 1:
				s[i].env[0].value = NULL;
				break;
			case 2:
				s[i].inputs[1].identity = pick();
				break;
			case 3:
				s[i].p.manifest = pick();
				break;
			case 4:
				s[i].runtime[0] = pick_runtime();
				break;
			case 5: /* the first of the root is the last of the project */
				s[i].p.nruntime += s[i].p.nws_runtime > 0;
				s[i].p.nws_runtime -= s[i].p.nws_runtime > 0;
				s[i].p.ws_runtime = s[i].runtime + s[i].p.nruntime;
				break;
			}
		}
		key_compute(&s[i].p, &d[i], NULL);
		for (int k = 0; k < i; k++)
			wrong += same(&s[i].p, &s[k].p) != digest_equal(&d[i], &d[k]);
	}
	ok_int(wrong, 0, "different parts have different bytes, equal ones equal bytes");
}

static void
test_group(void)
{
	struct digest in[3], swapped[3], a, b, c;

	memset(in, 0, sizeof(in));
	in[1].b[0] = 1;
	in[2].b[0] = 2;
	swapped[0] = in[2];
	swapped[1] = in[0];
	swapped[2] = in[1];
	key_group(in, 3, &a);
	key_group(swapped, 3, &b);
	key_group(in, 2, &c);
	ok(digest_equal(&a, &b), "the order of upstream keys does not matter");
	ok(!digest_equal(&a, &c), "their number does");
	key_group(NULL, 0, &c);
	ok(!digest_equal(&a, &c), "a group without upstream has a key");
}

static struct digest
workspace_key(void)
{
	struct filehash *fh;
	struct digest d = {{0}};
	struct err e = ERR_INIT;
	size_t n = 0;

	while (key_fingerprint_files[n])
		n++;
	if (filehash_open(ws_fd, &fh, &e) ||
		key_workspace(fh, ws_fd, key_fingerprint_files, n, &d, &e))
		bug("%s", e.text);
	filehash_close(fh, false);
	return d;
}

static void
test_workspace(void)
{
	struct digest none, lock, edited, link, behind;

	ws_begin();
	none = workspace_key();
	ws_write("yarn.lock", "1");
	lock = workspace_key();
	ok(!digest_equal(&none, &lock), "a lockfile moves the fingerprint");
	ws_write("yarn.lock", "2");
	edited = workspace_key();
	ok(!digest_equal(&edited, &lock), "so does its content");
	ws_write("other", "2");
	ok(!memcmp(&edited, &(struct digest[1]){workspace_key()}, sizeof(edited)),
		"other files do not");
	ws_remove("yarn.lock");
	ws_write("elsewhere/lock", "2");
	ws_link("yarn.lock", "elsewhere/lock");
	link = workspace_key();
	ok(!digest_equal(&link, &edited), "nor is a link the same as a file");
	ws_write("elsewhere/lock", "3");
	behind = workspace_key();
	ok(!digest_equal(&link, &behind), "what is behind a linked lockfile counts");
	ws_end();
}

int
main(void)
{
	char *platform = key_platform();

	test_bytes();
	test_unambiguous();
	test_group();
	test_workspace();
	ok(strchr(platform, ' ') && !strchr(platform, '"'), "platform: %s", platform);
	free(platform);
	return tap_done();
}

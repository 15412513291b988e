/* slug TITLE...: one slug per line; without arguments one per line of standard input. */
#include "slug.h"
#include <stdio.h>
#include <string.h>

static int
print_slug(const char *title)
{
	char out[256];

	if (slug_make(out, sizeof out, title) >= sizeof out) {
		fprintf(stderr, "slug: title too long: %.40s...\n", title);
		return 1;
	}
	puts(out);
	return 0;
}

int
main(int argc, char **argv)
{
	char line[1024];
	int rc = 0;

	for (int i = 1; i < argc; i++)
		rc |= print_slug(argv[i]);
	while (argc == 1 && fgets(line, sizeof line, stdin)) {
		line[strcspn(line, "\n")] = '\0';
		rc |= print_slug(line);
	}
	return rc;
}

/* SPDX-License-Identifier: MIT */
#include "exec/command.h"
#include "util/alloc.h"

/*
 * What a shell runs itself: `exec` would look for a program of that name, or for none where a word means something
 * to the grammar. Those of POSIX, and what dash, bash, ksh, zsh and busybox have beside them, as sh may be any.
 */
static const char *const own_words[] = {".", ":", "alias", "autoload", "bg", "bind", "break",
	"builtin", "caller", "case", "cd", "chdir", "command", "compgen", "complete", "compopt",
	"continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else",
	"enable", "esac", "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for",
	"foreach", "function", "getopts", "hash", "help", "history", "if", "in", "integer", "jobs",
	"kill", "let", "local", "logout", "mapfile", "nameref", "newgrp", "nocorrect", "noglob",
	"popd", "print", "printf", "pushd", "pwd", "read", "readarray", "readonly", "repeat",
	"return", "select", "set", "setopt", "shift", "shopt", "source", "suspend", "test", "then",
	"time", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
	"unsetopt", "until", "wait", "whence", "while"};

static bool
is_own_word(const char *p, size_t n)
{
	for (size_t i = 0; i < array_len(own_words); i++)
		if (strlen(own_words[i]) == n && !memcmp(own_words[i], p, n))
			return true;
	return false;
}

const char *
command_program(const char *command, size_t *ret_n)
{
	/* No quoting, no expansion, no assignment; not '-' first, which exec would take for an option. */
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_@%+:,./-";
	const char *word = command + strspn(command, " \t\n"), *end;
	size_t n = strspn(word, plain);

	for (end = command + strlen(command); end > word && strchr(" \t\n", end[-1]); end--)
		;
	if (!n || *word == '-' || (word[n] && !strchr(" \t\n", word[n])) || is_own_word(word, n))
		return NULL;
	/* Wherever they stand, quoted or not: to know would be to parse it. */
	if (word + strcspn(word, ";&|<>()`\n") < end)
		return NULL;
	*ret_n = n;
	return word;
}

char *
command_for_shell(const char *command)
{
	size_t n;
	const char *word = command_program(command, &n);

	return word ? xasprintf("exec %s", word) : xstrdup(command);
}

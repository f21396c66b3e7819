/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The test's side of the double of libibverbs (fake-ibverbs.h): start a
 * program with it, and tell it what to do.
 */
#ifndef TESTS_FAKE_IBVERBS_CLIENT_H
#define TESTS_FAKE_IBVERBS_CLIENT_H

#include "fake-ibverbs.h"

/* The double in one process. */
typedef struct FakeVerbs {
    char *dir;
    char *path;                     /* of its socket */
    FILE *in;
    FILE *out;
} FakeVerbs;

/*
 * From here until fake_verbs_started() processes that are started have the
 * double, which executes @script (NULL: nothing) when it is loaded.
 */
FakeVerbs *fake_verbs_new(const char *script);
/* The process has started: connect to the double in it. */
void fake_verbs_started(FakeVerbs *f);
/* Calls that wait in the double go on. */
void fake_verbs_free(FakeVerbs *f);

/* Execute a command; asserts that it succeeds. Free the answer. */
char *fake_verbs_ask(FakeVerbs *f, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);
/* The same where nothing is answered. */
void fake_verbs_tell(FakeVerbs *f, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);
/* A command that is refused; free the reason. */
char *fake_verbs_refuses(FakeVerbs *f, const char *command);
/* How many objects of @kind ("mr") there are. */
unsigned fake_verbs_count(FakeVerbs *f, const char *kind);
/* All objects but contexts, channels and PDs. */
unsigned fake_verbs_count_objects(FakeVerbs *f);
/* How often @verb was called. */
unsigned fake_verbs_calls(FakeVerbs *f, const char *verb);
/* The number of the newest object of @kind. */
uint32_t fake_verbs_newest(FakeVerbs *f, const char *kind);

#endif

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
 * Give the double to processes that start before fake_verbs_started(). It
 * executes @script (NULL: nothing) when it is loaded.
 */
FakeVerbs *fake_verbs_new(const char *script);
/* After the process has started: connect to the double in it. */
void fake_verbs_started(FakeVerbs *f);
/* Close the connection; calls that wait in the double go on. */
void fake_verbs_free(FakeVerbs *f);

/* Execute a command; asserts that it succeeds. Free the answer. */
char *fake_verbs_ask(FakeVerbs *f, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);
/* The same for commands with an empty answer */
void fake_verbs_tell(FakeVerbs *f, const char *fmt, ...)
    G_GNUC_PRINTF(2, 3);
/* Execute a command that must be refused. Free the reason. */
char *fake_verbs_refuses(FakeVerbs *f, const char *command);
/* Number of objects of @kind ("mr") */
unsigned fake_verbs_count(FakeVerbs *f, const char *kind);
/* Number of all objects except contexts, channels and PDs */
unsigned fake_verbs_count_objects(FakeVerbs *f);
/* Number of calls of @verb */
unsigned fake_verbs_calls(FakeVerbs *f, const char *verb);
/* The number of the newest object of @kind. */
uint32_t fake_verbs_newest(FakeVerbs *f, const char *kind);

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma_posts -a SERVER-ADDRESS [-s] [-f FAULT] CASE
 * -s makes it the server.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "posts.h"

#define SECONDS 50

bool client = true;
enum fault fault;
const char *server_address;

static const char *const faults[] = {
    [FAULT_NONE] = "none",
    [FAULT_BYTE] = "byte",
    [FAULT_LENGTH] = "length",
    [FAULT_CONTEXT] = "context",
    [FAULT_OPCODE] = "opcode",
    [FAULT_SIGNAL] = "signal",
};

static const struct {
    const char *name;
    case_fn *run;
} cases[] = {
    { "messages", exchange_messages },
    { "vectors", exchange_vectors },
    { "read-write", read_and_write },
    { "read-write-vectors", read_and_write_vectors },
    { "inline", inline_data },
    { "unsignalled", unsignalled },
    { "signal-all", signal_all },
    { "srq", shared_queue },
    { "ud", datagrams },
    { "ud-inline", datagrams_inline },
    { "ud-unsignalled", datagrams_unsignalled },
    { "without-region", without_region },
    { "wrong-key", wrong_key },
    { "wrong-place", wrong_place },
    { "wrong-local-key", wrong_local_key },
    { "long-message", long_message },
    { "no-receive", no_receive },
    { "many-sges", many_sges },
    { "long-inline", long_inline },
    { "full-queue", full_queue },
    { "ud-without-region", datagram_without_region },
};

void fail(const char *fmt, ...)
{
    va_list ap;

    printf("FAIL (%s): ", client ? "client" : "server");
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    exit(1);
}

void must(const char *what, int ret)
{
    if (ret) {
        fail("%s: returned %d, errno %d (%s)", what, ret, errno,
             strerror(errno));
    }
}

void must_fail(const char *what, int ret, int expected)
{
    if (ret != -1 || errno != expected) {
        fail("%s: returned %d, errno %d (%s), not -1 and %d (%s)", what, ret,
             errno, strerror(errno), expected, strerror(expected));
    }
}

static enum fault fault_of(const char *name)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (!strcmp(faults[i], name)) {
            return i;
        }
    }
    fail("no fault %s", name);
}

int main(int argc, char **argv)
{
    int opt;

    setvbuf(stdout, NULL, _IOLBF, 0);
    while ((opt = getopt(argc, argv, "a:sf:")) != -1) {
        if (opt == 'a') {
            server_address = optarg;
        } else if (opt == 's') {
            client = false;
        } else if (opt == 'f') {
            fault = fault_of(optarg);
        } else {
            return 2;
        }
    }
    if (!server_address || optind + 1 != argc) {
        fail("usage: rdma_posts -a SERVER-ADDRESS [-s] [-f FAULT] CASE");
    }
    /* A signal ends a process that waits for a completion that never comes. */
    alarm(SECONDS);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!strcmp(cases[i].name, argv[optind])) {
            meet_first();
            cases[i].run();
            printf("%s: fine\n", cases[i].name);
            return 0;
        }
    }
    fail("no case %s", argv[optind]);
}

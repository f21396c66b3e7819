/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of the double of libibverbs: this program is linked to the real
 * library, as QEMU is, and runs with the double.
 */
#include "qemu/osdep.h"
#include "self-test.h"

#define SOCKET_OF_TEST "FAKE_IBVERBS_TEST_SOCKET"

/* Start the program again with the double, or connect to it. */
static void with_double(char **argv)
{
    const char *path = g_getenv(SOCKET_OF_TEST);

    if (!path) {
        fake = fake_verbs_new("gid 0 fe80::1; gid 1 10.0.0.1");
        g_setenv(SOCKET_OF_TEST, fake->dir, true);
        execv("/proc/self/exe", argv);
        g_error("cannot start %s again: %s", argv[0], strerror(errno));
    }
    fake = g_new0(FakeVerbs, 1);
    fake->dir = g_strdup(path);
    fake->path = g_build_filename(path, "socket", NULL);
    fake_verbs_started(fake);
}

int main(int argc, char **argv)
{
    int ret;

    /*
     * QEMU ignores SIGPIPE, too: the double may answer after the test has
     * closed.
     */
    signal(SIGPIPE, SIG_IGN);
    with_double(argv);
    g_test_init(&argc, &argv, NULL);
    add_fake_traffic_tests();
    add_fake_fault_tests();
    ret = g_test_run();
    fake_verbs_free(fake);
    return ret;
}

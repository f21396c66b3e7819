/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames by shared memory (rdma-roce,shm-dir=...): ports that connect and
 * disconnect. Other tests are in rdma/shm-*.c.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qobject/qdict.h"
#include "rdma/shm-test.h"

static void test_two_ports(void)
{
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmNode) b = shm_node_start(2, "");

    shm_reach(&a, &b);
    shm_reach(&b, &a);
    for (int i = 0; i < 100; i++) {
        shm_exchange(&a, &b);
        shm_exchange(&b, &a);
    }
}

static void test_peer_ends_and_returns(void)
{
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmNode) b = shm_node_start(2, "");

    shm_reach(&a, &b);
    shm_node_stop(&b);
    b = shm_node_start(2, NULL);
    shm_expect_netdev(&a, &b);
    shm_node_stop(&b);
    b = shm_node_start(2, "");
    shm_reach(&a, &b);
    shm_exchange(&a, &b);
}

static void test_stopped_vm_is_not_there(void)
{
    g_autofree char *path = shm_node_path(2);
    g_auto(ShmNode) a = shm_node_start(1, "");
    ShmNode b = shm_node_start(2, "");

    shm_reach(&a, &b);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    qtest_qmp_assert_success(b.host->qts, "{'execute': 'stop'}");
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    shm_expect_netdev(&a, &b);
    qtest_qmp_assert_success(b.host->qts, "{'execute': 'cont'}");
    shm_reach(&a, &b);
    shm_exchange(&a, &b);
    shm_node_stop(&b);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static void test_killed_peer_is_replaced(void)
{
    g_autofree char *path = shm_node_path(2);
    g_auto(ShmNode) a = shm_node_start(1, "");
    ShmNode b;

    /* A process that has left a socket behind */
    close(shm_listen_as(2, SOCK_SEQPACKET));
    b = shm_node_start(2, "");
    shm_reach(&a, &b);
    shm_exchange(&a, &b);
    shm_node_stop(&b);
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

/* A guest may give its NIC the address of another guest's NIC. */
static void test_name_of_another_port(void)
{
    g_autofree char *path = shm_node_path(2);
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmNode) b = shm_node_start(2, "");
    ShmNode c = shm_node_start(2, "");

    shm_reach(&a, &b);
    shm_exchange(&a, &b);
    shm_node_stop(&c);
    g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
    shm_exchange(&a, &b);
}

/* The port must not remove a socket if it cannot know that it is stale. */
static void test_socket_that_may_be_in_use(void)
{
    static const struct {
        int type;
        rlim_t files;
    } cases[] = {
        { SOCK_SEQPACKET, 1024 },
        { SOCK_SEQPACKET, 3 },
        { SOCK_STREAM, 1024 },
    };
    g_autofree char *path = shm_node_path(2);

    for (int i = 0; i < ARRAY_SIZE(cases); i++) {
        g_auto(ShmNode) n = shm_node_start(2, "");
        int listener;

        qtest_qmp_assert_success(n.host->qts, "{'execute': 'stop'}");
        listener = shm_listen_as(2, cases[i].type);
        shm_limit_files(&n, cases[i].files);
        qtest_qmp_assert_success(n.host->qts, "{'execute': 'cont'}");
        shm_limit_files(&n, 1024);
        g_assert_true(g_file_test(path, G_FILE_TEST_EXISTS));
        close(listener);
    }
    g_unlink(path);
}

static void test_path_that_is_not_a_socket(void)
{
    g_autofree char *path = shm_node_path(2);
    g_autoptr(GError) err = NULL;
    ShmNode n;

    g_file_set_contents(path, "", 0, &err);
    g_assert_no_error(err);
    n = shm_node_start(2, "");
    shm_node_stop(&n);
    g_assert_true(g_file_test(path, G_FILE_TEST_IS_REGULAR));
    g_unlink(path);
}

/* Addresses without a port leave room for others. */
static void test_many_addresses(void)
{
    g_auto(ShmNode) a = shm_node_start(1, "");
    g_auto(ShmNode) b = shm_node_start(2, "");
    RdmaAv av;

    av = qrdma_av(b.dev, 1);
    for (int i = 0; i < 2 * SHM_MAX_PEERS; i++) {
        av.dmac[4] = 1 + i;
        shm_post_send_av(&a, &b, &av);
        shm_drain_wire(&a);
    }
    shm_reach(&a, &b);
    shm_exchange(&a, &b);
}

static void test_bad_directories(void)
{
    g_autofree char *longer = g_strdup_printf("%s/%0100d", shm_dir, 0);
    g_autoptr(QRdmaHost) host =
        qrdma_host_start("-netdev hubport,id=n0,hubid=0");
    static const char add[] =
        "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-roce',"
        " 'id': 'r0', 'netdev': 'n0', 'shm-dir': %s}}";
    const char *const dirs[] = { longer, "/proc/no-such-directory",
                                 "/dev/null" };

    for (int i = 0; i < ARRAY_SIZE(dirs); i++) {
        g_autoptr(QDict) rsp = qtest_qmp(host->qts, add, dirs[i]);

        g_assert_true(qdict_haskey(rsp, "error"));
    }
}

static void test_polling_for_too_long(void)
{
    g_autoptr(QRdmaHost) host =
        qrdma_host_start("-netdev hubport,id=n0,hubid=0");

    qrdma_qmp_refused(host->qts,
        "{'execute': 'object-add', 'arguments': {'qom-type': 'rdma-roce',"
        " 'id': 'r0', 'netdev': 'n0', 'shm-poll-max-ns': 50001}}", "");
}

static const QRdmaTest port_tests[] = {
    { "two-ports", test_two_ports },
    { "peer-ends-and-returns", test_peer_ends_and_returns },
    { "stopped-vm-is-not-there", test_stopped_vm_is_not_there },
    { "killed-peer-is-replaced", test_killed_peer_is_replaced },
    { "name-of-another-port", test_name_of_another_port },
    { "socket-that-may-be-in-use", test_socket_that_may_be_in_use },
    { "path-that-is-not-a-socket", test_path_that_is_not_a_socket },
    { "many-addresses", test_many_addresses },
    { "bad-directories", test_bad_directories },
    { "polling-for-too-long", test_polling_for_too_long },
    {}
};

int main(int argc, char **argv)
{
    int ret;

    g_test_init(&argc, &argv, NULL);
    shm_dir = g_dir_make_tmp("rdma-shm-XXXXXX", NULL);
    g_assert_nonnull(shm_dir);
    qrdma_add_tests("/rdma-roce-shm/", port_tests);
    qrdma_add_tests("/rdma-roce-shm/sender/", shm_sender_tests);
    qrdma_add_tests("/rdma-roce-shm/", shm_receiver_tests);
    ret = g_test_run();
    g_rmdir(shm_dir);
    g_free(shm_dir);
    return ret;
}

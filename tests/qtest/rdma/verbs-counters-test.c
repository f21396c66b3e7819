/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rdma-verbs: counters of the host's port. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "verbs-test.h"

typedef struct Counters {
    Verbs *v;
    char *dir;
    GPtrArray *files;
} Counters;

static void set_counter(Counters *c, const char *dir, const char *name,
                        const char *value)
{
    g_autofree char *path = g_strdup_printf("%s/ports/1/%s", c->dir, dir);
    g_autofree char *file = g_build_filename(path, name, NULL);

    g_assert_cmpint(g_mkdir_with_parents(path, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, value, -1, NULL));
    g_ptr_array_add(c->files, g_steal_pointer(&file));
}

static Counters counters_new(void)
{
    Counters c = {
        .v = verbs_new(NULL),
        .dir = g_dir_make_tmp("verbs-counters-XXXXXX", NULL),
        .files = g_ptr_array_new_with_free_func(g_free),
    };

    fake_verbs_tell(c.v->fake, "sysfs %s", c.dir);
    return c;
}

static void counters_free(Counters *c)
{
    static const char *dirs[] = {
        "ports/1/hw_counters", "ports/1/counters", "ports/1", "ports", "",
    };

    verbs_free(c->v);
    for (guint i = 0; i < c->files->len; i++) {
        unlink(g_ptr_array_index(c->files, i));
    }
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        g_autofree char *path = g_build_filename(c->dir, dirs[i], NULL);

        rmdir(path);
    }
    g_ptr_array_free(c->files, true);
    g_free(c->dir);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Counters, counters_free)

static void restart(Counters *c)
{
    qrdma_start(c->v->dev, 0, 0);
}

static void check(Counters *c, int counter, uint64_t want)
{
    g_assert_cmpuint(qrdma_counter(c->v->dev, counter), ==, want);
}

/* Counter names of some drivers. Counters start at 0 with the guest's reset. */
static void test_since_reset(void)
{
    g_auto(Counters) c = counters_new();

    set_counter(&c, "hw_counters", "sent_pkts", "100\n");
    set_counter(&c, "hw_counters", "rcvd_pkts", "50\n");
    set_counter(&c, "hw_counters", "out_of_sequence", "7\n");
    restart(&c);
    check(&c, VIRTIO_RDMA_TX_PACKETS, 0);
    set_counter(&c, "hw_counters", "sent_pkts", "103\n");
    set_counter(&c, "hw_counters", "out_of_sequence", "9\n");
    check(&c, VIRTIO_RDMA_TX_PACKETS, 3);
    check(&c, VIRTIO_RDMA_RX_PACKETS, 0);
    check(&c, VIRTIO_RDMA_RX_OUT_OF_SEQUENCE, 2);
    restart(&c);
    check(&c, VIRTIO_RDMA_TX_PACKETS, 0);
    /* the administrator has reset the counter */
    set_counter(&c, "hw_counters", "sent_pkts", "1\n");
    check(&c, VIRTIO_RDMA_TX_PACKETS, 0);
}

/* The host has no counters for single QPs. */
static void test_of_queue_pairs(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    VerbsPair p = verbs_pair(v, RDMA_QPT_RC);
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];

    assert_status(qrdma_query_qp_counters(v->dev, 1, &p.a->qpn, values),
                  NOTSUPP);
}

/* IBTA counts data in units of four octets. */
static void test_pma_counters(void)
{
    g_auto(Counters) c = counters_new();

    restart(&c);
    set_counter(&c, "counters", "port_xmit_data", "25\n");
    set_counter(&c, "counters", "port_rcv_packets", "4000000000000\n");
    set_counter(&c, "counters", "multicast_rcv_packets", "nonsense\n");
    check(&c, VIRTIO_RDMA_TX_BYTES, 100);
    check(&c, VIRTIO_RDMA_RX_PACKETS, 4000000000000);
    check(&c, VIRTIO_RDMA_RX_MCAST_PACKETS, 0);
    check(&c, VIRTIO_RDMA_TX_PACKETS, 0);
}

static void check_port(Counters *c, uint32_t pkey, uint32_t qkey)
{
    struct virtio_rdma_query_port_rsp port;

    assert_ok(qrdma_query_port(c->v->dev, 1, &port));
    g_assert_cmpuint(le32_to_cpu(port.bad_pkey_cntr), ==, pkey);
    g_assert_cmpuint(le32_to_cpu(port.qkey_viol_cntr), ==, qkey);
}

static void test_violations(void)
{
    g_auto(Counters) c = counters_new();

    fake_verbs_tell(c.v->fake, "violations 10 20");
    restart(&c);
    check_port(&c, 0, 0);
    fake_verbs_tell(c.v->fake, "violations 11 25");
    check_port(&c, 1, 5);
    check(&c, VIRTIO_RDMA_BAD_PKEY, 1);
    check(&c, VIRTIO_RDMA_BAD_QKEY, 5);
}

/* A port that answers late delays only the command that asks. */
static void test_late(void)
{
    g_auto(Counters) c = counters_new();
    VerbsPair p = verbs_pair(c.v, RDMA_QPT_RC);
    struct virtio_rdma_query_port_req req = { .port = 1 };
    VerbsWaiting w;

    w = verbs_hold_cmd(c.v, "query_port", VIRTIO_RDMA_CMD_QUERY_PORT, &req,
                       sizeof(req), sizeof(struct virtio_rdma_query_port_rsp));
    verbs_check_works(&p, 1);
    g_assert_cmphex(qrdma_status_of(&w.cmd), ==, QRDMA_NO_STATUS);
    assert_ok(verbs_release_cmd(&w));
}

const QRdmaTest verbs_counters_tests[] = {
    { "since-reset", test_since_reset },
    { "of-queue-pairs", test_of_queue_pairs },
    { "pma", test_pma_counters },
    { "violations", test_violations },
    { "late", test_late },
    {}
};

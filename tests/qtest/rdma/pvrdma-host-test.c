/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pvrdma as the host sees it: queries, the monitor, counters, dumps, and faults
 * that the user adds.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "qobject/qnum.h"
#include "pvrdma-test.h"

#define LEN 100
#define PCAP_HEADER 24

static void write_to(PvPair *p, uint64_t wr_id, uint32_t status)
{
    pv_post(&p->a, RDMA_WR_RDMA_WRITE, wr_id, LEN, &p->b.mr);
    pv_expect(&p->a, &p->a.scq, wr_id, status, RDMA_WC_RDMA_WRITE);
}

/* The only entry of @list, which belongs to @info */
static QDict *only(QDict *info, const char *list)
{
    g_assert_cmpint(qlist_size(qdict_get_qlist(info, list)), ==, 1);
    return qobject_to(QDict, qlist_peek(qdict_get_qlist(info, list)));
}

static void test_objects(void)
{
    g_auto(PvPair) p = pv_pair_new(3, RDMA_QPT_RC);
    g_autoptr(QDict) info = qrdma_query(p.host->qts, "'device': 'd0', "
        "'objects': ['pd', 'cq', 'qp', 'mr', 'gid']");
    QDict *d;

    g_assert_true(qdict_get_bool(info, "driver"));
    d = only(info, "qps");
    g_assert_cmpint(qdict_get_int(d, "qpn"), ==, p.a.qp.handle);
    g_assert_cmpstr(qdict_get_str(d, "type"), ==, "rc");
    g_assert_cmpstr(qdict_get_str(d, "state"), ==, "rts");
    g_assert_cmpint(qdict_get_int(d, "send-cqn"), ==, p.a.scq.handle);
    d = only(info, "mrs");
    g_assert_cmpint(qdict_get_int(d, "rkey"), ==, p.a.mr.rkey);
    g_assert_cmpstr(qdict_get_str(only(info, "gids"), "gid"), ==,
                    "::ffff:10.0.0.1");
    g_assert_cmpint(qlist_size(qdict_get_qlist(info, "cqs")), ==, 2);
}

/* Without a driver, and after it has left */
static void test_no_driver(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    QDict *info;

    qpvrdma_write(p.a.dev, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    info = qrdma_query(p.host->qts, "'device': 'd0', "
                       "'objects': ['qp', 'mr']");
    g_assert_false(qdict_get_bool(info, "driver"));
    g_assert_true(qlist_empty(qdict_get_qlist(info, "qps")));
    g_assert_true(qlist_empty(qdict_get_qlist(info, "mrs")));
    qobject_unref(info);
}

static void test_info(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    g_autofree char *qp = g_strdup_printf("qp %u: rc rts", p.a.qp.handle);
    g_autofree char *text = qtest_hmp(p.host->qts, "info rdma d0 %u",
                                      p.a.qp.handle);
    g_autofree char *all = qtest_hmp(p.host->qts, "info rdma");

    g_assert_nonnull(strstr(text, qp));
    g_assert_nonnull(strstr(all, "d0"));
    g_assert_nonnull(strstr(all, "d1"));
}

static uint64_t counter(PvPair *p, const char *name)
{
    g_autoptr(QDict) info = qrdma_query(p->host->qts, "'device': 'd0'");
    QDict *counters = qdict_get_qdict(info, "counters");

    return qnum_get_uint(qobject_to(QNum, qdict_get(counters, name)));
}

/* Counters begin at 0 with each driver. */
static void test_counters(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    uint64_t sent = counter(&p, "tx-packets");

    for (int i = 0; i < 10; i++) {
        write_to(&p, i, RDMA_WC_SUCCESS);
    }
    g_assert_cmpint(counter(&p, "tx-packets"), >=, sent + 10);
    qpvrdma_write(p.a.dev, PVRDMA_REG_CTL, PVRDMA_CTL_RESET);
    g_assert_cmpint(counter(&p, "tx-packets"), ==, 0);
}

/* A datagram with a bad Q_Key shows in the attributes of the port. */
static void test_bad_qkey(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_UD);
    PvrdmaSge sge = pv_sge(&p.a, 0, 8);
    PvrdmaSendWqe wqe = { .num_sge = 1, .opcode = RDMA_WR_SEND };
    PvrdmaCmdQueryPort req = { .port = 1 };
    PvrdmaRspQueryPort port;

    pv_ud_address(&wqe, &p.a, &p.b, PV_QKEY + 1);
    qpvrdma_post_send(p.a.dev, &p.a.qp, &wqe, &sge);
    do {
        assert_done(qpvrdma_call(p.b.dev, QUERY_PORT, &req, &port));
    } while (!port.qkey_viol);
    g_assert_cmpint(port.qkey_viol, ==, 1);
}

static void test_dump(void)
{
    g_autofree char *dir = g_dir_make_tmp("pvrdma-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(dir, "pcap", NULL);
    PvPair p = pv_pair_new(0, RDMA_QPT_RC);
    GStatBuf st;

    qtest_qmp_assert_success(p.host->qts, "{'execute': 'object-add', "
                             "'arguments': {'qom-type': 'filter-dump', "
                             "'id': 'f0', 'netdev': 'n0', 'file': %s}}", path);
    write_to(&p, 1, RDMA_WC_SUCCESS);
    pv_pair_free(&p);
    g_assert_cmpint(g_stat(path, &st), ==, 0);
    /* The write, and its acknowledgement */
    g_assert_cmpint(st.st_size, >=, PCAP_HEADER + 2 * 16 + LEN);
    g_unlink(path);
    g_rmdir(dir);
}

static void test_error_event(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    g_autoptr(QDict) event = NULL;

    p.b.mr.rkey ^= 1;
    pv_post(&p.a, RDMA_WR_RDMA_WRITE, 7, LEN, &p.b.mr);
    pv_expect(&p.a, &p.a.scq, 7, RDMA_WC_REM_ACCESS_ERR, 0);
    event = qtest_qmp_eventwait_ref(p.host->qts, "RDMA_QP_ERROR");
    g_assert_nonnull(event);
}

static void add_fault(PvPair *p, const char *fault)
{
    g_autofree char *cmd = g_strdup_printf(
        "{'execute': 'rdma-fault-add', 'arguments': {'device': 'd0', "
        "'id': 'f', %s}}", fault);

    qtest_qmp_assert_success(p->host->qts, cmd, NULL);
}

/* A fault of a command: the driver sees ERR. */
static void test_command_fault(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);
    PvrdmaCmdHandle req = {};
    PvrdmaRspHandle rsp;

    add_fault(&p, "'kind': 'command-error', 'command': 'create-pd', "
              "'status': 'nomem', 'times': 1");
    g_assert_cmpint(qpvrdma_call(p.a.dev, CREATE_PD, &req, &rsp), ==, ENOMEM);
    qpvrdma_create_pd(p.a.dev, 0);
}

/* A fault of a work request: it fails, and its QP with it. */
static void test_send_fault(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    add_fault(&p, "'kind': 'completion-error', 'opcode': 'rdma-write', "
              "'status': 'retry-exc-err', 'after': 1");
    write_to(&p, 1, RDMA_WC_SUCCESS);
    write_to(&p, 2, RDMA_WC_RETRY_EXC_ERR);
}

/* The port is down as long as the fault says; the driver gets both events. */
static void test_port_fault(void)
{
    g_auto(PvPair) p = pv_pair_new(0, RDMA_QPT_RC);

    add_fault(&p, "'kind': 'port-down', 'duration': 100");
    pv_expect_event(p.a.dev, RDMA_EVENT_PORT_ERR, 1);
    g_assert_true(qpvrdma_interrupted(p.a.dev, PVRDMA_VECTOR_EVENT));
    qtest_clock_step(p.host->qts, 200 * QRDMA_MS);
    pv_expect_event(p.a.dev, RDMA_EVENT_PORT_ACTIVE, 1);
}

const QRdmaTest pvrdma_host_tests[] = {
    { "objects", test_objects },
    { "no-driver", test_no_driver },
    { "info", test_info },
    { "counters", test_counters },
    { "bad-qkey", test_bad_qkey },
    { "dump", test_dump },
    { "error-event", test_error_event },
    { "command-fault", test_command_fault },
    { "send-fault", test_send_fault },
    { "port-fault", test_port_fault },
    { }
};

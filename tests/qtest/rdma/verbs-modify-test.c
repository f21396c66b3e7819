/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rdma-verbs: how a MODIFY_QP of the guest reaches the host's device, and how
 * one that fails there is reported.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "verbs-test.h"

#define INIT (RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT | \
              RDMA_QP_ACCESS_FLAGS)
#define RTR (RDMA_QP_STATE | RDMA_QP_AV | RDMA_QP_PATH_MTU | \
             RDMA_QP_DEST_QPN | RDMA_QP_RQ_PSN | \
             RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER)
#define RTS (RDMA_QP_STATE | RDMA_QP_SQ_PSN | RDMA_QP_TIMEOUT | \
             RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY | RDMA_QP_MAX_QP_RD_ATOMIC)

static QRdmaQp *new_qp(Verbs *v)
{
    QRdmaCq *cq = qrdma_create_cq(v->dev, 16);

    return qrdma_create_qp(qrdma_alloc_pd(v->dev), cq, cq, RDMA_QPT_RC);
}

/* The double refuses bits that the wire does not have. */
static void test_wide_values_are_cut(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaQp *qp = new_qp(v);
    RdmaQpAttr attr = qrdma_good_attr(qp, RDMA_QPS_INIT);
    RdmaQpAttr got;

    assert_ok(qrdma_modify_qp(qp, INIT, &attr));
    attr.qp_state = RDMA_QPS_RTR;
    attr.ah_attr.flow_label = UINT32_MAX;
    attr.rq_psn = 0xab123456;
    attr.dest_qp_num |= 0xcd000000;
    attr.min_rnr_timer |= 0xe0;
    assert_ok(qrdma_modify_qp(qp, RTR, &attr));
    attr.qp_state = RDMA_QPS_RTS;
    attr.sq_psn = 0xff654321;
    attr.retry_cnt = 8;
    attr.rnr_retry = 255;
    assert_ok(qrdma_modify_qp(qp, RTS, &attr));

    assert_ok(qrdma_query_qp(qp, &got));
    g_assert_cmphex(got.ah_attr.flow_label, ==, 0xfffff);
    g_assert_cmphex(got.rq_psn, ==, 0x123456);
    g_assert_cmphex(got.sq_psn, ==, 0x654321);
    g_assert_cmphex(got.dest_qp_num, ==, qp->wire_qpn);
    g_assert_cmpint(got.min_rnr_timer, ==, 12);
    g_assert_cmpint(got.retry_cnt, ==, 7);
    g_assert_cmpint(got.rnr_retry, ==, 7);
}

static void test_reset_forgets_attributes(void)
{
    g_autoptr(Verbs) v = verbs_new(NULL);
    QRdmaQp *qp = new_qp(v);
    RdmaQpAttr attr = qrdma_good_attr(qp, RDMA_QPS_INIT);
    RdmaQpAttr got;

    assert_ok(qrdma_modify_qp(qp, INIT, &attr));
    attr.qp_state = RDMA_QPS_RTR;
    attr.ah_attr.flow_label = 1;
    assert_ok(qrdma_modify_qp(qp, RTR, &attr));
    attr.qp_state = RDMA_QPS_RESET;
    assert_ok(qrdma_modify_qp(qp, RDMA_QP_STATE, &attr));

    assert_ok(qrdma_query_qp(qp, &got));
    g_assert_cmphex(got.ah_attr.flow_label, ==, 0);
}

typedef struct Log {
    char *path;
    size_t seen;
    const QRdmaQp *qp;
} Log;

/* The log since the last call is @text, of the QP. */
static void expect_log(Log *l, const char *text)
{
    g_autofree char *line = g_strdup_printf("rdma: QP %u: MODIFY_QP %s\n",
                                            l->qp->qpn, text);
    g_autofree char *all = NULL;
    size_t size;

    g_assert_true(g_file_get_contents(l->path, &all, &size, NULL));
    g_assert_cmpstr(all + l->seen, ==, line);
    l->seen = size;
}

/*
 * The log names the reason if any part has found one, and else the host's
 * errno.
 */
static void test_refused(void)
{
    g_autofree char *options = NULL;
    RdmaQpAttr attr;
    Log l = {};
    Verbs *v;
    QRdmaQp *qp;
    int fd = g_file_open_tmp("rdma-log-XXXXXX", &l.path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    options = g_strdup_printf("-d guest_errors -D %s", l.path);
    v = verbs_host_with(NULL, "share=on", options);
    verbs_plug(v);
    qp = new_qp(v);
    l.qp = qp;

    attr = qrdma_good_attr(qp, RDMA_QPS_RTR);
    assert_status(qrdma_modify_qp(qp, RTR, &attr), INVAL);
    expect_log(&l, "from RESET to RTR: qp_state 0x2 cannot follow");
    attr = qrdma_good_attr(qp, RDMA_QPS_INIT);
    attr.port_num = 2;
    assert_status(qrdma_modify_qp(qp, INIT, &attr), INVAL);
    expect_log(&l, "from RESET to INIT: port_num is 2, not 1 to 1");
    attr.port_num = 1;
    assert_status(qrdma_modify_qp(qp, INIT & ~RDMA_QP_PORT, &attr), INVAL);
    expect_log(&l, "from RESET to INIT: port_num is missing in attr_mask "
               "0x19: 0x38 is required, 0x39 allowed");
    fake_verbs_tell(v->fake, "fail modify_qp EBUSY");
    assert_status(qrdma_modify_qp(qp, INIT, &attr), BUSY);
    expect_log(&l, "from RESET to INIT: attr_mask 0x39 is refused by the "
               "host's device: Device or resource busy");
    assert_ok(qrdma_modify_qp(qp, INIT, &attr));

    attr = qrdma_good_attr(qp, RDMA_QPS_RTR);
    attr.ah_attr.sgid_index = 9;
    assert_status(qrdma_modify_qp(qp, RTR, &attr), INVAL);
    expect_log(&l, "from INIT to RTR: ah_attr.grh.sgid_index 0x9 is not an "
               "entry of the GID table");
    attr = qrdma_good_attr(qp, RDMA_QPS_RTR);
    attr.max_dest_rd_atomic = 255;
    assert_status(qrdma_modify_qp(qp, RTR, &attr), INVAL);
    expect_log(&l, "from INIT to RTR: max_dest_rd_atomic is 255, not 0 to 16");
    verbs_free(v);
    g_unlink(l.path);
    g_free(l.path);
}

const QRdmaTest verbs_modify_tests[] = {
    { "wide-values-are-cut", test_wide_values_are_cut },
    { "reset-forgets-attributes", test_reset_forgets_attributes },
    { "refused", test_refused },
    {}
};

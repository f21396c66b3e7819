/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: the messages of "-d guest_errors" for values that the device
 * refuses.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "rdma-test.h"

#define SLOT 5

typedef struct Log {
    QRdmaHost *host;
    QRdma *dev;
    char *path;
    size_t seen;
} Log;

static Log log_start_with(const char *options)
{
    Log l = {};
    int fd = g_file_open_tmp("rdma-log-XXXXXX", &l.path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    l.host = qrdma_host_start(
        "%s -D %s -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4,"
        "max-sge=4,allowed-gids='fe80::/10 10.0.0.0/8'", options, l.path,
        SLOT);
    l.dev = qrdma_open(l.host, QPCI_DEVFN(SLOT, 0));
    qrdma_start(l.dev, 0, 0);
    return l;
}

static Log log_start(void)
{
    return log_start_with("-d guest_errors");
}

/* The log since the last call is @text. */
static void expect_log(Log *l, const char *text)
{
    g_autofree char *all = NULL;
    g_autofree char *line = g_strdup_printf("rdma: %s\n", text);
    size_t size;

    g_assert_true(g_file_get_contents(l->path, &all, &size, NULL));
    g_assert_cmpstr(all + l->seen, ==, line);
    l->seen = size;
}

static void log_stop(Log *l)
{
    qrdma_host_stop(l->host);
    g_unlink(l->path);
    g_free(l->path);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Log, log_stop)

static void test_values_of_commands(void)
{
    static const uint8_t unicast[RDMA_GID_LEN] = { 0xfe, 0x80, [15] = 1 };
    static const uint8_t foreign[RDMA_GID_LEN] = {
        [10] = 0xff, 0xff, 192, 0, 2, 1,
    };
    g_auto(Log) l = log_start();
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    QRdmaCq *cq = qrdma_create_cq(l.dev, 16);
    RdmaQpInitAttr init = {
        .pdn = pd->pdn,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = cq->cqn,
        .recv_cqn = cq->cqn,
        .cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 5 },
    };
    RdmaSrqAttr srq = { .pdn = pd->pdn, .max_wr = 16, .limit = 17 };
    uint16_t pkey;
    uint32_t n;

    assert_status(qrdma_try_create_cq(l.dev, 0, &n), INVAL);
    expect_log(&l, "cqe is 0, not 1 to 32768");
    assert_status(qrdma_req_notify_cq(cq, 0x14), INVAL);
    expect_log(&l, "flags 0x14 has unknown flags: known are 0x3");
    assert_status(qrdma_query_pkey(l.dev, 2, 0, &pkey), INVAL);
    expect_log(&l, "port is 2, not 1 to 1");
    assert_status(qrdma_add_gid(l.dev, 5, foreign), PERM);
    expect_log(&l, "GID 5: ::ffff:192.0.2.1 is not in allowed-gids");
    assert_status(qrdma_add_gid(l.dev, 128, unicast), INVAL);
    expect_log(&l, "index is 128, not 0 to 127");
    assert_status(qrdma_try_create_qp(l.dev, &init, &n), INVAL);
    expect_log(&l, "max_send_sge is 5, not 0 to 4");
    assert_status(qrdma_try_create_srq(l.dev, &srq, &n), INVAL);
    expect_log(&l, "limit is 17, not 0 to 16");
}

/* @mask: attributes besides the state; @text: the error, from INIT on. */
static void check_refused(Log *l, QRdmaQp *qp, uint32_t mask,
                          const RdmaQpAttr *attr, uint8_t status,
                          const char *text)
{
    g_autofree char *line = g_strdup_printf("QP %u: MODIFY_QP %s", qp->qpn,
                                            text);

    g_test_message("%s", text);
    g_assert_cmpint(qrdma_modify_qp(qp, RDMA_QP_STATE | mask, attr), ==,
                    status);
    expect_log(l, line);
}

#define RTR_MASK (RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN | \
                  RDMA_QP_RQ_PSN | RDMA_QP_MAX_DEST_RD_ATOMIC | \
                  RDMA_QP_MIN_RNR_TIMER)
#define RTS_MASK (RDMA_QP_SQ_PSN | RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | \
                  RDMA_QP_RNR_RETRY | RDMA_QP_MAX_QP_RD_ATOMIC)

/* MODIFY_QP names the bad attribute, its value and the limit. */
static void test_refused_modify_qp(void)
{
    g_auto(Log) l = log_start();
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    QRdmaCq *cq = qrdma_create_cq(l.dev, 16);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    const uint32_t init = RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                          RDMA_QP_ACCESS_FLAGS;
    RdmaQpAttr attr;

    qrdma_setup_gids(l.dev, 1);
#define REFUSED(to, mask, field, bad, status, text) do { \
    attr = qrdma_good_attr(qp, to); \
    attr.field = (bad); \
    check_refused(&l, qp, mask, &attr, VIRTIO_RDMA_S_##status, text); \
} while (0)
#define TO_INIT(field, bad, text) \
    REFUSED(RDMA_QPS_INIT, init, field, bad, INVAL, \
            "from RESET to INIT: " text)
#define TO_RTR(field, bad, text) \
    REFUSED(RDMA_QPS_RTR, RTR_MASK, field, bad, INVAL, \
            "from INIT to RTR: " text)
#define TO_RTS(field, bad, text) \
    REFUSED(RDMA_QPS_RTS, RTS_MASK, field, bad, INVAL, \
            "from RTR to RTS: " text)

    REFUSED(7, 0, qp_state, 7, INVAL, "from ? to ?: qp_state is 7, not 0 to 6");
    REFUSED(RDMA_QPS_INIT, RDMA_QP_ALT_PATH, alt_timeout, 0, NOTSUPP,
            "from ? to ?: alt_ah_attr 0x4001 is not supported in attr_mask");
    REFUSED(RDMA_QPS_INIT, 1u << 31, qkey, 0, INVAL,
            "from ? to ?: attr_mask 0x80000001 is not supported in attr_mask");
    REFUSED(RDMA_QPS_RTR, RTR_MASK, qkey, 0, INVAL,
            "from RESET to RTR: qp_state 0x2 cannot follow");
    REFUSED(RDMA_QPS_INIT, RDMA_QP_PORT, qkey, 0, INVAL,
            "from RESET to INIT: qp_access_flags is missing in attr_mask "
            "0x21: 0x38 is required, 0x39 allowed");
    REFUSED(RDMA_QPS_INIT, init | RDMA_QP_QKEY, qkey, 0, INVAL,
            "from RESET to INIT: qkey is not allowed in attr_mask 0x79: 0x38 "
            "is required, 0x39 allowed");
    TO_INIT(port_num, 2, "port_num is 2, not 1 to 1");
    TO_INIT(pkey_index, 1, "pkey_index is 1, not 0 to 0");
    attr = qrdma_good_attr(qp, RDMA_QPS_INIT);
    assert_ok(qrdma_modify_qp(qp, RDMA_QP_STATE | init, &attr));
    TO_RTR(path_mtu, 6, "path_mtu is 6, not 1 to 5");
    TO_RTR(max_dest_rd_atomic, 17,
           "max_dest_rd_atomic is 17, not 0 to 16");
    TO_RTR(ah_attr.port_num, 0, "ah_attr.port_num is 0, not 1 to 1");
    TO_RTR(ah_attr.sgid_index, 9, "ah_attr.grh.sgid_index 0x9 is not an "
           "entry of the GID table");
    TO_RTR(ah_attr.sgid_index, 1, "ah_attr.grh.sgid_index 0x1 is a GID of "
           "another IP version than ah_attr.grh.dgid");
    TO_RTR(ah_attr.dgid[0], 0xff,
           "ah_attr.grh.dgid 0xff is a multicast address");
    attr = qrdma_good_attr(qp, RDMA_QPS_RTR);
    assert_ok(qrdma_modify_qp(qp, RDMA_QP_STATE | RTR_MASK, &attr));
    TO_RTS(timeout, 32, "timeout is 32, not 0 to 31");
    TO_RTS(max_rd_atomic, 17, "max_rd_atomic is 17, not 0 to 16");
    attr = qrdma_good_attr(qp, RDMA_QPS_RTS);
    attr.cur_qp_state = RDMA_QPS_SQD;
    check_refused(&l, qp, RTS_MASK | RDMA_QP_CUR_STATE, &attr,
                  VIRTIO_RDMA_S_INVAL,
                  "from RTR to RTS: cur_qp_state is 4, not 2 to 2");
#undef TO_RTS
#undef TO_RTR
#undef TO_INIT
#undef REFUSED
}

static void test_refused_modify_qp_is_traced(void)
{
    g_auto(Log) l = log_start_with("-trace rdma_backend_qp_refused");
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    QRdmaCq *cq = qrdma_create_cq(l.dev, 16);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_UD);
    g_autofree char *text = g_strdup_printf(
        "QP %u: MODIFY_QP from RESET to INIT: port_num is out of range: 0x2 "
        "(min or required 0x1, max or allowed 0x1)\n", qp->qpn);
    g_autofree char *all = NULL;

    assert_status(qrdma_modify_qp(qp, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
                                  RDMA_QP_PORT | RDMA_QP_QKEY, &(RdmaQpAttr) {
                                      .qp_state = RDMA_QPS_INIT, .port_num = 2,
    }), INVAL);
    g_assert_true(g_file_get_contents(l.path, &all, NULL, NULL));
    g_assert_true(g_str_has_prefix(all, "rdma_backend_qp_refused backend 0x"));
    g_assert_true(g_str_has_suffix(all, text));
}

static void test_values_of_a_wqe(void)
{
    g_auto(Log) l = log_start();
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    QRdmaCq *cq = qrdma_create_cq(l.dev, 16);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
    g_autofree char *text = NULL;
    RdmaSge sge[5] = {};

    qrdma_setup_gids(l.dev, 1);
    qrdma_connect(qp, qp, NULL);
    qrdma_post_send(qp, &(RdmaSendWr) {
        .wr_id = 1,
        .opcode = RDMA_WR_SEND,
        .sg_list = sge,
        .num_sge = ARRAY_SIZE(sge),
    });
    qrdma_expect(cq, 1, RDMA_WC_LOC_QP_OP_ERR);
    text = g_strdup_printf("num_sge is 5, not 0 to 4\nvirtio-rdma: QP %u: bad "
                           "send WQE of %zu bytes (%zu or more): opcode 2 "
                           "flags 0x0 num_sge 5", qp->qpn,
                           sizeof(struct virtio_rdma_sq_wqe) +
                           5 * sizeof(struct virtio_rdma_sge),
                           sizeof(struct virtio_rdma_sq_wqe));
    expect_log(&l, text);
}

/* Registers of another device, and of this one: they are not read. */
static void test_page_list_in_registers(void)
{
    g_auto(Log) l = log_start();
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    const uint64_t lists[] = {
        0xfed00000,
        l.dev->pci->bar.addr,
    };

    for (int i = 0; i < ARRAY_SIZE(lists); i++) {
        struct virtio_rdma_reg_user_mr_req req = {
            .pdn = cpu_to_le32(pd->pdn),
            .length = cpu_to_le64(4096),
            .pages = cpu_to_le64(lists[i]),
            .npages = cpu_to_le32(1),
        };
        g_autofree char *text = g_strdup_printf(
            "page table at 0x%" PRIx64 " is not RAM", lists[i]);

        assert_status(qrdma_cmd(l.dev, VIRTIO_RDMA_CMD_REG_USER_MR, &req,
                                sizeof(req), NULL, 20), INVAL);
        expect_log(&l, text);
    }
}

const QRdmaTest guest_error_tests[] = {
    { "page-list-in-registers", test_page_list_in_registers },
    { "refused-modify-qp", test_refused_modify_qp },
    { "refused-modify-qp-is-traced", test_refused_modify_qp_is_traced },
    { "values-of-commands", test_values_of_commands },
    { "values-of-a-wqe", test_values_of_a_wqe },
    {}
};

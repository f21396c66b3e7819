/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: what "-d guest_errors" tells the author of a driver about
 * values that the device refuses.
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

static Log log_start(void)
{
    Log l = {};
    int fd = g_file_open_tmp("rdma-log-XXXXXX", &l.path, NULL);

    g_assert_cmpint(fd, >=, 0);
    close(fd);
    l.host = qrdma_host_start(
        "-d guest_errors -D %s -netdev hubport,id=n0,hubid=0 "
        "-device virtio-rdma-pci,netdev=n0,addr=%d,max-qp=8,max-cq=4,"
        "max-sge=4,allowed-gids='fe80::/10 10.0.0.0/8'", l.path, SLOT);
    l.dev = qrdma_open(l.host, QPCI_DEVFN(SLOT, 0));
    qrdma_start(l.dev, QRDMA_FEATURES | QRDMA_F(VIRTIO_RDMA_F_SRQ), 0);
    return l;
}

/* What was logged since the last call is @text. */
static void expect_log(Log *l, const char *text)
{
    g_autofree char *all = NULL;
    g_autofree char *line = g_strdup_printf("virtio-rdma: %s\n", text);
    size_t size;

    g_assert_true(g_file_get_contents(l->path, &all, &size, NULL));
    g_assert_cmpstr(all + l->seen, ==, line);
    l->seen = size;
}

static void log_stop(Log *l)
{
    qrdma_close(l->dev);
    qrdma_host_stop(l->host);
    g_unlink(l->path);
    g_free(l->path);
}

static void test_values_of_commands(void)
{
    static const uint8_t unicast[RDMA_GID_LEN] = { 0xfe, 0x80, [15] = 1 };
    static const uint8_t foreign[RDMA_GID_LEN] = {
        [10] = 0xff, 0xff, 192, 0, 2, 1,
    };
    Log l = log_start();
    QRdmaPd *pd = qrdma_alloc_pd(l.dev);
    QRdmaCq *cq = qrdma_create_cq(l.dev, 16);
    QRdmaQp *qp = qrdma_create_qp(pd, cq, cq, RDMA_QPT_RC);
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
    expect_log(&l, "cqe is 0, not 1 to 1024");
    assert_status(qrdma_req_notify_cq(cq, 0x14), INVAL);
    expect_log(&l, "flags 0x14 has unknown flags: known are 0x3");
    assert_status(qrdma_query_pkey(l.dev, 2, 0, &pkey), INVAL);
    expect_log(&l, "port is 2, not 1 to 1");
    assert_status(qrdma_add_gid(l.dev, 5, foreign), PERM);
    expect_log(&l, "GID 5: ::ffff:192.0.2.1 is none of allowed-gids");
    assert_status(qrdma_add_gid(l.dev, 128, unicast), INVAL);
    expect_log(&l, "index is 128, not 0 to 127");
    assert_status(qrdma_try_create_qp(l.dev, &init, &n), INVAL);
    expect_log(&l, "max_send_sge is 5, not 0 to 4");
    assert_status(qrdma_try_create_srq(l.dev, &srq, &n), INVAL);
    expect_log(&l, "limit is 17, not 0 to 16");
    assert_status(qrdma_modify_qp(qp, RDMA_QP_STATE, &(RdmaQpAttr) {
        .qp_state = 7,
    }), INVAL);
    expect_log(&l, "qp_state is 7, not 0 to 6");
    log_stop(&l);
}

static void test_values_of_a_wqe(void)
{
    Log l = log_start();
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
    log_stop(&l);
}

/* Registers of another device, and of this one: they are not read. */
static void test_page_list_in_registers(void)
{
    Log l = log_start();
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
    log_stop(&l);
}

void add_guest_error_tests(void)
{
    qtest_add_func("virtio-rdma/guest-error/page-list-in-registers",
                   test_page_list_in_registers);
    qtest_add_func("virtio-rdma/guest-error/values-of-commands",
                   test_values_of_commands);
    qtest_add_func("virtio-rdma/guest-error/values-of-a-wqe",
                   test_values_of_a_wqe);
}

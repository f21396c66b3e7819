/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the tests of one virtio-rdma device. */
#ifndef TESTS_RDMA_TEST_H
#define TESTS_RDMA_TEST_H

#include "libqos/virtio-rdma.h"

/* The device of most tests: small tables, so that they can be filled. */
#define TEST_MAX_QP 8
#define TEST_MAX_CQ 6
#define TEST_MAX_MR 16
#define TEST_MAX_PD 5
#define TEST_MAX_MW 3
#define TEST_MAX_SRQ 4
#define TEST_MAX_SRQ_WR 3000
#define TEST_MAX_MCAST_GRP 3
#define TEST_GIDS 16
#define TEST_SLOT 4
#define TEST_MAC "52:54:00:12:34:01"

/*
 * A device that was just started. All tests of the program share one QEMU;
 * the reset in between is part of what is tested.
 */
QRdma *test_device(void);
/* The same, with @features besides the usual ones */
QRdma *test_device_with(uint64_t features);
/* The same, reset and ready for qrdma_prepare() or qrdma_start(). */
QRdma *test_device_reset(void);
/* A device for a driver that knows only the RFC's device */
QRdma *test_rfc_device(void);
void test_device_quit(void);
/*
 * Register tests of the shared device, and again with layout=demo, then under
 * virtio-rdma/demo/. @prefix begins with virtio-rdma/.
 */
void test_add_layouts(const char *prefix, const QRdmaTest *tests);
/*
 * A device with its own QEMU and options. The device is reset. End it with
 * qrdma_host_stop() of its host.
 */
QRdma *test_own_device(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* Two connected QPs of one device that talk to each other. */
typedef struct TestPair {
    QRdma *dev;
    QRdmaPd *pd;
    QRdmaCq *cq_a;                  /* both queues of a */
    QRdmaCq *cq_b;
    QRdmaQp *a;
    QRdmaQp *b;
    QRdmaMr *mr_a;                  /* TEST_MR_SIZE bytes, all rights */
    QRdmaMr *mr_b;
} TestPair;

#define TEST_MR_SIZE (64 * 1024)
#define TEST_IOVA_A 0x7f1234560123ull
#define TEST_IOVA_B 0x10000ull
#define TEST_ACCESS_ALL (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE)

/* @path NULL: the usual one. */
TestPair test_loopback_pair(RdmaQpType type, const QRdmaPath *path);
/* The same on a device that was started, with CQs of @cqe. */
TestPair test_pair_on(QRdma *d, RdmaQpType type, uint32_t cqe,
                      const QRdmaPath *path);

/* A WRITE of QP a that is larger than a packet succeeds. */
void test_write(TestPair *t);
/* Another CQ with the number of cq_b, and another QP b, connected */
void test_renew_cq_b(TestPair *t);
/* Put both QPs in RESET, and drop completions that are left. */
void test_reset_pair(TestPair *t);
/* The same, and connect them again. */
void test_reconnect(TestPair *t);

/* QP a sends to QP b, which receives into the buffers of an SRQ. */
typedef struct TestSrqPair {
    QRdma *dev;
    QRdmaPd *pd;
    QRdmaCq *cq_a;
    QRdmaCq *cq_b;
    QRdmaSrq *srq;
    QRdmaQp *a;
    QRdmaQp *b;
    QRdmaMr *mr;
} TestSrqPair;

#define TEST_MSG 100                /* bytes of a message */

/* Attributes of a QP that receives from @srq */
RdmaQpInitAttr test_srq_init(const QRdmaSrq *srq, RdmaQpType type);
TestSrqPair test_srq_pair(QRdmaPd *pd, QRdmaSrq *srq, RdmaQpType type);
/* 256 bytes for each receive, at the end of the region */
RdmaSge test_srq_sge(TestSrqPair *p, uint64_t wr_id);
/* Send @len bytes, without waiting for a completion. */
void test_srq_send(TestSrqPair *p, uint64_t wr_id, uint32_t len);
/* One message, which takes WQE @wr_id */
void test_srq_transfer(TestSrqPair *p, uint64_t wr_id);

extern const QRdmaTest alloc_tests[];
extern const QRdmaTest bringup_tests[];
extern const QRdmaTest config_tests[];
extern const QRdmaTest ctrl_tests[];
extern const QRdmaTest demo_tests[];
extern const QRdmaTest direct_cq_tests[];
extern const QRdmaTest direct_srq_tests[];
extern const QRdmaTest direct_tests[];
extern const QRdmaTest direct_recv_tests[];
extern const QRdmaTest object_tests[];
extern const QRdmaTest features_tests[];
extern const QRdmaTest mcast_tests[];
void add_memory_tests(void);
extern const QRdmaTest mw_tests[];
extern const QRdmaTest reg_pages_tests[];
extern const QRdmaTest mr_table_tests[];
extern const QRdmaTest mr_tests[];
extern const QRdmaTest qp_tests[];
extern const QRdmaTest gid_tests[];
extern const QRdmaTest guest_error_tests[];
extern const QRdmaTest packed_tests[];
extern const QRdmaTest reset_tests[];
extern const QRdmaTest ring_tests[];
extern const QRdmaTest shadow_tests[];
void add_sq_poll_tests(void);
extern const QRdmaTest qp_counters_tests[];
extern const QRdmaTest srq_tests[];
extern const QRdmaTest wqe_tests[];
extern const QRdmaTest notify_tests[];
extern const QRdmaTest cq_tests[];
void add_eject_tests(void);
extern const QRdmaTest event_tests[];
extern const QRdmaTest iothread_tests[];
extern const QRdmaTest lifecycle_tests[];
extern const QRdmaTest random_tests[];
extern const QRdmaTest realize_tests[];
void add_flavour_tests(void);
extern const QRdmaTest turn_tests[];
extern const QRdmaTest nested_loop_tests[];
extern const QRdmaTest nested_tests[];

#endif

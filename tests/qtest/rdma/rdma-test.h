/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of one virtio-rdma device have in common.
 */
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
#define TEST_MAX_MCAST_QPS 2
#define TEST_GIDS 16
#define TEST_SLOT 4
#define TEST_MAC "52:54:00:12:34:01"

#define assert_status(call, want) \
    g_assert_cmpint((call), ==, VIRTIO_RDMA_S_##want)
#define assert_ok(call) assert_status(call, OK)

/*
 * A device that was just started. All tests of the program share one QEMU;
 * the reset in between is part of what is tested.
 */
QRdma *test_device(void);
/* The same, with @features beside the usual ones. */
QRdma *test_device_with(uint64_t features);
/* The same, reset and ready for qrdma_prepare() or qrdma_start(). */
QRdma *test_device_reset(void);
void test_device_quit(void);

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

/* A command that waits in the control queue. */
typedef struct TestWaiting {
    QRdma *d;
    uint64_t rsp;                   /* where its status will be; 0xff before */
} TestWaiting;

/* Make a command available, without a notification. */
TestWaiting test_enqueue(QRdma *d, uint8_t cmd, const void *req, size_t len,
                         size_t rsp_len);
/* The same with REG_USER_MR of millions of pages: all tables are one. */
TestWaiting test_enqueue_long(QRdmaPd *pd);
uint8_t test_status_of(const TestWaiting *w);

void add_alloc_tests(void);
void add_bringup_tests(void);
void add_config_tests(void);
void add_ctrl_tests(void);
void add_direct_cq_tests(void);
void add_direct_srq_tests(void);
void add_direct_tests(void);
void add_direct_recv_tests(void);
void add_object_tests(void);
void add_mcast_tests(void);
void add_memory_tests(void);
void add_mw_tests(void);
void add_reg_pages_tests(void);
void add_mr_table_tests(void);
void add_mr_tests(void);
void add_qp_tests(void);
void add_gid_tests(void);
void add_guest_error_tests(void);
void add_packed_tests(void);
void add_reset_tests(void);
void add_ring_tests(void);
void add_shadow_tests(void);
void add_qp_counters_tests(void);
void add_srq_tests(void);
void add_wqe_tests(void);
void add_notify_tests(void);
void add_cq_tests(void);
void add_eject_tests(void);
void add_event_tests(void);
void add_iothread_tests(void);
void add_lifecycle_tests(void);
void add_random_tests(void);
void add_realize_tests(void);
void add_flavour_tests(void);
void add_turn_tests(void);
void add_nested_loop_tests(void);
void add_nested_tests(void);

#endif

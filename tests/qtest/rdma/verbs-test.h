/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the tests of rdma-verbs over the double of libibverbs. */
#ifndef TESTS_RDMA_VERBS_TEST_H
#define TESTS_RDMA_VERBS_TEST_H

#include "libqos/virtio-rdma.h"
#include "tests/fake-ibverbs/client.h"

#define VERBS_MR_SIZE (64 * 1024)
#define VERBS_IOVA_A 0x7f1234560000ull
#define VERBS_IOVA_B 0x10000ull
#define VERBS_ACCESS_ALL (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE)
#define VERBS_SLOT 4
/* The GIDs of qrdma_setup_gids(1), for the double */
#define VERBS_GIDS "gid 0 fe80::5054:ff:fe12:3401; gid 1 10.0.0.1; "

/* A QEMU with the double, and a device on it. */
typedef struct Verbs {
    FakeVerbs *fake;
    QRdmaHost *host;
    QRdma *dev;                     /* NULL: not plugged in */
} Verbs;

/*
 * Start QEMU with the usual GIDs and then @script (NULL: nothing), without a
 * device.
 */
Verbs *verbs_host(const char *script);
/* The same with memory that is shared, or not. */
Verbs *verbs_host_memory(const char *script, bool shared);
/* With options for the memory backend, and others for QEMU. */
Verbs *verbs_host_with(const char *script, const char *memory,
                       const char *options);
/*
 * Move this process, with its QEMUs, to a new network namespace, whose "lo" may
 * get addresses. False: this is not possible, and the test is skipped.
 */
bool verbs_own_network(void);
/* Like verbs_host(), with gid-mode=add. */
Verbs *verbs_host_adding(const char *script);
/* With a device that was started. */
Verbs *verbs_new(const char *script);
void verbs_free(Verbs *v);
/* End QEMU without a check that the device leaves nothing in the host. */
void verbs_stop(Verbs *v);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Verbs, verbs_free)

/* Plug in a device and start it. */
void verbs_plug(Verbs *v);
void verbs_unplug(Verbs *v);
/*
 * Assert that plugging in a device on a backend with @props ("'port': 2")
 * fails, with @text in the message, and leaves nothing behind.
 */
void verbs_refused(Verbs *v, const char *props, const char *text);
/* The same with a device of such properties. */
void verbs_refused_with(Verbs *v, const char *props, const char *device,
                        const char *text);
/* Reset the device and start it again. */
void verbs_restart(Verbs *v);
/* Wait until the host has so many objects of a kind. */
void verbs_await_count(Verbs *v, const char *kind, unsigned count);
/* Wait until no object is left; the context stays as long as the device. */
void verbs_await_clean(Verbs *v);

/* Two connected QPs of the device. */
typedef struct VerbsPair {
    Verbs *v;
    QRdmaPd *pd;
    QRdmaCq *cq_a;                  /* both queues of a */
    QRdmaCq *cq_b;
    QRdmaQp *a;
    QRdmaQp *b;
    QRdmaMr *mr_a;                  /* of scattered pages */
    QRdmaMr *mr_b;
} VerbsPair;

VerbsPair verbs_pair(Verbs *v, RdmaQpType type);
/* Send a message of @len bytes, made of @seed, from a to b. */
void verbs_check_works(VerbsPair *p, uint8_t seed);
/*
 * Post a receive or a send, and wait until the host has it; @seed is the wr_id.
 */
void verbs_post_recv(VerbsPair *p, uint8_t seed);
void verbs_post_send(VerbsPair *p, uint8_t seed);
/* Post a send without waiting. */
void verbs_offer_send(VerbsPair *p, uint8_t seed);

/* A command that waits in the control queue. */
typedef struct VerbsWaiting {
    Verbs *v;
    QRdmaWaiting cmd;
} VerbsWaiting;

/* Send a command, and do not wait for its answer. */
VerbsWaiting verbs_send_cmd(Verbs *v, uint8_t cmd, const void *req,
                            size_t len, size_t rsp_len);
/* The same, and hold the host in @verb until verbs_release_cmd(). */
VerbsWaiting verbs_hold_cmd(Verbs *v, const char *verb, uint8_t cmd,
                            const void *req, size_t len, size_t rsp_len);
/*
 * A thread that releases the host soon, while the main loop waits for the host
 * or goes on. The caller joins it.
 */
GThread *verbs_release_soon(Verbs *v);
/* Release the host, and wait for the answer. */
uint8_t verbs_release_cmd(const VerbsWaiting *w);
uint8_t verbs_await_status(const VerbsWaiting *w);
/* The request REG_USER_MR of one page. */
struct virtio_rdma_reg_user_mr_req verbs_reg_mr_req(QRdmaPd *pd);

extern const QRdmaTest pvrdma_verbs_tests[];
extern const QRdmaTest verbs_address_tests[];
extern const QRdmaTest verbs_again_tests[];
extern const QRdmaTest verbs_attach_tests[];
extern const QRdmaTest verbs_cm_tests[];
extern const QRdmaTest verbs_errno_tests[];
extern const QRdmaTest verbs_event_tests[];
extern const QRdmaTest verbs_gid_tests[];
extern const QRdmaTest verbs_gsi_tests[];
extern const QRdmaTest verbs_late_tests[];
extern const QRdmaTest verbs_mem_tests[];
extern const QRdmaTest verbs_counters_tests[];
extern const QRdmaTest verbs_mcast_tests[];
extern const QRdmaTest verbs_queue_tests[];
extern const QRdmaTest verbs_cq_tests[];
extern const QRdmaTest verbs_modify_tests[];
extern const QRdmaTest verbs_mr_tests[];
extern const QRdmaTest verbs_traffic_tests[];
extern const QRdmaTest verbs_wqe_tests[];

#endif

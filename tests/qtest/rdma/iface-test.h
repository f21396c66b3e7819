/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of verbs that run on each guest interface. A table of operations drives
 * one interface, with the driver that libqos has for it. Work requests and
 * completions are those of rdma/verbs.h.
 */
#ifndef TESTS_RDMA_IFACE_TEST_H
#define TESTS_RDMA_IFACE_TEST_H

#include "libqos/virtio-rdma.h"

/* Bytes of each region that tests may use */
#define IFACE_MR_SIZE 60000
#define IFACE_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE)

typedef struct Iface Iface;

typedef struct IfaceMr {
    uint64_t iova;
    uint64_t length;                /* bytes */
    uint32_t lkey;
    uint32_t rkey;
} IfaceMr;

/* One side: a QP, a CQ for sends, another for receives, and a region */
typedef struct IfaceEnd {
    const Iface *iface;
    void *impl;                     /* of the interface */
    QRdmaHost *host;
    uint32_t qpn;                   /* in completions and events */
    IfaceMr mr;                     /* with all rights */
} IfaceEnd;

typedef struct IfacePair {
    const Iface *iface;
    void *impl;
    IfaceEnd a;
    IfaceEnd b;
} IfacePair;

struct Iface {
    bool no_atomics;
    /* Two devices on one link, with QPs of @type that are ready to send */
    void (*open)(IfacePair *p, RdmaQpType type);
    void (*close)(IfacePair *p);
    /* Connect the two again, by way of RESET. */
    void (*reconnect)(IfacePair *p);
    void (*post_send)(IfaceEnd *e, const RdmaSendWr *wr);
    void (*post_recv)(IfaceEnd *e, const RdmaRecvWr *wr);
    /* The next completion of sends, or of receives. False: there is none. */
    bool (*poll)(IfaceEnd *e, bool recv, RdmaWc *wc);
    /* Move the QP to @state, if the transition needs no more attributes. */
    void (*modify_state)(IfaceEnd *e, RdmaQpState state);
    RdmaQpState (*state)(IfaceEnd *e);
    /* Entries of the SQ, or of the RQ, that the device has not given back */
    uint32_t (*queued)(IfaceEnd *e, bool recv);
    /* Another region of one page, in the PD of the QP or in a new one */
    IfaceMr (*reg_mr)(IfaceEnd *e, uint32_t access, bool other_pd);
    /* Memory of the region */
    void (*write)(IfaceEnd *e, uint64_t offset, const void *buf, size_t len);
    void (*read)(IfaceEnd *e, uint64_t offset, void *buf, size_t len);
    /* The address of @to in a datagram */
    void (*address)(IfaceEnd *e, IfaceEnd *to, RdmaSendWr *wr);
};

/* Those of virtio-rdma, by NetKind */
extern const Iface iface_virtio[];
extern const Iface iface_pvrdma;
extern const Iface iface_net_roce;

/* A table of them ends with an empty one. */
typedef struct IfaceTest {
    const char *name;
    void (*run)(IfacePair *p);
    RdmaQpType type;
    bool needs_atomics;
} IfaceTest;

/*
 * Register a test of @iface, with @prefix before its name, unless it needs what
 * the interface does not have.
 */
void iface_add_test(const char *prefix, const Iface *iface,
                    const IfaceTest *test);

RdmaSge iface_sge(const IfaceEnd *e, uint64_t offset, uint32_t len);
/* A signaled request of one SGE, whose remote memory is @mr at @offset */
RdmaSendWr iface_wr(RdmaWrOpcode opcode, uint64_t wr_id, const RdmaSge *sge,
                    const IfaceMr *mr, uint64_t offset);
void iface_send(IfaceEnd *e, RdmaSendWr wr);
/* A receive of @len bytes at @offset of the region */
void iface_recv(IfaceEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len);
/* Wait for the next completion, and check it. */
RdmaWc iface_expect(IfaceEnd *e, bool recv, uint64_t wr_id,
                    RdmaWcStatus status);
/* The same for one that succeeds with @opcode */
RdmaWc iface_expect_wc(IfaceEnd *e, bool recv, uint64_t wr_id,
                       RdmaWcOpcode opcode);
/* No completion comes. */
void iface_expect_none(IfaceEnd *e, bool recv);
void iface_expect_state(IfaceEnd *e, RdmaQpState state);
/* The QP is in ERR, and flushes what is posted. */
void iface_expect_dead(IfaceEnd *e);
/* One message from @p->a to @p->b */
void iface_send_one(IfacePair *p, RdmaWrOpcode opcode, uint32_t len,
                    uint8_t seed);
/* Bytes that are a function of @seed and of their position */
void iface_fill(IfaceEnd *e, uint64_t offset, size_t len, uint8_t seed);
void iface_check(IfaceEnd *e, uint64_t offset, size_t len, uint8_t seed);

extern const IfaceTest iface_rc_tests[];
extern const IfaceTest iface_error_tests[];
extern const IfaceTest iface_ud_tests[];

#endif

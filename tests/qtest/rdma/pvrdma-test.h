/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the tests of pvrdma: two devices on one hub, in one QEMU.
 */
#ifndef TESTS_RDMA_PVRDMA_TEST_H
#define TESTS_RDMA_PVRDMA_TEST_H

#include "libqos/pvrdma.h"

#define PV_MR_PAGES 16
#define PV_MR_START 0x7f0012345678ull
#define PV_ACCESS (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE)
#define PV_QKEY 0x11111111

/* One side: a QP and the objects that it needs */
typedef struct PvEnd {
    QPvrdma *dev;
    RdmaQpType type;
    uint32_t page;                  /* UAR page, and context */
    uint32_t pd;
    QPvrdmaCq scq;
    QPvrdmaCq rcq;
    QPvrdmaMr mr;                   /* PV_MR_PAGES, all rights */
    QPvrdmaQp qp;
} PvEnd;

typedef struct PvPair {
    QRdmaHost *host;
    PvEnd a;
    PvEnd b;
} PvPair;

/*
 * Arguments for devices in function 1 of slots 4 and 5; @props: more properties
 * of the first one, each with a comma before it
 */
char *pv_host_args(const char *props);
/* A machine with these devices; @extra: more arguments */
QRdmaHost *pv_host_start(const char *extra);
/* A device that is set up, with GID 0: 10.0.0.@host */
QPvrdma *pv_start(QRdmaHost *host, int slot);
/* The first of two devices of a machine of their own; set up, or not */
QPvrdma *pv_alone(void);
QPvrdma *pv_alone_new(void);
/* Close the device, and end its machine. */
void pv_alone_stop(QPvrdma *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(QPvrdma, pv_alone_stop)
/* @page 0: the kernel's */
PvEnd pv_end_new(QPvrdma *dev, uint32_t page, RdmaQpType type);
void pv_end_init(PvEnd *e);
void pv_end_connect(PvEnd *e, const PvEnd *peer);
/* Connect both QPs, which are in RESET. */
void pv_connect(PvEnd *a, PvEnd *b);
bool pv_is_in_err(PvEnd *e);
/* Have the next completion interrupt. */
void pv_arm(PvEnd *e, const QPvrdmaCq *cq);
/* The AV of a datagram to @peer, and @wr a SEND to it */
void pv_ud_address(PvrdmaSendWqe *wqe, const PvEnd *e, const PvEnd *peer,
                   uint32_t qkey);
PvPair pv_pair_new(uint32_t page, RdmaQpType type);
void pv_pair_free(PvPair *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(PvPair, pv_pair_free)

/*
 * A region whose page list takes the device many turns to read. All entries of
 * its directory name the same table, whose address is *@table.
 */
PvrdmaCmdCreateMr pv_long_region(PvEnd *e, uint64_t *table);

PvrdmaSge pv_sge(const PvEnd *e, uint64_t offset, uint32_t len);
void pv_fill(const PvEnd *e, uint64_t offset, uint32_t len, uint8_t seed);
void pv_assert_filled(const PvEnd *e, uint64_t offset, uint32_t len,
                      uint8_t seed);
/*
 * Post a signaled request with the first @len bytes of the region. Its remote
 * memory begins with @mr, or it has none.
 */
void pv_post(PvEnd *e, uint32_t opcode, uint64_t wr_id, uint32_t len,
             const QPvrdmaMr *mr);
/* Post a receive of @len bytes at @offset of the region. */
void pv_recv(PvEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len);
/* Wait for the next event. */
void pv_expect_event(QPvrdma *d, RdmaEventType type, uint32_t info);
/* Wait for a completion, and check its fields. */
PvrdmaCqe pv_expect(PvEnd *e, QPvrdmaCq *cq, uint64_t wr_id, uint32_t status,
                    uint32_t opcode);

extern const QRdmaTest pvrdma_probe_tests[];
extern const QRdmaTest pvrdma_rc_tests[];
extern const QRdmaTest pvrdma_ud_tests[];
extern const QRdmaTest pvrdma_mem_tests[];
extern const QRdmaTest pvrdma_srq_tests[];
extern const QRdmaTest pvrdma_life_tests[];
extern const QRdmaTest pvrdma_command_tests[];
extern const QRdmaTest pvrdma_handle_tests[];
extern const QRdmaTest pvrdma_host_tests[];
extern const QRdmaTest pvrdma_hostile_tests[];
extern const QRdmaTest pvrdma_migrate_tests[];
extern const QRdmaTest pvrdma_nested_tests[];
extern const QRdmaTest pvrdma_pages_tests[];

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Common parts of the tests of virtio-net-roce: two devices on one hub, in one
 * QEMU.
 */
#ifndef TESTS_RDMA_NET_ROCE_TEST_H
#define TESTS_RDMA_NET_ROCE_TEST_H

#include "libqos/net-roce.h"

#define NR_MR_PAGES 16
#define NR_MR_START 0x7f0012345678ull
#define NR_QKEY 0x11111111
/* Limits of the devices, whose virtqueues the driver all sets up */
#define NR_MAX_CQ 8
#define NR_MAX_QP 8
#define NR_RING 64
#define NR_PROPS "max-cq=8,max-qp=8,queue-size=64"

/* The peer of a QP */
typedef struct NrPeer {
    uint32_t qpn;
    uint8_t mac[RDMA_MAC_LEN];
    uint8_t gid[RDMA_GID_LEN];
} NrPeer;

/* One side: a QP and the objects that it needs */
typedef struct NrEnd {
    QRoce *dev;
    RdmaQpType type;
    uint32_t pdn;
    QRoceCq scq;
    QRoceCq rcq;
    QRoceMr mr;                     /* NR_MR_PAGES, all rights */
    QRoceQp qp;
} NrEnd;

typedef struct NrPair {
    QRdmaHost *host;
    NrEnd a;
    NrEnd b;
} NrPair;

/*
 * Arguments for devices in slots 4 and 5; @props: more properties of the first
 * one, each with a comma before it
 */
char *nr_host_args(const char *props);
QRdmaHost *nr_host_start(const char *extra);
/* A device that is set up, with GID 0 made of its MAC address */
QRoce *nr_start(QRdmaHost *host, int slot);
/* The first of two devices of a machine of their own */
QRoce *nr_alone(void);
void nr_alone_stop(QRoce *d);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(QRoce, nr_alone_stop)

NrEnd nr_end_new(QRoce *dev, RdmaQpType type);
/* Give @e another QP in RESET. */
void nr_new_qp(NrEnd *e);
/* Move the QP to @state, if the transition needs no more attributes. */
void nr_modify_state(NrEnd *e, RdmaQpState state);
NrPeer nr_peer(const NrEnd *e);
NetRoceAv nr_av(const NrPeer *peer);
void nr_end_init(NrEnd *e);
/* Bring the QP, which is in INIT, to RTS. */
void nr_end_connect(NrEnd *e, const NrPeer *peer);
void nr_end_start_ud(NrEnd *e, uint32_t qkey);
/* Connect the two, which are in RESET; they may be the same. */
void nr_connect(NrEnd *a, NrEnd *b);
NrPair nr_pair_new(RdmaQpType type);
void nr_pair_free(NrPair *p);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(NrPair, nr_pair_free)

NetRoceSge nr_sge(const NrEnd *e, uint64_t offset, uint32_t len);
void nr_fill(const NrEnd *e, uint64_t offset, uint32_t len, uint8_t seed);
void nr_assert_filled(const NrEnd *e, uint64_t offset, uint32_t len,
                      uint8_t seed);
/*
 * Post a signaled request with @len bytes at the start of the region; @mr: its
 * remote memory, or NULL
 */
void nr_post(NrEnd *e, RdmaWrOpcode opcode, uint64_t wr_id, uint32_t len,
             const QRoceMr *mr);
void nr_recv(NrEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len);
/* Wait for a completion, and check its fields. */
NetRoceCqe nr_expect(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                     NetRoceWcStatus status);
NetRoceCqe nr_expect_wc(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                        NetRoceWcOpcode opcode);
/* The same, and step virtual time until the completion is there. */
void nr_expect_later(NrEnd *e, QRoceCq *cq, uint64_t wr_id,
                     NetRoceWcOpcode opcode);
/* A SEND from @a to @b */
void nr_send_one(NrEnd *a, NrEnd *b, uint8_t seed);
/* A datagram to @ah, whose QP is @qpn */
NetRoceSendWqe nr_ud_wqe(uint64_t wr_id, uint32_t qpn, uint32_t ah);

extern const QRdmaTest net_roce_nic_tests[];
extern const QRdmaTest net_roce_work_tests[];
extern const QRdmaTest net_roce_ud_tests[];
extern const QRdmaTest net_roce_command_tests[];
extern const QRdmaTest net_roce_hostile_tests[];
extern const QRdmaTest net_roce_migrate_tests[];

#endif

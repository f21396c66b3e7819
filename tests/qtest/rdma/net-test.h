/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the tests of two connected virtio-rdma devices have in common.
 */
#ifndef TESTS_RDMA_NET_TEST_H
#define TESTS_RDMA_NET_TEST_H

#include "libqos/virtio-rdma.h"

#define assert_status(call, want) \
    g_assert_cmpint((call), ==, VIRTIO_RDMA_S_##want)
#define assert_ok(call) assert_status(call, OK)

/* Ways to join two devices. */
typedef enum NetKind {
    NET_HUB,                        /* in one QEMU */
    NET_DIRECT,                     /* the same, QPs have direct queues */
    NET_STREAM,                     /* two QEMUs on a Unix stream socket */
    NET_DGRAM,                      /* two QEMUs on Unix datagram sockets */
    NET_KINDS,
} NetKind;

#define NET_MR_SIZE (128 * 1024)
#define NET_IOVA_0 0x7f0012345678ull
#define NET_IOVA_1 0x200000ull
#define NET_ACCESS_ALL (RDMA_ACCESS_LOCAL_WRITE | RDMA_ACCESS_REMOTE)

/* Two devices on one link. */
typedef struct Net {
    NetKind kind;
    QRdmaHost *host[2];             /* the same one twice with NET_HUB */
    QRdma *dev[2];
    char *dir;                      /* of sockets */
} Net;

/* One side of a connection: a QP with all that it needs. */
typedef struct NetEnd {
    QRdma *dev;
    QRdmaPd *pd;
    QRdmaCq *scq;
    QRdmaCq *rcq;
    QRdmaQp *qp;
    QRdmaMr *mr;                    /* NET_MR_SIZE bytes, all rights */
} NetEnd;

typedef struct NetPair {
    Net *net;
    NetEnd a;
    NetEnd b;
    RdmaMtu mtu;                    /* of the port */
} NetPair;

/* Devices that no other test uses; @extra is put on both command lines. */
Net *net_new(NetKind kind, const char *extra);
void net_free(Net *net);
/* Shared by the tests of one kind; devices are started anew. */
Net *net_shared(NetKind kind);
void net_shared_quit(void);

/* A QP on each side, not connected yet. */
NetPair net_pair_new(Net *net, RdmaQpType type);
/* The same, with @features beside the usual ones. */
NetPair net_pair_new_with(Net *net, RdmaQpType type, uint64_t features);
/* On shared devices, connected. @path NULL: the usual one. */
NetPair net_pair(NetKind kind, RdmaQpType type, const QRdmaPath *path);
/* Let virtual time pass on both sides. */
void net_clock_step(Net *net, int64_t ns);

/* One SGE: @len bytes at @offset of the end's memory. */
RdmaSge net_sge(NetEnd *e, uint64_t offset, uint32_t len);
void net_post_recv(NetEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len);
/* A signalled WR of one SGE; the rest is the caller's. */
RdmaSendWr net_wr(RdmaWrOpcode opcode, uint64_t wr_id, const RdmaSge *sge);
/* The same, to @remote_offset of the peer's memory. */
RdmaSendWr net_rdma_wr(RdmaWrOpcode opcode, uint64_t wr_id,
                       const RdmaSge *sge, NetEnd *to,
                       uint64_t remote_offset);

/* From now on register only tests for which @choose is true. */
void net_choose(bool (*choose)(NetKind kind, const char *name));
/* Register @func for each kind of link. */
void net_add_test(const char *name, void (*func)(NetKind kind));
/* For the one in which both devices are in one QEMU. */
void net_add_test_of_one_host(const char *name, void (*func)(NetKind kind));
/* For those only in which each device has a QEMU of its own. */
void net_add_test_of_two_hosts(const char *name, void (*func)(NetKind kind));

void add_net_rc_tests(void);
void add_net_mr_tests(void);
void add_net_mr_table_tests(void);
void add_net_mw_tests(void);
void add_net_placement_tests(void);
void add_net_srq_tests(void);
void add_net_mcast_tests(void);
void add_net_error_tests(void);
void add_net_loss_tests(void);
void add_net_ud_tests(void);
void add_net_ext_tests(void);
void add_net_hotplug_tests(void);
void add_net_life_tests(void);
void add_net_many_tests(void);
void add_net_query_tests(void);
void add_net_fault_tests(void);
void add_net_fault_life_tests(void);
void add_migrate_tests(void);
void add_migrate_backlog_tests(void);
void add_migrate_direct_tests(void);
void add_migrate_shadow_tests(void);
void add_migrate_counters_tests(void);
void add_migrate_objects_tests(void);
void add_migrate_points_tests(void);
void add_migrate_stored_tests(void);
void add_migrate_turn_tests(void);

#endif

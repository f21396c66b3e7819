/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the tests of two connected virtio-rdma devices. */
#ifndef TESTS_RDMA_NET_TEST_H
#define TESTS_RDMA_NET_TEST_H

#include "iface-test.h"

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

/* One side of a connection: a QP and the objects that it needs. */
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
/* Shared by the tests of one kind; devices are started again. */
Net *net_shared(NetKind kind);
void net_shared_quit(void);

/* A QP on each side, not connected yet. */
NetPair net_pair_new(Net *net, RdmaQpType type);
/* One side of such a pair, on @dev, which was started */
NetEnd net_end_new(QRdma *dev, RdmaQpType type, uint64_t iova,
                   uint32_t access);
/* The same, with @features besides the usual ones */
NetPair net_pair_new_with(Net *net, RdmaQpType type, uint64_t features);
/* The same for drivers that know only the RFC's device */
NetPair net_pair_rfc(Net *net, RdmaQpType type, uint64_t features);
/* On shared devices, connected. @path NULL: the usual one. */
NetPair net_pair(NetKind kind, RdmaQpType type, const QRdmaPath *path);
/* Let virtual time pass on both sides. */
void net_clock_step(Net *net, int64_t ns);

/* One SGE: @len bytes at @offset of the end's memory. */
RdmaSge net_sge(NetEnd *e, uint64_t offset, uint32_t len);
void net_post_recv(NetEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len);

/* An operation on memory of the peer, and the right that it needs */
typedef struct NetAccessCase {
    RdmaWrOpcode opcode;
    uint32_t needs;
} NetAccessCase;

extern const NetAccessCase net_access_cases[4];

/* From now on register only tests for which @choose is true. */
void net_choose(bool (*choose)(NetKind kind, const char *name));
/* The links that a test is run on */
typedef enum NetWhere {
    NET_ANYWHERE,
    NET_ONE_HOST,                   /* both devices are in one QEMU */
    NET_TWO_HOSTS,
    NET_NO_IBDEV,                   /* not on a device of the host */
} NetWhere;

/* A table of them ends with an empty one. */
typedef struct NetTest {
    const char *name;
    void (*run)(NetKind kind);
    NetWhere where;
} NetTest;

/* Does a test of that name run on links of @kind? */
bool net_is_for(NetKind kind, NetWhere where, const char *name);
/* Paths of the tests on links of @kind begin so. */
char *net_prefix(NetKind kind);
/* Register each test for each kind of link that supports it. */
void net_add_tests(const NetTest *tests);
/* The same for tests of iface-*.c */
void net_add_iface_tests(const IfaceTest *tests);
/* @pair as those tests see it */
IfacePair net_iface_pair(NetPair *pair);

extern const NetTest net_rc_tests[];
extern const NetTest net_mr_tests[];
extern const NetTest net_mr_table_tests[];
extern const NetTest net_mw_tests[];
extern const NetTest net_placement_tests[];
extern const NetTest net_srq_tests[];
extern const NetTest net_mcast_tests[];
extern const NetTest net_error_tests[];
extern const NetTest net_loss_tests[];
extern const NetTest net_ud_tests[];
extern const NetTest net_ext_tests[];
extern const QRdmaTest net_hotplug_tests[];
extern const NetTest net_life_tests[];
extern const NetTest net_many_tests[];
extern const NetTest net_query_tests[];
extern const NetTest net_fault_tests[];
extern const NetTest net_fault_life_tests[];
/* Tests of the only device of an rdma-roce backend */
extern const QRdmaTest net_fault_alone_tests[];
extern const QRdmaTest migrate_tests[];
extern const QRdmaTest migrate_backlog_tests[];
extern const QRdmaTest migrate_direct_tests[];
extern const QRdmaTest migrate_shadow_tests[];
extern const QRdmaTest migrate_counters_tests[];
extern const QRdmaTest migrate_objects_tests[];
extern const QRdmaTest migrate_points_tests[];
extern const QRdmaTest migrate_served_end_tests[];
extern const QRdmaTest migrate_served_tests[];
void add_migrate_stored_tests(void);
extern const QRdmaTest migrate_turn_tests[];

#endif

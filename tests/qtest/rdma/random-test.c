/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-rdma: any commands and work requests in any order. Most requests are
 * nearly valid, so that they pass the first checks. The device goes on
 * answering, and after a reset it is as good as new. GLib prints the seed that
 * repeats it.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-test.h"
#include "standard-headers/linux/virtio_config.h"

#define STEPS 4000
#define SCRATCH_PAGES 16
#define MAX_KEY (TEST_MAX_MR + TEST_MAX_MW + 1)

typedef struct Chaos {
    QRdma *d;
    uint64_t scratch;               /* guest memory that may be overwritten */
    uint64_t table;                 /* of its pages */
    uint64_t root;                  /* a table of that table */
    uint64_t buffers;               /* of descriptors in rings */
    uint32_t keys[MAX_KEY];         /* by number, as last returned */
} Chaos;

static uint32_t below(uint32_t n)
{
    return g_test_rand_int_range(0, n);
}

static bool one_in(uint32_t n)
{
    return below(n) == 0;
}

static uint32_t handle(void)
{
    return one_in(30) ? g_test_rand_int() : below(9);
}

static uint32_t some_key(const Chaos *c)
{
    return one_in(10) ? g_test_rand_int() : c->keys[below(MAX_KEY)];
}

static uint32_t some_access(void)
{
    return one_in(20) ? g_test_rand_int() : one_in(3) ? below(64) : 0x1f;
}

/* Nothing in here is needed by the test itself. */
static uint64_t some_addr(const Chaos *c)
{
    switch (below(8)) {
    case 0:
        return below(65536);
    case 1:
        return 1ull << 40;
    case 2:
        return UINT64_MAX - below(4096);
    case 3:
        return c->scratch + below(SCRATCH_PAGES * 4096);
    default:
        return 0x10000 + below(4) * 1024;
    }
}

static struct virtio_rdma_reg_user_mr_req some_mr(const Chaos *c)
{
    uint32_t npages = 1 + below(SCRATCH_PAGES);
    uint32_t levels = below(3);
    uint64_t start = 0x10000 + (one_in(3) ? below(4096) : 0);
    const uint64_t lists[] = { c->table, c->table, c->root };

    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(1 + below(3)),
        .access = cpu_to_le32(some_access()),
        .start = cpu_to_le64(start),
        .length = cpu_to_le64(npages * 4096 - start % 4096),
        .virt_addr = cpu_to_le64(start),
        .pages = cpu_to_le64(lists[levels]),
        .npages = cpu_to_le32(npages),
        .page_shift = cpu_to_le32(one_in(2) ? 12 : 0),
        .levels = cpu_to_le32(levels),
    };
}

/* Masks of attributes that a QP needs to enter a state */
static const uint32_t masks_rc[] = { 1, 0x39, 0x129181, 0x12e01, 1, 1, 1 };
static const uint32_t masks_ud[] = { 1, 0x71, 1, 0x10001, 1, 1, 1 };

static size_t some_modify(const Chaos *c, void *out)
{
    RdmaQpAttr attr = {
        .qp_state = below(7),
        .path_mtu = 1 + below(5),
        .qkey = QRDMA_QKEY,
        .dest_qp_num = 1 + below(6),
        .qp_access_flags = below(16),
        .max_rd_atomic = below(5),
        .max_dest_rd_atomic = below(5),
        .min_rnr_timer = below(32),
        .port_num = 1,
        .timeout = 1 + below(10),
        .retry_cnt = below(8),
        .rnr_retry = below(8),
        .ah_attr = qrdma_av(c->d, below(2)),
    };
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(1 + below(7)),
        .attr_mask = cpu_to_le32((one_in(2) ? masks_rc : masks_ud)
                                 [attr.qp_state]),
    };

    qrdma_encode_qp_attr(&req.attr, &attr);
    memcpy(out, &req, sizeof(req));
    return sizeof(req);
}

static size_t some_create_qp(void *out)
{
    struct virtio_rdma_create_qp_req req = {
        .pdn = cpu_to_le32(1 + below(3)),
        .qp_type = one_in(4) ? below(6) : one_in(3) ? RDMA_QPT_UD
                                                    : RDMA_QPT_RC,
        .sq_sig_type = below(2),
        .max_send_wr = cpu_to_le32(below(40)),
        .max_send_sge = cpu_to_le32(below(5)),
        .send_cqn = cpu_to_le32(below(4)),
        .max_recv_wr = cpu_to_le32(below(40)),
        .max_recv_sge = cpu_to_le32(below(5)),
        .recv_cqn = cpu_to_le32(below(4)),
        .max_inline_data = cpu_to_le32(below(129)),
        .flags = cpu_to_le32(one_in(2) ? 0 : below(4)),
        .srqn = cpu_to_le32(below(TEST_MAX_SRQ)),
    };

    memcpy(out, &req, sizeof(req));
    return sizeof(req);
}

/* A request of @cmd. Commands without a case have words below 9. */
static size_t some_request(const Chaos *c, uint8_t cmd, uint8_t *out)
{
    struct virtio_rdma_reg_user_mr_req mr = some_mr(c);
    struct virtio_rdma_rereg_mr_req rereg = {
        .mrn = cpu_to_le32(1 + below(MAX_KEY)),
        .flags = cpu_to_le32(1 + below(7)),
        .mr = mr,
    };
    struct virtio_rdma_map_mr_sg_req map = {
        .mrn = cpu_to_le32(1 + below(MAX_KEY)),
        .npages = mr.npages,
        .start = mr.start,
        .length = mr.length,
        .pages = cpu_to_le64(c->table),
    };
    struct virtio_rdma_mcast_req mcast = {
        .qpn = cpu_to_le32(1 + below(7)),
        .gid = { 0xff, 0x0e, [15] = below(4) },
    };
    uint32_t words[16];

    switch (cmd) {
    case VIRTIO_RDMA_CMD_REG_USER_MR:
        memcpy(out, &mr, sizeof(mr));
        return sizeof(mr);
    case VIRTIO_RDMA_CMD_REREG_MR:
        memcpy(out, &rereg, sizeof(rereg));
        return sizeof(rereg);
    case VIRTIO_RDMA_CMD_MAP_MR_SG:
        memcpy(out, &map, sizeof(map));
        return sizeof(map);
    case VIRTIO_RDMA_CMD_ATTACH_MCAST:
    case VIRTIO_RDMA_CMD_DETACH_MCAST:
        memcpy(out, &mcast, sizeof(mcast));
        return sizeof(mcast);
    case VIRTIO_RDMA_CMD_MODIFY_QP:
        return some_modify(c, out);
    case VIRTIO_RDMA_CMD_CREATE_QP:
        return some_create_qp(out);
    case VIRTIO_RDMA_CMD_ADD_GID:
    case VIRTIO_RDMA_CMD_DEL_GID:
        /* keep GIDs, or there would soon be no traffic */
        return 0;
    }
    for (int i = 0; i < ARRAY_SIZE(words); i++) {
        words[i] = cpu_to_le32(handle());
    }
    memcpy(out, words, sizeof(words));
    return sizeof(words);
}

static void renew_rings(Chaos *c, uint8_t cmd, uint32_t n)
{
    QRdma *d = c->d;

    switch (cmd) {
    case VIRTIO_RDMA_CMD_DESTROY_CQ:
        qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_CQ_VQ(n)));
        break;
    case VIRTIO_RDMA_CMD_DESTROY_QP:
        qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_SQ_VQ(d->max_cq, n)));
        qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_RQ_VQ(d->max_cq, n)));
        break;
    case VIRTIO_RDMA_CMD_DESTROY_SRQ:
        qrdma_ring_renew(qrdma_ring(d, VIRTIO_RDMA_SRQ_VQ(d->max_cq,
                                                          d->max_qp, n)));
        break;
    }
}

static void command(Chaos *c)
{
    uint8_t req[256] = {}, rsp[256] = {};
    /* commands that create are more frequent */
    static const uint8_t often[] = {
        VIRTIO_RDMA_CMD_CREATE_PD, VIRTIO_RDMA_CMD_CREATE_CQ,
        VIRTIO_RDMA_CMD_CREATE_QP, VIRTIO_RDMA_CMD_CREATE_SRQ,
        VIRTIO_RDMA_CMD_REG_USER_MR, VIRTIO_RDMA_CMD_ALLOC_MW,
        VIRTIO_RDMA_CMD_MODIFY_QP, VIRTIO_RDMA_CMD_MODIFY_QP,
        VIRTIO_RDMA_CMD_MODIFY_QP, VIRTIO_RDMA_CMD_ATTACH_MCAST,
    };
    QRdmaCmd cmd = {
        .cmd = one_in(2) ? often[below(ARRAY_SIZE(often))] : below(31),
        .req = req,
        .rsp = rsp,
        .rsp_cap = one_in(20) ? below(20) : 200,
    };
    uint32_t mrn, key;

    cmd.req_len = some_request(c, cmd.cmd, req);
    if (one_in(8) && cmd.req_len) {
        req[below(cmd.req_len)] ^= 1 << below(8);
    }
    if (one_in(30)) {
        cmd.req_len = below(cmd.req_len + 1);
    }
    if (qrdma_cmd_raw(c->d, &cmd) != VIRTIO_RDMA_S_OK) {
        return;
    }
    renew_rings(c, cmd.cmd, ldl_le_p(req));
    switch (cmd.cmd) {
    case VIRTIO_RDMA_CMD_GET_DMA_MR:
    case VIRTIO_RDMA_CMD_CREATE_MR:
    case VIRTIO_RDMA_CMD_REG_USER_MR:
    case VIRTIO_RDMA_CMD_REREG_MR:
    case VIRTIO_RDMA_CMD_ALLOC_MW:
        mrn = ldl_le_p(rsp);
        key = ldl_le_p(rsp + 4);
        g_assert_cmpuint(mrn, <, MAX_KEY);
        g_assert_true(key >> 8 == mrn ||
                      c->d->features & QRDMA_F(VIRTIO_RDMA_F_HOST_NUMBERS));
        c->keys[mrn] = key;
        break;
    }
}

/* Connect two QPs if both exist. */
static void bring_up(Chaos *c)
{
    uint32_t even = below(4) * 2;
    const uint32_t *masks = one_in(2) ? masks_rc : masks_ud;

    for (uint32_t qpn = even; qpn < even + 2; qpn++) {
        for (RdmaQpState state = RDMA_QPS_RESET; state <= RDMA_QPS_RTS;
             state++) {
            RdmaQpAttr attr = {
                .qp_state = state,
                .path_mtu = RDMA_MTU_1024,
                .qkey = QRDMA_QKEY,
                .dest_qp_num = qpn ^ 1,
                .qp_access_flags = RDMA_ACCESS_REMOTE,
                .max_rd_atomic = 4,
                .max_dest_rd_atomic = 4,
                .min_rnr_timer = 5,
                .port_num = 1,
                .timeout = 8,
                .retry_cnt = 7,
                .rnr_retry = 7,
                .ah_attr = qrdma_av(c->d, 0),
            };

            qrdma_modify_qp(&(QRdmaQp) { .dev = c->d, .qpn = qpn },
                            masks[state], &attr);
        }
    }
}

static size_t some_send(const Chaos *c, uint8_t *out)
{
    QRdmaPd pd = { .pdn = 1 };
    QRdmaQp qp = { .pd = &pd, .type = one_in(4) ? RDMA_QPT_UD : RDMA_QPT_RC };
    RdmaSge sge[4];
    RdmaSendWr wr = {
        .wr_id = g_test_rand_int(),
        .opcode = one_in(8) ? RDMA_WR_REG_MR : below(17),
        .send_flags = below(8),
        .num_sge = below(ARRAY_SIZE(sge) + 1),
        .sg_list = sge,
    };
    struct virtio_rdma_sq_wqe wqe;
    size_t len;

    for (int i = 0; i < ARRAY_SIZE(sge); i++) {
        sge[i] = (RdmaSge) { some_addr(c), below(5000), some_key(c) };
    }
    if (qp.type == RDMA_QPT_UD) {
        wr.wr.ud.remote_qpn = one_in(3) ? RDMA_QPN_MCAST : 1 + below(7);
        wr.wr.ud.remote_qkey = QRDMA_QKEY;
        wr.wr.ud.av = qrdma_av(c->d, below(2));
        if (wr.wr.ud.remote_qpn == RDMA_QPN_MCAST) {
            memset(wr.wr.ud.av.dgid, 0, RDMA_GID_LEN);
            wr.wr.ud.av.dgid[0] = 0xff;
            wr.wr.ud.av.dgid[1] = 0x0e;
            wr.wr.ud.av.dgid[15] = below(4);
        }
    } else if (wr.opcode == RDMA_WR_BIND_MW) {
        uint32_t key = some_key(c);

        wr.wr.bind.rkey = key;
        wr.wr.bind.new_rkey = key;
        wr.wr.bind.lkey = some_key(c);
        wr.wr.bind.access = some_access();
        wr.wr.bind.addr = some_addr(c);
        wr.wr.bind.length = below(4096);
    } else if (wr.opcode == RDMA_WR_FLUSH) {
        wr.wr.flush.remote_addr = some_addr(c);
        wr.wr.flush.rkey = some_key(c);
        wr.wr.flush.length = below(4096);
        wr.wr.flush.type = below(5);
        wr.wr.flush.level = below(3);
    } else if (wr.opcode == RDMA_WR_REG_MR) {
        wr.wr.reg.key = some_key(c);
        wr.wr.reg.mrn = wr.wr.reg.key >> 8;
        wr.wr.reg.access = some_access();
    } else {
        wr.wr.atomic.remote_addr = some_addr(c);
        wr.wr.atomic.rkey = some_key(c);
        if (wr.opcode < RDMA_WR_ATOMIC_CMP_AND_SWP ||
            wr.opcode == RDMA_WR_ATOMIC_WRITE) {
            wr.wr.rdma.rkey = some_key(c);
        }
    }
    if (wr.opcode == RDMA_WR_LOCAL_INV ||
        wr.opcode == RDMA_WR_SEND_WITH_INV ||
        wr.opcode == RDMA_WR_RDMA_READ_WITH_INV) {
        wr.ex.invalidate_rkey = some_key(c);
    }
    len = qrdma_encode_send(&qp, &wr, out);
    if (wr.opcode == RDMA_WR_REG_MR && qp.type == RDMA_QPT_RC) {
        struct virtio_rdma_reg_user_mr_req mr = some_mr(c);

        memcpy(&wqe, out, sizeof(wqe));
        wqe.wr.reg.npages = mr.npages;
        wqe.wr.reg.start = mr.start;
        wqe.wr.reg.length = mr.length;
        wqe.wr.reg.pages = cpu_to_le64(c->table);
        memcpy(out, &wqe, sizeof(wqe));
    }
    return len;
}

static size_t some_recv(const Chaos *c, uint8_t *out)
{
    RdmaSge sge[4];
    RdmaRecvWr wr = {
        .wr_id = g_test_rand_int(),
        .num_sge = below(ARRAY_SIZE(sge) + 1),
        .sg_list = sge,
    };

    for (int i = 0; i < ARRAY_SIZE(sge); i++) {
        sge[i] = (RdmaSge) { some_addr(c), below(5000), some_key(c) };
    }
    return qrdma_encode_recv(&wr, out);
}

/* Put a descriptor into a ring, which may have no object. */
static void work(Chaos *c)
{
    QRdma *d = c->d;
    uint32_t n = 1 + below(d->n_rings - 1);
    QRdmaRing *ring = qrdma_ring(d, n);
    uint32_t first_sq = VIRTIO_RDMA_SQ_VQ(d->max_cq, 0);
    uint32_t events = VIRTIO_RDMA_EVENT_VQ(d->max_cq, d->max_qp);
    bool fills = n < first_sq || n == events;
    uint8_t wqe[QRDMA_WQE_ROOM] = {};
    uint64_t buf;
    size_t len = 64;
    uint16_t head;
    uint32_t used;

    if (!ring->ready) {
        return;
    }
    while (qrdma_ring_get(ring, &head, &used)) {
        /* the descriptor is free again */
    }
    if (!ring->nfree) {
        return;
    }
    /* a place of its own for each descriptor of each ring */
    buf = c->buffers + (n * QRDMA_RING_SIZE + ring->free_head) *
          QRDMA_WQE_ROOM;
    if (!fills) {
        bool sends = n < events && (n - first_sq) % 2 == 0;

        len = sends ? some_send(c, wqe) : some_recv(c, wqe);
        if (one_in(10)) {
            wqe[below(len)] ^= 1 << below(8);
        }
        if (one_in(20)) {
            len = 1 + below(len);
        }
        qrdma_write(d, buf, wqe, len);
    }
    qrdma_ring_add(ring, &(QRdmaDesc) {
        .addr = buf, .len = len, .write = fills != one_in(100),
    }, 1);
    qrdma_ring_kick(ring);
}

static Chaos chaos_new(void)
{
    Chaos c = {
        .d = test_device_with(QRDMA_F(VIRTIO_RDMA_F_FLUSH) |
                              QRDMA_F(VIRTIO_RDMA_F_ATOMIC_WRITE)),
    };
    uint64_t le;

    qrdma_setup_gids(c.d, 1);
    c.scratch = qrdma_alloc(c.d, SCRATCH_PAGES * 4096);
    c.table = qrdma_alloc(c.d, 4096);
    c.root = qrdma_alloc(c.d, 4096);
    c.buffers = qrdma_alloc(c.d, c.d->n_rings * QRDMA_RING_SIZE *
                                 QRDMA_WQE_ROOM);
    for (int i = 0; i < SCRATCH_PAGES; i++) {
        le = cpu_to_le64(c.scratch + i * 4096);
        qrdma_write(c.d, c.table + i * 8, &le, 8);
    }
    le = cpu_to_le64(c.table);
    qrdma_write(c.d, c.root, &le, 8);
    return c;
}

static void test_anything(void)
{
    const int rounds = g_test_slow() ? 3 : 1;

    for (int round = 0; round < rounds; round++) {
        Chaos c = chaos_new();

        for (int i = 0; i < STEPS; i++) {
            if (one_in(25)) {
                bring_up(&c);
            } else if (one_in(4)) {
                command(&c);
            } else {
                work(&c);
            }
            if (one_in(50)) {
                qrdma_clock_step(c.d, (1 + below(20)) * QRDMA_MS);
            }
            if (one_in(1000)) {
                QRdmaRing *ring = qrdma_ring(c.d,
                                             1 + below(c.d->n_rings - 1));

                if (ring->ready) {
                    qrdma_ring_renew(ring);
                }
            }
        }
        g_assert_false(qrdma_needs_reset(c.d));
        test_loopback_pair(RDMA_QPT_RC, NULL);
    }
}

const QRdmaTest random_tests[] = {
    { "anything", test_anything },
    {}
};

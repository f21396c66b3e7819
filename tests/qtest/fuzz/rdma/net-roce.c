/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzer of virtio-net-roce: the machine, the driver, and steps of the input by
 * a driver that is bad. The device has the ID and the slot of the virtio-rdma
 * of other fuzzers, so that their steps on registers, rings, memory, time,
 * frames and migration work here, too. Each input begins with a device that is
 * up, and ends with the check that it can be.
 */
#include "qemu/osdep.h"
#include "hw/rdma/net-roce-abi.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-net.h"
#include "rdma-fuzz.h"
#include "standard-headers/linux/virtio_pci.h"

#define MAX_CQ 2
#define MAX_QP 8
#define DEVICE "virtio-net-roce-pci,id=rdma0,bus=rp0,netdev=n0," \
               "mac=52:54:00:12:34:01,max-cq=2,max-qp=8,queue-size=64"
#define MAX_RECORDS 200
#define PROBE_ID 0x50524f42u
#define PROBE_TURNS 100
#define WRS 16
#define SGES 2
/* Room for the send WQEs of a QP, and of each */
#define SQ_ROOM 0x8000ull
#define WQE_ROOM 1024

static uint32_t pdn, ahs[2];

static const FuzzConfig config = { .name = "rdma-net-roce" };

static GString *cmdline(FuzzTarget *t)
{
    GString *s = fuzz_machine(&config);

    g_string_append(s,
        " -blockdev null-co,node-name=b0"
        " -device virtio-blk-pci,id=blk0,drive=b0,addr=5"
        " -device pcie-root-port,id=rp0,addr=4,chassis=1 -device " DEVICE);
    return s;
}

/* Commands */

/* @len: of the data. Returns ACK, 0xff if there was no answer. */
static uint8_t command(uint8_t cmd, const void *req, size_t len, void *rsp,
                       size_t rsp_len)
{
    FuzzRing *r = &fuzz_guest.ring[NET_ROCE_CTRL_VQ];
    uint8_t bytes[2 + sizeof(NetRoceModifyQp) + 64 * 8] = {
        NET_ROCE_CLASS, cmd,
    };
    uint64_t buf = fuzz_ring_buffer(r), reply = FUZZ_TABLES;
    const QRdmaDesc desc[] = {
        { buf, 2 + len, false }, { reply, 1 + rsp_len, true },
    };

    g_assert_cmpint(len, <=, FUZZ_BUF_SIZE - 2);
    if (len) {
        memcpy(bytes + 2, req, len);
    }
    fuzz_write(buf, bytes, 2 + len);
    fuzz_store(reply, 0xff, 1);
    fuzz_ring_put(r, desc, ARRAY_SIZE(desc));
    fuzz_kick(&fuzz_guest.rdma, r->index);
    if (rsp_len) {
        fuzz_read(reply + 1, rsp, rsp_len);
    }
    return fuzz_load(reply, 1);
}

static uint32_t create(uint8_t cmd, const void *req, size_t len, bool checked)
{
    NetRoceId rsp = {};
    uint8_t ack = command(cmd, req, len, &rsp, sizeof(rsp));

    g_assert(!checked || ack == NET_ROCE_ACK_OK);
    return rsp.id;
}

static void add_gids(bool checked)
{
    FuzzGuest *g = &fuzz_guest;

    for (int i = 0; i < 2; i++) {
        NetRoceAddGid req = { .index = i };

        memset(req.gid, 0, sizeof(req.gid));
        req.gid[0] = i ? 0 : 0xfe;
        req.gid[1] = i ? 0 : 0x80;
        req.gid[10] = req.gid[11] = i ? 0xff : 0;
        req.gid[12] = i ? 10 : 0;
        memcpy(g->far_gid[i], req.gid, sizeof(req.gid));
        g->far_gid[i][15] = 2;
        req.gid[15] = 1;
        memcpy(g->gid[i], req.gid, sizeof(req.gid));
        g_assert(command(NET_ROCE_CMD_ADD_GID, &req, sizeof(req), NULL, 0) ==
                 NET_ROCE_ACK_OK || !checked);
    }
}

static NetRoceAv av_to(bool near, uint8_t gid_index)
{
    FuzzGuest *g = &fuzz_guest;
    NetRoceAv av = { .sgid_index = gid_index & 1, .hop_limit = 64 };

    memcpy(av.dgid, near ? g->gid[gid_index & 1] : g->far_gid[gid_index & 1],
           sizeof(av.dgid));
    memcpy(av.dmac, near ? g->mac : g->far_mac, sizeof(av.dmac));
    return av;
}

static uint32_t create_ah(bool near, bool checked)
{
    NetRoceCreateAh req = { .pdn = pdn, .av = av_to(near, 0) };

    return create(NET_ROCE_CMD_CREATE_AH, &req, sizeof(req), checked);
}

static void create_mr(uint32_t access, uint32_t npages, unsigned key,
                      bool checked)
{
    struct {
        NetRoceRegUserMr head;
        uint64_t pages[FUZZ_PAGES];
    } req = {
        .head = {
            .pdn = pdn, .access = access, .virt_addr = FUZZ_IOVA,
            .length = npages * 4096ull, .npages = npages,
        },
    };
    NetRoceMr rsp = {};
    uint8_t ack;

    for (unsigned i = 0; i < FUZZ_PAGES; i++) {
        req.pages[i] = FUZZ_DATA + i * 4096ull;
    }
    ack = command(NET_ROCE_CMD_REG_USER_MR, &req, sizeof(req), &rsp,
                  sizeof(rsp));
    g_assert(!checked || ack == NET_ROCE_ACK_OK);
    fuzz_guest.key[key % FUZZ_KEYS] = rsp.rkey;
}

static uint32_t create_cq(bool checked)
{
    NetRoceId req = { FUZZ_RING_SIZE };

    return create(NET_ROCE_CMD_CREATE_CQ, &req, sizeof(req), checked);
}

/* @cqn: also of a CQ that could not be created, and may have no ring */
static void refill_cq(uint32_t cqn, unsigned n)
{
    FuzzRing *r = &fuzz_guest.ring[NET_ROCE_CQ_VQ(cqn) % FUZZ_MAX_VQS];

    for (; r->size && n; n--) {
        QRdmaDesc desc = { fuzz_ring_buffer(r), sizeof(NetRoceCqe), true };

        fuzz_ring_put(r, &desc, 1);
    }
}

static uint32_t create_qp(RdmaQpType type, bool checked)
{
    NetRoceCreateQp req = {
        .pdn = pdn, .qp_type = type,
        .send_cqn = fuzz_guest.cqn[0], .recv_cqn = fuzz_guest.cqn[0],
        .cap = { WRS, WRS, SGES, SGES, NET_ROCE_MAX_INLINE },
    };

    return create(NET_ROCE_CMD_CREATE_QP, &req, sizeof(req), checked);
}

/* Masks of attributes that a QP needs to enter a state, for RC and for UD */
static const uint32_t masks[][2] = {
    [RDMA_QPS_RESET] = { NET_ROCE_QP_STATE, NET_ROCE_QP_STATE },
    [RDMA_QPS_INIT] = {
        NET_ROCE_QP_STATE | NET_ROCE_QP_ACCESS,
        NET_ROCE_QP_STATE | NET_ROCE_QP_QKEY,
    },
    [RDMA_QPS_RTR] = {
        NET_ROCE_QP_STATE | NET_ROCE_QP_AV | NET_ROCE_QP_PATH_MTU |
        NET_ROCE_QP_DEST_QPN | NET_ROCE_QP_RQ_PSN |
        NET_ROCE_QP_MAX_DEST_RD_ATOMIC | NET_ROCE_QP_MIN_RNR_TIMER,
        NET_ROCE_QP_STATE,
    },
    [RDMA_QPS_RTS] = {
        NET_ROCE_QP_STATE | NET_ROCE_QP_TIMEOUT | NET_ROCE_QP_RETRY_CNT |
        NET_ROCE_QP_RNR_RETRY | NET_ROCE_QP_SQ_PSN | NET_ROCE_QP_MAX_RD_ATOMIC,
        NET_ROCE_QP_STATE | NET_ROCE_QP_SQ_PSN,
    },
    [RDMA_QPS_SQD] = { NET_ROCE_QP_STATE, NET_ROCE_QP_STATE },
    [RDMA_QPS_SQE] = { NET_ROCE_QP_STATE, NET_ROCE_QP_STATE },
    [RDMA_QPS_ERR] = { NET_ROCE_QP_STATE, NET_ROCE_QP_STATE },
};

static NetRoceModifyQp modify_of(unsigned place, RdmaQpState state)
{
    FuzzGuest *g = &fuzz_guest;
    bool near = place == FUZZ_QP_A || place == FUZZ_QP_B;

    return (NetRoceModifyQp) {
        .qpn = g->qpn[place],
        .attr_mask = masks[state][place == FUZZ_QP_UD],
        .qp_state = state,
        .path_mtu = RDMA_MTU_1024,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .timeout = 8,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .qkey = FUZZ_QKEY,
        .dest_qp_num = place == FUZZ_QP_A ? g->qpn[FUZZ_QP_B] :
                       place == FUZZ_QP_B ? g->qpn[FUZZ_QP_A] : FUZZ_FAR_QPN,
        .qp_access_flags = NET_ROCE_ACCESS,
        .av = av_to(near, near || (place & 1)),
    };
}

static void modify(unsigned place, RdmaQpState state, bool checked)
{
    NetRoceModifyQp req = modify_of(place, state);
    uint8_t ack = command(NET_ROCE_CMD_MODIFY_QP, &req, sizeof(req), NULL, 0);

    g_assert(!checked || ack == NET_ROCE_ACK_OK);
}

static uint32_t psn(uint32_t qpn, bool response)
{
    NetRoceQueryQp req = { .qpn = qpn };
    NetRoceQpAttr attr = {};

    command(NET_ROCE_CMD_QUERY_QP, &req, sizeof(req), &attr, sizeof(attr));
    return response ? attr.sq_psn - 1 : attr.rq_psn;
}

/* Work */

static void post_send(uint32_t qpn, const NetRoceSendWqe *wqe,
                      const NetRoceSge *sge, size_t len)
{
    FuzzRing *r = &fuzz_guest.ring[NET_ROCE_SQ_VQ(MAX_CQ, qpn % MAX_QP)];
    uint64_t at = FUZZ_QUEUES + qpn % MAX_QP * SQ_ROOM + r->next * WQE_ROOM;
    QRdmaDesc desc = { at, len, false };

    fuzz_write(at, wqe, sizeof(*wqe));
    fuzz_write(at + sizeof(*wqe), sge, SGES * sizeof(*sge));
    fuzz_ring_put(r, &desc, 1);
    fuzz_kick(&fuzz_guest.rdma, r->index);
}

static void post_recv(uint32_t qpn, uint32_t num_sge, size_t len)
{
    FuzzRing *r = &fuzz_guest.ring[NET_ROCE_RQ_VQ(MAX_CQ, qpn % MAX_QP)];
    struct {
        NetRoceRecvWqe wqe;
        NetRoceSge sge[SGES];
    } bytes = {
        .wqe = { .wr_id = num_sge, .num_sge = num_sge },
        .sge = {
            { FUZZ_IOVA, 2000, fuzz_guest.all },
            { FUZZ_IOVA + 3000, 2000, fuzz_guest.all },
        },
    };
    uint64_t at = fuzz_ring_buffer(r);
    QRdmaDesc desc = { at, len, false };

    fuzz_write(at, &bytes, sizeof(bytes));
    fuzz_ring_put(r, &desc, 1);
    fuzz_kick(&fuzz_guest.rdma, r->index);
}

static const unsigned places[] = {
    FUZZ_QP_A, FUZZ_QP_B, FUZZ_QP_RC_FAR, FUZZ_QP_UD,
};

static bool start(void)
{
    FuzzGuest *g = &fuzz_guest;

    if (!fuzz_start(&g->rdma, 1ull << VIRTIO_F_VERSION_1 |
                              1ull << NET_ROCE_F_ROCE)) {
        return false;
    }
    g->n_vqs = NET_ROCE_NUM_VQS(MAX_CQ, MAX_QP);
    g->max_cq = MAX_CQ;
    for (unsigned n = 0; n < g->n_vqs; n++) {
        g->ring[n].index = n;
        fuzz_ring_setup(&g->rdma, &g->ring[n]);
    }
    fuzz_store(g->rdma.bar + g->rdma.proxy->common.offset +
               offsetof(struct virtio_pci_common_cfg, device_status), 0xf,
               1);
    return true;
}

static void bring_up(bool checked)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0, 0x12, 0x34, 1 };
    FuzzGuest *g = &fuzz_guest;

    if (!start()) {
        g_assert(!checked);
        return;
    }
    g->psn = psn;
    memcpy(g->mac, mac, sizeof(mac));
    memcpy(g->far_mac, mac, sizeof(mac));
    g->far_mac[RDMA_MAC_LEN - 1] = 2;
    add_gids(checked);
    pdn = create(NET_ROCE_CMD_CREATE_PD, NULL, 0, checked);
    create_mr(NET_ROCE_ACCESS, FUZZ_PAGES, 0, checked);
    g->all = g->key[0];
    g->cqn[0] = create_cq(checked);
    refill_cq(g->cqn[0], FUZZ_RING_SIZE);
    ahs[0] = create_ah(true, checked);
    ahs[1] = create_ah(false, checked);
    for (unsigned i = 0; i < FUZZ_QPS; i++) {
        g->qpn[i] = FUZZ_FAR_QPN;
    }
    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        g->qpn[places[i]] = create_qp(places[i] == FUZZ_QP_UD ? RDMA_QPT_UD
                                                              : RDMA_QPT_RC,
                                      checked);
    }
    for (unsigned i = 0; i < ARRAY_SIZE(places); i++) {
        for (RdmaQpState s = RDMA_QPS_INIT; s <= RDMA_QPS_RTS; s++) {
            modify(places[i], s, checked);
        }
        for (unsigned n = 0; n < WRS / 2; n++) {
            post_recv(g->qpn[places[i]], 1, sizeof(NetRoceRecvWqe) +
                      sizeof(NetRoceSge));
        }
    }
}

/* Steps */

/* A handle that mostly exists */
static uint32_t pick_id(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0xe0 ? sel % 9 : sel < 0xf8 ? fuzz_guest.qpn[sel % FUZZ_QPS]
                                             : in_u32(in);
}

/* A command that begins with numbers of objects; the rest is of the input. */
static void op_command(FuzzIn *in)
{
    uint8_t req[256], rsp[sizeof(NetRoceDevice)];
    uint8_t cmd = in_u8(in) % (NET_ROCE_NUM_CMDS + 1);
    uint32_t ids[] = { pick_id(in), pick_id(in) };
    uint8_t sel = in_u8(in), n = in_u8(in);

    memset(req, 0, sizeof(req));
    memcpy(req, ids, sizeof(ids));
    for (unsigned i = 0; i < n % 32; i++) {
        req[in_u8(in)] = in_u8(in);
    }
    command(cmd, req, sel < 0xc0 ? 128 : sel, rsp,
            sel & 1 ? sizeof(rsp) : in_u8(in) % sizeof(rsp));
}

static void op_create(FuzzIn *in)
{
    uint8_t sel = in_u8(in), what = in_u8(in);

    switch (what % 4) {
    case 0:
        create_mr(sel & 7, 1 + sel % FUZZ_PAGES, what, false);
        break;
    case 1:
        fuzz_guest.cqn[1] = create_cq(false);
        refill_cq(fuzz_guest.cqn[1], sel % FUZZ_RING_SIZE);
        break;
    case 2:
        fuzz_guest.qpn[sel % FUZZ_QPS] = create_qp(what >> 4, false);
        break;
    case 3:
        ahs[sel & 1] = create_ah(sel & 2, false);
        break;
    }
}

static void op_modify(FuzzIn *in)
{
    unsigned place = in_u8(in) % FUZZ_QPS;
    NetRoceModifyQp req = modify_of(place, in_u8(in) % ARRAY_SIZE(masks));
    uint8_t sel = in_u8(in);

    req.attr_mask ^= sel & 0x80 ? 1u << sel % 32 : 0;
    ((uint8_t *)&req)[8 + in_u8(in) % (sizeof(req) - 8)] ^=
        sel & 0x40 ? in_u8(in) : 0;
    command(NET_ROCE_CMD_MODIFY_QP, &req, sizeof(req), NULL, 0);
}

static void op_send(FuzzIn *in)
{
    uint8_t sel = in_u8(in), flags = in_u8(in), n = in_u8(in);
    uint32_t qpn = fuzz_guest.qpn[sel % FUZZ_QPS];
    NetRoceSendWqe wqe = {
        .wr_id = sel,
        .opcode = in_u8(in) % 6,
        .send_flags = flags < 0xe0 ? flags % 16 : in_u8(in),
        .n.num_sge = n < 0xf0 ? n % (SGES + 1) : in_u32(in),
    };
    NetRoceSge sge[SGES] = {
        { fuzz_pick_va(in), in_u16(in), fuzz_pick_key(in) },
        { FUZZ_IOVA, in_u8(in), fuzz_guest.all },
    };

    if (qpn == fuzz_guest.qpn[FUZZ_QP_UD]) {
        wqe.wr.ud.remote_qpn = sel & 0x80 ? qpn : FUZZ_FAR_QPN;
        wqe.wr.ud.remote_qkey = FUZZ_QKEY;
        wqe.wr.ud.ah = n & 0x80 ? pick_id(in) : ahs[sel >> 7];
    } else {
        wqe.wr.rdma.remote_addr = fuzz_pick_va(in);
        wqe.wr.rdma.rkey = fuzz_pick_key(in);
    }
    post_send(qpn, &wqe, sge, sel & 0x40 ? in_u16(in) % WQE_ROOM
                                         : sizeof(wqe) + sizeof(sge));
}

static void op_recv(FuzzIn *in)
{
    uint8_t sel = in_u8(in), n = in_u8(in);

    post_recv(fuzz_guest.qpn[sel % FUZZ_QPS], n % (SGES + 2),
              sel & 0x80 ? n : sizeof(NetRoceRecvWqe) +
                               SGES * sizeof(NetRoceSge));
}

static void op_refill(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    refill_cq(fuzz_guest.cqn[sel & 1], sel % FUZZ_RING_SIZE);
}

/* Buffers of the NIC, and frames of the driver */
static void op_nic(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    FuzzRing *r = &fuzz_guest.ring[sel & 1];
    const QRdmaDesc desc[] = {
        { fuzz_ring_buffer(r), in_u16(in) % 512, !(sel & 1) },
        { sel & 4 ? fuzz_pick_va(in) : FUZZ_DATA, in_u16(in), !(sel & 2) },
    };

    fuzz_ring_put(r, desc, sel & 8 ? 2 : 1);
    fuzz_kick(&fuzz_guest.rdma, r->index);
}

static void op_restart(FuzzIn *in)
{
    bring_up(false);
}

static void (*const ops[])(FuzzIn *in) = {
    op_command, op_send, op_recv, fuzz_op_frame,
    op_create, op_modify, op_refill, op_nic,
    fuzz_op_kick, fuzz_op_time, fuzz_op_ring, fuzz_op_register,
    fuzz_op_pci, fuzz_op_vector, op_restart, fuzz_op_flr,
    fuzz_op_memory, fuzz_op_tear, fuzz_op_link, fuzz_op_migrate,
    fuzz_op_mutate, fuzz_op_raw_frame, op_send, op_command,
};

/* Check that a new device works: A writes to B, and completes. */
static void renew(void)
{
    FuzzGuest *g = &fuzz_guest;
    uint64_t cqe = FUZZ_BUFFERS;
    NetRoceSendWqe wqe = {
        .wr_id = PROBE_ID,
        .opcode = RDMA_WR_RDMA_WRITE,
        .send_flags = RDMA_SEND_SIGNALED,
        .wr.rdma.remote_addr = FUZZ_IOVA,
        .n.num_sge = 1,
    };
    NetRoceSge sge[SGES] = { { FUZZ_IOVA, 64 } };

    g->tears = 0;
    qmp_set_link("n0", true, &error_abort);
    fuzz_machine_reset();
    bring_up(true);
    cqe += NET_ROCE_CQ_VQ(g->cqn[0]) * FUZZ_RING_SIZE * FUZZ_BUF_SIZE;
    wqe.wr.rdma.rkey = sge[0].lkey = g->all;
    post_send(g->qpn[FUZZ_QP_A], &wqe, sge, sizeof(wqe) + sizeof(sge));
    for (int i = 0; i < PROBE_TURNS && fuzz_load(cqe, 8) != PROBE_ID; i++) {
        fuzz_settle();
    }
    g_assert_cmphex(fuzz_load(cqe, 8), ==, PROBE_ID);
    g_assert_cmpint(fuzz_load(cqe + offsetof(NetRoceCqe, status), 1), ==,
                    NET_ROCE_WC_SUCCESS);
}

static void prepare(QTestState *s)
{
    renew();
}

static void fuzz(QTestState *s, const unsigned char *data, size_t size)
{
    FuzzIn in = { data, size };

    for (unsigned n = 0; in.left && n < MAX_RECORDS; n++) {
        fuzz_find_devices();
        ops[in_u8(&in) % ARRAY_SIZE(ops)](&in);
        fuzz_drain_wire();
    }
    renew();
}

static void register_target(void)
{
    fuzz_add_target(&(FuzzTarget) {
        .name = config.name,
        .description = "The virtio-net-roce device",
        .get_init_cmdline = cmdline,
        .pre_fuzz = prepare,
        .fuzz = fuzz,
    });
}

fuzz_target_init(register_target);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: the bring-up of the device, and work
 * requests of the input. Most are nearly valid, so that they pass the first
 * checks.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-fuzz.h"
#include "standard-headers/linux/virtio_pci.h"

#define STATUS_REG offsetof(struct virtio_pci_common_cfg, device_status)
#define CONFIG(field) offsetof(struct virtio_rdma_config, field)
#define QP_RECVS 12

static FuzzRing *ring(unsigned index)
{
    return &fuzz_guest.ring[index % FUZZ_MAX_VQS];
}

static uint32_t create(bool checked, uint8_t cmd, const void *req, size_t len)
{
    uint32_t words[3] = {};
    uint8_t status = fuzz_command(cmd, req, len, words,
                                  cmd == VIRTIO_RDMA_CMD_REG_USER_MR ? 12 : 4);
    uint32_t n = le32_to_cpu(words[0]);

    if (checked) {
        assert_ok(status);
    }
    if (cmd == VIRTIO_RDMA_CMD_REG_USER_MR) {
        fuzz_guest.key[n % FUZZ_KEYS] = le32_to_cpu(words[1]);
        n = le32_to_cpu(words[1]);
    }
    return n;
}

static void modify(bool checked, uint32_t qpn, uint32_t mask,
                   const RdmaQpAttr *attr)
{
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(qpn), .attr_mask = cpu_to_le32(mask),
    };
    uint8_t status;

    qrdma_encode_qp_attr(&req.attr, attr);
    status = fuzz_command(VIRTIO_RDMA_CMD_MODIFY_QP, &req, sizeof(req), NULL,
                          0);
    if (checked) {
        assert_ok(status);
    }
}

/* Without F_FLUSH that right is an unknown one. */
static uint32_t flush_access(void)
{
    return fuzz_guest.config->demo ? 0 : RDMA_ACCESS_FLUSH_GLOBAL;
}

static void connect_qp(bool checked, unsigned place, uint8_t gid_index)
{
    FuzzGuest *g = &fuzz_guest;
    bool far = place > FUZZ_QP_B && place != FUZZ_QP_UD;
    RdmaQpAttr attr = {
        .path_mtu = RDMA_MTU_1024,
        .qkey = FUZZ_QKEY,
        .dest_qp_num = far ? FUZZ_FAR_QPN : g->qpn[place ^ 1],
        .qp_access_flags = RDMA_ACCESS_REMOTE | flush_access(),
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 5,
        .port_num = 1,
        .timeout = 8,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = fuzz_av_to(far, gid_index),
    };

    for (int state = RDMA_QPS_RESET; state <= RDMA_QPS_RTS; state++) {
        attr.qp_state = state;
        modify(checked, g->qpn[place], fuzz_masks_of(place)[state], &attr);
    }
}

void fuzz_op_connect(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    connect_qp(false, sel % FUZZ_QPS, sel >> 7);
    if (sel % FUZZ_QPS <= FUZZ_QP_B) {
        connect_qp(false, sel % FUZZ_QPS ^ 1, sel >> 7);
    }
}

static void refill(FuzzRing *r, unsigned n)
{
    while (n--) {
        QRdmaDesc desc = { fuzz_ring_buffer(r), 64, true };

        fuzz_ring_put(r, &desc, 1);
    }
}

/* Give @wqe the layout of the device; returns its length. */
static size_t use_layout(bool send, uint8_t *wqe, size_t len)
{
    uint8_t copy[QRDMA_WQE_ROOM];

    if (!fuzz_guest.config->demo) {
        return len;
    }
    memcpy(copy, wqe, len);
    return qrdma_demo_wqe(send, copy, len, wqe);
}

static void post_recv(FuzzRing *r, const RdmaRecvWr *wr)
{
    uint8_t wqe[FUZZ_BUF_SIZE];
    QRdmaDesc desc = { fuzz_ring_buffer(r), 0, false };

    desc.len = use_layout(false, wqe, qrdma_encode_recv(wr, wqe));
    fuzz_write(desc.addr, wqe, desc.len);
    fuzz_ring_put(r, &desc, 1);
}

static bool is_direct(void)
{
    return fuzz_guest.config->direct;
}

static void post_recv_to(unsigned place, const RdmaRecvWr *wr)
{
    uint8_t wqe[FUZZ_BUF_SIZE];

    if (is_direct()) {
        fuzz_direct_post(place, true, wqe, qrdma_encode_recv(wr, wqe));
    } else {
        post_recv(fuzz_rq(place), wr);
    }
}

static void kick_wq(unsigned place, const FuzzRing *r)
{
    if (is_direct()) {
        fuzz_direct_ring(place);
    } else {
        fuzz_kick(&fuzz_guest.rdma, r->index);
    }
}

/* The layout of the demo has no SRQs. */
static bool has_srqs(void)
{
    return !fuzz_guest.config->demo;
}

static FuzzRing *srq_ring(uint32_t srqn)
{
    FuzzGuest *g = &fuzz_guest;

    return ring(VIRTIO_RDMA_SRQ_VQ(g->max_cq, g->max_qp, srqn));
}

static void post_srq_recv(uint32_t srqn, const RdmaRecvWr *wr)
{
    uint8_t wqe[FUZZ_BUF_SIZE];

    if (is_direct()) {
        fuzz_direct_post_srq(wqe, qrdma_encode_recv(wr, wqe));
    } else {
        post_recv(srq_ring(srqn), wr);
    }
}

static void kick_srq(uint32_t srqn)
{
    if (is_direct()) {
        fuzz_direct_ring_srq();
    } else {
        fuzz_kick(&fuzz_guest.rdma, srq_ring(srqn)->index);
    }
}

static void negotiate(bool checked)
{
    FuzzGuest *g = &fuzz_guest;
    uint64_t common = g->rdma.bar + g->rdma.proxy->common.offset;
    uint64_t config = g->rdma.bar + g->rdma.proxy->device.offset;

    fuzz_store(common + offsetof(struct virtio_pci_common_cfg,
                                 device_feature_select), 1, 4);
    g->features = fuzz_load(common +
                            offsetof(struct virtio_pci_common_cfg,
                                     device_feature), 4) << 32;
    fuzz_store(common + offsetof(struct virtio_pci_common_cfg,
                                 device_feature_select), 0, 4);
    g->features |= fuzz_load(common +
                             offsetof(struct virtio_pci_common_cfg,
                                      device_feature), 4);
    g->packed = g->features & QRDMA_F(VIRTIO_F_RING_PACKED);
    if (!fuzz_start(&g->rdma, g->features) && checked) {
        g_error("the device does not take the features it offers");
    }
    g->max_cq = fuzz_load(config + CONFIG(max_cq), 4);
    g->max_qp = fuzz_load(config + CONFIG(max_qp), 4);
    g->max_srq = fuzz_load(config + CONFIG(max_srq), 4);
    g->n_vqs = has_srqs()
               ? VIRTIO_RDMA_SRQ_VQ(g->max_cq, g->max_qp, g->max_srq)
               : VIRTIO_RDMA_NUM_VQS(g->max_cq, g->max_qp);
    if (checked) {
        g_assert_cmpuint(g->n_vqs, <=, FUZZ_MAX_VQS);
    }
    for (unsigned i = 0; i < FUZZ_MAX_VQS; i++) {
        g->ring[i].index = i;
        g->ring[i].size = FUZZ_RING_SIZE;
        if (i < g->n_vqs && i != VIRTIO_RDMA_SQ_VQ(g->max_cq, 0) &&
            i != VIRTIO_RDMA_RQ_VQ(g->max_cq, 0)) {
            fuzz_ring_setup(&g->rdma, &g->ring[i]);
        }
    }
    fuzz_store(common + STATUS_REG, 0xf, 1);
}

static void set_addresses(bool checked)
{
    static const uint8_t gids[2][RDMA_GID_LEN] = {
        { 0xfe, 0x80, [8] = 0x50, 0x54, 0x00, 0xff, 0xfe, 0x12, 0x34, 1 },
        { [10] = 0xff, 0xff, 10, 0, 0, 1 },
    };
    static const uint8_t mac[] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x01 };
    FuzzGuest *g = &fuzz_guest;

    memcpy(g->mac, mac, sizeof(mac));
    memcpy(g->far_mac, mac, sizeof(mac));
    g->far_mac[RDMA_MAC_LEN - 1] = 2;
    memcpy(g->gid, gids, sizeof(gids));
    memcpy(g->far_gid, gids, sizeof(gids));
    for (int i = 0; i < 2; i++) {
        struct virtio_rdma_add_gid_req req = {
            .gid_type = cpu_to_le32(VIRTIO_RDMA_GID_TYPE_ROCE_V2),
            .index = cpu_to_le16(i),
            .port_num = cpu_to_le32(1),
        };
        uint8_t status;

        g->far_gid[i][RDMA_GID_LEN - 1] = 2;
        memcpy(req.gid, gids[i], sizeof(req.gid));
        status = fuzz_command(VIRTIO_RDMA_CMD_ADD_GID, &req, sizeof(req),
                              NULL, 0);
        if (checked) {
            assert_ok(status);
        }
    }
}

static void create_memory(bool checked)
{
    uint32_t access = (FUZZ_ACCESS_ALL & ~RDMA_ACCESS_FLUSH_GLOBAL) |
                      flush_access();
    struct virtio_rdma_reg_user_mr_req mr = {
        .pdn = cpu_to_le32(FUZZ_PDN),
        .access = cpu_to_le32(access),
        .start = cpu_to_le64(FUZZ_IOVA),
        .length = cpu_to_le64(FUZZ_MR_SIZE),
        .virt_addr = cpu_to_le64(FUZZ_IOVA),
        .pages = cpu_to_le64(fuzz_guest.config->demo ? FUZZ_TABLES + 0x1000
                                                     : FUZZ_TABLES),
        .npages = cpu_to_le32(FUZZ_PAGES),
    };
    struct virtio_rdma_create_mr_req fast = {
        .pdn = cpu_to_le32(FUZZ_PDN),
        .access = cpu_to_le32(access),
        .max_num_sg = cpu_to_le32(16),
    };

    for (unsigned i = 0; i < FUZZ_PAGES; i++) {
        fuzz_store(FUZZ_TABLES + 8 * i, FUZZ_DATA + 4096 * i, 8);
    }
    fuzz_store(FUZZ_TABLES + 0x1000, FUZZ_TABLES, 8);
    fuzz_guest.all = create(checked, VIRTIO_RDMA_CMD_REG_USER_MR, &mr,
                            sizeof(mr));
    mr.access = cpu_to_le32(RDMA_ACCESS_REMOTE_READ);
    create(checked, VIRTIO_RDMA_CMD_REG_USER_MR, &mr, sizeof(mr));
    create(false, VIRTIO_RDMA_CMD_CREATE_MR, &fast, sizeof(fast));
}

static void create_cqs(bool checked)
{
    FuzzGuest *g = &fuzz_guest;
    struct virtio_rdma_create_cq_req eq = {
        .cqe = cpu_to_le32(4), .flags = cpu_to_le32(VIRTIO_RDMA_CQ_EVENTS),
    };

    if (is_direct()) {
        g->eqn = create(checked, VIRTIO_RDMA_CMD_CREATE_CQ, &eq, sizeof(eq));
        refill(ring(VIRTIO_RDMA_CQ_VQ(g->eqn)), FUZZ_RING_SIZE / 4);
    }
    for (int i = 0; i < 2; i++) {
        /* Without F_VERSION_1 the ring is the limit. */
        struct virtio_rdma_create_cq_req cq = {
            .cqe = cpu_to_le32(g->config->demo ? FUZZ_RING_SIZE : 100),
        };

        if (is_direct()) {
            fuzz_direct_describe_cq(i, &cq);
        }
        g->cqn[i] = create(checked, VIRTIO_RDMA_CMD_CREATE_CQ, &cq,
                           sizeof(cq));
        if (!is_direct()) {
            /*
             * Few buffers, so that the device soon comes to buffers of the
             * input
             */
            refill(ring(VIRTIO_RDMA_CQ_VQ(g->cqn[i])), FUZZ_RING_SIZE / 4);
        }
    }
}

static uint32_t create_qp(bool checked, unsigned place)
{
    static const uint8_t types[FUZZ_QPS] = {
        [FUZZ_QP_A] = RDMA_QPT_RC, [FUZZ_QP_B] = RDMA_QPT_RC,
        [FUZZ_QP_RC_FAR] = RDMA_QPT_RC, [FUZZ_QP_UC_FAR] = RDMA_QPT_UC,
        [FUZZ_QP_UD] = RDMA_QPT_UD, [FUZZ_QP_SRQ_FAR] = RDMA_QPT_RC,
    };
    struct virtio_rdma_create_qp_req req = {
        .pdn = cpu_to_le32(FUZZ_PDN),
        .qp_type = types[place],
        .sq_sig_type = VIRTIO_RDMA_SIGNAL_REQ_WR,
        .max_send_wr = cpu_to_le32(16),
        .max_send_sge = cpu_to_le32(4),
        .send_cqn = cpu_to_le32(fuzz_guest.cqn[0]),
        .max_recv_wr = cpu_to_le32(16),
        .max_recv_sge = cpu_to_le32(4),
        .recv_cqn = cpu_to_le32(fuzz_guest.cqn[1]),
        .max_inline_data = cpu_to_le32(64),
        .flags = cpu_to_le32(place == FUZZ_QP_SRQ_FAR ? VIRTIO_RDMA_QP_SRQ
                                                      : 0),
    };

    if (is_direct()) {
        fuzz_direct_describe(place, place == FUZZ_QP_SRQ_FAR, &req);
    }
    return create(checked, VIRTIO_RDMA_CMD_CREATE_QP, &req, sizeof(req));
}

void fuzz_bring_up(bool checked)
{
    struct virtio_rdma_create_srq_req srq = {
        .pdn = cpu_to_le32(FUZZ_PDN),
        .max_wr = cpu_to_le32(16),
        .max_sge = cpu_to_le32(4),
        .limit = cpu_to_le32(2),
    };
    FuzzGuest *g = &fuzz_guest;

    if (!g->rdma.proxy) {
        return;
    }
    if (checked && g->iommu.proxy) {
        fuzz_iommu_attach();
    }
    memset(g->key, 0, sizeof(g->key));
    negotiate(checked);
    set_addresses(checked);
    create(checked, VIRTIO_RDMA_CMD_CREATE_PD, NULL, 0);
    create_cqs(checked);
    refill(ring(VIRTIO_RDMA_EVENT_VQ(g->max_cq, g->max_qp)), FUZZ_RING_SIZE);
    create_memory(checked);
    if (is_direct()) {
        fuzz_direct_describe_srq(&srq);
    }
    create(checked && has_srqs(), VIRTIO_RDMA_CMD_CREATE_SRQ, &srq,
           sizeof(srq));
    for (unsigned i = 0; i < FUZZ_QPS; i++) {
        RdmaSge sge = { FUZZ_IOVA + 0x1000 * i, 4096, g->all };
        RdmaRecvWr wr = { .wr_id = i, .num_sge = 1, .sg_list = &sge };

        g->qpn[i] = create_qp(checked, i);
        for (int n = 0; n < QP_RECVS; n++) {
            if (i == FUZZ_QP_SRQ_FAR && has_srqs()) {
                post_srq_recv(0, &wr);
            } else {
                post_recv_to(i, &wr);
            }
        }
    }
    for (unsigned i = 0; i < FUZZ_QPS; i++) {
        connect_qp(checked, i, i > FUZZ_QP_B && i & 1);
        kick_wq(i, fuzz_rq(i));
    }
    kick_srq(0);
}

static void pick_sges(FuzzIn *in, RdmaSge *sge, uint32_t n)
{
    while (n--) {
        sge->lkey = fuzz_pick_key(in);
        sge->length = in_u16(in) % 9000;
        sge->addr = fuzz_pick_va(in);
        sge++;
    }
}

static void pick_operands(FuzzIn *in, RdmaSendWr *wr)
{
    uint32_t key = fuzz_pick_key(in);
    uint64_t va = fuzz_pick_va(in);

    switch (wr->opcode) {
    case RDMA_WR_BIND_MW:
        wr->wr.bind.rkey = key;
        wr->wr.bind.new_rkey = key + (in_u8(in) & 1);
        wr->wr.bind.lkey = fuzz_pick_key(in);
        wr->wr.bind.access = fuzz_pick_access(in);
        wr->wr.bind.addr = va;
        wr->wr.bind.length = in_u16(in);
        break;
    case RDMA_WR_FLUSH:
        wr->wr.flush.remote_addr = va;
        wr->wr.flush.rkey = key;
        wr->wr.flush.length = in_u16(in);
        wr->wr.flush.type = 1 + in_u8(in) % 3;
        wr->wr.flush.level = in_u8(in) % 3;
        break;
    case RDMA_WR_REG_MR:
        wr->wr.reg.key = key;
        wr->wr.reg.mrn = key >> 8;
        wr->wr.reg.access = fuzz_pick_access(in);
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        wr->wr.atomic.remote_addr = va;
        wr->wr.atomic.rkey = key;
        break;
    default:
        wr->wr.rdma.remote_addr = va;
        wr->wr.rdma.rkey = key;
        break;
    }
    if (wr->opcode == RDMA_WR_LOCAL_INV ||
        wr->opcode == RDMA_WR_SEND_WITH_INV ||
        wr->opcode == RDMA_WR_RDMA_READ_WITH_INV) {
        wr->ex.invalidate_rkey = key;
    }
}

static size_t pick_send(FuzzIn *in, unsigned place, uint8_t *out)
{
    uint8_t opcode = in_u8(in), flags = in_u8(in);
    QRdmaPd pd = { .pdn = FUZZ_PDN };
    QRdmaQp qp = {
        .pd = &pd, .type = place == FUZZ_QP_UD ? RDMA_QPT_UD : RDMA_QPT_RC,
    };
    RdmaSge sge[4];
    RdmaSendWr wr = {
        .wr_id = in_u8(in),
        .opcode = opcode % 17 == 16 ? RDMA_WR_REG_MR : opcode % 17,
        .send_flags = flags & (RDMA_SEND_FENCE | RDMA_SEND_SIGNALED |
                               RDMA_SEND_SOLICITED),
        .num_sge = flags >> 5 & 3,
        .sg_list = sge,
    };
    size_t len;

    pick_sges(in, sge, wr.num_sge);
    if (place == FUZZ_QP_UD) {
        bool far = flags & 0x80;

        wr.wr.ud.remote_qpn = far ? RDMA_QPN_MCAST
                                  : fuzz_guest.qpn[FUZZ_QP_UD];
        wr.wr.ud.remote_qkey = FUZZ_QKEY;
        wr.wr.ud.av = fuzz_av_to(far, flags & 1);
        if (far) {
            memset(wr.wr.ud.av.dgid, 0, RDMA_GID_LEN);
            wr.wr.ud.av.dgid[0] = 0xff;
            wr.wr.ud.av.dgid[1] = 0x0e;
            wr.wr.ud.av.dgid[15] = in_u8(in) % 8;
        }
    } else {
        pick_operands(in, &wr);
    }
    len = qrdma_encode_send(&qp, &wr, out);
    if (wr.opcode == RDMA_WR_REG_MR && flags & 0x10) {
        struct virtio_rdma_reg_user_mr_req mr = fuzz_pick_mr(in);
        struct virtio_rdma_sq_wqe wqe;

        memcpy(&wqe, out, sizeof(wqe));
        wqe.wr.reg.npages = mr.npages;
        wqe.wr.reg.start = mr.start;
        wqe.wr.reg.length = mr.length;
        wqe.wr.reg.pages = mr.pages;
        memcpy(out, &wqe, sizeof(wqe));
    }
    return use_layout(true, out, len);
}

void fuzz_op_send(FuzzIn *in)
{
    FuzzGuest *g = &fuzz_guest;
    uint8_t sel = in_u8(in), wqe[QRDMA_WQE_ROOM];
    unsigned place = (sel & 0xf) % FUZZ_QPS;
    FuzzRing *r = ring(VIRTIO_RDMA_SQ_VQ(g->max_cq, g->qpn[place]));
    size_t len = pick_send(in, place, wqe);
    uint64_t buf = fuzz_ring_buffer(r);
    QRdmaDesc desc[] = { { buf, len, false }, { buf, 0, false } };

    if (sel & 0x10) {
        unsigned at = in_u8(in);

        wqe[at % len] ^= 1 << in_u8(in) % 8;
    }
    if (sel & 0x20) {
        desc[0].len = len / 2;
        desc[1] = (QRdmaDesc) { buf + len / 2, len - len / 2, false };
    }
    if (is_direct()) {
        fuzz_direct_post(place, false, wqe, len);
    } else {
        fuzz_write(buf, wqe, MIN(len, FUZZ_BUF_SIZE));
        fuzz_ring_put(r, desc, sel & 0x20 ? 2 : 1);
    }
    /* Sometimes several requests with one doorbell */
    if (!(sel & 0x80)) {
        kick_wq(place, r);
    }
}

void fuzz_op_recv(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    unsigned place = sel % 8;
    RdmaSge sge[4];
    RdmaRecvWr wr = { .wr_id = sel, .num_sge = sel >> 4 & 3, .sg_list = sge };
    bool shared = place >= FUZZ_QP_SRQ_FAR;

    pick_sges(in, sge, wr.num_sge);
    if (shared) {
        post_srq_recv(place & 1, &wr);
    } else {
        post_recv_to(place, &wr);
    }
    if (sel & 0x80) {
        return;
    }
    if (shared) {
        kick_srq(place & 1);
    } else {
        kick_wq(place, fuzz_rq(place));
    }
}

void fuzz_send_messages(unsigned n, uint64_t wr_id)
{
    FuzzGuest *g = &fuzz_guest;
    RdmaSge sge = { FUZZ_IOVA, 3000, g->all };
    RdmaRecvWr recv = { .wr_id = wr_id, .num_sge = 1, .sg_list = &sge };
    RdmaSendWr send = qrdma_wr(RDMA_WR_SEND, wr_id, &sge);
    QRdmaPd pd = { .pdn = FUZZ_PDN };
    QRdmaQp qp = { .pd = &pd, .type = RDMA_QPT_RC };
    FuzzRing *sq = ring(VIRTIO_RDMA_SQ_VQ(g->max_cq, g->qpn[FUZZ_QP_A]));
    uint8_t wqe[QRDMA_WQE_ROOM];

    for (unsigned i = 0; i < n; i++) {
        QRdmaDesc desc = { fuzz_ring_buffer(sq), 0, false };

        post_recv_to(FUZZ_QP_B, &recv);
        desc.len = use_layout(true, wqe, qrdma_encode_send(&qp, &send, wqe));
        if (is_direct()) {
            fuzz_direct_post(FUZZ_QP_A, false, wqe, desc.len);
            continue;
        }
        fuzz_write(desc.addr, wqe, desc.len);
        fuzz_ring_put(sq, &desc, 1);
    }
    kick_wq(FUZZ_QP_B, fuzz_rq(FUZZ_QP_B));
    kick_wq(FUZZ_QP_A, sq);
}

void fuzz_op_refill(FuzzIn *in)
{
    FuzzGuest *g = &fuzz_guest;
    uint8_t sel = in_u8(in);
    FuzzRing *r = sel & 0x80 ? ring(VIRTIO_RDMA_EVENT_VQ(g->max_cq, g->max_qp))
                             : ring(VIRTIO_RDMA_CQ_VQ(is_direct()
                                                      ? g->eqn
                                                      : g->cqn[sel & 1]));

    refill(r, 1 + (sel >> 1 & 15));
    fuzz_kick(&g->rdma, r->index);
}

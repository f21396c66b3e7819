/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: control commands of the input. Most are
 * nearly valid, so that they pass the first checks.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "rdma-fuzz.h"

#define REQ_ROOM 256

/* Masks of attributes that a QP needs to enter a state */
static const uint32_t masks_rc[] = { 1, 0x39, 0x129181, 0x12e01, 1, 1, 1 };
static const uint32_t masks_uc[] = { 1, 0x39, 0x101181, 0x10001, 1, 1, 1 };
static const uint32_t masks_ud[] = { 1, 0x71, 1, 0x10001, 1, 1, 1 };

/*
 * Into the ring, without a notification. @tail of the @len bytes become a
 * descriptor of their own. Returns the address of the answer.
 */
static uint64_t put(const uint8_t *bytes, size_t len, size_t tail,
                    size_t rsp_len)
{
    FuzzRing *r = &fuzz_guest.ring[VIRTIO_RDMA_CTRL_VQ];
    uint64_t buf = fuzz_ring_buffer(r);
    uint64_t answer = buf + FUZZ_BUF_SIZE / 2;
    QRdmaDesc desc[] = {
        { buf, len - tail, false },
        { buf + len - tail, tail, false },
        { answer, 1 + rsp_len, true },
    };

    fuzz_write(buf, bytes, len);
    fuzz_store(answer, 0xff, 1);
    if (!tail) {
        desc[1] = desc[2];
    }
    fuzz_ring_put(r, desc, tail ? 3 : 2);
    return answer;
}

static uint8_t command(const uint8_t *bytes, size_t len, size_t tail,
                       void *rsp, size_t rsp_len)
{
    uint64_t answer = put(bytes, len, tail, rsp_len);
    uint8_t got[FUZZ_BUF_SIZE / 2];

    fuzz_kick(&fuzz_guest.rdma, VIRTIO_RDMA_CTRL_VQ);
    fuzz_read(answer, got, sizeof(got));
    if (rsp) {
        memcpy(rsp, got + 1, rsp_len);
    }
    return got[0];
}

/* Give the command in @bytes the layout of the device; returns its length. */
static size_t use_layout(uint8_t *bytes, size_t len)
{
    uint8_t req[REQ_ROOM];

    if (!fuzz_guest.config->demo) {
        return len;
    }
    memcpy(req, bytes + 1, len - 1);
    return 1 + qrdma_demo_request(bytes[0], req, len - 1, bytes + 1);
}

uint8_t fuzz_command(uint8_t cmd, const void *req, size_t len, void *rsp,
                     size_t rsp_len)
{
    uint8_t bytes[REQ_ROOM] = { cmd };

    g_assert_cmpuint(len, <, sizeof(bytes));
    if (len) {
        memcpy(bytes + 1, req, len);
    }
    return command(bytes, use_layout(bytes, 1 + len), 0, rsp, rsp_len);
}

void fuzz_put_command(uint8_t cmd, const void *req, size_t len)
{
    uint8_t bytes[REQ_ROOM] = { cmd };

    g_assert_cmpuint(len, <, sizeof(bytes));
    memcpy(bytes + 1, req, len);
    put(bytes, use_layout(bytes, 1 + len), 0, FUZZ_BUF_SIZE / 2 - 1);
}

RdmaAv fuzz_av_to(bool far, uint8_t gid_index)
{
    FuzzGuest *g = &fuzz_guest;
    RdmaAv av = {
        .sgid_index = gid_index, .hop_limit = 64, .port_num = 1, .ah_flags = 1,
    };

    memcpy(av.dgid, (far ? g->far_gid : g->gid)[gid_index], RDMA_GID_LEN);
    memcpy(av.dmac, far ? g->far_mac : g->mac, RDMA_MAC_LEN);
    return av;
}

const uint32_t *fuzz_masks_of(unsigned place)
{
    switch (place) {
    case FUZZ_QP_UD:
        return masks_ud;
    case FUZZ_QP_UC_FAR:
        return masks_uc;
    default:
        return masks_rc;
    }
}

uint32_t fuzz_pick_key(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0x80 ? fuzz_guest.all :
           sel < 0xf8 ? fuzz_guest.key[sel % FUZZ_KEYS] : in_u32(in);
}

uint64_t fuzz_pick_va(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    switch (sel & 15) {
    case 0:
        return in_u64(in);
    case 1:
        return FUZZ_IOVA + FUZZ_MR_SIZE - sel;
    case 2:
        return FUZZ_IOVA + 8 * sel;
    case 3:
        /* For regions that hold all memory */
        return FUZZ_DATA + in_u16(in);
    case 4:
        return FUZZ_RINGS + in_u16(in);
    case 5:
        return fuzz_config_addr(sel & 0x10 ? FUZZ_RDMA_DEVFN
                                           : FUZZ_PORT_DEVFN, in_u8(in));
    case 6:
        return (sel & 0x10 ? FUZZ_RDMA_BAR : FUZZ_BLK_BAR) + in_u16(in);
    default:
        return FUZZ_IOVA + in_u16(in);
    }
}

static uint32_t pick_handle(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0xf0 ? sel % 12 : in_u32(in);
}

uint32_t fuzz_pick_access(FuzzIn *in)
{
    uint8_t sel = in_u8(in);

    return sel < 0x80 ? FUZZ_ACCESS_ALL : sel < 0xf0 ? sel & 0x7f : in_u32(in);
}

struct virtio_rdma_reg_user_mr_req fuzz_pick_mr(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint32_t npages = 1 + in_u8(in) % FUZZ_PAGES, levels = sel % 3;
    uint64_t start = FUZZ_IOVA + (sel & 4 ? in_u16(in) % 4096 : 0);
    uint64_t list = levels == 2 ? FUZZ_TABLES + 0x1000 : FUZZ_TABLES;

    return (struct virtio_rdma_reg_user_mr_req) {
        .pdn = cpu_to_le32(sel & 8 ? pick_handle(in) : FUZZ_PDN),
        .access = cpu_to_le32(fuzz_pick_access(in)),
        .start = cpu_to_le64(start),
        .length = cpu_to_le64(npages * 4096 - start % 4096),
        .virt_addr = cpu_to_le64(start),
        .pages = cpu_to_le64(sel & 16 ? fuzz_pick_va(in) : list),
        .npages = cpu_to_le32(sel & 32 ? in_u32(in) : npages),
        .page_shift = cpu_to_le32(sel & 64 ? 12 : 0),
        .levels = cpu_to_le32(levels),
    };
}

static size_t pick_modify(FuzzIn *in, uint8_t *out)
{
    uint8_t sel = in_u8(in);
    unsigned place = sel % FUZZ_QPS;
    uint8_t state = in_u8(in);
    RdmaQpAttr attr = {
        .qp_state = state % 8,
        .path_mtu = in_u8(in) % 7,
        .qkey = FUZZ_QKEY,
        .dest_qp_num = sel & 0x80 ? FUZZ_FAR_QPN : pick_handle(in),
        .qp_access_flags = fuzz_pick_access(in),
        .max_rd_atomic = in_u8(in) % 17,
        .max_dest_rd_atomic = 1 + state % 5,
        .min_rnr_timer = sel % 32,
        .port_num = 1,
        .timeout = in_u8(in) % 32,
        .retry_cnt = state >> 5,
        .rnr_retry = sel >> 5,
        .rate_limit = sel & 0x40 ? in_u32(in) : 0,
        .en_sqd_async_notify = state >> 7,
        .ah_attr = fuzz_av_to(sel & 0x80, state >> 6 & 1),
    };
    struct virtio_rdma_modify_qp_req req = {
        .qpn = cpu_to_le32(fuzz_guest.qpn[place]),
        .attr_mask = cpu_to_le32(state & 8 ? in_u32(in) :
                                 fuzz_masks_of(place)[MIN(attr.qp_state, 6)]),
    };

    qrdma_encode_qp_attr(&req.attr, &attr);
    memcpy(out, &req, sizeof(req));
    return sizeof(req);
}

static size_t pick_request(FuzzIn *in, uint8_t cmd, uint8_t *out)
{
    struct virtio_rdma_rereg_mr_req rereg;
    struct virtio_rdma_map_mr_sg_req map;
    struct virtio_rdma_mcast_req mcast;
    struct virtio_rdma_reg_user_mr_req mr;
    uint32_t words[12];

    switch (cmd) {
    case VIRTIO_RDMA_CMD_REG_USER_MR:
        mr = fuzz_pick_mr(in);
        memcpy(out, &mr, sizeof(mr));
        return sizeof(mr);
    case VIRTIO_RDMA_CMD_REREG_MR:
        rereg.mrn = cpu_to_le32(pick_handle(in));
        rereg.flags = cpu_to_le32(in_u8(in) % 9);
        rereg.mr = fuzz_pick_mr(in);
        memcpy(out, &rereg, sizeof(rereg));
        return sizeof(rereg);
    case VIRTIO_RDMA_CMD_MAP_MR_SG:
        mr = fuzz_pick_mr(in);
        map = (struct virtio_rdma_map_mr_sg_req) {
            .mrn = cpu_to_le32(pick_handle(in)),
            .npages = mr.npages,
            .start = mr.start,
            .length = mr.length,
            .pages = mr.pages,
        };
        memcpy(out, &map, sizeof(map));
        return sizeof(map);
    case VIRTIO_RDMA_CMD_ATTACH_MCAST:
    case VIRTIO_RDMA_CMD_DETACH_MCAST:
        mcast = (struct virtio_rdma_mcast_req) {
            .qpn = cpu_to_le32(pick_handle(in)),
            .gid = { 0xff, 0x0e, [15] = in_u8(in) % 8 },
        };
        memcpy(out, &mcast, sizeof(mcast));
        return sizeof(mcast);
    case VIRTIO_RDMA_CMD_MODIFY_QP:
        return pick_modify(in, out);
    case VIRTIO_RDMA_CMD_CREATE_QP:
        words[0] = cpu_to_le32(FUZZ_PDN);
        out[4] = in_u8(in) % 6;
        out[5] = in_u8(in) % 3;
        for (int i = 1; i < 10; i++) {
            words[i] = cpu_to_le32(in_u8(in) % 40);
        }
        memcpy(out, words, 4);
        memcpy(out + 6, words + 1, 36);
        return sizeof(struct virtio_rdma_create_qp_req);
    }
    for (int i = 0; i < ARRAY_SIZE(words); i++) {
        words[i] = cpu_to_le32(i < 4 ? pick_handle(in) : 0);
    }
    memcpy(out, words, sizeof(words));
    return sizeof(words);
}

void fuzz_put_any_command(FuzzIn *in)
{
    uint8_t bytes[REQ_ROOM] = { 1 + (in_u8(in) & 0x1f) };
    size_t len = 1 + pick_request(in, bytes[0], bytes + 1);

    put(bytes, use_layout(bytes, len), 0, FUZZ_BUF_SIZE / 2 - 1);
}

void fuzz_op_command(FuzzIn *in)
{
    uint8_t sel = in_u8(in);
    uint8_t bytes[REQ_ROOM] = { 1 + (sel & 0x1f) }, rsp[200];
    size_t len = 1 + pick_request(in, bytes[0], bytes + 1);
    uint32_t n;

    len = use_layout(bytes, len);
    if (sel & 0x20) {
        unsigned at = in_u8(in);

        bytes[at % len] ^= 1 << in_u8(in) % 8;
    }
    if (sel & 0x40) {
        len = 1 + in_u8(in) % len;
    }
    if (command(bytes, len, sel & 0x80 ? len / 2 : 0, rsp, sizeof(rsp)) ==
        VIRTIO_RDMA_S_OK) {
        n = ldl_le_p(rsp) % FUZZ_KEYS;
        switch (bytes[0]) {
        case VIRTIO_RDMA_CMD_GET_DMA_MR:
        case VIRTIO_RDMA_CMD_CREATE_MR:
        case VIRTIO_RDMA_CMD_REG_USER_MR:
        case VIRTIO_RDMA_CMD_REREG_MR:
        case VIRTIO_RDMA_CMD_ALLOC_MW:
            fuzz_guest.key[n] = ldl_le_p(rsp + 4);
            break;
        case VIRTIO_RDMA_CMD_CREATE_QP:
            fuzz_guest.qpn[sel >> 5 & 3] = ldl_le_p(rsp);
            break;
        }
    }
}

void fuzz_op_raw_command(FuzzIn *in)
{
    uint8_t bytes[REQ_ROOM], sel = in_u8(in);
    size_t len = 1 + in_u8(in) % 200;

    for (size_t i = 0; i < len; i++) {
        bytes[i] = in_u8(in);
    }
    command(bytes, len, sel % len, NULL, sel / 2);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzers of the virtio-rdma device: frames from the wire, made by the
 * engine's own encoder, so that their checksums are right.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "backends/rdma/roce/wire/wire.h"
#include "rdma-fuzz.h"

static void send_frame(const uint8_t *frame, size_t len)
{
    if (!fuzz_shm_deliver(frame, len)) {
        (void)!send(fuzz_guest.wire, frame, len, MSG_DONTWAIT);
        fuzz_settle();
    }
    fuzz_drain_wire();
}

/* Drop what the device sends, so that the netdev does not block. */
void fuzz_drain_wire(void)
{
    uint8_t frame[ROCE_MAX_FRAME];

    while (recv(fuzz_guest.wire, frame, sizeof(frame), MSG_DONTWAIT) > 0) {
        /* next */
    }
}

/* The next PSN that @qpn expects: of a response, or of a request. */
static uint32_t expected_psn(uint32_t qpn, bool response)
{
    struct virtio_rdma_query_qp_req req = {
        .qpn = cpu_to_le32(qpn),
        .attr_mask = cpu_to_le32(RDMA_QP_RQ_PSN | RDMA_QP_SQ_PSN),
    };
    struct virtio_rdma_qp_attr attr = {};

    if (fuzz_guest.psn) {
        return fuzz_guest.psn(qpn, response);
    }
    fuzz_command(VIRTIO_RDMA_CMD_QUERY_QP, &req, sizeof(req), &attr,
                 sizeof(attr));
    return response ? le32_to_cpu(attr.sq_psn) - 1 : le32_to_cpu(attr.rq_psn);
}

static void set_path(RocePath *path, bool ipv4, uint8_t flags)
{
    FuzzGuest *g = &fuzz_guest;

    *path = (RocePath) {
        .vlan = RDMA_NO_VLAN,
        .is_ipv4 = ipv4,
        .hop_limit = 64,
        .udp_sport = 0xc000,
    };
    memcpy(path->dmac, g->mac, RDMA_MAC_LEN);
    memcpy(path->smac, g->far_mac, RDMA_MAC_LEN);
    memcpy(path->dgid, g->gid[ipv4], RDMA_GID_LEN);
    memcpy(path->sgid, g->far_gid[ipv4], RDMA_GID_LEN);
    if ((flags & 0x0f) == 0x0f) {
        memset(path->dgid, 0, RDMA_GID_LEN);
        path->dgid[0] = 0xff;
        path->dgid[1] = 0x0e;
        path->dgid[15] = flags >> 4 & 7;
        path->dmac[0] |= 1;
        path->is_ipv4 = false;
    }
}

static void fill_headers(FuzzIn *in, RoceBth *bth, uint32_t payload)
{
    uint32_t key = fuzz_pick_key(in);
    uint64_t va = fuzz_pick_va(in);
    uint8_t sel = in_u8(in);

    bth->reth.va = va;
    bth->reth.rkey = key;
    bth->reth.len = sel & 1 ? in_u32(in) :
                    payload + (sel & 2 ? in_u16(in) : 0);
    bth->atomiceth.va = va & ~7ull;
    bth->atomiceth.rkey = key;
    bth->atomiceth.swap_add = sel;
    bth->aeth.syndrome = in_u8(in);
    bth->aeth.msn = sel >> 4;
    bth->deth.qkey = sel & 4 ? in_u32(in) : FUZZ_QKEY;
    bth->deth.sqpn = FUZZ_FAR_QPN;
    bth->ieth = key;
    bth->feth = sel & 8 ? in_u32(in) : 1 | (sel >> 4 & 1)
                                           << ROCE_FETH_LEVEL_SHIFT;
}

void fuzz_op_frame(FuzzIn *in)
{
    static const uint8_t transports[FUZZ_QPS] = {
        [FUZZ_QP_A] = ROCE_RC, [FUZZ_QP_B] = ROCE_RC,
        [FUZZ_QP_RC_FAR] = ROCE_RC, [FUZZ_QP_UC_FAR] = ROCE_UC,
        [FUZZ_QP_UD] = ROCE_UD, [FUZZ_QP_SRQ_FAR] = ROCE_RC,
    };
    static const uint16_t sizes[] = { 0, 1, 8, 256, 1024, 1023, 4096, 100 };
    static const uint8_t data[ROCE_MAX_PAYLOAD];
    uint8_t sel = in_u8(in), op = in_u8(in), flags = in_u8(in);
    unsigned place = FUZZ_QP_RC_FAR + sel % (FUZZ_QPS - FUZZ_QP_RC_FAR);
    uint32_t qpn = fuzz_guest.qpn[place];
    RoceBth bth = {
        .opcode = op < 0xe0 ? transports[place] | (op & 0x1f) : in_u8(in),
        .pkey = 0xffff,
        .dqpn = qpn,
        .ack_req = flags >> 7,
        .se = sel >> 7,
    };
    const RoceOpcodeInfo *info = roce_opcode_info(bth.opcode);
    struct iovec iov = { .iov_base = (void *)data };
    uint8_t frame[ROCE_MAX_FRAME], trailer[ROCE_MAX_TRAILER];
    RocePath path;
    size_t hdr, tail;

    if (!info) {
        return;
    }
    if (info->flags & ROCE_OP_PAYLOAD) {
        iov.iov_len = sizes[op >> 5];
    }
    set_path(&path, place & 1, place == FUZZ_QP_UD ? flags : 0);
    if (place == FUZZ_QP_UD && (flags & 0x0f) == 0x0f) {
        bth.dqpn = RDMA_QPN_MCAST;
    }
    fill_headers(in, &bth, iov.iov_len);
    bth.psn = expected_psn(qpn, info->flags & ROCE_OP_RESPONSE) & 0xffffff;
    if (sel & 0x40) {
        bth.psn = (bth.psn + (int8_t)in_u8(in)) & 0xffffff;
    }
    hdr = roce_build(frame, &path, &bth, iov.iov_len);
    tail = roce_icrc_trailer(frame, hdr, path.is_ipv4, &iov, 1, trailer);
    memcpy(frame + hdr, data, iov.iov_len);
    memcpy(frame + hdr + iov.iov_len, trailer, tail);
    send_frame(frame, hdr + iov.iov_len + tail);
}

void fuzz_op_raw_frame(FuzzIn *in)
{
    uint8_t frame[256];
    size_t len = in_u8(in);

    for (size_t i = 0; i < len; i++) {
        frame[i] = in_u8(in);
    }
    send_frame(frame, len);
}

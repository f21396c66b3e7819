/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "pair.h"

/* Names in requests */

static uint32_t stale(uint32_t key, uint8_t sel)
{
    return (sel & 0x1f) == 0x1f ? key | PAIR_KEY_STALE : key;
}

/* Mostly in the region; sometimes near its end, or after it. */
static uint64_t pick_offset(uint8_t sel)
{
    uint16_t off = fuzz_u16(&pair_in);

    return sel == 9 ? off % 0x8000 : sel == 8 ? PAIR_MR_LEN - off % 0x400
                                              : off % 0x1800;
}

static RdmaSge pick_sge(PairNode *p)
{
    static const uint8_t slots[16] = {
        [10] = PAIR_MR_READ, [11] = PAIR_MR_READ, [12] = PAIR_MR_FAST,
        [13] = PAIR_MR_FAST, [14] = PAIR_MR_OTHER_PD,
    };
    uint8_t sel = fuzz_u8(&pair_in);
    unsigned slot = slots[sel & 15];
    uint32_t len = fuzz_u8(&pair_in);

    /* Small ones are as likely as some that take several packets */
    len = len & 1 ? len : len * 32;
    return (RdmaSge) {
        .addr = PAIR_IOVA(slot) + pick_offset(sel >> 4),
        .length = len,
        .lkey = stale(p->mr[slot].key, fuzz_u8(&pair_in)),
    };
}

static uint32_t remote_key(PairNode *peer, uint64_t *addr)
{
    static const uint8_t slots[16] = {
        [8] = PAIR_MR_CHANGING, [9] = PAIR_MR_CHANGING, [10] = PAIR_MR_READ,
        [11] = PAIR_MR_LOCAL, [12] = PAIR_MR_FAST, [13] = PAIR_MR_WINDOW,
        [14] = PAIR_MR_OTHER_PD, [15] = PAIR_MR_COUNTERS,
    };
    uint8_t sel = fuzz_u8(&pair_in), fresh = fuzz_u8(&pair_in);
    unsigned slot = slots[sel & 15];
    uint64_t off = pick_offset(sel >> 4);

    if (sel >= 0xe0) {
        *addr = PAIR_IOVA(PAIR_MR_WINDOW) + off % 0x1000;
        return stale(peer->mw_key[sel & 1], fresh);
    }
    *addr = PAIR_IOVA(slot) + off;
    return stale(peer->mr[slot].key, fresh);
}

/* Work requests */

void pair_group_gid(unsigned which, uint8_t gid[RDMA_GID_LEN])
{
    memset(gid, 0, RDMA_GID_LEN);
    gid[10] = gid[11] = 0xff;
    gid[12] = 239;
    gid[15] = which & 1;
}

static void set_av(PairNode *p, unsigned slot, RdmaSendWr *wr)
{
    PairNode *peer = &pair.node[!p->side];

    wr->wr.ud.remote_qpn = PAIR_QPN(slot);
    wr->wr.ud.remote_qkey = PAIR_QKEY;
    wr->wr.ud.av = link_av(p->n, peer->n, slot & 1);
}

void pair_post_good(void)
{
    uint8_t sel = fuzz_u8(&pair_in), which = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = which % PAIR_QPS;
    PairNode *peer = pair_peer(p, slot);
    static const uint32_t ops[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_FETCH_AND_ADD,
        RDMA_WR_RDMA_READ, RDMA_WR_RDMA_WRITE, RDMA_WR_FLUSH,
        RDMA_WR_ATOMIC_WRITE, RDMA_WR_ATOMIC_CMP_AND_SWP,
    };
    RdmaSge sge = {
        PAIR_IOVA(PAIR_MR_ALL) + sel % 64 * 8, fuzz_u16(&pair_in) % 0x2000,
        p->mr[PAIR_MR_ALL].key
    };
    RdmaSendWr wr = {
        .opcode = pair_is_rc(slot) ? ops[sel & 7] : RDMA_WR_RDMA_WRITE,
        .send_flags = sel >> 3 & 3,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.rdma = { PAIR_IOVA(PAIR_MR_ALL) + 64, peer->mr[PAIR_MR_ALL].key },
    };

    if (which >= 0xf8) {
        /* But for this, to which not each of them comes */
        wr.wr.rdma.rkey |= PAIR_KEY_STALE;
    }
    if (pair_is_ud(slot)) {
        wr.opcode = RDMA_WR_SEND;
        sge.length %= 1000;
        set_av(p, slot, &wr);
    }
    switch (wr.opcode) {
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
        sge.length = 8;
        wr.wr.atomic.remote_addr = PAIR_IOVA(PAIR_MR_COUNTERS) + 8 * slot;
        wr.wr.atomic.rkey = peer->mr[PAIR_MR_COUNTERS].key;
        wr.wr.atomic.compare_add = 1;
        break;
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
        sge.length = 8;
        wr.wr.atomic.remote_addr = PAIR_IOVA(PAIR_MR_ALL);
        wr.wr.atomic.rkey = peer->mr[PAIR_MR_ALL].key;
        break;
    case RDMA_WR_ATOMIC_WRITE:
        sge.length = 8;
        break;
    case RDMA_WR_FLUSH:
        wr.num_sge = 0;
        wr.wr.flush.remote_addr = PAIR_IOVA(PAIR_MR_ALL);
        wr.wr.flush.rkey = peer->mr[PAIR_MR_ALL].key;
        wr.wr.flush.length = 100;
        wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
        break;
    }
    pair_post_send(p, slot, &wr);
}

void pair_post_any(void)
{
    static const uint32_t ops[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_WRITE_WITH_IMM,
        RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_FETCH_AND_ADD,
        RDMA_WR_ATOMIC_CMP_AND_SWP, RDMA_WR_FLUSH, RDMA_WR_ATOMIC_WRITE,
        RDMA_WR_SEND,
    };
    uint8_t sel = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = fuzz_u8(&pair_in) % PAIR_QPS, i;
    RdmaSge sge[PAIR_SGE];
    RdmaSendWr wr = {
        .opcode = ops[sel & 7],
        .send_flags = sel >> 3 & 7,
        .sg_list = sge,
        .num_sge = fuzz_u8(&pair_in) % PAIR_SGE,
    };
    uint64_t addr;
    uint32_t key = remote_key(pair_peer(p, slot), &addr);

    for (i = 0; i < wr.num_sge; i++) {
        sge[i] = pick_sge(p);
    }
    if (pair_is_ud(slot)) {
        set_av(p, slot, &wr);
        if (sel & 0x40) {
            wr.wr.ud.remote_qpn = RDMA_QPN_MCAST;
            wr.wr.ud.av.sgid_index = 0;
            pair_group_gid(sel >> 5, wr.wr.ud.av.dgid);
        }
        pair_post_send(p, slot, &wr);
        return;
    }
    switch (wr.opcode) {
    case RDMA_WR_ATOMIC_FETCH_AND_ADD:
    case RDMA_WR_ATOMIC_CMP_AND_SWP:
        wr.wr.atomic.remote_addr = addr & (sel & 0x40 ? ~UINT64_C(0)
                                                      : ~UINT64_C(7));
        wr.wr.atomic.rkey = key;
        /* The counters count successes of pair_post_good() */
        if (addr >= PAIR_IOVA(PAIR_MR_COUNTERS) &&
            addr < PAIR_IOVA(PAIR_MR_COUNTERS) + 8 * PAIR_QPS) {
            wr.wr.atomic.remote_addr += 8 * PAIR_QPS;
        }
        break;
    case RDMA_WR_FLUSH:
        wr.wr.flush.remote_addr = addr;
        wr.wr.flush.rkey = key;
        wr.wr.flush.length = fuzz_u16(&pair_in);
        wr.wr.flush.type = 1 + (sel >> 6 & 1);
        wr.wr.flush.level = sel >> 5 & 1;
        break;
    default:
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = key;
        break;
    }
    pair_post_send(p, slot, &wr);
}

void pair_post_message(void)
{
    static const uint32_t ops[] = {
        RDMA_WR_SEND_WITH_IMM, RDMA_WR_RDMA_WRITE_WITH_IMM,
        RDMA_WR_SEND_WITH_IMM, RDMA_WR_SEND,
    };
    uint8_t sel = fuzz_u8(&pair_in), data[PAIR_INLINE];
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = fuzz_u8(&pair_in) % PAIR_QPS;
    PairNode *peer = pair_peer(p, slot);
    RdmaSge sge = {
        PAIR_IOVA(PAIR_MR_ALL) + 8, fuzz_u16(&pair_in) % 0x1000,
        p->mr[PAIR_MR_ALL].key
    };
    RdmaSendWr wr = {
        .opcode = ops[sel & 3],
        .send_flags = sel >> 2 & 7,
        .sg_list = &sge,
        .num_sge = 1,
    };

    if (sel & 0x20) {
        wr.send_flags |= RDMA_SEND_INLINE;
        wr.inline_data = memset(data, sel, sizeof(data));
        wr.inline_len = sge.length % (PAIR_INLINE + 1);
        wr.num_sge = 0;
    }
    if (pair_is_ud(slot)) {
        sge.length %= 1000;
        set_av(p, slot, &wr);
    } else if (wr.opcode == RDMA_WR_RDMA_WRITE_WITH_IMM) {
        wr.wr.rdma.remote_addr = PAIR_IOVA(PAIR_MR_ALL) + 128;
        wr.wr.rdma.rkey = peer->mr[PAIR_MR_ALL].key;
    }
    pair_post_send(p, slot, &wr);
}

void pair_post_receives(void)
{
    uint8_t sel = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = fuzz_u8(&pair_in) % PAIR_QPS, n = 1 + (sel & 7), i;
    RdmaSge sge[2] = {
        { PAIR_IOVA(PAIR_MR_ALL) + 0x400, 0x1000, p->mr[PAIR_MR_ALL].key },
    };
    RdmaRecvWr wr = { .sg_list = sge, .num_sge = 1 };

    if ((sel & 0x70) == 0x70) {
        sge[0] = pick_sge(p);
        sge[1] = pick_sge(p);
        wr.num_sge = 2;
    }
    for (i = 0; i < n; i++) {
        pair_post_recv(p, slot, &wr);
    }
    if (!(sel & 8)) {
        roce_kick(p->n->e, RDMA_RQ, PAIR_QPN(slot));
    }
}

static void bind_window(PairNode *p, unsigned slot, uint8_t sel)
{
    unsigned i = sel & 1;
    PairMr *mr = &p->mr[PAIR_MR_WINDOW];
    RdmaSendWr wr = { .opcode = RDMA_WR_BIND_MW };
    RoceMwImage image;
    uint64_t off = fuzz_u16(&pair_in) % 0x1000;

    if (roce_export_mw(p->n->e, PAIR_MWN(i), &image) < 0) {
        return;
    }
    wr.send_flags = sel >> 3 & 3;
    wr.wr.bind.rkey = image.attr.rkey;
    wr.wr.bind.new_rkey = image.attr.rkey ^ (sel >> 1 & 3);
    wr.wr.bind.lkey = mr->key;
    wr.wr.bind.access = fuzz_u8(&pair_in) & (RDMA_ACCESS_REMOTE |
                                             RDMA_ACCESS_ZERO_BASED);
    wr.wr.bind.addr = PAIR_IOVA(PAIR_MR_WINDOW) + off;
    wr.wr.bind.length = fuzz_u16(&pair_in) % 0x2000;
    mr->lo = MIN(mr->lo, off);
    mr->hi = MAX(mr->hi, off + wr.wr.bind.length);
    mr->access |= wr.wr.bind.access & RDMA_ACCESS_REMOTE;
    p->mw_key[i] = wr.wr.bind.new_rkey;
    pair_post_send(p, slot, &wr);
}

void pair_post_memory(void)
{
    uint8_t sel = fuzz_u8(&pair_in), what = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7];
    unsigned slot = what >> 4 & 1;
    PairNode *peer = pair_peer(p, slot);
    PairMr *fast = &p->mr[PAIR_MR_FAST];
    RdmaSendWr wr = { .send_flags = sel >> 3 & 3 };

    switch (what & 7) {
    case 0:
    case 1:
        wr.opcode = RDMA_WR_REG_MR;
        wr.wr.reg.mrn = PAIR_MR_FAST + 1;
        wr.wr.reg.key = fast->key ^ (what >> 5 & 1);
        wr.wr.reg.access = LINK_ALL_ACCESS & ~(uint32_t)(what >> 6);
        wr.wr.reg.npages = PAIR_MR_PAGES;
        wr.wr.reg.pages = pair_mr_pages(p, PAIR_MR_FAST, PAIR_MR_PAGES);
        wr.wr.reg.iova = PAIR_IOVA(PAIR_MR_FAST);
        wr.wr.reg.length = PAIR_MR_LEN;
        if (fast->key) {
            fast->key = wr.wr.reg.key;
        }
        break;
    case 2:
        wr.opcode = RDMA_WR_LOCAL_INV;
        wr.ex.invalidate_rkey = what & 8 ? p->mw_key[1] : fast->key;
        break;
    case 3:
        wr.opcode = RDMA_WR_SEND_WITH_INV;
        wr.ex.invalidate_rkey = what & 8 ? peer->mw_key[1]
                                         : peer->mr[PAIR_MR_FAST].key;
        break;
    case 4:
        p->mr[PAIR_MR_CHANGING].key ?
            pair_mr_modify(p, PAIR_MR_CHANGING, sel) :
            pair_mr_create(p, PAIR_MR_CHANGING, sel);
        return;
    default:
        bind_window(p, slot, sel);
        return;
    }
    pair_post_send(p, slot, &wr);
}

/* A frame that a third party makes up. */
void pair_forge(void)
{
    static const uint16_t sizes[] = { 0, 8, 64, 256, 1024, 4096, 255, 7 };
    static const uint8_t zeroes[ROCE_MAX_PAYLOAD];
    uint8_t sel = fuzz_u8(&pair_in), flags = fuzz_u8(&pair_in);
    int8_t delta = fuzz_u8(&pair_in);
    PairNode *p = &pair.node[sel >> 7], *from = &pair.node[!p->side];
    unsigned slot = sel % PAIR_QPS;
    RoceBth bth = {
        .opcode = fuzz_u8(&pair_in),
        .ack_req = flags & 1,
        .se = flags & 2,
        .pkey = RDMA_DEFAULT_PKEY,
        .dqpn = PAIR_QPN(slot),
    };
    const RoceOpcodeInfo *info = roce_opcode_info(bth.opcode);
    uint8_t hdr[ROCE_MAX_HDR], frame[ROCE_MAX_FRAME];
    struct iovec iov = { (void *)zeroes, 0 };
    RocePath path = { .is_ipv4 = !(slot & 1), .udp_sport = 0xc001 };
    RdmaQpAttr attr;
    uint64_t addr;
    size_t len;

    if (!info) {
        bth.opcode = bth.opcode % 32 | (pair_type(slot) == RDMA_QPT_UC ?
                                        ROCE_UC : ROCE_RC);
        info = roce_opcode_info(bth.opcode);
    }
    if (!info || roce_qp_query(p->n->e, bth.dqpn, &attr) < 0) {
        return;
    }
    pair.strict = false;
    memcpy(path.dmac, p->n->mac, RDMA_MAC_LEN);
    memcpy(path.smac, from->n->mac, RDMA_MAC_LEN);
    memcpy(path.sgid, slot & 1 ? from->n->gid6 : from->n->gid4, RDMA_GID_LEN);
    memcpy(path.dgid, slot & 1 ? p->n->gid6 : p->n->gid4, RDMA_GID_LEN);
    bth.psn = info->flags & ROCE_OP_RESPONSE ? attr.sq_psn - 1 : attr.rq_psn;
    bth.psn = (bth.psn + (flags & 4 ? delta : 0)) & RDMA_24BIT_MASK;
    bth.reth.rkey = remote_key(p, &addr);
    bth.reth.va = addr;
    if (info->flags & ROCE_OP_PAYLOAD) {
        iov.iov_len = sizes[flags >> 5];
    }
    bth.reth.len = flags & 8 ? fuzz_u16(&pair_in) : iov.iov_len;
    bth.atomiceth.va = addr & ~UINT64_C(7);
    bth.atomiceth.rkey = bth.reth.rkey;
    bth.atomiceth.swap_add = 1;
    bth.aeth.syndrome = fuzz_u8(&pair_in);
    bth.aeth.msn = flags;
    bth.deth.qkey = PAIR_QKEY;
    bth.deth.sqpn = PAIR_QPN(slot);
    bth.ieth = bth.reth.rkey;
    bth.feth = flags & 0x10 ? delta : RDMA_FLUSH_GLOBAL;

    len = roce_build(hdr, &path, &bth, iov.iov_len);
    memcpy(frame, hdr, len);
    memcpy(frame + len, zeroes, iov.iov_len);
    len += iov.iov_len + roce_icrc_trailer(hdr, len, path.is_ipv4, &iov, 1,
                                           frame + len + iov.iov_len);
    pair_receive(p->side, frame, len);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Address handles made from received datagrams */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "objects.h"

#define GRH_BYTES 40
#define LEN 500
#define TRAFFIC_CLASS 0x20
#define FLOW_LABEL 0x12345
#define HOP_LIMIT 9
#define SL 5

struct end {
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct memory in, out;
};

static struct end new_end(uint8_t seed)
{
    struct end e = {
        .cq = new_cq(4),
        .in = new_memory(GRH_BYTES + LEN, IBV_ACCESS_LOCAL_WRITE),
        .out = new_memory(LEN, 0),
    };

    e.qp = new_qp(IBV_QPT_UD, e.cq, NULL, 0);
    start_ud(e.qp);
    post_recv(e.qp, &e.in, 1);
    fill(e.out.at, LEN, seed);
    return e;
}

/* Send to a QP. Return the completion of its receive. */
static struct ibv_wc send_to(struct end *from, struct ibv_ah *ah, uint32_t qpn,
                             struct end *to, uint8_t seed)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)from->out.at, .length = LEN,
        .lkey = from->out.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = 2,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QKEY },
    };
    struct ibv_wc wc;

    if (!ah) {
        fail("no address handle: %s", strerror(errno));
    }
    post(from->qp, &wr);
    expect(from->cq, 2);
    wc = expect(to->cq, 1);
    if (wc.byte_len != GRH_BYTES + LEN || !(wc.wc_flags & IBV_WC_GRH) ||
        wc.src_qp != from->qp->qp_num ||
        !filled(to->in.at + GRH_BYTES, LEN, seed)) {
        fail("the datagram is damaged: %u bytes, flags %x, QP %u",
             wc.byte_len, wc.wc_flags, wc.src_qp);
    }
    ibv_destroy_ah(ah);
    return wc;
}

static void check(const char *what, uint32_t is, uint32_t must)
{
    if (is != must) {
        fail("the %s is %x, not %x", what, is, must);
    }
}

/*
 * Answer a datagram with an address handle from its completion and its header.
 */
void ah_from_wc(char **args)
{
    struct ibv_ah_attr attr = {
        .is_global = 1,
        .port_num = 1,
        .sl = SL,
        .grh = {
            .dgid = dev.gid,
            .sgid_index = dev.gid_index,
            .traffic_class = TRAFFIC_CLASS,
            .flow_label = FLOW_LABEL,
            .hop_limit = HOP_LIMIT,
        },
    };
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    struct ibv_ah_attr back;
    struct end a = new_end(1), b = new_end(2);
    struct ibv_grh *grh = (struct ibv_grh *)b.in.at;
    struct ibv_wc wc;

    (void)args;
    wc = send_to(&a, ibv_create_ah(dev.pd, &attr), b.qp->qp_num, &b, 1);
    memset(&back, 0, sizeof(back));
    if (ibv_init_ah_from_wc(dev.ctx, 1, &wc, grh, &back)) {
        fail("ibv_init_ah_from_wc: %s", strerror(errno));
    }
    if (memcmp(&back.grh.dgid, &dev.gid, sizeof(dev.gid))) {
        fail("that is not the sender's GID");
    }
    check("GRH", back.is_global, 1);
    check("port", back.port_num, 1);
    check("index of the GID", back.grh.sgid_index, dev.gid_index);
    check("traffic class", back.grh.traffic_class, TRAFFIC_CLASS);
    if (memcmp(&dev.gid, mapped, sizeof(mapped))) {
        check("flow label", back.grh.flow_label, FLOW_LABEL);
    }
    /* Only frames with a VLAN tag have priorities. */
    printf("SL %u\n", back.sl);
    send_to(&b, ibv_create_ah_from_wc(dev.pd, &wc, grh, 1), wc.src_qp, &a, 2);
}

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pair of QPs with a memory window.
 */
#include "roce-window.h"

uint32_t window_create(LinkNode *n, RdmaMwType type, uint32_t pdn)
{
    RdmaMwAttr attr = {
        .mwn = n->next_mrn++,
        .pdn = pdn,
        .type = type,
    };

    attr.rkey = attr.mwn << 8 | 1;
    g_assert_cmpint(roce_mw_create(n->e, &attr), ==, 0);
    return attr.rkey;
}

WindowFix window_fix_of(RdmaQpType qp_type, RdmaMwType type)
{
    LinkQpSpec spec = link_spec();
    WindowFix f;

    spec.type = qp_type;
    spec.mtu = RDMA_MTU_256;
    f.p = link_pair(&spec);
    f.mr = link_mr(f.p.b, WINDOW_REGION, WINDOW_ACCESS);
    f.rkey = window_create(f.p.b, type, LINK_PDN);
    f.mwn = f.rkey >> 8;
    link_fill(f.p.amr, 1);
    return f;
}

WindowFix window_fix(RdmaMwType type)
{
    return window_fix_of(RDMA_QPT_RC, type);
}

void window_fix_free(WindowFix *f)
{
    roce_mw_destroy(f->p.b->e, f->mwn);
    link_mr_free(f->mr);
    link_pair_free(&f->p);
}

void window_run(WindowFix *f)
{
    g_assert_true(link_run(f->p.l, LINK_FOREVER));
}

uint32_t window_next_key(const WindowFix *f)
{
    return f->mwn << 8 | ((f->rkey + 1) & 0xff);
}

RdmaSendWr window_bind_wr(WindowFix *f, uint64_t off, uint64_t len,
                          uint32_t access)
{
    RdmaSendWr wr = link_wr(RDMA_WR_BIND_MW, 70, NULL);

    wr.wr.bind.rkey = f->rkey;
    wr.wr.bind.new_rkey = window_next_key(f);
    wr.wr.bind.lkey = f->mr->attr.lkey;
    wr.wr.bind.access = access;
    wr.wr.bind.addr = f->mr->attr.iova + off;
    wr.wr.bind.length = len;
    return wr;
}

void window_bind(WindowFix *f, uint64_t off, uint64_t len, uint32_t access)
{
    RdmaSendWr wr = window_bind_wr(f, off, len, access);
    RdmaWc wc;

    link_post(f->p.b, f->p.bq, &wr);
    window_run(f);
    wc = link_expect(f->p.b, 70, RDMA_WC_SUCCESS);
    g_assert_cmpint(wc.opcode, ==, RDMA_WC_BIND_MW);
    f->rkey = window_next_key(f);
}

void window_refuse_bind(WindowFix *f, const RdmaSendWr *wr)
{
    link_post(f->p.b, f->p.bq, wr);
    window_run(f);
    link_expect(f->p.b, 70, RDMA_WC_MW_BIND_ERR);
    g_assert_cmpint(link_state(f->p.b, f->p.bq), ==, RDMA_QPS_ERR);
}

void window_post(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
                 uint32_t len)
{
    RdmaSge sge = link_sge(f->p.amr, 0, len);
    RdmaSendWr wr = link_wr(opcode, 80, &sge);

    if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
        wr.wr.atomic.compare_add = 3;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    link_post(f->p.a, f->p.aq, &wr);
}

void window_op(WindowFix *f, uint32_t opcode, uint32_t rkey, uint64_t addr,
               uint32_t len, RdmaWcStatus status)
{
    window_post(f, opcode, rkey, addr, len);
    window_run(f);
    link_expect(f->p.a, 80, status);
}

void window_reconnect(WindowFix *f)
{
    LinkQpSpec spec = link_spec();
    LinkNode *nodes[2] = { f->p.a, f->p.b };
    RdmaQpAttr attr;
    unsigned side, state;

    spec.mtu = RDMA_MTU_256;
    for (side = 0; side < 2; side++) {
        while (link_wcs(nodes[side])) {
            link_wc(nodes[side]);
        }
        link_modify(nodes[side], spec.qpn[side], RDMA_QPS_RESET);
        for (state = RDMA_QPS_INIT; state <= RDMA_QPS_RTS; state++) {
            uint32_t mask = link_attr(f->p.l, &spec, side, state, &attr);

            g_assert_cmpint(roce_qp_modify(nodes[side]->e, spec.qpn[side],
                                           mask, &attr), ==, 0);
        }
    }
}

void window_try(WindowFix *f, uint32_t rkey, uint64_t addr, bool ok)
{
    window_op(f, RDMA_WR_RDMA_WRITE, rkey, addr, 1, ok ? RDMA_WC_SUCCESS :
              RDMA_WC_REM_ACCESS_ERR);
    if (!ok) {
        window_reconnect(f);
    }
}

void window_connect_others(WindowFix *f)
{
    LinkQpSpec spec = link_spec();

    spec.qpn[0] = 4;
    spec.qpn[1] = 5;
    link_connect(f->p.l, &spec);
}

void window_inv(WindowFix *f, LinkNode *n, uint32_t qpn, uint32_t opcode,
                uint32_t key)
{
    RdmaSendWr wr = link_wr(opcode, 60, NULL);

    wr.ex.invalidate_rkey = key;
    link_post(n, qpn, &wr);
    window_run(f);
}

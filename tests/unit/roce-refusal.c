/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables of refused imports and their reasons.
 */
#include "roce-refusal.h"

static const size_t sizes[] = {
    [SEND] = sizeof(RoceSendImage),
    [SEND_SGE] = sizeof(RdmaSge),
    [RECV] = sizeof(RoceRecvWqe),
    [RES] = sizeof(RoceResource),
    [PAGES] = sizeof(uint64_t),
    [PENDING_PAGES] = sizeof(uint64_t),
};

static void apply(const Change *c, void *const parts[])
{
    for (; c->part != END; c++) {
        uint8_t *at = (uint8_t *)parts[c->part] + c->index * sizes[c->part] +
                      c->offset;

        switch (c->size) {
        case 1:
            *at = c->value;
            break;
        case 2:
            *(uint16_t *)at = c->value;
            break;
        case 4:
            *(uint32_t *)at = c->value;
            break;
        default:
            g_assert_cmpuint(c->size, ==, 8);
            *(uint64_t *)at = c->value;
            break;
        }
    }
}

void refusal_apply(const Refusal *r, void *const parts[])
{
    if (r->base) {
        apply(r->base, parts);
    }
    apply(r->changes, parts);
}

static void add_mr(RoceEngine *e, uint32_t mrn, uint32_t pdn, RdmaMrType type,
                   uint32_t access)
{
    RdmaMrAttr attr = {
        .mrn = mrn,
        .pdn = pdn,
        .type = type,
        .access = access,
        .lkey = mrn << 8,
        .iova = 0x10000,
        .length = 0x1000,
        .npages = 1,
    };

    if (type == RDMA_MR_USER) {
        attr.pages = g_new0(uint64_t, 1);
    }
    g_assert_cmpint(roce_mr_create(e, &attr), ==, 0);
}

static void add_qp(RoceEngine *e, uint32_t qpn, uint32_t pdn, RdmaQpType type)
{
    RdmaQpInitAttr init = { .qpn = qpn, .pdn = pdn, .qp_type = type };

    g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
}

RoceEngine *refusal_engine(void)
{
    static const RdmaSrqAttr srq = {
        .srqn = SRQN, .max_wr = 4, .max_sge = 2,
    };
    const uint32_t bind = RDMA_ACCESS_MW_BIND;
    static LinkNode node;
    RoceEngine *e = roce_new(&link_config, &link_ops, &node);

    roce_set_link_mtu(e, 1500);
    add_mr(e, USED_MRN, LINK_PDN, RDMA_MR_USER,
           bind | RDMA_ACCESS_LOCAL_WRITE);
    add_mr(e, DMA_MRN, LINK_PDN, RDMA_MR_DMA, bind);
    add_mr(e, READ_ONLY_MRN, LINK_PDN, RDMA_MR_USER, bind);
    add_mr(e, NO_BIND_MRN, LINK_PDN, RDMA_MR_USER, RDMA_ACCESS_LOCAL_WRITE);
    add_mr(e, INVALID_MRN, LINK_PDN, RDMA_MR_FAST_REG, bind);
    add_mr(e, OTHER_PD_MRN, OTHER_PDN, RDMA_MR_USER, bind);
    add_qp(e, PEER_QPN, LINK_PDN, RDMA_QPT_RC);
    add_qp(e, UD_QPN, LINK_PDN, RDMA_QPT_UD);
    add_qp(e, OTHER_PD_QPN, OTHER_PDN, RDMA_QPT_RC);
    g_assert_cmpint(roce_srq_create(e, &srq), ==, 0);
    return e;
}

void refusal_check(const Refusal *r, int ret, char *why)
{
    g_assert_cmpstr(why, ==, r->text);
    g_assert_cmpint(ret, ==, r->text ? -EINVAL : 0);
    g_free(why);
}

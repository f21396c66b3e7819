/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration: the tables of objects.
 *
 * An incoming migration yields while it waits for the stream. So an object
 * enters its table only when all its fields are loaded: the monitor may look at
 * it then.
 *
 * The descriptions have no versions, because the stream has none of nested
 * descriptions. Later state goes into subsections.
 */
#include "qemu/osdep.h"
#include "hw/rdma/hca-vmstate.h"
#include "migration/qemu-file-types.h"
#include "qemu/error-report.h"
#include "system/rdma-vmstate.h"
#include "int.h"

/* The most WQEs of a queue whose ring was reset */
#define MAX_STALE 32768
/* The most pages of a queue */
#define MAX_PAGES (1u << 18)

/* Checks */

bool rdma_hca_record_check(const RdmaHcaRecord *r, bool ok, const char *field,
                           uint64_t value, const char *must)
{
    if (!ok) {
        error_report("rdma: %s %u in the migration stream has %s=%" PRIu64
                     ", which must be %s", r->kind, r->id, field, value, must);
    }
    return ok;
}

bool rdma_hca_record_max(const RdmaHcaRecord *r, const char *field,
                         uint64_t value, uint64_t max)
{
    if (value > max) {
        error_report("rdma: %s %u in the migration stream has %s=%" PRIu64
                     ", but at most %" PRIu64 " is possible", r->kind, r->id,
                     field, value, max);
    }
    return value <= max;
}

/* Of the record @r: must @ok hold for the field, and is it at most @max? */
#define CHECK(obj, field, ok, must) \
    rdma_hca_record_check(r, ok, #field, (obj)->field, must)
#define AT_MOST(obj, field, max) \
    rdma_hca_record_max(r, #field, (obj)->field, max)

static bool check_pages(RdmaHca *hca, const RdmaHcaRecord *r, uint64_t npages)
{
    return rdma_hca_record_max(r, "pages", npages,
                               hca->max_mr_pages - hca->charged_pages);
}

bool rdma_hca_record_charge(RdmaHca *hca, const RdmaHcaRecord *r,
                            const RdmaHcaExtents *x)
{
    g_autofree uint64_t *pages = rdma_hca_extents_list(x);

    if (!check_pages(hca, r, x->npages)) {
        return false;
    }
    for (uint32_t i = 0; i < x->npages; i++) {
        if (!rdma_hca_record_check(r, pages[i] % RDMA_PAGE_SIZE == 0,
                                   "address of a page", pages[i], "aligned")) {
            return false;
        }
    }
    hca->charged_pages += x->npages;
    return true;
}

#define CHECK_PD(obj, field) \
    CHECK(obj, field, rdma_hca_table_get(&hca->pds, (obj)->field), "a PD")

/* Protection domains */

static const VMStateDescription vmstate_pd = {
    .name = "rdma-hca/pd",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(context, RdmaHcaPd),
        VMSTATE_END_OF_LIST()
    },
};

/* Completion queues, and event queues */

static const VMStateDescription vmstate_cq = {
    .name = "rdma-hca/cq",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(cqe, RdmaHcaCq),
        VMSTATE_BOOL(is_eq, RdmaHcaCq),
        VMSTATE_BOOL(error, RdmaHcaCq),
        VMSTATE_END_OF_LIST()
    },
};

static bool check_cq(RdmaHca *hca, const RdmaHcaRecord *r, const RdmaHcaCq *cq)
{
    return CHECK(cq, cqe, cq->cqe, "more") &&
           (cq->is_eq || AT_MOST(cq, cqe, hca->limits.max_cqe));
}

/* Memory regions, and windows */

static const VMStateDescription vmstate_mr = {
    .name = "rdma-hca/mr",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(pdn, RdmaHcaMr),
        VMSTATE_UINT32(mw_type, RdmaHcaMr),
        VMSTATE_UINT32(rkey, RdmaHcaMr),
        VMSTATE_UINT32(key, RdmaHcaMr),
        VMSTATE_UINT32(type, RdmaHcaMr),
        VMSTATE_UINT32(npages, RdmaHcaMr),
        VMSTATE_UINT32(pending, RdmaHcaMr),
        VMSTATE_UINT32(max_pages, RdmaHcaMr),
        VMSTATE_END_OF_LIST()
    },
};

static bool check_mw(RdmaHca *hca, const RdmaHcaMr *mw)
{
    const RdmaHcaRecord window = { "window", mw->mrn }, *r = &window;

    return CHECK_PD(mw, pdn) &&
           AT_MOST(mw, mw_type, RDMA_MW_TYPE_2) &&
           CHECK(mw, rkey, mw->rkey >> 8 == mw->mrn,
                 "its number << 8, plus 0 to 255") &&
           AT_MOST(mw, npages, 0) &&
           AT_MOST(mw, pending, 0) &&
           rdma_hca_record_max(r, "windows up to it", hca->n_mws + 1,
                               hca->limits.max_mw);
}

static bool check_mr(RdmaHca *hca, const RdmaHcaRecord *r, const RdmaHcaMr *mr)
{
    bool fast_reg = mr->type == RDMA_MR_FAST_REG;

    if (mr->mw_type) {
        return check_mw(hca, mr);
    }
    return CHECK_PD(mr, pdn) &&
           AT_MOST(mr, type, RDMA_MR_FAST_REG) &&
           CHECK(mr, key, mr->key >> 8 == r->id,
                 "its number << 8, plus 0 to 255") &&
           CHECK(mr, rkey, !mr->rkey || mr->rkey == mr->key, "0 or the key") &&
           AT_MOST(mr, max_pages, fast_reg ? RDMA_HCA_MAX_PAGE_LIST : 0) &&
           AT_MOST(mr, pending, mr->max_pages) &&
           (!fast_reg || AT_MOST(mr, npages, mr->max_pages)) &&
           check_pages(hca, r, (uint64_t)mr->npages + mr->pending) &&
           rdma_hca_record_max(r, "MRs up to it",
                               hca->mrs.count - hca->n_mws + 1,
                               hca->limits.max_mr);
}

/* Shared receive queues */

static const VMStateDescription vmstate_srq = {
    .name = "rdma-hca/srq",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(attr.pdn, RdmaHcaSrq),
        VMSTATE_UINT32(attr.max_wr, RdmaHcaSrq),
        VMSTATE_UINT32(attr.max_sge, RdmaHcaSrq),
        VMSTATE_BOOL(error, RdmaHcaSrq),
        VMSTATE_BOOL(wq.broken, RdmaHcaSrq),
        VMSTATE_END_OF_LIST()
    },
};

static bool check_srq(RdmaHca *hca, const RdmaHcaRecord *r,
                      const RdmaSrqAttr *attr)
{
    return CHECK_PD(attr, pdn) &&
           CHECK(attr, max_wr, attr->max_wr, "more") &&
           AT_MOST(attr, max_wr, hca->limits.max_srq_wr) &&
           AT_MOST(attr, max_sge, hca->limits.max_srq_sge);
}

/* Queue pairs */

QEMU_BUILD_BUG_ON(sizeof(RdmaQpType) != sizeof(uint32_t));

static const VMStateDescription vmstate_qp = {
    .name = "rdma-hca/qp",
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(init.pdn, RdmaHcaQp),
        VMSTATE_RDMA_ENUM(init.qp_type, RdmaHcaQp),
        VMSTATE_UINT32(init.send_cqn, RdmaHcaQp),
        VMSTATE_UINT32(init.recv_cqn, RdmaHcaQp),
        VMSTATE_UINT32(init.srqn, RdmaHcaQp),
        VMSTATE_BOOL(init.has_srq, RdmaHcaQp),
        VMSTATE_BOOL(init.block_mcast_loopback, RdmaHcaQp),
        VMSTATE_BOOL(init.sq_sig_all, RdmaHcaQp),
        VMSTATE_UINT32(init.cap.max_send_wr, RdmaHcaQp),
        VMSTATE_UINT32(init.cap.max_recv_wr, RdmaHcaQp),
        VMSTATE_UINT32(init.cap.max_send_sge, RdmaHcaQp),
        VMSTATE_UINT32(init.cap.max_recv_sge, RdmaHcaQp),
        VMSTATE_UINT32(init.cap.max_inline_data, RdmaHcaQp),
        VMSTATE_BOOL(sq.broken, RdmaHcaQp),
        VMSTATE_BOOL(rq.broken, RdmaHcaQp),
        VMSTATE_END_OF_LIST()
    },
};

static bool check_cap(const RdmaHca *hca, const RdmaHcaRecord *r,
                      const RdmaQpCap *cap)
{
    const RdmaBackendLimits *l = &hca->limits;

    return AT_MOST(cap, max_send_wr, l->max_qp_wr) &&
           AT_MOST(cap, max_recv_wr, l->max_qp_wr) &&
           AT_MOST(cap, max_send_sge, l->max_send_sge) &&
           AT_MOST(cap, max_recv_sge, l->max_recv_sge) &&
           AT_MOST(cap, max_inline_data, l->max_inline_data);
}

/* With an SRQ a QP has no receive queue. */
static bool check_srq_of(RdmaHca *hca, const RdmaHcaRecord *r,
                         const RdmaQpInitAttr *init)
{
    if (!init->has_srq) {
        return AT_MOST(init, srqn, 0);
    }
    return CHECK(init, srqn, rdma_hca_table_get(&hca->srqs, init->srqn),
                 "an SRQ") &&
           CHECK(init, has_srq, init->qp_type != RDMA_QPT_GSI,
                 "0 of the GSI") &&
           AT_MOST(init, cap.max_recv_wr, 0) &&
           AT_MOST(init, cap.max_recv_sge, 0);
}

static bool check_qp(RdmaHca *hca, const RdmaHcaRecord *r,
                     const RdmaQpInitAttr *init)
{
    RdmaQpType type = init->qp_type;

    return CHECK_PD(init, pdn) &&
           CHECK(init, send_cqn, rdma_hca_cq_get(hca, init->send_cqn),
                 "a CQ") &&
           CHECK(init, recv_cqn, rdma_hca_cq_get(hca, init->recv_cqn),
                 "a CQ") &&
           CHECK(init, qp_type, type >= RDMA_QPT_GSI && type <= RDMA_QPT_UD &&
                 (type == RDMA_QPT_GSI) == (r->id == RDMA_QPN_GSI),
                 "one of its number") &&
           check_cap(hca, r, &init->cap) &&
           check_srq_of(hca, r, init) &&
           CHECK(init, block_mcast_loopback, !init->block_mcast_loopback ||
                 type == RDMA_QPT_UD, "0 except for UD");
}

/* WQEs in flight */

static void put_wq(QEMUFile *f, const RdmaHcaWq *wq)
{
    qemu_put_be32(f, wq->stale);
    qemu_put_be32(f, wq->count);
    for (uint32_t i = 0; i < wq->count; i++) {
        const RdmaHcaInflight *inflight = rdma_hca_wq_inflight(wq, i);

        qemu_put_be32(f, inflight->place);
        qemu_put_be16(f, inflight->npages);
        qemu_put_be32(f, inflight->mrn);
    }
}

static bool check_inflight(RdmaHca *hca, const RdmaHcaRecord *r, RdmaHcaWq *wq,
                           const RdmaHcaInflight *inflight)
{
    return (wq->ops->load ? wq->ops->load(hca, wq, inflight->place, r)
                          : AT_MOST(inflight, place, 0)) &&
           (wq->kind == RDMA_SQ || AT_MOST(inflight, npages, 0)) &&
           check_pages(hca, r, inflight->npages);
}

static bool get_wq(QEMUFile *f, RdmaHca *hca, const RdmaHcaRecord *r,
                   RdmaHcaWq *wq)
{
    uint32_t stale = qemu_get_be32(f);
    uint32_t count = qemu_get_be32(f);

    if (!rdma_hca_record_max(r, "stale WQEs", stale, MAX_STALE) ||
        !rdma_hca_record_max(r, "WQEs in flight", count,
                             wq->ops->depth(wq))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        RdmaHcaInflight inflight;

        inflight.place = qemu_get_be32(f);
        inflight.npages = qemu_get_be16(f);
        inflight.mrn = qemu_get_be32(f);
        if (!check_inflight(hca, r, wq, &inflight)) {
            return false;
        }
        hca->charged_pages += inflight.npages;
        rdma_hca_wq_push(wq, &inflight);
    }
    wq->stale = stale;
    return true;
}

static void put_wqs(QEMUFile *f, const RdmaHcaQp *qp)
{
    put_wq(f, &qp->sq);
    if (!qp->srq) {
        put_wq(f, &qp->rq);
    }
}

static bool get_wqs(QEMUFile *f, RdmaHca *hca, const RdmaHcaRecord *r,
                    RdmaHcaQp *qp)
{
    return get_wq(f, hca, r, &qp->sq) &&
           (qp->srq || get_wq(f, hca, r, &qp->rq));
}

/* Kinds of objects */

enum { PD, CQ, MR, SRQ, QP };

static const struct {
    const char *name;
    size_t size;
    size_t number;                  /* offset of its number */
    const VMStateDescription *vmsd; /* of the core's fields */
} kinds[] = {
    [PD] = { "PD", sizeof(RdmaHcaPd), offsetof(RdmaHcaPd, pdn), &vmstate_pd },
    [CQ] = { "CQ", 0, offsetof(RdmaHcaCq, cqn), &vmstate_cq },
    [MR] = { "MR", sizeof(RdmaHcaMr), offsetof(RdmaHcaMr, mrn), &vmstate_mr },
    [SRQ] = { "SRQ", 0, offsetof(RdmaHcaSrq, attr.srqn), &vmstate_srq },
    [QP] = { "QP", 0, offsetof(RdmaHcaQp, init.qpn), &vmstate_qp },
};

/* NULL: the guest interface has no such objects of its own. */
static const RdmaHcaObjectOps *ops_of(const RdmaHca *hca, int kind)
{
    return kind == CQ ? hca->ops->cq : kind == SRQ ? hca->ops->srq :
           kind == QP ? hca->ops->qp : NULL;
}

/* Check the core's fields. */
static bool check(RdmaHca *hca, int kind, const RdmaHcaRecord *r, void *obj)
{
    switch (kind) {
    case CQ:
        return check_cq(hca, r, obj);
    case MR:
        return check_mr(hca, r, obj);
    case SRQ:
        return check_srq(hca, r, &((RdmaHcaSrq *)obj)->attr);
    case QP:
        return check_qp(hca, r, &((RdmaHcaQp *)obj)->init);
    default:
        return true;
    }
}

/* Enter the object into its table. */
static void add(RdmaHca *hca, int kind, void *obj)
{
    RdmaHcaPd *pd = obj;
    RdmaHcaCq *cq = obj;
    RdmaHcaMr *mr = obj;
    RdmaHcaQp *qp = obj;

    switch (kind) {
    case PD:
        rdma_hca_table_set(&hca->pds, pd->pdn, pd);
        break;
    case CQ:
        rdma_hca_table_set(&hca->cqs, cq->cqn, cq);
        break;
    case MR:
        hca->charged_pages += mr->npages + mr->pending;
        rdma_hca_mr_add(hca, mr);
        break;
    case SRQ:
        rdma_hca_srq_add(hca, obj);
        break;
    case QP:
        /* Backends whose QPNs on the wire differ do not migrate. */
        qp->init.wire_qpn = qp->init.qpn;
        rdma_hca_qp_add(hca, qp);
        break;
    }
}

/* Tables. VMStateField.num is the kind. */

static int put_table(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field, JSONWriter *vmdesc)
{
    RdmaHca *hca = pv - field->offset;
    const RdmaHcaObjectOps *ops = ops_of(hca, field->num);
    const RdmaHcaTable *t = pv;
    int ret = 0;
    void *obj;

    qemu_put_be32(f, t->count);
    RDMA_HCA_FOREACH(t, n, obj) {
        qemu_put_be32(f, n);
        ret = ret ?: rdma_vmstate_save(f, kinds[field->num].vmsd, obj, NULL);
        if (ops) {
            ret = ret ?: rdma_vmstate_save(f, ops->vmsd, obj, NULL);
        }
        if (field->num == QP) {
            put_wqs(f, obj);
        }
    }
    qemu_put_be32(f, t->next);
    return ret;
}

static int get_object(QEMUFile *f, RdmaHca *hca, int kind,
                      const RdmaHcaRecord *r)
{
    const RdmaHcaObjectOps *ops = ops_of(hca, kind);
    void *obj = g_malloc0(ops ? ops->size : kinds[kind].size);
    int ret;

    *(uint32_t *)(obj + kinds[kind].number) = r->id;
    ret = rdma_vmstate_load(f, kinds[kind].vmsd, obj);
    if (!ret && !check(hca, kind, r, obj)) {
        ret = -EINVAL;
    }
    if (!ret && ops) {
        ret = rdma_vmstate_load(f, ops->vmsd, obj);
    }
    if (!ret) {
        add(hca, kind, obj);
        return (!ops || ops->load(hca, obj, r)) &&
               (kind != QP || get_wqs(f, hca, r, obj)) ? 0 : -EINVAL;
    }
    if (ops) {
        ops->free(hca, obj);
    } else {
        g_free(obj);
    }
    return ret;
}

static int get_table(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    RdmaHca *hca = pv - field->offset;
    uint32_t count = qemu_get_be32(f);
    RdmaHcaTable *t = pv;
    RdmaHcaRecord r = { kinds[field->num].name };

    if (count > t->end - t->first) {
        error_report("rdma: %u objects of kind %s in the migration stream, "
                     "but the device has at most %u", count, r.kind,
                     t->end - t->first);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        int ret;

        r.id = qemu_get_be32(f);
        if (!rdma_hca_record_check(&r, r.id >= t->first && r.id < t->end &&
                                   !t->slot[r.id], "number", r.id,
                                   "free and one that the device has")) {
            return -EINVAL;
        }
        ret = get_object(f, hca, field->num, &r);
        if (ret) {
            return ret;
        }
    }
    r.id = qemu_get_be32(f);
    if (!rdma_hca_record_check(&r, r.id == t->first ||
                               (r.id >= t->first && r.id < t->end),
                               "number", r.id, "one that the device has")) {
        return -EINVAL;
    }
    t->next = r.id;
    return 0;
}

static const VMStateInfo vmstate_info_table = {
    .name = "rdma hca table",
    .get = get_table,
    .put = put_table,
};

#define TABLE(field_, kind) {                                           \
    .name = #field_,                                                    \
    .info = &vmstate_info_table,                                        \
    .num = kind,                                                        \
    .flags = VMS_SINGLE,                                                \
    .offset = offsetof(RdmaHca, field_),                                \
}

/* An object comes after those that it names. */
const VMStateDescription vmstate_rdma_hca_objects = {
    .name = "rdma-hca-objects",
    .fields = (const VMStateField[]) {
        TABLE(pds, PD),
        TABLE(cqs, CQ),
        TABLE(mrs, MR),
        TABLE(srqs, SRQ),
        TABLE(qps, QP),
        VMSTATE_END_OF_LIST()
    },
};

/* Pages */

static int put_pages(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field, JSONWriter *vmdesc)
{
    const RdmaHcaExtents *x = pv;
    g_autofree uint64_t *pages = rdma_hca_extents_list(x);

    qemu_put_be32(f, x->npages);
    for (uint32_t i = 0; i < x->npages; i++) {
        qemu_put_be64(f, pages[i]);
    }
    return 0;
}

static int get_pages(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    uint32_t npages = qemu_get_be32(f);
    uint64_t *pages;

    if (npages > MAX_PAGES) {
        error_report("rdma: a queue in the migration stream has %u pages, but "
                     "at most %u are possible", npages, MAX_PAGES);
        return -EINVAL;
    }
    if (npages) {
        pages = g_new(uint64_t, npages);
        for (uint32_t i = 0; i < npages; i++) {
            pages[i] = qemu_get_be64(f);
        }
        rdma_hca_extents_init(pv, pages, npages);
    }
    return 0;
}

const VMStateInfo vmstate_info_rdma_hca_pages = {
    .name = "rdma hca pages",
    .get = get_pages,
    .put = put_pages,
};

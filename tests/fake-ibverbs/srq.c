/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: shared receive queues, address handles and
 * multicast groups.
 */
#include "qemu/osdep.h"
#include "internal.h"

FakeRecv *fake_recv_new(const struct ibv_recv_wr *wr, uint32_t max_sge)
{
    FakeRecv *recv;

    if (wr->num_sge < 0 || wr->num_sge > max_sge) {
        return NULL;
    }
    recv = g_malloc(sizeof(*recv) + wr->num_sge * sizeof(recv->sge[0]));
    recv->wr_id = wr->wr_id;
    recv->num_sge = wr->num_sge;
    if (wr->num_sge) {
        memcpy(recv->sge, wr->sg_list, wr->num_sge * sizeof(recv->sge[0]));
    }
    return recv;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *ibv_pd,
                               struct ibv_srq_init_attr *init)
{
    FakePd *pd = FAKE(FakePd, ibv_pd);
    int err = fake_begin_on("create_srq", pd, FAKE_PD, &ibv_pd->context);
    FakeSrq *srq = NULL;

    if (!err && (!init->attr.max_wr ||
                 init->attr.max_wr > fake.attr.max_srq_wr ||
                 init->attr.max_sge > fake.attr.max_srq_sge)) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_SRQ, fake.attr.max_srq)) {
        err = ENOMEM;
    }
    if (!err) {
        srq = fake_new(FAKE_SRQ, sizeof(*srq));
        pd->obj.users++;
        g_queue_init(&srq->wrs);
        srq->attr = init->attr;
        srq->attr.srq_limit = 0;
        srq->ibv.context = ibv_pd->context;
        srq->ibv.srq_context = init->srq_context;
        srq->ibv.pd = ibv_pd;
        srq->ibv.handle = srq->obj.number;
    }
    return fake_end_ptr("create_srq", err, err ? NULL : &srq->ibv,
                        "srq=0x%x max_wr=%u", srq ? srq->obj.number : 0,
                        init->attr.max_wr);
}

/*
 * The event comes once. It comes at once if there are too few receives when the
 * limit is armed.
 */
static void check_limit(FakeSrq *srq)
{
    if (srq->wrs.length < srq->attr.srq_limit) {
        srq->attr.srq_limit = 0;
        fake_event(IBV_EVENT_SRQ_LIMIT_REACHED, srq->ibv.context, &srq->obj);
    }
}

FakeRecv *fake_srq_take(FakeSrq *srq)
{
    FakeRecv *recv = g_queue_pop_head(&srq->wrs);

    if (recv) {
        check_limit(srq);
    }
    return recv;
}

int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
    int err = fake_begin("modify_srq");
    FakeSrq *srq = FAKE(FakeSrq, ibv);
    uint32_t max_wr;

    fake_check(srq, FAKE_SRQ);
    max_wr = srq->attr.max_wr;
    err = fake_alive(ibv->context, err);
    if (!err && (mask & IBV_SRQ_MAX_WR)) {
        max_wr = attr->max_wr;
        if (!max_wr || max_wr > fake.attr.max_srq_wr ||
            max_wr < srq->wrs.length) {
            err = EINVAL;
        }
    }
    if (!err && (mask & IBV_SRQ_LIMIT) && attr->srq_limit > max_wr) {
        err = EINVAL;
    }
    if (!err) {
        srq->attr.max_wr = max_wr;
        if (mask & IBV_SRQ_LIMIT) {
            srq->attr.srq_limit = attr->srq_limit;
            check_limit(srq);
        }
    }
    return fake_end("modify_srq", err, "srq=0x%x mask=%d max_wr=%u limit=%u",
                    srq->obj.number, mask, attr->max_wr, attr->srq_limit);
}

int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    FakeSrq *srq = FAKE(FakeSrq, ibv);
    int err = fake_begin_on("query_srq", srq, FAKE_SRQ, &ibv->context);

    if (!err) {
        *attr = srq->attr;
    }
    return fake_end("query_srq", err, "srq=0x%x", srq->obj.number);
}

int fake_get_srq_num(struct ibv_srq *ibv, uint32_t *srq_num)
{
    *srq_num = FAKE(FakeSrq, ibv)->obj.number;
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    FakeSrq *srq = FAKE(FakeSrq, ibv);
    int err = fake_begin_destroy("destroy_srq", srq, FAKE_SRQ, &ibv->context);
    uint32_t number;

    number = srq->obj.number;
    if (!err) {
        fake_event_flush(ibv->context, &srq->obj);
        FAKE(FakePd, ibv->pd)->obj.users--;
        g_queue_clear_full(&srq->wrs, g_free);
        fake_free(srq);
    }
    return fake_end("destroy_srq", err, "srq=0x%x", number);
}

int fake_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad_wr)
{
    FakeSrq *srq = FAKE(FakeSrq, ibv);
    int err = 0, n = 0;

    for (; wr && !err; wr = err ? wr : wr->next, n++) {
        FakeRecv *recv = NULL;

        err = fake_begin("post_srq_recv");
        fake_check(srq, FAKE_SRQ);
        err = fake_alive(ibv->context, err);
        if (!err && srq->wrs.length >= srq->attr.max_wr) {
            err = ENOMEM;
        }
        if (!err) {
            recv = fake_recv_new(wr, srq->attr.max_sge);
            err = recv ? 0 : EINVAL;
        }
        if (!err) {
            g_queue_push_tail(&srq->wrs, recv);
            fake_run();
        }
        fake_end("post_srq_recv", err, "srq=0x%x wr_id=0x%" PRIx64,
                 srq->obj.number, wr->wr_id);
    }
    if (err) {
        *bad_wr = wr;
    }
    return err;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *ibv_pd, struct ibv_ah_attr *attr)
{
    FakePd *pd = FAKE(FakePd, ibv_pd);
    int err = fake_begin_on("create_ah", pd, FAKE_PD, &ibv_pd->context);
    FakeAh *ah = NULL;

    if (!err && (!attr->is_global || attr->port_num != 1 ||
                 !fake_gid_set(attr->grh.sgid_index))) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_AH, fake.attr.max_ah)) {
        err = ENOMEM;
    }
    if (!err) {
        ah = fake_new(FAKE_AH, sizeof(*ah));
        pd->obj.users++;
        ah->attr = *attr;
        ah->ibv.context = ibv_pd->context;
        ah->ibv.pd = ibv_pd;
        ah->ibv.handle = ah->obj.number;
    }
    return fake_end_ptr("create_ah", err, err ? NULL : &ah->ibv,
                        "ah=0x%x sgid_index=%d", ah ? ah->obj.number : 0,
                        attr->grh.sgid_index);
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    FakeAh *ah = FAKE(FakeAh, ibv);
    int err = fake_begin_on("destroy_ah", ah, FAKE_AH, &ibv->context);
    uint32_t number;

    number = ah->obj.number;
    if (!err) {
        FAKE(FakePd, ibv->pd)->obj.users--;
        fake_free(ah);
    }
    return fake_end("destroy_ah", err, "ah=0x%x", number);
}

static int find_group(FakeQp *qp, const union ibv_gid *gid)
{
    for (guint i = 0; i < qp->groups->len; i++) {
        if (!memcmp(&g_array_index(qp->groups, union ibv_gid, i), gid,
                    sizeof(*gid))) {
            return i;
        }
    }
    return -1;
}

/* A multicast address of IPv6, or of IPv4 mapped to a GID */
bool fake_is_multicast(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

    return gid->raw[0] == 0xff ||
           (!memcmp(gid->raw, mapped, sizeof(mapped)) &&
            gid->raw[12] >> 4 == 0xe);
}

bool fake_in_group(FakeQp *qp, const union ibv_gid *gid)
{
    return find_group(qp, gid) >= 0;
}

int ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid,
                     uint16_t lid)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = fake_begin_on("attach_mcast", qp, FAKE_QP, &ibv->context);

    if (!err && (ibv->qp_type != IBV_QPT_UD || !fake_is_multicast(gid))) {
        err = EINVAL;
    }
    if (!err && fake_full(FAKE_MCAST, fake.attr.max_total_mcast_qp_attach)) {
        err = ENOMEM;
    }
    if (!err && !fake_in_group(qp, gid)) {
        g_array_append_vals(qp->groups, gid, 1);
        fake.count[FAKE_MCAST]++;
        qp->obj.users++;
    }
    return fake_end("attach_mcast", err, "qp=0x%x", qp->obj.number);
}

int ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid,
                     uint16_t lid)
{
    FakeQp *qp = FAKE(FakeQp, ibv);
    int err = fake_begin_on("detach_mcast", qp, FAKE_QP, &ibv->context);
    int i;

    i = find_group(qp, gid);
    if (!err && i < 0) {
        err = EINVAL;
    }
    if (!err) {
        g_array_remove_index(qp->groups, i);
        fake.count[FAKE_MCAST]--;
        qp->obj.users--;
    }
    return fake_end("detach_mcast", err, "qp=0x%x", qp->obj.number);
}

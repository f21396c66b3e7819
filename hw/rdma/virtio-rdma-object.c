/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Objects of a virtio-rdma device: the tables that hold them, the virtqueues
 * they get, and protection domains.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/log.h"
#include "virtio-rdma-internal.h"

/* The backend's method, or success if it has no use for it. */
#define BACKEND_OPT(s, method, ...) \
    ((s)->bc->method ? (s)->bc->method((s)->backend, __VA_ARGS__) : 0)

void virtio_rdma_table_init(VirtIORdmaTable *t, uint32_t first, uint32_t end)
{
    t->first = first;
    t->end = MAX(first, end);
    t->next = first;
    t->count = 0;
    t->slot = g_new0(void *, t->end);
    t->used = bitmap_new(t->end);
}

void virtio_rdma_table_free(VirtIORdmaTable *t)
{
    g_free(t->slot);
    g_free(t->used);
    memset(t, 0, sizeof(*t));
}

/*
 * Numbers go round, so that one which was freed does not come back at once:
 * what still names the old object fails instead of hitting the new one.
 */
bool virtio_rdma_table_find(VirtIORdmaTable *t, uint32_t *id)
{
    unsigned long n = find_next_zero_bit(t->used, t->end, t->next);

    if (n >= t->end) {
        n = find_next_zero_bit(t->used, t->end, t->first);
    }
    if (n >= t->end) {
        return false;
    }
    *id = n;
    return true;
}

void virtio_rdma_table_set(VirtIORdmaTable *t, uint32_t id, void *obj)
{
    t->slot[id] = obj;
    set_bit(id, t->used);
    t->count++;
    t->next = id + 1 < t->end ? id + 1 : t->first;
}

void virtio_rdma_table_clear(VirtIORdmaTable *t, uint32_t id)
{
    t->slot[id] = NULL;
    clear_bit(id, t->used);
    t->count--;
}

int virtio_rdma_check_vq(VirtIORdma *s, uint32_t n, uint32_t size)
{
    VirtIODevice *vdev = VIRTIO_DEVICE(s);

    if (!virtio_queue_ready(virtio_get_queue(vdev, n)) ||
        (test_bit(n, s->stale_vqs) &&
         virtio_vdev_has_feature(vdev, VIRTIO_F_RING_RESET))) {
        return -ENOMEM;
    }
    return virtio_queue_get_num(vdev, n) < size ? -EINVAL : 0;
}

int virtio_rdma_find_with_vqs(VirtIORdma *s, VirtIORdmaTable *t,
                              uint32_t first, uint32_t end,
                              VirtIORdmaCheckId *check,
                              const VirtIORdmaReq *req, uint32_t *id)
{
    uint32_t next = t->next >= first && t->next < end ? t->next : first;
    bool full = true;
    int ret = -ENOMEM;

    for (uint32_t i = first; i < end; i++) {
        uint32_t n = next++;

        if (next == end) {
            next = first;
        }
        if (!virtio_rdma_table_get(t, n)) {
            int r = check(s, n, req);

            if (r == 0) {
                *id = n;
                return 0;
            }
            if (r == -EINVAL) {
                ret = r;
            }
            full = false;
        }
    }
    if (ret == -EINVAL) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: the rings of all free "
                      "virtqueues are too small for the object\n");
    } else if (!full) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: no free virtqueue is set "
                      "up, and was reset after its last use\n");
    }
    return ret;
}

void virtio_rdma_abandon_vq(VirtIORdma *s, uint32_t n)
{
    if (virtio_queue_ready(virtio_get_queue(VIRTIO_DEVICE(s), n))) {
        set_bit(n, s->stale_vqs);
    }
}

/* Protection domains */

VirtIORdmaPd *virtio_rdma_add_pd(VirtIORdma *s, uint32_t pdn)
{
    VirtIORdmaPd *pd = g_new0(VirtIORdmaPd, 1);

    pd->pdn = pdn;
    virtio_rdma_table_set(&s->pds, pdn, pd);
    return pd;
}

static void remove_pd(VirtIORdma *s, VirtIORdmaPd *pd)
{
    virtio_rdma_table_clear(&s->pds, pd->pdn);
    g_free(pd);
}

int virtio_rdma_create_pd(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    uint32_t pdn;

    if (!virtio_rdma_table_find(&s->pds, &pdn)) {
        return -ENOMEM;
    }
    c->obj = virtio_rdma_add_pd(s, pdn);
    return BACKEND_OPT(s, create_pd, pdn);
}

void virtio_rdma_create_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    VirtIORdmaPd *pd = c->obj;

    if (!ret) {
        c->rsp.create.id = pd->pdn;
    } else if (pd) {
        remove_pd(s, pd);
    }
}

int virtio_rdma_destroy_pd(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, c->req.destroy.id);

    if (!pd) {
        return -ENOENT;
    }
    if (pd->users) {
        return -EBUSY;
    }
    c->obj = pd;
    return BACKEND_OPT(s, destroy_pd, pd->pdn);
}

void virtio_rdma_destroy_pd_done(VirtIORdma *s, VirtIORdmaCtrl *c, int ret)
{
    if (!ret) {
        remove_pd(s, c->obj);
    }
}

void virtio_rdma_objects_init(VirtIORdma *s)
{
    QTAILQ_INIT(&s->rerun);
    virtio_rdma_table_init(&s->pds, 1, s->limits.max_pd + 1);
    virtio_rdma_table_init(&s->cqs, 0, s->limits.max_cq);
    QTAILQ_INIT(&s->rerun_srqs);
    virtio_rdma_table_init(&s->mrs, 1,
                           s->limits.max_mr + s->limits.max_mw + 1);
    virtio_rdma_table_init(&s->srqs, 0, s->limits.max_srq);
    virtio_rdma_table_init(&s->qps, RDMA_QPN_GSI, s->limits.max_qp);
}

void virtio_rdma_objects_reset(VirtIORdma *s)
{
    for (uint32_t n = s->qps.first; n < s->qps.end && s->qps.count; n++) {
        VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, n);

        if (qp) {
            virtio_rdma_remove_qp(s, qp);
            virtio_rdma_notify_qp(s, n, false);
        }
    }
    for (uint32_t n = s->mrs.first; n < s->mrs.end && s->mrs.count; n++) {
        VirtIORdmaMr *mr = virtio_rdma_table_get(&s->mrs, n);

        if (mr) {
            virtio_rdma_remove_mr(s, mr);
        }
    }
    for (uint32_t n = s->srqs.first; n < s->srqs.end && s->srqs.count; n++) {
        VirtIORdmaSrq *srq = virtio_rdma_table_get(&s->srqs, n);

        if (srq) {
            virtio_rdma_remove_srq(s, srq);
            virtio_rdma_notify_srq(s, n, false);
        }
    }
    for (uint32_t n = s->cqs.first; n < s->cqs.end && s->cqs.count; n++) {
        VirtIORdmaCq *cq = virtio_rdma_table_get(&s->cqs, n);

        if (cq) {
            virtio_rdma_remove_cq(s, cq);
        }
    }
    for (uint32_t n = s->pds.first; n < s->pds.end && s->pds.count; n++) {
        VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, n);

        if (pd) {
            remove_pd(s, pd);
        }
    }
    /* What a command in progress had charged is freed with it. */
    s->mr_pages = 0;
    s->pds.next = s->pds.first;
    s->cqs.next = s->cqs.first;
    s->mrs.next = s->mrs.first;
    s->srqs.next = s->srqs.first;
    s->qps.next = s->qps.first;
    bitmap_zero(s->stale_vqs, VIRTIO_QUEUE_MAX);
}

void virtio_rdma_objects_free(VirtIORdma *s)
{
    virtio_rdma_objects_reset(s);
    virtio_rdma_table_free(&s->qps);
    virtio_rdma_table_free(&s->srqs);
    virtio_rdma_table_free(&s->mrs);
    virtio_rdma_table_free(&s->cqs);
    virtio_rdma_table_free(&s->pds);
}

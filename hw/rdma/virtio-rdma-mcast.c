/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups. The backend keeps them; a QP that is destroyed leaves
 * its own.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

static int check(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.mcast.qpn);

    if (!qp) {
        return -ENOENT;
    }
    if (qp->init.qp_type != RDMA_QPT_UD ||
        !rdma_gid_is_multicast(c->req.mcast.gid)) {
        qemu_log_mask(LOG_GUEST_ERROR, "virtio-rdma: QP %u is not for "
                      "datagrams, or its group is no multicast address\n",
                      qp->init.qpn);
        return -EINVAL;
    }
    return 0;
}

int virtio_rdma_attach_mcast(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    int ret = check(s, c);

    if (!ret) {
        ret = s->bc->attach_mcast(s->backend, c->req.mcast.qpn,
                                  c->req.mcast.gid);
        trace_virtio_rdma_attach_mcast(s, c->req.mcast.qpn, ret);
    }
    return ret;
}

int virtio_rdma_detach_mcast(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    int ret = check(s, c);

    if (!ret) {
        ret = s->bc->detach_mcast(s->backend, c->req.mcast.qpn,
                                  c->req.mcast.gid);
        trace_virtio_rdma_detach_mcast(s, c->req.mcast.qpn, ret);
    }
    return ret;
}

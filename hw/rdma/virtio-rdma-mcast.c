/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups. The backend keeps them; a QP that is destroyed leaves
 * its own.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "trace.h"
#include "virtio-rdma-internal.h"

/* RFC 4291, 2.7; RFC 1112, 4: 224.0.0.0/4, mapped as in 2.5.5.2 */
static bool is_multicast(const uint8_t gid[RDMA_GID_LEN])
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

    if (!memcmp(gid, mapped, sizeof(mapped))) {
        return (gid[12] & 0xf0) == 0xe0;
    }
    return gid[0] == 0xff;
}

static int check(VirtIORdma *s, VirtIORdmaCtrl *c)
{
    VirtIORdmaQp *qp = virtio_rdma_table_get(&s->qps, c->req.mcast.qpn);

    if (!qp) {
        return -ENOENT;
    }
    if (qp->init.qp_type != RDMA_QPT_UD || !is_multicast(c->req.mcast.gid)) {
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

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "virtio-rdma-object.h"

VirtIORdmaPd *virtio_rdma_pd_add(VirtIORdma *s, uint32_t pdn)
{
    VirtIORdmaPd *pd = g_new0(VirtIORdmaPd, 1);

    pd->pdn = pdn;
    virtio_rdma_table_set(&s->pds, pdn, pd);
    return pd;
}

void virtio_rdma_pd_remove(VirtIORdma *s, VirtIORdmaPd *pd)
{
    virtio_rdma_table_clear(&s->pds, pd->pdn);
    g_free(pd);
}

int virtio_rdma_pd_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    VirtIORdmaPd *pd;
    uint32_t pdn;
    int ret;

    if (!virtio_rdma_table_find(&s->pds, &pdn)) {
        return -ENOMEM;
    }
    pd = virtio_rdma_pd_add(s, pdn);
    ret = s->bc->create_pd ? s->bc->create_pd(s->backend, pdn) : 0;
    if (ret) {
        virtio_rdma_pd_remove(s, pd);
        if (ret == -EINPROGRESS) {
            virtio_rdma_table_again(&s->pds, pdn);
        }
        return ret;
    }
    rsp->create.id = pdn;
    return 0;
}

int virtio_rdma_pd_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    VirtIORdmaPd *pd = virtio_rdma_table_get(&s->pds, req->destroy.id);
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (pd->users) {
        return -EBUSY;
    }
    ret = s->bc->destroy(s->backend, RDMA_OBJECT_PD, pd->pdn);
    if (ret) {
        return ret;
    }
    virtio_rdma_pd_remove(s, pd);
    return 0;
}

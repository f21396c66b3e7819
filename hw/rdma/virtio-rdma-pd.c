/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains of a virtio-rdma device.
 */
#include "qemu/osdep.h"
#include "virtio-rdma-object.h"

RdmaHcaPd *virtio_rdma_pd_add(VirtIORdma *s, uint32_t pdn)
{
    RdmaHcaPd *pd = g_new0(RdmaHcaPd, 1);

    pd->pdn = pdn;
    rdma_hca_table_set(&s->hca.pds, pdn, pd);
    return pd;
}

void virtio_rdma_pd_remove(VirtIORdma *s, RdmaHcaPd *pd)
{
    rdma_hca_table_clear(&s->hca.pds, pd->pdn);
    g_free(pd);
}

int virtio_rdma_pd_create(VirtIORdma *s, const VirtIORdmaReq *req,
                          VirtIORdmaRsp *rsp)
{
    RdmaHcaPd *pd;
    uint32_t pdn;
    int ret;

    if (!rdma_hca_table_find(&s->hca.pds, &pdn)) {
        return -ENOMEM;
    }
    pd = virtio_rdma_pd_add(s, pdn);
    ret = s->hca.bc->create_pd ? s->hca.bc->create_pd(s->hca.backend, pdn) : 0;
    if (ret) {
        virtio_rdma_pd_remove(s, pd);
        if (ret == -EINPROGRESS) {
            rdma_hca_table_again(&s->hca.pds, pdn);
        }
        return ret;
    }
    rsp->create.id = pdn;
    return 0;
}

int virtio_rdma_pd_destroy(VirtIORdma *s, const VirtIORdmaReq *req,
                           VirtIORdmaRsp *rsp)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&s->hca.pds, req->destroy.id);
    int ret;

    if (!pd) {
        return -ENOENT;
    }
    if (pd->users) {
        return -EBUSY;
    }
    ret = s->hca.bc->destroy(s->hca.backend, RDMA_OBJECT_PD, pd->pdn);
    if (ret) {
        return ret;
    }
    virtio_rdma_pd_remove(s, pd);
    return 0;
}

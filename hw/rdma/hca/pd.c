/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Protection domains.
 */
#include "qemu/osdep.h"
#include "int.h"

void rdma_hca_pd_remove(RdmaHca *hca, RdmaHcaPd *pd)
{
    rdma_hca_table_clear(&hca->pds, pd->pdn);
    g_free(pd);
}

int rdma_hca_pd_create(RdmaHca *hca, uint32_t *pdn)
{
    RdmaHcaPd *pd;
    int ret;

    if (!rdma_hca_table_find(&hca->pds, pdn)) {
        return -ENOMEM;
    }
    pd = g_new0(RdmaHcaPd, 1);
    pd->pdn = *pdn;
    rdma_hca_table_set(&hca->pds, *pdn, pd);
    ret = hca->bc->create_pd ? hca->bc->create_pd(hca->backend, *pdn) : 0;
    if (ret) {
        rdma_hca_pd_remove(hca, pd);
        rdma_hca_table_search_from(&hca->pds, *pdn);
    }
    return ret;
}

int rdma_hca_pd_destroy(RdmaHca *hca, uint32_t pdn)
{
    RdmaHcaPd *pd = rdma_hca_table_get(&hca->pds, pdn);
    int ret = !pd ? -ENOENT : pd->users ? -EBUSY :
              hca->bc->destroy(hca->backend, RDMA_OBJECT_PD, pdn);

    if (!ret) {
        rdma_hca_pd_remove(hca, pd);
    }
    return ret;
}

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands to the kernel driver: common ones, with responses of the driver.
 */
#ifndef VRDMA_ABI_H
#define VRDMA_ABI_H

#include <infiniband/kern-abi.h>
#include <rdma/virtio_rdma-abi.h>
#include <kernel-abi/virtio_rdma-abi.h>

DECLARE_DRV_CMD(vrdma_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		empty, virtio_rdma_alloc_ucontext_resp);
DECLARE_DRV_CMD(vrdma_create_cq, IB_USER_VERBS_CMD_CREATE_CQ,
		empty, virtio_rdma_create_cq_resp);
DECLARE_DRV_CMD(vrdma_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		empty, virtio_rdma_create_cq_resp);
DECLARE_DRV_CMD(vrdma_create_qp, IB_USER_VERBS_CMD_CREATE_QP,
		empty, virtio_rdma_create_qp_resp);
DECLARE_DRV_CMD(vrdma_create_qp_flags, IB_USER_VERBS_EX_CMD_CREATE_QP,
		empty, virtio_rdma_create_qp_resp);
DECLARE_DRV_CMD(vrdma_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		empty, virtio_rdma_create_srq_resp);
DECLARE_DRV_CMD(vrdma_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, virtio_rdma_create_ah_resp);

#endif /* VRDMA_ABI_H */

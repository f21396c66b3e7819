/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Differences between the versions of rdma-core. IBVERBS_PABI_VERSION tells
 * them apart: 34 up to rdma-core 56, then 57, 59, 64 and 65.
 */
#ifndef VRDMA_COMPAT_H
#define VRDMA_COMPAT_H

#include <infiniband/driver.h>

static inline int vrdma_cmd_get_context(struct verbs_context *ctx,
					struct ibv_get_context *cmd,
					size_t cmd_size,
					struct ib_uverbs_get_context_resp *resp,
					size_t resp_size)
{
#if IBVERBS_PABI_VERSION >= 57
	return ibv_cmd_get_context(ctx, cmd, cmd_size, NULL, resp, resp_size);
#else
	return ibv_cmd_get_context(ctx, cmd, cmd_size, resp, resp_size);
#endif
}

static inline int
vrdma_cmd_create_qp_ex2(struct ibv_context *ctx, struct verbs_qp *qp,
			struct ibv_qp_init_attr_ex *attr,
			struct ibv_create_qp_ex *cmd, size_t cmd_size,
			struct ib_uverbs_ex_create_qp_resp *resp,
			size_t resp_size)
{
#if IBVERBS_PABI_VERSION >= 64
	return ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp,
				     resp_size, NULL);
#else
	return ibv_cmd_create_qp_ex2(ctx, qp, attr, cmd, cmd_size, resp,
				     resp_size);
#endif
}

#endif /* VRDMA_COMPAT_H */

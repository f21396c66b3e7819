/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device, its contexts and its attributes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/mman.h>
#include <ccan/array_size.h>

#include "compat.h"
#include "vrdma.h"

/* For people who have only the library: strings(1) shows its version. */
static const char vrdma_version[] __attribute__((used)) =
	"virtio_rdma provider " VRDMA_VERSION;

static int vrdma_query_device(struct ibv_context *ctx,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct ib_uverbs_ex_query_device_resp resp;
	size_t resp_size = sizeof(resp);
	struct ibv_device_attr *a = &attr->orig_attr;
	int ret;

	ret = ibv_cmd_query_device_any(ctx, input, attr, attr_size, &resp,
				       &resp_size);
	if (ret)
		return ret;
	snprintf(a->fw_ver, sizeof(a->fw_ver), "%u",
		 (unsigned int)resp.base.fw_ver);
	return 0;
}

static int vrdma_query_port(struct ibv_context *ctx, uint8_t port,
			    struct ibv_port_attr *attr)
{
	struct ibv_query_port cmd;

	return ibv_cmd_query_port(ctx, port, attr, &cmd, sizeof(cmd));
}

#if IBVERBS_PABI_VERSION >= 64
/* In units of 100 Mb/s. The rate has no other limit than width and speed. */
static int vrdma_query_port_speed(struct ibv_context *ctx, uint32_t port,
				  uint64_t *rate)
{
	/* By the number of the bit that query_port sets */
	static const uint8_t lanes[] = { 1, 4, 8, 12, 2 };
	static const uint16_t lane_rates[] = {
		25, 50, 100, 100, 140, 250, 500, 1000, 2000,
	};
	struct ibv_port_attr attr = {};
	unsigned int width, speed;
	int ret;

	if (port > UINT8_MAX)
		return EINVAL;
	ret = vrdma_query_port(ctx, port, &attr);
	if (ret)
		return ret;
	width = ffs(attr.active_width) - 1;
	speed = ffs(attr.active_speed_ex ?: attr.active_speed) - 1;
	if (width >= ARRAY_SIZE(lanes) || speed >= ARRAY_SIZE(lane_rates))
		return EOPNOTSUPP;
	*rate = lanes[width] * lane_rates[speed];
	return 0;
}
#endif

static void vrdma_free_context(struct ibv_context *ibctx)
{
	struct vrdma_context *ctx = to_vctx(ibctx);

	if (ctx->shadow)
		munmap(ctx->shadow, VIRTIO_RDMA_SHADOW_MAP);
	if (ctx->doorbell)
		munmap(ctx->doorbell, VIRTIO_RDMA_DOORBELL_MAP);
	verbs_uninit_context(&ctx->vctx);
	pthread_spin_destroy(&ctx->srq_lock);
	pthread_mutex_destroy(&ctx->qp_mutex);
	free(ctx->qps);
	free(ctx);
}

static const struct verbs_context_ops vrdma_ctx_ops = {
	.alloc_mw = vrdma_alloc_mw,
	.alloc_pd = vrdma_alloc_pd,
	.attach_mcast = ibv_cmd_attach_mcast,
	.bind_mw = vrdma_bind_mw,
	.cq_event = vrdma_cq_event,
	.create_ah = vrdma_create_ah,
	.create_cq = vrdma_create_cq,
	.create_cq_ex = vrdma_create_cq_ex,
	.create_qp = vrdma_create_qp,
	.create_qp_ex = vrdma_create_qp_ex,
	.create_srq = vrdma_create_srq,
	.dealloc_mw = vrdma_dealloc_mw,
	.dealloc_pd = vrdma_dealloc_pd,
	.dereg_mr = vrdma_dereg_mr,
	.destroy_ah = vrdma_destroy_ah,
	.destroy_cq = vrdma_destroy_cq,
	.destroy_qp = vrdma_destroy_qp,
	.destroy_srq = vrdma_destroy_srq,
	.detach_mcast = ibv_cmd_detach_mcast,
	.free_context = vrdma_free_context,
	.import_mr = vrdma_import_mr,
	.import_pd = vrdma_import_pd,
	.modify_qp = vrdma_modify_qp,
	.modify_srq = vrdma_modify_srq,
	.poll_cq = vrdma_poll_cq,
	.post_recv = vrdma_post_recv,
	.post_send = vrdma_post_send,
	.post_srq_recv = vrdma_post_srq_recv,
	.query_device_ex = vrdma_query_device,
	.query_port = vrdma_query_port,
#if IBVERBS_PABI_VERSION >= 64
	.query_port_speed = vrdma_query_port_speed,
#endif
	.query_qp = vrdma_query_qp,
	.query_srq = vrdma_query_srq,
	.reg_dmabuf_mr = vrdma_reg_dmabuf_mr,
	.reg_mr = vrdma_reg_mr,
	.req_notify_cq = vrdma_req_notify_cq,
	.rereg_mr = vrdma_rereg_mr,
	.resize_cq = vrdma_resize_cq,
	.unimport_mr = vrdma_unimport_mr,
	.unimport_pd = vrdma_unimport_pd,
};

/* Without the page, the kernel rings for the process. */
static void vrdma_map_doorbell(struct vrdma_context *ctx, int cmd_fd,
			       uint64_t offset)
{
	void *map = mmap(NULL, VIRTIO_RDMA_DOORBELL_MAP, PROT_WRITE, MAP_SHARED,
			 cmd_fd, offset);

	ctx->doorbell = map == MAP_FAILED ? NULL : map;
}

/* Without the shadow, each queue that is not awake is rung for. */
static void vrdma_map_shadow(struct vrdma_context *ctx, int cmd_fd,
			     uint64_t offset)
{
	void *map = mmap(NULL, VIRTIO_RDMA_SHADOW_MAP, PROT_READ | PROT_WRITE,
			 MAP_SHARED, cmd_fd, offset);

	ctx->shadow = map == MAP_FAILED ? NULL : map;
}

static struct vrdma_context *vrdma_init_context(struct ibv_device *ibdev,
						int cmd_fd)
{
	struct vrdma_context *ctx;

	return verbs_init_and_alloc_context(ibdev, cmd_fd, ctx, vctx,
					    RDMA_DRIVER_UNKNOWN);
}

/* Complete a context by the kernel's response. On failure it is freed. */
static struct verbs_context *
vrdma_set_context(struct vrdma_context *ctx, int cmd_fd,
		  const struct virtio_rdma_alloc_ucontext_resp *resp)
{
	ctx->direct = resp->flags & VIRTIO_RDMA_UCTX_DIRECT;
	ctx->mw = resp->flags & VIRTIO_RDMA_UCTX_MW;
	ctx->flush = resp->flags & VIRTIO_RDMA_UCTX_FLUSH;
	ctx->atomic_write = resp->flags & VIRTIO_RDMA_UCTX_ATOMIC_WRITE;
	ctx->max_qp = resp->max_qp;
	ctx->qps = calloc(ctx->max_qp, sizeof(*ctx->qps));
	if (!ctx->qps) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		return NULL;
	}
	if (resp->flags & VIRTIO_RDMA_UCTX_DOORBELL)
		vrdma_map_doorbell(ctx, cmd_fd, resp->doorbell_offset);
	if (resp->flags & VIRTIO_RDMA_UCTX_SHADOW)
		vrdma_map_shadow(ctx, cmd_fd, resp->shadow_offset);
	pthread_mutex_init(&ctx->qp_mutex, NULL);
	pthread_spin_init(&ctx->srq_lock, PTHREAD_PROCESS_PRIVATE);
	verbs_set_ops(&ctx->vctx, &vrdma_ctx_ops);
	return &ctx->vctx;
}

static struct verbs_context *vrdma_alloc_context(struct ibv_device *ibdev,
						 int cmd_fd,
						 void *private_data)
{
	struct vrdma_get_context_resp resp = {};
	struct vrdma_context *ctx;
	struct ibv_get_context cmd;

	ctx = vrdma_init_context(ibdev, cmd_fd);
	if (!ctx)
		return NULL;
	if (vrdma_cmd_get_context(&ctx->vctx, &cmd, sizeof(cmd), &resp.ibv_resp,
				  sizeof(resp))) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		return NULL;
	}
	return vrdma_set_context(ctx, cmd_fd, &resp.drv_payload);
}

/*
 * The context of another process, which has handed its file to this one. Both
 * processes use doorbells and memory regions; queue pairs and CQs are of the
 * process that has created them.
 */
static struct verbs_context *vrdma_import_context(struct ibv_device *ibdev,
						  int cmd_fd)
{
	struct virtio_rdma_alloc_ucontext_resp resp = {};
	DECLARE_COMMAND_BUFFER_LINK(attr, UVERBS_OBJECT_DEVICE,
				    UVERBS_METHOD_QUERY_CONTEXT, 1, NULL);
	struct vrdma_context *ctx;

	ctx = vrdma_init_context(ibdev, cmd_fd);
	if (!ctx)
		return NULL;
	fill_attr_out_ptr(attr, VIRTIO_RDMA_ATTR_QUERY_CONTEXT_RESP, &resp);
	if (ibv_cmd_query_context(&ctx->vctx.context, attr)) {
		verbs_uninit_context(&ctx->vctx);
		free(ctx);
		return NULL;
	}
	return vrdma_set_context(ctx, cmd_fd, &resp);
}

static struct verbs_device *vrdma_alloc_device(struct verbs_sysfs_dev *sysfs)
{
	struct vrdma_device *dev = calloc(1, sizeof(*dev));

	return dev ? &dev->vdev : NULL;
}

static void vrdma_uninit_device(struct verbs_device *vdev)
{
	free(container_of(vdev, struct vrdma_device, vdev));
}

/*
 * The device's parent is the PCI function of a virtio device of type 42, 0x2a,
 * or the virtio device itself if its transport is not PCI.
 */
static const struct verbs_match_ent vrdma_match[] = {
	VERBS_PCI_MATCH(0x1af4, 0x1040 + 0x2a, NULL),
	VERBS_MODALIAS_MATCH("virtio:d0000002Av*", NULL),
	{},
};

static const struct verbs_device_ops vrdma_dev_ops = {
	.name = "virtio_rdma",
	.match_min_abi_version = VIRTIO_RDMA_UABI_VERSION,
	.match_max_abi_version = VIRTIO_RDMA_UABI_VERSION,
	.match_table = vrdma_match,
	.alloc_device = vrdma_alloc_device,
	.uninit_device = vrdma_uninit_device,
	.alloc_context = vrdma_alloc_context,
	.import_context = vrdma_import_context,
};
PROVIDER_DRIVER(virtio_rdma, vrdma_dev_ops);

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "cmd" of the virtio-rdma device: the handlers of control commands. They
 * translate requests and responses of the guest ABI for the core.
 */
#ifndef HW_RDMA_VIRTIO_CMD_H
#define HW_RDMA_VIRTIO_CMD_H

#include "queue.h"

/*
 * The handler of a control command decodes and checks the request, executes it
 * and encodes the response. @req: VIRTIO_RDMA_REQ_ROOM bytes, a copy of the
 * driver's, 0 where the driver left them out; @rsp: VIRTIO_RDMA_RSP_ROOM bytes,
 * all 0. Both come after the byte of the command, or of the status.
 *
 * It returns 0 or a negative errno. After an error nothing has changed, and the
 * response is undefined. After -EINPROGRESS the control queue calls the handler
 * again with the same request: in the next turn of the main loop if
 * rdma_hca_pages_reading(), otherwise after RdmaHcaOps.resume().
 */
typedef int VirtIORdmaHandler(VirtIORdma *s, const void *req, void *rsp);

#define VIRTIO_RDMA_REQ_ROOM 256
#define VIRTIO_RDMA_RSP_ROOM 256

/* cmd-port.c: the port, its GIDs and counters */

VirtIORdmaHandler virtio_rdma_port_query;
VirtIORdmaHandler virtio_rdma_pkey_query;
VirtIORdmaHandler virtio_rdma_gid_add;
VirtIORdmaHandler virtio_rdma_gid_del;
VirtIORdmaHandler virtio_rdma_counters_query;
VirtIORdmaHandler virtio_rdma_qp_counters_query;

/* cmd-mem.c: PDs, memory regions and windows */

VirtIORdmaHandler virtio_rdma_pd_create;
VirtIORdmaHandler virtio_rdma_mr_get_dma;
VirtIORdmaHandler virtio_rdma_mr_create;
VirtIORdmaHandler virtio_rdma_mr_reg_user;
VirtIORdmaHandler virtio_rdma_mr_map_sg;
VirtIORdmaHandler virtio_rdma_mr_rereg;
VirtIORdmaHandler virtio_rdma_mw_alloc;

/* cmd-queue.c: CQs, event queues, SRQs, QPs, multicast groups, doorbells */

VirtIORdmaHandler virtio_rdma_cq_create;
VirtIORdmaHandler virtio_rdma_cq_req_notify;
VirtIORdmaHandler virtio_rdma_cq_resize;
VirtIORdmaHandler virtio_rdma_srq_create;
VirtIORdmaHandler virtio_rdma_srq_modify;
VirtIORdmaHandler virtio_rdma_srq_query;
VirtIORdmaHandler virtio_rdma_qp_create;
VirtIORdmaHandler virtio_rdma_qp_modify;
VirtIORdmaHandler virtio_rdma_qp_query;
VirtIORdmaHandler virtio_rdma_mcast_attach;
VirtIORdmaHandler virtio_rdma_mcast_detach;
VirtIORdmaHandler virtio_rdma_doorbell_set_shadow;

#endif

/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "object" of the virtio-rdma device: what makes, changes and destroys
 * objects. For each kind there are the handlers of its control commands, and
 * where migration makes objects, too, functions to add and remove one.
 */
#ifndef HW_RDMA_VIRTIO_RDMA_OBJECT_H
#define HW_RDMA_VIRTIO_RDMA_OBJECT_H

#include "virtio-rdma-queue.h"

/*
 * The handler of a control command checks the request, executes it and fills in
 * the response. It returns 0, or a negative errno and changes nothing. After
 * -EINPROGRESS it is called again, with the same request: in the next turn of
 * the main loop if virtio_rdma_pages_reading(), else when the backend says so.
 * It then comes to the same numbers of objects (rdma_hca_table_again()).
 */
typedef int VirtIORdmaHandler(VirtIORdma *s, const VirtIORdmaReq *req,
                              VirtIORdmaRsp *rsp);

/* virtio-rdma-port.c: the port, its GIDs and counters */

VirtIORdmaHandler virtio_rdma_port_query;
VirtIORdmaHandler virtio_rdma_pkey_query;
VirtIORdmaHandler virtio_rdma_gid_add;
VirtIORdmaHandler virtio_rdma_gid_del;
VirtIORdmaHandler virtio_rdma_counters_query;
VirtIORdmaHandler virtio_rdma_qp_counters_query;

/* virtio-rdma-pd.c: protection domains */

RdmaHcaPd *virtio_rdma_pd_add(VirtIORdma *s, uint32_t pdn);
void virtio_rdma_pd_remove(VirtIORdma *s, RdmaHcaPd *pd);
VirtIORdmaHandler virtio_rdma_pd_create;
VirtIORdmaHandler virtio_rdma_pd_destroy;

/* virtio-rdma-cq.c: completion queues, and event queues */

VirtIORdmaCq *virtio_rdma_cq_add(VirtIORdma *s, uint32_t cqn, uint32_t cqe);
void virtio_rdma_cq_remove(VirtIORdma *s, VirtIORdmaCq *cq);
VirtIORdmaHandler virtio_rdma_cq_create;
VirtIORdmaHandler virtio_rdma_cq_destroy;
VirtIORdmaHandler virtio_rdma_cq_req_notify;
VirtIORdmaHandler virtio_rdma_cq_resize;

/* virtio-rdma-mr.c: memory regions */

RdmaHcaMr *virtio_rdma_mr_add(VirtIORdma *s, uint32_t mrn,
                              RdmaHcaPd *pd, uint32_t type);
/* @mr is a region or a window. */
void virtio_rdma_mr_remove(VirtIORdma *s, RdmaHcaMr *mr);
/* A key for region or window @mrn: the number, and 8 random bits. */
uint32_t virtio_rdma_mr_new_key(uint32_t mrn);
VirtIORdmaHandler virtio_rdma_mr_get_dma;
VirtIORdmaHandler virtio_rdma_mr_create;
VirtIORdmaHandler virtio_rdma_mr_reg_user;
VirtIORdmaHandler virtio_rdma_mr_map_sg;
VirtIORdmaHandler virtio_rdma_mr_rereg;
VirtIORdmaHandler virtio_rdma_mr_dereg;

/* virtio-rdma-mw.c: memory windows */

RdmaHcaMr *virtio_rdma_mw_add(VirtIORdma *s, const RdmaMwAttr *attr,
                              RdmaHcaPd *pd);
VirtIORdmaHandler virtio_rdma_mw_alloc;
VirtIORdmaHandler virtio_rdma_mw_dealloc;

/* virtio-rdma-qp.c: queue pairs */

RdmaHcaQp *virtio_rdma_qp_add(VirtIORdma *s, const RdmaQpInitAttr *init,
                              RdmaHcaPd *pd, RdmaHcaCq *send_cq,
                              RdmaHcaCq *recv_cq, RdmaHcaSrq *srq);
/* The new @qp has virtqueues, those of its number. */
void virtio_rdma_qp_use_vqs(VirtIORdma *s, RdmaHcaQp *qp);
void virtio_rdma_qp_remove(VirtIORdma *s, RdmaHcaQp *qp);
/* Put all QPs that use @cq, or @qp alone, into ERR. */
void virtio_rdma_cq_fail(VirtIORdma *s, RdmaHcaCq *cq);
void virtio_rdma_qp_fail(VirtIORdma *s, RdmaHcaQp *qp);
VirtIORdmaHandler virtio_rdma_qp_create;
VirtIORdmaHandler virtio_rdma_qp_modify;
VirtIORdmaHandler virtio_rdma_qp_query;
VirtIORdmaHandler virtio_rdma_qp_destroy;

/* virtio-rdma-srq.c: shared receive queues */

RdmaHcaSrq *virtio_rdma_srq_add(VirtIORdma *s, const RdmaSrqAttr *attr,
                                RdmaHcaPd *pd);
void virtio_rdma_srq_remove(VirtIORdma *s, RdmaHcaSrq *srq);
/* The new @srq has a virtqueue, that of its number. */
void virtio_rdma_srq_use_vq(VirtIORdma *s, RdmaHcaSrq *srq);
/* It enters the error state, and its QPs enter ERR. */
void virtio_rdma_srq_fail(VirtIORdma *s, RdmaHcaSrq *srq);
VirtIORdmaHandler virtio_rdma_srq_create;
VirtIORdmaHandler virtio_rdma_srq_modify;
VirtIORdmaHandler virtio_rdma_srq_query;
VirtIORdmaHandler virtio_rdma_srq_destroy;

/* virtio-rdma-mcast.c: multicast groups */

VirtIORdmaHandler virtio_rdma_mcast_attach;
VirtIORdmaHandler virtio_rdma_mcast_detach;

/* virtio-rdma-doorbell.c: pages of doorbells */

VirtIORdmaHandler virtio_rdma_doorbell_set_shadow;

/* virtio-rdma-object.c: all objects */

void virtio_rdma_objects_init(VirtIORdma *s);
void virtio_rdma_objects_free(VirtIORdma *s);
/* Remove all objects after the backend has done so. */
void virtio_rdma_objects_reset(VirtIORdma *s);

#endif

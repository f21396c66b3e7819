/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Layer "vmstate" of the virtio-rdma device: the records of the migration
 * stream, and the conversion of objects to records and back
 */
#ifndef HW_RDMA_VIRTIO_VMSTATE_H
#define HW_RDMA_VIRTIO_VMSTATE_H

#include "ctrl.h"

/*
 * A list of records. @more: VMS_ALLOC, or 0 if the post_load() that checks
 * their number allocates the list.
 */
#define VIRTIO_RDMA_RECORDS(field_, num, vmsd_, state, type, more) {    \
    .name = #field_,                                                    \
    .version_id = 1,                                                    \
    .vmsd = &(vmsd_),                                                   \
    .num_offset = offsetof(state, num),                                 \
    .size = sizeof(type),                                               \
    .flags = VMS_STRUCT | VMS_VARRAY_UINT32 | VMS_POINTER | (more),     \
    .offset = offsetof(state, field_),                                  \
}

typedef struct SavedPd {
    uint32_t pdn;
} SavedPd;

typedef struct SavedCq {
    uint32_t cqn;
    uint32_t cqe;
    uint8_t arm;
    bool error;
    uint32_t n_backlog;
    VirtIORdmaCqe *backlog;
    uint32_t max_cqe;               /* of the device, not in the stream */
    bool is_eq;
    /* Of a direct CQ */
    uint8_t depth_shift;
    uint32_t npages;
    uint64_t *pages;
    uint32_t produced;
    uint32_t consumed;
    uint32_t fired;
    uint32_t eqn;                   /* or VIRTIO_RDMA_EQN_NONE */
    bool event_waits;
} SavedCq;

typedef struct SavedEvent {
    uint32_t type;
    uint32_t id;
} SavedEvent;

typedef struct SavedMr {
    uint32_t mrn;
    uint32_t pdn;
    uint32_t type;
    uint32_t key;
    uint32_t rkey;
    uint32_t npages;
    uint32_t pending;
    uint32_t max_pages;
} SavedMr;

typedef struct SavedMw {
    uint32_t mwn;
    uint32_t pdn;
    uint32_t type;
    uint32_t rkey;
} SavedMw;

/* The queue of a direct SRQ */
typedef struct SavedDirectSrq {
    VirtIORdmaDirectSrq queue;      /* without the address of the page list */
    uint64_t *pages;
    uint32_t taken;
    bool broken;
} SavedDirectSrq;

typedef struct SavedSrq {
    uint32_t srqn;
    uint32_t pdn;
    uint32_t max_wr;
    uint32_t max_sge;
    bool error;
    SavedDirectSrq direct;          /* if direct.pages is not NULL */
} SavedSrq;

typedef struct SavedWq {
    uint32_t stale;
    uint32_t count;
    RdmaHcaInflight *inflight;
} SavedWq;

/* The queues of a direct QP */
typedef struct SavedDirect {
    VirtIORdmaDirectQp queues;      /* without the address of the page list */
    uint64_t *pages;
    uint32_t sq_taken;
    uint32_t rq_taken;
    bool broken;
} SavedDirect;

typedef struct SavedQp {
    uint32_t qpn;
    uint32_t pdn;
    uint32_t type;
    uint32_t send_cqn;
    uint32_t recv_cqn;
    uint32_t srqn;                  /* if has_srq */
    bool has_srq;
    bool block_mcast_loopback;
    bool sq_sig_all;
    RdmaQpCap cap;
    SavedWq sq;
    SavedWq rq;
    SavedDirect direct;             /* if direct.pages is not NULL */
} SavedQp;

typedef struct SavedShadow {
    uint32_t doorbell;
    uint64_t addr;
} SavedShadow;

typedef struct SavedQpCounters {
    uint32_t qpn;
    uint64_t values[VIRTIO_RDMA_NUM_COUNTERS];
} SavedQpCounters;

struct VirtIORdmaSaved {
    VirtIORdma *dev;
    uint32_t n_pds;
    SavedPd *pds;
    uint32_t n_cqs;
    SavedCq *cqs;
    uint32_t n_mrs;
    SavedMr *mrs;
    uint32_t n_mws;
    SavedMw *mws;
    uint32_t n_srqs;
    SavedSrq *srqs;
    uint32_t n_qps;
    SavedQp *qps;
    uint32_t next_pdn;
    uint32_t next_cqn;
    uint32_t next_mrn;
    uint32_t next_srqn;
    uint32_t next_qpn;
    uint32_t n_stale_vqs;
    uint32_t *stale_vqs;
    uint32_t n_events;
    SavedEvent *events;
    uint32_t n_shadows;
    SavedShadow *shadows;
    uint32_t n_qp_counters;
    SavedQpCounters *qp_counters;
    bool port_active;
    uint64_t counters[VIRTIO_RDMA_NUM_COUNTERS];
};

/* vmstate-limits.c: limits and features, first in the stream */

void virtio_rdma_limits_register(VirtIORdma *s);
void virtio_rdma_limits_unregister(VirtIORdma *s);
/* If the device has an iothread, are all queues in the records direct? */
bool virtio_rdma_saved_suits_iothread(const VirtIORdmaSaved *v);

/* vmstate-counters.c: counters of queue pairs */

void virtio_rdma_saved_counters_fill(VirtIORdmaSaved *v);
extern const VMStateDescription vmstate_virtio_rdma_qp_counters;

/* vmstate-save.c: make records, and free them */

int virtio_rdma_saved_pre_save(void *opaque);
int virtio_rdma_saved_post_save(void *opaque);
/* Free the records, if there are any: after saving, and after loading. */
void virtio_rdma_saved_free(VirtIORdma *s);

/* vmstate-load.c: allocate and check records, and make objects from them */

int virtio_rdma_saved_pre_load(void *opaque);
bool virtio_rdma_saved_valid_wq(void *opaque, int version_id);
bool virtio_rdma_saved_valid_direct(void *opaque, int version_id);
bool virtio_rdma_saved_valid_cq(void *opaque, int version_id);
bool virtio_rdma_saved_valid_direct_cq(void *opaque, int version_id);
bool virtio_rdma_saved_valid_direct_srq(void *opaque, int version_id);
bool virtio_rdma_saved_valid_shadows(void *opaque, int version_id);
int virtio_rdma_saved_shadows_post_load(void *opaque, int version_id);
int virtio_rdma_saved_counts_post_load(void *opaque, int version_id);
int virtio_rdma_saved_objects_post_load(void *opaque, int version_id);
/* After the backend's state was loaded */
int virtio_rdma_saved_post_load(void *opaque, int version_id);
/*
 * The stream is refused: remove all objects. Some may have no form, and some
 * may be unknown to the backend.
 */
void virtio_rdma_forget_loaded(VirtIORdma *s);
/* VirtioDeviceClass.post_load(): features and virtqueues are loaded, too. */
int virtio_rdma_post_load(VirtIODevice *vdev);

/* vmstate.c: the stream */

extern const VMStateDescription vmstate_virtio_rdma_device;

#endif

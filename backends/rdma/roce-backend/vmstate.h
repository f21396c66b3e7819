/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: declarations for the files that save and load
 * kinds of objects.
 *
 * The stream is not trusted. The engine checks each field of an object. The
 * device checks that it has such an object. Numbers that decide how much memory
 * is allocated are checked before the allocation.
 */
#ifndef BACKENDS_RDMA_ROCE_VMSTATE_H
#define BACKENDS_RDMA_ROCE_VMSTATE_H

#include "system/rdma-vmstate.h"
#include "int.h"

/* All objects of a kind, as VMStateField.info: their count, then each object */
typedef struct RoceObjectList {
    VMStateInfo info;
    const char *kind;
    bool (*next)(const RoceEngine *e, uint32_t *n);
    int (*put)(QEMUFile *f, RdmaBackend *rb, uint32_t n);
    /* @why: the reason why object @n cannot be loaded, or NULL */
    int (*get)(QEMUFile *f, RdmaBackend *rb, uint32_t *n, char **why);
} RoceObjectList;

#define ROCE_OBJECT_LIST(kind_, next_, put_, get_) {    \
    .info = {                                           \
        .name = "rdma-roce " kind_ "s",                 \
        .get = rdma_roce_get_objects,                   \
        .put = rdma_roce_put_objects,                   \
    },                                                  \
    .kind = kind_,                                      \
    .next = next_,                                      \
    .put = put_,                                        \
    .get = get_,                                        \
}

int rdma_roce_put_objects(QEMUFile *f, void *pv, size_t size,
                          const VMStateField *field, JSONWriter *vmdesc);
int rdma_roce_get_objects(QEMUFile *f, void *pv, size_t size,
                          const VMStateField *field);

extern const RoceObjectList rdma_roce_mrs;
extern const RoceObjectList rdma_roce_mws;
extern const RoceObjectList rdma_roce_srqs;
extern const RoceObjectList rdma_roce_qps;

/* One element of a queue, in an array of them */
extern const VMStateInfo vmstate_info_roce_send;    /* RoceSendImage */
extern const VMStateInfo vmstate_info_roce_recv;    /* RoceRecvWqe */
extern const VMStateInfo vmstate_info_roce_sge;     /* RdmaSge */
extern const VMStateInfo vmstate_info_roce_res;     /* RoceResource */

/*
 * Lists of pages may be long, so they are saved as one buffer. The caller frees
 * what it gets. -EIO if the stream is too short.
 */
void rdma_roce_put_pages(QEMUFile *f, uint64_t *pages, uint32_t n);
int rdma_roce_get_pages(QEMUFile *f, uint64_t **pages, uint32_t n);

#endif

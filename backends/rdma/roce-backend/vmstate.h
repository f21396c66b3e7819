/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Migration of the RoCE backend: what its files share. Kinds of objects have
 * a file each, and one VMStateInfo that saves and loads all of that kind.
 *
 * The stream is not trusted. The engine checks every field of an object, the
 * device that it has such an object; what decides how much memory is
 * allocated is checked before.
 */
#ifndef BACKENDS_RDMA_ROCE_VMSTATE_H
#define BACKENDS_RDMA_ROCE_VMSTATE_H

#include "int.h"

#define VMSTATE_ENUM(field_, state) {           \
    .name = #field_,                            \
    .info = &vmstate_info_uint32,               \
    .size = sizeof(uint32_t),                   \
    .flags = VMS_SINGLE,                        \
    .offset = offsetof(state, field_),          \
}

/* A list that is saved and loaded by functions of its own. */
#define VMSTATE_OBJECTS(name_, info_) {         \
    .name = name_,                              \
    .info = &(info_),                           \
    .flags = VMS_SINGLE,                        \
}

/*
 * All objects of a kind, which @next finds: their count, and each by @put, or
 * by @get.
 */
int rdma_roce_put_objects(QEMUFile *f, RdmaBackend *rb,
                          bool (*next)(const RoceEngine *e, uint32_t *n),
                          int (*put)(QEMUFile *f, RdmaBackend *rb,
                                     uint32_t n));
int rdma_roce_get_objects(QEMUFile *f, RdmaBackend *rb,
                          int (*get)(QEMUFile *f, RdmaBackend *rb));

extern const VMStateInfo vmstate_info_roce_mrs;
extern const VMStateInfo vmstate_info_roce_mws;
extern const VMStateInfo vmstate_info_roce_srqs;
extern const VMStateInfo vmstate_info_roce_qps;

/* One element of a queue, in an array of them */
extern const VMStateInfo vmstate_info_roce_send;    /* RoceSendImage */
extern const VMStateInfo vmstate_info_roce_recv;    /* RoceRecvWqe */
extern const VMStateInfo vmstate_info_roce_sge;     /* RdmaSge */
extern const VMStateInfo vmstate_info_roce_res;     /* RoceResource */

/*
 * Lists of pages may be long: they are not saved number by number. The caller
 * frees what it gets; -EIO if the stream ends before.
 */
void rdma_roce_put_pages(QEMUFile *f, uint64_t *pages, uint32_t n);
int rdma_roce_get_pages(QEMUFile *f, uint64_t **pages, uint32_t n);

#endif
